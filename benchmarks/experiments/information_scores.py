"""Information scores of classifiers (skew Gaussian processes for classification, figures 8 to 10).

Five-fold cross-validation; the score is `1 + mean log2 p(true label)`, 1 for certainty and 0 for a coin. The paper has
124 sets of PMLB; here those that come with scikit-learn stand for them (iris and wine: each class against the rest,
breast cancer, digits: 3 against 8), at most 240 points of each, inputs scaled to the unit cube by the training points.
A trial is a shuffle of the folds. Inputs that are constant in training are left out.

- `s = 0`: the Gaussian process prior, exact; `s = 2`: a skew prior with pseudo-points at the means of both classes,
  whose phases are chosen by the evidence.
- `LIN-ESS`, `EP`, `Laplace`, `variational`: with the hyperparameters of `s = 0`, draws as the papers make them (3,100
  of one chain, 100 dropped), the Gaussians of expectation propagation and Laplace's approximation, and GPyTorch's.

The gain of the exact posterior over EP is shown against its skewness, the mean of absolute values over test points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.transforms.input import Normalize
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import Tensor

from benchmarks._reporting import Table
from benchmarks._scores import information_score
from benchmarks.experiments._experiment import Experiment, Row, paired
from benchmarks.experiments._models import build, variational_probabilities
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp, warm_start
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.papers import fit_phases

FOLDS, MOST_POINTS = 5, 240
METHODS = ("s = 0", "s = 2", "LIN-ESS", "EP", "Laplace", "variational")
SETS = (*(f"{name} {kind}" for name in ("iris", "wine") for kind in range(3)), "breast cancer", "digits 3, 8")
LEAST = 1e-12  # of the others' probabilities, whose logarithm they do not give


def _set(name: str) -> tuple[Tensor, Tensor]:
    """Inputs and labels of a set."""
    family, _, kind = name.partition(" ")
    load = {"iris": load_iris, "wine": load_wine, "breast": load_breast_cancer, "digits": load_digits}[family]
    X, y = (torch.as_tensor(part) for part in load(return_X_y=True))
    if family == "digits":
        either = (y == 3) | (y == 8)
        return X[either].double(), y[either] == 3
    return X.double(), y == (1 if family == "breast" else int(kind))


def _probabilities(
    method: str, train_X: Tensor, labels: Tensor, test_X: Tensor, smoke: bool
) -> tuple[Tensor, Tensor | None]:
    """The probabilities of label 1, from inputs in the unit cube, and with `s = 0` the skewness of posteriors."""
    plain = SkewGP(train_X, Binary(labels))
    options = {"optimizer_kwargs": {"options": {"maxiter": 1}}, "warning_handler": lambda _: True} if smoke else {}
    fit_skew_gp(plain, **options)
    fitted = {"mean_module": plain.mean_module, "covar_module": plain.covar_module}
    if method == "variational":
        return variational_probabilities(train_X, labels, test_X, **fitted, num_steps=1 if smoke else 40), None
    model = plain
    if method == "s = 2":
        means = torch.stack([train_X[labels].mean(0), train_X[~labels].mean(0)])
        model = SkewGP(train_X, Binary(labels), skew_prior=SkewPrior(means, torch.tensor([1.0, -1.0])))
        warm_start(model, plain)
        fit_phases(model, **options)
    elif method != "s = 0":
        model = build(method, train_X, [Binary(labels)], 16 if smoke else 2048, **fitted)  # type: ignore[assignment]
    with torch.no_grad():
        probability = model.predictive(test_X).probs.flatten()
        return probability, model.posterior(test_X.unsqueeze(-2)).skewness.flatten() if method == "s = 0" else None


def _trial(number: int, case: Row, smoke: bool) -> list[Row]:
    X, labels = _set(case["set"])
    generator = torch.Generator().manual_seed(number)
    order = torch.randperm(len(X), generator=generator)[: 30 if smoke else MOST_POINTS]
    told, seen, skewness = [], [], []
    for fold in range(2 if smoke else FOLDS):
        test = torch.arange(len(order)) % (2 if smoke else FOLDS) == fold
        train, held_out = order[~test], order[test]
        varied = X[train].amax(0) > X[train].amin(0)
        scale = Normalize(int(varied.sum()))
        train_X = scale(X[train][:, varied])
        scale.eval()
        test_X = scale(X[held_out][:, varied])
        probability, skew = _probabilities(case["method"], train_X, labels[train], test_X, smoke)
        told.append(probability.clamp(LEAST, 1 - LEAST))
        seen.append(labels[held_out])
        skewness += [] if skew is None else [skew.abs()]
    score = information_score(torch.cat(told), torch.cat(seen))
    mean = f"{float(torch.cat(skewness).mean()):.4f}" if skewness else ""
    return [{"score": f"{float(score):.5f}", "skewness": mean}]


def _tables(rows: Sequence[Row]) -> list[Table]:
    table = Table(
        "information_scores",
        ("set", "method", "score", "error", "less_than_s_2", "its_error", "signed_rank_p"),
        notes=[
            "in the paper, means over its sets: .512, .542, .557, .573",
            "errors are over shuffles of the folds; that of the difference over all sets is over sets too",
            "signed_rank_p: of Wilcoxon's test of the sets' mean differences, two-sided and exact",
        ],
    )
    sets, scores = list(dict.fromkeys(row["set"] for row in rows)), _scores(rows)
    for method in METHODS:  # of one trial, the mean over all sets; trials that have all sets
        trials = set.intersection(*(set(scores[name, method]) for name in sets))
        scores["all", method] = {t: sum(scores[name, method][t] for name in sets) / len(sets) for t in trials}
    for name in [*sets, "all"]:
        parts = sets if name == "all" else [name]
        for method in METHODS:
            differences = {part: _differences(scores, part, "s = 2", method) for part in parts}
            every = [value for part in parts for value in differences[part]]
            if not scores[name, method]:
                continue
            score, error = paired([*scores[name, method].values()])
            less, its_error = paired(every) if every else (None, None)
            means = [sum(values) / len(values) for values in differences.values() if values]
            p = float(stats.wilcoxon(means).pvalue) if len(means) > 5 and any(means) else None
            cells = {"score": score, "error": error, "less_than_s_2": less, "its_error": its_error, "signed_rank_p": p}
            table.add(set=name, method=method, **cells)
    return [table, _skewness(rows)]


def _scores(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, float]]:
    """Scores by trial, by set and method."""
    found: dict[tuple[str, str], dict[str, float]] = {
        (name, method): {} for name in (row["set"] for row in rows) for method in METHODS
    }
    for row in rows:
        found[row["set"], row["method"]][row["trial"]] = float(row["score"])
    return found


def _differences(scores: dict[tuple[str, str], dict[str, float]], name: str, one: str, other: str) -> list[float]:
    """The scores of one method less those of another, in the trials that both have."""
    return [value - scores[name, other][t] for t, value in scores[name, one].items() if t in scores[name, other]]


def _skewness(rows: Sequence[Row]) -> Table:
    """The gain of the exact posterior over EP for every set, beside its skewness, and their rank correlation."""
    table = Table(
        "information_scores_skewness",
        ("set", "skewness", "gain", "error", "rank_correlation"),
        notes=["gain: the score of s = 0 less that of EP; rank_correlation: of both, over sets"],
    )
    scores = _scores(rows)
    for name in dict.fromkeys(row["set"] for row in rows):
        skewness = [float(row["skewness"]) for row in rows if row["set"] == name and row["skewness"]]
        gains = _differences(scores, name, "s = 0", "EP")
        if skewness and gains:
            gain, error = paired(gains)
            table.add(set=name, skewness=paired(skewness)[0], gain=gain, error=error)
    if len(table.rows) > 2:
        found = stats.spearmanr(*([row[key] for row in table.rows] for key in ("skewness", "gain")))
        table.add(set="all", rank_correlation=float(found.statistic))
    return table


def _plot(figure: Any, rows: Sequence[Row]) -> None:
    ax = figure.subplots()
    for row in _skewness(rows).rows:
        if row["set"] != "all":
            ax.errorbar(row["skewness"], row["gain"], row["error"], fmt=".", label=row["set"])
    ax.axhline(0, color="0.8", zorder=0)
    ax.set(xlabel="skewness of the posterior", ylabel="score more than EP's, bits")
    ax.legend(frameon=False, fontsize=8)


EXPERIMENT = Experiment(
    name="information_scores",
    figure="Classification, figures 8 to 10",
    claim="A skew prior predicts better than EP, and EP better than Laplace's approximation.",
    deviations="Eight sets of scikit-learn in place of 124 of PMLB; all but s = 2 have the hyperparameters of s = 0.",
    trials=5,
    cases=tuple({"set": name, "method": method} for name in SETS for method in METHODS),
    columns=("score", "skewness"),
    trial=_trial,
    tables=_tables,
    plot=_plot,
)

"""Information scores of classifiers (skew Gaussian processes for classification, figures 8 to 10).

Five-fold cross-validation; the score is `1 + mean log2 p(true label)`, 1 for certainty and 0 for a coin. The paper has
124 sets of PMLB; here those that come with scikit-learn stand for them (iris and wine: each class against the rest,
breast cancer, digits: 3 against 8), at most 240 points of each, inputs scaled to the unit cube by the training points.
A trial is a shuffle of the folds. Inputs that are constant in training are left out.

- `s = 0`: the Gaussian process prior, exact; `s = 2`: a skew prior with pseudo-points at the means of both classes,
  whose phases are chosen by the evidence.
- `LIN-ESS`, `EP`, `variational`: with the hyperparameters of `s = 0`, draws as the papers make them (3,100 of one
  chain, 100 dropped), the Gaussian of expectation propagation, and GPyTorch's variational one.
- `Laplace`: scikit-learn's classifier with a lengthscale for each input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.transforms.input import Normalize
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
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
METHODS = ("s = 0", "s = 2", "LIN-ESS", "EP", "variational", "Laplace")
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


def _probabilities(train_X: Tensor, labels: Tensor, test_X: Tensor, smoke: bool) -> dict[str, Tensor]:
    """The probabilities of label 1 by every method, from inputs in the unit cube."""
    plain = SkewGP(train_X, Binary(labels))
    options = {"optimizer_kwargs": {"options": {"maxiter": 1}}, "warning_handler": lambda _: True} if smoke else {}
    fit_skew_gp(plain, **options)
    means = torch.stack([train_X[labels].mean(0), train_X[~labels].mean(0)])
    skewed = SkewGP(train_X, Binary(labels), skew_prior=SkewPrior(means, torch.tensor([1.0, -1.0])))
    warm_start(skewed, plain)
    fit_phases(skewed, **options)
    kernel = ConstantKernel(1.0) * RBF([1.0] * train_X.shape[1])
    laplace = GaussianProcessClassifier(kernel, random_state=0).fit(train_X.numpy(), labels.numpy())
    fitted = {"mean_module": plain.mean_module, "covar_module": plain.covar_module}
    found = {"s = 0": plain, "s = 2": skewed}
    num_draws = 16 if smoke else 2048
    found |= {method: build(method, train_X, [Binary(labels)], num_draws, **fitted) for method in ("LIN-ESS", "EP")}
    with torch.no_grad():
        return {
            **{method: model.predictive(test_X).probs.flatten() for method, model in found.items()},
            "variational": variational_probabilities(train_X, labels, test_X, **fitted, num_steps=1 if smoke else 40),
            "Laplace": torch.as_tensor(laplace.predict_proba(test_X.numpy())[:, 1]),
        }


def _trial(number: int, case: Row, smoke: bool) -> list[Row]:
    X, labels = _set(case["set"])
    generator = torch.Generator().manual_seed(number)
    order = torch.randperm(len(X), generator=generator)[: 30 if smoke else MOST_POINTS]
    told: dict[str, list[Tensor]] = {method: [] for method in METHODS}
    seen: list[Tensor] = []
    for fold in range(2 if smoke else FOLDS):
        test = torch.arange(len(order)) % (2 if smoke else FOLDS) == fold
        train, held_out = order[~test], order[test]
        varied = X[train].amax(0) > X[train].amin(0)
        scale = Normalize(int(varied.sum()))
        train_X = scale(X[train][:, varied])
        scale.eval()
        test_X = scale(X[held_out][:, varied])
        for method, probability in _probabilities(train_X, labels[train], test_X, smoke).items():
            told[method].append(probability)
        seen.append(labels[held_out])
    rows = []
    for method in METHODS:
        probability = torch.cat(told[method]).clamp(LEAST, 1 - LEAST)
        score = information_score(probability, torch.cat(seen))
        rows.append({"method": method, "score": f"{float(score):.5f}"})
    return rows


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
    sets = list(dict.fromkeys(row["set"] for row in rows))
    scores = {
        (name, method): [float(row["score"]) for row in rows if (row["set"], row["method"]) == (name, method)]
        for name in sets
        for method in METHODS
    }
    for method in METHODS:  # of one trial, the mean over all sets
        of_trials = zip(*(scores[name, method] for name in sets), strict=False)  # those that have all sets
        scores["all", method] = [sum(scores_of_trial) / len(sets) for scores_of_trial in of_trials]
    for name in [*sets, "all"]:
        for method in METHODS:
            score, error = paired(scores[name, method])
            both = [
                pair
                for part in (sets if name == "all" else [name])
                for pair in zip(scores[part, "s = 2"], scores[part, method], strict=True)
            ]
            less, its_error = paired([a - b for a, b in both])
            p = _signed_rank(scores, sets, method) if name == "all" and method != "s = 2" else None
            cells = {"score": score, "error": error, "less_than_s_2": less, "its_error": its_error, "signed_rank_p": p}
            table.add(set=name, method=method, **cells)
    return [table]


def _signed_rank(scores: dict[tuple[str, str], list[float]], sets: Sequence[str], method: str) -> float | None:
    """The p-value of the mean differences over sets; `None` for too few sets."""
    differences = [paired(scores[name, "s = 2"])[0] - paired(scores[name, method])[0] for name in sets]
    return float(stats.wilcoxon(differences).pvalue) if len(sets) > 5 and any(differences) else None


def _plot(figure: Any, rows: Sequence[Row]) -> None:
    ax = figure.subplots()
    sets = list(dict.fromkeys(row["set"] for row in rows))
    for i, method in enumerate(METHODS):
        for j, name in enumerate(sets):
            own = [float(row["score"]) for row in rows if (row["set"], row["method"]) == (name, method)]
            label = method if j == 0 else None
            ax.plot([j + 0.15 * (i - 1.5)] * len(own), own, ".", color=f"C{i}", label=label)
    ax.set_xticks(range(len(sets)), sets, rotation=30, ha="right")
    ax.set_ylabel("information score, bits")
    ax.legend(frameon=False)


EXPERIMENT = Experiment(
    name="information_scores",
    figure="Classification, figures 8 to 10",
    claim="A skew prior predicts better than EP, and EP better than Laplace's approximation.",
    deviations=(
        "Eight sets of scikit-learn in place of 124 of PMLB; Laplace is scikit-learn's, with hyperparameters of "
        "its own; the gain is not shown against skewness."
    ),
    trials=5,
    cases=tuple({"set": name} for name in SETS),
    columns=("method", "score"),
    trial=_trial,
    tables=_tables,
    plot=_plot,
)

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

import torch
from botorch.models.transforms.input import Normalize
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import Tensor

from benchmarks._race import Group, Race, grid, mean_and_error
from benchmarks._reporting import Cell, Table
from benchmarks._runs import Row
from benchmarks._scores import information_score
from benchmarks.experiments._experiment import Experiment
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


def _run(set: str, method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    X, labels = _set(set)
    generator = torch.Generator().manual_seed(seed)
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
        probability, skew = _probabilities(method, train_X, labels[train], test_X, smoke)
        told.append(probability.clamp(LEAST, 1 - LEAST))
        seen.append(labels[held_out])
        skewness += [] if skew is None else [skew.abs()]
    score = information_score(torch.cat(told), torch.cat(seen))
    mean = float(torch.cat(skewness).mean()) if skewness else None
    return {"score": f"{float(score):.5f}", "skewness": mean}


def _columns(runs: Group) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"score": runs.mean("score"), "error": runs.error("score")}
    mine, theirs = runs.beside("score", method="s = 2")
    cells["less_than_s_2"], cells["its_error"] = mean_and_error(theirs - mine)
    mine, theirs = runs.beside("score", method="EP")
    cells["more_than_ep"], cells["error_of_this"] = mean_and_error(mine - theirs)
    return {**cells, "skewness": float(runs.values("skewness").nanmean())}


def _tests(rows: Sequence[Row]) -> list[Table]:
    """Tests of the sets' means."""
    table = Table(
        "information_scores_tests",
        ("method", "signed_rank_p", "rank_correlation"),
        notes=[
            "signed_rank_p: of Wilcoxon's test of the sets' mean differences from s = 2, two-sided and exact",
            "rank_correlation: over sets, of the skewness of the posterior and the gain of s = 0 over EP",
        ],
    )
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        for measure in ("score", "skewness"):
            found.setdefault((measure, row["set"], row["method"]), []).append(float(row[measure] or "nan"))
    means = {key: sum(values) / len(values) for key, values in found.items()}
    for method in METHODS:
        both = [name for name in SETS if all(("score", name, of) in means for of in ("s = 2", method))]
        differences = [means["score", name, "s = 2"] - means["score", name, method] for name in both]
        if len(differences) > 5 and any(differences):
            table.add(method=method, signed_rank_p=float(stats.wilcoxon(differences).pvalue))
    both = [name for name in SETS if ("score", name, "EP") in means and ("score", name, "s = 0") in means]
    if len(both) > 2:
        gains = [means["score", name, "s = 0"] - means["score", name, "EP"] for name in both]
        correlation = stats.spearmanr([means["skewness", name, "s = 0"] for name in both], gains).statistic
        table.add(method="s = 0 less EP", rank_correlation=float(correlation))
    return [table]


EXPERIMENT = Experiment(
    race=Race(
        "information_scores", grid(set=SETS), grid(method=METHODS), range(5), _run, ("score", "skewness"), _columns,
        ["in the paper, means over its sets: .512, .542, .557, .573",
         "errors are over shuffles of the folds; over all sets, over sets and shuffles",
         f"probabilities are at least {LEAST:g} and at most one less that"],
    ),
    pooled="set",
    more=_tests,
)  # fmt: skip

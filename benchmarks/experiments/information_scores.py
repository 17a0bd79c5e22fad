"""Information scores of classifiers by five-fold cross-validation (skew Gaussian processes for classification, figures
8 to 10), and a pseudo-point that is learned with the hyperparameters (figures 6, 7).
"""

from __future__ import annotations

import torch
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import Tensor

from benchmarks._race import Cell, Group, Race, grid, mean_and_error
from benchmarks.experiments._models import (
    build,
    fit_options,
    information_score,
    unit_scaled,
    variational_probabilities,
)  # fmt: skip
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp, warm_start
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.papers import fit_phases

FOLDS, MOST_POINTS = 5, 240
METHODS = (
    "s = 0",  # the exact posterior of a Gaussian process
    "s = 2",  # of a skew prior with pseudo-points at the means of both classes, phases chosen by the evidence
    *("LIN-ESS", "EP", "Laplace", "variational"),  # with the hyperparameters of s = 0
)
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
    options = fit_options(smoke)
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
        train_X, test_X = unit_scaled(X[train], X[held_out])
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


def _tests(runs: Group) -> list[dict[str, Cell]]:
    """Tests of the means of all sets: by Wilcoxon, and of s = 0 also of the skewness and the gain over EP."""
    if runs.names["set"] != "all":
        return []
    found: list[dict[str, Cell]] = []
    differences = _of_sets(runs, "score", "s = 2")
    if len(differences) > 5 and any(differences):
        found.append({"signed_rank_p": float(stats.wilcoxon(differences).pvalue)})
    gains = _of_sets(runs, "score", "EP")
    if runs.names["method"] == "s = 0" and len(gains) > 2:
        correlation = stats.spearmanr(_of_sets(runs, "skewness"), gains).statistic
        found.append({"method": "s = 0 less EP", "rank_correlation": float(correlation)})
    return found


def _of_sets(runs: Group, measure: str, rival: str = "") -> list[float]:
    """The mean of each set, perhaps less that of another method, of sets that both have."""
    found: dict[str, list[float]] = {}
    for row, other in runs.pairs(method=rival) if rival else ((row, {measure: "0"}) for row in runs.rows):
        difference = float(row[measure] or "nan") - float(other[measure] or "nan")
        found.setdefault(row["seed"].rpartition(" ")[0], []).append(difference)
    return [sum(values) / len(values) for values in found.values()]


# Pseudo-points

PSEUDO_POINTS = ("none", "at the mean", "learned")
NUM_TRAIN, NUM_TEST, SLOPE = 30, 500, 6.0
COLUMNS = ("evidence", "score", "skewness")


def _data(num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    X = torch.rand(num, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(num, generator=generator, dtype=torch.float64)
    return X, SLOPE * (0.6 - X.squeeze(-1)) + noise > 0


def _of_pseudo_points(method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    generator = torch.Generator().manual_seed(seed)
    (X, labels), (test_X, test_labels) = _data(NUM_TRAIN, generator), _data(NUM_TEST, generator)
    options = fit_options(smoke)
    prior = None
    if method != "none":
        is_learned = method == "learned"
        prior = SkewPrior(X[labels].mean(0, keepdim=True), torch.ones(1), learn_pseudo_points=is_learned)
    model = SkewGP(X, Binary(labels), skew_prior=prior)
    (fit_skew_gp if prior is None else fit_phases)(model, **options)
    with torch.no_grad():
        score = information_score(model.predictive(test_X).probs.flatten(), test_labels)
        found = (model.log_marginal_likelihood().value, score, model.posterior(test_X).skewness.abs().max())
    return {name: f"{float(value):.5f}" for name, value in zip(COLUMNS, found, strict=True)}


def _of_columns(runs: Group) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"trials": len(runs), **{name: runs.mean(name) for name in COLUMNS}}
    for name, error in (("evidence", "its_error"), ("score", "error")):
        mine, theirs = runs.beside(name, method="none")
        cells[f"more_{name}"], cells[error] = mean_and_error(mine - theirs)
    return cells


RACES = (
    Race(
        "experiments/information_scores", grid(set=SETS), grid(method=METHODS), range(5), _run, ("score", "skewness"),
        _columns,
        ["in the paper, means over its sets: .512, .542, .557, .573",
         "errors are over shuffles of the folds; over all sets, over sets and shuffles",
         f"probabilities are at least {LEAST:g} and at most one less that",
         "signed_rank_p: of Wilcoxon's test of the sets' mean differences from s = 2, two-sided and exact; "
         "rank_correlation: over sets, of the skewness of the posterior and the gain of s = 0 over EP"],
        {"experiments/information_scores_tests": _tests}, pooled="set", quick={"smoke": True},
    ),
    Race(
        "experiments/pseudo_points", [{}], grid(method=PSEUDO_POINTS), range(10), _of_pseudo_points, COLUMNS,
        _of_columns, ["more: than without a pseudo-point, paired; skewness: the largest of the posterior, on average"],
        quick={"smoke": True},
    ),
)  # fmt: skip

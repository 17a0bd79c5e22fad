"""Classifiers (skew Gaussian processes for classification): information scores by five-fold cross-validation (figures 8
to 10), a pseudo-point that is learned (figures 6, 7), and kernels for images (table 1).
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import Tensor

from benchmarks._race import Cell, Group, Race, Row, grid
from benchmarks.experiments._models import build, fit_options, information_score, unit_scaled, variational_probabilities
from benchmarks.experiments.optimisation import Fitter
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.fitting import fit_skew_gp, warm_start
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.papers import ArcsineKernel, fit_phases
from botorch_skewgp.posteriors import ProbabilityPosterior

FOLDS, MOST_POINTS = 5, 240
METHODS = (
    "s = 0",  # the exact posterior of a Gaussian process
    "s = 2",  # of a skew prior with pseudo-points at the means of both classes, phases chosen by the evidence
    *("LIN-ESS", "EP", "Laplace", "variational"),  # with the hyperparameters of s = 0
)
LOADERS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
SETS = (*(f"{name} {kind}" for name in ("iris", "wine") for kind in range(3)), "breast cancer", "digits 3, 8")
LEAST = 1e-12  # of the others' probabilities, whose logarithm they do not give


def _loaded(name: str) -> tuple[Tensor, Tensor]:
    X, y = LOADERS[name](return_X_y=True)
    return torch.as_tensor(X).double(), torch.as_tensor(y)


def _set(name: str) -> tuple[Tensor, Tensor]:
    family, _, kind = (name, "", "1") if name in LOADERS else name.partition(" ")
    X, y = _loaded(family)
    if family == "digits":
        either = (y == 3) | (y == 8)
        return X[either], y[either] == 3
    return X, y == int(kind)


def _fitted(X: Tensor, labels: Tensor, smoke: bool, plain: SkewGP | None = None, **modules: Any) -> SkewGP:
    """A fitted model; from one without a skew prior, that with pseudo-points at the means of both classes."""
    options = fit_options(1) if smoke else {}
    if plain is None:
        model = SkewGP(X, Binary(labels), **modules)
        fit_skew_gp(model, **options)
        return model
    means = torch.stack([X[labels].mean(0), X[~labels].mean(0)])
    model = SkewGP(X, Binary(labels), skew_prior=SkewPrior(means, torch.tensor([1.0, -1.0])), **modules)
    warm_start(model, plain)
    fit_phases(model, **options)
    return model


def _probabilities(
    method: str, train_X: Tensor, labels: Tensor, test_X: Tensor, smoke: bool
) -> tuple[Tensor, Tensor | None]:
    """The probabilities of label 1, from inputs in the unit cube, and with `s = 0` the skewness of posteriors."""
    plain = _fitted(train_X, labels, smoke)
    fitted = {"mean_module": plain.mean_module, "covar_module": plain.covar_module}
    if method == "variational":
        return variational_probabilities(train_X, labels, test_X, **fitted, num_steps=1 if smoke else 40), None
    model: Any = plain
    if method == "s = 2":
        model = _fitted(train_X, labels, smoke, plain)
    elif method != "s = 0":
        model = build(method, train_X, [Binary(labels)], 16 if smoke else 2048, **fitted)
    with torch.no_grad():
        probability = model.predictive(test_X).probs.flatten()
        return probability, model.posterior(test_X.unsqueeze(-2)).skewness.flatten() if method == "s = 0" else None


def _run(set: str, method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    X, labels = _set(set)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(X), generator=generator)[: 30 if smoke else MOST_POINTS]
    told, seen, skewness, folds = [], [], [], 2 if smoke else FOLDS
    for fold in range(folds):
        test = torch.arange(len(order)) % folds == fold
        train, held_out = order[~test], order[test]
        train_X, test_X = unit_scaled(X[train], X[held_out])
        probability, skew = _probabilities(method, train_X, labels[train], test_X, smoke)
        told.append(probability.clamp(LEAST, 1 - LEAST))
        seen.append(labels[held_out])
        skewness += [] if skew is None else [skew.abs()]
    score = information_score(torch.cat(told), torch.cat(seen))
    of_posteriors = torch.cat(skewness) if skewness else torch.full((1,), torch.nan)
    mean, largest = float(of_posteriors.mean()), float(of_posteriors.max())
    return {"score": f"{float(score):.5f}", "skewness": mean, "largest_skewness": largest}


def _columns(runs: Group) -> dict[str, Cell]:
    (more, its_error), (more_than_ep, error_of_this) = (runs.less("score", method=rival) for rival in ("s = 2", "EP"))
    return {
        "score": runs.mean("score"), "error": runs.error("score"), "less_than_s_2": -more, "its_error": its_error,
        "more_than_ep": more_than_ep, "error_of_this": error_of_this,
        "skewness": float(runs.values("skewness").nanmean()),
    }  # fmt: skip


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
    options = fit_options(1) if smoke else {}
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
        cells[f"more_{name}"], cells[error] = runs.less(name, method="none")
    return cells


# Kernels: digits by the arcsine kernel and a skew prior

CLASS, NUM_DIGITS, NUM_OF_ALL = 8, 300, 100
KERNELS, OF_DIGITS = ("RBF", "arcsine"), ("s = 0", "s = 2", "EP", "EP, s = 2")
MEASURED = ("accuracy", "score", "deviation_right", "deviation_wrong", "ranked")


def _kernel(name: str) -> Kernel:
    kernel = ScaleKernel({"RBF": RBFKernel, "arcsine": ArcsineKernel}[name](), LogNormalPrior(math.log(10.0), 1.5))
    kernel.outputscale = 10.0
    if name == "RBF":
        kernel.base_kernel.lengthscale = 2.0
    return kernel


def _models(X: Tensor, labels: Tensor, kernel: str, smoke: bool) -> tuple[dict[str, SkewGP], dict[str, float]]:
    began = time.process_time()
    plain = _fitted(X, labels, smoke, covar_module=_kernel(kernel))
    fitted = time.process_time()
    found = {"s = 0": plain, "s = 2": _fitted(X, labels, smoke, plain, covar_module=_kernel(kernel))}
    seconds = {"s = 0": fitted - began, "s = 2": time.process_time() - began}
    for exact, name in (("s = 0", "EP"), ("s = 2", "EP, s = 2")):
        modules = {part: getattr(found[exact], part) for part in ("covar_module", "mean_module", "skew_prior")}
        found[name] = build("EP", X, [Binary(labels)], **modules)  # type: ignore[assignment]
        seconds[name] = seconds[exact]
    return found, seconds


def _of_digits(classes: str, kernel: str, method: str, seed: int, smoke: bool = False) -> list[dict[str, Cell]]:
    X, y = _loaded("digits")
    X = X / 16
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))
    if classes == "all":
        size, kinds = NUM_OF_ALL, range(2) if smoke else range(10)
    else:
        size, kinds = 30 if smoke else NUM_DIGITS, range(CLASS, CLASS + 1)
    train, test = order[:size], order[NUM_DIGITS:]
    found: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in OF_DIGITS}
    total = dict.fromkeys(OF_DIGITS, 0.0)
    for kind in kinds:
        models, seconds = _models(X[train], y[train] == kind, kernel, smoke)
        for name, model in models.items():
            began = time.process_time()
            found[name].append(_predictions(model, X[test]))
            total[name] += seconds[name] + time.process_time() - began
    rows: list[dict[str, Cell]] = []
    for name, predictions in found.items():
        if classes == "all":
            accuracy = (torch.stack([mean for mean, _ in predictions]).argmax(0) == y[test]).double().mean()
            measures: dict[str, Cell] = {**dict.fromkeys(MEASURED), "accuracy": f"{float(accuracy):.5f}"}
        else:
            measures = {**_measures(*predictions[0], y[test] == CLASS)}
        rows.append({"method": name, **measures, "seconds": total[name]})
    return rows


@torch.no_grad()
def _predictions(model: Any, X: Tensor) -> tuple[Tensor, Tensor]:
    posteriors = (model.latent_posterior(x.unsqueeze(-2)) for x in X.split(300))
    parts = [ProbabilityPosterior(posterior, model.likelihood.noise) for posterior in posteriors]
    return torch.cat([p.mean.flatten() for p in parts]), torch.cat([p.variance.flatten().sqrt() for p in parts])


def _measures(probability: Tensor, deviation: Tensor, labels: Tensor) -> Row:
    right = (probability > 0.5) == labels
    ranked = (deviation[~right].unsqueeze(-1) > deviation[right]).double().mean()
    score = information_score(probability, labels)
    values = (right.double().mean(), score, deviation[right].mean(), deviation[~right].mean(), ranked)
    return {name: f"{float(value):.5f}" for name, value in zip(MEASURED, values, strict=True)}


def _columns_of_digits(runs: Group) -> dict[str, Cell]:
    more, its_error = runs.less("accuracy", method="EP")
    return {
        "trials": len(runs), "accuracy": runs.mean("accuracy"), "error": runs.error("accuracy"), "more_than_ep": more,
        "its_error": its_error, **{name: runs.mean(name) for name in (*MEASURED[1:], "seconds")},
        **{f"error_of_{name}": runs.error(name) for name in (*MEASURED[2:], "seconds")},
    }  # fmt: skip


# Active learning by BALD from a pool (unified framework, figures 9 and 10, table 2): ten labels, then ninety

POOLS = ("iris", "wine", "breast cancer", "digits", "waveform")
LEARNERS = ("SkewGP", "EP", "Laplace", "random")
FIRST_LABELS, STEPS, EVERY, MOST_OF_POOL, NUM_WAVES = 10, 90, 5, 250, 500


def waveforms(num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Breiman's waveforms (Classification and Regression Trees, 1984): 21 inputs, three classes."""
    i = torch.arange(1.0, 22.0, dtype=torch.float64)
    bases = torch.stack([(6 - (i - centre).abs()).clamp(min=0) for centre in (11, 15, 7)])
    kind = torch.randint(3, (num,), generator=generator)
    first, second = torch.tensor([0, 0, 1])[kind], torch.tensor([1, 2, 2])[kind]
    share = torch.rand(num, 1, generator=generator, dtype=i.dtype)
    noise = torch.randn(num, 21, generator=generator, dtype=i.dtype)
    return share * bases[first] + (1 - share) * bases[second] + noise, kind


def _pool(name: str, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points and labels of the pool, and of what measures accuracy."""
    generator = torch.Generator().manual_seed(number)
    X, y = waveforms(NUM_WAVES, generator) if name == "waveform" else _loaded(name)
    order = torch.randperm(len(X), generator=generator)
    size = min(len(X) // 2, MOST_OF_POOL)
    pool, rest = order[:size], order[size : 2 * size]
    pool_X, rest_X = unit_scaled(X[pool], X[rest])
    return pool_X, y[pool] == 0, rest_X, y[rest] == 0


def _learn(set: str, method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    pool, labels, test_X, test_labels = _pool(set, seed)
    generator = torch.Generator().manual_seed(seed)
    asked = torch.randperm(len(pool), generator=generator).tolist()
    first_steps, steps = (4, 1) if smoke else (FIRST_LABELS, STEPS)
    start = [*asked[:first_steps]]
    if len(labels[start].unique()) == 1:  # one of the other class, as no method can do without
        start[-1] = next(i for i in asked if labels[i] != labels[start[0]])
    others = [i for i in asked if i not in start]
    asked, trace, fitter = start, [], Fitter("SkewGP" if method == "random" else method, smoke)
    for step in range(steps + 1):
        model = fitter(pool[asked], [Binary(labels[asked])])
        if step % EVERY == 0 or smoke:
            with torch.no_grad():
                said = model.predictive(test_X).probs.flatten() > 0.5
            trace.append(float((said == test_labels).double().mean()))
        if step == steps:
            break
        if method == "random":
            asked.append(others[step % len(others)])
            continue
        acquisition = SkewBayesianActiveLearningByDisagreement(model)
        with torch.no_grad():
            asked.append(int(torch.cat([acquisition(X.unsqueeze(-2)) for X in pool.split(50)]).argmax()))
    chosen = asked[first_steps:]
    shown = " ".join(f"{accuracy:.4f}" for accuracy in trace)
    return {"accuracy": shown, "diversity": len({*chosen}) / len(chosen)}


def _derived(row: Row) -> dict[str, Cell]:
    trace = [float(value) for value in row["accuracy"].split()]
    return {"last": trace[-1], "mean": sum(trace) / len(trace)}


def _of_learning(runs: Group) -> dict[str, Cell]:
    more, its_error = runs.less("mean", method="SkewGP")
    return {
        "trials": len(runs), "accuracy": runs.mean("last"), "error": runs.error("last"),
        "mean_accuracy": runs.mean("mean"), "error_of_mean": runs.error("mean"), "less_than_skewgp": -more,
        "its_error": its_error, "diversity": runs.mean("diversity"), "error_of_diversity": runs.error("diversity"),
    }  # fmt: skip


RACES = (
    Race(
        "experiments/information_scores", grid(set=SETS), grid(method=METHODS), range(5), _run,
        ("score", "skewness", "largest_skewness"),
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
    Race(
        "experiments/kernels", grid(classes=("eights", "all"), kernel=KERNELS), grid(method=OF_DIGITS[:1]), range(4),
        _of_digits, (*MEASURED, "seconds"), _columns_of_digits,
        ["in the paper, accuracies of RBF .785 (EP) and .821 (s = 2), of arcsine .823 and .844",
         "more_than_ep: accuracy less that of EP with the same kernel, paired; seconds: of fits and predictions"],
        quick={"smoke": True},
    ),
    Race(
        "experiments/active_learning", grid(set=POOLS), grid(method=LEARNERS), range(10), _learn,
        ("accuracy", "diversity"), _of_learning,
        ["accuracy: after the last label; mean_accuracy: over the curve; less_than_skewgp: SkewGP's mean over the "
         "curve less the method's, paired; of all sets, errors are over runs"],
        derived=_derived, pooled="set", quick={"smoke": True},
    ),
)  # fmt: skip

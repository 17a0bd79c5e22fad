"""Held-out log predictive densities: labels beside other packages, duels and numbers beside other priors, bands."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor

from benchmarks._functions import FUNCTIONS as TEST_FUNCTIONS
from benchmarks._functions import Utility, find_utility
from benchmarks._observations import fitted, noisy, normal_draw, squared_exponential, winner_first
from benchmarks._race import Cell, Group, Names, Race, grid
from benchmarks.steps import pairwise_gp
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp, fit_skew_gp
from botorch_skewgp.models import default_covar_module
from botorch_skewgp.observations import Binary, Numeric, Observation, Ordinal, Preference


def _columns(runs: Group, ours: str = "default") -> dict[str, Cell]:
    """Mean log densities, and our lead in pairs."""
    less, error = runs.less("log_density", method=ours)
    mean = runs.mean("log_density")
    return {"data_sets": len(runs), "log_density": mean, "difference": -less, "standard_error": error}


# Labels

TASKS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {  # classes of the parts; the first against others
    "drawn": (None, [()]),
    "breast cancer": (load_breast_cancer, [(1, 0)]),
    "wine": (load_wine, [(0, 1, 2), (1, 0, 2), (2, 0, 1)]),
    "digits": (load_digits, [(3, 5), (4, 9), (1, 7)]),
}
SIZE = 100  # labels to learn from
Split = tuple[Tensor, Tensor, Tensor, Tensor]  # train_X, labels, test_X, its labels


def _split(task: str, seed: int) -> Split:
    """A random split; wine and digits have three parts in turn."""
    load, parts = TASKS[task]
    generator = torch.Generator().manual_seed(seed // len(parts))
    if load is None:
        X, y = _drawn(generator)
        order = torch.arange(len(X))
    for part in parts[: seed % len(parts) + 1] if load else ():
        inputs, classes = (torch.tensor(each) for each in load(return_X_y=True))
        chosen = torch.isin(classes, torch.tensor(part))
        X, y = inputs[chosen].double(), (classes[chosen] == part[0]).long()
        order = torch.randperm(len(X), generator=generator)
    train, test = order[:SIZE], order[SIZE:]
    low, high = X[train].amin(0), X[train].amax(0)
    X = (X - low) / torch.where(high > low, high - low, torch.ones_like(low))
    return X[train], y[train], X[test], y[test]


def _drawn(generator: torch.Generator, d: int = 3, num_test: int = 400) -> tuple[Tensor, Tensor]:
    """Standard normal inputs; the variance uniform on (1, 10), lengthscales on (0.1, 1.1), unit noise."""
    kind: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    X = torch.randn(SIZE + num_test, d, **kind)
    variance, lengthscale = 1 + 9 * torch.rand(1, **kind), 0.1 + torch.rand(d, **kind)
    latent = normal_draw(variance * squared_exponential(X, lengthscale), generator, 1e-6)
    return X, (noisy(latent, 1.0, generator) > 0).long()


def _skewgp(train_X: Tensor, labels: Tensor, test_X: Tensor) -> Tensor:
    model = SkewGP(train_X, Binary(labels))
    fit_skew_gp(model)
    with torch.no_grad():
        return model.predictive(test_X).probs.squeeze(-1)


def _laplace(train_X: Tensor, labels: Tensor, test_X: Tensor, ard: bool) -> Tensor:
    scale = np.ones(train_X.shape[-1]) if ard else 1.0
    classifier = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(scale), random_state=0)
    classifier.fit(train_X.numpy(), labels.numpy())
    return torch.from_numpy(classifier.predict_proba(test_X.numpy())[:, 1])


def _gpy(train_X: Tensor, labels: Tensor, test_X: Tensor, ard: bool) -> Tensor:
    import GPy

    kernel = GPy.kern.RBF(train_X.shape[-1], ARD=ard)
    classifier = GPy.models.GPClassification(train_X.numpy(), labels.numpy()[:, None], kernel=kernel)
    classifier.optimize(max_iters=200)
    return torch.from_numpy(classifier.predict(test_X.numpy())[0][:, 0])


CLASSIFIERS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {  # -> probabilities of label 1
    "skewgp": _skewgp,
    "scikit-learn": partial(_laplace, ard=False),
    "scikit-learn ARD": partial(_laplace, ard=True),
    "gpy": partial(_gpy, ard=False),
    "gpy ARD": partial(_gpy, ard=True),
}


def _of_labels(task: str, method: str, seed: int) -> dict[str, Cell] | list[Names]:
    if method.startswith("gpy") and importlib.util.find_spec("GPy") is None:
        return []
    train_X, train_y, test_X, test_y = _split(task, seed)
    return {"log_density": _log_density(CLASSIFIERS[method](train_X, train_y, test_X), test_y == 1)}


def _log_density(p: Tensor, truth: Tensor, least: float = -math.inf) -> float:
    """The mean log probability of what was true, infinite if sure and wrong, but for the least."""
    return float(torch.where(truth, p, 1 - p).log().clamp(min=least).mean())


# Duels

NOISES = (0.01, 0.1, 0.3)  # standard deviations of the function's, on each value
HELD_OUT = 200


def _with_kernel(points: Tensor, pairs: Tensor, test: Tensor, kernel: Callable[[int, Preference], Any]) -> Tensor:
    duels = Preference(pairs)
    model = fitted(SkewGP(points, duels, covar_module=kernel(points.shape[-1], duels)))
    return model.predictive(test).probs.flatten()


def pairwise_wins(points: Tensor, pairs: Tensor, test: Tensor) -> Tensor:
    """Probabilities that the first points of `m x 2 x d` pairs win, by BoTorch's model of duels, fitted."""
    model = pairwise_gp(points, pairs)
    joint = model.eval().posterior(test)
    contrast = test.new_tensor([[1.0, -1.0]])
    mean = (contrast @ joint.mean).flatten()
    variance = (contrast @ joint.distribution.covariance_matrix @ contrast.mT).flatten()
    return torch.special.ndtr(mean / (2 + variance).sqrt()).detach()  # its probit has unit noise on each item


def _former(dim: int, duels: Preference) -> Kernel:
    """The default kernel before its output scale trusted answers."""
    prior = LogNormalPrior(math.log(10.0), 1.5)
    base = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
    kernel = ScaleKernel(base, prior, Interval(1e-4, 1e4, transform=None))
    kernel.outputscale = prior.mode
    return kernel


MODELS_OF_DUELS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {  # -> probabilities of the first's win
    "default": partial(_with_kernel, kernel=lambda dim, duels: default_covar_module(dim, [duels])),
    "noisy": partial(_with_kernel, kernel=lambda dim, duels: default_covar_module(dim, [duels], judge="noisy")),
    "former default": partial(_with_kernel, kernel=_former),
    "PairwiseGP": pairwise_wins,
}


def _duels(function: Utility, noise: float, num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pairs of new points, `num x 2 x d`, and which of the two won."""
    pairs = torch.rand(num, 2, function.dim, generator=generator, dtype=torch.float64)
    return pairs, noisy(function.evaluate(pairs), (noise * function.deviation()) ** 2, generator).argmax(-1)


def _of_duels(noise: float, duels: int, method: str, seed: int) -> dict[str, Cell]:
    """The mean log density of one data set's held-out duels; the seed counts the data sets of all functions in turn."""
    data_set, number = divmod(seed, len(TEST_FUNCTIONS))
    name, generator = TEST_FUNCTIONS[number], torch.Generator().manual_seed(1000 + data_set)
    known, winners = _duels(find_utility(name), noise, duels, generator)
    test, test_winners = _duels(find_utility(name), noise, HELD_OUT, generator)
    pairs = torch.stack([winners, 1 - winners], dim=-1) + 2 * torch.arange(duels).unsqueeze(-1)
    p = MODELS_OF_DUELS[method](known.reshape(2 * duels, -1), pairs, test).detach()
    return {"function": name, "log_density": _log_density(p, test_winners == 0)}


# Numbers

SIZES = ((6, 0), (12, 0), (24, 0), (40, 0), (8, 16))  # numbers, duels
LEAST, IDLE = -20.0, 4  # nats, and inputs that do nothing


def _friedman(X: Tensor) -> Tensor:
    """Friedman's first function (Multivariate adaptive regression splines, 1991), of the first five inputs."""
    waves = 10 * torch.sin(math.pi * X[..., 0] * X[..., 1])
    return waves + 20 * (X[..., 2] - 0.5).square() + 10 * X[..., 3] + 5 * X[..., 4]


def _linear(X: Tensor) -> Tensor:
    return X @ X.new_tensor([1.0, -1.0, 0.5, 0.0, 0.2])


def _with_idle_inputs(name: str) -> Utility:
    utility = find_utility(name)
    return Utility(f"{name}, idle", utility.dim + IDLE, utility.best, lambda X: utility.evaluate(X[..., : utility.dim]))


FUNCTIONS: dict[str, Callable[[], Utility]] = {
    **{name: partial(find_utility, name) for name in (*TEST_FUNCTIONS, "branin")},
    "branin, idle": partial(_with_idle_inputs, "branin"),
    "hartmann3, idle": partial(_with_idle_inputs, "hartmann3"),
    "friedman": partial(Utility, "friedman", 8, 30.0, _friedman),
    "linear": partial(Utility, "linear", 5, 1.7, _linear),
}


class Data(NamedTuple):
    """Points, what was seen of them, held-out pairs of points, and their values in truth and as seen."""

    points: Tensor
    observations: list[Observation]
    test: Tensor
    truth: Tensor
    seen: Tensor


def _data(utility: Utility, numbers: int, duels: int, noise: float, seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    see = partial(noisy, variance=(noise * utility.deviation()) ** 2, generator=generator)
    points = torch.rand(max(numbers, 2 * duels), utility.dim, generator=generator, dtype=torch.float64)
    values = utility.evaluate(points)
    seen = see(values)
    observations: list[Observation] = [Numeric((values if duels else seen)[:numbers], index=torch.arange(numbers))]
    if duels:
        pairs = torch.arange(2 * duels).reshape(duels, 2)
        observations.append(Preference(winner_first(pairs, seen[pairs[:, 0]] > seen[pairs[:, 1]])))
    test = torch.rand(HELD_OUT, 2, utility.dim, generator=generator, dtype=torch.float64)
    truth = utility.evaluate(test)
    return Data(points, observations, test, truth, see(truth))


def _densities(method: str, data: Data, deviation: float) -> tuple[float, float | None]:
    numbers = data.observations[0]
    assert isinstance(numbers, Numeric)
    with_duels = len(data.observations) > 1
    X = data.test[:, :1]
    if method == "SingleTaskGP":
        reference = SingleTaskGP(data.points, numbers.values.unsqueeze(-1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(reference.likelihood, reference))
        with torch.no_grad():
            posterior = reference.posterior(X, observation_noise=True)
        return _normal_density(posterior.mean, posterior.variance, data.seen[:, 0], deviation), None
    seen = data.observations if method == "default" else []
    model = SkewGP(
        data.points, data.observations, covar_module=default_covar_module(data.points.shape[-1], seen),
        outcome_transform=Standardize(m=1),
    )  # fmt: skip
    fit_skew_gp(model)
    with torch.no_grad():
        ours = model.posterior(X, observation_noise=not with_duels)
        target = data.truth[:, 0] if with_duels else data.seen[:, 0]
        density = _normal_density(ours.mean, ours.variance, target, deviation)
        if not with_duels:
            return density, None
        judge = model.likelihood.for_kind(Preference)
        p = judge(model.posterior(data.test), scale=model.outcome_scale).probs.flatten()
        return density, _log_density(p, data.seen[:, 0] > data.seen[:, 1], LEAST)


def _normal_density(mean: Tensor, variance: Tensor, target: Tensor, deviation: float) -> float:
    distribution = torch.distributions.Normal(mean.flatten() / deviation, variance.flatten().sqrt() / deviation)
    return float(distribution.log_prob(target / deviation).clamp(min=LEAST).mean())


def _of_numbers(numbers: int, duels: int, noise: float, told: str, method: str, seed: int) -> list[Names]:
    """The mean log densities of one data set; the seed counts the data sets of all functions in turn."""
    if duels and method == "SingleTaskGP":
        return []
    data_set, number = divmod(seed, len(FUNCTIONS))
    utility = [*FUNCTIONS.values()][number]()
    data = _data(utility, numbers, duels, noise, 1000 + data_set)
    densities = zip((told, "duels"), _densities(method, data, utility.deviation()), strict=True)
    return [{"told": kind, "function": utility.name, "log_density": density}
            for kind, density in densities if density is not None]  # fmt: skip


# Bands

TOLD = {"25 numbers": (25, 0, 0), "30 grades": (0, 30, 0), "25 numbers, 20 grades": (25, 20, 0),
        "10 numbers, 20 duels": (10, 0, 20)}  # fmt: skip
TRUTHS, PLACES, NUM_MEMBERS, INSIDE = ("drawn", "curves", "test functions"), 60, 8, (0.05, 0.95)
OF_NUMBERS_SD, OF_GRADES_SD, OF_DUELS_SD = (0.05, 0.2, 0.4), (0.1, 0.3, 0.7), 0.5  # in units of the function's
CUTS = torch.tensor([-1.0, -0.3, 0.3, 1.0], dtype=torch.float64)


def _truth(kind: str, num: int, seed: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points, and values with a deviation of about one: of a process, of simple curves, or of test functions."""
    uniform = partial(torch.rand, generator=generator, dtype=torch.float64)
    if kind == "drawn":
        X, lengthscale = uniform(num, 2), 0.4 * (0.5 * torch.randn(2, generator=generator, dtype=torch.float64)).exp()
        return X, normal_draw(squared_exponential(X, lengthscale), generator, 1e-8)
    if kind == "test functions":
        utility = find_utility(TEST_FUNCTIONS[seed % len(TEST_FUNCTIONS)])
        X, seen = uniform(num, utility.dim), utility.values()
        return X, (utility.evaluate(X) - seen.mean()) / seen.std()
    X, (a, b) = uniform(num, 3), uniform(2)
    x, y = X[:, 0], X[:, 1]
    waves = torch.sin(6 * x + 3 * a) + 0.7 * torch.cos(4 * y + b)
    bowl, step = -4 * ((x - a).square() + (y - b).square()), torch.tanh(6 * (x + y - 0.6 - 0.8 * a))
    f = (2 * x + y, waves, bowl, step)[seed % 4]
    return X, (f - f.mean()) / f.std()


def _of_bands(told: str, truth: str, seed: int, **_: Cell) -> list[Names]:
    """The share of 90 % bands that hold the function, or its distance from a cut-point if there are grades alone, and
    log densities; fitted and averaged, in pairs.
    """
    numbers, grades, duels = TOLD[told]
    generator, num = torch.Generator().manual_seed(1000 + seed), numbers + grades + 2 * duels
    X, f = _truth(truth, num + 2 * PLACES, seed, generator)
    blur, sd = OF_GRADES_SD[seed % 3], OF_NUMBERS_SD[seed % 3]
    given: list[Observation] = []
    if numbers:
        given.append(Numeric(noisy(f[:numbers], sd**2, generator), index=torch.arange(numbers)))
    if grades:
        seen = torch.bucketize(noisy(f[numbers : numbers + grades], blur**2, generator), CUTS)
        given.append(Ordinal(seen, len(CUTS) + 1, index=torch.arange(numbers, numbers + grades)))
    if duels:
        pairs = torch.arange(numbers, num).view(-1, 2)
        first = noisy(f[pairs[:, 0]] - f[pairs[:, 1]], 2 * OF_DUELS_SD**2, generator) > 0
        given.append(Preference(winner_first(pairs, first)))
    scale = {"outcome_transform": Standardize(m=1)} if numbers else {}
    began, test, truth_at = time.process_time(), X[num:], f[num:]
    mll = fit_skew_gp(SkewGP(X[:num], given, approximation="ep", **scale))
    seconds = [time.process_time() - began]
    ensemble = fit_fully_bayesian_skew_gp(mll, NUM_MEMBERS)
    seconds.append(time.process_time() - began)
    found: list[Names] = []
    for method, models, cost in zip(AVERAGED, ([mll.model], ensemble.members), seconds, strict=True):
        below, density, answers = [], [], []
        for model in models:
            posterior = model.posterior(test)
            mean, sd_at = posterior.mean.flatten(), posterior.variance.flatten().sqrt()
            target = truth_at
            if not numbers:
                mean, target = mean - model.likelihood.cutpoints[2], (truth_at - CUTS[2]) / blur
            normal = torch.distributions.Normal(mean, sd_at)
            below.append(normal.cdf(target))
            density.append(normal.log_prob(target))
            if grades or duels:
                kind, at = (Ordinal, test) if grades else (Preference, test.view(PLACES, 2, -1))
                chances = model.predictive(at)
                answers.append((chances[kind] if numbers else chances).probs.reshape(len(at), -1))
        inside = torch.stack(below).mean(0)
        row: dict[str, Cell] = {
            "hyperparameters": method, "held": float(((inside > INSIDE[0]) & (inside < INSIDE[1])).double().mean()),
            "log_density": float((torch.stack(density).logsumexp(0) - math.log(len(models))).mean()),
            "answers": None, "seconds": cost,
        }  # fmt: skip
        if answers:
            p = torch.stack(answers).mean(0).clamp(1e-9, 1 - 1e-9)
            if grades:
                ends = torch.cat([CUTS.new_tensor([-math.inf]), CUTS, CUTS.new_tensor([math.inf])])
                true = torch.special.ndtr((ends - truth_at.unsqueeze(-1)) / blur).diff()
            else:
                gap = truth_at.view(PLACES, 2)
                win = torch.special.ndtr((gap[:, 0] - gap[:, 1]) / (OF_DUELS_SD * math.sqrt(2)))
                true, p = torch.stack([win, 1 - win], -1), torch.cat([p[:, :1], 1 - p[:, :1]], -1)
            row["answers"] = float(torch.xlogy(true, p).sum(-1).mean())
        found.append(row)
    return found


AVERAGED = ("fitted", "averaged")


def _columns_of_bands(runs: Group) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"runs": len(runs), "held": runs.mean("held"), "its_error": runs.error("held")}
    for measure in ("log_density", "answers"):
        lead, error = runs.less(measure, hyperparameters="fitted")
        cells |= {measure: runs.cell(measure), f"lead_{measure}": lead, f"error_{measure}": error}
    return {**cells, "seconds": runs.mean("seconds")}


OF_NUMBERS = [{"numbers": numbers, "duels": duels, **case}
              for numbers, duels in SIZES for case in grid(noise=(0.01, 0.3), told=["numbers"])]  # fmt: skip
NOTES = [f"{HELD_OUT} held out for each data set; difference: of the default to the method, paired by data set"]
MEASURES = ("function", "log_density")
RACES = (
    Race("predictive", grid(task=TASKS), grid(method=CLASSIFIERS), range(24), _of_labels, ("log_density",),
         partial(_columns, ours="skewgp"),
         [f"{SIZE} training points; difference: of skewgp to the method, paired by data set"]),
    Race("predictive_duels", grid(noise=NOISES, duels=(10, 30)), grid(method=MODELS_OF_DUELS),
         range(2 * len(TEST_FUNCTIONS)), _of_duels, MEASURES, _columns, NOTES),
    Race("predictive_numbers", OF_NUMBERS, grid(method=("default", "dimension-scaled", "SingleTaskGP")),
         range(4 * len(FUNCTIONS)), _of_numbers, MEASURES, _columns,
         [*NOTES, f"log densities of single numbers and duels are at least {LEAST:g}"]),
    Race("predictive_bands", grid(told=TOLD, truth=TRUTHS), [{"hyperparameters": "fitted"}], range(40), _of_bands,
         ("held", "log_density", "answers", "seconds"), _columns_of_bands,
         [f"90 % bands at {2 * PLACES} points; averaged: over {NUM_MEMBERS} draws; leads over fitted ones, in pairs"],
         pooled="truth"),
)  # fmt: skip

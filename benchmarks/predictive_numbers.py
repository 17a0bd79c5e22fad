"""Held-out log predictive density of numbers, alone and beside duels: default lengthscales, the former ones, BoTorch.

Numbers are values at uniform points of the unit cube with noise of 0.01 or 0.3 standard deviations of the function, 6
to 40 of them; or exact values of 8 points beside 16 duels, whose judge has that noise. Functions are those of
`decisions`, Branin's, and what is hard for narrow priors: inputs that do nothing, and a linear function. All methods
get the same data sets, and are compared in pairs, with standard errors over data sets.

- `default`; `dimension-scaled`: the same kernel with BoTorch's prior of lengthscales, which was the default.
- `SingleTaskGP`: BoTorch's model of numbers, with its own defaults.

Densities are those of normal distributions with the predicted means and variances, in units of the function's standard
deviation, and none counts less than 20 nats below one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks._race import Names, Race, add_race_arguments, grid, hold_and_publish
from benchmarks._reporting import Cell
from benchmarks._utilities import FUNCTIONS as TEST_FUNCTIONS
from benchmarks._utilities import Utility, find_utility
from benchmarks.predictive_duels import columns
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models import default_covar_module
from botorch_skewgp.observations import Numeric, Observation, Preference

NOISES = (0.01, 0.3)
SIZES = ((6, 0), (12, 0), (24, 0), (40, 0), (8, 16))  # numbers, duels
HELD_OUT, LEAST = 200, -20.0
IDLE = 4  # inputs that do nothing
METHODS = ("default", "dimension-scaled", "SingleTaskGP")


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
    deviation = noise * utility.quantiles()[0]

    def see(values: Tensor) -> Tensor:
        return values + deviation * torch.randn(values.shape, generator=generator, dtype=values.dtype)

    points = torch.rand(max(numbers, 2 * duels), utility.dim, generator=generator, dtype=torch.float64)
    values = utility.evaluate(points)
    seen = see(values)
    observations: list[Observation] = [Numeric((values if duels else seen)[:numbers], index=torch.arange(numbers))]
    if duels:
        pairs = torch.arange(2 * duels).reshape(duels, 2)
        first_wins = (seen[pairs[:, 0]] > seen[pairs[:, 1]]).unsqueeze(-1)
        observations.append(Preference(torch.where(first_wins, pairs, pairs.flip(-1))))
    test = torch.rand(HELD_OUT, 2, utility.dim, generator=generator, dtype=torch.float64)
    truth = utility.evaluate(test)
    return Data(points, observations, test, truth, see(truth))


def _densities(method: str, data: Data, deviation: float) -> tuple[float, float]:
    """Mean log densities of held-out numbers, and of duels if there are any."""
    numbers = data.observations[0]
    assert isinstance(numbers, Numeric)
    with_duels = len(data.observations) > 1
    X = data.test[:, :1]
    if method == "SingleTaskGP":
        reference = SingleTaskGP(data.points, numbers.values.unsqueeze(-1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(reference.likelihood, reference))
        with torch.no_grad():
            posterior = reference.posterior(X, observation_noise=True)
        return _normal_density(posterior.mean, posterior.variance, data.seen[:, 0], deviation), math.nan
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
            return density, math.nan
        judge = model.likelihood.for_kind(Preference)
        p = judge(model.posterior(data.test), scale=model.outcome_scale).probs.flatten()
        first_wins = data.seen[:, 0] > data.seen[:, 1]
        return density, float(torch.where(first_wins, p, 1 - p).log().clamp(min=LEAST).mean())


def _normal_density(mean: Tensor, variance: Tensor, target: Tensor, deviation: float) -> float:
    distribution = torch.distributions.Normal(mean.flatten() / deviation, variance.flatten().sqrt() / deviation)
    return float(distribution.log_prob(target / deviation).clamp(min=LEAST).mean())


def _run(numbers: int, duels: int, noise: float, told: str, method: str, seed: int) -> dict[str, Cell] | list[Names]:
    """The mean log density of one data set; the seed counts the data sets of all functions in turn."""
    if (told == "duels" and not duels) or (duels and method == "SingleTaskGP"):
        return []
    name = [*FUNCTIONS][seed % len(FUNCTIONS)]
    utility = FUNCTIONS[name]()
    data = _data(utility, numbers, duels, noise, 1000 + seed // len(FUNCTIONS))
    of_numbers, of_duels = _densities(method, data, float(utility.quantiles()[0]))
    return {"function": name, "log_density": of_duels if told == "duels" else of_numbers}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=4 * len(FUNCTIONS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    cases = [{"numbers": numbers, "duels": duels, **case}
             for numbers, duels in SIZES for case in grid(noise=NOISES, told=("numbers", "duels"))]  # fmt: skip
    race = Race(
        "predictive_numbers", cases, grid(method=METHODS), range(1 if options.quick else options.seeds), _run,
        ("function", "log_density"), columns,
        [f"{HELD_OUT} held-out numbers or duels for each data set; difference: of the default to the method (positive: "
         "the default is better), paired by data set"],
    )  # fmt: skip
    hold_and_publish(options, race)

"""Held-out log predictive density of duels: default priors, a judge that is known, the former default, PairwiseGP.

Duels are between uniform points of eight test functions, by a judge at three levels of noise: a data
set has 10 or 30 duels to learn from and 200 held-out ones, whose probabilities are averaged over. All methods get the
same data sets, and are compared in pairs, with standard errors over data sets. An oracle that knew the function and the
noise could not reach zero: answers are noisy.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks._race import Group, Race, add_race_arguments, grid, hold_and_publish, mean_and_error
from benchmarks._reporting import Cell
from benchmarks._utilities import FUNCTIONS, Utility, find_utility
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import default_covar_module
from botorch_skewgp.observations import Preference

NOISES = (0.01, 0.1, 0.3)  # standard deviations of the function's, on each value
SIZES = (10, 30)
HELD_OUT = 200

Probabilities = Callable[
    [Tensor, Tensor, Tensor], Tensor
]  # points, pairs and m x 2 x d test pairs -> of the first's win


def _skewgp(points: Tensor, pairs: Tensor, test: Tensor, kernel: Callable[[int, Preference], Any]) -> Tensor:
    duels = Preference(pairs)
    model = SkewGP(points, duels, covar_module=kernel(points.shape[-1], duels))
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model.predictive(test).probs.flatten()


def _pairwise(points: Tensor, pairs: Tensor, test: Tensor) -> Tensor:
    model = PairwiseGP(points, pairs)
    fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    joint = model.eval().posterior(test)
    contrast = test.new_tensor([[1.0, -1.0]])
    mean = (contrast @ joint.mean).flatten()
    variance = (contrast @ joint.distribution.covariance_matrix @ contrast.mT).flatten()
    return torch.special.ndtr(mean / (2 + variance).sqrt())  # its probit has unit noise on each item


def _former(dim: int, duels: Preference) -> Kernel:
    """The default kernel before its output scale trusted answers."""
    prior = LogNormalPrior(math.log(10.0), 1.5)
    kernel = ScaleKernel(
        get_covar_module_with_dim_scaled_prior(ard_num_dims=dim), prior, Interval(1e-4, 1e4, transform=None)
    )
    kernel.outputscale = prior.mode
    return kernel


METHODS: dict[str, Probabilities] = {
    "default": partial(_skewgp, kernel=lambda dim, duels: default_covar_module(dim, [duels])),
    "consistent": partial(_skewgp, kernel=lambda dim, duels: default_covar_module(dim, [duels], judge="consistent")),
    "noisy": partial(_skewgp, kernel=lambda dim, duels: default_covar_module(dim, [duels], judge="noisy")),
    "former default": partial(_skewgp, kernel=_former),
    "PairwiseGP": _pairwise,
}


def _duels(function: Utility, noise: float, num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pairs of new points, `num x 2 x d`, and which of the two won."""
    pairs = torch.rand(num, 2, function.dim, generator=generator, dtype=torch.float64)
    deviation, _ = function.quantiles()
    seen = function.evaluate(pairs) + noise * deviation * torch.randn(num, 2, generator=generator, dtype=torch.float64)
    return pairs, seen.argmax(-1)


def _run(noise: float, duels: int, method: str, seed: int) -> dict[str, Cell]:
    """The mean log density of one data set's held-out duels; the seed counts the data sets of all functions in turn."""
    name, generator = FUNCTIONS[seed % len(FUNCTIONS)], torch.Generator().manual_seed(1000 + seed // len(FUNCTIONS))
    known, winners = _duels(find_utility(name), noise, duels, generator)
    test, test_winners = _duels(find_utility(name), noise, HELD_OUT, generator)
    pairs = torch.stack([winners, 1 - winners], dim=-1) + 2 * torch.arange(duels).unsqueeze(-1)
    p = METHODS[method](known.reshape(2 * duels, -1), pairs, test).detach()
    return {"function": name, "log_density": float(torch.where(test_winners == 0, p, 1 - p).log().mean())}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=2 * len(FUNCTIONS))
    parser.add_argument("--noises", nargs="+", type=float, default=list(NOISES))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    race = Race(
        "predictive_duels", grid(noise=options.noises, duels=SIZES), grid(method=options.methods),
        range(1 if options.quick else options.seeds), _run, ("function", "log_density"), columns,
        [f"{HELD_OUT} held-out duels for each data set; difference: of the default to the method (positive: the "
         "default is better), paired by data set"],
    )  # fmt: skip
    hold_and_publish(options, race)


def columns(runs: Group) -> dict[str, Cell]:
    """Mean log densities, and the default's lead in pairs."""
    mine, default = runs.beside("log_density", method="default")
    difference, error = mean_and_error(default - mine)
    return {"data_sets": len(runs), "log_density": runs.mean("log_density"), "difference": difference,
            "standard_error": error}  # fmt: skip

"""Held-out log predictive density of duels: default priors, a judge that is known, the former default, PairwiseGP.

Duels are between uniform points of the test functions of `decisions`, with its judge at three levels of noise: a data
set has 10 or 30 duels to learn from and 200 held-out ones, whose probabilities are averaged over. All methods get the
same data sets, and are compared in pairs, with standard errors over data sets. An oracle that knew the function and the
noise could not reach zero: answers are noisy.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say
from benchmarks._utilities import FUNCTIONS, Utility, find_utility
from benchmarks.decisions import former_covar_module
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


METHODS: dict[str, Probabilities] = {
    "default": partial(_skewgp, kernel=lambda dim, duels: default_covar_module(dim, [duels])),
    "consistent": partial(_skewgp, kernel=lambda dim, duels: default_covar_module(dim, [duels], judge="consistent")),
    "noisy": partial(_skewgp, kernel=lambda dim, duels: default_covar_module(dim, [duels], judge="noisy")),
    "former default": partial(_skewgp, kernel=lambda dim, duels: former_covar_module(dim)),
    "PairwiseGP": _pairwise,
}


def _duels(function: Utility, noise: float, num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pairs of new points, `num x 2 x d`, and which of the two won."""
    pairs = torch.rand(num, 2, function.dim, generator=generator, dtype=torch.float64)
    deviation, _ = function.quantiles()
    seen = function.evaluate(pairs) + noise * deviation * torch.randn(num, 2, generator=generator, dtype=torch.float64)
    return pairs, seen.argmax(-1)


def _densities(function: str, noise: float, size: int, seed: int, methods: list[str]) -> dict[str, float]:
    """The mean log density of one data set's held-out duels by each method."""
    generator = torch.Generator().manual_seed(seed)
    known, winners = _duels(find_utility(function), noise, size, generator)
    test, test_winners = _duels(find_utility(function), noise, HELD_OUT, generator)
    pairs = torch.stack([winners, 1 - winners], dim=-1) + 2 * torch.arange(size).unsqueeze(-1)
    densities = {}
    for name in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = METHODS[name](known.reshape(2 * size, -1), pairs, test).detach()
        densities[name] = float(torch.where(test_winners == 0, p, 1 - p).log().mean())
    return densities


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--noises", nargs="+", type=float, default=list(NOISES))
    parser.add_argument("--data-sets", type=int, default=3, help="of every function, noise and size")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    functions, data_sets = (["camel"], 1) if options.quick else (options.functions, options.data_sets)
    table = Table(
        "predictive_duels",
        ("noise", "duels", "method", "data_sets", "log_density", "difference", "standard_error", "worst"),
        notes=[
            environment(),
            f"functions: {', '.join(functions)}; {HELD_OUT} held-out duels for each data set",
            "difference: of the default to the method (positive: the default is better), paired by data set, with its "
            "standard error; worst: the least mean difference over functions",
        ],
    )
    for noise, size in itertools.product(options.noises, SIZES):
        rows = [
            [_densities(function, noise, size, 1000 + seed, options.methods) for seed in range(data_sets)]
            for function in functions
        ]
        values = {name: np.array([[row[name] for row in part] for part in rows]) for name in options.methods}
        reference = values[options.methods[0]]
        for name, found in values.items():
            gaps = reference - found
            error = float(gaps.std(ddof=1)) / math.sqrt(gaps.size) if gaps.size > 1 else math.nan
            table.add(
                noise=noise, duels=size, method=name, data_sets=gaps.size, log_density=float(found.mean()),
                difference=float(gaps.mean()), standard_error=error, worst=float(gaps.mean(1).min()),
            )  # fmt: skip
            say(f"noise {noise}, {size} duels, {name}: {found.mean():.4f}, {gaps.mean():+.4f} +- {error:.4f}")
    publish([table], folder)

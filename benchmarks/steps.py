"""One step of a preferential optimisation, fit and next pair by qEUBO, beside BoTorch's PairwiseGP.

Six inputs, all duels between new points. Both models are fitted with `fit_gpytorch_mll` from their default start, and
both acquisition functions are optimised with the same budget; ours draws its latent draws in between.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable

import torch
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from benchmarks._problems import duel_data
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

DIMENSION = 6
NOISE = 0.3  # standard deviation of one value of a duel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "steps",
        ("duels", "model", "fit_s", "draws_s", "acquisition_s", "total_s", "ratio_to_pairwise"),
        notes=[environment(), f"load average at the start {load_average()}"],
    )
    _step(_skew_gp, 10)  # warm-up
    for m in (20, 50) if options.quick else (20, 50, 100):
        pairwise = _step(_pairwise_gp, m)
        for name, row in (("PairwiseGP", pairwise), ("SkewGP", _step(_skew_gp, m))):
            table.add(duels=m, model=name, ratio_to_pairwise=row["total_s"] / pairwise["total_s"], **row)
            say(f"{m} duels, {name}: {row['total_s']:.2f} s")
    publish([table], folder)


def _skew_gp(X: Tensor, pairs: Tensor) -> Model:
    model = SkewGP(X, Preference(pairs))
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def _pairwise_gp(X: Tensor, pairs: Tensor) -> Model:
    model = PairwiseGP(X, pairs)
    fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    return model


def _step(build: Callable[[Tensor, Tensor], Model], m: int) -> dict[str, float]:
    data = duel_data(m, NOISE, DIMENSION)
    torch.manual_seed(0)  # optimize_acqf draws from the global generator
    clock = [time.perf_counter()]
    model = build(data.X, data.pairs)
    clock.append(time.perf_counter())
    with torch.no_grad():
        model.posterior(data.X[:1])  # makes the draws
    clock.append(time.perf_counter())
    acquisition = qExpectedUtilityOfBestOption(
        pref_model=model, sampler=SobolQMCNormalSampler(torch.Size([256]), seed=0)
    )
    bounds = torch.stack([torch.zeros(DIMENSION), torch.ones(DIMENSION)]).to(data.X)
    optimize_acqf(acquisition, bounds=bounds, q=2, num_restarts=10, raw_samples=256)
    clock.append(time.perf_counter())
    fit, draws, step = (after - before for before, after in itertools.pairwise(clock))
    return {"fit_s": fit, "draws_s": draws, "acquisition_s": step, "total_s": clock[-1] - clock[0]}

"""Evidence and fits: expectation propagation against bridge sampling; fits against PairwiseGP.

Two tables: log evidence of probit classification, where the mean of ten runs of bridge sampling stands for the truth;
and `fit_gpytorch_mll` of duels in six dimensions for `SkewGP` and BoTorch's `PairwiseGP`, on the same duels, two new
points for each. Fits stop after 120 seconds.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from gpytorch.mlls import MarginalLogLikelihood

from benchmarks._problems import Duels, classification, duel_data
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation

DIMENSION, LIMIT = 6, 120.0
NOISE = 0.1  # standard deviation of one value of a duel


def _bridge(n: int, seed: int) -> dict[str, Cell]:
    """Of one run of bridge sampling, EP and draws included, and how far the approximations are from it."""
    problem = classification(n, seed=1).distribution
    began = time.perf_counter()
    estimate = bridge_log_normalizer(problem, generator=torch.Generator().manual_seed(seed))
    seconds, value = time.perf_counter() - began, float(estimate.value)
    approximation = expectation_propagation(problem)
    corrected = float(corrected_log_normalizer(approximation.distribution))
    return {
        "bridge": f"{value:.10g}", "standard_error": float(estimate.standard_error), "bridge_s": seconds,
        "ep_error": float(approximation.log_normalizer) - value, "corrected_error": corrected - value,
    }  # fmt: skip


def _of_bridge(runs: Group) -> dict[str, Cell]:
    names = ("bridge", "standard_error", "ep_error", "corrected_error")
    spread = float(runs.values("bridge").std()) if len(runs) > 1 else None
    means = {name: runs.mean(name) for name in names}
    return {**means, "sd_over_seeds": spread, "bridge_s": runs.median("bridge_s")}


def _skew_gp(data: Duels) -> MarginalLogLikelihood:
    model = SkewGP(data.X, Preference(data.pairs))
    return SkewGPMarginalLogLikelihood(model.likelihood, model)


def _pairwise_gp(data: Duels) -> MarginalLogLikelihood:
    model = PairwiseGP(data.X, data.pairs)
    return PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model)


MODELS: dict[str, Callable[[Duels], MarginalLogLikelihood]] = {"SkewGP": _skew_gp, "PairwiseGP": _pairwise_gp}


@functools.cache
def _warm_up(model: str) -> None:
    fit_gpytorch_mll(MODELS[model](duel_data(20, NOISE, DIMENSION)))


def _fit(duels: int, model: str, seed: int) -> dict[str, Cell]:
    _warm_up(model)
    mll = MODELS[model](duel_data(duels, NOISE, DIMENSION))
    began, stopped = time.perf_counter(), False
    try:
        fit_gpytorch_mll(mll, optimizer_kwargs={"timeout_sec": LIMIT}, max_attempts=1)
    except ModelFittingError:
        stopped = True
    seconds = time.perf_counter() - began  # a fit that runs out of time returns as if it had converged
    lengthscales = mll.model.covar_module.base_kernel.lengthscale.flatten().tolist()
    return {
        "fit_s": seconds, "stopped": stopped or seconds > LIMIT,
        "lengthscales": " ".join(f"{value:.3g}" for value in lengthscales),
    }  # fmt: skip


OF_FITS = ("fit_s", "stopped", "lengthscales")
RACES = (
    Race("evidence", grid(n=(70, 200, 500, 1000)), [{}], range(10), _bridge,
         ("bridge", "standard_error", "bridge_s", "ep_error", "corrected_error"), _of_bridge),
    Race("evidence_fits", grid(duels=(20, 50, 100, 500)), grid(model=MODELS), range(1), _fit, OF_FITS),
)  # fmt: skip

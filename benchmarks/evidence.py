"""Evidence and fits: expectation propagation against bridge sampling; fits against PairwiseGP.

Two tables: log evidence of probit classification; and `fit_gpytorch_mll` of duels in six dimensions for `SkewGP` and
BoTorch's `PairwiseGP`, on the same duels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.utils.probability import MVNXPB
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

from benchmarks._problems import Duels, classification, duel_data
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

DIMENSION = 6
NOISE = 0.1  # standard deviation of one value of a duel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--parts", nargs="+", choices=("sizes", "fits"), default=["sizes", "fits"])
    parser.add_argument("--seeds", type=int, help="runs of bridge sampling for each size; 10, or 3 with --quick")
    parser.add_argument("--mvnxpb-limit", type=int, default=200, help="largest number of rows for MVNXPB")
    parser.add_argument("--fit-limit", type=float, default=120.0, help="seconds after which a fit is stopped")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    notes = [environment(), f"load average at the start {load_average()}"]
    tables = []
    if "sizes" in options.parts:
        sizes = [70, 200] if options.quick else [70, 200, 500, 1000]
        tables.append(_sizes(sizes, options.seeds or (3 if options.quick else 10), options.mvnxpb_limit))
    if "fits" in options.parts:
        tables.append(_fits([20, 50] if options.quick else [20, 50, 100, 500], options.fit_limit))
    notes.append(f"load average at the end {load_average()}")
    for table in tables:
        table.notes = notes + table.notes
    publish(tables, folder)


def _sizes(sizes: list[int], num_seeds: int, mvnxpb_limit: int) -> Table:
    table = Table(
        "evidence",
        (
            "n", "ep", "ep_s", "bridge", "standard_error", "sd_over_seeds", "bridge_s", "ep_error",
            "corrected_error", "corrected_s", "mvnxpb",
            "mvnxpb_error", "mvnxpb_s",
        ),
        notes=[
            f"probit classification; bridge: mean of {num_seeds} runs, the time of one, EP and draws included",
            "corrected: EP included in seconds",
        ],
    )  # fmt: skip
    for n in sizes:
        problem = classification(n, seed=1)
        _, _ = _timed(lambda problem=problem: expectation_propagation(problem.distribution))  # warm-up
        approximation, ep_seconds = _timed(lambda problem=problem: expectation_propagation(problem.distribution))
        ep = float(approximation.log_normalizer)
        corrected, corrected_seconds = _timed(lambda ep=approximation: float(corrected_log_normalizer(ep.distribution)))
        values, errors, seconds = [], [], []
        for seed in range(num_seeds):
            fresh = classification(n, seed=1).distribution
            generator = torch.Generator().manual_seed(seed)
            estimate, took = _timed(lambda fresh=fresh, g=generator: bridge_log_normalizer(fresh, generator=g))
            values.append(float(estimate.value))
            errors.append(float(estimate.standard_error))
            seconds.append(took)
        exact, error = float(np.mean(values)), float(np.mean(errors))
        row = table.add(
            n=n, ep=ep, ep_s=ep_seconds, bridge=exact, standard_error=error,
            sd_over_seeds=float(np.std(values, ddof=1)), bridge_s=float(np.median(seconds)), ep_error=ep - exact,
            corrected_error=corrected - exact, corrected_s=corrected_seconds,
        )  # fmt: skip
        if n <= mvnxpb_limit:
            value, row["mvnxpb_s"] = _timed(lambda problem=problem: _mvnxpb(problem.distribution))
            row["mvnxpb"], row["mvnxpb_error"] = value, value - exact
        say(f"n = {n}: EP {ep:.3f}, bridge {exact:.3f} +- {error:.3f}")
    return table


def _timed(function: Callable) -> tuple:
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def _mvnxpb(distribution: TruncatedNormal) -> float:
    bounds = torch.stack([distribution.lower, distribution.upper], -1) - distribution.mean.unsqueeze(-1)
    return float(MVNXPB(covariance_matrix=distribution.gamma, bounds=bounds).solve())


def _fits(sizes: list[int], limit: float) -> Table:
    table = Table(
        "evidence_fits",
        ("duels", "model", "fit_s", "stopped", "same_seed_repeats", "spread_between_seeds", "lengthscales"),
        notes=[
            f"{DIMENSION}-d, two new points for each duel, noise sd {NOISE}; fits stopped after {limit:g} s",
            "spread: the largest relative difference of a lengthscale between seeds 0, 1 and 2",
        ],
    )
    makers = {"SkewGP": _skew_gp, "PairwiseGP": _pairwise_gp}
    for m in sizes:
        data = duel_data(m, NOISE, DIMENSION)
        for name, make in makers.items():
            if m == sizes[0]:
                _fit(make, data, seed=0, limit=limit)  # warm-up
            lengthscales, seconds, finished = _fit(make, data, seed=0, limit=limit)
            row = table.add(
                duels=m, model=name, fit_s=seconds, stopped=not finished,
                lengthscales=" ".join(f"{value:.3g}" for value in lengthscales.tolist()),
            )  # fmt: skip
            if finished and seconds < limit / 4:
                again = [_fit(make, data, seed=seed, limit=limit)[0] for seed in (0, 1, 2)]
                others = torch.stack([lengthscales, *again[1:]])
                row["same_seed_repeats"] = bool(torch.equal(again[0], lengthscales))
                row["spread_between_seeds"] = float((others.amax(0) / others.amin(0)).max()) - 1
            say(f"{m} duels, {name}: {seconds:.2f} s{'' if finished else ', stopped'}")
    return table


def _skew_gp(data: Duels) -> MarginalLogLikelihood:
    model = SkewGP(data.X, Preference(data.pairs))
    return SkewGPMarginalLogLikelihood(model.likelihood, model)


def _pairwise_gp(data: Duels) -> MarginalLogLikelihood:
    model = PairwiseGP(data.X, data.pairs)
    return PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model)


def _fit(
    make: Callable[[Duels], MarginalLogLikelihood], data: Duels, seed: int, limit: float
) -> tuple[Tensor, float, bool]:
    """Lengthscales, seconds, and whether the fit ended by itself."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        began = time.perf_counter()
        mll = make(data)
        finished = True
        try:
            fit_gpytorch_mll(mll, optimizer_kwargs={"timeout_sec": limit}, max_attempts=1)
        except ModelFittingError:
            finished = False
        seconds = time.perf_counter() - began
        finished = finished and seconds < limit  # a fit that runs out of time returns as if it had converged
    return mll.model.covar_module.base_kernel.lengthscale.detach().flatten().clone(), seconds, finished

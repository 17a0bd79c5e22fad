"""One step of a preferential optimisation, fit and next pair by qEUBO, beside BoTorch's PairwiseGP.

Six inputs, all duels between new points. Both models are fitted with `fit_gpytorch_mll` from their default start, and
both acquisition functions are optimised with the same budget; ours draws its latent draws in between. With `--profile`
also how often the parts of a step ran, and how long they took, with duels and with labels of points (whose acquisition
function is the information gained from a label): sweeps are part of the objective of a fit and of the draws,
diagnostics of the draws, the rest of a stage is what is left of it. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from benchmarks._observations import duel_data
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Preference
from botorch_skewgp.posteriors import RepresenterMixture
from botorch_skewgp.truncated import draws
from botorch_skewgp.truncated.propagation import expectation_propagation

SIZES = (20, 50, 100, 300)  # duels
LABELS = (50, 200, 500, 1000)
DIMENSION = 6
NOISE = 0.3  # standard deviation of one value of a duel
CPU = torch.device("cpu")
REPEATS = 5  # of a step, in turns with the other model's; medians are told


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--profile", action="store_true", help="where the time of our step goes")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "steps",
        ("duels", "model", "fit_s", "draws_s", "acquisition_s", "total_s", "ratio_to_pairwise"),
        notes=[environment(), f"load average at the start {load_average()}"],
    )
    duel_step(skew_gp, 10)  # warm-up
    for m in SIZES[:2] if options.quick else SIZES:
        runs = [(duel_step(pairwise_gp, m), duel_step(skew_gp, m)) for _ in range(1 if options.quick else REPEATS)]
        pairwise, ours = ({name: median(run[i][name] for run in runs) for name in runs[0][i]} for i in range(2))
        for name, row in (("PairwiseGP", pairwise), ("SkewGP", ours)):
            table.add(duels=m, model=name, ratio_to_pairwise=row["total_s"] / pairwise["total_s"], **row)
            say(f"{m} duels, {name}: {row['total_s']:.2f} s")
    if options.profile:
        publish([table, _profiles(options.quick)], folder)
    else:
        publish([table], folder)


PARTS: tuple[tuple[str, Any, str], ...] = (
    ("objective of the fit", SkewGPMarginalLogLikelihood, "forward"),
    ("moments of rows in expectation propagation", expectation_propagation, "next_sites"),
    ("expectation propagation of the draws", draws, "expectation_propagation"),
    ("starts of the chains", draws, "feasible_start"),
    ("trajectories", draws.ReflectiveEllipticalSliceSampler, "run"),
    ("diagnostics", draws, "diagnose"),
    ("order of the draws", RepresenterMixture, "in_space_filling_order"),
    ("acquisition function of duels", qExpectedUtilityOfBestOption, "forward"),
    ("acquisition function of labels", SkewBayesianActiveLearningByDisagreement, "forward"),
)


def _profiles(quick: bool) -> Table:
    """Calls and seconds of the parts of a step; nothing that a part calls is left out of its seconds."""
    table = Table("steps_profile", ("data", "size", "part", "calls", "seconds"), notes=[environment()])
    cases = [("duels", m, functools.partial(duel_step, skew_gp, m)) for m in SIZES]
    cases += [("labels", n, functools.partial(label_step, n)) for n in LABELS]
    label_step(10)  # warm-up
    for data, size, step in cases[::4] if quick else cases:
        spent: dict[str, list[float]] = {name: [] for name, _, _ in PARTS}
        with ExitStack() as stack:
            for name, owner, function in PARTS:
                stack.enter_context(patch.object(owner, function, _timed(getattr(owner, function), spent[name])))
            for stage, seconds in step().items():
                table.add(data=data, size=size, part=stage.removesuffix("_s"), calls=1, seconds=seconds)
        for name, times in spent.items():
            if times:
                table.add(data=data, size=size, part=name, calls=len(times), seconds=sum(times))
    return table


def _timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    """A function that also notes how long each call takes."""

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            times.append(time.process_time() - began)

    return timed


def skew_gp(X: Tensor, pairs: Tensor) -> Model:
    """Our model of duels, fitted."""
    return _fitted(SkewGP(X, Preference(pairs)))


def _fitted(model: SkewGP) -> Model:
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def pairwise_gp(X: Tensor, pairs: Tensor) -> Model:
    """BoTorch's model of duels, fitted."""
    model = PairwiseGP(X, pairs)
    fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    return model


def best_pair(model: Model) -> AcquisitionFunction:
    """The acquisition function of the next pair."""
    return qExpectedUtilityOfBestOption(pref_model=model, sampler=SobolQMCNormalSampler(torch.Size([256]), seed=0))


def duel_step(
    build: Callable[[Tensor, Tensor], Model],
    m: int,
    device: torch.device = CPU,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Seconds of a step with `m` duels."""
    data = duel_data(m, NOISE, DIMENSION)
    X, pairs = data.X.to(device), data.pairs.to(device)
    return stages(X, functools.partial(build, X, pairs), best_pair, q=2, clock=clock)


def label_data(n: int, device: torch.device = CPU) -> tuple[Tensor, Tensor]:
    """Points and their labels."""
    X = torch.rand(n, DIMENSION, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(device)
    return X, torch.sin(4 * X).sum(-1) > 2


def label_step(
    n: int,
    device: torch.device = CPU,
    clock: Callable[[], float] = time.process_time,
    inducing_points: int | None = None,
) -> dict[str, float]:
    """Seconds of a step with `n` labels."""
    X, labels = label_data(n, device)

    def build() -> Model:
        return _fitted(SkewGP(X, Binary(labels), inducing_points=inducing_points))

    return stages(X, build, SkewBayesianActiveLearningByDisagreement, q=1, clock=clock)


def stages(
    X: Tensor,
    build: Callable[[], Model],
    acquire: Callable[[Model], AcquisitionFunction],
    q: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Seconds of the fit, the draws and the search of the next points, and of all."""
    torch.manual_seed(0)  # optimize_acqf draws from the global generator
    times = [clock()]
    model = build()
    times.append(clock())
    with torch.no_grad():
        model.posterior(X[:1])  # makes the draws
    times.append(clock())
    bounds = torch.stack([torch.zeros(DIMENSION), torch.ones(DIMENSION)]).to(X)
    optimize_acqf(acquire(model), bounds=bounds, q=q, num_restarts=10, raw_samples=256)
    times.append(clock())
    fit, draws, step = (after - before for before, after in itertools.pairwise(times))
    return {"fit_s": fit, "draws_s": draws, "acquisition_s": step, "total_s": times[-1] - times[0]}

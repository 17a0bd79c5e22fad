"""One step of an optimisation with duels or labels, on the CPU and on a GPU, as in the benchmark `steps`.

Ten thousand labels have 200 inducing points; beside them is BoTorch's `SingleTaskVariationalGP` with as many, fitted by
500 steps of Adam over all labels. Seconds are those of the clock; `--threads` tells how many threads the CPU has.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskVariationalGP
from botorch.optim.fit import fit_gpytorch_mll_torch
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import VariationalELBO

from benchmarks._race import Cell, Names, Race, grid
from benchmarks.steps import STAGES, duel_step, label_data, label_step, pairwise_gp, skew_gp

POINTS = 200  # inducing points
ADAM_STEPS = 500  # of the variational model, each over all data
MOST_ON_CPU = 2000  # labels without inducing points; more takes minutes


def _variational_fit(n: int, device: torch.device, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds of the fit of a sparse variational model, of which no step is asked."""
    X, labels = label_data(n, device)
    torch.manual_seed(0)
    began = clock()
    model = SingleTaskVariationalGP(
        X,
        labels.to(X).unsqueeze(-1),
        likelihood=BernoulliLikelihood(),
        num_outputs=1,
        inducing_points=min(POINTS, n // 2),
    )
    mll = VariationalELBO(model.likelihood, model.model, num_data=n).to(X)
    fit_gpytorch_mll(mll, optimizer=fit_gpytorch_mll_torch, optimizer_kwargs={"step_limit": ADAM_STEPS})
    seconds = clock() - began
    return {"fit_s": seconds, "total_s": seconds}


def _clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@functools.cache
def _warm_up(device: torch.device) -> None:
    clock = functools.partial(_clock, device)
    duel_step(skew_gp, 10, device, clock)
    label_step(10, device, clock)


STEPS: dict[str, tuple[Callable[..., dict[str, float]], tuple[int, ...]]] = {
    "SkewGP, duels": (functools.partial(duel_step, skew_gp), (100, 300, 1000)),
    "PairwiseGP, duels": (functools.partial(duel_step, pairwise_gp), (100, 300)),  # more takes minutes
    "SkewGP, labels": (label_step, (200, 1000, 2000, 5000)),
    "SkewGP, labels by inducing points": (functools.partial(label_step, inducing_points=POINTS), (10_000,)),
    "SVGP, labels by inducing points": (_variational_fit, (10_000,)),
}


def _run(data: str, size: int, device: str, seed: int) -> dict[str, Cell] | list[Names]:
    too_many = data == "SkewGP, labels" and size > MOST_ON_CPU
    if (not torch.cuda.is_available()) if device == "cuda" else too_many:
        return []
    of = torch.device(device)
    _warm_up(of)
    return {**STEPS[data][0](size, of, functools.partial(_clock, of))}


CASES = [case for data, (_, sizes) in STEPS.items() for case in grid(data=[data], size=sizes)]
RACES = (Race("devices", CASES, grid(device=("cuda", "cpu")), range(1), _run, STAGES),)

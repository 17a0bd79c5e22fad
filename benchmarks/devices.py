"""One step of an optimisation with duels or labels, on the CPU and on a GPU.

Fit, draws and the search of the next points, as in the benchmark `steps`, on every device that there is. Ten thousand
labels have 200 inducing points; beside them is BoTorch's `SingleTaskVariationalGP`, a sparse variational model of
GPyTorch, with as many, fitted by 500 steps of Adam over all labels: it has no draws, and no step is asked of it.
Seconds are those of the clock, since a GPU has no other; the CPU works with as many threads as torch takes.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections.abc import Callable

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskVariationalGP
from botorch.optim.fit import fit_gpytorch_mll_torch
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import VariationalELBO

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from benchmarks.steps import duel_step, label_data, label_step, pairwise_gp, skew_gp

POINTS = 200  # inducing points
ADAM_STEPS = 500  # of the variational model, each over all data
SIZES = {
    "SkewGP, duels": (100, 300, 1000),
    "PairwiseGP, duels": (100, 300),  # more takes minutes
    "SkewGP, labels": (200, 1000, 2000, 5000),
    "SkewGP, labels by inducing points": (10_000,),
    "SVGP, labels by inducing points": (10_000,),
}
MOST_ON_CPU = 2000  # labels without inducing points; more takes minutes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    devices = [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])
    table = Table(
        "devices",
        ("data", "size", "device", "fit_s", "draws_s", "acquisition_s", "total_s"),
        notes=[environment(devices), f"load average at the start {load_average()}"],
    )
    warnings.filterwarnings("ignore", module="linear_operator|botorch.optim")
    steps: dict[str, Callable[..., dict[str, float | None]]] = {
        "SkewGP, duels": functools.partial(duel_step, skew_gp),
        "PairwiseGP, duels": functools.partial(duel_step, pairwise_gp),
        "SkewGP, labels": label_step,
        "SkewGP, labels by inducing points": functools.partial(label_step, inducing_points=POINTS),
        "SVGP, labels by inducing points": _variational_fit,
    }
    for device in reversed(devices):
        clock = functools.partial(_synchronised_clock, device)
        duel_step(skew_gp, 10, device, clock)  # warm-up
        label_step(10, device, clock)
        for data, step in steps.items():
            for size in [200] if options.quick else SIZES[data]:
                if data == "SkewGP, labels" and device.type == "cpu" and size > MOST_ON_CPU:
                    continue
                seconds = step(size, device, clock)
                table.add(data=data, size=size, device=device.type, **seconds)
                say(f"{data}, {size}, {device.type}: {seconds}")
    publish([table], folder)


def _variational_fit(n: int, device: torch.device, clock: Callable[[], float]) -> dict[str, float | None]:
    """Seconds of the fit of a sparse variational model."""
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
    return {"fit_s": seconds, "draws_s": None, "acquisition_s": None, "total_s": seconds}


def _synchronised_clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()

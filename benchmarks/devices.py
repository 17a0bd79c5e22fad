"""One step of an optimisation with duels or labels, on the CPU and on a GPU.

Fit, draws and the search of the next points, as in the benchmark `steps`, on every device that there is. Seconds are
those of the clock, since a GPU has no other; the CPU works with as many threads as torch takes.
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings

import torch

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from benchmarks.steps import duel_step, label_step, pairwise_gp, skew_gp

DUELS = (50, 100, 300, 1000)
LABELS = (50, 200, 500, 1000, 2000, 4500)
MOST_ON_CPU = {"SkewGP, duels": 1000, "PairwiseGP, duels": 300, "SkewGP, labels": 2000}  # more takes minutes
MOST_ON_CUDA = {**MOST_ON_CPU, "SkewGP, labels": 4500}


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
    for device in devices:
        clock = functools.partial(_synchronised_clock, device)
        most = MOST_ON_CUDA if device.type == "cuda" else MOST_ON_CPU
        duel_step(skew_gp, 10, device, clock)  # warm-up
        label_step(10, device, clock)
        for data, sizes, step in (
            ("SkewGP, duels", DUELS, functools.partial(duel_step, skew_gp)),
            ("PairwiseGP, duels", DUELS, functools.partial(duel_step, pairwise_gp)),
            ("SkewGP, labels", LABELS, label_step),
        ):
            for size in [size for size in (sizes[:2] if options.quick else sizes) if size <= most[data]]:
                seconds = step(size, device, clock)
                table.add(data=data, size=size, device=device.type, **seconds)
                say(f"{data}, {size}, {device.type}: {seconds['total_s']:.2f} s")
    publish([table], folder)


def _synchronised_clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()

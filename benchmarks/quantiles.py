"""Quantiles of a skewed posterior at many points: what they cost beside the mean and beside one evaluation of the cdf.

A model of 60 duels in two inputs with its default number of draws, asked at 5,000 points for two levels. Seconds are of
processor time, the least of several runs; the ratios of one run mean more than they do. The probability at every
quantile is checked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from benchmarks._reporting import (
    Table,
    add_bar,
    add_common_arguments,
    bars_table,
    environment,
    load_average,
    prepare,
    publish,
)
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Preference

LEVELS = (0.025, 0.975)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)


@torch.no_grad()
def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    num_points, repeats = (500, 1) if options.quick else (5000, 5)
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(40, 2, generator=generator, dtype=torch.float64)
    pairs = torch.stack([torch.randperm(40, generator=generator)[:2] for _ in range(60)])
    wins = X.sum(-1)[pairs[:, 0]] > X.sum(-1)[pairs[:, 1]]
    model = SkewGP(X, Preference(torch.where(wins.unsqueeze(-1), pairs, pairs.flip(-1)))).eval()
    points = torch.rand(num_points, 2, generator=generator, dtype=torch.float64)
    levels = torch.tensor(LEVELS, dtype=torch.float64)
    posterior = model.posterior(points)
    _ = posterior.component_means  # of the posterior, not of what is asked of it
    seconds = {
        "mean": _least(lambda: model.posterior(points).mean, repeats),
        "cdf": _least(lambda: posterior.cdf(0.5), repeats),
        "quantiles": _least(lambda: posterior.quantile(levels), repeats),
    }
    error = float((posterior.cdf(posterior.quantile(levels)) - levels.view(-1, 1, 1)).abs().max())
    notes = [environment(), f"load average at the start {load_average()}"]
    table = Table("quantiles", ("what", "points", "levels", "seconds", "times_the_cdf"), notes=notes)
    for what, value in seconds.items():
        number = len(LEVELS) if what == "quantiles" else None
        table.add(what=what, points=num_points, levels=number, seconds=value, times_the_cdf=value / seconds["cdf"])
    bars = bars_table("quantiles_bars")
    bars.notes = notes
    add_bar(
        bars, "processor seconds of two levels at 5,000 points", f"{num_points} points", seconds["quantiles"], most=0.3
    )
    add_bar(bars, "largest error in probability", f"{num_points} points", error, most=1e-10)
    publish([table, bars], folder)


def _least(function: Callable[[], object], repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)

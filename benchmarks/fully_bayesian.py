"""Hyperparameters sampled beside hyperparameters fitted: seconds of both, and what the draws are worth.

Default models of duels, labels and numbers in 2 to 20 inputs, each fitted by `fit_skew_gp`, then sampled by
`sample_hyperparameters`. Seconds are those of the processor, medians over repeats of which every one has a seed of its
own; a ratio is that of the medians. The effective size is what the sampler says, the median over the repeats.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from benchmarks._problems import duel_data
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp, sample_hyperparameters
from botorch_skewgp.observations import Binary, Numeric, Preference

REPEATS = 5
NOISE = 0.3  # standard deviation of one value of a duel
WARM_UP = "50 duels, 6 inputs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "fully_bayesian",
        ("case", "fit_s", "sampling_s", "ratio_in_fits", "effective_size", "effective_size_per_s"),
        notes=[environment(), f"load average at the start {load_average()}"],
    )
    fit_and_sample(CASES[WARM_UP], 0)  # warm-up
    for case, build in list(CASES.items())[:2] if options.quick else CASES.items():
        runs = [fit_and_sample(build, seed) for seed in range(1 if options.quick else REPEATS)]
        fit, sampling, size = (median(entry[i] for entry in runs) for i in range(3))
        per_second = median(entry[2] / entry[1] for entry in runs)
        table.add(
            case=case,
            fit_s=fit,
            sampling_s=sampling,
            ratio_in_fits=sampling / fit,
            effective_size=size,
            effective_size_per_s=per_second,
        )
        say(f"{case}: a fit {fit:.2f} s, sampling {sampling:.2f} s, effective size {size:.1f}")
    publish([table], folder)


def fit_and_sample(build: Callable[[], SkewGP], seed: int) -> tuple[float, float, float]:
    """Seconds of a fit, seconds of sampling after it, and the effective size of the draws."""
    model = build()
    times = [time.process_time()]
    mll = fit_skew_gp(model)
    times.append(time.process_time())
    draws = sample_hyperparameters(mll, generator=torch.Generator().manual_seed(seed))
    times.append(time.process_time())
    return times[1] - times[0], times[2] - times[1], draws.effective_size


def _duels(m: int, d: int) -> SkewGP:
    data = duel_data(m, NOISE, d)
    return SkewGP(data.X, Preference(data.pairs))


def _points(n: int, d: int) -> tuple[Tensor, torch.Generator]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n, d, generator=generator, dtype=torch.float64), generator


def _labels(n: int, d: int) -> SkewGP:
    X, _ = _points(n, d)
    return SkewGP(X, Binary(torch.sin(4 * X).sum(-1) > 1))


def _numbers(n: int, d: int, relevant: int) -> SkewGP:
    """Numbers that depend on some of the inputs, with a noise of 0.1."""
    X, generator = _points(n, d)
    noise = 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    return SkewGP(X, Numeric(torch.sin(4 * X[:, :relevant]).sum(-1) + noise))


CASES: dict[str, Callable[[], SkewGP]] = {
    WARM_UP: lambda: _duels(50, 6),
    "15 duels, 2 inputs": lambda: _duels(15, 2),
    "60 labels, 4 inputs": lambda: _labels(60, 4),
    "15 numbers, 10 inputs": lambda: _numbers(15, 10, relevant=2),
    "40 numbers, 20 inputs": lambda: _numbers(40, 20, relevant=3),
}

"""Hyperparameters sampled beside hyperparameters fitted: seconds of both, and what the draws are worth.

Default models of duels, labels and numbers in 2 to 20 inputs, each fitted by `fit_skew_gp`, then sampled by
`sample_hyperparameters`. Seconds are those of the processor, medians over repeats of which every one has a seed of its
own; a ratio is that of the medians. The effective size is what the sampler says, the median over the repeats.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch

from benchmarks._observations import duel_data
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp, sample_hyperparameters
from botorch_skewgp.observations import Binary, Numeric, Preference

NOISE = 0.3  # standard deviation of one value of a duel


def _duels(m: int, d: int) -> SkewGP:
    data = duel_data(m, NOISE, d)
    return SkewGP(data.X, Preference(data.pairs))


def _labels(n: int, d: int) -> SkewGP:
    X = torch.rand(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return SkewGP(X, Binary(torch.sin(4 * X).sum(-1) > 1))


def _numbers(n: int, d: int, relevant: int) -> SkewGP:
    """Numbers that depend on some of the inputs, with a noise of 0.1."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    return SkewGP(X, Numeric(torch.sin(4 * X[:, :relevant]).sum(-1) + noise))


CASES: dict[str, Callable[[], SkewGP]] = {
    "50 duels, 6 inputs": lambda: _duels(50, 6),
    "15 duels, 2 inputs": lambda: _duels(15, 2),
    "60 labels, 4 inputs": lambda: _labels(60, 4),
    "15 numbers, 10 inputs": lambda: _numbers(15, 10, relevant=2),
    "40 numbers, 20 inputs": lambda: _numbers(40, 20, relevant=3),
}


@functools.cache
def _warm_up() -> None:
    sample_hyperparameters(fit_skew_gp(CASES["50 duels, 6 inputs"]()))


def _run(case: str, seed: int) -> dict[str, Cell]:
    """Seconds of a fit, seconds of sampling after it, and the effective size of the draws."""
    _warm_up()
    model, began = CASES[case](), time.process_time()
    mll = fit_skew_gp(model)
    fitted = time.process_time()
    draws = sample_hyperparameters(mll, generator=torch.Generator().manual_seed(seed))
    return {
        "fit_s": fitted - began, "sampling_s": time.process_time() - fitted, "effective_size": draws.effective_size
    }  # fmt: skip


def _columns(runs: Group) -> dict[str, Cell]:
    fit, sampling, size = (runs.median(measure) for measure in MEASURES)
    return {"fit_s": fit, "sampling_s": sampling, "ratio_in_fits": sampling / fit, "effective_size": size}


MEASURES = ("fit_s", "sampling_s", "effective_size")
RACES = (Race("fully_bayesian", grid(case=CASES), [{}], range(5), _run, MEASURES, _columns),)

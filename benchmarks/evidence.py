"""Log evidence of probit classification: expectation propagation, and corrected, against bridge sampling.

The mean of ten runs of bridge sampling stands for the truth.
"""

from __future__ import annotations

import time

import torch

from benchmarks._observations import classification
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation


def _bridge(n: int, seed: int) -> dict[str, Cell]:
    """Of one run of bridge sampling, EP and draws included, and how far the approximations are from it."""
    problem = classification(n, seed=1)
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
    means = {name: runs.mean(name) for name in ("bridge", "standard_error", "ep_error", "corrected_error")}
    spread = float(runs.values("bridge").std()) if len(runs) > 1 else None
    return {**means, "sd_over_seeds": spread, "bridge_s": runs.median("bridge_s")}


MEASURES = ("bridge", "standard_error", "bridge_s", "ep_error", "corrected_error")
RACES = (Race("evidence", grid(n=(70, 200, 500, 1000)), [{}], range(10), _bridge, MEASURES, _of_bridge),)

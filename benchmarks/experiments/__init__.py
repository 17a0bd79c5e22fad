"""The papers' experiments; what the papers claim and what is done otherwise is on their page, docs/experiments.md."""

from __future__ import annotations

from benchmarks.experiments import (
    active_learning,
    draws,
    duels,
    information_scores,
    kernels,
    posteriors,
    safe_optimisation,
    unknown_constraint,
)

RACES = (
    *active_learning.RACES,
    *draws.RACES,
    *duels.RACES,
    *information_scores.RACES,
    *kernels.RACES,
    *posteriors.RACES,
    *safe_optimisation.RACES,
    *unknown_constraint.RACES,
)

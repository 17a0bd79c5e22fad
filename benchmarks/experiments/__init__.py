"""The papers' experiments; what the papers claim and what is done otherwise is on their page, docs/experiments.md."""

from __future__ import annotations

from benchmarks.experiments import classification, constraints, draws, optimisation, posteriors

MODULES = (classification, constraints, draws, optimisation, posteriors)
RACES = tuple(race for module in MODULES for race in module.RACES)

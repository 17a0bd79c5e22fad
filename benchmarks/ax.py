"""Ax experiments with trials that fail, labels and comparisons: `skewgp_generation_strategy` beside Ax's own strategy.

Both get the same budget on functions with known answers. Ax's strategy tries the centre first, and does not count
failed trials among its initial ones; ours takes Sobol points and counts all. What is scored is the true value of what
would be used: the best valid trial seen, or the arm that the strategy recommends where there are few numbers or none.

- `mixed_...`: the five problems of `benchmarks optuna` with floats, whole numbers and a category, 24 trials in batches
  of three. The first five are the same for both: Ax's does not begin with the centre here. Close trials are those
  chosen by a model that are within a thousandth of an earlier one in every coordinate.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Mapping
from typing import Any

from ax.utils.common.logger import set_ax_logger_levels

from benchmarks._ax_scenarios import SCENARIOS
from benchmarks._race import Group, Race, add_race_arguments, grid, hold_and_publish
from benchmarks._reporting import Cell

OURS, VIABILITY = "skewgp", "ax with AddExecutionViability"
STRATEGIES = ("ax", OURS, VIABILITY)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=12)
    parser.add_argument("--scenarios", nargs="*", choices=list(SCENARIOS), default=list(SCENARIOS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    set_ax_logger_levels(logging.ERROR)
    race = Race(
        "ax", grid(scenario=options.scenarios), grid(strategy=STRATEGIES), range(1 if options.quick else options.seeds),
        _run, ("score", "failed", "seconds", "close"), _columns,
        ["scores: lower is better; seconds of processor time for a whole experiment"],
    )  # fmt: skip
    hold_and_publish(options, race)


def _run(scenario: str, strategy: str, seed: int) -> Mapping[str, Cell] | list[Mapping[str, Cell]]:
    if strategy == VIABILITY and scenario != "crash_region":
        return []
    learns: dict[str, Any] = {"learns_failures": True} if strategy == VIABILITY else {}
    began = time.process_time()
    score, failed, *close = SCENARIOS[scenario][0](strategy == OURS, seed, **learns)
    spent = time.process_time() - began
    return {"score": score, "failed": failed, "seconds": spent, "close": close[0] if close else None}


def _columns(runs: Group) -> dict[str, Cell]:
    """Of ours and each other: the scores, and in how many runs ours is ahead."""
    theirs, ours = runs.beside("score", strategy=OURS)
    close = float(runs.values("close").sum())
    return {
        "seeds": len(runs), "score": SCENARIOS[runs.names["scenario"]][1], "median": runs.median("score"),
        "mean": runs.mean("score"), "worst": float(runs.values("score").max()), "failed_trials": runs.mean("failed"),
        "seconds": runs.mean("seconds"), "skewgp_ahead": int((ours < theirs).sum()) if len(ours) else None,
        "close_trials": close if close == close else None,
    }  # fmt: skip

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
import functools
import logging
import math
import statistics
import time
import warnings
from typing import NamedTuple

from ax.utils.common.logger import set_ax_logger_levels

from benchmarks._ax_scenarios import INITIAL, SCENARIOS, Scenario, crash_region
from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say
from benchmarks._runs import Runs

STEPS = "steps"


class Run(NamedTuple):
    """What came of one experiment."""

    score: float
    failed: float
    seconds: float
    close: float = math.nan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--seeds", type=int, default=12, help="number of repetitions")
    parser.add_argument("--scenarios", nargs="*", choices=[*SCENARIOS, STEPS], default=[*SCENARIOS, STEPS])


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    set_ax_logger_levels(logging.ERROR)
    warnings.simplefilter("ignore")
    num_seeds = 1 if options.quick else options.seeds
    runs = Runs("ax_runs", ("scenario", "strategy", "seed"), Run._fields, folder)
    for name in options.scenarios:  # a table for each: they take long, and are run one by one
        if name == STEPS:
            publish([_steps(num_seeds)], folder)
            continue
        for seed in range(num_seeds):
            for strategy, scenario in _strategies(name).items():
                runs.get((name, strategy, seed), functools.partial(_timed, scenario, seed))
        publish(_tables(name, runs), folder)


def _timed(scenario: Scenario, seed: int) -> Run:
    start = time.process_time()
    score, failed, *close = scenario(seed)
    say(f"seed {seed}: {score:.4g}, {failed} failed trials")
    return Run(score, failed, time.process_time() - start, *close)


def _strategies(name: str) -> dict[str, Scenario]:
    scenario, _ = SCENARIOS[name]
    strategies = {"ax": functools.partial(scenario, False), "skewgp": functools.partial(scenario, True)}
    if name == "crash_region":
        strategies["ax with AddExecutionViability"] = functools.partial(scenario, False, learns_failures=True)
    return strategies


def _tables(name: str, runs: Runs) -> list[Table]:
    """One scenario: the results of both strategies, and whether ours is no worse at the median and on average."""
    table = Table(
        f"ax_{name}",
        (
            "scenario",
            "strategy",
            "seeds",
            "score",
            "median",
            "mean",
            "worst",
            "failed_trials",
            "seconds",
            "skewgp_ahead",
            "close_trials",
        ),
        notes=[environment(), "scores: lower is better; seconds of processor time for a whole experiment"],
    )
    by_seed = {
        strategy: {
            row["seed"]: Run(*(float(row[field] or "nan") for field in Run._fields))
            for row in runs.rows
            if (row["scenario"], row["strategy"]) == (name, strategy)
        }
        for strategy in _strategies(name)
    }
    for strategy, of_seeds in by_seed.items():
        found, ours = list(of_seeds.values()), by_seed["skewgp"]
        values = [one.score for one in found]
        table.add(
            scenario=name,
            strategy=strategy,
            seeds=len(found),
            score=SCENARIOS[name][1],
            median=statistics.median(values),
            mean=statistics.mean(values),
            worst=max(values),
            failed_trials=statistics.mean(one.failed for one in found),
            seconds=statistics.mean(one.seconds for one in found),
            skewgp_ahead=None
            if strategy == "skewgp"
            else sum(seed in ours and ours[seed].score < one.score for seed, one in of_seeds.items()),
            close_trials=total if (total := sum(one.close for one in found)) == total else None,
        )
    return [table]


def _steps(num_seeds: int, num_trials: int = 25) -> Table:
    """The processor time of the trials that a model has chosen, in the crash region; both strategies in turns."""
    columns = ("strategy", "seeds", "trials_of_a_model", "seconds_each", "times_ax", "seconds_of_25_trials")
    table = Table("ax_steps", columns, notes=[environment(), "processor time of client.get_next_trials alone"])
    crash_region(True, 0, INITIAL + 3)  # what is done once: imports, compilation
    seconds: dict[bool, list[tuple[bool, float]]] = {False: [], True: []}
    for seed in range(num_seeds):
        for ours, spent in seconds.items():
            crash_region(ours, seed, num_trials, on_trial=lambda *entry, spent=spent: spent.append(entry))
    each = {ours: statistics.mean(time for by_model, time in spent if by_model) for ours, spent in seconds.items()}
    for ours, spent in seconds.items():
        table.add(
            strategy="skewgp" if ours else "ax",
            seeds=num_seeds,
            trials_of_a_model=sum(by_model for by_model, _ in spent),
            seconds_each=each[ours],
            times_ax=each[ours] / each[False],
            seconds_of_25_trials=sum(time for _, time in spent) / num_seeds,
        )
    return table

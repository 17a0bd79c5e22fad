"""Crashes in a mixed space: `SkewGPSampler` beside samplers that are told something in their place.

A loss of a float, a rate on a log scale, a whole number and a category, whose minimum of 0 lies a twentieth of the
range from where trials crash; a third of the space crashes. 30 trials, the first 10 at random. `SkewGPSampler` is told
that a trial failed. Optuna's samplers ignore failures, so a crash is told to them as the worst loss so far (`worst`),
or as that with a broken constraint beside kept ones of trials that worked (`constraint`). Scored is the least loss of a
trial that worked. Seconds are those of the processor, of choosing a trial that is not random.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import time
import warnings
from typing import NamedTuple

import optuna
from optuna.trial import TrialState

from benchmarks._mixed import THREE, MixedProblem, Parameter, Params
from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say
from benchmarks._runs import Runs
from benchmarks.optuna import OURS, SAMPLERS, STARTUP, _suggested

NUM_TRIALS = 30
BEST = {"a": (0.2, 0.3), "b": (0.7, 0.0), "c": (0.5, 0.15)}  # the best x of each category, and its loss


def _loss(params: Params) -> float:
    x, least = BEST[params["c"]]
    away = math.log10(params["rate"]) + 2
    return least + 4 * (params["x"] - x) ** 2 + 0.25 * away**2 + 0.1 * (params["k"] - 4) ** 2


def _crashes(params: Params) -> bool:
    rate = (math.log10(params["rate"]) + 4) / 4
    return params["x"] + rate > 1.25 or (params["c"] == "b" and params["k"] > 5)


PROBLEM = MixedProblem(
    {"x": Parameter(), "rate": Parameter(1e-4, 1.0, is_log=True), "k": Parameter(1, 6, is_whole=True), "c": THREE},
    _loss,
    _crashes,
)
WAYS = {
    OURS: (OURS, "failure"),
    "GPSampler, worst": ("GPSampler", "worst"),
    "GPSampler, constraint": ("GPSampler", "constraint"),
    "TPESampler, worst": ("TPESampler", "worst"),
    "TPESampler, constraint": ("TPESampler", "constraint"),
}


class Run(NamedTuple):
    """What came of one study."""

    regret: float
    failed: float
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--seeds", type=int, default=8, help="number of repetitions")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    runs = Runs("crashes_runs", ("way", "seed"), Run._fields, folder)
    seeds = range(1 if options.quick else options.seeds)
    found: dict[str, list[Run]] = {way: [] for way in WAYS}
    for seed in seeds:
        for way in WAYS:
            one = Run(*runs.get((way, seed), functools.partial(_study, way, seed)))
            say(f"{way}, seed {seed}: {one.regret:.3g}, {one.failed:.0f} failed, {one.seconds:.2f} s a trial")
            found[way].append(one)
    columns = ("way", "seeds", "median", "worst", "ahead_of_it", "failed_trials", "seconds_a_trial")
    table = Table("crashes", columns, notes=[environment(), "least loss; ahead_of_it: seeds in which ours has less"])
    for way, of_way in found.items():
        table.add(
            way=way,
            seeds=len(of_way),
            median=statistics.median(one.regret for one in of_way),
            worst=max(one.regret for one in of_way),
            ahead_of_it=None
            if way == OURS
            else sum(ours.regret < one.regret for ours, one in zip(found[OURS], of_way, strict=True)),
            failed_trials=statistics.mean(one.failed for one in of_way),
            seconds_a_trial=statistics.mean(one.seconds for one in of_way),
        )
    publish([table], folder)


def _study(way: str, seed: int) -> Run:
    sampler, told = WAYS[way]
    study, seconds, losses, failed = optuna.create_study(sampler=SAMPLERS[sampler](seed)), 0.0, list[float](), 0
    for number in range(NUM_TRIALS):
        trial, start = study.ask(), time.process_time()
        params = {name: _suggested(trial, name, entry) for name, entry in PROBLEM.parameters.items()}
        seconds += (time.process_time() - start) * (number >= STARTUP)
        crashed = PROBLEM.crashes(params)
        failed += crashed
        if told == "constraint":
            trial.set_constraint("works", 1.0 if crashed else -1.0)
        if not crashed:
            losses.append(PROBLEM.regret(params))
            study.tell(trial, losses[-1])
        elif told == "failure" or not losses:
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, max(losses))
    return Run(min(losses, default=math.inf), failed, seconds / (NUM_TRIALS - STARTUP))

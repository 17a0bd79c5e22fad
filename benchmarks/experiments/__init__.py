"""The papers' experiments, one command each: `experiments list`, `experiments NAME`, `experiments all`.

Every experiment is a file of its own. A trial, seeded by its number, has cases, such as every method on every function.
The results of each are rows of a file, and what is there is not repeated. Tables and pictures are made of all of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks._reporting import RESULTS
from benchmarks.experiments import (
    active_learning,
    draws_against_size,
    information_scores,
    kernels,
    mixed_optimisation,
    posteriors,
    preferential_optimisation,
    safe_optimisation,
    sampling_time,
    unknown_constraint,
)
from benchmarks.experiments._experiment import Experiment, run_experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        active_learning,
        draws_against_size,
        information_scores,
        kernels,
        mixed_optimisation,
        posteriors,
        preferential_optimisation,
        safe_optimisation,
        sampling_time,
        unknown_constraint,
    )
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("name", choices=["list", "all", *EXPERIMENTS])
    parser.add_argument("--trials", type=int, help="the papers' number if not given")
    parser.add_argument("--only", nargs="+", default=[], help="no other functions, sets or methods than these")
    parser.add_argument("--smoke", action="store_true", help="the smallest that runs; nothing is stored")
    parser.add_argument("--processes", type=int, default=1, help="cases at a time, of one thread each")
    parser.add_argument("--output", type=Path, default=RESULTS / "experiments", help="folder of tables and pictures")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    if options.name == "list":
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name}: {experiment.figure}, {experiment.trials} trials. {experiment.claim}")
        return
    for name in EXPERIMENTS if options.name == "all" else [options.name]:
        folder = None if options.smoke else options.output
        run_experiment(EXPERIMENTS[name], options.trials, options.smoke, options.processes, folder, options.only)

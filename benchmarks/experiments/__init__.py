"""The papers' experiments, one command each: `experiments list`, `experiments NAME`, `experiments all`.

Every experiment is a file of its own. A trial, seeded by its number, has cases, such as every method on every function.
The results of each are rows of a file, and what is there is not repeated. Tables and pictures are made of all of them.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks._reporting import RESULTS
from benchmarks.experiments._experiment import Experiment, run_experiment

NAMES = (
    "active_learning",
    "draws_against_size",
    "fixed_hyperparameters",
    "information_scores",
    "kernels",
    "mixed_optimisation",
    "posteriors",
    "preferential_optimisation",
    "pseudo_points",
    "safe_optimisation",
    "sampling_time",
    "unknown_constraint",
)
EXPERIMENTS: dict[str, Experiment] = {name: import_module(f"{__name__}.{name}").EXPERIMENT for name in NAMES}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("name", choices=["list", "all", *EXPERIMENTS])
    parser.add_argument("--trials", type=int, help="the papers' number if not given")
    parser.add_argument(
        "--only", nargs="+", default=[], help="no other functions, sets or methods than these; not in a smoke test"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="the smallest that runs, by all methods; nothing is stored"
    )
    parser.add_argument("--processes", type=int, default=1, help="cases at a time, of one thread each")
    parser.add_argument("--output", type=Path, default=RESULTS / "experiments", help="folder of tables and pictures")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    if options.name == "list":
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name}: {experiment.figure}, {experiment.trials} trials. {experiment.claim}")
            print(f"    Deviations: {experiment.deviations}")
        return
    chosen = [*EXPERIMENTS.values()] if options.name == "all" else [EXPERIMENTS[options.name]]
    known = {value for experiment in chosen for case in experiment.cases for value in case.values()}
    if unknown := sorted({*options.only} - known):
        raise SystemExit(f"--only: there is no {', '.join(unknown)}; there are {', '.join(sorted(known))}.")
    if options.trials is not None and options.trials < 1:
        raise SystemExit(f"--trials must be at least 1; got {options.trials}.")
    for experiment in chosen:
        folder = None if options.smoke else options.output
        run_experiment(experiment, options.trials, options.smoke, options.processes, folder, options.only)

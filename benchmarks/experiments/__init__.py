"""The papers' experiments, one command each: `experiments NAME`, `experiments all`.

Every experiment is a race in a file of its own. What the papers claim and what is done otherwise is on its page.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from benchmarks._race import add_race_arguments
from benchmarks._reporting import RESULTS
from benchmarks.experiments._experiment import Experiment

NAMES = (
    "active_learning", "draws_against_size", "fixed_hyperparameters", "information_scores", "kernels",
    "mixed_optimisation", "posteriors", "preferential_optimisation", "pseudo_points", "safe_optimisation",
    "sampling_time", "unknown_constraint",
)  # fmt: skip
EXPERIMENTS: dict[str, Experiment] = {name: import_module(f"{__name__}.{name}").EXPERIMENT for name in NAMES}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("name", choices=["all", *NAMES])
    add_race_arguments(parser, seeds=0)  # 0 for as many as in the paper


def run(options: argparse.Namespace) -> None:
    """Run it."""
    if not options.quick and options.output is None:
        options.output = RESULTS / "experiments"
    for name in NAMES if options.name == "all" else [options.name]:
        EXPERIMENTS[name].hold(options)

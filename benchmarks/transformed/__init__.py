"""Bayesian transformed Gaussian processes beside warped ones, Gaussian ones and outcome transforms.

The error of nodes, and of sparse grids, against a fine reference; predictions of IntSine, of the six-hump camel, of
synthetic sets of known warping and of diabetes measurements; how many evaluations bounds of quantiles save, and what
leaving one out costs in closed form and by refits; optimisation of functions whose values spread over orders of
magnitude. Baselines of maximum likelihood are the same code with one node, the mode.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

from benchmarks._race import add_race_arguments
from benchmarks._reporting import Table, environment, load_average, prepare, publish
from benchmarks.experiments._experiment import Experiment
from benchmarks.transformed.costs import bounds, leave_one_out
from benchmarks.transformed.loops import LOOPS
from benchmarks.transformed.predictions import CAMEL, INT_SINE, SETS_RACE, flat_likelihoods
from benchmarks.transformed.quadrature import QUADRATURE
from benchmarks.transformed.sparse_grids import FIGURE_3

EXPERIMENTS: dict[str, Experiment] = {
    "quadrature": QUADRATURE, "figure_3": FIGURE_3, "int_sine": INT_SINE, "camel": CAMEL, "sets": SETS_RACE,
    "loops": LOOPS,
}  # fmt: skip
TABLES: dict[str, Callable[[list[str]], Table]] = {
    "bounds": bounds, "leave_one_out": leave_one_out, "flat": flat_likelihoods,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=0)  # 0 for as many as are stored
    parser.add_argument(
        "--parts", nargs="+", choices=[*EXPERIMENTS, *TABLES], default=[*EXPERIMENTS, *TABLES], help="what to run"
    )


def run(options: argparse.Namespace) -> None:
    """Run it; each part has a table of its own."""
    folder = prepare(options)
    warnings.simplefilter("ignore")
    for part in options.parts:
        if part in EXPERIMENTS:
            EXPERIMENTS[part].hold(options)
        elif not options.quick:
            publish([TABLES[part]([environment(), f"load average at the start {load_average()}"])], folder)

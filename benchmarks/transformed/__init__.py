"""Bayesian transformed Gaussian processes beside warped ones, Gaussian ones and outcome transforms.

The error of nodes, and of sparse grids, against a fine reference; predictions of IntSine, of synthetic sets of known
warping and of diabetes measurements; what a model costs, how many evaluations bounds of quantiles save, and what
leaving one out costs in closed form and by refits; optimisation of functions whose values spread over orders of
magnitude. Baselines of maximum likelihood are the same code with one node, the mode.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish
from benchmarks.transformed.costs import bounds, costs, leave_one_out
from benchmarks.transformed.loops import loops_tables
from benchmarks.transformed.methods import WARPINGS
from benchmarks.transformed.predictions import camel_table, flat_likelihoods, int_sine_table, sets_tables
from benchmarks.transformed.quadrature import quadrature_table
from benchmarks.transformed.sparse_grids import figure_3

PARTS = ("quadrature", "figure_3", "cost", "int_sine", "camel", "flat", "sets", "loops")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--draws", type=int, default=20, help="noise draws of IntSine")
    parser.add_argument("--warpings", nargs="+", choices=list(WARPINGS), default=list(WARPINGS), help="of IntSine")
    parser.add_argument("--sets", type=int, default=5, help="draws of each other set")
    parser.add_argument("--seeds", type=int, default=10, help="paired runs of each optimisation")
    parser.add_argument("--nodes", type=int, default=64, help="nodes in a round")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to run; all by default")
    parser.add_argument(
        "--loops", action="store_const", const=["loops"], dest="parts", help="the same as --parts loops"
    )


def run(options: argparse.Namespace) -> None:
    """Run it; each part has tables of its own."""
    folder = prepare(options)
    warnings.simplefilter("ignore")
    for part in options.parts:
        notes = [environment(), f"load average at the start {load_average()}", f"{options.nodes} nodes in a round"]
        publish(_tables(part, notes, options, folder), folder)


def _tables(part: str, notes: list[str], options: argparse.Namespace, folder: Path | None) -> list[Table]:
    nodes = options.nodes
    if part == "quadrature":
        return [quadrature_table(notes, *((1, 1) if options.quick else (options.sets, 2)), folder)]
    if part == "figure_3":
        return [figure_3(notes, range(2, 3 if options.quick else 6), folder)]
    if part == "cost":
        return [costs(notes), bounds(notes, 1 if options.quick else 10), leave_one_out(notes)]
    if part == "int_sine":
        return [int_sine_table(notes, 2 if options.quick else options.draws, options.warpings, nodes, folder)]
    if part == "camel":
        return [camel_table(notes, nodes)]
    if part == "flat":
        return [flat_likelihoods(notes)]
    if part == "sets":
        return sets_tables(notes, 2 if options.quick else options.sets, nodes, folder)
    return loops_tables(notes, 1 if options.quick else options.seeds, nodes, folder)

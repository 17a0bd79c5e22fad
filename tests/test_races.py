"""Races: what is stored is not run again, tables are of pairs, and those on the pages are of the stored runs."""

import argparse
import csv
import shutil

import pytest
import torch

from benchmarks import load
from benchmarks._race import Group, Race, grid, mean_and_error, verdict
from benchmarks._reporting import RESULTS
from benchmarks.pairs import Problem


def columns(runs: Group) -> dict:
    mine, theirs = runs.beside("error", method="plain")
    less, se = mean_and_error(mine - theirs)
    return {
        "runs": len(runs),
        "error": runs.mean("error"),
        "median": runs.median("error"),
        "less": less,
        "se": se,
    }


def race(ran: list, seeds: range = range(2), methods: tuple = ("plain", "clever")) -> Race:
    def run(size: int, method: str, seed: int) -> dict | list:
        ran.append((size, method, seed))
        if size == 3 and method == "clever":
            return []
        return {"error": (10.0 * size + seed**2) / (1 if method == "plain" else 2), "note": torch.rand(1).item()}

    return Race("small", grid(size=[1, 3]), grid(method=methods), seeds, run, ("error", "note"), columns)


def test_runs_are_stored_and_told_in_pairs(tmp_path):
    ran: list = []
    rows = race(ran).hold(tmp_path)
    assert ran == [(size, method, seed) for seed in range(2) for size in (1, 3) for method in ("plain", "clever")]
    table = race([]).table(rows)
    (plain, clever, other) = table.rows
    assert (plain["size"], plain["method"], plain["runs"], plain["error"]) == ("1", "plain", 2, 10.5)
    assert clever["less"] == pytest.approx(-(10 + 11) / 4)
    assert clever["se"] == pytest.approx(0.25)  # of differences -5 and -5.5
    assert (other["size"], other["method"], other["median"]) == ("3", "plain", 30.5)
    again: list = []
    assert race(again, seeds=range(3), methods=("plain",)).hold(tmp_path)[: len(rows)] == rows
    assert again == [(1, "plain", 2), (3, "plain", 2)]


def test_nothing_begins_after_the_time(tmp_path):
    ran: list = []
    race(ran).hold(tmp_path, seconds=0)
    assert ran == []


def test_random_numbers_depend_on_the_seed_alone(tmp_path):
    first, second = (race([]).hold(None), race([], seeds=range(1, 2)).hold(None))
    assert [row for row in first if row["seed"] == "1"] == second


def test_verdicts_are_level_within_two_errors():
    assert [verdict(*pair) for pair in ((-0.3, 0.1), (0.2, 0.1), (0.21, 0.1), (-1.0, float("nan")))] == [
        "ahead", "level", "behind", "level",
    ]  # fmt: skip
    assert mean_and_error(torch.tensor([1.0, 3.0])) == (2.0, 1.0)


@pytest.mark.parametrize("name", ["items --only items_race", "questions_panel"])
def test_tables_are_those_of_the_stored_runs(name, tmp_path):
    """Of races that tables on the pages are of."""
    command, *arguments = name.split()
    benchmark, parser = load(command), argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    for path in RESULTS.glob(f"{command}*_runs.csv"):
        shutil.copy(path, tmp_path)
    benchmark.run(
        parser.parse_args([*arguments, "--seconds=0", f"--output={tmp_path}", f"--threads={torch.get_num_threads()}"])
    )
    (made,) = set(tmp_path.glob("*.csv")) - set(tmp_path.glob("*_runs.csv"))
    found, stored = (
        list(csv.DictReader(line for line in path.read_text().splitlines() if line[0] != "#"))
        for path in (made, RESULTS / made.name)
    )
    assert [{name: row[name] for name in stored[0]} for row in found] == stored


@pytest.mark.parametrize("seed", [1, 2])  # bumps and a standard function
def test_regret_of_pairs_is_nothing_at_the_best_point_and_one_on_average(seed, generator):
    problem, other = Problem("2 to 6", seed, 0), Problem("2 to 6", seed + 12, 0)
    X = torch.rand(5_000, problem.dim, generator=generator, dtype=torch.double)
    regret = (problem.best - problem.function(X)) / (problem.best - problem.mean)
    assert regret.min() > 0
    assert float(regret.mean()) == pytest.approx(1, abs=5 * float(regret.std()) / len(X) ** 0.5)
    assert problem.regret(X[0]) == pytest.approx(float(regret[0]))
    assert problem.name == other.name
    assert not torch.equal(problem.function(X), other.function(X))  # a new function for each seed


def test_moved_functions_keep_their_known_maximum():
    problem = Problem("10", 2, 0)
    assert problem.name == "standard 10"
    assert min(abs(problem.best - known) for known in (0.0, 391.6616570377142)) < 1e-6  # of Levy and Styblinski-Tang

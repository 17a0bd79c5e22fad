"""Races: what is stored is not run again, tables are of pairs, and those on the pages are of the stored runs."""

import argparse
import importlib
import math
import re
import shutil
import subprocess
from dataclasses import replace
from random import Random

import pytest
import torch

from benchmarks import descriptions, load
from benchmarks._mixed import MIXED_PROBLEMS, Parameter
from benchmarks._process import apart
from benchmarks._race import Contest, Group, Race, grid, mean_and_error, verdict
from benchmarks._reporting import RESULTS, read
from benchmarks.pairs import Problem


def columns(runs: Group) -> dict:
    less, se = runs.less("error", method="plain")
    return {"runs": len(runs), "error": runs.mean("error"), "median": runs.median("error"), "less": less, "se": se}


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
    table = race([]).tables(rows)[0]
    (plain, clever, other) = table.rows
    assert (plain["size"], plain["method"], plain["runs"], plain["error"]) == ("1", "plain", 2, 10.5)
    assert clever["less"] == pytest.approx(-(10 + 11) / 4)
    assert clever["se"] == pytest.approx(0.25)  # of differences -5 and -5.5
    assert (other["size"], other["method"], other["median"]) == ("3", "plain", 30.5)
    floored = replace(race([]), columns=lambda runs: {"less": runs.less("error", 8.0, method="plain")[0]})
    assert floored.tables(rows)[0].rows[1]["less"] == pytest.approx((math.log10(8 / 10) + math.log10(8 / 11)) / 2)
    again: list = []
    assert race(again, seeds=range(3), methods=("plain",)).hold(tmp_path)[: len(rows)] == rows
    assert again == [(1, "plain", 2), (3, "plain", 2)]


def options_of(contest: Contest, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    contest.add_arguments(parser)
    return parser.parse_args([*arguments, f"--threads={torch.get_num_threads()}"])


def test_one_command_line_selects_races_cases_and_methods(tmp_path):
    ran: list = []
    contest = Contest([race(ran), replace(race(ran), name="other")])
    contest.run(options_of(contest, "--only", "small", "1", "plain", "--seeds=1", f"--output={tmp_path}"))
    assert ran == [(1, "plain", 0)]
    assert {path.name for path in tmp_path.iterdir()} == {"small.csv", "small_runs.csv"}
    contest.run(options_of(contest, "--only", "clever", "--quick"))
    assert ran[1:] == 2 * [(1, "clever", 0)]
    with pytest.raises(SystemExit):
        options_of(contest, "--only", "stupid")
    other = Race("large", grid(size=[9]), grid(method=["plain"]), range(1), lambda size, method, seed: {}, ())
    contest = Contest([race(ran), other])
    contest.run(options_of(contest, "--only", "9", "--quick"))
    assert len(ran) == 3
    later = Contest([race(ran, seeds=range(5, 9))])
    later.run(options_of(later, "--only", "1", "plain", "--seeds=2", f"--output={tmp_path / 'later'}"))
    assert ran[3:] == [(1, "plain", 5), (1, "plain", 6)]  # the first of its own seeds
    small = replace(race(ran), cases=[{"size": 1, "kind": "a"}, {"size": 2, "kind": "b"}])
    with pytest.raises(ValueError, match="Nothing in the race 'small' has all of the names 1, b"):
        small.only(["1", "b"])


def test_stored_rows_of_what_did_not_run_stay(tmp_path):
    stored = "# run at commit aaaaaaa\nsize,method,error,gone\n1,plain,9,1\n1,old,7,1\n3,plain,8,1\n"
    (tmp_path / "small.csv").write_text(stored)
    contest = Contest([race([])])
    contest.run(options_of(contest, "--only", "1", "plain", "--seeds=1", f"--output={tmp_path}"))
    _, rows = read(tmp_path / "small.csv")
    found = [[row[name] for name in ("size", "method", "error")] for row in rows]
    assert found == [["1", "plain", "10"], ["1", "old", "7"], ["3", "plain", "8"]]
    assert rows[-1]["commit"] == "aaaaaaa"


def test_small_runs_have_arguments_of_their_own():
    def run(method: str, seed: int, trials: int = 80) -> dict:
        return {"trials": trials}

    plain = Race("small", [{}], grid(method=["plain"]), range(3), run, ("trials",), quick={"trials": 2})
    (row,) = rows = plain.small().hold(None)
    assert (row["trials"], row["seed"]) == ("2", "0")
    assert plain.tables(rows)[0].rows[0]["trials"] == 2


def test_what_was_not_measured_stays_empty():
    def run(seed: int) -> dict:
        return {"found": 1.0, "note": "slow"}

    not_all = Race("small", [{}], [{}], range(2), run, ("found", "missing", "note"))
    (row,) = not_all.tables(not_all.hold(None))[0].rows
    assert (row["found"], row["missing"], row["note"]) == (1.0, None, "slow")


def test_several_tables_of_the_same_runs_and_of_pooled_ones():
    def pairs(runs: Group) -> list:
        return [{"of": seed, "error": pair[0]["error"]} for seed, pair in enumerate(runs.pairs(method="plain"))]

    def pooled(rows: list) -> list:
        return [*rows, *({**row, "size": "all", "seed": f"{row['size']} {row['seed']}"} for row in rows)]

    two = replace(race([]), others={"pairs": pairs}, told=pooled)
    first, second = two.tables(two.hold(None))
    assert [row["runs"] for row in first.rows if row["size"] == "all"] == [4, 2]
    assert [(row["size"], row["of"]) for row in second.rows] == [("1", 0), ("1", 1), ("all", 0), ("all", 1)]
    assert first.columns[-1] == second.columns[-1] == "commit"
    one = race([], methods=("plain",), seeds=range(1))
    (row,) = replace(one, cases=grid(size=[1]), columns=None).tables(one.hold(None)[:1])[0].rows
    assert row["error"] == 10


def test_a_ratio_of_sums_has_the_error_of_independent_runs(generator):
    numbers = torch.randint(1, 9, (400,), generator=generator).double()
    sums = 0.3 * numbers + 0.5 * torch.randn(400, generator=generator, dtype=torch.double)
    pairs = enumerate(zip(sums.tolist(), numbers.tolist(), strict=True))
    rows = {str(i): {"sum": str(a), "number": str(b)} for i, (a, b) in pairs}
    value, error = Group({"size": 1}, {("1",): rows}).ratio("sum", "number")
    assert value == pytest.approx(float(sums.sum() / numbers.sum()))
    assert error == pytest.approx(0.5 * 400**0.5 / float(numbers.sum()), rel=0.1)


def test_commands_on_the_pages_are_ones_there_are():
    root = RESULTS.parents[1]
    paths = [root / "README.md", *(root / "docs").glob("*.md"), *(root / "docs/measurements").glob("*.md")]
    texts = [path.read_text() for path in (*paths, *(root / "tutorials").glob("*.ipynb"))]
    found = sorted(set(re.findall(r"`python -m benchmarks (\w+)([^`]*)`", " ".join(texts))))
    assert len(found) > 20
    assert {name for name, _ in found} <= descriptions().keys()
    for name, arguments in found:
        if arguments:
            if name in ("ax", "optuna"):
                pytest.importorskip(name)
            contest, parser = load(name), argparse.ArgumentParser()
            contest.add_arguments(parser)
            parser.parse_args(arguments.split())


def test_nothing_begins_after_the_time(tmp_path):
    ran: list = []
    race(ran).hold(tmp_path, seconds=0)
    assert ran == []


def test_random_numbers_depend_on_the_seed_alone(tmp_path):
    first, second = (race([]).hold(None), race([], seeds=range(1, 2)).hold(None))
    assert [row for row in first if row["seed"] == "1"] == second


def test_verdicts_are_level_within_two_errors():
    found = [verdict(*pair) for pair in ((-0.3, 0.1), (0.2, 0.1), (0.21, 0.1), (-1.0, math.nan))]
    assert found == ["ahead", "level", "behind", "level"]
    assert mean_and_error(torch.tensor([1.0, 3.0])) == (2.0, 1.0)


@pytest.mark.parametrize("name", ["items --only items_race", "questions --only questions_panel"])
def test_tables_are_those_of_the_stored_runs(name, tmp_path):
    """Of races that tables on the pages are of."""
    command, *arguments = name.split()
    benchmark, parser = load(command), argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    for path in RESULTS.glob(f"{command}*_runs.csv"):
        shutil.copy(path, tmp_path)
    options = ["--seconds=0", f"--output={tmp_path}", f"--threads={torch.get_num_threads()}"]
    benchmark.run(parser.parse_args([*arguments, *options]))
    (made,) = set(tmp_path.glob("*.csv")) - set(tmp_path.glob("*_runs.csv"))
    found, stored = (read(path)[1] for path in (made, RESULTS / made.name))
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


@pytest.mark.parametrize(
    ("name", "best"),
    [
        ("bowls", {"x": 0.65, "y": 0.35, "k": 4, "c": "b"}),
        ("deceptive", {"x": 0.65, "y": 0.35, "k": 4, "c": "b"}),
        ("branin", {"x": 0.12707, "k": 11, "c": "b"}),
        ("network", {"learning_rate": 1e-2, "dropout": 0.5, "layers": 5, "optimizer": "momentum"}),
        ("hartmann", {"x": 0.19472, "y": 0.15074, "z": 0.49018, "i": 2, "j": 3, "c": "c"}),
    ],
)
def test_mixed_problems_have_a_minimum_of_nothing(name, best):
    problem, draws = MIXED_PROBLEMS[name], Random(0)

    def draw(entry: Parameter) -> object:
        if entry.categories:
            return draws.choice(entry.categories)
        if entry.is_whole:
            return draws.randint(int(entry.low), int(entry.high))
        if entry.is_log:
            return entry.low * (entry.high / entry.low) ** draws.random()
        return draws.uniform(entry.low, entry.high)

    assert 0 <= problem.regret(best) < 1e-5
    assert not problem.crashes(best)
    first, *_ = best
    closer = 1.005 if problem.parameters[first].is_log else 1.001
    assert problem.close(best | {first: closer * best[first]}, [best])
    assert not problem.close(best | {first: 1.02 * best[first]}, [best])
    regrets = [problem.regret({key: draw(entry) for key, entry in problem.parameters.items()}) for _ in range(2000)]
    assert min(regrets) > 0


def test_a_process_of_its_own_tells_what_it_found_and_why_no_more(tmp_path, monkeypatch):
    (tmp_path / "apart_cases.py").write_text(
        "from benchmarks._process import tell\n"
        "def fails(number):\n    tell({'found': 1})\n    tell({'found': number})\n    raise ValueError('no more')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    cases = importlib.import_module("apart_cases")
    assert apart(cases.fails, 3) == {"found": 3, "why": "ValueError: no more"}


def test_a_process_may_end_well_or_take_too_long(monkeypatch):
    told = subprocess.CompletedProcess([], 0, 'warned\nRESULT {"found": 6}\n', "")
    monkeypatch.setattr(subprocess, "run", lambda command, **kwargs: told)
    assert apart(race, 3) == {"found": 6}

    def takes_too_long(command: list, timeout: float, **kwargs) -> None:
        raise subprocess.TimeoutExpired(command, timeout, output=b'RESULT {"found": 3}\n')

    monkeypatch.setattr(subprocess, "run", takes_too_long)
    assert apart(race, 3, limit=20) == {"found": 3, "why": "not done in 20 s"}

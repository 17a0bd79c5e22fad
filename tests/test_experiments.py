"""The papers' experiments run, go on where they were, and find what can be found another way."""

import csv

import pytest
import torch

from benchmarks._reporting import Table
from benchmarks.experiments import EXPERIMENTS, safe_optimisation
from benchmarks.experiments._experiment import Experiment, paired, run_experiment


def counting(done: list[int]) -> Experiment:
    def trial(number: int, smoke: bool) -> list[dict[str, str]]:
        done.append(number)
        return [{"method": method, "value": str(number)} for method in ("a", "b")]

    def tables(rows):
        table = Table("counting", ("total",))
        table.add(total=sum(int(row["value"]) for row in rows))
        return [table]

    return Experiment(
        "counting",
        "figure 0",
        "",
        5,
        ("method", "value"),
        trial,
        tables,
        lambda ax, rows: ax.plot([0, 1], label="a line"),
    )


def test_trials_that_are_there_are_not_repeated(tmp_path, capsys):
    done: list[int] = []
    run_experiment(counting(done), 2, False, 1, tmp_path)
    run_experiment(counting(done), None, False, 1, tmp_path)
    assert done == [0, 1, 2, 3, 4]
    with (tmp_path / "counting_runs.csv").open() as file:
        assert [(row["trial"], row["method"]) for row in csv.DictReader(file)] == [
            (str(number), method) for number in range(5) for method in ("a", "b")
        ]
    assert (tmp_path / "counting.csv").read_text().splitlines()[-1] == "20"
    run_experiment(counting(done), 1, False, 1, tmp_path)  # of fewer trials
    assert (tmp_path / "counting.csv").read_text().splitlines()[-1] == "0"


def test_a_smoke_test_stores_nothing(tmp_path, capsys):
    done: list[int] = []
    run_experiment(counting(done), None, True, 1, None)
    assert done == [0]
    assert list(tmp_path.iterdir()) == []


def test_paired_differences():
    mean, error = paired([1.0, 2.0, 4.0])
    assert mean == pytest.approx(7 / 3)
    assert error == pytest.approx((7 / 3 / 3) ** 0.5)  # variance 7 / 3


def test_safe_functions_are_valid_at_the_start():
    X = torch.linspace(-5, 5, 51, dtype=torch.float64).unsqueeze(-1)
    for number in range(5):
        g = safe_optimisation._function(number, X)
        assert g[25] >= 0
        assert torch.equal(g, safe_optimisation._function(number, X))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_run(name, capsys):
    run_experiment(EXPERIMENTS[name], None, True, 1, None)
    assert EXPERIMENTS[name].figure in capsys.readouterr().out

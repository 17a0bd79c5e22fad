"""The papers' claims: their verdicts follow from the stored runs, by the stated tests."""

import csv

import numpy as np
import pandas as pd
import pytest

from benchmarks import claims
from benchmarks._reporting import RESULTS
from benchmarks.claims import OF_CLAIMS, Stored, Value, answered, beyond, paired, side, signed_rank, within

ROWS = {row["claim"]: row for row in claims.claims()}


def test_every_claim_has_an_answer():
    assert {*ROWS} == {*OF_CLAIMS}
    assert all(row[column] for row in ROWS.values() for column in row)


@pytest.mark.parametrize("name", ROWS)
def test_stored_answers_are_those_of_the_stored_runs(name):
    with (RESULTS / "experiments" / "claims.csv").open(encoding="utf-8") as file:
        stored = {row["claim"]: row for row in csv.DictReader(line for line in file if line[0] != "#")}
    assert answered(ROWS[name]) == stored[name]


@pytest.mark.parametrize(
    ("claim", "file", "chosen", "column", "changed", "verdict"),
    [
        ("violations", "experiments/safe_optimisation_runs", {"method": "SafeOpt, classifier"}, "violations", 0.75,
         "holds"),
        ("skewed_validity", "experiments/posteriors_runs", {"method": "SkewGP"}, "skewness", 0.01, "the reverse holds"),
        ("duels_seconds", "experiments/preferential_optimisation_runs", {"method": "PairwiseGP, UCB"},
         "seconds_per_step", 9.0, "holds"),
        ("lin_ess_converges", "experiments/sampling_time_runs", {"method": "LIN-ESS"}, "r_hat", 1.1, "holds"),
        ("diverse_ep", "experiments/active_learning_runs", {"method": "EP"}, "diversity", 2.0, "the reverse holds"),
        ("scores_laplace", "experiments/information_scores_runs", {"method": "Laplace"}, "score", 2.0,
         "the reverse holds"),
        ("hull", "transformed_bounds", {"bounds": "hull"}, "evaluations_per_quantile", 12.0, "does not hold"),
    ],
)  # fmt: skip
def test_a_wrong_number_changes_the_verdict(tmp_path, claim, file, chosen, column, changed, verdict):
    (tmp_path / "experiments").mkdir()
    frame = pd.read_csv(RESULTS / f"{file}.csv", comment="#")
    rows = np.logical_and.reduce([frame[name] == value for name, value in chosen.items()])
    assert rows.any()
    assert answered(ROWS[claim])["verdict"] != verdict
    frame[column] = frame[column].astype(float)
    frame.loc[rows, column] = changed
    frame.to_csv(tmp_path / f"{file}.csv", index=False)
    assert answered(ROWS[claim], tmp_path)["verdict"] == verdict


def test_differences_are_of_pairs():
    frame = pd.DataFrame(
        {"method": ["a", "a", "a", "b", "b"], "seed": [0, 1, 2, 1, 0], "regret": [1.0, 5.0, 100.0, 3.0, 0.0]}
    )
    value = paired(frame, "regret", "a", "b")
    assert value == Value("", 1.5, pytest.approx(0.5))


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([(-3.0, 1.0), (-2.1, 1.0)], "holds"),
        ([(-3.0, 1.0), (-1.9, 1.0)], "in part, 1 of 2"),
        ([(-1.0, 1.0), (1.9, 1.0)], "level"),
        ([(-1.0, 1.0), (2.1, 1.0)], "does not hold"),
        ([(3.0, 1.0), (2.1, 1.0)], "the reverse holds"),
    ],
)
def test_verdicts_of_two_errors(values, verdict):
    assert beyond([Value("", *value) for value in values], -1).verdict == verdict


def test_sides_of_a_bound():
    assert side(Value("", 0.6, 0.04), 1, 0.5) == 1
    assert side(Value("", 0.6, 0.06), 1, 0.5) == 0
    assert side(Value("", 0.3, 0.06), 1, 0.5) == -1


def test_values_within_errors():
    assert within([Value("", 1.9, 1.0), Value("", -1.9, 1.0)]).verdict == "holds"
    assert within([Value("", 1.9, 1.0), Value("", -2.1, 1.0)]).verdict == "in part, 1 of 2"


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [([0.05] * 8, "holds"), ([-0.05] * 8, "the reverse holds"), ([0.001, -0.002] * 4, "level"), ([0.05], "undecided")],
)
def test_signed_rank(differences, verdict):
    assert signed_rank(np.array(differences)).verdict == verdict


def test_signed_rank_of_one_difference_in_closed_form():
    """The weight `w` of the difference is uniform on (0, 1). Half of it is above the rope: pairs above the rope weigh
    `w^2 + 2 w (1 - w)`, and those within it `(1 - w)^2`, which is less if `w > 1 - 2^-1/2`.
    """
    text = signed_rank(np.array([0.05])).text
    better = float(text.split()[1].rstrip(","))
    assert better == pytest.approx(2**-0.5, abs=4 * 0.5 / claims.NUM_SAMPLES**0.5 + 5e-4)


def test_commits_are_those_of_the_rows():
    stored = Stored()
    runs = stored.experiment("pseudo_points", method="learned")
    assert [*stored.commits] == [*dict.fromkeys(commit for text in runs["commit"] for commit in text.split())]

"""Observations: what all kinds share, counts, comparisons, what is taken, and errors that name the argument."""

import math
from dataclasses import fields, replace
from itertools import product
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from kind_cases import EVERY, TRAIN_X
from torch import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    GradedPreference,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)

INF, NAN = math.inf, math.nan
EYE = torch.eye(2, dtype=torch.float64)
X = TRAIN_X / 3


def test_fields_cannot_be_set():
    assert all(type(entry).__dataclass_params__.frozen for entry in EVERY.values())


@pytest.mark.parametrize("name", EVERY)
def test_points_needed_and_shift(name):
    observation = EVERY[name]
    moved = observation.shift(10)
    assert type(moved) is type(observation)
    before, after = (getattr(entry, observation.index_field) for entry in (observation, moved))
    assert observation.num_points_needed == int(before.max()) + 1
    assert moved.num_points_needed == int(before.max()) + 11
    assert torch.equal(after[before >= 0], before[before >= 0] + 10)
    assert (after[before < 0] == -1).all()


def test_slopes_in_inputs_beyond_the_points_are_refused():
    X = torch.rand(4, 2, dtype=torch.float64)
    model = SkewGP(X, Slope([0, 1], 1))
    before = model.posterior(X).mean
    for bad in (
        lambda: SkewGP(X, Slope(2, 1)),
        lambda: model.set_train_data(targets=Slope([0, 2], 1)),
        lambda: model.condition_on_observations(X[:1], Slope(2, 1)),
    ):
        with pytest.raises(InputDataError, match="refers to input 2, but train_X has 2 columns"):
            bad()
    assert torch.equal(model.posterior(X).mean, before)


@pytest.mark.parametrize("name", EVERY)
def test_bad_observations_leave_a_model_as_it_was(name):
    entry = EVERY[name]
    model = SkewGP(X, entry, approximation="ep")
    before = model.posterior(X).mean
    for change in (lambda bad: model.set_train_data(targets=bad), lambda bad: SkewGP(X, bad)):
        with pytest.raises(InputDataError, match="refers to row 6 of train_X, which has 6 rows"):
            change(entry.shift(7 - entry.num_points_needed))
    assert model.observations == (entry,)
    assert torch.equal(model.posterior(X).mean, before)


def test_change_of_dtype_keeps_indices_and_flags():
    single = EVERY["affine"].apply(lambda t: t.float() if t.is_floating_point() else t)
    assert (single.weight.dtype, single.index.dtype) == (torch.float32, torch.long)
    assert EVERY["affine"].weight.dtype == torch.float64
    assert EVERY["binary"].apply(lambda t: t) is EVERY["binary"]


def test_judgements_turn_round_where_low_values_are_good_and_readings_do_not():
    assert EVERY["preference"].reversed().pairs.tolist() == [[1, 0], [1, 2], [3, 2], [5, 4], [2, 1]]
    assert EVERY["tie"].reversed().pairs.tolist() == [[2, 0], [4, 1], [5, 3]]
    for name in ("numeric", "censored", "binary", "ordinal", "slope", "affine", "validity"):
        assert EVERY[name].reversed() is EVERY[name]
    assert EVERY["graded duels"].reversed().pairs.tolist() == [[1, 0], [1, 2], [3, 2], [5, 4]]
    assert EVERY["graded duels"].reversed().strength.tolist() == [0, 2, 1, 0]
    turned = Vote([[3, 1], [0, 1], [2, 0]], ["second", "both bad", "tie"]).reversed()
    assert (turned.answers.tolist(), turned.buttons) == ([0, 4, 2], ("first", "second", "tie", "both good"))
    assert (turned.duels.tolist(), turned.ties.tolist()) == ([[3, 1]], [[0, 1], [2, 0]])


def test_pairs_of_comparisons():
    duels = {name: entry.duels.tolist() for name, entry in EVERY.items() if len(entry.duels)}
    assert duels == {
        "preference": [[0, 1], [2, 1], [2, 3], [4, 5], [1, 2]],
        "graded duels": [[0, 1], [2, 1], [2, 3], [4, 5]],
        "graded duels by name": [[0, 1], [2, 1]],
        "vote": [[0, 1], [1, 2]],
        "choice": [[1, 0], [1, 2], [1, 5], [4, 3], [2, 3], [2, 4]],
        "choice or none": [[1, 0], [1, 2]],
        "ranking": [[2, 0], [0, 4], [4, 1], [3, 5], [5, 0]],
        "partial ranking": [[5, 0], [5, 3], [1, 0], [1, 3]],
        "ranking with ties": [[2, 1], [0, 1], [4, 1], [3, 5], [3, 0]],
    }
    assert {name: entry.ties.tolist() for name, entry in EVERY.items() if len(entry.ties)} == {
        "tie": [[0, 2], [1, 4], [3, 5]],
        "vote": [[2, 3], [4, 5], [0, 5]],
        "ranking with ties": [[2, 0], [2, 4], [0, 4], [5, 0]],
    }


def test_marks_show_every_observation_at_a_single_point():
    shown = {name: [(mark.symbol, mark.points.tolist()) for mark in EVERY[name].marks()] for name in EVERY}
    assert {name: marks for name, marks in shown.items() if marks} == {
        "numeric": [("value", [0, 2, 3])],
        "numeric with given noise": [("value", [1, 4])],
        "sums": [("value", [])],
        "censored": [("at most", [1, 4, 5]), ("at least", [3, 4, 5])],
        "binary": [("yes", [0, 4]), ("no", [1, 1])],
        "validity": [("yes", [0, 5]), ("no", [3])],
        "ordinal": [("0", [2]), ("1", [3]), ("2", [0, 5])],
    }
    at_most, at_least = EVERY["censored"].marks()
    assert (at_most.values.tolist(), at_least.values.tolist()) == ([-0.4, 0.1, 2.0], [0.8, -0.3, 0.5])


COUNTED = ("binary", "ordinal", "censored", "preference", "tie", "choice", "ranking", "ranking with ties", "validity")


@pytest.mark.parametrize("name", COUNTED)
def test_every_field_is_that_of_repeated_answers(name):
    once = replace(EVERY[name], judge=torch.arange(EVERY[name].num_answers))
    repeats = torch.arange(2, 2 + once.num_answers)
    merged = replace(once, count=repeats)
    which = [i for i, number in enumerate(repeats.tolist()) for _ in range(number)]
    assert merged.num_answers == len(which)
    for entry in fields(once):
        value = getattr(once, entry.name)
        if isinstance(value, torch.Tensor):
            assert torch.equal(getattr(merged, entry.name), value[which]), entry.name
    assert replace(merged, judge=merged.judge + 1).num_answers == len(which)


def test_replicates_of_a_choice_have_noises_of_their_own():
    model = SkewGP(X, Choice([[0, 1, 2]], count=4))
    model.covar_module.outputscale = 1e-4  # nearly no utility: each of three is the best one time in three
    assert float(model.log_marginal_likelihood("ep").value) == pytest.approx(4 * math.log(1 / 3), abs=0.02)


@pytest.mark.parametrize(
    "merged", [Preference([[0, 1], [1, 2]], count=[5000, 3000]), Binary([1, 0], index=[0, 1], count=[5000, 3000])]
)
def test_many_equal_rows_are_merged_again(merged):
    model = SkewGP(X, merged, approximation="ep")
    evidence = model.evidence(model.forward(model.train_inputs[0]), model.row_plan(merge_equal=True))
    assert (evidence.rows.num_rows, sorted(evidence.rows.count.tolist())) == (2, [3000.0, 5000.0])


def pairs_of(ranking: Ranking) -> list[tuple[int, int, int]]:
    places, event = ranking.comparisons()
    pairs = ranking.items[event.unsqueeze(-1), places]
    return sorted((e, a, b) for (a, b), e in zip(pairs.tolist(), event.tolist(), strict=True))


@pytest.mark.parametrize(
    "observation",
    [
        EVERY["choice"],
        EVERY["ranking"],
        Ranking([[3, 1, 0, 2, -1], [4, 0, 1, 2, 3]], ranks=[[0, 0, 2, 2, 0], [0, 1, 1, 1, 4]]),
    ],
)
def test_reversed_rankings_have_every_comparison_the_other_way_round(observation):
    ranking = observation if isinstance(observation, Ranking) else observation.as_ranking()
    wanted = sorted((event, loser, winner) for event, winner, loser in pairs_of(ranking))
    assert pairs_of(observation.reversed()) == wanted
    assert pairs_of(observation.reversed().reversed()) == pairs_of(ranking)
    assert observation.reversed().ties_allowed == ranking.ties_allowed


def ranking_of(utility: list[float], width: float) -> Ranking:
    """The ranking with ties of noisy utilities: neighbours are pooled while their means are too close."""
    order = sorted(range(len(utility)), key=lambda i: -utility[i])
    groups: list[list[int]] = []
    shifted = [utility[i] + width * place for place, i in enumerate(order)]  # in positions of one width each
    for place in range(len(order)):
        groups.append([place])
        while len(groups) > 1 and fmean(shifted[i] for i in groups[-2]) <= fmean(shifted[i] for i in groups[-1]):
            last = groups.pop()
            groups[-1] += last
    ranks = [number for number, group in enumerate(groups) for _ in group]
    return Ranking([order], ranks=[ranks], ties_allowed=True)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_utilities_are_in_the_intervals_of_their_own_ranking_alone(k):
    """The rankings with ties of `k` items divide the space of utilities."""
    utilities = torch.randn(60, k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
    width = 0.6
    rankings = [ranking_of(utility.tolist(), width) for utility in utilities]
    assert len({int(ranking.ranks.max()) for ranking in rankings}) >= min(k, 4)  # of several numbers of groups

    def key_of(ranking: Ranking) -> list[int]:
        """The rank of each item."""
        return torch.empty(k, dtype=torch.long).scatter(0, ranking.items[0], ranking.ranks[0]).tolist()

    def inside(ranking: Ranking) -> torch.Tensor:
        place, weight, lower, upper, _ = ranking.contrasts()
        value = (utilities[:, ranking.items[0, place]] * weight).sum(-1)
        return ((value > lower * width) & (value <= upper * width)).all(-1)

    keys = [key_of(ranking) for ranking in rankings]
    for ranking, key in zip(rankings, keys, strict=True):
        assert inside(ranking).tolist() == [key == other for other in keys]


def test_numbers_of_rankings():
    """By counting the ordered partitions of three items, and the orders of partial ones."""
    partitions = {tuple(place - min(places) for place in places) for places in product(range(3), repeat=3)}
    dense = {key for key in partitions if set(key) == set(range(max(key) + 1))}
    ranking = Ranking([[0, 1, 2], [3, 1, -1]], ranks=[[0, 0, 1], [0, 1, -1]])
    assert ranking.num_orders.tolist() == [len(dense), 3]
    assert replace(ranking, ties_allowed=False).num_orders.tolist() == pytest.approx([3, 2])


def test_classes_beat_every_other_label_in_one_event():
    observation = LabelPreference.from_classes(tensor([2, 0]), 3, index=tensor([5, 6]))
    assert observation.labels.tolist() == [[2, 0], [2, 1], [0, 1], [0, 2]]
    assert (observation.index.tolist(), observation.event.tolist()) == ([5, 5, 6, 6], [0, 0, 1, 1])


FIVE = [0, 1, 2, 3, 4]
ARRAY = np.array([[0, 1], [2, 1]])
# what is found of an observation, and what was given, in double precision if numbers
TAKEN = [
    (Numeric([0.1]).values, [0.1]),
    (Numeric(tensor([0.1], dtype=torch.float64), noise=0.3).noise, [0.3]),
    (Numeric(torch.zeros(3), noise=0.5).noise, [0.5, 0.5, 0.5]),
    (Numeric(torch.zeros(2, 1)).values, [0.0, 0.0]),
    (Numeric([], index=[]).index, []),
    (Numeric([1.0, 2.0], index=(i for i in (4, 2))).index, [4, 2]),
    (Binary(torch.zeros(2, 1) > 0).labels, [False, False]),
    (Binary(pd.Series([True, False])).labels, [True, False]),
    (Binary([]).labels, []),
    (Ordinal([0, 1], np.int64(3)).grades, [0, 1]),
    (Censored([0.1], [0.3]).upper, [0.3]),
    (Censored(0, [1, 2]).lower, [0.0, 0.0]),
    (Censored([1, 2], INF).upper, [INF, INF]),
    (AffineProbit(EYE, 0.1, EYE).bias, [0.1, 0.1]),
    (AffineProbit([[1, 0]], 0, [[1]]).weight, [[1.0, 0.0]]),
    (Preference(pd.DataFrame({"winner": [0], "loser": [1]})).pairs, [[0, 1]]),
    (Preference(ARRAY).pairs, ARRAY.tolist()),
    (Preference([[0, 1], [2, 3]], count=2).pairs, [[0, 1], [0, 1], [2, 3], [2, 3]]),
    (Preference([[0, 1], [2, 3]], judge=4).judge, [4, 4]),
    *[(pairs.shape, (0, 2)) for pairs in (Preference([]).pairs, Tie([]).pairs, Tie(torch.zeros(0)).pairs)],
    *[(Slope([0] * 5, [1] * 5, index=range(5)).dims, [0] * 5), (Slope(0, 1, index=range(5)).index, FIVE)],
    *[(Slope(0, 1, index=range(5)).signs, [1] * 5), (Slope(torch.zeros(5, dtype=torch.int32), 1).index, FIVE)],
    *[(Slope(0, [1.0] * 5).dims, [0] * 5), (Slope(1, -1, index=[7]).index, [7]), (Slope(1, -1, index=[7]).dims, [1])],
]


@pytest.mark.parametrize(("found", "given"), TAKEN)
def test_what_is_taken(found, given):
    assert (found.tolist() if isinstance(found, torch.Tensor) else found) == given


def test_arrays_are_not_shared():
    pairs = ARRAY.copy()
    observation = Preference(pairs)
    pairs[:] = 5
    assert observation.pairs.tolist() == ARRAY.tolist()


# what is built, and what the message must say
BAD = [
    (lambda: Numeric([0.0, NAN]), r"values contains NaN at positions \[1\]"),
    (lambda: Numeric([0.0, INF]), "values must be finite"),
    (lambda: Numeric([0.0, 1.0], noise=[0.1, -0.1]), "noise must hold one finite non-negative"),
    (lambda: Numeric([0.0], noise=[NAN]), "noise contains NaN"),
    (lambda: Numeric([0.0, 1.0], noise=[0.1]), "noise must hold one finite"),
    (lambda: Numeric([0.0, 1.0], index=tensor([0])), "index must have one entry"),
    (lambda: Numeric([0.0], index=tensor([-1])), "index must not hold negative"),
    (lambda: Binary([0, 2]), r"labels must be 0 or 1; got \[2.0\] at positions \[1\]"),
    (lambda: Ordinal([0, 3], 3), r"grades must be integers from 0 to 2; got \[3.0\]"),
    (lambda: Ordinal([0, -1], 3), "grades must be integers from 0 to 2"),
    (lambda: Ordinal([0.5], 3), "grades must be integers"),
    (lambda: Ordinal([0], 1), "num_grades must be an integer from 2 to 10000"),
    (lambda: Censored([1.0, 0.0], [1.0, 1.0]), r"lower must be below upper.*\[0\]\. Give exact readings as Numeric"),
    (lambda: Censored([1.0], [2.0, 3.0]), "lower and upper must have equal shapes"),
    (lambda: Censored([0.0], [NAN]), "upper contains NaN"),
    (lambda: Preference(torch.zeros(1, 3, dtype=torch.long)), "pairs must be m x 2"),
    (lambda: Preference(tensor([[0, 1], [2, 2]])), r"pairs compares a point with itself in rows \[1\]"),
    (lambda: Preference([[0, 1], [1, 2]], strength=[0]), "strength must have one entry for each of the 2 pairs; got 1"),
    (lambda: Preference([[0, 1]], strength=[2], num_strengths=2), r"from 0 to 1, .*; got \[2.0\] at positions \[0\]"),
    (lambda: Preference([[0, 1]], strength=["much"]), "strength must be a tensor or a list"),
    (lambda: Preference([[0, 1]], strength=[0], num_strengths=1), "num_strengths must be an integer"),
    (lambda: Preference([[0, 1]], num_strengths=2), "num_strengths counts the steps of strength"),
    (lambda: GradedPreference([[0, 1]]), "GradedPreference needs a strength"),
    (lambda: Vote([[0, 1]], ["left"]), r"answers must be a list of 'first', .*; got \['left'\]"),
    (lambda: Vote([[0, 1]], None), "answers must be a list of 'first', .*; got None"),
    (lambda: Vote([[0, 1], [1, 2]], ["tie", NAN]), r"answers must be a list of 'first', .*; got \[nan\]"),
    (lambda: Vote([], [], buttons=3), r"buttons must be some of 'first', .*; got \[3\]"),
    (lambda: Vote([[0, 1]], "first"), "also for a single pair; got 'first'"),
    (lambda: Vote([[0, 1]], [5]), "answers must be integers from 0 to 4, the numbers of 'first'"),
    (lambda: Vote([[0, 1], [1, 2]], ["tie"]), "answers must have one entry for each of the 2 pairs"),
    (lambda: Vote([[0, 1]], ["both bad"], buttons=["first", "second", "tie"]), r"among the buttons .*; got \['both"),
    (lambda: Vote([], [], buttons=["first", "tie"]), "must hold 'first' and 'second'"),
    (lambda: Vote([], [], buttons=["first", "second", "both bad"]), "leave no answer where neither item is better"),
    (lambda: Ranking(tensor([[0, 1, 2]]), ranks=tensor([[0, 1]])), "ranks must have the shape of items"),
    (lambda: Ranking(tensor([[0, 1, 2]]), ranks=tensor([[0, 2, 1]])), "ranks must not decrease"),
    (lambda: LabelPreference(tensor([[0, 3]]), 3), "labels must be from 0 to 2; got 3"),
    (lambda: LabelPreference(tensor([[1, 1]]), 3), "labels compares a label with itself"),
    (lambda: LabelPreference(tensor([[0, 1], [1, 2]]), 3, event=tensor([0])), "event must have one entry"),
    (lambda: LabelPreference.from_classes(tensor([0, 3]), 3), "classes must be integers from 0 to 2; got"),
    (lambda: Validity([0, 2]), "valid must be 0 or 1"),
    (lambda: AffineProbit(torch.ones(2), 0.0, EYE), "weight must be an m x n"),
    (lambda: AffineProbit(torch.ones(2, 2) > 0, 0.0, EYE), "weight must be an m x n tensor"),
    (lambda: AffineProbit([[1.0, 0.0], [0.0, 0.0]], 0.0, EYE), r"weight is zero in all of rows \[1\]"),
    (lambda: AffineProbit(EYE, 0.0, [0.1, 0.2]), r"torch\.diag\(variances\)"),
    (lambda: Ordinal([1, 5, 3], 5), "They count from 0: subtract 1"),
    (lambda: Numeric(1.5), r"Write values=\[1.5\] for a single one"),
    (lambda: Numeric([1.0], index=3), r"Write index=\[3\] for a single one"),
    (lambda: Preference((0, 1)), r"Write pairs=\[\[0, 1\]\] for a single one"),
    (lambda: Choice([2, 0, 1]), r"Write options=\[\[2, 0, 1\]\] for a single one"),
    (lambda: Numeric([1.0], index=[True, False]), r"mask\.nonzero"),
    (lambda: Numeric({0: 1.0}), r"values must be a tensor or a list of numbers.*got dict"),
    (lambda: Numeric([1.0], index={0}), r"index must be a tensor or a list.*got set"),
    (lambda: Binary(["yes", "no"]), "labels must be a tensor or a list of numbers"),
    (lambda: Numeric([1.0, None]), r"values must be .* none missing"),
    (lambda: Numeric(np.array(["2020-01-01"], dtype="datetime64[ns]")), "are not numbers"),
    (lambda: Preference([[0, 1], [0, 1, 2]]), r"pairs must be .* all rows of one length"),
    (lambda: Ranking([[0, 1]], ranks=[[0.0, 1.0]]), "ranks must hold integer ranks; .* Round them"),
    (lambda: Ranking([[0, 1, 2]], ranks=[[0, 1, -1]]), "must not be negative, except -1 for padding"),
    (lambda: Ranking([[0, 1], FIVE[:2]], ties_allowed="no"), "ties_allowed must be"),
    (lambda: Ranking([[*range(7)]], ranks=[[0] * 7]), r"more than 6 items in rows \[0\]\. .*ties_allowed=False"),
    (lambda: AffineProbit(EYE, torch.zeros(3), EYE), "bias must have one entry"),
    (lambda: AffineProbit(EYE, INF, EYE), "bias must be finite"),
    (lambda: AffineProbit(EYE, 0.0, EYE, 1.0, 0.0), "lower must be below"),
    (lambda: AffineProbit(EYE, 0.0, NAN * EYE), "covariance must be 2 x 2 and finite"),
    (lambda: AffineProbit(EYE, 0.0, tensor([[1.0, 0.5], [0.0, 1.0]])), "covariance must be symmetric"),
    (lambda: AffineProbit(EYE, 0.0, tensor([[1.0, 2.0], [2.0, 1.0]])), "covariance must be positive semi-definite"),
    (lambda: Choice([[0, 1, 2], [-1, 1, 2]]), r"padded with -1 at the end of a row only; see rows \[1\]"),
    (lambda: Ranking([[0, 1, 2], [0, 1, 0]]), r"items names a point twice in rows \[1\]"),
    (lambda: Choice([[0, 1], [2, -1]]), r"at least two points in every row; see rows \[1\]"),
    (lambda: Preference([[0, 1], [1, 2]], count=[2, 0]), r"positive and finite; it is 0 for answers \[1\]"),
    (lambda: Preference([[0, 1]], judge=2**24), "judge must hold numbers up to 16777214; got 16777216. number_judges"),
    (lambda: Choice([[0, 1]], count=[1.5]), "count must hold whole numbers for Choice"),
    (lambda: Ordinal([0, 1], 2, count=[3]), "count must have one entry for each of the 2 answers; got 1"),
    (lambda: Preference([[0, 1]], count=10**9), "count adds up to 1e.09 answers"),
    (lambda: Binary([1], count=True), "count must hold real numbers; got dtype torch.bool"),
    (lambda: AffineProbit(EYE, 1j, EYE), "bias must hold real numbers"),
    (lambda: AffineProbit(EYE, 0.0, EYE + 0j), "covariance must be 2 x 2"),
    (lambda: Choice([[]]), "options must name at least two points"),
    (lambda: Preference([[0, 1]], [10**9]), "strength must be integers from 0 to 9999"),
    (lambda: Vote([[0, 1]] * 2, ["tie", ["x"]]), r"answers must be a list of 'first', .*; got \[\['x'\]\]"),
    (lambda: Vote([[0, 1]] * 2, ["tie", True]), r"answers must be a list of 'first', .*; got \[True\]"),
    (lambda: Vote([[0, 1]], ["tie"], buttons=[["x"]]), "buttons must be some of"),
    (lambda: Slope([0, 1], [1]), "dims, signs and index must have one entry"),
    (lambda: Slope([0, 1], 1, index=[0, 1, 2]), "dims, signs and index must have one entry"),
    (lambda: Slope(0, [1, 0]), "signs must be 1"),
    (lambda: Slope(0, [True]), "signs must be 1"),
    (lambda: Slope([-1], [1]), "dims must not hold negative"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_input_names_the_argument(build, message):
    with pytest.raises(InputDataError, match=message):
        build()


@pytest.mark.parametrize(("grades", "num_grades"), [([1, 2, 3, 4], 5), ([4, 1, 4, 3, 3], 5), ([3, 2, 1], 4)])
def test_grades_that_may_have_been_counted_from_one_are_warned_of(grades, num_grades):
    with pytest.warns(InputDataWarning, match="counted from 1"):
        Ordinal(grades, num_grades)


@pytest.mark.parametrize(("grades", "num_grades"), [([0, 4, 4, 4, 3], 5), ([4, 3], 5), ([1, 2, 2, 1, 2], 3), ([], 5)])
def test_other_grades_are_not(grades, num_grades):
    Ordinal(grades, num_grades)  # a warning would be an error


COLUMN = pd.Series([1.5, 0.5], index=[7, 3])


@pytest.mark.parametrize(
    "values",
    [
        COLUMN,
        COLUMN.to_frame(),
        COLUMN.astype(object),
        COLUMN.to_numpy()[::-1].copy()[::-1],
        *(COLUMN.to_numpy().astype(dtype) for dtype in (float, ">f8", np.float32)),
        *(make(COLUMN) for make in (list, tuple)),
        dict(COLUMN).values(),
        [tensor(1.5), tensor(0.5)],
        tensor([1.5, 0.5], dtype=torch.float64, requires_grad=True),
    ],
    ids=lambda values: type(values).__name__,
)
def test_arrays_and_columns_are_taken(values):
    given = Numeric(values).values
    assert (given.tolist(), given.dtype, given.requires_grad) == ([1.5, 0.5], torch.float64, False)


def test_short_rows_of_lists_are_padded():
    assert Choice([[0, 1], [2, 0, 1]]).options.tolist() == [[0, 1, -1], [2, 0, 1]]
    ranking = Ranking([tensor([0, 1]), tensor([2, 0, 1])], ranks=[[0, 1], [0, 0, 1]])
    assert ranking.items.tolist() == [[0, 1, -1], [2, 0, 1]]
    assert sorted(ranking.duels.tolist()) == [[0, 1], [0, 1], [2, 1]]
    padded = Ranking([[0, 1, -1], [2, 0, 1]], ranks=[[0, 1, -1], [0, 0, 1]])
    assert torch.equal(padded.duels, ranking.duels)


def test_strengths_counted_from_one_are_told():
    with pytest.warns(InputDataWarning, match="subtract 1 if they count from 1"):
        counted = Preference([[0, 1], [2, 1], [0, 2]], strength=[1, 2, 1])
    assert Preference([[0, 1], [2, 1]], strength=[1, 2]).num_strengths == 3  # too few to tell
    assert counted.num_strengths == 3
    assert Preference([[0, 1], [2, 1]], strength=[1, 2], num_strengths=3).strength.tolist() == [1, 2]
    assert Preference([[0, 1], [2, 1]], strength=[1, 0]).num_strengths == 2

"""Answers that are given once with their number: they say what as many answers given one by one say."""

import math
from dataclasses import fields, replace

import pytest
import torch
from observation_cases import VALID

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary, Choice, Preference

COUNTED = ("binary", "ordinal", "censored", "preference", "tie", "choice", "ranking", "validity")
X = torch.rand(4, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", COUNTED)
def test_every_field_is_that_of_repeated_answers(name):
    once = replace(VALID[name], judge=torch.arange(VALID[name].num_answers))
    repeats = torch.arange(2, 2 + once.num_answers)
    merged = replace(once, count=repeats)
    which = [i for i, number in enumerate(repeats.tolist()) for _ in range(number)]
    assert merged.num_answers == len(which)
    for entry in fields(once):
        value = getattr(once, entry.name)
        if isinstance(value, torch.Tensor):
            assert torch.equal(getattr(merged, entry.name), value[which]), entry.name
    assert replace(merged, judge=merged.judge + 1).num_answers == len(which)


def test_one_number_stands_for_all():
    assert torch.equal(Preference([[0, 1], [2, 3]], count=2).pairs, torch.tensor([[0, 1], [0, 1], [2, 3], [2, 3]]))


def test_replicates_of_a_choice_have_noises_of_their_own():
    model = SkewGP(X, Choice([[0, 1, 2]], count=4))
    model.covar_module.outputscale = 1e-4  # nearly no utility: each of three is the best one time in three
    assert float(model.log_marginal_likelihood("ep").value) == pytest.approx(4 * math.log(1 / 3), abs=0.02)


@pytest.mark.parametrize(
    ("merged", "rows"),
    [(Preference([[0, 1], [1, 2]], count=[5000, 3000]), 2), (Binary([1, 0], index=[0, 1], count=[5000, 3000]), 2)],
)
def test_many_equal_rows_are_merged_again(merged, rows):
    model = SkewGP(X, merged, approximation="ep")
    evidence = model.evidence(model.forward(model.train_inputs[0]), merge_equal=True)
    assert evidence.rows.num_rows == rows
    assert sorted(evidence.rows.count.tolist()) == [3000.0, 5000.0]

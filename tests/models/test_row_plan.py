"""Rows that are planned once are those of a new plan at all hyperparameters, and after every change."""

import pytest
import torch

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OrdinalLikelihood, PreferenceLikelihood
from botorch_skewgp.models import prior_model
from botorch_skewgp.observations import Numeric, Ordinal, Preference, Ranking, Tie
from botorch_skewgp.rows import Rows

DOUBLE = torch.float64
X = torch.rand(6, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
PAIRS = torch.tensor([[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]]).repeat(3, 1)
JUDGES = torch.tensor([0, 1, 0, 0, 1]).repeat(3)
GRADES, INDEX = [0, 1, 2, 1, 1] * 3, [0, 1, 2, 1, 1] * 3
PROBLEMS = {
    "grades": lambda: SkewGP(X, Ordinal(GRADES, 3, index=INDEX)),
    "grades of judges who slip": lambda: SkewGP(
        X,
        Ordinal(GRADES, 3, index=INDEX, judge=JUDGES),
        OrdinalLikelihood(3, slip=torch.tensor([0.1, 0.2])),
    ),
    "ties beside numbers": lambda: SkewGP(
        X, [Preference(PAIRS), Tie(PAIRS.flip(0)), Numeric([0.1, 0.2], index=[1, 5])]
    ),
    "rankings with noise to learn": lambda: SkewGP(
        X, Ranking([[0, 1, 2, 3], [2, 3, 4, 5]] * 5), PreferenceLikelihood(learn_noise=True)
    ),
    "judges": lambda: SkewGP(X, Preference(PAIRS, judge=JUDGES), PreferenceLikelihood(learn_noise=True)),
    "inducing points": lambda: SkewGP(X, Ordinal(GRADES, 3, index=INDEX), inducing_points=X[:3]),
}


def fields_of(rows):
    values = {name: value for name, value in vars(rows).items() if isinstance(value, torch.Tensor) and name != "origin"}
    heights = {} if rows.heights is None else {"outside": rows.heights.outside, "gain": rows.heights.gain}
    return {name: value.detach() for name, value in (values | heights).items()} | {"A": rows.weight(20).detach()}


def planned(plan):
    return fields_of(plan.rows(X))


def found_anew(model, **options):
    """The rows that a new plan finds."""
    return fields_of(Rows.cat([block.rows for block in model.row_plan(**options).blocks]))


@pytest.mark.parametrize("merge_equal", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_planned_rows_are_new_ones_at_other_hyperparameters(name, merge_equal, monkeypatch):
    monkeypatch.setattr(prior_model, "MAX_SINGLE_ROWS", 2)
    model, generator = PROBLEMS[name]().train(), torch.Generator().manual_seed(1)
    plan = model.row_plan(merge_equal=merge_equal)
    before = planned(plan)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.rand(parameter.shape, generator=generator, dtype=DOUBLE).to(parameter))
    assert model.row_plan(merge_equal=merge_equal, known=plan) is plan
    kept, new = planned(plan), found_anew(model, merge_equal=merge_equal)
    assert kept.keys() == new.keys()
    for field, value in new.items():
        torch.testing.assert_close(kept[field], value)
    assert any(not torch.equal(kept[field], before[field]) for field in ("lower", "upper", "noise"))


def set_noise(model):
    model.likelihood.likelihoods[0].noise = 2.0


def fix_and_set_noise(model):
    model.likelihood.likelihoods[1].requires_grad_(False)
    model.likelihood.likelihoods[1].noise = 0.5


def allow_ties(model):
    model.likelihood.ties_allowed = True


def repeat_a_point(model):
    moved = X.clone()
    moved[1] = X[2]
    model.set_train_data(moved)


def write_into_points(model):
    model.train_inputs[0].data[1] = X[2]


def replace_answers(model):
    model.set_train_data(targets=[Preference(PAIRS.flip(-1)), Numeric([0.1, 0.2], index=[1, 5])])


CHANGES = [set_noise, fix_and_set_noise, allow_ties, repeat_a_point, write_into_points, replace_answers]


@pytest.mark.parametrize("change", CHANGES)
def test_a_plan_is_made_anew_after_a_change(change):
    likelihood, observations = PreferenceLikelihood(), [Preference(PAIRS)]
    if change is not allow_ties:
        likelihood = MixedLikelihood(likelihood, NumericLikelihood())
        observations.append(Numeric([0.1, 0.2], index=[1, 5]))
    model = SkewGP(X.clone(), observations, likelihood).train()
    plan = model.row_plan()
    before = planned(plan)
    change(model)
    found, new = planned(model.row_plan(known=plan)), found_anew(model)
    for field, value in new.items():
        torch.testing.assert_close(found[field], value)
    assert any(not torch.equal(new[field], value) for field, value in before.items())

"""Updating in two steps equals updating at once, in either order, for every kind."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from kind_cases import (
    INF,
    KINDS,
    LABELS,
    TEST_X,
    TRAIN_X,
    assert_same_law,
    label_model_of,
    likelihood,
    log_evidence,
    model_of,
    tensor,
)

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import LabelPreferenceLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Censored, Numeric, Observation, Preference

NEW_X = TRAIN_X + 0.23
POINTS = torch.cat([TEST_X, NEW_X[:1]])


def with_all(first: Observation, second: Observation, **kwargs) -> SkewGP:
    return model_of([first, second.shift(6)], train_X=torch.cat([TRAIN_X, NEW_X]), **kwargs)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        pytest.param(name, order, marks=[] if (k + order) % 2 == 0 else [pytest.mark.slow])
        for k, name in enumerate(KINDS)
        for order in (0, 1)
    ],
)
def test_two_steps_equal_one_in_either_order(name, order):
    observation, (X, new_X) = KINDS[name], ((TRAIN_X, NEW_X), (NEW_X, TRAIN_X))[order]
    first = model_of(observation, train_X=X, num_draws=512)
    first.posterior(TEST_X)
    at_once = with_all(observation, observation, num_draws=512, seed=2)
    assert_same_law(first.condition_on_observations(new_X, observation), at_once, X=POINTS)


def test_two_steps_with_different_kinds():
    kinds = [KINDS[name] for name in ("numeric", "ranking", "validity")]
    model = model_of(kinds[0])
    for k, kind in enumerate(kinds[1:]):
        model.posterior(TEST_X)
        model = model.condition_on_observations(NEW_X + 0.1 * k, kind)
    shifted = [kinds[0], kinds[1].shift(6), kinds[2].shift(12)]
    assert_same_law(model, model_of(shifted, train_X=torch.cat([TRAIN_X, NEW_X, NEW_X + 0.1]), seed=3), X=POINTS)


def test_a_list_of_kinds_in_one_step():
    new = [KINDS["numeric"], KINDS["preference"]]
    model = model_of(KINDS["binary"]).condition_on_observations(NEW_X, new)
    at_once = model_of([KINDS["binary"], *(o.shift(6) for o in new)], train_X=torch.cat([TRAIN_X, NEW_X]))
    assert log_evidence(model) == pytest.approx(log_evidence(at_once), abs=1e-9)


def test_with_a_skew_prior():
    prior = SkewPrior(tensor(0.4, 1.8).unsqueeze(-1), tensor(1.0, -1.0), tensor(0.1, -0.4))
    first = model_of(KINDS["binary"], skew_prior=prior)
    first.posterior(TEST_X)
    second = first.condition_on_observations(NEW_X, KINDS["preference"])
    assert_same_law(second, with_all(KINDS["binary"], KINDS["preference"], skew_prior=prior, seed=2), X=POINTS)


def test_from_no_data_at_all():
    first = model_of([])
    first.posterior(TEST_X)
    second = first.condition_on_observations(NEW_X, KINDS["ranking"])
    assert_same_law(second, model_of(KINDS["ranking"], train_X=NEW_X, seed=2), X=POINTS)


@pytest.mark.parametrize("name", LABELS)
def test_labels(name):
    first = label_model_of(LABELS[name], num_draws=512)
    first.posterior(TEST_X)
    second = first.condition_on_observations(NEW_X, LABELS[name])
    X, both = torch.cat([TRAIN_X, NEW_X]), [LABELS[name], LABELS[name].shift(6)]
    modules = LabelPreferenceLikelihood(3, first.likelihood.noise.detach()), first.covar_module, first.mean_module
    at_once = SkewGP(X, both, *modules, draw_settings=first.draw_settings)
    assert_same_law(second, at_once, X=POINTS)


@pytest.mark.parametrize("times", [1, 4])  # with more rows than points, too
def test_a_new_duel_with_a_point_that_is_known_already(times):
    """What a loop does: the best point so far meets a new one. The old point occurs twice among the inputs."""
    pairs = KINDS["preference"].pairs.repeat(times, 1)
    first = model_of(Preference(pairs))
    first.posterior(TEST_X)
    new_X = torch.cat([NEW_X[:1], TRAIN_X[:1]])
    second = first.condition_on_observations(new_X, Preference(torch.tensor([[0, 1]])))
    whole = Preference(torch.cat([pairs, torch.tensor([[6, 0]])]))
    at_once = model_of(whole, train_X=torch.cat([TRAIN_X, NEW_X[:1]]), seed=2)
    assert_same_law(second, at_once, 1e-6 if times == 1 else 1e-5, POINTS)


def test_hyperparameters_are_kept_and_the_old_model_is_left_alone():
    first = model_of(KINDS["validity"])
    before = first.posterior(TEST_X).mean
    second = first.condition_on_observations(NEW_X, KINDS["validity"])
    for (name, old), (_, new) in zip(first.named_parameters(), second.named_parameters(), strict=True):
        assert torch.equal(old, new), name
    second.likelihood.likelihoods[0].noise = 3.0
    second.covar_module.outputscale = 7.0
    assert torch.equal(first.posterior(TEST_X).mean, before)
    assert len(first.observations) == 1
    assert first.train_inputs[0].shape == (6, 1)
    assert len(second.observations) == 2
    assert second.train_inputs[0].shape == (12, 1)


def test_numbers_as_tensors_are_numeric_observations():
    first = model_of(KINDS["preference"])
    y, noise = tensor(0.3, -1.0).unsqueeze(-1), tensor(0.1, 0.2).unsqueeze(-1)
    by_tensor = first.condition_on_observations(NEW_X[:2], y, noise=noise)
    by_object = first.condition_on_observations(NEW_X[:2], Numeric(y, noise))
    assert log_evidence(by_tensor) == log_evidence(by_object)


@pytest.mark.parametrize("bad", ["index", "kind", "columns"])
def test_bad_input_changes_nothing(bad):
    first = model_of(KINDS["binary"], with_likelihood=likelihood().likelihoods[1])
    before = first.posterior(TEST_X).mean
    arguments = {
        "index": (NEW_X[:2], KINDS["binary"], "refers to row 4"),
        "kind": (NEW_X, Censored(tensor(-INF), tensor(0.3)), "ProbitLikelihood takes Binary"),
        "columns": (NEW_X.expand(-1, 2), KINDS["binary"], "1 columns"),
    }
    X, Y, message = arguments[bad]
    with pytest.raises(InputDataError, match=message):
        first.condition_on_observations(X, Y)
    assert torch.equal(first.posterior(TEST_X).mean, before)
    assert len(first.observations) == 1

"""Pairs by expected utility, and thresholds of several objectives."""

import math

import pytest

pytest.importorskip("ax")

import torch
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.core import UnsupportedError
from ax_cases import GENERATES, new_client, next_trial, with_trials
from botorch.acquisition import qLogExpectedImprovement, qLogNoisyExpectedImprovement, qUpperConfidenceBound

from botorch_skewgp.ax import attach_comparison, get_next_pair
from botorch_skewgp.hosts.improvement import WeightedImprovement

pytestmark = GENERATES


@pytest.mark.parametrize("has_numbers", [False, True])
def test_pairs_are_asked_by_expected_utility_where_there_are_no_numbers(has_numbers, made):
    client = compared(new_client(objective="utility"))
    if has_numbers:
        client.complete_trial(0, {"utility": 3.0})
    get_next_pair(client)
    name = type(made[-1].acqf).__name__
    assert (name == "qExpectedUtilityOfBestOption") is not has_numbers
    next_trial(client)
    assert type(made[-1].acqf).__name__ != "qExpectedUtilityOfBestOption"


def test_pairs_are_asked_by_the_acquisition_function_that_the_user_chose(made):
    client = new_client(objective="utility", acquisition=qUpperConfidenceBound, acquisition_options={"beta": 4.0})
    get_next_pair(compared(client))
    assert type(made[-1].acqf) is qUpperConfidenceBound


@pytest.mark.parametrize("told", ["failure", "comparisons"])
def test_functions_of_the_best_number_are_refused_where_some_points_have_none(told):
    client = compared(new_client(objective="utility", acquisition=qLogExpectedImprovement))
    if told == "failure":
        for index, x in enumerate([0.6, 0.8], start=3):
            client.attach_trial({"x": x})
            client.complete_trial(index, {"utility": x})
        client.mark_trial_failed(2)
    with pytest.raises(UnsupportedError, match="qLogExpectedImprovement asks for the best number seen"):
        next_trial(client)


def told_all(client):
    """Three numbers of four metrics, one of them of labels."""
    for x, works in ((0.1, 1), (0.5, 1), (0.9, 0)):
        index = client.attach_trial({"x": x})
        client.complete_trial(index, {"loss": (x - 0.6) ** 2, "cost": x, "size": 1 - x, "works": works})
    next_trial(client)


def test_improvement_is_weighted_by_the_probabilities_of_the_constraints(made):
    told_all(new_client(constraints=["cost <= 0.7", "works >= 0.6"], binary_metrics=["works"]))
    acquisition = made[-1]
    assert type(acquisition.acqf) is WeightedImprovement
    assert acquisition.acqf.X_baseline.flatten().tolist() == pytest.approx([0.1, 0.5])
    improvement, *weights = acquisition.acqf.terms
    assert not improvement.maximize
    X = torch.tensor([[[0.3]], [[0.65]], [[0.8]]], dtype=torch.float64)
    with torch.no_grad():
        samples = {
            name: model.posterior(X).rsample(torch.Size([20_000])).squeeze()
            for name, model in zip(acquisition.surrogate.outcomes, acquisition.surrogate.model.models, strict=True)
        }
        found = [weight(X).exp() for weight in weights]
    for probability, met in zip(found, (samples["cost"] <= 0.7, samples["works"] >= 0.6), strict=True):
        torch.testing.assert_close(probability, met.double().mean(0), rtol=0, atol=0.03)


@pytest.mark.parametrize(("objective", "constraint"), [("-loss", "cost + size <= 2"), ("-loss - cost", "size <= 2")])
def test_sums_of_metrics_are_left_to_botorch(made, objective, constraint):
    told_all(new_client(objective=objective, constraints=[constraint]))
    assert type(made[-1].acqf) is qLogNoisyExpectedImprovement


def compared(client):
    """Three trials, of which nothing but an order is known."""
    with_trials(client, [0.0, 0.2, 0.4])
    attach_comparison(client, 0, 1)
    attach_comparison(client, 1, 2)
    return client


def with_two_objectives(constraints=None):
    """Trials close together in a corner, of which the front is a small piece; elsewhere nothing is known."""
    client = new_client(objective="-a, -b", constraints=constraints)
    for index, x in enumerate([0.0, 0.05, 0.1]):
        client.attach_trial({"x": x})
        client.complete_trial(index, {"a": math.cos(3 * x), "b": x})
    return client


@pytest.mark.parametrize(
    ("constraints", "given"), [(None, []), (["a <= 0.9", "b <= 0.7"], [-0.9, -0.7]), (["b <= 0.7"], [-0.7])]
)
def test_thresholds_are_those_of_the_user_or_beyond_a_front_whose_points_lie_close_together(made, constraints, given):
    next_trial(with_two_objectives(constraints))
    thresholds = made[-1].objective_thresholds
    assert thresholds.isfinite().all()
    assert thresholds[2 - len(given) :].tolist() == pytest.approx(given)
    if not given:  # the worst observed outcome is -0.1, and Ax stops at a tenth of the front's range
        assert thresholds[1] < -0.1 - 0.1 * 0.1


def test_a_mixed_space_with_a_linear_constraint_is_searched_once(made, monkeypatch):
    """Not once for each choice, and among feasible points; the best choice is found."""

    def never(*args, **kwargs):
        raise AssertionError("Ax enumerates the choices")

    monkeypatch.setattr("ax.generators.torch.botorch_modular.acquisition.optimize_acqf_mixed", never)
    floats = [RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in "xy"]
    choice = ChoiceParameterConfig(name="c", parameter_type="int", values=[0, 1, 2], is_ordered=True)
    client = new_client(parameters=[*floats, choice], parameter_constraints=["x + y <= 0.8"])
    for x, y, c in [(0.1, 0.2, 0), (0.4, 0.4, 1), (0.7, 0.0, 2), (0.3, 0.5, 0), (0.0, 0.0, 1), (0.5, 0.1, 0)]:
        index = client.attach_trial({"x": x, "y": y, "c": c})
        client.complete_trial(index, {"loss": 5 * c + (x - 0.6) ** 2 + (y - 0.1) ** 2})
    _, parameters = next_trial(client)
    assert parameters["x"] + parameters["y"] <= 0.8 + 1e-6
    assert parameters["c"] == 0
    assert made[-1].search_space_digest.discrete_choices == {2: [0, 1, 2]}

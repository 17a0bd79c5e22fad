"""Pairs by expected utility, thresholds of several objectives, and spaces with lists of values."""

import math

import pytest
import torch
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.search_space import SearchSpaceDigest
from ax.exceptions.core import UnsupportedError
from ax_cases import GENERATES, new_client, next_trial, with_trials
from botorch.acquisition import qLogExpectedImprovement, qLogNoisyExpectedImprovement, qUpperConfidenceBound

from botorch_skewgp.ax import attach_comparison, get_next_pair
from botorch_skewgp.ax.acquisition import SkewGPAcquisition, _factors
from botorch_skewgp.hosts.improvement import WeightedImprovement

pytestmark = GENERATES


@pytest.fixture
def made(monkeypatch):
    """The acquisitions that are made while a test runs."""
    acquisitions, original = [], SkewGPAcquisition.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        acquisitions.append(self)

    monkeypatch.setattr(SkewGPAcquisition, "__init__", remember)
    return acquisitions


UTILITY = "qExpectedUtilityOfBestOption"
CHOSEN = {"acquisition": qUpperConfidenceBound, "acquisition_options": {"beta": 4.0}}


@pytest.mark.parametrize(
    ("kwargs", "has_numbers", "name"),
    [({}, False, UTILITY), ({}, True, "WeightedImprovement"), (CHOSEN, False, "qUpperConfidenceBound")],
)
def test_pairs_are_asked_by_expected_utility_where_there_are_no_numbers(kwargs, has_numbers, name, made):
    client = compared(new_client(objective="utility", **kwargs))
    if has_numbers:
        client.complete_trial(0, {"utility": 3.0})
    get_next_pair(client)
    assert type(made[-1].acqf).__name__ == name
    next_trial(client)
    assert type(made[-1].acqf).__name__ != UTILITY


@pytest.mark.parametrize("told", ["failure", "comparisons"])
def test_functions_of_the_best_number_are_refused_where_some_points_have_none(told):
    client = compared(new_client(objective="utility", acquisition=qLogExpectedImprovement))
    if told == "failure":
        with_trials(client, [0.6, 0.8], [{"utility": 0.6}, {"utility": 0.8}])
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
    told_all(new_client(constraints=["cost <= 0.7", "works >= 0.99"], binary_metrics=["works"]))
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
    for probability, met in zip(found, (samples["cost"] <= 0.7, samples["works"] >= 0.99), strict=True):
        torch.testing.assert_close(probability, met.double().mean(0), rtol=0, atol=0.03)


@pytest.mark.parametrize(
    ("objective", "constraint"),
    [("-loss", "cost + size <= 2"), pytest.param("-loss - cost", "size <= 2", marks=pytest.mark.slow)],
)
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
    xs = [0.0, 0.05, 0.1]
    with_trials(client, xs, ({"a": math.cos(3 * x), "b": x} for x in xs))
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


DIGEST = SearchSpaceDigest(
    feature_names=["c_OH_PARAM_0", "c_OH_PARAM_1", "c_OH_PARAM_2", "x", "d_OH_PARAM_0", "k", "d_OH_PARAM_1"],
    bounds=[(0, 1)] * 5 + [(1, 4), (0, 1)],
    ordinal_features=[5],
    discrete_choices={5: [1, 2, 4]},
)
LIKE = torch.empty(0, dtype=torch.double)


def test_factors():
    k, c, d = _factors(DIGEST, LIKE)
    assert (k.columns, k.values.tolist(), k.is_category) == ([5], [[1], [2], [4]], False)
    assert [(factor.columns, len(factor.values)) for factor in (c, d)] == [([0, 1, 2], 3), ([4, 6], 2)]
    assert _factors(SearchSpaceDigest(feature_names=["x"], bounds=[(0, 1)]), LIKE) == ()


FLOAT = RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))
CHOICE = ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b", "d"], is_ordered=False)
WHOLE = RangeParameterConfig(name="k", parameter_type="int", bounds=(1, 3))


def loss(point):
    return (point.get("x", 0.5) - 0.5) ** 2 + 0.1 * (point.get("k", 2) - 2) ** 2 + 0.3 * (point["c"] != "b")


@pytest.mark.parametrize("parameters", [[FLOAT, WHOLE, CHOICE], pytest.param([WHOLE, CHOICE], marks=pytest.mark.slow)])
def test_batches_are_the_best_points_found_and_lie_apart(parameters):
    """Rounded from between the columns, they had a lower value than random points, and were near each other."""
    client = new_client(parameters=parameters, initialization_budget=5, small=False)
    for _ in range(5):
        ((trial, point),) = client.get_next_trials(max_trials=1).items()
        client.complete_trial(trial, {"loss": loss(point)})
    batch = [next_trial(client)[1] for _ in range(3)]
    for i, first in enumerate(batch):
        for second in batch[:i]:
            same = [first[name] == second[name] for name in first if isinstance(first[name], int | str)]
            apart = [abs(first[name] - second[name]) for name in first if isinstance(first[name], float)]
            assert not all(same) or max(apart, default=0.0) > 1e-3


def test_options_that_this_search_does_not_have():
    client = new_client(parameters=[FLOAT, CHOICE], initialization_budget=1)
    client.complete_trial(client.attach_trial({"x": 0.1, "c": "a"}), {"loss": 1.0})
    spec = client._generation_strategy.nodes_by_name["SkewGP"].generator_specs[0]
    spec.generator_gen_kwargs = {"model_gen_options": {"optimizer_kwargs": {"sequential": True}}}
    with pytest.raises(UnsupportedError, match="has a list of values, leave out sequential"):
        next_trial(client)

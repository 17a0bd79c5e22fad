"""Loops through Ax's `Client`, and what it reports."""

import math

import numpy as np
import pytest
from ax.adapter.cross_validation import cross_validate
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.core import SearchSpaceExhausted, UserInputError
from ax_cases import GENERATES, new_client, next_trial, node_of, with_trials
from botorch.acquisition import qUpperConfidenceBound

from botorch_skewgp import ax as ours

pytestmark = GENERATES


def loss(x: float) -> float:
    return (x - 0.35) ** 2


def failing(client, index, x):
    if x > 0.7:
        client.mark_trial_failed(index)
    else:
        client.complete_trial(index, {"loss": loss(x)})


def test_sobol_goes_on_until_the_objective_is_known():
    """After failures and labels alone there is nothing to improve on."""
    client = new_client(constraints=["works >= 0.6"], validity_metric="works")
    for tell in (
        client.mark_trial_failed,
        client.mark_trial_abandoned,
        lambda i: client.complete_trial(i, {"works": 0}),
    ):
        tell(next_trial(client)[0])
    index, _ = next_trial(client)
    assert (index, node_of(client, index)) == (3, "Sobol")
    client.complete_trial(index, {"works": 1, "loss": 0.3})
    assert node_of(client, next_trial(client)[0]) == "SkewGP"


def test_fixed_parameters():
    client = new_client(names="xy")
    for index, (x, y) in enumerate([(0.1, 0.2), (0.5, 0.8), (0.9, 0.4)]):
        client.attach_trial({"x": x, "y": y})
        client.complete_trial(index, {"loss": loss(x) + y})
    trials = client.get_next_trials(max_trials=2, fixed_parameters={"y": 0.75})
    assert all(parameters["y"] == 0.75 for parameters in trials.values())
    assert all(node_of(client, index) == "SkewGP" for index in trials)


def test_parameters_are_not_fixed_outside_of_the_search_space():
    """A value out of range would be moved to the bound."""
    parameters = [
        RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1)),
        RangeParameterConfig(name="k", parameter_type="int", bounds=(1, 8)),
        ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b"], is_ordered=False),
    ]
    client = new_client(parameters=parameters)
    for x, k, c in [(0.1, 2, "a"), (0.5, 8, "b"), (0.9, 5, "a")]:
        client.complete_trial(client.attach_trial({"x": x, "k": k, "c": c}), {"loss": loss(x) + k})
    for fixed, message in (
        ({"x": 1.5}, r"'x' must be fixed at a number of its range, 0\.0 to 1\.0; got 1\.5"),
        ({"x": math.nan}, r"'x' must be fixed at a number of its range, 0\.0 to 1\.0; got nan"),
        ({"k": 99}, r"'k' must be fixed at a number of its range, 1 to 8; got 99"),
        ({"k": 2.5}, r"'k' must be fixed at a number of its range, 1 to 8; got 2\.5"),
        ({"c": "d"}, r"'c' must be fixed at one of its values, \['a', 'b'\]; got 'd'"),
    ):
        with pytest.raises(UserInputError, match=message):
            client.get_next_trials(max_trials=1, fixed_parameters=fixed)
    at_the_ends = {"x": np.float64(1.0), "k": np.int64(8), "c": "b"}
    assert len(client.get_next_trials(max_trials=1, fixed_parameters=at_the_ends)) == 1


@pytest.mark.slow
def test_an_exhausted_search_space(monkeypatch):
    monkeypatch.setattr("ax.generators.random.base.DEFAULT_MAX_RS_DRAWS", 200)  # 10,000 take a minute
    client = new_client(parameters=[RangeParameterConfig(name="x", parameter_type="int", bounds=(0, 4))])
    for _ in range(5):
        index, p = next_trial(client)
        client.complete_trial(index, {"loss": loss(p["x"])})
    assert {trial.arm.parameters["x"] for trial in client._experiment.trials.values()} == {0, 1, 2, 3, 4}
    with pytest.raises(SearchSpaceExhausted):
        client.get_next_trials(max_trials=1)
    assert len(client._experiment.trials) == 5


SKEWGP, TRANSFORMED = ours.skewgp_generation_strategy, ours.transformed_generation_strategy


@pytest.mark.parametrize(
    ("strategy", "kwargs", "match"),
    [
        (SKEWGP, {"feasibility_threshold": 1.0}, "feasibility_threshold must be strictly between 0 and 1; got 1"),
        (SKEWGP, {"acquisition_options": {"beta": 1.0}}, "acquisition_options need an acquisition"),
        (SKEWGP, {"binary_metrics": "works"}, r"must be a list of names, such as \['works'\]; got 'works'"),
        (SKEWGP, {"feasibility_threshold": "a"}, "feasibility_threshold must be a finite number; got 'a'"),
        (SKEWGP, {"validity_metric": None}, "validity_metric must be the name of a metric; got None"),
        (SKEWGP, {"binary_metrics": [1]}, r"binary_metrics must be a list of names, .*; got \[1\]"),
        (SKEWGP, {"binary_metrics": 1}, "binary_metrics must be a list of names, .*; got 1"),
        (SKEWGP, {"acquisition": []}, r"cannot construct a \[\]"),
        (SKEWGP, {"acquisition": qUpperConfidenceBound, "acquisition_options": [1]}, "must be arguments by name"),
        (SKEWGP, {"torch_device": "x"}, "torch_device must be a device of torch, such as 'cuda'; got 'x'"),
        (SKEWGP, {"acquisition": "qKnowledgeGradient"}, "cannot construct a qKnowledgeGradient"),
        (TRANSFORMED, {"initialization_budget": 3}, "at least 4; got 3"),
        (TRANSFORMED, {"initialization_budget": 4.5}, "integer of at least 4; got 4.5"),
        (TRANSFORMED, {"seed": "x"}, "seed must be an integer"),
        (TRANSFORMED, {"model_options": ["a"]}, "model_options must be a dictionary"),
    ],
)
def test_arguments_of_strategies(strategy, kwargs, match):
    with pytest.raises(UserInputError, match=match):
        strategy(**kwargs)


@pytest.mark.slow
def test_a_loop_of_transformed_processes_on_an_exponential_outcome():
    client = new_client()
    options = {"num_nodes": 16, "least_effective": 0.0, "num_restarts": 2}
    client.set_generation_strategy(ours.transformed_generation_strategy(4, model_options=options))
    for _ in range(6):
        index, parameters = next_trial(client)
        client.complete_trial(index, {"loss": math.exp(abs(10 * parameters["x"] - 3.0))})
    (prediction,) = client.predict([{"x": 0.35}])
    mean, deviation = prediction["loss"]
    assert math.isfinite(mean)
    assert deviation > 0
    assert abs(client.get_best_parameterization()[0]["x"] - 0.3) < 0.25
    assert [node_of(client, index) for index in range(6)] == ["Sobol"] * 4 + ["Transformed"] * 2


@pytest.mark.slow
def test_a_baseline_and_relative_constraints():
    client = new_client(constraints=["cost <= 1.1 * baseline"])
    client.attach_baseline({"x": 0.5})
    client.complete_trial(0, {"loss": loss(0.5), "cost": 1.0})
    for _ in range(4):
        index, p = next_trial(client)
        client.complete_trial(index, {"loss": loss(p["x"]), "cost": 1 + p["x"]})
    assert node_of(client, index) == "SkewGP"


@pytest.fixture(scope="module")
def with_crashes():
    client = new_client(seed=1)
    for index, x in enumerate([0.05, 0.2, 0.4, 0.6, 0.8, 0.9]):
        client.attach_trial({"x": x})
        failing(client, index, x)
    failing(client, *(lambda index, p: (index, p["x"]))(*next_trial(client)))
    return client


def test_predictions_and_the_best_arm(with_crashes):
    left, right = with_crashes.predict([{"x": 0.35}, {"x": 0.95}])
    assert set(left) == {"loss", "validity"}
    assert left["loss"][0] == pytest.approx(0, abs=0.02)
    assert 1 >= left["validity"][0] > 0.6
    assert 0.5 > right["validity"][0] >= 0
    assert 0.5 >= right["validity"][1] >= 0
    parameters, _, index, name = with_crashes.get_best_parameterization()
    assert parameters == with_crashes._experiment.trials[index].arms[0].parameters
    assert name == f"{index}_0"
    best, outcome, own_name = ours.get_best_arm(with_crashes)
    assert (best, own_name) == (parameters, name)
    assert best["x"] == pytest.approx(0.35, abs=0.06)
    assert set(outcome) == {"loss", "validity"}
    mean, error = outcome["loss"]
    assert mean == pytest.approx(0, abs=0.02)
    assert error > 0


@pytest.mark.filterwarnings("ignore")  # of Ax's plots and of plotly
@pytest.mark.slow
def test_cards(with_crashes):
    """All but two, which are variance-based, of Gaussian posteriors only."""
    cards = with_crashes.compute_analyses(display=False)
    flat = []
    while cards:
        card = cards.pop()
        cards += getattr(card, "children", [])
        flat += [] if hasattr(card, "children") else [card]
    errors = {card.name: card.blob[-800:] for card in flat if "Error" in type(card).__name__}
    assert errors.keys() <= {"SensitivityAnalysisPlot", "TopSurfacesAnalysis"}, errors
    assert any("CrossValidation" in card.name for card in flat)


def test_cross_validation(with_crashes):
    results = cross_validate(with_crashes._generation_strategy.adapter)
    assert len(results) >= 4
    for result in results:
        assert list(result.predicted.metric_signatures) == ["loss"]
        assert abs(result.predicted.means[0] - result.observed.data.means[0]) < 0.5


@pytest.mark.parametrize("since", ["a comparison", "a failure"])
def test_what_came_after_the_fit_does_not_keep_ax_from_its_best_trial(since):
    """Ax validates the last fit, whose parameters are of the kinds of observations that there were."""
    client = new_client()
    xs = [0.1, 0.3, 0.5, 0.9]
    with_trials(client, xs, ({"loss": loss(x)} for x in xs))
    (failing, _) = next_trial(client)
    if since == "a failure":
        client.mark_trial_failed(failing)
    else:
        ours.attach_comparison(client, 1, 0)
    best, _, trial, _ = client.get_best_parameterization()
    assert (best["x"], trial) == (0.3, 1)

"""What models are given, constraints, and what a generation depends on."""

import pytest
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.utils.common.random import with_rng_seed
from ax_cases import GENERATES, datasets, fitted_adapter, new_client, next_trial, observations, with_trials

from botorch_skewgp.ax import attach_comparison, get_best_arm
from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.observations import Numeric, Preference

pytestmark = GENERATES


@pytest.mark.parametrize(
    ("kwargs", "constraint", "rows"),
    [
        ({"validity_metric": "works"}, "works >= 0.8", [[[0.0, -1.0]], [[-0.8]]]),
        ({"binary_metrics": ["works"], "failures": "ignore"}, "works <= 0.3", [[[0.0, 1.0]], [[0.3]]]),
    ],
)
def test_a_metric_of_labels_with_a_constraint(kwargs, constraint, rows):
    client = new_client(constraints=[constraint], **kwargs)
    with_trials(client, [0.0, 0.2, 0.8, 1.0], [{"loss": 3.0, "works": 1}, {"loss": 1.0, "works": 1}])
    client.attach_data(2, {"works": 0})  # no number
    client.mark_trial_failed(3)
    assert datasets(client)["loss"].X.flatten().tolist() == [0.0, 0.2]
    assert observations(client)["works"]["Binary"].labels.tolist() == [1, 1, 0, 0][: 4 - ("failures" in kwargs)]
    assert [A.tolist() for A in constraint_rows(client)] == rows


def test_numbers_are_standardised_inside_and_labels_are_not():
    client = new_client()
    with_trials(client, [0.0, 0.2, 0.4, 0.8], ({"loss": value} for value in (1003.0, 1001.0, 1002.0)))
    client.mark_trial_failed(3)
    adapter = fitted_adapter(client)
    losses, labels = adapter.generator.surrogate.model.models
    assert losses.outcome_scale.location == pytest.approx(0.0, abs=1e-6)  # symmetric numbers are mapped linearly
    assert losses.outcome_scale.scale == pytest.approx(1.5**0.5)
    assert labels.outcome_scale == OutcomeScale()
    predicted, _ = adapter.predict([ObservationFeatures({"x": x}) for x in (0.0, 0.2, 0.8)])
    assert predicted["loss"] == pytest.approx([1002] * 3, abs=2)
    assert predicted["validity"][0] > 0.5 > predicted["validity"][2]


def test_an_extremely_bad_number_keeps_an_uncertainty():
    client = new_client()
    losses = [1.0, 2.0, 3.0, 4.0, 1e12]
    with_trials(client, [0.0, 0.2, 0.4, 0.6, 0.8], ({"loss": (value, 0.5)} for value in losses))
    numeric = observations(client)["loss"]["Numeric"]
    assert (numeric.noise > 0).all()
    slope = (numeric.values[3] - numeric.values[2]) / (losses[3] - losses[2])
    assert numeric.noise[3].sqrt().item() == pytest.approx(0.5 * slope.item(), rel=0.3)


def test_tasks_are_refused():
    float_ = RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))
    task = ChoiceParameterConfig(name="t", parameter_type="int", values=[0, 1], is_ordered=True)
    client = new_client(parameters=[float_, task])
    parameter = client._experiment.search_space.parameters["t"]
    parameter._is_task, parameter._target_value = True, 0
    for i, t in enumerate([0, 1]):
        client.complete_trial(client.attach_trial({"x": 0.3 * i, "t": t}), {"loss": float(i)})
    with pytest.raises(UnsupportedError, match="Tasks are not supported"):
        fitted_adapter(client)


def constraint_rows(client):
    """Ax asks for `A f <= b`."""
    adapter = fitted_adapter(client)
    _, config = adapter._get_transformed_model_gen_args(
        search_space=adapter._search_space,
        pending_observations={},
        fixed_features=ObservationFeatures({}),
        model_gen_options=None,
        optimization_config=adapter._optimization_config,
    )
    assert adapter.outcomes == sorted(adapter.outcomes)
    return config.outcome_constraints


def with_three_metrics(constraints, baseline=True, **kwargs):
    client = new_client(constraints=constraints, **kwargs)
    if baseline:
        client.attach_baseline({"x": 0.3})
    with_trials(client, [0.0, 0.2, 0.4][baseline:])
    for index in range(3):
        client.complete_trial(index, {"loss": 1.0 + index, "mass": 2.0 * index, "cost": 3.0 - index})
    return client


def test_the_probability_of_validity_is_bounded_below_after_the_constraints_of_the_user():
    client = with_three_metrics(["cost <= 4"], feasibility_threshold=0.9)
    client.mark_trial_failed(*with_trials(client, [0.9]))
    A, b = constraint_rows(client)
    assert fitted_adapter(client).outcomes == ["cost", "loss", "mass", "validity"]
    assert A.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]]
    assert b.tolist() == [[4.0], [-0.9]]


def test_a_constraint_is_on_the_weighted_sum_of_its_metrics():
    wanted = {
        "mass + 2*cost <= 4": ([2.0, 0.0, 1.0], 4.0),
        "2*cost + mass <= 4": ([2.0, 0.0, 1.0], 4.0),
        "mass - cost >= 1": ([1.0, 0.0, -1.0], -1.0),
        "-0.5*mass >= -4": ([0.0, 0.0, 1.0], 8.0),
        "mass >= 1": ([0.0, 0.0, -1.0], -1.0),
    }
    client = with_three_metrics(list(wanted))
    assert fitted_adapter(client).outcomes == ["cost", "loss", "mass"]
    A, b = constraint_rows(client)
    assert list(zip(A.tolist(), b.flatten().tolist(), strict=True)) == list(wanted.values())


@pytest.mark.parametrize(
    ("constraint", "call", "error", "match"),
    [
        ("mass + cost <= 1.1*baseline", next_trial, UnsupportedError, "relative to the baseline"),
        ("mass + heat <= 4", next_trial, DataRequiredError, "No trial has a number for the metric 'heat'"),
        ("mass <= 1.1*baseline", get_best_arm, DataRequiredError, r"'mass <= 1.1.*relative .* client.attach_baseline"),
    ],
)
def test_constraints_that_cannot_be_used_as_they_are_written_are_refused(constraint, call, error, match):
    client = with_three_metrics([constraint], baseline=call is next_trial)
    with pytest.raises(error, match=match):
        call(client)


def test_fitted_again_when_only_a_comparison_was_added():
    """Ax's own data are the same before and after."""
    client = new_client()
    with_trials(client, [0.0, 0.2, 0.4], ({"loss": value} for value in (3.0, 1.0, 2.0)))
    for kinds in ([Numeric], [Numeric, Preference]):
        next_trial(client)
        surrogate = client._generation_strategy.adapter.generator.surrogate
        assert [type(entry) for entry in surrogate.training_data[0].observations] == kinds
        assert len(surrogate.model.observations) == len(kinds)
        attach_comparison(client, 0, 1)


def test_every_attempt_at_a_trial_has_a_seed_of_its_own(monkeypatch):
    """Ax asks again where a point was tried before: the same seed would give the same point again, for ever."""
    seeds = []

    def remember(seed):
        seeds.append(seed)
        return with_rng_seed(seed)

    monkeypatch.setattr("botorch_skewgp.ax.adapter.with_rng_seed", remember)
    client = with_three_metrics(None, failures="ignore")
    adapter = fitted_adapter(client)
    options = {"optimizer_kwargs": {"num_restarts": 1, "raw_samples": 4}}
    for _ in range(3):
        adapter.gen(n=1, model_gen_options=options)
    client.attach_trial({"x": 0.7})
    adapter.gen(n=1, model_gen_options=options)
    fitted_adapter(with_three_metrics(None, failures="ignore", seed=1)).gen(n=1, model_gen_options=options)
    assert len(set(seeds)) == 5

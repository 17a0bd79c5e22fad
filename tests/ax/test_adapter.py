"""What models are given in each scenario, the constraint on validity, and what a generation depends on."""

import numpy as np
import pytest

pytest.importorskip("ax")

from ax.core.observation import ObservationFeatures
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.utils.common.random import with_rng_seed
from ax_cases import (
    GENERATES,
    datasets,
    fitted_adapter,
    new_client,
    next_trial,
    node_of,
    numbers,
    observations,
    with_trials,
)
from botorch.models import ModelList

from botorch_skewgp.ax import attach_comparison, get_best_arm
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OutcomeScale, ProbitLikelihood
from botorch_skewgp.observations import Numeric, Preference, Validity
from botorch_skewgp.posteriors import ProbabilityPosterior

pytestmark = GENERATES


def with_failures(**kwargs):
    """Numbers at 0, 0.2 and 0.4; a failed trial at 0.8 and an abandoned one at 1."""
    client = new_client(**kwargs)
    with_trials(client, [0.0, 0.2, 0.4, 0.8, 1.0])
    for index, value in enumerate([3.0, 1.0, 2.0]):
        client.complete_trial(index, {"loss": value})
    client.mark_trial_failed(3)
    client.mark_trial_abandoned(4)
    return client


def models(client):
    surrogate = fitted_adapter(client).generator.surrogate
    return surrogate.model.models if isinstance(surrogate.model, ModelList) else [surrogate.model]


# What models are given


def test_failures_of_the_objective():
    client = with_failures(failures="objective")
    given = datasets(client)["loss"]
    seen = observations(client)["loss"]
    assert set(seen) == {"Numeric", "Validity"}
    assert numbers(client) == pytest.approx([3.0, 1.0, 2.0])
    assert seen["Validity"].valid.tolist() == [1, 1, 1, 0, 0]
    assert given.X.squeeze(-1)[seen["Validity"].index].tolist() == [0.0, 0.2, 0.4, 0.8, 1.0]
    assert given.X.squeeze(-1)[seen["Numeric"].index].tolist() == [0.0, 0.2, 0.4]
    mean = next(iter(models(client))).posterior(given.X).mean.squeeze(-1)
    assert mean[4] > mean[:3].max()  # what fails is worse, which is higher for a loss


def test_a_label_metric_with_a_constraint_of_the_users():
    client = new_client(constraints=["works >= 0.8"], validity_metric="works")
    with_trials(client, [0.0, 0.2, 0.8, 1.0])
    client.complete_trial(0, {"loss": 3.0, "works": 1})
    client.complete_trial(1, {"loss": 1.0, "works": 1})
    client.attach_data(2, {"works": 0})  # no number
    client.mark_trial_failed(3)
    seen = observations(client)
    assert numbers(client) == pytest.approx([3.0, 1.0])
    assert seen["works"]["Binary"].labels.tolist() == [1, 1, 0, 0]
    assert type(datasets(client)["works"]).__name__ == "ObservationDataset"
    assert [A.tolist() for A in constraint_rows(client)] == [[[0.0, -1.0]], [[-0.8]]]


def test_further_metrics_of_labels():
    client = new_client(constraints=["loud <= 0.3"], binary_metrics=["loud"])
    with_trials(client, [0.0, 0.2, 0.8])
    for index, (loss, loud) in enumerate([(3.0, 1), (1.0, 0), (2.0, 0)]):
        client.complete_trial(index, {"loss": loss, "loud": loud})
    seen = observations(client)
    assert seen["loud"]["Binary"].labels.tolist() == [1, 0, 0]
    assert datasets(client)["loud"].probability
    assert [A.tolist() for A in constraint_rows(client)] == [[[0.0, 1.0]], [[0.3]]]


def test_failures_of_several_objectives_are_refused():
    client = new_client(objective="a, -b", failures="objective")
    with_trials(client, [0.0, 0.8])
    client.complete_trial(0, {"a": 1.0, "b": 2.0})
    client.mark_trial_failed(1)
    with pytest.raises(UnsupportedError, match='failures="objective" is for one objective'):
        fitted_adapter(client)


def test_numbers_are_standardised_inside():
    client = new_client()
    with_trials(client, [0.0, 0.2, 0.4, 0.8])
    for index, value in enumerate([1003.0, 1001.0, 1002.0]):
        client.complete_trial(index, {"loss": value})
    client.mark_trial_failed(3)
    losses, labels = models(client)
    assert isinstance(losses.likelihood, NumericLikelihood)
    assert isinstance(labels.likelihood, ProbitLikelihood)
    assert losses.outcome_scale.location == pytest.approx(0.0, abs=1e-6)  # symmetric numbers are mapped linearly
    assert losses.outcome_scale.scale == pytest.approx(1.5**0.5)
    assert labels.outcome_scale == OutcomeScale()
    X = datasets(client)["validity"].X
    posterior = labels.posterior(X)
    assert isinstance(posterior, ProbabilityPosterior)
    assert posterior.mean[0] > 0.5 > posterior.mean[-1]
    predicted, _ = fitted_adapter(client).predict([ObservationFeatures({"x": float(x)}) for x in X[:3]])
    assert np.abs(np.array(predicted["loss"]) - 1002).max() < 2


def test_an_extremely_bad_number_keeps_an_uncertainty():
    client = new_client()
    with_trials(client, [0.0, 0.2, 0.4, 0.6, 0.8])
    losses = [1.0, 2.0, 3.0, 4.0, 1e12]
    for index, value in enumerate(losses):
        client.complete_trial(index, {"loss": (value, 0.5)})
    numeric = observations(client)["loss"]["Numeric"]
    assert (numeric.noise > 0).all()
    slope = (numeric.values[3] - numeric.values[2]) / (losses[3] - losses[2])
    assert numeric.noise[3].sqrt().item() == pytest.approx(0.5 * slope.item(), rel=0.3)


def test_kinds_are_of_the_whole_experiment():
    client = with_failures(failures="objective")
    attach_comparison(client, 0, 1)
    given = datasets(client)["loss"]
    assert set(given.kinds) == {Numeric, Preference, Validity}
    assert isinstance(models(client)[0].likelihood, MixedLikelihood)


def test_tasks_are_refused():
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
    from ax.core.parameter import ChoiceParameter

    parameters = [
        RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1)),
        ChoiceParameterConfig(name="t", parameter_type="int", values=[0, 1], is_ordered=True),
    ]
    client = new_client(parameters=parameters)
    parameter = client._experiment.search_space.parameters["t"]
    assert isinstance(parameter, ChoiceParameter)
    parameter._is_task = True
    parameter._target_value = 0
    for i, t in enumerate([0, 1]):
        client.attach_trial({"x": 0.3 * i, "t": t})
        client.complete_trial(i, {"loss": float(i)})
    with pytest.raises(UnsupportedError, match="Tasks are not supported"):
        fitted_adapter(client)


# The constraint on validity


def constraint_rows(client):
    adapter = fitted_adapter(client)
    _, config = adapter._get_transformed_model_gen_args(
        search_space=adapter._search_space,
        pending_observations={},
        fixed_features=ObservationFeatures({}),
        model_gen_options=None,
        optimization_config=adapter._optimization_config,
    )
    assert config.outcome_constraints is not None
    assert adapter.outcomes == sorted(adapter.outcomes)
    return config.outcome_constraints


@pytest.mark.parametrize("threshold", [0.5, 0.9])
def test_the_probability_of_validity_is_bounded_below(threshold):
    """Ax asks for `A f <= b`: here `-p <= -threshold`."""
    A, b = constraint_rows(with_failures(feasibility_threshold=threshold))
    assert A.tolist() == [[0.0, -1.0]]
    assert b.tolist() == [[-threshold]]


def test_the_constraint_comes_after_those_of_the_user():
    client = new_client(constraints=["cost <= 4"])
    with_trials(client, [0.0, 0.2, 0.8])
    client.complete_trial(0, {"loss": 1.0, "cost": 2.0})
    client.complete_trial(1, {"loss": 3.0, "cost": 5.0})
    client.mark_trial_failed(2)
    A, b = constraint_rows(client)
    assert fitted_adapter(client).outcomes == ["cost", "loss", "validity"]
    assert A.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]
    assert b.tolist() == [[4.0], [-0.5]]


def with_three_metrics(constraints):
    client = new_client(constraints=constraints)
    client.attach_baseline({"x": 0.3})
    with_trials(client, [0.0, 0.2])
    for index in range(3):
        client.complete_trial(index, {"loss": 1.0 + index, "mass": 2.0 * index, "cost": 3.0 - index})
    return client


@pytest.mark.parametrize(
    ("constraint", "row", "bound"),
    [
        ("mass + 2*cost <= 4", [2.0, 0.0, 1.0], 4.0),
        ("2*cost + mass <= 4", [2.0, 0.0, 1.0], 4.0),
        ("mass - cost >= 1", [1.0, 0.0, -1.0], -1.0),
        ("-0.5*mass >= -4", [0.0, 0.0, 1.0], 8.0),
        ("mass >= 1", [0.0, 0.0, -1.0], -1.0),
    ],
)
def test_a_constraint_is_on_the_weighted_sum_of_its_metrics(constraint, row, bound):
    client = with_three_metrics([constraint])
    assert fitted_adapter(client).outcomes == ["cost", "loss", "mass"]
    A, b = constraint_rows(client)
    assert A.tolist() == [row]
    assert b.tolist() == [[bound]]


def test_candidates_meet_a_constraint_on_a_sum():
    client = new_client(constraints=["mass + 2*cost <= 1.2"], names="xy")
    for x, y in [(0.1, 0.1), (0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.3, 0.6), (0.8, 0.8)]:
        index = client.attach_trial({"x": x, "y": y})
        client.complete_trial(index, {"loss": -x - y, "mass": x, "cost": y})
    index, p = next_trial(client)
    assert node_of(client, index) == "SkewGP"
    assert p["x"] + 2 * p["y"] <= 1.3


@pytest.mark.parametrize(
    ("constraint", "error", "match"),
    [
        ("mass + cost <= 1.1*baseline", UnsupportedError, "relative to the baseline"),
        ("mass + heat <= 4", DataRequiredError, "No trial has a number for the metric 'heat'"),
    ],
)
def test_constraints_that_cannot_be_used_as_they_are_written_are_refused(constraint, error, match):
    client = with_three_metrics([constraint])
    with pytest.raises(error, match=match):
        next_trial(client)


def test_a_relative_constraint_without_a_baseline_says_how_to_give_one():
    client = new_client(constraints=["mass <= 1.1*baseline"])
    for x in (0.1, 0.5, 0.9):
        client.complete_trial(client.attach_trial({"x": x}), {"loss": x, "mass": x})
    with pytest.raises(DataRequiredError, match=r"'mass <= 1.1.*relative .* client.attach_baseline"):
        get_best_arm(client)


@pytest.mark.parametrize("failures", ["objective", "ignore"])
def test_no_constraint_otherwise(failures):
    client = with_failures(failures=failures)
    with pytest.raises(AssertionError):
        constraint_rows(client)


# Fitting and generating


@pytest.mark.parametrize("compared", [0, 3])  # with a number and without: Ax's own data are the same before and after
def test_fitted_again_when_only_a_comparison_was_added(compared):
    client = new_client()
    with_trials(client, [0.0, 0.2, 0.4, 0.9])
    for index, value in enumerate([3.0, 1.0, 2.0]):
        client.complete_trial(index, {"loss": value})
    next_trial(client)
    strategy = client._generation_strategy
    before = strategy.adapter.generator.surrogate.training_data
    attach_comparison(client, compared, 1)
    next_trial(client)
    after = strategy.adapter.generator.surrogate.training_data
    assert [type(entry) for entry in before[0].observations] == [Numeric]
    assert [type(entry) for entry in after[0].observations] == [Numeric, Preference]
    assert len(strategy.adapter.generator.surrogate.model.observations) == 2


def test_every_attempt_at_a_trial_has_a_seed_of_its_own(monkeypatch):
    """Ax asks again where a point was tried before: the same seed would give the same point again, for ever."""
    seeds = []

    def remember(seed):
        seeds.append(seed)
        return with_rng_seed(seed)

    monkeypatch.setattr("botorch_skewgp.ax.adapter.with_rng_seed", remember)
    client = with_failures()
    adapter = fitted_adapter(client)
    options = {"optimizer_kwargs": {"num_restarts": 1, "raw_samples": 4}}
    for _ in range(3):
        adapter.gen(n=1, model_gen_options=options)
    client.attach_trial({"x": 0.7})
    adapter.gen(n=1, model_gen_options=options)
    assert len(set(seeds)) == 4


@pytest.mark.slow
def test_the_last_numbers_of_learning_curves_count():
    """A trial that still runs has no last number yet."""
    client = new_client()
    with_trials(client, [0.1, 0.4, 0.8, 0.9])
    for index, end in enumerate([0.3, 0.1, 0.5]):
        for step in (1, 2):
            client.attach_data(index, {"loss": end + 1 / step - 1 / 2}, progression=step)
        client.complete_trial(index)
    client.attach_data(3, {"loss": 9.0}, progression=1)
    assert numbers(client) == pytest.approx([0.3, 0.1, 0.5])
    assert observations(client)["loss"]["Numeric"].index.tolist() == [0, 1, 2]
    client.mark_trial_failed(3)
    assert (observations(client)["validity"]["Binary"].labels.sum(), len(client._experiment.trials)) == (3, 4)
    assert node_of(client, next_trial(client)[0]) == "SkewGP"
    assert get_best_arm(client)[0]["x"] == pytest.approx(0.4)

"""What models are given in each scenario, the constraint on validity, and what a generation depends on."""

import random

import numpy as np
import pytest

pytest.importorskip("ax")

import torch
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import DataRequiredError, UnsupportedError, UserInputError
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
    told,
    with_trials,
)
from botorch.models import ModelList

from botorch_skewgp.ax import AxSkewGP, attach_censored, attach_comparison, get_best_arm
from botorch_skewgp.hosts.outcomes import PowerTransform
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OutcomeScale, ProbitLikelihood
from botorch_skewgp.observations import Numeric, Preference, Tie, Validity
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


def test_failures_as_a_constraint():
    client = with_failures(failures="constraint")
    seen = observations(client)
    assert set(seen) == {"loss", "validity"}
    assert set(seen["loss"]) == {"Numeric"}
    assert numbers(client) == pytest.approx([3.0, 1.0, 2.0])
    assert set(seen["validity"]) == {"Binary"}
    assert seen["validity"]["Binary"].labels.tolist() == [1, 1, 1, 0, 0]
    given = datasets(client)
    assert given["validity"].X.squeeze(-1).tolist() == [0.0, 0.2, 0.4, 0.8, 1.0]
    assert given["loss"].minimize
    assert not given["validity"].minimize
    assert all(type(model) is AxSkewGP for model in models(client))
    assert "validity" in client._experiment.metrics


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


def test_numbers_comparisons_and_ties():
    client = new_client()
    with_trials(client, [0.0, 0.2, 0.4, 0.6])
    client.complete_trial(0, {"loss": 3.0})
    client.complete_trial(1, {"loss": (1.0, 0.5)})
    attach_comparison(client, 2, 0)
    attach_comparison(client, 2, 3, tie=True)
    given = datasets(client)["loss"]
    assert given.X.squeeze(-1).tolist() == [0.0, 0.2, 0.4, 0.6]
    kinds = [type(entry) for entry in given.observations]
    assert sorted(kind.__name__ for kind in kinds) == ["Numeric", "Numeric", "Preference", "Tie"]
    assert set(given.kinds) == {Numeric, Preference, Tie}
    seen = observations(client)["loss"]
    assert seen["Preference"].pairs.tolist() == [[2, 0]]
    assert seen["Tie"].pairs.tolist() == [[2, 3]]
    numeric = [entry for entry in given.observations if isinstance(entry, Numeric)]
    noise = {round(entry.values.item(), 9): None if entry.noise is None else entry.noise.item() for entry in numeric}
    assert noise == {3.0: None, 1.0: pytest.approx(0.25)}


def test_several_objectives_and_failures():
    client = new_client(objective="a, -b")
    with_trials(client, [0.0, 0.2, 0.8])
    client.complete_trial(0, {"a": 1.0, "b": 2.0})
    client.complete_trial(1, {"a": 3.0, "b": 5.0})
    client.mark_trial_failed(2)
    seen = observations(client)
    assert {name: set(kinds) for name, kinds in seen.items()} == {
        "a": {"Numeric"},
        "b": {"Numeric"},
        "validity": {"Binary"},
    }
    given = datasets(client)
    assert (given["a"].minimize, given["b"].minimize) == (False, True)
    assert seen["validity"]["Binary"].labels.tolist() == [1, 1, 0]


def test_failures_of_several_objectives_are_refused():
    client = new_client(objective="a, -b", failures="objective")
    with_trials(client, [0.0, 0.8])
    client.complete_trial(0, {"a": 1.0, "b": 2.0})
    client.mark_trial_failed(1)
    with pytest.raises(UnsupportedError, match='failures="objective" is for one objective'):
        fitted_adapter(client)


def test_comparisons_from_before_there_were_several_objectives_are_left_out():
    client = new_client()
    with_trials(client, [0.0, 0.8])
    attach_comparison(client, 0, 1)
    client.configure_optimization(objective="a, -b")
    for index in (0, 1):
        client.complete_trial(index, {"a": 1.0 + index, "b": 2.0})
    with told(r"need a single objective.*withdraw_unreadable"):
        given = datasets(client)
    assert all(type(entry) is Numeric for dataset in given.values() for entry in dataset.observations)


def test_nothing_known_of_the_objective():
    client = new_client()
    with_trials(client, [0.0, 0.8])
    client.mark_trial_failed(0)
    client.mark_trial_failed(1)
    with pytest.raises(UserInputError, match=r"Nothing is known of the objective yet.*attach_comparison"):
        get_best_arm(client)


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


@pytest.mark.parametrize("objective", ["-loss", "loss"])
def test_bounds_are_on_the_scale_of_numbers(objective):
    """Bounds at reported numbers are the images of these; extremely bad numbers count as less bad ones."""
    sign = 1.0 if objective == "-loss" else -1.0
    client = new_client(objective=objective)
    with_trials(client, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    losses = [sign * value for value in (1.0, 2.0, 7.0, 3.0, 1e12)]
    for index, value in enumerate(losses):
        client.complete_trial(index, {"loss": value})
    attach_censored(client, 5, "loss", lower=min(losses[1:3]), upper=max(losses[1:3]))
    seen = observations(client)["loss"]
    values = dict(zip(losses, seen["Numeric"].values.tolist(), strict=True))
    two, seven = values[losses[1]], values[losses[2]]
    assert [seen["Censored"].lower.item(), seen["Censored"].upper.item()] == pytest.approx(sorted([two, seven]))
    assert abs(values[losses[4]] - seven) < 10 * abs(seven - two)
    predicted, _ = fitted_adapter(client).predict([ObservationFeatures({"x": 0.2})])
    assert predicted["loss"][0] == pytest.approx(losses[1], abs=2)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_beyond_the_worst_number_kept(sign):
    """A number is at best its bound on the good side, cut like a number; the other side says nothing more."""
    transform = PowerTransform(floor=-10.0, mean=0.0, scale=2.0, power=0.7, sign=sign)
    worst, beyond, good = (np.array(sign * value) for value in (-10.0, -100.0, 3.0))
    image_of_worst, image_of_good = transform.transform(worst), transform.transform(good)
    assert sign * transform.transform(beyond) < sign * image_of_worst
    ends = (beyond, good) if sign > 0 else (good, beyond)
    lower, upper = transform.bounds(*ends)
    bad, best = (lower, upper) if sign > 0 else (upper, lower)
    assert (bad, best) == (transform.transform(beyond), image_of_good)
    ends = (np.array(-np.inf), beyond) if sign > 0 else (beyond, np.array(np.inf))
    assert transform.bounds(*ends)[1 if sign > 0 else 0] == image_of_worst


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


def test_candidates_stay_where_trials_work():
    """The number falls all the way to the right, where trials fail."""
    client = new_client(seed=3, feasibility_threshold=0.8)
    points = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    with_trials(client, points)
    for index, x in enumerate(points):
        if x > 0.55:
            client.mark_trial_failed(index)
        else:
            client.complete_trial(index, {"loss": 1 - x})
    _, parameters = next_trial(client)
    assert 0.3 < parameters["x"] < 0.7


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


def generated(seed=0, skip=0, global_seed=0):
    """The two candidates after the same trials."""
    client = with_failures(seed=seed)
    torch.manual_seed(global_seed)
    np.random.seed(global_seed)  # noqa: NPY002
    random.seed(global_seed)
    for _ in range(skip):
        torch.rand(10)
    return [next_trial(client)[1]["x"] for _ in range(2)]


@pytest.mark.slow
def test_candidates_repeat_whatever_the_process_did_before():
    first = generated()
    assert generated(global_seed=17, skip=3) == first
    assert first[0] != first[1]


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


@pytest.mark.parametrize("seeds", [(0, 1), (None, None)])
def test_candidates_depend_on_the_seed_or_without_one_on_torchs_generator(seeds):
    found = []
    for state, seed in enumerate(seeds):
        client = new_client(names="xyz", seed=seed)
        for index, x in enumerate([0.1, 0.5, 0.8]):
            client.attach_trial({"x": x, "y": 0.5, "z": 0.2})
            client.complete_trial(index, {"loss": x})
        torch.manual_seed(state if seed is None else 0)
        found.append(next_trial(client)[1])
    assert found[0] != found[1]


def test_generation_leaves_global_random_states_alone():
    client = with_failures()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    next_trial(client)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert random.getstate() == states[2]


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


def test_comparisons_of_judges():
    """Two who want opposite ends, and one who is not named; new arms are for what they share."""
    client = new_client(objective="utility")
    with_trials(client, [0.0, 0.2, 0.4])
    attach_comparison(client, 0, 1, judge="ann")
    attach_comparison(client, 1, 2, judge="ann")
    attach_comparison(client, 1, 0, judge="bob")
    attach_comparison(client, 2, 1, judge="bob")
    attach_comparison(client, 2, 0)
    (model,) = models(client)
    assert model.judges == {0, 1}
    X = datasets(client)["utility"].X
    first, second = (model.posterior(X, judge=judge).mean.squeeze(-1) for judge in (0, 1))
    assert first[0] > first[2]
    assert second[0] < second[2]
    assert client.get_next_trials(max_trials=1)
    with pytest.raises(UserInputError, match="judge must be a name"):
        attach_comparison(client, 0, 1, judge=-3)

"""Pairs and questions on every sort of search space, and the arm that is recommended."""

import itertools
import math

import pytest
import torch

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.observation import ObservationFeatures
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax_cases import GENERATES, new_client, node_of, small_strategy, snapshot, with_trials
from gpytorch.distributions import MultivariateNormal

from botorch_skewgp.ax import (
    attach_comparison,
    complete_pair,
    get_best_arm,
    get_next_pair,
    get_next_question,
    recorded_comparisons,
)
from botorch_skewgp.ax.adapter import SkewGPAdapter
from botorch_skewgp.ax.decisions import _with_tried
from botorch_skewgp.ax.registry import fitted_adapter
from botorch_skewgp.posteriors import SkewGPPosterior

pytestmark = GENERATES

FLOAT = RangeParameterConfig(name="float", parameter_type="float", bounds=(0, 1))
LOG = RangeParameterConfig(name="log", parameter_type="float", bounds=(1e-4, 1), scaling="log")
INT = RangeParameterConfig(name="int", parameter_type="int", bounds=(0, 20))
LARGE = RangeParameterConfig(name="large", parameter_type="int", bounds=(0, 5000))
STEP = RangeParameterConfig(name="step", parameter_type="float", bounds=(0, 1), step_size=0.1)
ORDERED = ChoiceParameterConfig(name="ordered", parameter_type="int", values=[1, 2, 4, 8], is_ordered=True)
UNORDERED = ChoiceParameterConfig(name="unordered", parameter_type="str", values=["a", "b", "c"], is_ordered=False)
BOOLEAN = ChoiceParameterConfig(name="boolean", parameter_type="bool", values=[True, False], is_ordered=True)

SPACES = {
    "ordered": [ORDERED],
    "unordered": [UNORDERED],
    "boolean": [BOOLEAN],
    "int": [INT],
    "step": [STEP],
    "large": [LARGE],
    "two choices": [UNORDERED, BOOLEAN],
    "all discrete": [INT, ORDERED, UNORDERED, BOOLEAN],
    "int and float": [INT, FLOAT],
    "log and boolean": [LOG, BOOLEAN],
    "mixed": [FLOAT, INT, UNORDERED, BOOLEAN],
}
FAST = {"boolean", "int"}
FEW = {"boolean", "unordered"}  # all points are tried, so that the best of them is known


def taste(parameters: dict) -> float:
    """Best at the second letter and small numbers."""
    return sum(value == "b" if isinstance(value, str) else -float(value) for value in parameters.values())


@pytest.mark.parametrize(
    "space", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in SPACES]
)
def test_pairs_on_a_space(space):
    client = new_client(objective="taste", parameters=SPACES[space])
    for _ in range(5):
        index, arms = get_next_pair(client)
        first, second = arms
        assert arms[first] != arms[second]
        complete_pair(client, index, max(arms, key=lambda name: taste(arms[name])))
    pairs = [tuple(arm.name for arm in trial.arms) for trial in client._experiment.trials.values()]
    assert len(pairs) == len(recorded_comparisons(client._experiment)) == 5
    best = max((arm.parameters for arm in client._experiment.arms_by_name.values()), key=taste)
    if space in FEW:
        assert get_best_arm(client)[0] == best


@pytest.mark.slow
@pytest.mark.parametrize("space", ["ordered", "two choices", "mixed"])
def test_pairs_beside_numbers_and_a_constraint(space):
    client = new_client(parameters=SPACES[space], constraints=["cost <= 1"])
    for _ in range(3):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            client.complete_trial(index, {"loss": -taste(parameters), "cost": 0.5})
    for _ in range(2):
        index, arms = get_next_pair(client)
        complete_pair(client, index, max(arms, key=lambda name: taste(arms[name])))
    assert len(recorded_comparisons(client._experiment)) == 2


def test_one_point_is_no_pair():
    only = ChoiceParameterConfig(name="choice", parameter_type="str", values=["a", "b"], is_ordered=False)
    client = new_client(objective="taste", parameters=[only])
    for value in ("a", "b"):
        client.mark_trial_failed(client.attach_trial({"choice": value}))
    with pytest.raises(UserInputError, match="no second point to compare with"):
        get_next_pair(client)


@pytest.mark.parametrize("space", ["unordered", "int and float"])
def test_the_latent_posterior_is_asked_in_units_of_the_search_space(space):
    client = new_client(objective="taste", parameters=SPACES[space])
    for _ in range(3):
        index, arms = get_next_pair(client)
        complete_pair(client, index, max(arms, key=lambda name: taste(arms[name])))
    adapter = fitted_adapter(client)
    features = [ObservationFeatures.from_arm(arm) for arm in client._experiment.arms_by_name.values()]
    means, covariances = adapter.predict(features)
    latent = adapter.latent_posterior(features)  # of a "taste" that is maximised and only compared: no other units
    torch.testing.assert_close(latent.mean.squeeze(-1), torch.tensor(means["taste"]).double())
    torch.testing.assert_close(latent.variance.squeeze(-1), torch.tensor(covariances["taste"]["taste"]).double())


def test_the_challenger_is_the_arm_most_likely_to_win(monkeypatch):
    """Neither the one of the better mean nor that of the wider spread, if that goes along with the best."""
    client = new_client(parameters=[BOOLEAN, ORDERED], initialization_budget=1)
    values = [0.0, 0.5, 0.5, 2.0]
    for index, (value, ordered) in enumerate(zip(values, (1, 2, 4, 8), strict=True)):
        client.attach_trial({"boolean": True, "ordered": ordered})
        client.complete_trial(index, {"loss": value})
    mean = torch.tensor([0.0, 0.55, 0.5, 2.0]).double()
    covariance = torch.tensor([[1.0, 0.0, 0.9, 0], [0, 0.1, 0, 0], [0.9, 0, 1.0, 0], [0, 0, 0, 0.1]]).double()
    covariance = covariance + 1e-6 * torch.eye(4).double()
    gaussian = SkewGPPosterior.from_gaussian(MultivariateNormal(mean, covariance))
    monkeypatch.setattr(SkewGPAdapter, "latent_posterior", lambda self, features: gaussian)
    names = [arm.name for arm in _with_tried(client, [])]
    # by simulation: the first arm has the least loss, and the second beats it most often
    samples = gaussian.rsample(torch.Size([20_000])).squeeze(-1)
    wins = (samples < samples[:, :1]).double().mean(0)
    assert names == ["0_0", f"{int(wins.argmax())}_0"]
    assert int(wins.argmax()) == 1  # by its mean alone, or its own spread, arm 2 would look likelier
    assert wins[2] < 0.15 < 0.25 < wins[1]


def test_pairs_come_from_the_model_although_an_arm_was_tried(caplog):
    """The best pair has an arm that was tried before, here at the end that wins; nothing falls back to Sobol points."""
    client = new_client(objective="utility")
    tried = []
    for _ in range(6):
        index, arms = get_next_pair(client)
        tried.append([arm["x"] for arm in arms.values()])
        complete_pair(client, index, min(arms, key=lambda name: arms[name]["x"]))
    assert "fallback" not in caplog.text
    assert any(set(tried[i]) & {x for pair in tried[:i] for x in pair} for i in (4, 5))
    assert client._generation_strategy.nodes_by_name["SkewGP"].should_deduplicate


def test_a_pair_may_wait_for_its_answer():
    """The next pair is another one, and both can be answered in either order."""
    client = new_client(objective="utility", names="xy")
    for _ in range(3):
        index, arms = get_next_pair(client)
        complete_pair(client, index, min(arms, key=lambda name: loss(arms[name])))
    first, second = get_next_pair(client), get_next_pair(client)
    assert node_of(client, second[0]) == "SkewGP"
    assert set(first[1]) != set(second[1])
    for index, arms in (second, first):
        complete_pair(client, index, min(arms, key=lambda name: loss(arms[name])))
    assert len(client._experiment.trials_by_status[TrialStatus.COMPLETED]) == 5


def test_a_pair_is_answered_by_a_judge_and_the_second_may_win():
    client = new_client(objective="taste", parameters=[BOOLEAN])
    for judge in ("ann", 1):
        index, arms = get_next_pair(client)
        complete_pair(client, index, winner=list(arms)[1], judge=judge)
        told = recorded_comparisons(client._experiment)[-1]
        assert (told.better, told.worse, told.judge) == ((list(arms)[1],), (next(iter(arms)),), judge)
    index, again = get_next_pair(client)
    complete_pair(client, index, None)
    assert set(again) == set(arms)  # the space has no others
    assert recorded_comparisons(client._experiment)[-1].tie


def test_pairs_and_questions_need_an_objective_and_our_strategy():
    client = Client()
    client.configure_experiment(parameters=[FLOAT])
    calls = (get_next_pair, lambda client: get_next_question(client, {"number": 1.0}))
    for call in calls:
        with pytest.raises(UserInputError, match=r"Call client\.configure_optimization"):
            call(client)
    client.configure_optimization(objective="taste")
    before = snapshot(client)
    for call in (*calls, get_best_arm):
        with pytest.raises(UserInputError, match=r"set_generation_strategy\(skewgp_generation_strategy\(\)\)"):
            call(client)
    assert snapshot(client) == before
    client.set_generation_strategy(small_strategy())
    assert node_of(client, get_next_pair(client)[0]) == "Sobol"


def test_of_several_objectives_there_is_no_pair_and_no_best_arm():
    client = new_client(objective="a, b")
    with pytest.raises(UserInputError, match="has several: a, b"):
        get_next_pair(client)
    for index in with_trials(client, [0.1, 0.5]):
        client.complete_trial(index, {"a": 1.0 + index, "b": 2.0 - index})
    with pytest.raises(UserInputError, match="see tutorials/ax/preference_exploration"):
        attach_comparison(client, 0, 1)
    with pytest.raises(UserInputError, match=r"with several objectives use client.get_pareto_frontier\(\)"):
        get_best_arm(client)


def test_questions_are_answered_as_they_are_asked():
    client = new_client(initialization_budget=2)
    for x in (0.1, 0.7, 0.9):
        client.complete_trial(client.attach_trial({"x": x}), {"loss": loss({"x": x})})
    for ask, num_arms in (("comparison", 2), ("number", 1)):
        asked = get_next_question(client, {"number": 1e6, "comparison": 1e6} | {ask: 1.0})
        assert (asked.ask, len(asked.arms)) == (ask, num_arms)
        answer(client, asked)
    assert len(recorded_comparisons(client._experiment)) == 1
    assert asked.trial_index in client._experiment.lookup_data().df["trial_index"].tolist()


def test_all_first_answers_are_none():
    """Pairs come, a question is chosen, and what is good at last is recommended."""
    client = new_client(objective="utility", names="xy", initialization_budget=2)
    for _ in range(3):
        index, _ = get_next_pair(client)
        complete_pair(client, index, None, or_none=True)
    assert all(told.or_none and not told.better for told in recorded_comparisons(client._experiment))
    asked = get_next_question(client, {"number": 5.0, "comparison": 1.0})
    assert asked.value >= 0
    index, (first, _) = get_next_pair(client)
    complete_pair(client, index, first, or_none=True)
    assert get_best_arm(client)[2] == first


# Questions


def loss(parameters):
    return (parameters["x"] - 0.4) ** 2


def answer(client, asked):
    """Answer a question by the true loss."""
    if asked.ask == "number":
        ((_, parameters),) = asked.arms.items()
        client.complete_trial(asked.trial_index, {"loss": loss(parameters)})
    else:
        complete_pair(client, asked.trial_index, min(asked.arms, key=lambda name: loss(asked.arms[name])))


@pytest.mark.slow
def test_categories_and_integers():
    parameters = [
        RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1)),
        RangeParameterConfig(name="n", parameter_type="int", bounds=(0, 5)),
        ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b", "c"], is_ordered=False),
    ]
    client = new_client(parameters=parameters, initialization_budget=2)
    for _ in range(6):
        answer(client, get_next_question(client, {"number": 3.0, "comparison": 1.0}))
    assert len(client._experiment.trials) == 6


# The best arm


def test_the_best_arm_of_parameters_on_a_log_scale_is_one_that_was_tried():
    """Ax takes logarithms, and what comes back is rounded."""
    rates = [RangeParameterConfig(name="rate", parameter_type="float", bounds=(1e-5, 1e-1), scaling="log")]
    client = new_client(parameters=rates)
    for rate in (3e-4, 1.7e-3, 2.3e-2):
        index = client.attach_trial({"rate": rate})
        client.complete_trial(index, {"loss": math.log10(rate / 2e-3) ** 2})
    parameters, _, name = get_best_arm(client)
    assert parameters == {"rate": 1.7e-3}
    assert name == "1_0"


def with_energies(energies, speeds, constraint="energy <= 1", **kwargs):
    """Trials on a line, with a number to maximise and one that is constrained."""
    client = new_client(objective="speed", constraints=[constraint], **kwargs)
    for index in with_trials(client, [i / (len(energies) - 1) for i in range(len(energies))]):
        client.complete_trial(index, {"speed": speeds[index], "energy": energies[index]})
    return client


@pytest.mark.parametrize(
    ("energies", "best"),
    [
        ([0.2, 5.0, 10.0, 14.0, 18.0], 0),  # the only feasible arm is the slowest
        ([1.0, 5.0, 10.0, 14.0, 18.0], 0),  # at the limit
        ([18.0, 14.0, 10.0, 5.0, 0.2], 4),
        ([0.2, 0.4, 10.0, 14.0, 18.0], 1),
        ([5.0, 8.0, 10.0, 14.0, 18.0], None),
    ],
)
def test_the_best_arm_is_feasible_or_there_is_none(energies, best):
    speeds = [1.0, 2.0, 3.0, 4.0, 5.0] if energies[0] < energies[-1] else [5.0, 4.0, 3.0, 2.0, 1.0]
    client = with_energies(energies, speeds)
    if best is None:
        with pytest.raises(UserInputError, match="none of the arms is predicted to satisfy the constraints"):
            get_best_arm(client)
    else:
        assert get_best_arm(client)[2] == f"{best}_0"


@pytest.mark.parametrize("works", [True, False])
def test_the_best_arm_works_by_its_labels(works):
    """Labels of validity that say no of trials with numbers."""
    client = new_client(objective="speed")
    for index in with_trials(client, [0.0, 0.1, 0.2, 0.8, 0.9, 1.0]):
        client.complete_trial(index, {"speed": float(index), "validity": int(works and index < 3)})
    if works:
        assert get_best_arm(client)[2] == "2_0"
    else:
        with pytest.raises(UserInputError, match="none of the arms is predicted to satisfy the constraints"):
            get_best_arm(client)


@pytest.mark.parametrize("limit", [4.0, 1e-3])
def test_the_best_compared_arm_is_feasible_or_there_is_none(limit):
    client = new_client(objective="taste", constraints=[f"energy <= {limit}"])
    for index in with_trials(client, [0.0, 0.25, 0.5, 0.75, 1.0]):
        client.complete_trial(index, {"energy": 2.0 + 4.0 * index})
    for worse, better in itertools.pairwise(range(5)):
        attach_comparison(client, better, worse)
    if limit > 1:
        assert get_best_arm(client)[2] == "0_0"
    else:
        with pytest.raises(UserInputError, match="none of the arms is predicted to satisfy the constraints"):
            get_best_arm(client)

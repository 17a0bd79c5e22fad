"""Pairs that are made to be compared, on every sort of search space."""

import pytest
import torch

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import UserInputError
from ax_cases import GENERATES, new_client, node_of, small_strategy, snapshot
from gpytorch.distributions import MultivariateNormal

from botorch_skewgp.ax import (
    SkewGPAdapter,
    attach_comparison,
    complete_pair,
    get_best_arm,
    get_next_pair,
    recorded_comparisons,
)
from botorch_skewgp.ax.pairs import _with_tried
from botorch_skewgp.ax.registry import skewgp_spec_of
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


def test_a_space_of_two_points_is_asked_again_where_nothing_is_known():
    client = new_client(objective="taste", parameters=[BOOLEAN])
    pairs = [get_next_pair(client)[1] for _ in range(2)]
    assert set(pairs[0]) == set(pairs[1])


def test_a_pair_is_answered_by_a_judge():
    client = new_client(objective="taste", parameters=[BOOLEAN])
    for judge in ("ann", 1):
        index, arms = get_next_pair(client)
        complete_pair(client, index, winner=next(iter(arms)), judge=judge)
    assert [entry.judge for entry in recorded_comparisons(client._experiment)] == ["ann", 1]
    with pytest.raises(UserInputError, match="no trial True"):
        attach_comparison(client, winner=True, loser=0)


def test_one_point_is_no_pair():
    only = ChoiceParameterConfig(name="choice", parameter_type="str", values=["a", "b"], is_ordered=False)
    client = new_client(objective="taste", parameters=[only])
    for value in ("a", "b"):
        client.mark_trial_failed(client.attach_trial({"choice": value}))
    with pytest.raises(UserInputError, match="no second point to compare with"):
        get_next_pair(client)


def test_pairs_need_our_strategy():
    client = Client()
    client.configure_experiment(parameters=[FLOAT])
    client.configure_optimization(objective="taste")
    before = snapshot(client)
    with pytest.raises(UserInputError, match=r"set_generation_strategy\(skewgp_generation_strategy\(\)\)"):
        get_next_pair(client)
    assert snapshot(client) == before
    client.set_generation_strategy(small_strategy())
    assert node_of(client, get_next_pair(client)[0]) == "Sobol"


def test_pairs_need_a_single_objective():
    client = new_client(objective="a, b")
    before = snapshot(client)
    with pytest.raises(UserInputError, match="has several: a, b"):
        get_next_pair(client)
    for x in (0.1, 0.2):
        client.attach_trial({"x": x})
    with pytest.raises(UserInputError, match="see tutorials/ax/preference_exploration"):
        attach_comparison(client, 0, 1)
    assert snapshot(new_client(objective="a, b")) == before
    assert not recorded_comparisons(client._experiment)
    client.complete_trial(0, {"a": 1.0, "b": 2.0})  # and the experiment goes on
    client.get_next_trials(max_trials=1)


@pytest.mark.parametrize("space", ["unordered", "int and float"])
def test_the_latent_posterior_is_asked_in_units_of_the_search_space(space):
    client = new_client(objective="taste", parameters=SPACES[space])
    for _ in range(3):
        index, arms = get_next_pair(client)
        complete_pair(client, index, max(arms, key=lambda name: taste(arms[name])))
    spec = skewgp_spec_of(client)
    spec.fit(experiment=client._experiment)
    adapter = spec.fitted_adapter
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

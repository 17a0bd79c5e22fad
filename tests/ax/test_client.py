"""Loops through Ax's `Client`, and what it reports."""

import pytest

pytest.importorskip("ax")

from ax.api.configs import RangeParameterConfig
from ax.exceptions.core import SearchSpaceExhausted, UserInputError
from ax_cases import GENERATES, new_client, next_trial, node_of, with_trials
from botorch.acquisition import qUpperConfidenceBound

from botorch_skewgp.ax import (
    attach_comparison,
    complete_pair,
    get_best_arm,
    get_next_pair,
    recorded_comparisons,
    skewgp_generation_strategy,
)

pytestmark = GENERATES


def loss(x: float) -> float:
    return (x - 0.35) ** 2


def crashes(x: float) -> bool:
    return x > 0.7


# Sobol first, then SkewGPs, in every scenario


def failing(client, index, x):
    if crashes(x):
        client.mark_trial_failed(index)
    else:
        client.complete_trial(index, {"loss": loss(x)})


def test_sobol_then_skewgp():
    client = new_client()
    for _ in range(5):
        index, parameters = next_trial(client)
        failing(client, index, parameters["x"])
    assert [node_of(client, i) for i in range(5)] == ["Sobol"] * 3 + ["SkewGP"] * 2
    assert len({trial.arms[0].parameters["x"] for trial in client._experiment.trials.values()}) == 5


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
    index, _ = next_trial(client)
    assert node_of(client, index) == "SkewGP"


@pytest.mark.slow
def test_sobol_goes_on_until_all_objectives_are_known():
    client = new_client(objective="-a, -b")
    for value in ({"a": 1.0}, {"a": 2.0}, {"a": 3.0}):
        client.complete_trial(next_trial(client)[0], value)
    index, _ = next_trial(client)
    assert node_of(client, index) == "Sobol"
    client.attach_data(index, {"b": 2.0})
    index, _ = next_trial(client)
    assert node_of(client, index) == "Sobol"  # no trial has both
    client.complete_trial(index, {"a": 2.0, "b": 1.0})
    assert node_of(client, next_trial(client)[0]) == "SkewGP"


def test_fixed_parameters():
    client = new_client(names="xy")
    for index, (x, y) in enumerate([(0.1, 0.2), (0.5, 0.8), (0.9, 0.4)]):
        client.attach_trial({"x": x, "y": y})
        client.complete_trial(index, {"loss": loss(x) + y})
    trials = client.get_next_trials(max_trials=2, fixed_parameters={"y": 0.75})
    assert all(parameters["y"] == 0.75 for parameters in trials.values())
    assert all(node_of(client, index) == "SkewGP" for index in trials)


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


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"feasibility_threshold": 1.0}, "feasibility_threshold must be strictly between 0 and 1; got 1"),
        ({"acquisition_options": {"beta": 1.0}}, "acquisition_options need an acquisition"),
        ({"binary_metrics": "works"}, r"binary_metrics must be a list of names; write \['works'\] for a single one"),
        ({"feasibility_threshold": "a"}, "feasibility_threshold must be a finite number; got 'a'"),
        ({"validity_metric": None}, "validity_metric must be the name of a metric; got None"),
        ({"binary_metrics": [1]}, r"binary_metrics must be a list of names; got \[1\]"),
        ({"binary_metrics": 1}, "binary_metrics must be a list of names; got 1"),
        ({"acquisition": []}, r"cannot construct a \[\]"),
        ({"acquisition": qUpperConfidenceBound, "acquisition_options": [1]}, "acquisition_options must be arguments"),
        ({"torch_device": "x"}, "torch_device must be a device of torch, such as 'cuda'; got 'x'"),
        ({"acquisition": "qKnowledgeGradient"}, "cannot construct a qKnowledgeGradient"),
    ],
)
def test_arguments_of_the_strategy(kwargs, match):
    with pytest.raises(UserInputError, match=match):
        skewgp_generation_strategy(**kwargs)


# Search spaces


@pytest.mark.slow
def test_a_baseline_and_relative_constraints():
    client = new_client(constraints=["cost <= 1.1 * baseline"])
    client.attach_baseline({"x": 0.5})
    client.complete_trial(0, {"loss": loss(0.5), "cost": 1.0})
    for _ in range(4):
        index, p = next_trial(client)
        client.complete_trial(index, {"loss": loss(p["x"]), "cost": 1 + p["x"]})
    assert node_of(client, index) == "SkewGP"


# What is reported


@pytest.fixture(scope="module")
def with_crashes():
    client = new_client(seed=1)
    for index, x in enumerate([0.05, 0.2, 0.4, 0.6, 0.8, 0.9]):
        client.attach_trial({"x": x})
        failing(client, index, x)
    failing(client, *(lambda index, p: (index, p["x"]))(*next_trial(client)))
    return client


def test_predictions(with_crashes):
    left, right = with_crashes.predict([{"x": 0.35}, {"x": 0.95}])
    assert set(left) == {"loss", "validity"}
    assert left["loss"][0] == pytest.approx(0, abs=0.02)
    for mean, error in (left["validity"], right["validity"]):
        assert 0 <= mean <= 1
        assert 0 <= error <= 0.5
    assert left["validity"][0] > 0.6
    assert right["validity"][0] < 0.5


def test_best_parameterization(with_crashes):
    parameters, outcome, index, name = with_crashes.get_best_parameterization()
    assert parameters == with_crashes._experiment.trials[index].arms[0].parameters
    assert parameters["x"] == pytest.approx(0.35, abs=0.06)
    assert outcome["loss"] == pytest.approx(0, abs=0.01) or outcome["loss"][0] == pytest.approx(0, abs=0.01)
    assert name == f"{index}_0"


def test_best_arm(with_crashes):
    parameters, outcome, name = get_best_arm(with_crashes)
    assert parameters["x"] == pytest.approx(0.35, abs=0.06)
    assert with_crashes._experiment.arms_by_name[name].parameters == parameters
    assert set(outcome) == {"loss", "validity"}
    mean, error = outcome["loss"]
    assert mean == pytest.approx(0, abs=0.02)
    assert error > 0


@pytest.mark.slow
def test_pareto_frontier():
    client = new_client(objective="-a, -b")
    for x in (0.1, 0.35, 0.6, 0.95):
        index = client.attach_trial({"x": x})
        if crashes(x):
            client.mark_trial_abandoned(index)
        else:
            client.complete_trial(index, {"a": loss(x), "b": (x - 0.6) ** 2})
    client.mark_trial_failed(next_trial(client)[0])
    frontier = client.get_pareto_frontier()
    xs = [parameters["x"] for parameters, *_ in frontier]
    assert 0.1 not in xs
    assert 0.95 not in xs
    assert {0.35, 0.6} & set(xs)


def cards_of(client):
    """All cards, by title; those of groups too."""
    found = {}

    def walk(cards):
        for card in cards:
            if hasattr(card, "children"):
                walk(card.children)
            else:
                found[(type(card).__name__, card.name, card.title)] = card

    walk(client.compute_analyses(display=False))
    return found


ARBITRARY = ("SensitivityAnalysisPlot", "TopSurfacesAnalysis")  # variance-based, of Gaussian posteriors only


@pytest.mark.filterwarnings("ignore")  # of Ax's plots and of plotly
@pytest.mark.slow
def test_cards(with_crashes):
    cards = cards_of(with_crashes)
    assert cards
    errors = {name for kind, name, _ in cards if "Error" in kind}
    assert errors <= set(ARBITRARY), {key: card.blob[-800:] for key, card in cards.items() if key[1] in errors}
    assert any("CrossValidation" in name for _, name, _ in cards)


def test_cross_validation(with_crashes):
    from ax.adapter.cross_validation import cross_validate

    strategy = with_crashes._generation_strategy
    results = cross_validate(strategy.adapter)
    assert len(results) >= 4
    for result in results:
        assert list(result.predicted.metric_signatures) == ["loss"]
        assert abs(result.predicted.means[0] - result.observed.data.means[0]) < 0.5


@pytest.mark.parametrize("since", ["a comparison", "a failure", "a pair"])
def test_what_came_after_the_fit_does_not_keep_ax_from_its_best_trial(since):
    """Ax validates the last fit, whose parameters are of the kinds of observations that there were."""
    client = new_client()
    for index, x in enumerate(with_trials(client, [0.1, 0.3, 0.5, 0.9])):
        client.complete_trial(index, {"loss": loss([0.1, 0.3, 0.5, 0.9][x])})
    (failing, _) = next_trial(client)
    if since == "a failure":
        client.mark_trial_failed(failing)
    elif since == "a comparison":
        attach_comparison(client, 1, 0)
    else:
        index, arms = get_next_pair(client)
        complete_pair(client, index, winner=next(iter(arms)))
    best, _, trial, _ = client.get_best_parameterization()
    assert (best["x"], trial) == (0.3, 1)


# Comparisons


def test_metric_of_pairs_of_ax_itself():
    """Two-arm trials with values 1 and 0 of `pairwise_pref_query` are comparisons too."""
    from ax.core.arm import Arm
    from ax.core.data import Data
    from ax.core.metric import Metric
    from pandas import DataFrame

    client = new_client(objective="utility")
    experiment = client._experiment
    name = "pairwise_pref_query"
    experiment.add_metric(Metric(name=name))
    answers = [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, float("nan"))]
    for values in answers:
        trial = experiment.new_batch_trial()
        trial.add_arms_and_weights([Arm({"x": 0.1 * (trial.index + 1)}), Arm({"x": 1 - 0.1 * (trial.index + 1)})])
        trial.mark_running(no_runner_required=True)
        rows = [
            {
                "trial_index": trial.index,
                "arm_name": arm.name,
                "metric_name": name,
                "metric_signature": name,
                "mean": value,
                "sem": float("nan"),
            }
            for arm, value in zip(trial.arms, values, strict=True)
        ]
        experiment.attach_data(Data(df=DataFrame(rows)))
        trial.mark_completed()
    found = recorded_comparisons(experiment)
    assert [(entry.items, entry.tie) for entry in found[:2]] == [(("0_1", "0_0"), False), (("1_0", "1_1"), False)]
    assert [entry.tie for entry in found[2:]] == [True]

"""Loops through Ax's `Client`, and what it reports."""

import itertools
import math

import pytest

pytest.importorskip("ax")

from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import SearchSpaceExhausted, UserInputError
from ax_cases import GENERATES, new_client, next_trial, node_of, small_strategy, with_trials
from botorch.acquisition import qUpperConfidenceBound

from botorch_skewgp.ax import attach_comparison, complete_pair, get_best_arm, get_next_pair, skewgp_generation_strategy

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


def mixed(client, index, x):
    """Every other trial has a number; all are compared with the first."""
    client.complete_trial(index, {"loss": loss(x)} if index % 2 == 0 else None)
    if index:
        first = client._experiment.trials[0].arm.parameters["x"]
        attach_comparison(client, *((index, 0) if loss(x) < loss(first) else (0, index)))


def preferring(client, index, x):
    client.complete_trial(index)
    if index:
        first = client._experiment.trials[0].arm.parameters["x"]
        attach_comparison(client, *((index, 0) if loss(x) < loss(first) else (0, index)))


def two_objectives(client, index, x):
    if crashes(x):
        client.mark_trial_abandoned(index)
    else:
        client.complete_trial(index, {"a": loss(x), "b": (x - 0.6) ** 2})


SCENARIOS = {
    "failures": (failing, {}),
    "numbers and comparisons": (mixed, {}),
    "comparisons": (preferring, {}),
    "two objectives": (two_objectives, {"objective": "-a, -b"}),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_sobol_then_skewgp(scenario):
    tell, kwargs = SCENARIOS[scenario]
    client = new_client(**kwargs)
    for _ in range(5):
        index, parameters = next_trial(client)
        tell(client, index, parameters["x"])
    nodes = [node_of(client, i) for i in range(5)]
    assert nodes == ["Sobol"] * 3 + ["SkewGP"] * 2
    assert len({trial.arms[0].parameters["x"] for trial in client._experiment.trials.values()}) == 5
    assert all(0 <= trial.arms[0].parameters["x"] <= 1 for trial in client._experiment.trials.values())


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


def test_trials_attached_by_hand_count():
    client = new_client()
    for index in with_trials(client, [0.1, 0.5, 0.9]):
        client.complete_trial(index, {"loss": 1.0 + index})
    assert node_of(client, next_trial(client)[0]) == "SkewGP"


@pytest.mark.slow
def test_several_trials_at_once():
    client = new_client()
    for index in with_trials(client, [0.1, 0.5, 0.9]):
        failing(client, index, [0.1, 0.5, 0.9][index])
    trials = client.get_next_trials(max_trials=3)
    assert len({tuple(parameters.values()) for parameters in trials.values()}) == 3
    assert all(node_of(client, index) == "SkewGP" for index in trials)
    # those pending count: a further one is another point
    _, parameters = next_trial(client)
    assert parameters not in list(trials.values())


def test_fixed_parameters():
    client = new_client(names="xy")
    for index, (x, y) in enumerate([(0.1, 0.2), (0.5, 0.8), (0.9, 0.4)]):
        client.attach_trial({"x": x, "y": y})
        client.complete_trial(index, {"loss": loss(x) + y})
    trials = client.get_next_trials(max_trials=2, fixed_parameters={"y": 0.75})
    assert all(parameters["y"] == 0.75 for parameters in trials.values())
    assert all(node_of(client, index) == "SkewGP" for index in trials)


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


def test_another_acquisition_function():
    client = new_client(acquisition=qUpperConfidenceBound, acquisition_options={"beta": 4.0})
    for index in with_trials(client, [0.1, 0.5, 0.9]):
        client.complete_trial(index, {"loss": loss(0.1)})
    assert node_of(client, next_trial(client)[0]) == "SkewGP"


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"failures": "maybe"}, 'failures must be "constraint", "objective" or "ignore"; got \'maybe\''),
        ({"initialization_budget": 0}, "initialization_budget must be an integer of at least 1; got 0"),
        ({"feasibility_threshold": 1.0}, "feasibility_threshold must be strictly between 0 and 1; got 1"),
        ({"acquisition_options": {"beta": 1.0}}, "acquisition_options need an acquisition"),
        ({"binary_metrics": "works"}, r"binary_metrics must be a list of names; write \['works'\] for a single one"),
        ({"initialization_budget": 1.5}, "initialization_budget must be an integer of at least 1; got 1.5"),
        ({"initialization_budget": True}, "initialization_budget must be"),
        ({"initialization_budget": "a"}, "initialization_budget must be"),
        ({"seed": "x"}, "seed must be an integer from 0 to 9223372036854775807; got 'x'"),
        ({"seed": 2**70}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
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
def test_all_kinds_of_parameters():
    parameters = [
        RangeParameterConfig(name="rate", parameter_type="float", bounds=(1e-4, 1.0), scaling="log"),
        RangeParameterConfig(name="layers", parameter_type="int", bounds=(1, 4)),
        ChoiceParameterConfig(name="size", parameter_type="int", values=[8, 16, 64], is_ordered=True),
        ChoiceParameterConfig(name="colour", parameter_type="str", values=["red", "green", "blue"], is_ordered=False),
        RangeParameterConfig(name="step", parameter_type="float", bounds=(0.0, 1.0), step_size=0.25),
    ]
    client = new_client(parameters=parameters)
    for _ in range(6):
        index, p = next_trial(client)
        assert 1e-4 <= p["rate"] <= 1
        assert p["layers"] in (1, 2, 3, 4)
        assert p["size"] in (8, 16, 64)
        assert p["colour"] in ("red", "green", "blue")
        assert p["step"] in (0.0, 0.25, 0.5, 0.75, 1.0)
        if p["colour"] == "blue":
            client.mark_trial_failed(index)
        else:
            client.complete_trial(index, {"loss": p["layers"] + p["size"] / 64})
    assert node_of(client, 5) == "SkewGP"


@pytest.mark.slow
def test_parameter_constraints():
    client = new_client(names="xy", parameter_constraints=["x + y <= 1"])
    for _ in range(5):
        index, p = next_trial(client)
        assert p["x"] + p["y"] <= 1 + 1e-9
        client.complete_trial(index, {"loss": -p["x"] - p["y"]})
    assert node_of(client, index) == "SkewGP"


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


def test_best_arm_of_comparisons():
    client = new_client(objective="utility")
    with_trials(client, [0.0, 0.3, 0.5, 0.9])
    for winner, loser in [(1, 0), (1, 2), (2, 3), (1, 3), (1, 0), (1, 2)]:
        attach_comparison(client, winner, loser)
    parameters, outcome, name = get_best_arm(client)
    assert (parameters, name) == ({"x": 0.3}, "1_0")
    assert set(outcome) == {"utility"}


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


def test_best_arm_of_several_objectives():
    client = new_client(objective="a, b")
    for index in with_trials(client, [0.1, 0.5]):
        client.complete_trial(index, {"a": 1.0 + index, "b": 2.0 - index})
    with pytest.raises(UserInputError, match=r"with several objectives use client.get_pareto_frontier\(\)"):
        get_best_arm(client)


def test_best_arm_of_another_strategy():
    client = new_client()
    client.configure_generation_strategy(initialization_budget=2)
    with pytest.raises(UserInputError, match="The client's strategy has no SkewGP"):
        get_best_arm(client)


@pytest.mark.slow
def test_pareto_frontier():
    client = new_client(objective="-a, -b")
    for index, x in enumerate([0.1, 0.35, 0.6, 0.95]):
        client.attach_trial({"x": x})
        two_objectives(client, index, x)
    index, p = next_trial(client)
    two_objectives(client, index, p["x"])
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


def test_summary(with_crashes):
    table = with_crashes.summarize()
    assert (table["trial_status"] == "FAILED").sum() >= 2


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
    client = new_client(failures="objective")
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


def test_ties_and_arm_names():
    client = new_client()
    with_trials(client, [0.0, 0.5])
    attach_comparison(client, "0_0", 1)
    attach_comparison(client, 1, "0_0", tie=True)
    from botorch_skewgp.ax import Comparison, recorded_comparisons

    assert recorded_comparisons(client._experiment) == [
        Comparison("0_0", "1_0"),
        Comparison("1_0", "0_0", tie=True),
    ]


@pytest.mark.slow
def test_pairs():
    """Win, tie, abandoned: the next pair comes, from Sobol and then from SkewGP."""
    from botorch_skewgp.ax import recorded_comparisons

    client = new_client(objective="utility")
    statuses = []
    for k in range(6):
        index, arms = get_next_pair(client)
        assert len(arms) == 2
        first, second = arms
        assert arms[first] != arms[second]
        if k == 1:
            complete_pair(client, index, None)
        elif k == 2:
            client.mark_trial_abandoned(index)
        else:
            complete_pair(client, index, min(arms, key=lambda name: loss(arms[name]["x"])))
        statuses.append(client._experiment.trials[index].status)
    assert statuses == [TrialStatus.COMPLETED] * 2 + [TrialStatus.ABANDONED] + [TrialStatus.COMPLETED] * 3
    assert [node_of(client, i) for i in range(6)] == ["Sobol"] * 3 + ["SkewGP"] * 3
    assert [entry.tie for entry in recorded_comparisons(client._experiment)] == [False, True, False, False, False]
    assert "validity" not in client._experiment.metrics
    parameters, _, _ = get_best_arm(client)
    assert parameters["x"] == pytest.approx(0.35, abs=0.3)


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
        complete_pair(client, index, min(arms, key=lambda name: loss(arms[name]["x"])))
    first, second = get_next_pair(client), get_next_pair(client)
    assert node_of(client, second[0]) == "SkewGP"
    assert set(first[1]) != set(second[1])
    for index, arms in (second, first):
        complete_pair(client, index, min(arms, key=lambda name: loss(arms[name]["x"])))
    assert len(client._experiment.trials_by_status[TrialStatus.COMPLETED]) == 5


def test_the_winner_of_a_pair_may_be_the_second():
    from botorch_skewgp.ax import Comparison, recorded_comparisons

    client = new_client(objective="utility")
    index, arms = get_next_pair(client)
    first, second = arms
    complete_pair(client, index, second)
    assert recorded_comparisons(client._experiment) == [Comparison(second, first)]


@pytest.mark.slow
def test_pairs_in_experiments_with_numbers_and_failures():
    client = new_client()
    for index, x in enumerate([0.1, 0.5, 0.9]):
        client.attach_trial({"x": x})
        failing(client, index, x)
    index, arms = get_next_pair(client)
    assert node_of(client, index) == "SkewGP"
    complete_pair(client, index, next(iter(arms)))
    assert node_of(client, next_trial(client)[0]) == "SkewGP"


def test_metric_of_pairs_of_ax_itself():
    """Two-arm trials with values 1 and 0 of `pairwise_pref_query` are comparisons too."""
    from ax.core.arm import Arm
    from ax.core.data import Data
    from ax.core.metric import Metric
    from pandas import DataFrame

    from botorch_skewgp.ax import Comparison, recorded_comparisons

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
    assert recorded_comparisons(experiment)[:2] == [Comparison("0_1", "0_0"), Comparison("1_0", "1_1")]
    assert [entry.tie for entry in recorded_comparisons(experiment)] == [False, False, True]


def test_small_search_is_what_the_tests_change_only():
    """The strategy that users get differs from that of the tests in the size of the search alone."""
    spec = skewgp_generation_strategy().nodes_by_name["SkewGP"].generator_specs[0]
    small = small_strategy(initialization_budget=5).nodes_by_name["SkewGP"].generator_specs[0]
    assert spec.generator_gen_kwargs == {}
    assert small.generator_kwargs.keys() == spec.generator_kwargs.keys()


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

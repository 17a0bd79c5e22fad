"""Pairs and questions on every sort of search space, and the arm that is recommended."""

import math

import pytest
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.arm import Arm
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax_cases import GENERATES, new_client, node_of, small_strategy, snapshot, with_trials

from botorch_skewgp import ax as ours
from botorch_skewgp.hosts.records import judged

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
    "boolean": [BOOLEAN],
    "int": [INT],
    "unordered": [UNORDERED],
    "step": [STEP],
    "large": [LARGE],
    "discrete": [INT, ORDERED, UNORDERED, BOOLEAN],
    "mixed": [FLOAT, LOG, INT, UNORDERED, BOOLEAN],
}
FAST = {"boolean", "int"}
FEW = {"boolean", "unordered"}  # all points are tried, so that the best of them is known


def taste(parameters):
    """Best at the second letter and small numbers."""
    return sum(value == "b" if isinstance(value, str) else -float(value) for value in parameters.values())


def ask_and_answer(client):
    """Ask for a pair and name the better arm; its name and parameters."""
    index, arms = ours.get_next_pair(client)
    best = max(arms, key=lambda name: taste(arms[name]))
    ours.complete_pair(client, index, best)
    return arms


@pytest.mark.parametrize(
    "space", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in SPACES]
)
def test_pairs_on_a_space(space):
    constraints = ["cost <= 1"] if space == "mixed" else None
    client = new_client(objective="taste", parameters=SPACES[space], constraints=constraints)
    for index, parameters in client.get_next_trials(max_trials=3).items() if constraints else ():
        client.complete_trial(index, {"taste": taste(parameters), "cost": 0.5})
    for _ in range(5):
        first, second = ask_and_answer(client).values()
        assert first != second
    assert len(ours.recorded_comparisons(client._experiment)) == 5
    best = max((arm.parameters for arm in client._experiment.arms_by_name.values()), key=taste)
    if space in FEW:
        assert ours.get_best_arm(client)[0] == best


def test_tried_arms_are_asked_about_again_the_best_and_those_compared_least_often():
    four, three = (
        ChoiceParameterConfig(name="choice", parameter_type="str", values=list(values), is_ordered=False)
        for values in ("abcd", "abc")
    )
    client = new_client(objective="taste", parameters=[four], initialization_budget=9)
    for value in "ab":
        client.mark_trial_failed(client.attach_trial({"choice": value}))
    trial = client._experiment.new_batch_trial()
    trial.add_arms_and_weights([Arm({"choice": value}) for value in "cd"])
    trial.mark_running(no_runner_required=True)
    for name in ("2_0", "2_1"):
        trial.mark_arm_abandoned(name)
    with pytest.raises(UserInputError, match="no second point to compare with"):
        ours.get_next_pair(client)
    client = new_client(objective="taste", parameters=[three], initialization_budget=9)
    for value in "abc":
        client.attach_trial({"choice": value})
    _, arms = ours.get_next_pair(client)
    assert list(arms) == ["0_0", "1_0"]  # nothing was compared
    ours.attach_comparison(client, 2, 0)
    ours.attach_comparison(client, 2, 0)
    assert list(ours.get_next_pair(client)[1]) == ["2_0", "1_0"]


def test_pairs_come_from_the_model_although_an_arm_was_tried(caplog):
    """The best pair has an arm that was tried before, here at the end that wins; nothing falls back to Sobol points."""
    client = new_client(objective="taste")
    tried = [[arm["x"] for arm in ask_and_answer(client).values()] for _ in range(6)]
    assert "fallback" not in caplog.text
    assert any(set(tried[i]) & {x for pair in tried[:i] for x in pair} for i in (4, 5))
    assert client._generation_strategy.nodes_by_name["SkewGP"].should_deduplicate


def test_a_pair_may_wait_for_its_answer():
    """The next pair is another one, and both can be answered in either order."""
    client = new_client(objective="taste", names="xy")
    for _ in range(3):
        ask_and_answer(client)
    first, second = ours.get_next_pair(client), ours.get_next_pair(client)
    assert node_of(client, second[0]) == "SkewGP"
    assert set(first[1]) != set(second[1])
    for index, arms in (second, first):
        ours.complete_pair(client, index, next(iter(arms)))
    assert len(client._experiment.trials_by_status[TrialStatus.COMPLETED]) == 5


def parameters_of(arms):
    return frozenset(tuple(sorted(arm.items())) for arm in arms.values())


@pytest.mark.parametrize("space", [[FLOAT, LOG], [UNORDERED, BOOLEAN]], ids=["box", "choices"])
def test_open_pairs_are_not_asked_again(space):
    """Three at once, answered in any order."""
    client = new_client(objective="taste", parameters=space, initialization_budget=2)
    for _ in range(3):
        ask_and_answer(client)
    waiting, asked = [], 0
    while asked < 6:
        while len(waiting) < 3:
            index, arms = ours.get_next_pair(client)
            assert len(parameters_of(arms)) == 2
            assert parameters_of(arms) not in [parameters_of(other) for _, other in waiting]
            waiting.append((index, arms))
            asked += 1
        index, arms = waiting.pop(1)
        ours.complete_pair(client, index, max(arms, key=lambda name: taste(arms[name])))


def test_an_open_pair_changes_what_is_asked():
    """Its answers count, although they are not known."""
    client = new_client(objective="taste", parameters=[FLOAT], initialization_budget=2)
    for _ in range(3):
        ask_and_answer(client)
    first, second = (parameters_of(ours.get_next_pair(client)[1]) for _ in range(2))
    assert first != second


def test_both_points_of_a_pair_have_fixed_parameters():
    client = new_client(objective="taste", parameters=[FLOAT, UNORDERED], initialization_budget=2)
    for fixed in ({"unordered": "c"}, {"unordered": "b"}, {"float": 0.25}, {"unordered": "a"}):
        index, arms = ours.get_next_pair(client, fixed_parameters=fixed)
        first, second = arms.values()
        assert first != second
        assert first | fixed == first
        assert second | fixed == second
        ours.complete_pair(client, index, next(iter(arms)))
    before = snapshot(client)
    for wrong, message in (
        ({"other": 1.0}, "names other"),
        ({"float": 99.0}, "must be fixed at a number of its range"),
    ):
        with pytest.raises(UserInputError, match=message):
            ours.get_next_pair(client, fixed_parameters=wrong)
    assert snapshot(client) == before


@pytest.mark.slow
def test_a_champion_is_challenged():
    """It is the second of each pair, also of several open ones and where all points were tried."""
    client = new_client(objective="taste", parameters=[FLOAT, UNORDERED], initialization_budget=2)
    for _ in range(3):
        ask_and_answer(client)
    champion, parameters = next(iter(client._experiment.arms_by_name.items()))
    fixed = {"unordered": parameters.parameters["unordered"]}
    pairs = [ours.get_next_pair(client, against=champion), ours.get_next_pair(client, fixed, against=champion)]
    for _, arms in pairs:
        assert [*arms][1] == champion
    challengers = [next(iter(arms.values())) for _, arms in pairs]
    assert challengers[0] != challengers[1]
    assert challengers[1] | fixed == challengers[1]
    wrong = next(value for value in "abc" if value != fixed["unordered"])
    before = snapshot(client)
    for options, message in (
        ({"against": "zz"}, "no arm 'zz'"),
        ({"against": champion, "fixed_parameters": {"unordered": wrong}}, "has other values than fixed_parameters"),
    ):
        with pytest.raises(UserInputError, match=message):
            ours.get_next_pair(client, **options)
    assert snapshot(client) == before


@pytest.mark.slow
def test_a_champion_is_challenged_by_tried_arms_where_there_are_no_others():
    client = new_client(objective="taste", parameters=[UNORDERED], initialization_budget=2)
    for value in "abc":
        client.attach_trial({"unordered": value})
    for known in (False, True):
        if known:
            ours.attach_comparison(client, 2, 0)
        asked = [[*ours.get_next_pair(client, against=1)[1]] for _ in range(2)]
        assert sorted(asked) == [["1_0", "0_0"], ["1_0", "2_0"]]
        for trial in [*client._experiment.trials.values()][3:]:
            client.mark_trial_abandoned(trial.index)


def test_answers_to_pairs():
    client = new_client(objective="taste", initialization_budget=99)
    answers = [("second", {"judge": "ann"}), ("first", {"judge": 1}), (None, {}), (None, {"or_none": True})]
    for winner, kwargs in [*answers, ("first", {"or_none": True})]:
        index, arms = ours.get_next_pair(client)
        named = dict(zip(("first", "second"), arms, strict=True))
        best = named.get(winner)
        ours.complete_pair(client, index, best, **kwargs)
        told = ours.recorded_comparisons(client._experiment)[-1]
        others = [name for name in arms if name != best]
        tie = winner is None and not kwargs
        wanted = judged(others[0], others[1:], tie=True) if tie else judged(best, others, **kwargs)
        assert told == wanted


def test_pairs_and_questions_need_an_objective_and_our_strategy():
    client = Client()
    client.configure_experiment(parameters=[FLOAT])
    calls = (ours.get_next_pair, lambda client: ours.get_next_question(client, {"number": 1.0}))
    for call in calls:
        with pytest.raises(UserInputError, match=r"Call client\.configure_optimization"):
            call(client)
    client.configure_optimization(objective="taste")
    before = snapshot(client)
    for call in (*calls, ours.get_best_arm):
        with pytest.raises(UserInputError, match=r"set_generation_strategy\(skewgp_generation_strategy\(\)\)"):
            call(client)
    assert snapshot(client) == before
    client.set_generation_strategy(small_strategy())
    assert node_of(client, ours.get_next_pair(client)[0]) == "Sobol"
    with pytest.raises(UserInputError, match=r"has several: a, b.*see tutorials/ax/preference_exploration"):
        ours.get_next_pair(new_client(objective="a, b"))


# The best arm


def test_the_best_arm_of_parameters_on_a_log_scale_is_one_that_was_tried():
    """Ax takes logarithms, and what comes back is rounded."""
    client = new_client(parameters=[LOG])
    for rate in (3e-4, 1.7e-3, 2.3e-2):
        client.complete_trial(client.attach_trial({"log": rate}), {"loss": math.log10(rate / 2e-3) ** 2})
    parameters, _, name = ours.get_best_arm(client)
    assert (parameters, name) == ({"log": 1.7e-3}, "1_0")


SPEEDS = (1.0, 2.0, 3.0, 4.0, 5.0)


def of_energies(energies, limit=1.0, speeds=SPEEDS):
    """Trials on a line, with a number to maximise, or comparisons, and one that is constrained."""
    client = new_client(objective="speed", constraints=[f"energy <= {limit}"])
    told = [{"energy": energy} | ({"speed": speeds[i]} if speeds else {}) for i, energy in enumerate(energies)]
    with_trials(client, [0.0, 0.25, 0.5, 0.75, 1.0], told)
    for index in range(4) if speeds is None else ():
        ours.attach_comparison(client, index + 1, index)
    return client


def of_labels():
    """Labels of validity that say no of trials with numbers."""
    client = new_client(objective="speed")
    told = ({"speed": float(index), "validity": int(index < 3)} for index in range(6))
    with_trials(client, [0.0, 0.1, 0.2, 0.8, 0.9, 1.0], told)
    return client


@pytest.mark.parametrize(
    ("make", "best"),
    [
        (lambda: of_energies([0.2, 5.0, 10.0, 14.0, 18.0]), "0_0"),  # the only feasible arm is the slowest
        (lambda: of_energies([1.0, 5.0, 10.0, 14.0, 18.0]), "0_0"),  # at the limit
        (lambda: of_energies([1.0, 1.5, 1.0, 9.0, 9.0]), "0_0"),  # two at the limit: the likelier one, not the faster
        (lambda: of_energies([18.0, 14.0, 10.0, 5.0, 0.2], speeds=SPEEDS[::-1]), "4_0"),
        (lambda: of_energies([0.2, 0.4, 10.0, 14.0, 18.0]), "1_0"),
        (lambda: of_energies([5.0, 8.0, 10.0, 14.0, 18.0]), None),
        (lambda: of_energies([2.0, 6.0, 10.0, 14.0, 18.0], 4.0, None), "0_0"),
        (lambda: of_energies([2.0, 6.0, 10.0, 14.0, 18.0], 1e-3, None), None),
        (of_labels, "2_0"),
    ],
)
def test_the_best_arm_is_feasible_or_there_is_none(make, best):
    client = make()
    if best is None:
        with pytest.raises(UserInputError, match="none of the arms is predicted to satisfy the constraints"):
            ours.get_best_arm(client)
    else:
        assert ours.get_best_arm(client)[2] == best

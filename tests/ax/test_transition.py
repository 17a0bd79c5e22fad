"""When there is enough to learn from."""

import pytest

pytest.importorskip("ax")

from ax_cases import new_client, with_trials

from botorch_skewgp.ax import attach_comparison
from botorch_skewgp.ax.transition import ObjectiveIsKnown


def is_met(client) -> bool:
    node = client._generation_strategy.nodes_by_name["Sobol"]
    return ObjectiveIsKnown(transition_to="SkewGP").is_met(client._experiment, node)


@pytest.mark.parametrize("how", ["mark_trial_failed", "mark_trial_abandoned"])
def test_numbers_of_trials_that_did_not_work_do_not_count(how):
    client = new_client()
    with_trials(client, [0.1, 0.5])
    client.attach_data(0, {"loss": 1.0})
    assert is_met(client)
    getattr(client, how)(0)
    assert not is_met(client)
    client.complete_trial(1, {"loss": 2.0})
    assert is_met(client)


def test_comparisons_count():
    client = new_client()
    with_trials(client, [0.1, 0.5])
    assert not is_met(client)
    attach_comparison(client, 0, 1)
    assert is_met(client)

"""Full loops on a smooth function of two parameters: each scenario finds the known optimum."""

import pytest

pytest.importorskip("ax")

import torch
from ax_cases import GENERATES, new_client, next_trial
from botorch.utils.multi_objective import is_non_dominated
from botorch.utils.multi_objective.hypervolume import Hypervolume

from botorch_skewgp.ax import attach_censored, complete_pair, get_best_arm, get_next_pair

pytestmark = [*GENERATES, pytest.mark.slow]

BEST = {"x": 0.62, "y": 0.35}


def loss(x: float, y: float) -> float:
    """Between 0, at `BEST`, and 2.3."""
    return 4 * ((x - BEST["x"]) ** 2 + (y - BEST["y"]) ** 2)


def crashes(x: float, y: float) -> bool:
    """A quarter of the square, close to the optimum."""
    return x + 0.6 * y > 0.95


def least_loss(client) -> float:
    """The least loss that was reported."""
    data = client._experiment.lookup_data().df
    return data[data["metric_name"] == "loss"]["mean"].min()


@pytest.mark.parametrize("kwargs", [{}, {"failures": "ignore"}], ids=["constraint", "bound"])
def test_numbers_and_failures(kwargs):
    """Where failures are ignored, a trial that crashed is at least as bad as the worst one seen."""
    client = new_client(names="xy", initialization_budget=5, **kwargs)
    for _ in range(16):
        index, p = next_trial(client)
        if crashes(**p):
            client.mark_trial_failed(index)
            if kwargs:
                attach_censored(client, index, "loss", lower=1.0)
        else:
            client.complete_trial(index, {"loss": loss(**p)})
    assert least_loss(client) < 0.01  # within 0.05 of the optimum


def test_pairs():
    client = new_client(objective="utility", names="xy", initialization_budget=4)
    for _ in range(14):
        index, arms = get_next_pair(client)
        values = {name: loss(**p) for name, p in arms.items()}
        complete_pair(client, index, min(values, key=values.get))
    parameters, _, _ = get_best_arm(client)
    assert loss(**parameters) < 0.1  # within 0.16 of the optimum, by 14 answers


def test_two_objectives_and_failures():
    """Distances from two points; the Pareto set is the segment between them. The dominated area is most of the best."""
    client = new_client(objective="-a, -b", names="xy", initialization_budget=5)

    def objectives(x, y):
        return {"a": loss(x, y), "b": 4 * ((x - 0.2) ** 2 + (y - BEST["y"]) ** 2)}

    for _ in range(16):
        index, p = next_trial(client)
        if crashes(**p):
            client.mark_trial_abandoned(index)
        else:
            client.complete_trial(index, objectives(**p))

    def dominated_area(outcomes):
        Y = torch.tensor([[-values["a"], -values["b"]] for values in outcomes], dtype=torch.float64)
        return Hypervolume(torch.tensor([-0.7, -0.7], dtype=torch.float64)).compute(Y[is_non_dominated(Y)])

    best = dominated_area([objectives(0.2 + 0.42 * i / 500, BEST["y"]) for i in range(501)])
    found = dominated_area([values for _, values, *_ in plain(client.get_pareto_frontier())])
    assert 0.9 * best < found <= best


def plain(frontier):
    """Numbers alone of Ax's means, which may come with standard errors."""
    return [
        (parameters, {name: value[0] if isinstance(value, tuple) else value for name, value in outcome.items()})
        for parameters, outcome, *_ in frontier
    ]

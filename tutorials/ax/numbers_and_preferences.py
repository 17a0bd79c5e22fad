"""Measurements are expensive, comparisons cheap: few trials are measured, each is compared with the best so far."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import attach_comparison, get_best_arm, skewgp_generation_strategy

NUM_TRIALS = 7 if os.environ.get("SMOKE_TEST") else 18


def roughness(feed: float, depth: float) -> float:
    """The truth, least at (0.3, 0.6): measured by an instrument, or compared by eye."""
    return (feed - 0.3) ** 2 + (depth - 0.6) ** 2 + 0.1


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("feed", "depth")]
)
client.configure_optimization(objective="-roughness")
client.set_generation_strategy(skewgp_generation_strategy())

best: tuple[int, float] | None = None
for _ in range(NUM_TRIALS):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        truth = roughness(**parameters)
        client.complete_trial(index, {"roughness": truth} if index % 3 == 0 else None)
        if best is not None:  # the winner is the better one: the one with the lower roughness
            winner, loser = (index, best[0]) if truth < best[1] else (best[0], index)
            attach_comparison(client, winner=winner, loser=loser)
        if best is None or truth < best[1]:
            best = (index, truth)

parameters, outcomes, arm_name = get_best_arm(client)
print("best:", arm_name, parameters, outcomes)

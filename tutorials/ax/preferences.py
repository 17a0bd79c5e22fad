"""Nothing but answers to "which of these two is better?"; some pairs are ties, some stay unanswered."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import complete_pair, get_best_arm, get_next_pair, skewgp_generation_strategy

NUM_PAIRS = 6 if os.environ.get("SMOKE_TEST") else 25


def taste(sugar: float, acid: float) -> float:
    """What the taster likes best is (0.6, 0.35); these numbers are hidden."""
    return -((sugar - 0.6) ** 2) - (acid - 0.35) ** 2


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("sugar", "acid")]
)
client.configure_optimization(objective="taste")  # a name for what is never measured
client.set_generation_strategy(skewgp_generation_strategy(initialization_budget=4))

for i in range(NUM_PAIRS):
    index, arms = get_next_pair(client)
    first, second = arms
    difference = taste(**arms[first]) - taste(**arms[second])
    if i % 10 == 9:
        client.mark_trial_abandoned(index)  # the taster was away: no failure, and nothing is learned
    else:
        complete_pair(client, index, winner=None if abs(difference) < 0.005 else first if difference > 0 else second)

parameters, outcomes, arm_name = get_best_arm(client)
print("best:", arm_name, parameters)

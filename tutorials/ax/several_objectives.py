"""Two objectives, and a region where nothing works."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import skewgp_generation_strategy

NUM_TRIALS = 7 if os.environ.get("SMOKE_TEST") else 20


def drive(gear: float, throttle: float) -> dict[str, float] | None:
    """Speed and consumption; the engine stalls at little throttle in a high gear."""
    if throttle < 0.6 * gear:
        return None
    return {"speed": gear * throttle, "consumption": throttle**2 + 0.2 * (1 - gear)}


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("gear", "throttle")]
)
client.configure_optimization(objective="speed, -consumption")
client.set_generation_strategy(skewgp_generation_strategy())

for _ in range(NUM_TRIALS):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        outcomes = drive(**parameters)
        if outcomes is None:
            client.mark_trial_abandoned(index)
        else:
            client.complete_trial(index, outcomes)

for parameters, outcomes, _, arm_name in client.get_pareto_frontier():
    print(arm_name, parameters, outcomes)

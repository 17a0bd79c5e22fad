"""A function with a crash region: trials in it fail, and the model learns where not to go."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import skewgp_generation_strategy

NUM_TRIALS = 7 if os.environ.get("SMOKE_TEST") else 25


def simulate(power: float, speed: float) -> float:
    """A quality that is best at (0.62, 0.35); the machine stops where power and speed are both high."""
    if power + 0.6 * speed > 0.95:
        raise RuntimeError("overload")
    return 1 - 4 * (power - 0.62) ** 2 - 4 * (speed - 0.35) ** 2


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("power", "speed")]
)
client.configure_optimization(objective="quality")
client.set_generation_strategy(skewgp_generation_strategy())

for _ in range(NUM_TRIALS):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        try:
            client.complete_trial(index, {"quality": simulate(**parameters)})
        except RuntimeError as error:
            client.mark_trial_failed(index, failed_reason=str(error))

parameters, outcomes, _, _ = client.get_best_parameterization()
print("best:", parameters, outcomes)
print("probability that (0.9, 0.5) works:", client.predict([{"power": 0.9, "speed": 0.5}])[0]["validity"][0])

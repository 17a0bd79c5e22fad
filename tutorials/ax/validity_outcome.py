"""Every trial says whether its product passes an inspection; only those that do have a cost."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import skewgp_generation_strategy

NUM_TRIALS = 7 if os.environ.get("SMOKE_TEST") else 25


def produce(heat: float, time: float) -> dict[str, float]:
    """What a trial reports: cheap products tend to fail the inspection."""
    if heat * time < 0.2:
        return {"passes": 0}
    return {"passes": 1, "cost": heat + 0.5 * time**2}


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("heat", "time")]
)
# a constraint on the probability of passing, not on a number
client.configure_optimization(objective="-cost", outcome_constraints=["passes >= 0.5"])
client.set_generation_strategy(skewgp_generation_strategy(validity_metric="passes"))

for _ in range(NUM_TRIALS):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        client.complete_trial(index, produce(**parameters))

parameters, outcomes, _, _ = client.get_best_parameterization()
print("best:", parameters, outcomes)  # the truth: heat 0.34, time 0.58, cost 0.51

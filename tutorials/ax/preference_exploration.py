"""Two outcomes, and a person who can say which pair of values is better but not by what formula."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import compare_outcomes, configure_preference_exploration, skewgp_generation_strategy

NUM_TRIALS = 6 if os.environ.get("SMOKE_TEST") else 15


def build(span: float, chord: float) -> dict[str, float]:
    """What is measured of a trial."""
    return {"speed": 3 * span - chord**2, "comfort": 2 - 4 * (span - 0.3) ** 2 + chord}


def utility(outcomes: dict[str, float]) -> float:
    """What the person has in mind: as good as the worse of the two."""
    return min(outcomes["speed"], 0.8 * outcomes["comfort"])


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("span", "chord")]
)
configure_preference_exploration(client, ["speed", "comfort"])  # instead of client.configure_optimization
client.set_generation_strategy(skewgp_generation_strategy())

seen: list[dict[str, float]] = []
for _ in range(NUM_TRIALS):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        seen.append(build(**parameters))
        client.complete_trial(index, seen[-1])
    for other in seen[-3:-1]:
        winner, loser = sorted([seen[-1], other], key=utility, reverse=True)
        compare_outcomes(client, winner=winner, loser=loser)

print("best utility:", max(utility(outcomes) for outcomes in seen))  # the greatest possible is 1.65

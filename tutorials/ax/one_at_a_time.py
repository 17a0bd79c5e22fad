"""One trial at a time, and each is judged against the best before it: preferences without two-arm trials."""

import os

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from botorch_skewgp.ax import attach_comparison, get_best_arm, skewgp_generation_strategy

NUM_TRIALS = 7 if os.environ.get("SMOKE_TEST") else 30


def comfort(height: float, angle: float) -> float:
    """How the chair feels, best at (0.6, 0.35); these numbers are hidden."""
    return -((height - 0.6) ** 2) - (angle - 0.35) ** 2


client = Client()
client.configure_experiment(
    parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in ("height", "angle")]
)
client.configure_optimization(objective="comfort")
client.set_generation_strategy(skewgp_generation_strategy())

best: tuple[int, float] | None = None
for _ in range(NUM_TRIALS):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        feeling = comfort(**parameters)
        client.complete_trial(index)  # no number
        if best is not None:
            better = feeling > best[1]
            attach_comparison(client, winner=index if better else best[0], loser=best[0] if better else index)
        if best is None or feeling > best[1]:
            best = (index, feeling)

print("best:", get_best_arm(client)[0])

"""Two objectives, a constraint that is measured, and trials that fail, asked for and told one by one."""

import os

import optuna
from optuna.trial import TrialState

from botorch_skewgp.optuna import SkewGPSampler

NUM_TRIALS = 9 if os.environ.get("SMOKE_TEST") else 25
DISTRIBUTIONS = {
    "width": optuna.distributions.FloatDistribution(0.0, 1.0),
    "ribs": optuna.distributions.IntDistribution(0, 5),
    "alloy": optuna.distributions.CategoricalDistribution(["hard", "soft"]),
}

study = optuna.create_study(directions=["minimize", "maximize"], sampler=SkewGPSampler(seed=0, n_startup_trials=7))
for _ in range(NUM_TRIALS):
    trial = study.ask(DISTRIBUTIONS)
    width, ribs, hard = trial.params["width"], trial.params["ribs"], trial.params["alloy"] == "hard"
    if width < 0.1 and ribs > 3:
        study.tell(trial, state=TrialState.FAIL)  # cannot be cast
        continue
    mass, strength = width + 0.1 * ribs, (1.5 if hard else 1.0) * width**0.5 + 0.15 * ribs - 0.02 * ribs**2
    trial.set_constraint("cost", 0.4 * hard + 0.1 * ribs - 0.7)  # at most zero is met
    study.tell(trial, (mass, strength))

for best in study.best_trials:
    print(best.values, best.params)

"""A training run that may crash or be stopped: the sampler learns where it works, and what is best there."""

import math
import os

import optuna

from botorch_skewgp.optuna import SkewGPSampler

NUM_TRIALS = 9 if os.environ.get("SMOKE_TEST") else 30


def train(trial: optuna.Trial) -> float:
    """The loss of a network; large steps diverge, and large layers do not fit into memory."""
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    layers = trial.suggest_int("layers", 1, 8)
    activation = trial.suggest_categorical("activation", ["relu", "gelu", "tanh"])
    if rate * layers > 0.5:
        return math.nan  # Optuna takes the trial for failed
    if layers == 8:
        raise MemoryError("out of memory")
    loss = 0.3 * (math.log10(rate) + 2) ** 2 + 0.1 * (layers - 5) ** 2 + 0.5 * (activation != "gelu")
    trial.report(loss + 1, step=0)
    if loss > 4:
        raise optuna.TrialPruned
    return loss


sampler = SkewGPSampler(seed=0, n_startup_trials=7)
study = optuna.create_study(sampler=sampler)
study.optimize(train, n_trials=NUM_TRIALS, catch=MemoryError)
print("best:", study.best_params, study.best_value)
states = [trial.state.name for trial in study.trials]
print({state: states.count(state) for state in sorted(set(states))})

"""A machine that stops where power and speed are both high: the sampler learns where not to go."""

import os

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Least at (0.62, 0.35), where the machine still runs."""
    power, speed = trial.suggest_float("power", 0, 1), trial.suggest_float("speed", 0, 1)
    if power + 0.6 * speed > 0.95:
        raise RuntimeError("overload")
    return (power - 0.62) ** 2 + (speed - 0.35) ** 2


sampler = optunahub.load_module(package="samplers/skewgp").SkewGPSampler(seed=0)
study = optuna.create_study(sampler=sampler)
study.optimize(objective, n_trials=12 if os.environ.get("SMOKE_TEST") else 25, catch=RuntimeError)
best = study.best_trial

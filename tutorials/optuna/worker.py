"""One of several workers on a study in a database, each started by: python worker.py URL."""

import os
import sys
import time
import warnings

import optuna
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.study import MaxTrialsCallback

from botorch_skewgp.optuna import SkewGPSampler

warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # heartbeats
NUM_TRIALS = int(os.environ.get("NUM_TRIALS", "30"))


def simulate(trial: optuna.Trial) -> float:
    """A quality that is best at (0.62, 0.35); the machine stops where power and speed are both high."""
    power, speed = trial.suggest_float("power", 0, 1), trial.suggest_float("speed", 0, 1)
    time.sleep(0.5)
    if power + 0.6 * speed > 0.95:
        raise RuntimeError("overload")
    return 1 - 4 * (power - 0.62) ** 2 - 4 * (speed - 0.35) ** 2


def work(url: str, objective=simulate) -> optuna.Study:
    # a worker that is not heard of for a while is taken for dead, and its trial is tried again by another one
    retry = RetryHeartbeatStaleTrialCallback(max_retry=3)
    storage = RDBStorage(url, heartbeat_interval=10, grace_period=60, heartbeat_stale_trial_callback=retry)
    sampler = SkewGPSampler(seed=0, n_startup_trials=6)  # workers may share a seed: every trial has its own
    options = {"study_name": "machine", "direction": "maximize", "load_if_exists": True}
    study = optuna.create_study(storage=storage, sampler=sampler, **options)
    study.optimize(objective, callbacks=[MaxTrialsCallback(NUM_TRIALS)], catch=RuntimeError)
    return study


if __name__ == "__main__":
    print("best:", work(sys.argv[1]).best_trial.params)

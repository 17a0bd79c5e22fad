"""Trials as Ray tasks, two at a time, kept in a database; started again after a crash, it goes on where it was."""

import os
import sys
from contextlib import suppress

import ray
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig, StorageConfig
from ax.exceptions.core import ExperimentNotFoundError
from ax.orchestration.orchestrator import FailureRateExceededError
from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory

from botorch_skewgp.ax import configure_ray, skewgp_generation_strategy


def simulate(power, speed):
    assert power + 0.6 * speed <= 0.95, "overload"
    return 1 - 4 * (power - 0.62) ** 2 - 4 * (speed - 0.35) ** 2


storage = StorageConfig(url=f"sqlite:///{sys.argv[1]}")
init_engine_and_session_factory(url=storage.url)
create_all_tables(get_engine())
try:
    client = Client.load_from_database("machine", storage)
except ExperimentNotFoundError:
    client = Client(storage)
    parameters = [RangeParameterConfig(name=n, parameter_type="float", bounds=(0, 1)) for n in ("power", "speed")]
    client.configure_experiment(parameters, name="machine")
    client.configure_optimization(objective="quality")
    client.set_generation_strategy(skewgp_generation_strategy())

ray.init(num_cpus=2)
configure_ray(client, simulate)
with suppress(FailureRateExceededError):  # also where all trials of this run fail, whatever is tolerated
    left = int(os.environ.get("NUM_TRIALS", "25")) - len(client.summarize())
    client.run_trials(left, parallelism=2, tolerated_trial_failure_rate=0.95)
print("best:", client.get_best_parameterization()[0])

"""Trials as Ray tasks, two at a time, by Ax's own interface of runners and metrics."""

import ray
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.api.protocols import IMetric, IRunner
from ax.core.trial_status import TrialStatus

from botorch_skewgp.ax import skewgp_generation_strategy


@ray.remote
def simulate(power):
    assert power <= 0.7, "overload"
    return 1 - 4 * (power - 0.62) ** 2


class Runner(IRunner):
    """A task for each trial."""

    def run_trial(self, trial_index, parameterization):
        tasks[trial_index] = simulate.remote(**parameterization)
        return {}

    def poll_trial(self, trial_index, trial_metadata):
        if not ray.wait([tasks[trial_index]], timeout=0)[0]:
            return TrialStatus.RUNNING
        try:  # a task whose worker was killed is repeated, and at last raises an error that is not the function's own
            return TrialStatus.COMPLETED if ray.get(tasks[trial_index]) else TrialStatus.FAILED
        except ray.exceptions.RayTaskError:
            return TrialStatus.FAILED


class Quality(IMetric):
    """What the task has returned."""

    def fetch(self, trial_index, trial_metadata):
        return 0, ray.get(tasks[trial_index])


tasks, client = {}, Client()
client.configure_experiment([RangeParameterConfig(name="power", parameter_type="float", bounds=(0, 1))])
client.configure_optimization(objective="quality")
client.set_generation_strategy(skewgp_generation_strategy())
client.configure_runner(Runner())
client.configure_metrics([Quality("quality")])
ray.init(num_cpus=2)
client.run_trials(max_trials=8, parallelism=2, tolerated_trial_failure_rate=0.95)
print("best:", client.get_best_parameterization()[0])

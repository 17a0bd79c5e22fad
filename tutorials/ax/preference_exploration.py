"""Two outcomes, and a person who can say which pair of values is better but not by what formula (BOPE)."""

import os

from ax import core
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.auxiliary import AuxiliaryExperiment, AuxiliaryExperimentPurpose
from ax.core.optimization_config import PreferenceOptimizationConfig
from pandas import DataFrame

from botorch_skewgp.ax import skewgp_generation_strategy

OUTCOMES, QUERY = ["comfort", "speed"], "pairwise_pref_query"  # in the order of their names; and Ax's own metric


def objective(*names):
    return core.Objective(expression=", ".join(names), metric_name_to_signature={name: name for name in names})


client = Client()
client.configure_experiment([RangeParameterConfig(name, parameter_type="float", bounds=(0, 1)) for name in ("x", "y")])
space = core.SearchSpace([core.RangeParameter(name, core.ParameterType.FLOAT, -1e9, 1e9) for name in OUTCOMES])
config, query = core.OptimizationConfig(objective=objective(QUERY)), core.Metric(QUERY)
preferences = core.Experiment(space, "preferences", optimization_config=config, metrics=[query])
client._experiment.add_tracking_metrics([core.Metric(name) for name in OUTCOMES])
purpose, auxiliary = AuxiliaryExperimentPurpose.PE_EXPERIMENT, AuxiliaryExperiment(preferences)
client._experiment.add_auxiliary_experiment(purpose=purpose, auxiliary_experiment=auxiliary)
client.set_optimization_config(PreferenceOptimizationConfig(objective(*OUTCOMES), "preferences"))
client.set_generation_strategy(skewgp_generation_strategy())

seen = []
for _ in range(6 if os.environ.get("SMOKE_TEST") else 15):
    for index, p in client.get_next_trials(max_trials=1).items():
        seen.append({"speed": 3 * p["x"] - p["y"] ** 2, "comfort": 2 - 4 * (p["x"] - 0.3) ** 2 + p["y"]})
        client.complete_trial(index, seen[-1])
    for other in seen[-3:-1]:  # the person compares what was seen, or imagined; as good as the worse of the two
        both = sorted([seen[-1], other], key=lambda outcomes: min(outcomes["speed"], 0.8 * outcomes["comfort"]))
        trial = preferences.new_batch_trial().add_arms_and_weights([core.Arm(dict(outcomes)) for outcomes in both])
        trial.mark_running(no_runner_required=True)
        common = {"trial_index": trial.index, "metric_name": QUERY, "metric_signature": QUERY, "sem": float("nan")}
        answers = zip(trial.arms, (0.0, 1.0), strict=True)
        rows = DataFrame([{**common, "arm_name": arm.name, "mean": y} for arm, y in answers])
        preferences.attach_data(core.Data(df=rows))
        auxiliary.data = preferences.lookup_data()
        trial.mark_completed()

print("best utility:", max(min(outcomes["speed"], 0.8 * outcomes["comfort"]) for outcomes in seen))  # at most 1.65

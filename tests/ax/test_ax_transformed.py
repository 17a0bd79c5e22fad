"""Ax with a transformed process: a loop on an exponential outcome."""

import json
import math

import pytest

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.exceptions.core import UserInputError
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.registry import CORE_ENCODER_REGISTRY

from botorch_skewgp.ax import transformed_generation_strategy
from botorch_skewgp.ax.acquisition import SkewGPAcquisition


@pytest.mark.slow
def test_loop_and_predictions():
    client = Client(random_seed=0)
    client.configure_experiment([RangeParameterConfig(name="x", parameter_type="float", bounds=(0.0, 10.0))])
    client.configure_optimization(objective="-loss")
    options = {"num_nodes": 16, "least_effective": 0.0, "num_restarts": 2}
    client.set_generation_strategy(transformed_generation_strategy(4, model_options=options))
    for _ in range(6):
        for trial, parameters in client.get_next_trials(max_trials=1).items():
            client.complete_trial(trial, raw_data={"loss": math.exp(abs(parameters["x"] - 3.0))})
    (prediction,) = client.predict([{"x": 3.5}])
    mean, deviation = prediction["loss"]
    assert math.isfinite(mean)
    assert deviation > 0
    best = client.get_best_parameterization()[0]
    assert abs(best["x"] - 3.0) < 2.5
    names = {trial.generator_runs[0]._generation_node_name for trial in client._experiment.trials.values()}
    assert names == {"Sobol", "Transformed"}


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"initialization_budget": 3}, "at least 4"),
        ({"initialization_budget": 4.5}, "initialization_budget must be an integer of at least 4; got 4.5"),
        ({"seed": "x"}, "seed must be an integer"),
        ({"model_options": ["a"]}, "model_options must be a dictionary"),
    ],
)
def test_arguments_of_the_strategy(kwargs, match):
    with pytest.raises(UserInputError, match=match):
        transformed_generation_strategy(**kwargs)


def test_it_is_stored_and_loaded():
    strategy = transformed_generation_strategy(4, model_options={"num_nodes": 16})
    (spec,) = strategy.nodes_by_name["Transformed"].generator_specs
    assert spec.generator_kwargs["acquisition_class"] is SkewGPAcquisition
    stored = object_to_json(strategy, encoder_registry=CORE_ENCODER_REGISTRY)
    assert object_from_json(json.loads(json.dumps(stored))) == strategy

"""Experiments and strategies survive JSON and SQLite, and go on in a new process as they would have.

Run as a script, it resumes all experiments of a folder.
"""

import json
import logging
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from ax.api.client import Client
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.registry import CORE_ENCODER_REGISTRY
from ax_cases import database, new_client, next_trial, with_trials

from botorch_skewgp import ax as ours
from botorch_skewgp.ax.acquisition import SkewGPAcquisition

POINTS = [0.1, 0.3, 0.55, 0.9]


def square(x):
    """A whole number: storage changes the last digit of fractions, and over many steps a fit with it."""
    return float(round(64 * x**2))


def failures(client, fail=Client.mark_trial_failed, values=lambda x: {"loss": square(x - 0.4)}):
    for index, x in zip(with_trials(client, POINTS), POINTS, strict=True):
        fail(client, index) if x > 0.7 else client.complete_trial(index, values(x))


def comparisons(client):
    failures(client)
    ours.attach_comparison(client, 1, 3)
    ours.attach_comparison(client, 1, 2, tie=True)


def pairs(client):
    for k in range(5):
        index, arms = ours.get_next_pair(client)
        if k == 1:
            client.mark_trial_abandoned(index)
        else:
            nearest = min(arms, key=lambda name: abs(arms[name]["x"] - 0.4))
            ours.complete_pair(client, index, None if k == 2 else nearest)


def labels(client):
    failures(
        client, lambda client, index: client.complete_trial(index, {"works": 0}), lambda x: {"works": 1, "loss": x}
    )


def two_objectives(client):
    failures(client, Client.mark_trial_abandoned, lambda x: {"a": square(x), "b": square(x - 0.6)})


EXPERIMENTS = {
    "failures": (failures, {}),
    "comparisons": (comparisons, {}),
    "pairs": (pairs, {"objective": "utility"}),
    "labels": (labels, {"constraints": ["works >= 0.6"], "validity_metric": "works"}),
    "two objectives": (two_objectives, {"objective": "-a, -b"}),
}


def following(client):
    """What an experiment holds, and what it asks for next; the last changes the experiment."""
    experiment, asked = client._experiment, []
    told = [[*entry.items, entry.tie] for entry in ours.recorded_comparisons(experiment)]
    held = [told, [trial.status.name for trial in experiment.trials.values()], sorted(experiment.metrics)]
    if experiment.name == "pairs":
        asked = [list(arm.values()) for arm in ours.get_next_pair(client)[1].values()]
    for _ in range(0 if asked else 3):
        index, parameters = next_trial(client)
        asked.append(list(parameters.values()))
        if experiment.name == "failures":
            client.complete_trial(index, {"loss": square(parameters["x"] - 0.4)})
    return held, asked


def resumed(folder):
    """All experiments, from JSON and SQLite, in another order and with other global seeds than when they were started,
    of which nothing must depend.
    """
    for seed_all in (random.seed, np.random.seed, torch.manual_seed):
        seed_all(1)
    found = {}
    for name in reversed(EXPERIMENTS):
        stored = Client.load_from_database(name, storage_config=database(folder / f"{name}.db"))
        found[name] = [following(Client.load_from_json_file(str(folder / f"{name}.json"))), following(stored)]
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ax's storage; the tests of loops look at warnings
def test_another_process_goes_on_from_json_and_sqlite(tmp_path):
    expected = {}
    for name, (tell, kwargs) in EXPERIMENTS.items():
        # kept in the database as it goes, as by someone whose process is killed
        tell(new_client(name=name, storage_config=database(tmp_path / f"{name}.db"), **kwargs))
        client = new_client(name=name, **kwargs)
        tell(client)
        client.save_to_json_file(str(tmp_path / f"{name}.json"))
        expected[name] = following(client)
    done = subprocess.run([sys.executable, __file__, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for name, each in json.loads((tmp_path / "resumed.json").read_text()).items():
        held, asked = expected[name]
        for found_held, found_asked in each:
            assert found_held == held, name
            # numbers are stored with about ten digits, and a search ends within its tolerance of a flat maximum
            for one, other in zip(found_asked, asked, strict=True):
                assert one == pytest.approx(other, abs=1e-4), name


def test_strategies_are_the_same_after_json():
    options = {
        "failures": "ignore",
        "validity_metric": "works",
        "binary_metrics": ["loud"],
        "feasibility_threshold": 0.7,
        "seed": 4,
    }
    skewgp = ours.skewgp_generation_strategy(7, torch_device="cpu", **options)
    (spec,) = skewgp.nodes_by_name["SkewGP"].generator_specs
    assert {key: spec.generator_kwargs[key] for key in options} == options
    assert skewgp.nodes_by_name["Sobol"].transition_criteria[0].threshold == 7
    transformed = ours.transformed_generation_strategy(4, model_options={"num_nodes": 16})
    (spec,) = transformed.nodes_by_name["Transformed"].generator_specs
    assert spec.generator_kwargs["acquisition_class"] is SkewGPAcquisition
    for strategy in (skewgp, transformed):
        stored = json.dumps(object_to_json(strategy, encoder_registry=CORE_ENCODER_REGISTRY))
        assert object_from_json(json.loads(stored)) == strategy


if __name__ == "__main__":
    logging.disable(logging.INFO)
    warnings.filterwarnings("ignore")
    (Path(sys.argv[1]) / "resumed.json").write_text(json.dumps(resumed(Path(sys.argv[1]))))

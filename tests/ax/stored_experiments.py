"""Experiments that are stored by one process and resumed by another; run as a script by the tests of storage."""

from __future__ import annotations

import json
import logging
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ax.api.client import Client
from ax.api.configs import StorageConfig
from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory
from ax_cases import new_client, next_trial
from ax_cases import with_trials as attach

from botorch_skewgp.ax import (
    attach_comparison,
    complete_pair,
    get_next_pair,
    recorded_comparisons,
)

POINTS = [0.1, 0.3, 0.55, 0.9]


def square(x: float) -> float:
    """A whole number: storage changes the last digit of fractions, and over many steps a fit with it."""
    return float(round(64 * x**2))


def failures(client: Client) -> None:
    for index, x in zip(attach(client, POINTS), POINTS, strict=True):
        if x > 0.7:
            client.mark_trial_failed(index)
        else:
            client.complete_trial(index, {"loss": square(x - 0.4)})


def failures_and_comparisons(client: Client) -> None:
    failures(client)
    attach_comparison(client, 1, 3)
    attach_comparison(client, 1, 2, tie=True)


def pairs(client: Client) -> None:
    for k in range(5):
        index, arms = get_next_pair(client)
        if k == 1:
            client.mark_trial_abandoned(index)
        else:
            complete_pair(client, index, None if k == 2 else min(arms, key=lambda name: abs(arms[name]["x"] - 0.4)))


def labels(client: Client) -> None:
    for index, x in zip(attach(client, POINTS), POINTS, strict=True):
        client.complete_trial(index, {"works": 0} if x > 0.7 else {"works": 1, "loss": x})


def two_objectives(client: Client) -> None:
    for index, x in zip(attach(client, POINTS), POINTS, strict=True):
        if x > 0.7:
            client.mark_trial_abandoned(index)
        else:
            client.complete_trial(index, {"a": square(x), "b": square(x - 0.6)})


EXPERIMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "failures": (failures, {}),
    "comparisons": (failures_and_comparisons, {}),
    "pairs": (pairs, {"objective": "utility"}),
    "labels": (labels, {"constraints": ["works >= 0.6"], "validity_metric": "works"}),
    "two objectives": (two_objectives, {"objective": "-a, -b"}),
}


def database(path: Path) -> StorageConfig:
    url = f"sqlite:///{path}"
    init_engine_and_session_factory(url=url, force_init=True)
    create_all_tables(get_engine())
    return StorageConfig(url=url)


def following(client: Client) -> dict[str, Any]:
    """What an experiment holds, and what it asks for next; the last changes the experiment."""
    experiment = client._experiment
    report = {
        "comparisons": [[*entry.items, entry.tie] for entry in recorded_comparisons(experiment)],
        "statuses": [trial.status.name for trial in experiment.trials.values()],
        "metrics": sorted(experiment.metrics),
    }
    if any("skewgp_pair" in trial.run_metadata for trial in experiment.trials.values()):
        _, arms = get_next_pair(client)
        return {**report, "next": [list(arm.values()) for arm in arms.values()]}
    learns, following = experiment.name == "failures", []
    for _ in range(3 if learns else 2):
        index, parameters = next_trial(client)
        following.append(list(parameters.values()))
        if learns:
            client.complete_trial(index, {"loss": square(parameters["x"] - 0.4)})
    return {**report, "next": following}


def start(name: str, folder: Path) -> dict[str, Any]:
    """Store an experiment in both ways, then say what would have come next without a break."""
    tell, kwargs = EXPERIMENTS[name]
    # kept in the database as it goes, as by someone whose process is killed
    tell(new_client(name=name, storage_config=database(folder / f"{name}.db"), **kwargs))
    client = new_client(name=name, **kwargs)
    tell(client)
    client.save_to_json_file(str(folder / f"{name}.json"))
    return following(client)


def from_json(name: str, folder: Path) -> dict[str, Any]:
    """Load an experiment from a file and go on."""
    return following(Client.load_from_json_file(str(folder / f"{name}.json")))


def from_sqlite(name: str, folder: Path) -> dict[str, Any]:
    """Load an experiment from a database and go on."""
    return following(Client.load_from_database(name, storage_config=database(folder / f"{name}.db")))


def everything(action: str, folder: Path) -> dict[str, Any]:
    """What becomes of all experiments; when they are resumed, in another order and with other global seeds than when
    they were started, of which nothing must depend.
    """
    names = list(EXPERIMENTS)
    if action == "start":
        return {name: start(name, folder) for name in names}
    names.reverse()
    seed, resume = (1, from_json) if action == "json" else (2, from_sqlite)
    for seed_all in (random.seed, np.random.seed, torch.manual_seed):
        seed_all(seed)
    return {name: resume(name, folder) for name in names}


if __name__ == "__main__":
    logging.disable(logging.INFO)
    warnings.filterwarnings("ignore")  # the tests of loops look at warnings
    action, folder = sys.argv[1], Path(sys.argv[2])
    (folder / f"{action}.result").write_text(json.dumps(everything(action, folder)))

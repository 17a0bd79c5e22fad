"""Experiments and strategies survive JSON and SQLite, and go on in a new process as they would have."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ax")
pytest.importorskip("sqlalchemy")

from ax.api.client import Client
from ax_cases import new_client
from stored_experiments import EXPERIMENTS

from botorch_skewgp.ax import SkewGPGenerators
from botorch_skewgp.ax.data import ObjectiveIsKnown
from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood


def in_a_new_process(action: str, folder: Path) -> dict:
    """What all experiments hold and ask for next; one process for all, since its imports take longest."""
    script = Path(__file__).with_name("stored_experiments.py")
    command = [sys.executable, str(script), action, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / f"{action}.result").read_text())


@pytest.mark.slow
def test_another_process_goes_on_from_json_and_sqlite(tmp_path):
    expected = in_a_new_process("start", tmp_path)
    assert list(expected) == list(EXPERIMENTS)
    for kind in ("json", "sqlite"):
        found = in_a_new_process(kind, tmp_path)
        assert set(found) == set(expected)
        for name, report in found.items():
            wanted = expected[name]
            for key in ("comparisons", "statuses", "metrics"):
                assert report[key] == wanted[key], (kind, name, key)
            # numbers are stored with about ten digits
            for one, other in zip(report["next"], wanted["next"], strict=True):
                assert one == pytest.approx(other, abs=1e-6), (kind, name)


def test_the_strategy_is_the_same_after_json(tmp_path):
    path = str(tmp_path / "experiment.json")
    options = {
        "failures": "ignore",
        "validity_metric": "works",
        "binary_metrics": ["loud"],
        "feasibility_threshold": 0.7,
        "seed": 4,
    }
    client = new_client(small=False, initialization_budget=7, torch_device="cpu", **options)
    client.save_to_json_file(path)
    strategy = Client.load_from_json_file(path)._generation_strategy
    sobol, skewgp = strategy.nodes_by_name["Sobol"], strategy.nodes_by_name["SkewGP"]
    assert [type(entry).__name__ for entry in sobol.transition_criteria] == ["MinTrials", "ObjectiveIsKnown"]
    assert sobol.transition_criteria[0].threshold == 7
    assert isinstance(sobol.transition_criteria[1], ObjectiveIsKnown)
    (spec,) = skewgp.generator_specs
    assert spec.generator_enum is SkewGPGenerators.SKEWGP
    assert {key: spec.generator_kwargs[key] for key in options} == options
    (config,) = spec.generator_kwargs["surrogate_spec"].model_configs
    assert config.botorch_model_class is AxSkewGP
    assert config.mll_class is SkewGPMarginalLogLikelihood

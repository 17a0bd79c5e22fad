"""Small experiments for the tests of the Ax backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig, StorageConfig
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory

from botorch_skewgp.ax import skewgp_generation_strategy
from botorch_skewgp.ax.registry import fitted_adapter

# what linear_operator says while candidates are generated: a covariance between near points is rounded
GENERATES = [pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning")]
# enough for tests in one or two dimensions
SMALL_SEARCH = {"optimizer_kwargs": {"num_restarts": 2, "raw_samples": 32}}


def small_strategy(small: bool = True, **kwargs: Any) -> GenerationStrategy:
    """Few Sobol points, and a small search for the optimum of the acquisition function."""
    strategy = skewgp_generation_strategy(**{"initialization_budget": 3, **kwargs})
    if small:
        spec = strategy.nodes_by_name["SkewGP"].generator_specs[0]
        spec.generator_gen_kwargs = {"model_gen_options": SMALL_SEARCH}
    return strategy


def new_client(
    objective: str = "-loss",
    names: str = "x",
    constraints: Sequence[str] | None = None,
    parameters: Sequence[Any] | None = None,
    parameter_constraints: Sequence[str] | None = None,
    name: str | None = None,
    storage_config: Any = None,
    **kwargs: Any,
) -> Client:
    """A client of a configured experiment, in the unit cube unless told otherwise."""
    client = Client(storage_config=storage_config)
    if parameters is None:
        parameters = [RangeParameterConfig(name=entry, parameter_type="float", bounds=(0.0, 1.0)) for entry in names]
    client.configure_experiment(parameters=parameters, parameter_constraints=parameter_constraints, name=name)
    client.configure_optimization(objective=objective, outcome_constraints=constraints)
    client.set_generation_strategy(small_strategy(**kwargs))
    return client


def with_trials(client: Client, points: Sequence[float], told: Iterable[Any] = ()) -> list[int]:
    """Attach trials at points of one dimension, in place of Sobol's; the first complete, with what is told of each."""
    indices = [client.attach_trial({"x": point}) for point in points]
    for index, data in zip(indices, told, strict=False):
        client.complete_trial(index, data)
    return indices


def next_trial(client: Client) -> tuple[int, dict[str, Any]]:
    ((index, parameters),) = client.get_next_trials(max_trials=1).items()
    return index, dict(parameters)


def node_of(client: Client, index: int) -> str | None:
    """The node that a trial came from."""
    return client._experiment.trials[index].generator_runs[0]._generation_node_name


def datasets(client: Client) -> dict[str, Any]:
    """What each model is given, by outcome."""
    return {entry.outcome_names[0]: entry for entry in fitted_adapter(client).generator.surrogate.training_data}


def observations(client: Client) -> dict[str, dict[str, Any]]:
    """What each model is given, by outcome and name of the kind."""
    return {
        outcome: {type(entry).__name__: entry for entry in dataset.observations}
        for outcome, dataset in datasets(client).items()
    }


def snapshot(client: Client) -> str:
    """All that a rejected call must leave as it was; as text, in which NaN equals itself."""
    experiment = client._experiment
    trials = [(i, trial.status, [arm.parameters for arm in trial.arms]) for i, trial in experiment.trials.items()]
    return repr((trials, experiment._properties, experiment.lookup_data().df.to_dict()))


def database(path: Path) -> StorageConfig:
    """A database in a file."""
    url = f"sqlite:///{path}"
    init_engine_and_session_factory(url=url, force_init=True)
    create_all_tables(get_engine())
    return StorageConfig(url=url)

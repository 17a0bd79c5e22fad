"""The parts of Ax without a public name; the only file that reads Ax's names with an underscore."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ax.api.client import Client
from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.metric import Metric, MetricFetchResult
from ax.core.optimization_config import OptimizationConfig
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.utils.common.result import Ok
from botorch.exceptions.errors import InputDataError


@contextmanager
def user_input_errors() -> Iterator[None]:
    """A context in which checks of arguments raise Ax's class of errors."""
    try:
        yield
    except InputDataError as error:
        raise UserInputError(str(error)) from None


def metric_names_of(value: Any, name: str) -> list[str]:
    """A list of names of metrics."""
    names: list[Any] = [None] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if not all(isinstance(entry, str) for entry in names):
        raise UserInputError(f"{name} must be a list of names, such as ['works']; got {value!r}.")
    return names


def experiment_of(client: Client) -> Experiment:
    """The experiment behind a client."""
    if not isinstance(client, Client):
        raise UserInputError(f"client must be a Client of Ax; got {client!r}.")
    if client._maybe_experiment is None:
        raise UserInputError("The client has no experiment yet; call client.configure_experiment, or load one.")
    return client._maybe_experiment


def generation_strategy_of(client: Client) -> GenerationStrategy:
    """The generation strategy of a client, chosen now if it has none."""
    experiment_of(client)  # raises where there is none
    return client._generation_strategy_or_choose()


def properties_of(experiment: Experiment) -> dict[str, Any]:
    """The properties that are stored with an experiment."""
    if not isinstance(experiment, Experiment):
        raise UserInputError(f"experiment must be an Experiment of Ax; got {experiment!r}.")
    return experiment._properties


def title_of(experiment: Experiment) -> str:
    """A title that identifies an experiment among others of the same name or without one."""
    return f"experiment {experiment._name!r} of {experiment.time_created}"


def optimization_config_of(adapter: Any) -> OptimizationConfig | None:
    """The optimization config of an adapter."""
    return adapter._optimization_config


def save(client: Client, changed: Experiment | BaseTrial | GenerationStrategy) -> None:
    """Store what is new or changed, if the client has a database."""
    if isinstance(changed, Experiment):
        client._save_experiment_to_db_if_possible(experiment=changed)
    elif isinstance(changed, BaseTrial):
        client._save_or_update_trial_in_db_if_possible(experiment=changed.experiment, trial=changed)
    else:
        client._save_generation_strategy_to_db_if_possible(generation_strategy=changed)


class ValidityMetric(Metric):
    """The metric of validity, which follows from the statuses of trials.

    Fetching returns no data; Ax's orchestration refuses metrics that cannot be fetched.
    """

    def fetch_trial_data(self, trial: BaseTrial, **kwargs: Any) -> MetricFetchResult:
        """No data."""
        return Ok(value=Data())

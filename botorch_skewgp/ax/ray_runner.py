"""Trials as Ray tasks, for Ax's orchestration on a cluster.

Needs the extra `ray`. It is imported when the first trial is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from ax.api.client import Client
from ax.api.protocols.runner import IRunner
from ax.api.types import TParameterization
from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.metric import Metric, MetricFetchE, MetricFetchResult
from ax.core.search_space import SearchSpace
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax.utils.common.result import Err, Ok
from pandas import DataFrame

from botorch_skewgp.ax.internals import experiment_of
from botorch_skewgp.ax.metrics import ValidityMetric

PARAMETERS = "parameters"  # in a trial's run metadata
MAX_REASON = 100  # characters of a failure's reason in Ax's databases
Outcome = tuple[float, float]  # mean and standard error


class _Tasks:
    """The state of a runner in this process; one attribute, as Ax searches all of them for keys of its database."""

    def __init__(
        self,
        function: Callable[..., Any] | None,
        metrics: Sequence[str],
        options: Mapping[str, Any],
        search_space: SearchSpace | None,
    ) -> None:
        self.function = function
        self.search_space = search_space
        self.metrics = list(metrics)
        self.options = dict(options)
        self.running: dict[int, Any] = {}  # references to results, by trial
        self.outcomes: dict[int, dict[str, Outcome]] = {}  # by trial and metric
        self.reasons: dict[int, str] = {}  # of failures, by trial

    def start(self, trial_index: int, parameters: Mapping[str, Any]) -> None:
        if self.function is None:
            raise UserInputError("The experiment was loaded without its function; call configure_ray again.")
        import ray

        function = _returning_exceptions(self.function)
        remote = ray.remote(**self.options)(function) if self.options else ray.remote(function)
        self.running[trial_index] = remote.remote(**parameters)

    def resume(self, trial_index: int, metadata: Mapping[str, Any]) -> None:
        """Start the task of a trial with stored parameters, which are not trusted."""
        parameters = metadata.get(PARAMETERS)
        try:
            if not isinstance(parameters, Mapping):
                raise ValueError("They are missing.")
            if any(value != value for value in parameters.values()):
                raise ValueError("One of them is NaN.")
            if self.search_space is not None:
                self.search_space.check_membership(dict(parameters), raise_error=True)
                self.search_space.check_types(dict(parameters), allow_none=False, raise_error=True)
        except (ValueError, TypeError) as error:
            raise UserInputError(
                f"The stored parameters of trial {trial_index}, {parameters!r}, are not in the search space. {error} "
                f"Call client.mark_trial_abandoned({trial_index}), or correct them."
            ) from None
        self.start(trial_index, parameters)


def _returning_exceptions(function: Callable[..., Any]) -> Callable[..., tuple[Any, str | None]]:
    """A function that returns its exceptions, which tells them from Ray's own."""

    def call(**parameters: Any) -> tuple[Any, str | None]:
        try:
            return function(**parameters), None
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"

    return call


class RayRunner(IRunner):
    r"""Runs every trial as a Ray task.

    A trial fails if its task raises, returns a number that is not finite, or dies more often than Ray tries it. Tasks
    end with the process that started them: one that resumes the experiment starts the tasks of running trials again. No
    function is stored: call `configure_ray` again after loading an experiment.

    Args:
        function: Takes the parameters by name. Returns a number, the only metric's, or a dictionary of numbers by
            metric, in which some may be missing. A number may be a pair with its standard error.
        metrics: The names of the metrics that it may return.
        options: Resources of a task, as for `ray.remote`, such as `num_cpus` and `max_retries`.
        search_space: The search space, which must hold the parameters of trials that are run again.
    """

    def __init__(
        self,
        function: Callable[..., Any] | None = None,
        metrics: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        search_space: SearchSpace | None = None,
    ) -> None:
        super().__init__()
        self._tasks = _Tasks(function, metrics, options or {}, search_space)

    @classmethod
    def serialize_init_args(cls, obj: Any) -> dict[str, Any]:
        """An empty dictionary: loading an experiment runs no stored code."""
        return {}

    def run_trial(self, trial_index: int, parameterization: TParameterization) -> dict[str, Any]:
        """Start the task of a trial; returns its parameters, for a process that resumes the experiment.

        Raises:
            UserInputError: If the runner has no function.
        """
        self._tasks.start(trial_index, parameterization)
        return {PARAMETERS: dict(parameterization)}

    def poll_trial(self, trial_index: int, trial_metadata: Mapping[str, Any]) -> TrialStatus:
        """The status of a trial: running, completed or failed. Starts the task of a trial that another process ran.

        Raises:
            UserInputError: If the function returned something else than numbers of metrics, or the parameters of a
                trial that another process ran are not in the search space. The trial is still running then, and will be
                run again.
            RayError: If Ray could not run the task, for example because a module is missing on the cluster; likewise.
        """
        import ray
        from ray.exceptions import OutOfMemoryError, WorkerCrashedError

        tasks = self._tasks
        if trial_index not in tasks.running:
            tasks.resume(trial_index, trial_metadata)
        done, _ = ray.wait([tasks.running[trial_index]], timeout=0)
        if not done:
            return TrialStatus.RUNNING
        task = tasks.running.pop(trial_index)
        try:
            result, reason = ray.get(task)
        except (OutOfMemoryError, WorkerCrashedError) as error:
            result, reason = None, str(error)
        if reason is not None:
            tasks.reasons[trial_index] = reason
            return TrialStatus.FAILED
        try:
            outcomes = _outcomes(result, tasks.metrics)
        except UserInputError as error:
            raise UserInputError(f"The function returned {result!r} for trial {trial_index}. {error}") from None
        for name, (mean, sem) in outcomes.items():
            if not math.isfinite(mean) or math.isinf(sem):
                tasks.reasons[trial_index] = f"{mean} with standard error {sem} for {name!r}"
                return TrialStatus.FAILED
        tasks.outcomes[trial_index] = outcomes
        return TrialStatus.COMPLETED

    def poll_exception(self, trial: BaseTrial) -> str:
        """The reason for a trial's failure, truncated to Ax's column width."""
        return self._tasks.reasons.get(trial.index, "unknown")[:MAX_REASON]

    def stop_trial(self, trial_index: int, trial_metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Stop the task of a trial."""
        if trial_index in self._tasks.running:
            import ray

            ray.cancel(self._tasks.running.pop(trial_index), force=True)
        return {}

    def outcome(self, trial_index: int, metric: str) -> Outcome | None:
        """The mean and standard error of a metric of a trial that this process has run; `None` if there is none."""
        return self._tasks.outcomes.get(trial_index, {}).get(metric)


class RayMetric(Metric):
    """A number returned by the function of the experiment's `RayRunner`."""

    def fetch_trial_data(self, trial: BaseTrial, **kwargs: Any) -> MetricFetchResult:
        """The number of a trial; no data if the function left it out."""
        runner = trial.experiment.runner
        if not isinstance(runner, RayRunner):
            return Err(value=MetricFetchE(message="The runner is no RayRunner; call configure_ray.", exception=None))
        if (outcome := runner.outcome(trial.index, self.name)) is None:
            return Ok(value=Data())
        row = {"trial_index": trial.index, "arm_name": trial.arms[0].name, "mean": outcome[0], "sem": outcome[1]}
        return Ok(value=Data(df=DataFrame([{**row, "metric_name": self.name, "metric_signature": self.signature}])))


def configure_ray(client: Client, function: Callable[..., Any], **options: Any) -> None:
    r"""Let `client.run_trials` run its trials as Ray tasks.

    As in `client.run_trials(max_trials=20, parallelism=2, tolerated_trial_failure_rate=0.95)`. Call it after
    `client.configure_optimization`, and again after loading an experiment.

    Example:
        >>> client.configure_optimization(objective="-loss")
        >>> configure_ray(client, lambda x: x**2, num_cpus=1)

    Args:
        client: The client of the experiment.
        function: Takes the parameters by name. Returns a number, the only metric's, or a dictionary of numbers by
            metric, in which some may be missing. A number may be a pair with its standard error. If the function
            raises, the trial fails.
        options: Resources of a task, as for `ray.remote`.

    Raises:
        UserInputError: If no optimization is configured, or the function cannot be called.
    """
    experiment = experiment_of(client)
    if not callable(function):
        raise UserInputError(f"function must be a function of the parameters; got {function!r}.")
    if experiment.optimization_config is None:
        raise UserInputError("Call client.configure_optimization(objective=...) before configure_ray.")
    fetched = [metric for metric in experiment.metrics.values() if not isinstance(metric, ValidityMetric)]
    client.configure_runner(RayRunner(function, [metric.name for metric in fetched], options, experiment.search_space))
    metrics = [RayMetric(name=metric.name, lower_is_better=metric.lower_is_better) for metric in fetched]
    client.configure_metrics(metrics)  # type: ignore[arg-type]  # Ax takes all its metrics


def _outcomes(result: Any, metrics: Sequence[str]) -> dict[str, Outcome]:
    """The result of a function, by metric."""
    if not isinstance(result, Mapping):
        if len(metrics) != 1:
            raise UserInputError(f"The experiment has the metrics {metrics}; return a dictionary of numbers by metric.")
        result = {metrics[0]: result}
    if unknown := [name for name in result if name not in metrics]:
        raise UserInputError(f"There is no metric {unknown[0]!r} in the experiment, whose metrics are {metrics}.")
    return {name: _outcome(value) for name, value in result.items()}


def _outcome(value: Any) -> Outcome:
    pair = value if isinstance(value, tuple | list) else (value, math.nan)
    if len(pair) != 2 or not all(isinstance(entry, Real) or getattr(entry, "ndim", 1) == 0 for entry in pair):
        raise UserInputError("Return a number for each metric, or a number and its standard error.")
    return float(pair[0]), float(pair[1])

"""Trials as Ray tasks on a local cluster of two workers; a process that is killed in the middle, and resumed."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax.orchestration.orchestrator import FailureRateExceededError, Orchestrator
from ax.orchestration.orchestrator_options import OrchestratorOptions
from ax_cases import fitted_adapter, new_client, with_trials
from stored_experiments import database

from botorch_skewgp.ax import RayMetric, RayRunner, ValidityMetric, configure_ray

SCRIPT = Path(__file__).parents[2] / "tutorials" / "ax" / "ray_tasks.py"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "ignore"}

SQL = pytest.mark.filterwarnings("ignore:TypeDecorator JSONEncodedText:sqlalchemy.exc.SAWarning")  # of Ax's tables

# Without a cluster


def test_failures_do_not_keep_orchestration_from_going_on():
    """Ax's orchestration refuses metrics that cannot be fetched; that of validity is added at the first failure."""
    client = new_client()
    configure_ray(client, abs)
    failed, worked = with_trials(client, [0.9, 0.2])
    client.mark_trial_failed(failed)
    client.complete_trial(worked, {"loss": 0.3})
    fitted_adapter(client)
    experiment = client._experiment
    assert isinstance(experiment.metrics["validity"], ValidityMetric)
    assert isinstance(experiment.metrics["loss"], RayMetric)
    Orchestrator(experiment, client._generation_strategy, OrchestratorOptions())
    results = experiment.fetch_trials_data_results([worked])
    assert all(entry.is_ok() for entry in results[worked].values())


def test_needs_an_objective():
    client = Client()
    client.configure_experiment([RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))])
    with pytest.raises(UserInputError, match="configure_optimization"):
        configure_ray(client, abs)


@SQL
def test_the_function_is_not_stored(tmp_path):
    client = new_client(name="stored", storage_config=database(tmp_path / "experiments.db"))
    configure_ray(client, abs, num_cpus=2)
    for stored in (
        Client.load_from_database("stored", database(tmp_path / "experiments.db")),
        Client._from_json_snapshot(client._to_json_snapshot()),
    ):
        runner = stored._experiment.runner
        assert isinstance(runner, RayRunner)
        assert isinstance(stored._experiment.metrics["loss"], RayMetric)
        with pytest.raises(UserInputError, match="configure_ray again"):
            runner.run_trial(0, {"x": 0.5})


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "None, are not in the search space. They are missing"),
        ({"parameters": "x = 0.5"}, "They are missing"),
        ({"parameters": {"x": 7.0}}, "7.0 is not a valid value for parameter"),
        ({"parameters": {"x": 0.5, "y": 1.0}}, "search space"),
        ({"parameters": {}}, "search space"),
        ({"parameters": {"x": "0.5"}}, "search space"),
        ({"parameters": {"x": None}}, "search space"),
        ({"parameters": {"x": math.nan}}, "search space"),
    ],
)
def test_stored_parameters_outside_of_the_search_space_are_not_run(metadata, message):
    client = new_client()
    configure_ray(client, abs)
    runner = client._experiment.runner
    pytest.importorskip("ray")
    with pytest.raises(UserInputError, match=message) as caught:
        runner.poll_trial(3, metadata)
    assert "mark_trial_abandoned(3)" in str(caught.value)
    assert not runner._tasks.running


# On a cluster


@pytest.fixture(scope="module")
def ray():
    """A local cluster of two workers."""
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


def done(ray, runner, index, metadata):
    """The status of a trial when it is no longer running."""
    ray.wait(list(runner._tasks.running.values()))
    return runner.poll_trial(index, metadata)


def tried(ray, function, metrics=("loss",), **options):
    """A runner that has tried x = 0.5 in trial 3, and the trial's status."""
    runner = RayRunner(function, metrics, options)
    return runner, done(ray, runner, 3, runner.run_trial(3, {"x": 0.5}))


def reason(runner, index=3):
    return runner._tasks.reasons[index]


def no_machine():
    """A function that fails; inner functions are sent to the cluster as they are, those of modules by their names."""

    def fails(x):
        raise ValueError(f"no machine at {x}")

    return fails


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning:ray.*")  # Ray's own
class TestOnACluster:
    def test_numbers(self, ray):
        runner, status = tried(ray, lambda x: 2 * x)
        assert status == TrialStatus.COMPLETED
        mean, sem = runner.outcome(3, "loss")
        assert (mean, math.isnan(sem)) == (1.0, True)

    def test_several_metrics_some_missing(self, ray):
        runner, status = tried(ray, lambda x: {"loss": (x, 0.1)}, ["loss", "works"])
        assert status == TrialStatus.COMPLETED
        assert runner.outcome(3, "loss") == (0.5, 0.1)
        assert runner.outcome(3, "works") is None

    def test_failures_are_told(self, ray):
        runner, status = tried(ray, no_machine())
        assert status == TrialStatus.FAILED
        assert reason(runner) == "ValueError: no machine at 0.5"
        runner, status = tried(ray, lambda x: {"loss": math.nan})
        assert status == TrialStatus.FAILED
        assert "nan" in reason(runner)
        assert "loss" in reason(runner)
        runner, status = tried(ray, lambda x: os._exit(3), max_retries=0)
        assert status == TrialStatus.FAILED
        assert "worker died" in reason(runner)

    def test_a_function_that_the_cluster_lacks_is_no_failure(self, ray):
        runner = RayRunner(no_machine, ["loss"])  # of this file, which is no module there
        metadata = runner.run_trial(3, {"x": 0.5})
        with pytest.raises(ray.exceptions.RayError, match="ModuleNotFoundError"):
            done(ray, runner, 3, metadata)
        assert runner.poll_trial(3, metadata) == TrialStatus.RUNNING  # again

    @pytest.mark.parametrize("result", ["good", {"cost": 1.0}, {"loss": (1.0, 0.1, 2.0)}, None])
    def test_what_is_no_number_is_a_mistake(self, ray, result):
        runner = RayRunner(lambda x: result, ["loss"])
        metadata = runner.run_trial(3, {"x": 0.5})
        with pytest.raises(UserInputError, match=r"for trial 3\."):
            done(ray, runner, 3, metadata)
        assert runner.poll_trial(3, metadata) == TrialStatus.RUNNING  # again

    def test_a_number_needs_one_metric(self, ray):
        runner = RayRunner(lambda x: x, ["loss", "works"])
        with pytest.raises(UserInputError, match="dictionary of numbers by metric"):
            done(ray, runner, 0, runner.run_trial(0, {"x": 0.5}))

    def test_a_trial_that_another_process_ran_is_started(self, ray):
        metadata = RayRunner(lambda x: x, ["loss"]).run_trial(3, {"x": 0.5})
        runner = RayRunner(lambda x: 2 * x, ["loss"])
        assert runner.poll_trial(3, metadata) == TrialStatus.RUNNING
        assert done(ray, runner, 3, metadata) == TrialStatus.COMPLETED
        assert runner.outcome(3, "loss")[0] == 1.0

    def test_a_stopped_task_is_forgotten(self, ray, tmp_path):
        started = tmp_path / "started"

        def forever(x):
            started.touch()
            while True:
                pass

        runner = RayRunner(forever, ["loss"])
        metadata = runner.run_trial(3, {"x": 0.5})
        (task,) = runner._tasks.running.values()
        while not started.exists():  # an interrupt may get lost in a worker that is still importing
            ray.wait([task], timeout=0.1)
        runner.stop_trial(3, metadata)
        with pytest.raises(ray.exceptions.RayError) as caught:
            ray.get(task, timeout=120)
        assert not isinstance(caught.value, ray.exceptions.GetTimeoutError)

    def test_ax_stops_where_half_of_the_trials_fail(self, ray):
        """Unless told otherwise; what was learned is kept."""
        client = new_client()
        configure_ray(client, no_machine())
        with pytest.raises(FailureRateExceededError):
            client.run_trials(max_trials=8, parallelism=2)
        trials = client._experiment.trials.values()
        assert {trial.status for trial in trials} == {TrialStatus.FAILED}
        assert all("no machine at" in trial.status_reason for trial in trials)


# The program of the tutorials, killed while it looks after a trial that the model has chosen

FIRST_TO_HANG, NUM_TRIALS = 5, 7
HANGING = f"""
import runpy, sys, time
from botorch_skewgp.ax import RayRunner
poll = RayRunner.poll_trial
def hang(self, trial_index, trial_metadata):
    if trial_index < {FIRST_TO_HANG}:
        return poll(self, trial_index, trial_metadata)
    print("waits", flush=True)
    time.sleep(1000)
RayRunner.poll_trial = hang
sys.argv = [{str(SCRIPT)!r}, sys.argv[1]]
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
"""


def start(*program):
    """A process in a session of its own, which Ray's processes share."""
    environment = {**os.environ, **ENVIRONMENT, "NUM_TRIALS": str(NUM_TRIALS)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *map(str, program)], env=environment, start_new_session=True, **pipes)


def known(path):
    """What is stored of each trial."""
    experiment = Client.load_from_database("machine", database(path))._experiment
    data = experiment.lookup_data().df
    trials = experiment.trials.values()
    return {
        t.index: (t.status, t.arm.parameters, data[data["trial_index"] == t.index]["mean"].tolist()) for t in trials
    }


@SQL
@pytest.mark.slow
def test_a_killed_process_is_resumed(tmp_path):
    pytest.importorskip("ray")
    path = tmp_path / "experiments.db"
    with start("-c", HANGING, path) as victim:
        while (line := victim.stdout.readline()) != "waits\n":
            if not line:
                pytest.fail(victim.stderr.read()[-3000:])
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        before = known(path)
        running = {index for index, (status, _, _) in before.items() if status == TrialStatus.RUNNING}
        assert FIRST_TO_HANG in running
        with start(SCRIPT, path) as second:
            output, errors = second.communicate(timeout=300)
            assert second.returncode == 0, errors[-3000:]
            assert output.startswith("best:") or "\nbest:" in output
    after = known(path)
    assert len(after) == NUM_TRIALS
    assert {status for status, _, _ in after.values()} == {TrialStatus.COMPLETED, TrialStatus.FAILED}
    for index, entry in before.items():
        if index in running:
            assert after[index][1] == entry[1], "not at the same point"
        else:
            assert after[index] == entry

"""Three workers on one study in a database, one of them killed; and a database that goes away."""

import functools
import itertools
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy import NullPool, text

from botorch_skewgp.optuna import SkewGPSampler

WORKER = Path(__file__).parents[2] / "tutorials" / "optuna" / "worker.py"
NUM_TRIALS, FIRST_TO_HANG = 10, 7

# A worker whose computer stops in the middle of a trial that the model has chosen.
HANGING = f"""
import runpy, sys, time
worker = runpy.run_path({str(WORKER)!r})
def hang(trial):
    if trial.number < {FIRST_TO_HANG}:
        return worker["simulate"](trial)
    trial.suggest_float("power", 0, 1), trial.suggest_float("speed", 0, 1)
    print(trial.number, flush=True)
    time.sleep(1000)
worker["work"](sys.argv[1], hang)
"""


# the programs of the newest server, which Debian keeps off the path
PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]), default=None)
PROGRAMS = PROGRAMS or shutil.which("initdb")


@contextmanager
def running_server():
    """The address of a server, and calls that start it and stop it at once, as if it lost its power.

    Sockets have short names. The server refuses root, whose temporary folders are closed to others.
    """
    owner = "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else "nobody"
    with tempfile.TemporaryDirectory(prefix="skewgp", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, owner)

        def control(program, *arguments):
            command = [str(Path(PROGRAMS).resolve().parent / program), *arguments, "-D", f"{folder}/data"]
            command = ["runuser", "-u", owner, "--", *command] if os.geteuid() == 0 else command
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        begin = functools.partial(control, "pg_ctl", "start", "-w", "-o", options, "-l", f"{folder}/log")
        stop = functools.partial(control, "pg_ctl", "stop", "-m", "immediate")
        control("initdb", "-A", "trust", "-U", "skewgp", "--no-sync")
        begin()
        try:
            yield f"postgresql+psycopg://skewgp@/postgres?host={folder}", begin, stop
        finally:
            stop()


needs_postgres = pytest.mark.skipif(PROGRAMS is None, reason="needs Debian's postgresql")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgres)])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/study.db"
    else:
        pytest.importorskip("psycopg")
        with running_server() as (address, _, _):
            yield address


def start(url, *program):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUM_TRIALS": str(NUM_TRIALS)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *program, url], env=environment, text=True, **pipes)


def storage_at(url):
    """A storage that keeps no connection open."""
    return optuna.storages.RDBStorage(url, engine_kwargs={"poolclass": NullPool})


def load(url):
    return optuna.load_study(study_name="machine", storage=storage_at(url))


def finished(url):
    """What is stored of the trials that are done."""
    study = load(url)
    done = study.get_trials(states=(TrialState.COMPLETE, TrialState.FAIL))
    return {trial.number: json.dumps([trial.state, trial.params, trial.values], default=str) for trial in done}


def let_the_grace_period_pass(url, number):
    """A minute in which nothing is heard of the worker."""
    storage, trial = storage_at(url), load(url).trials[number]
    with storage.engine.begin() as connection:
        long_ago = {"then": datetime(2000, 1, 1), "trial": trial._trial_id}
        connection.execute(text("UPDATE trial_heartbeats SET heartbeat = :then WHERE trial_id = :trial"), long_ago)


@pytest.mark.slow
def test_a_worker_is_killed(url):
    optuna.create_study(study_name="machine", direction="maximize", storage=storage_at(url))  # tables are made once
    with start(url, "-c", HANGING) as victim, start(url, str(WORKER)) as first, start(url, str(WORKER)) as second:
        if not (line := victim.stdout.readline()):
            pytest.fail(victim.stderr.read()[-3000:])
        number, before = int(line), finished(url)
        os.kill(victim.pid, signal.SIGKILL)
        let_the_grace_period_pass(url, number)
        for worker in (first, second):
            _, errors = worker.communicate(timeout=300)
            assert worker.returncode == 0, errors[-3000:]
        victim.communicate()
    trials = load(url).trials

    # nothing is lost: what was known is still known, all the work is done, and the victim's trial was tried again
    after = finished(url)
    assert before.items() <= after.items()
    assert sum(trial.state == TrialState.COMPLETE for trial in trials) >= NUM_TRIALS
    again = [trial for trial in trials if number in trial.system_attrs.get("retry_history", [])]
    assert trials[number].state == TrialState.FAIL
    assert [trial.params for trial in again] == [trials[number].params]

    # and nothing was done twice but that, nor chosen without regard to what was running
    chosen = [trial for trial in trials if any(key.startswith("skewgp:relative") for key in trial.system_attrs)]
    chosen = [trial for trial in chosen if trial not in again]
    assert len(chosen) >= 3
    for one, other in itertools.combinations(chosen, 2):
        if one.datetime_start < other.datetime_complete and other.datetime_start < one.datetime_complete:
            distance = max(abs(one.params[name] - other.params[name]) for name in one.params)
            assert distance > 1e-3, (one.number, other.number)


@needs_postgres
@pytest.mark.slow
def test_a_database_goes_away():
    """The error is the storage's; what was stored is there when it is back, and the study goes on."""
    pytest.importorskip("psycopg")
    with running_server() as (address, begin, stop):
        study = optuna.create_study(storage=storage_at(address), sampler=SkewGPSampler(seed=0, n_startup_trials=3))
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
        trial = study.ask()
        stop()
        try:
            with pytest.raises(optuna.exceptions.StorageInternalError) as error:
                trial.suggest_float("x", 0, 1)
            assert "connection" in str(error.value.__cause__)
        finally:
            begin()
        assert 0 <= trial.suggest_float("x", 0, 1) <= 1
        study.tell(trial, 0.5)
        assert [entry.state for entry in study.trials] == [TrialState.COMPLETE] * 5

"""Workers that choose at the same time, in storages in memory and with a clock of the test's own."""

import itertools
import os
import subprocess
import sys
import threading
import time

import pytest
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from study_cases import with_trials

from botorch_skewgp.optuna import turns
from botorch_skewgp.optuna.internals import set_trial_system_attr
from botorch_skewgp.optuna.study_model import StudyModel
from botorch_skewgp.optuna.turns import BEAT, CHOOSING, ENDED, LONGEST_NAP, PATIENCE, choosing, wait_for_earlier_trials


def new_study():
    return with_trials([0.0, 0.25, 0.5, 0.75, 1.0])


def running(study, count):
    """Trials that have begun, as they are stored."""
    numbers = [study.ask().number for _ in range(count)]
    return [study.trials[number] for number in numbers]


@pytest.fixture
def clock(monkeypatch):
    """A clock that only naps move, and what happens during each."""

    class Clock:
        now, naps, during = 1e6, 0, staticmethod(lambda: None)

        def sleep(self, seconds):
            self.now, self.naps = self.now + seconds, self.naps + 1
            assert self.naps < 10_000
            self.during()

    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def test_a_trial_waits_for_the_points_that_earlier_ones_are_choosing(clock):
    """Two workers began at the same time; the later one learns of the other's point before it decides."""
    alone = new_study().ask().suggest_float("x", 0, 1)
    study = new_study()
    earlier, later = study.ask(), study.ask()
    stored = study.trials[earlier.number]
    set_trial_system_attr(study, stored, CHOOSING, 0)

    def decide():
        set_trial_system_attr(study, stored, "skewgp:relative_params:x", alone)
        set_trial_system_attr(study, stored, CHOOSING, ENDED)

    clock.during = decide
    assert abs(later.suggest_float("x", 0, 1) - alone) > 0.01
    assert clock.naps == 1


def test_a_slow_worker_that_is_heard_of_is_waited_for(clock):
    """However long it takes, and whatever its clock says."""
    study = new_study()
    slow, later = running(study, 2)
    set_trial_system_attr(study, slow, CHOOSING, 0)
    began, signs = clock.now, itertools.count(1)

    def nearly_starved():
        over = clock.now - began > 50 * PATIENCE
        if over or clock.naps % int(0.9 * PATIENCE / LONGEST_NAP) == 0:
            set_trial_system_attr(study, slow, CHOOSING, ENDED if over else next(signs))

    clock.during = nearly_starved
    wait_for_earlier_trials(study, later)
    assert clock.now - began > 50 * PATIENCE


def test_a_dead_worker_is_given_up_once_for_all(clock):
    study = new_study()
    dead, later, last = running(study, 3)
    set_trial_system_attr(study, dead, CHOOSING, 7)
    began = clock.now
    wait_for_earlier_trials(study, later)
    assert PATIENCE <= clock.now - began < 1.1 * PATIENCE + LONGEST_NAP
    assert clock.now - began < 25, (
        "a job that is preempted every 40 seconds, on another machine each time, makes trials"
    )
    clock.naps = 0
    wait_for_earlier_trials(study, last)
    assert clock.naps == 0


@pytest.fixture
def ended():
    """A process that has ended; unless it was waited for, its number still exists."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield process
    process.wait()


@pytest.mark.skipif(os.name != "posix", reason="asks the kernel by POSIX")
@pytest.mark.parametrize("kind", ["reaped", "not reaped", "this number, another run"])
def test_nobody_waits_for_a_process_of_this_machine_that_has_ended(clock, ended, kind):
    """A worker that was killed while it chose a point, also one whose parent has not noticed."""
    if kind == "reaped":
        ended.wait()
    elif kind == "not reaped" and not os.path.exists("/proc/self/stat"):
        pytest.skip("only Linux says that a process is a zombie")
    process, run = (os.getpid(), "before") if kind == "this number, another run" else (ended.pid, turns._run)
    study = new_study()
    dead, later = running(study, 2)
    set_trial_system_attr(study, dead, CHOOSING, [3, turns._machine(), process, run])
    wait_for_earlier_trials(study, later)
    assert clock.naps == 0
    assert study.trials[dead.number].system_attrs[CHOOSING] == ENDED


@pytest.mark.parametrize(
    "heartbeat",
    [
        [0, turns._machine(), os.getpid(), turns._run],
        [0, turns._machine(), os.getppid(), "its own"],
        [0, "another machine", 2**22 + 1, "its own"],
        [0, turns._machine(), 2**80, "no number of a process"],
    ],
)
def test_who_may_be_alive_is_waited_for_and_the_wait_is_logged(clock, monkeypatch, heartbeat):
    logged = []
    monkeypatch.setattr(turns._logger, "warning", lambda message: logged.append((clock.now, message)))
    study = new_study()
    silent, later = running(study, 2)
    set_trial_system_attr(study, silent, CHOOSING, heartbeat)
    began = clock.now
    wait_for_earlier_trials(study, later)
    assert clock.now - began >= PATIENCE
    (first, waits), (_, dead) = logged
    assert first - began < PATIENCE / 4
    assert f"Trial {later.number} waits" in waits
    assert f"Trial {silent.number}" in dead


def test_nobody_waits_for_who_has_not_begun_or_began_later(clock):
    study = new_study()
    _, own, later = running(study, 3)
    set_trial_system_attr(study, later, CHOOSING, 0)
    wait_for_earlier_trials(study, own)
    assert clock.naps == 0


@pytest.mark.parametrize("outcome", ["nothing", "error"])
def test_a_choice_that_failed_is_over(monkeypatch, outcome):
    def fails(self, seed, X_pending, against):
        if outcome == "error":
            raise StorageInternalError("gone")

    monkeypatch.setattr(StudyModel, "acquisition", fails)
    study = new_study()
    trial = study.ask()
    if outcome == "error":
        with pytest.raises(StorageInternalError):
            trial.suggest_float("x", 0, 1)
    else:
        trial.suggest_float("x", 0, 1)
    assert study.trials[-1].state == TrialState.RUNNING
    assert study.trials[-1].system_attrs[CHOOSING] == ENDED


@pytest.mark.parametrize("error", [StorageInternalError("gone"), RuntimeError("locked")])
def test_who_chooses_gives_signs_of_life_even_if_the_storage_fails_for_a_while(monkeypatch, error):
    """Others would take the worker for dead, and choose its point."""
    monkeypatch.setattr(turns, "BEAT", 0.001)
    study, heard, enough = new_study(), [], threading.Event()
    (trial,) = running(study, 1)

    def away_for_three_beats(study, trial, key, value):
        heard.append(value)
        if value == ENDED:
            return
        if value[0] == 5:
            enough.set()
        if value[0] in (1, 2, 3):
            raise error

    monkeypatch.setattr(turns, "set_trial_system_attr", away_for_three_beats)
    with choosing(study, trial):
        assert enough.wait(60)
    assert [value[0] for value in heard[:-1]] == [*range(len(heard) - 1)]
    assert heard[-1] == ENDED
    assert BEAT < PATIENCE / 10

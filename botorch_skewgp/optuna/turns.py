"""Workers that would choose the same point at the same time: the one with the larger trial number waits for the other.

It waits as long as the other's heartbeat in the storage changes, by its own clock; on one machine it asks the kernel
whether the other's process is alive. Threads seed torch's global random state in turn.
"""

from __future__ import annotations

import itertools
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from botorch.utils.sampling import manual_seed
from optuna import Study, logging
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from botorch_skewgp.optuna.internals import set_trial_system_attr

_logger = logging.get_logger(__name__)

CHOOSING, ENDED = "skewgp:choosing", "ended"
BEAT = 1.0  # seconds between two heartbeats
SILENCE = 4.0  # seconds without one after which the wait is logged
PATIENCE = 20.0  # seconds without one after which a worker is taken for dead: less than jobs live that are preempted
SHORTEST_NAP, LONGEST_NAP = 0.05, 1.0
_seeding = threading.RLock()
_run = uuid.uuid4().hex  # a process of a restarted container may have the number of the one before


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have torch's global random state seeded, one thread at a time, and as it was afterwards."""
    with _seeding, manual_seed(seed):
        yield


@contextmanager
def choosing(study: Study, trial: FrozenTrial) -> Iterator[None]:
    """Store that the point of a trial is being chosen, until it is stored or its choice has failed."""
    own = [_machine(), os.getpid(), _run]
    set_trial_system_attr(study, trial, CHOOSING, [0, *own])
    over = threading.Event()

    def beat() -> None:
        for number in itertools.count(1):
            if over.wait(BEAT):
                return
            # a storage that is away may come back: others would take a silent worker for dead
            with suppress(Exception):
                set_trial_system_attr(study, trial, CHOOSING, [number, *own])

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        set_trial_system_attr(study, trial, CHOOSING, ENDED)


def wait_for_earlier_trials(study: Study, trial: FrozenTrial) -> None:
    """Wait until no trial of a smaller number is being chosen by a worker that is alive."""
    heard: dict[int, tuple[Any, float]] = {}  # the last heartbeat of each trial, and when it was first read
    logged: set[int] = set()
    nap = SHORTEST_NAP
    while True:
        is_over, now = True, time.monotonic()
        for entry in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            heartbeat = entry.system_attrs.get(CHOOSING, ENDED)
            if entry.number >= trial.number or heartbeat == ENDED:
                continue
            if entry.number not in heard or heard[entry.number][0] != heartbeat:
                heard[entry.number] = heartbeat, now
            silence = now - heard[entry.number][1]
            if silence >= PATIENCE or _is_dead(heartbeat):
                _logger.warning(f"Trial {entry.number}: the worker that was choosing its point is dead.")
                with suppress(UpdateFinishedTrialError):
                    set_trial_system_attr(study, entry, CHOOSING, ENDED)  # others need not wait
                continue
            is_over = False
            if silence >= SILENCE and entry.number not in logged:
                logged.add(entry.number)
                _logger.warning(
                    f"Trial {trial.number} waits: the worker that is choosing the point of trial {entry.number} has "
                    f"been silent for {silence:.0f} seconds, and is taken for dead after {PATIENCE:.0f}."
                )
        if is_over:
            return
        time.sleep(nap)
        nap = min(1.5 * nap, LONGEST_NAP)


def _machine() -> str:
    """A name of this machine, or of the container, within which a process number means one process."""
    namespace = Path("/proc/self/ns/pid")
    return f"{platform.node()} {uuid.getnode()} {os.readlink(namespace) if namespace.is_symlink() else ''}"


def _is_dead(heartbeat: Any) -> bool:
    """Whether a heartbeat names a process of this machine that has ended; `False` where that cannot be known."""
    match heartbeat:
        case [int(), str(machine), int(process), str(run)] if machine == _machine() and os.name == "posix":
            if process == os.getpid():
                return run != _run
            return not _process_exists(process)
    return False


def _process_exists(process: int) -> bool:
    """Whether a process of this machine runs, one that has ended but was not waited for excepted."""
    try:
        os.kill(process, 0)  # sends no signal
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's; no number of a process
        return True
    with suppress(OSError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return True

"""Workers that would choose the same point at the same time: the one with the larger trial number waits, as long as
the other's heartbeat in the storage changes, by its own clock. Threads seed torch's global random state in turn.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from botorch.utils.sampling import manual_seed
from optuna import Study
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from botorch_skewgp.optuna.internals import set_trial_system_attr

CHOOSING, ENDED = "skewgp:choosing", "ended"
BEAT = 2.0  # seconds between two signs of life
PATIENCE = 60.0  # seconds without one after which a worker is taken for dead
SHORTEST_NAP, LONGEST_NAP = 0.05, 1.0
_seeding = threading.RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Have torch's global random state seeded, one thread at a time, and as it was afterwards."""
    with _seeding, manual_seed(seed):
        yield


@contextmanager
def choosing(study: Study, trial: FrozenTrial) -> Iterator[None]:
    """Say that the point of a trial is being chosen, until that is over and its point stored, or has failed."""
    set_trial_system_attr(study, trial, CHOOSING, 0)
    over = threading.Event()

    def beat() -> None:
        for number in itertools.count(1):
            if over.wait(BEAT):
                return
            # a storage that is away may come back: others would take a silent worker for dead
            with suppress(Exception):
                set_trial_system_attr(study, trial, CHOOSING, number)

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
    heard: dict[int, tuple[int, float]] = {}  # the last sign of life of each trial, and when it was seen first
    nap = SHORTEST_NAP
    while True:
        is_over, now = True, time.monotonic()
        for entry in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            sign = entry.system_attrs.get(CHOOSING, ENDED)
            if entry.number >= trial.number or sign == ENDED:
                continue
            if entry.number not in heard or heard[entry.number][0] != sign:
                heard[entry.number] = sign, now
            if now - heard[entry.number][1] < PATIENCE:
                is_over = False
            else:
                with suppress(UpdateFinishedTrialError):
                    set_trial_system_attr(study, entry, CHOOSING, ENDED)  # others need not wait
        if is_over:
            return
        time.sleep(nap)
        nap = min(1.5 * nap, LONGEST_NAP)

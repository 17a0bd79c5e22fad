"""The ways in which a trial can end without a number, and what each says of its point: one table for all hosts."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Says(StrEnum):
    """The meaning of an end for the model."""

    FAILS = "trials fail there"
    PENDING = "a result is awaited there"
    NOTHING = "nothing"
    BOUND = "the number is within the bound"


class End(NamedTuple):
    """One way to end: what happened, how Optuna and Ax show it (empty where they do not have it), and its meaning."""

    happened: str
    optuna: str
    ax: str
    says: Says


RAISED = End(
    "the objective raised an error, its own `MemoryError` included",
    "`FAIL` after an exception, or by `study.tell`",
    "`mark_trial_failed`, `mark_trial_abandoned`, or a runner's `FAILED`",
    Says.FAILS,
)
RETURNED = End(
    "it returned a number that cannot be one",
    "NaN or `None` (`FAIL`), infinity, or beyond 1e154",
    "infinity, or beyond 1e154; NaN is an error",
    Says.FAILS,
)
GIVEN_UP = End("the objective gave up", "it raised `TrialPruned` (`PRUNED`)", "", Says.FAILS)
REPORTED = End("you said so", "`report_unusable`", "the metric `validity` is 0", Says.FAILS)
BOUNDED = End(
    "it was stopped, and a bound of its number is known",
    "`report_at_least`, `report_at_most`, in any state",
    "`attach_censored`, in any state",
    Says.BOUND,
)
INTERRUPTED = End("you pressed Ctrl-C", "`FAIL` after `KeyboardInterrupt`", "it stays `RUNNING`", Says.NOTHING)
KILLED = End(
    "its worker was killed, by the host for want of memory too",
    "`FAIL` by a storage with a heartbeat, with a retry or without",
    "it stays `RUNNING`",
    Says.NOTHING,
)
NOT_FETCHED = End(
    "it ran, and its number could not be fetched", "", "`ABANDONED` by Ax after a `MetricFetchE`", Says.NOTHING
)
NOT_ANSWERED = End(
    "nobody judged it",
    "it was skipped on the dashboard's page",
    "a pair of `get_next_pair` was abandoned",
    Says.NOTHING,
)
WITHOUT_DATA = End(
    "it ended without data, or never began",
    "it waits (`WAITING`)",
    "`complete_trial` without data, `EARLY_STOPPED` without data, `STALE`",
    Says.NOTHING,
)
RUNNING = End("nothing was heard of it yet", "`RUNNING`", "`RUNNING`, `STAGED`, `CANDIDATE`", Says.PENDING)

ENDS = (
    RAISED,
    RETURNED,
    GIVEN_UP,
    REPORTED,
    BOUNDED,
    INTERRUPTED,
    KILLED,
    NOT_FETCHED,
    NOT_ANSWERED,
    WITHOUT_DATA,
    RUNNING,
)


def table_of_ends() -> str:
    """The table of all ends, in Markdown, as the pages of the hosts show it."""
    head = ["| a trial without a number | in Optuna | in Ax | it says of its point |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(entry)} |" for entry in ENDS)])

"""Random inputs of every kind and mixture against an independent reference, thousands of them, a hundred a seed."""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Sequence
from typing import Any

from benchmarks._process import apart, tell
from benchmarks._race import Cell, Group, Names, Race, Row, grid
from benchmarks.fuzz.cases import CORNER, PULLED_APART, numbered_case
from benchmarks.fuzz.checks import check

STATUSES = ("right", "refused", "warned", "no reference", "wrong", "crash", "hang")
CHUNK, CHUNKS_OF_A_CORNER = 100, 4
LIMIT = 20  # seconds of processor time after which an input hangs
SKEW = " (skew prior)"


def examine(number: int) -> dict[str, Any]:
    case = numbered_case(number)
    began = time.process_time()
    verdict = check(case, twice=number % 8 == 0)
    seconds = round(time.process_time() - began, 2)
    return {"number": number, "status": verdict.status, "why": verdict.why, "kinds": case.kinds(), "seconds": seconds}


def examine_all(numbers: list[int], limit: int) -> dict[str, Any]:
    """Verdicts, told as they come: the kernel ends a process that runs out of processor time."""
    warnings.simplefilter("ignore")
    examine(0)  # imports and compiled code
    entries: list[dict[str, Any]] = []
    tell({"entries": entries})
    for number in numbers:
        used = int(time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used + limit, resource.RLIM_INFINITY))
        entries.append(examine(number))
        tell({"entries": entries})
    return {"entries": entries}


def results(numbers: Sequence[int], limit: int = LIMIT) -> list[dict[str, Any]]:
    """The verdicts of fresh processes, the next of which goes on behind an input that ended the last one."""
    done: list[dict[str, Any]] = []
    while left := [*numbers[len(done) :]]:
        found = apart(examine_all, left, limit)
        if "entries" not in found:
            raise RuntimeError(f"A process of the fuzzer ended before it began: {found['why']}")
        done += found["entries"]
        if len(done) < len(numbers):
            number, why = numbers[len(done)], f"{found['why']}, of {limit} s"
            kinds = numbered_case(number).kinds()
            done.append({"number": number, "status": "hang", "why": why, "kinds": kinds, "seconds": float(limit)})
    return done


def _run(first: int, kind: str, seed: int) -> list[Names]:
    if first and seed >= CHUNKS_OF_A_CORNER:
        return []
    return [*results(range(first + CHUNK * seed, first + CHUNK * (seed + 1)))]


def of_kinds(rows: Sequence[Row]) -> list[Row]:
    of_row = [row["kinds"].removesuffix(SKEW).split(" + ") for row in rows]
    kinds = ["all", *sorted({kind for found in of_row for kind in found}), "with a skew prior"]
    every = zip(rows, of_row, strict=True)
    listed = [(row, ["all", *found, *(["with a skew prior"] if SKEW in row["kinds"] else [])]) for row, found in every]
    return [{**row, "kind": kind, "seed": row["number"]} for kind in kinds for row, found in listed if kind in found]


def _columns(runs: Group) -> dict[str, Cell]:
    found = [row["status"] for row in runs.rows]
    return {"inputs": len(runs), **{status: found.count(status) for status in STATUSES}}


RACES = (
    Race("fuzz", grid(first=(0, CORNER, PULLED_APART)), grid(kind=["all"]), range(100), _run,
         ("number", "status", "why", "kinds", "seconds"), _columns, told=of_kinds),
)  # fmt: skip

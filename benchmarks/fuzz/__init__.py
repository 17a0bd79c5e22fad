"""Random inputs of every kind and mixture against an independent reference, thousands of them.

Input number `i` is the same in every run. What has been done is kept in a file of progress, so that a run that was cut
short goes on where it stopped. Inputs from number 1,000,000 on are of one corner that had been wrong: a skew prior
against data that are all but impossible under it, at points that nearly coincide. Those from 2,000,000 on are of
another: pseudo-points that nearly coincide and must differ, beside numbers that contradict each other, mostly in single
precision.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._process import apart, tell
from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say

STATUSES = ("right", "refused", "warned", "no reference", "wrong", "crash", "hang")
PROGRESS = Path(".fuzz_progress.jsonl")
CHUNK = 100  # inputs of a process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.set_defaults(threads=1)
    parser.add_argument("--num", type=int, default=10_000, help="number of inputs")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="processes of one thread each")
    parser.add_argument("--limit", type=int, default=20, help="seconds of processor time after which an input hangs")
    parser.add_argument("--progress", type=Path, default=PROGRESS, help="file that a later run goes on from")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    wanted = range(options.first, options.first + (100 if options.quick else options.num))
    with options.progress.open("a+", encoding="utf-8") as file:
        file.seek(0)
        done = {entry["number"]: entry for entry in map(json.loads, file)}
    left = [number for number in wanted if number not in done]
    say(f"{len(wanted) - len(left)} of {len(wanted)} inputs were done before")
    with options.progress.open("a", encoding="utf-8") as file:
        for entry in results(left, options.processes, options.limit):
            done[entry["number"]] = entry
            file.write(json.dumps(entry) + "\n")
            file.flush()
            if entry["status"] in ("wrong", "crash", "hang"):
                say(f"{entry['number']}: {entry['status']}, {entry['kinds']}: {entry['why']}")
    publish([table([done[number] for number in wanted])], folder)


def examine(number: int) -> dict[str, Any]:
    """The verdict on an input, as a line of the file of progress."""
    from benchmarks.fuzz.cases import numbered_case
    from benchmarks.fuzz.checks import check

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


def results(numbers: list[int], processes: int, limit: int) -> Iterator[dict[str, Any]]:
    """The verdicts on inputs, as they come, each within a limit of seconds of processor time."""
    chunks = [numbers[i : i + CHUNK] for i in range(0, len(numbers), CHUNK)]
    with ThreadPoolExecutor(processes) as pool:
        for entries in pool.map(partial(_examined, limit=limit), chunks):
            yield from entries


def _examined(numbers: list[int], limit: int) -> list[dict[str, Any]]:
    """The verdicts of fresh processes, the next of which goes on behind an input that ended the last one."""
    from benchmarks.fuzz.cases import numbered_case

    done: list[dict[str, Any]] = []
    while left := numbers[len(done) :]:
        found = apart(examine_all, left, limit)
        if "entries" not in found:
            raise RuntimeError(f"A process of the fuzzer ended before it began: {found['why']}")
        done += found["entries"]
        if len(done) < len(numbers):
            number, why = numbers[len(done)], f"{found['why']}, of {limit} s"
            kinds = numbered_case(number).kinds()
            done.append({"number": number, "status": "hang", "why": why, "kinds": kinds, "seconds": float(limit)})
    return done


def table(entries: list[dict]) -> Table:
    """The verdicts by kind."""
    notes = [environment(), f"inputs {min(e['number'] for e in entries)} to {max(e['number'] for e in entries)}"]
    by_kind = Table("fuzz", ("kind", "inputs", *STATUSES), notes=notes)
    kinds = sorted({kind for entry in entries for kind in entry["kinds"].removesuffix(" (skew prior)").split(" + ")})
    groups = {"all": entries}
    groups |= {kind: [e for e in entries if kind in e["kinds"].split(" (")[0].split(" + ")] for kind in kinds}
    groups["with a skew prior"] = [e for e in entries if e["kinds"].endswith("(skew prior)")]
    for kind, group in groups.items():
        found = Counter(entry["status"] for entry in group)
        by_kind.add(kind=kind, inputs=len(group), **{status: found[status] for status in STATUSES})
    return by_kind

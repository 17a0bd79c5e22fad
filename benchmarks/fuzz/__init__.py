"""Random inputs of every kind and mixture against an independent reference, thousands of them.

Input number `i` is the same in every run. What has been done is kept in a file of progress, so that a run that was cut
short goes on where it stopped. Inputs from number 1,000,000 on are of one corner that had been
wrong: a skew prior against data that are all but impossible under it, at points that nearly coincide. Those from
2,000,000 on are of another: pseudo-points that nearly coincide and must differ, beside numbers that contradict each
other, mostly in single precision.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

import torch

from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say

STATUSES = ("right", "refused", "warned", "no reference", "wrong", "crash", "hang")
PROGRESS = Path(".fuzz_progress.jsonl")


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
    done = {entry["number"]: entry for entry in _read(options.progress)}
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


def _read(path: Path) -> Iterator[dict]:
    if path.exists():
        yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


# Processes: one that runs out of processor time is ended by the kernel, and a fresh one takes its place


def examine(number: int) -> dict:
    """The verdict on an input, as a line of the file of progress."""
    from benchmarks.fuzz.cases import numbered_case
    from benchmarks.fuzz.checks import check

    case = numbered_case(number)
    began = time.process_time()
    verdict = check(case, twice=number % 8 == 0)
    seconds = round(time.process_time() - began, 2)
    return {"number": number, "status": verdict.status, "why": verdict.why, "kinds": case.kinds(), "seconds": seconds}


def _work(connection: Connection, limit: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    examine(0)  # imports and compiled code
    connection.send(None)
    while (number := connection.recv()) is not None:
        used = int(time.process_time()) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (used + limit, resource.RLIM_INFINITY))
        connection.send(examine(number))


def results(numbers: list[int], processes: int, limit: int) -> Iterator[dict]:
    """The verdicts on inputs, as they come, each within a limit of seconds of processor time."""
    from benchmarks.fuzz.cases import numbered_case

    context = multiprocessing.get_context("spawn")
    queue = list(reversed(numbers))
    busy: dict[Connection, tuple] = {}  # process and the number that it works on; None while it starts

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, limit), daemon=True)
        process.start()
        theirs.close()
        busy[ours] = (process, None)

    for _ in range(min(processes, len(queue))):
        start()
    while busy:
        for connection in wait(list(busy)):
            assert isinstance(connection, Connection)
            process, number = busy.pop(connection)
            try:
                entry = connection.recv()
            except EOFError:
                process.join()
                if number is None:
                    raise RuntimeError("A process of the fuzzer ended before it began.") from None
                kinds = numbered_case(number).kinds()
                why = f"over {limit} s" if process.exitcode == -24 else f"exit code {process.exitcode}"
                yield {"number": number, "status": "hang", "why": why, "kinds": kinds, "seconds": float(limit)}
                if queue:
                    start()
                continue
            if entry is not None:
                yield entry
            following = queue.pop() if queue else None
            connection.send(following)
            if following is None:
                process.join()
            else:
                busy[connection] = (process, following)


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

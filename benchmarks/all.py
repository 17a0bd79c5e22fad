"""Every benchmark, one after another, each for its share of the time; what is stored and not stale is not run again."""

from __future__ import annotations

import argparse
import time

from benchmarks import descriptions, load
from benchmarks._reporting import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=float, default=12.0, help="of the clock, after which nothing begins")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time, of one thread each")


def run(options: argparse.Namespace) -> None:
    """A benchmark that does not use up its share leaves the rest to those after it."""
    names = [name for name in descriptions() if name not in ("all", "tables")]
    end = time.monotonic() + 3600 * options.hours
    for place, name in enumerate(names):
        benchmark, parser = load(name), argparse.ArgumentParser()
        benchmark.add_arguments(parser)
        share = (end - time.monotonic()) / (len(names) - place)
        say(f"{name}: at most {share / 60:.0f} minutes")
        limits = ["--seconds", str(max(share, 0.0)), "--processes", str(options.processes)]
        benchmark.run(parser.parse_args(limits if hasattr(benchmark, "races") else []))

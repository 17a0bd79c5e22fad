"""`python -m benchmarks NAME [options]`."""

from __future__ import annotations

import argparse
import sys

from benchmarks import descriptions, load


def main(arguments: list[str]) -> None:
    """Run the benchmark that the first argument names with the options that follow it."""
    known = descriptions()
    listing = "\n".join(f"  {name:<24} {text}" for name, text in known.items()) or "  none yet"
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run a benchmark.",
        epilog=f"benchmarks:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=list(known), metavar="NAME", help="which one; see below")
    selected = parser.parse_args(arguments[:1])
    if selected.name is None:
        parser.print_help()
        return
    benchmark = load(selected.name)
    options = argparse.ArgumentParser(prog=f"python -m benchmarks {selected.name}", description=known[selected.name])
    benchmark.add_arguments(options)
    benchmark.run(options.parse_args(arguments[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])

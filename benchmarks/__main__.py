"""`python -m benchmarks NAME [options]`."""

from __future__ import annotations

import argparse
import sys

from benchmarks import descriptions, load, modules_of_races


def main(arguments: list[str]) -> None:
    """Run the benchmark that the first argument names with the options that follow it."""
    known, races = descriptions(), modules_of_races()
    listing = "\n".join(f"  {name:<24} {text}" for name, text in known.items()) or "  none yet"
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run a benchmark.",
        epilog=f"benchmarks:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*known, *races], metavar="NAME", help="which one, or a race of one")
    selected = parser.parse_args(arguments[:1])
    if selected.name is None:
        parser.print_help()
        return
    if selected.name in races:
        return main([races[selected.name], "--only", *arguments])
    benchmark = load(selected.name)
    options = argparse.ArgumentParser(prog=f"python -m benchmarks {selected.name}", description=known[selected.name])
    benchmark.add_arguments(options)
    benchmark.run(options.parse_args(arguments[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])

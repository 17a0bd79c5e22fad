"""Write docs/measurements/compatibility.md: `python tests/contract/compatibility.py`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import botorch
from contract_cases import KINDS, OTHERS, Case, case
from contract_checks import CHECKS, run
from contract_registry import IMPOSSIBLE, Entry, entries

TARGET = Path(__file__).parents[2] / "docs" / "measurements" / "compatibility.md"
HEAD = """# Compatibility with BoTorch, function by function

Made by `python tests/contract/compatibility.py` with BoTorch {version}; `tests/contract` runs the same checks. Every
acquisition function, objective and posterior transform of BoTorch is built on a fitted `SkewGP` of four kinds
(preferences; labels; numbers and preferences; numbers under a skew prior), then checked:
{checks}. [](../compatibility.md) says what the entries mean.

In the columns of other models, "yes" means that value and gradient pass for the same arguments. A
`BayesianTransformedGP` is built with `num_moments=2` here, so that means and variances exist; its posterior is a
mixture that has no Gaussian of equal moments, takes no batches of fantasies, and has no sample paths.

{counts}

| function | SkewGP | BayesianTransformedGP | PairwiseGP | SingleTaskGP |
|---|---|---|---|---|
"""


def failures(entry: Entry, of: Case, checks: tuple[str, ...]) -> list[str]:
    """What fails, as text."""
    found = []
    for check in checks:
        if entry.reason(check, of) is None:
            try:
                run(check, entry, of)
            except Exception as error:  # whatever a function raises is what the table reports
                found.append(f"{check} ({type(error).__name__})")
    return found


def row(entry: Entry) -> tuple[str, dict[str, bool]]:
    """The line of an entry, and which models pass: SkewGP with all checks and kinds."""
    own = {kind: failures(entry, case(kind), CHECKS) for kind in KINDS}
    bad = "; ".join(f"{kind}: {', '.join(found)}" for kind, found in own.items() if found)
    notes = sorted({f"{check} not checked: {reason}" for check, reason in entry.left_out.items()})
    others = {name: failures(entry, case(name), ("value", "gradient")) for name in OTHERS}
    cells = ["; ".join([bad or entry.route, *notes]), *("; ".join(found) or "yes" for found in others.values())]
    passed = {"SkewGP": not bad} | {name: not found for name, found in others.items()}
    return f"| {entry.name} | {' | '.join(cells)} |", passed


def counts(rows: dict[str, dict[str, bool]]) -> str:
    """How many of the rows each model passes."""
    passed = {name: {row for row, by in rows.items() if by[name]} for name in ("SkewGP", *OTHERS)}
    number = ", ".join(f"{name} passes {len(passed[name])}" for name in OTHERS)
    behind = sorted(set().union(*(passed[name] for name in OTHERS)) - passed["SkewGP"])
    return (
        f"Of {len(rows)} rows that were run, SkewGP passes {len(passed['SkewGP'])} with all checks and kinds, "
        f"{number}.\nRows that another model passes and SkewGP does not: {', '.join(behind) or 'none'}."
    )


def main() -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    found = {entry.name: row(entry) for entry in entries()}
    lines = [line for line, _ in found.values()]
    lines += [f"| {target.__name__} | {reason} | | | |" for target, reason in IMPOSSIBLE.items()]
    of_models = counts({name: passed for name, (_, passed) in found.items()})
    TARGET.parent.mkdir(exist_ok=True)
    head = HEAD.format(version=botorch.__version__, checks=", ".join(CHECKS), counts=of_models)
    TARGET.write_text(head + "\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

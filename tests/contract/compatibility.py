"""Write docs/measurements/compatibility.md: `python tests/contract/compatibility.py`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Row:
    """What was found for an entry: failures of SkewGP by kind, and of the other models."""

    entry: Entry
    own: dict[str, list[str]]
    others: dict[str, list[str]]

    @classmethod
    def of(cls, entry: Entry) -> Row:
        own = {kind: failures(entry, case(kind), CHECKS) for kind in KINDS}
        others = {name: failures(entry, case(name), ("value", "gradient")) for name in OTHERS}
        return cls(entry, {kind: found for kind, found in own.items() if found}, others)

    def __str__(self) -> str:
        bad = "; ".join(f"{kind}: {', '.join(found)}" for kind, found in self.own.items())
        notes = sorted({f"{check} not checked: {reason}" for check, reason in self.entry.left_out.items()})
        own = "; ".join([bad or self.entry.route, *notes])
        others = " | ".join("; ".join(found) or "yes" for found in self.others.values())
        return f"| {self.entry.name} | {own} | {others} |"


def counts(rows: Sequence[Row]) -> str:
    """How many of the rows each model passes."""
    passed = {name: [row for row in rows if not row.others[name]] for name in OTHERS}
    number = ", ".join(f"{name} passes {len(passed[name])}" for name in OTHERS)
    of_ours = sum(not row.own for row in rows)
    behind = sorted({row.entry.name for found in passed.values() for row in found if row.own})
    return (
        f"Of {len(rows)} rows that were run, SkewGP passes {of_ours} with all checks and kinds, "
        f"{number}.\nRows that another model passes and SkewGP does not: {', '.join(behind) or 'none'}."
    )


def main() -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    rows = [Row.of(entry) for entry in entries()]
    lines = [str(row) for row in rows]
    lines += [f"| {target.__name__} | {reason} | | | |" for target, reason in IMPOSSIBLE.items()]
    TARGET.parent.mkdir(exist_ok=True)
    head = HEAD.format(version=botorch.__version__, checks=", ".join(CHECKS), counts=counts(rows))
    TARGET.write_text(head + "\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

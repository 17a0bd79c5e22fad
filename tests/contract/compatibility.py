"""Write docs/compatibility.md: `python tests/contract/compatibility.py`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import botorch
from contract_cases import KINDS, Case, case
from contract_checks import CHECKS, run
from contract_registry import IMPOSSIBLE, Entry, entries

TARGET = Path(__file__).parents[2] / "docs" / "compatibility.md"
OTHERS = ("PairwiseGP", "SingleTaskGP")
HEAD = """# Compatibility with BoTorch

Made by `python tests/contract/compatibility.py` with BoTorch {version}; the tests in `tests/contract` hold it. Every
acquisition function, objective and posterior transform of BoTorch is built on a fitted `SkewGP` of four kinds
(preferences; labels; numbers and preferences; numbers under a skew prior), then checked: {checks}.

- **works**: the function sees the skewed posterior, through draws or conditioning.
- **works on mean and variance**: BoTorch's formula takes mean and variance for those of a Gaussian; the skewness has no
  say. Use Monte Carlo functions or those of `botorch_skewgp.acquisition` where that matters.
- **works through MomentMatchedModel**: the function is Gaussian by construction. It is given
  `MomentMatchedModel(model)`, never the model itself.

Where fantasies are comparisons (look-ahead with the preference model), a fantasy needs two candidates: `q` of at least
2. `qNegIntegratedPosteriorVariance` by default makes one fantasy, as BoTorch assumes that the variance does not depend
on outcomes; here it does. In the columns of other models, "yes" means that value and gradient pass for the same
arguments.

| function | SkewGP | PairwiseGP | SingleTaskGP |
|---|---|---|---|
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


def row(entry: Entry) -> str:
    """The row of an entry."""
    bad = [f"{kind}: {', '.join(found)}" for kind in KINDS if (found := failures(entry, case(kind), CHECKS))]
    own = "; ".join(bad) or entry.route
    notes = sorted({f"{check} not checked: {reason}" for check, reason in entry.left_out.items()})
    own += "".join(f"; {note}" for note in notes)
    others = [failures(entry, case(name), ("value", "gradient")) for name in OTHERS]
    return f"| {entry.name} | {own} | " + " | ".join("; ".join(found) or "yes" for found in others) + " |"


def main() -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    lines = [row(entry) for entry in entries()]
    lines += [f"| {target.__name__} | {reason} | | |" for target, reason in IMPOSSIBLE.items()]
    TARGET.parent.mkdir(exist_ok=True)
    text = HEAD.format(version=botorch.__version__, checks=", ".join(CHECKS)) + "\n".join(sorted(lines)) + "\n"
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The examples of all public docstrings run, given the names of `code_blocks.docstring_names`."""

from __future__ import annotations

import pytest
from code_blocks import ax_client, docstring_examples, docstring_names, run

EXAMPLES = docstring_examples()


def test_examples_are_found():
    assert {"botorch_skewgp.models.skew_gp.SkewGP", "botorch_skewgp.observations.duels.Preference"} <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.OptimizationWarning",  # twenty steps are no convergence
    "ignore:A not p.d., added jitter:linear_operator.utils.warnings.NumericalWarning",  # both points of a pair coincide
    r"ignore::DeprecationWarning:(botorch_skewgp\.)?ax\..*",  # Ax renames much, and says so to its callers
)
def test_example_runs(name):
    names = docstring_names()
    if name.startswith("botorch_skewgp.ax."):
        names["client"] = ax_client()
    run(EXAMPLES[name], f"example of {name}", names)

"""BoTorch's acquisition functions work unchanged: each is built, evaluated, differentiated and optimised."""

import pytest
from botorch.acquisition import qSimpleRegret
from contract_cases import KINDS, case
from contract_checks import CHECKS, run
from contract_registry import ABSTRACT, IMPOSSIBLE, botorch_classes, entries, sampler

ENTRIES = {entry.name: entry for entry in entries()}
LOOK_AHEAD = {name for name, entry in ENTRIES.items() if entry.fantasies}
# BoTorch recommends the log form of some of these, and warns of shapes that its own code makes
pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning"),
    # points of a batch may coincide with training points, whose joint covariance is then singular
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
]


def test_no_class_of_botorch_is_forgotten():
    listed = {entry.target for entry in ENTRIES.values()} | set(IMPOSSIBLE) | ABSTRACT
    assert botorch_classes() == listed
    assert not set(IMPOSSIBLE) & {entry.target for entry in ENTRIES.values()}


def test_names_are_unique():
    assert len(ENTRIES) == len(entries())


def test_checks_can_fail():
    """A function whose gradient is wrong is caught."""
    entry = ENTRIES["qSimpleRegret"]

    class Wrong(qSimpleRegret):
        def forward(self, X):
            return super().forward(X) + (X - X.detach()).sum((-1, -2))

    wrong = type(entry)(Wrong, lambda c: Wrong(c.model, sampler=sampler()))
    with pytest.raises(AssertionError, match="central differences"):
        run("gradient", wrong, case("preference"))


def _check(check: str, name: str, kind: str) -> None:
    entry = ENTRIES[name]
    reason = entry.reason(check, case(kind))
    if reason is not None:
        pytest.skip(reason)
    run(check, entry, case(kind))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", sorted(set(ENTRIES) - LOOK_AHEAD))
def test_acquisition_function(name, check):
    _check(check, name, "preference")


@pytest.mark.parametrize("check", ["value", "gradient"])
@pytest.mark.parametrize("name", sorted(LOOK_AHEAD))
def test_look_ahead(name, check):
    _check(check, name, "preference")


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS[2:])
@pytest.mark.parametrize("name", sorted(LOOK_AHEAD))
def test_look_ahead_further(name, check):
    _check(check, name, "preference")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_other_kinds(name, check, kind):
    _check(check, name, kind)

"""BoTorch's acquisition functions work unchanged: each is built, evaluated, differentiated and optimised."""

import pytest
from botorch.acquisition import qSimpleRegret
from contract_cases import KINDS, case
from contract_checks import CHECKS, run
from contract_registry import IMPOSSIBLE, Entry, botorch_classes, entries, sampler

ENTRIES = {entry.name: entry for entry in entries()}
RISK_MEASURES = {"IndependentCVaR", "IndependentVaR", "MARS", "MultiOutputExpectation", "MultiOutputWorstCase", "MVaR"}
LOOK_AHEAD = {name for name, entry in ENTRIES.items() if entry.fantasies}
# BoTorch recommends the log form of some of these, and warns of shapes that its own code makes
pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.NumericsWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning"),
    # points of a batch may coincide with training points, whose joint covariance is then singular
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
]


def test_no_class_of_botorch_is_forgotten():
    listed = {entry.target for entry in ENTRIES.values()} | set(IMPOSSIBLE)
    assert botorch_classes() == listed
    assert not set(IMPOSSIBLE) & {entry.target for entry in ENTRIES.values()}


def test_names_are_unique():
    assert len(ENTRIES) == len(entries())


class WrongGradient(qSimpleRegret):
    """A gradient that points downhill."""

    def forward(self, X):
        value = super().forward(X)
        return 2 * value.detach() - value


class ChangesItsMind(qSimpleRegret):
    """Lower at every evaluation."""

    penalty = 0.0

    def forward(self, X):
        self.penalty += 1.0
        return super().forward(X) - self.penalty


class MixesBatches(qSimpleRegret):
    """A candidate set's value depends on the others'."""

    def forward(self, X):
        value = super().forward(X)
        return value - value.mean() * len(value)


@pytest.mark.parametrize(
    ("check", "wrong", "message"),
    [
        ("gradient", WrongGradient, "central differences"),
        ("optimise", WrongGradient, "no better than"),
        ("optimise", ChangesItsMind, "started from"),
        ("repeat", ChangesItsMind, None),
        ("t-batch", MixesBatches, "not close"),
    ],
)
def test_checks_can_fail(check, wrong, message):
    entry = Entry(wrong, lambda c: wrong(c.model, sampler=sampler()))
    with pytest.raises(AssertionError, match=message):
        run(check, entry, case("preference"))


def _check(check: str, name: str, kind: str) -> None:
    entry = ENTRIES[name]
    reason = entry.reason(check, case(kind))
    if reason is not None:
        pytest.skip(reason)
    run(check, entry, case(kind))


def _marks(name: str, check: str) -> list[pytest.MarkDecorator]:
    """Risk measures of several outputs take long: each of the perturbed points has a posterior of each output."""
    return [pytest.mark.slow] if name in RISK_MEASURES and check in {"gradient", "optimise"} else []


@pytest.mark.parametrize(
    ("name", "check"),
    [pytest.param(n, c, marks=_marks(n, c)) for n in sorted(set(ENTRIES) - LOOK_AHEAD) for c in CHECKS],
)
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


@pytest.mark.slow
@pytest.mark.parametrize("check", ["value", "gradient"])
@pytest.mark.parametrize(
    "name",
    [
        "LogExpectedImprovement",
        "qLogExpectedImprovement",
        "qLogNoisyExpectedImprovement",
        "qLogNoisyExpectedHypervolumeImprovement",
        "qUpperConfidenceBound",
        "CVaR",
    ],
)
def test_a_transformed_process_with_moments_is_a_model_like_others(check, name):
    _check(check, name, "BayesianTransformedGP")

"""BoTorch's acquisition functions work unchanged: each is built, evaluated, differentiated and optimised."""

from itertools import product

import pytest
from botorch.acquisition import qSimpleRegret
from contract_cases import KINDS, case
from contract_checks import CHECKS, run
from contract_registry import IMPOSSIBLE, Entry, botorch_classes, entries, sampler

ENTRIES = {entry.name: entry for entry in entries()}
RISK_MEASURES = {"IndependentCVaR", "IndependentVaR", "MARS", "MultiOutputExpectation", "MultiOutputWorstCase", "MVaR"}
LOOK_AHEAD = {name for name, entry in ENTRIES.items() if entry.fantasies}
OF_MOMENTS = {"LogExpectedImprovement", "qLogExpectedImprovement", "qLogNoisyExpectedImprovement"}
OF_MOMENTS |= {"qLogNoisyExpectedHypervolumeImprovement", "qUpperConfidenceBound", "CVaR"}
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


FAULTS = {
    "points downhill": lambda value, penalty: 2 * value.detach() - value,
    "is lower at every evaluation": lambda value, penalty: value - penalty,
    "mixes candidate sets": lambda value, penalty: value - value.mean() * len(value),
}


@pytest.mark.parametrize(
    ("check", "fault", "message"),
    [
        ("gradient", "points downhill", "central differences"),
        ("optimise", "points downhill", "no better than"),
        ("optimise", "is lower at every evaluation", "started from"),
        ("repeat", "is lower at every evaluation", None),
        ("t-batch", "mixes candidate sets", "not close"),
    ],
)
def test_checks_can_fail(check, fault, message):
    class Wrong(qSimpleRegret):
        evaluations = 0.0

        def forward(self, X):
            self.evaluations += 1
            return FAULTS[fault](super().forward(X), self.evaluations)

    with pytest.raises(AssertionError, match=message):
        run(check, Entry(Wrong, lambda c: Wrong(c.model, sampler=sampler())), case("preference"))


def is_slow(name: str, check: str, kind: str) -> bool:
    """Other kinds than duels; of risk measures each of the perturbed points has a posterior of each output."""
    of_duels = (name in LOOK_AHEAD and check not in {"value", "gradient"}) or (
        name in RISK_MEASURES and check in {"gradient", "optimise"}
    )
    return kind != KINDS[0] or of_duels


ROWS = [*product(sorted(ENTRIES), CHECKS, KINDS), *product(sorted(OF_MOMENTS), CHECKS[:2], ["BayesianTransformedGP"])]


@pytest.mark.parametrize(
    ("name", "check", "kind"), [pytest.param(*row, marks=[pytest.mark.slow] * is_slow(*row)) for row in ROWS]
)
def test_acquisition_function(name, check, kind):
    reason = ENTRIES[name].reason(check, case(kind))
    if reason is not None:
        pytest.skip(reason)
    run(check, ENTRIES[name], case(kind))

"""Every pair of kinds mixed in one model, against simulation of how the data come about."""

import logging
from itertools import combinations

import pytest
from generative_reference import deviations, log_evidence
from kind_cases import KINDS, TEST_X, model_of, reference_of

pytestmark = pytest.mark.rounding

SINGLE = [
    "numeric",
    "binary",
    "ordinal",
    "censored",
    "preference",
    "tie",
    "choice",
    "ranking",
    "validity",
    "affine",
    "slope",
]
LIMIT = 4.8  # 55 cases of 24 dependent statistics each
EP_ERROR = 0.05

log = logging.getLogger(__name__)


def _marks(first: str, second: str) -> list[pytest.MarkDecorator]:
    """Fast are those at one or two steps from each other, so that every kind is in four pairs."""
    distance = (SINGLE.index(second) - SINGLE.index(first)) % len(SINGLE)
    return [] if min(distance, len(SINGLE) - distance) <= 2 else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(*pair, marks=_marks(*pair)) for pair in combinations(SINGLE, 2)]
)
def test_posterior_and_evidence_of_a_pair(first, second, generator):
    observations = [KINDS[first], KINDS[second]]
    model = model_of(observations, num_draws=1024)
    reference = reference_of(observations, generator, num_draws=40_000, adaptive=True)
    found = deviations(model, model.posterior(TEST_X), reference)
    ep_error = float(reference.log_evidence.value) - log_evidence(model)
    log.info("deviations %s, error of EP's log evidence %.4f", {k: round(v, 2) for k, v in found.items()}, ep_error)
    assert reference.effective_size > 1000
    assert max(found.values()) < LIMIT, found
    assert abs(ep_error) < EP_ERROR + 4 * float(reference.log_evidence.error)


@pytest.mark.parametrize(
    ("first", "second"), [("numeric", "preference"), ("ranking", "binary"), ("validity", "affine")]
)
def test_order_of_kinds_does_not_matter(first, second):
    """The evidence by expectation propagation is the same to rounding whichever kind is listed first."""
    one = log_evidence(model_of([KINDS[first], KINDS[second]]))
    other = log_evidence(model_of([KINDS[second], KINDS[first]]))
    assert abs(one - other) < 1e-8

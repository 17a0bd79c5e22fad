"""Every kind of observation and every pair of kinds against the reference: moments, quantiles, evidence."""

from itertools import combinations

import gpytorch
import pytest
import torch
from kind_cases import (
    KINDS,
    LABELS,
    LENGTHSCALE,
    NUM_LABELS,
    OUTPUTSCALE,
    TRAIN_X,
    assert_right,
    kernel,
    label_model_of,
    log_evidence,
    model_of,
    rbf,
    tensor,
)

from benchmarks.fuzz.cases import Anchors
from botorch_skewgp.models import SkewPrior

pytestmark = pytest.mark.rounding


@pytest.mark.parametrize("name", KINDS)
def test_posterior_and_evidence_of_a_kind(name):
    assert_right(model_of(KINDS[name]), KINDS[name])


@pytest.mark.parametrize("name", LABELS)
def test_posterior_and_evidence_of_labels(name):
    assert_right(label_model_of(LABELS[name]), LABELS[name])


def test_labels_with_a_kernel_each():
    scales, lengthscales = [0.5, 1.5, 3.0], [0.3, 0.7, 1.5]
    base = gpytorch.kernels.RBFKernel(batch_shape=torch.Size([NUM_LABELS]))
    covar_module = gpytorch.kernels.ScaleKernel(base, batch_shape=torch.Size([NUM_LABELS])).double()
    covar_module.initialize(outputscale=tensor(*scales))
    covar_module.base_kernel.initialize(lengthscale=tensor(*lengthscales).view(-1, 1, 1))

    def covariance_of(points):
        Z, eye = tensor(*points), torch.eye(NUM_LABELS, dtype=torch.float64)
        each = torch.stack([rbf(Z, Z, *k) for k in zip(scales, lengthscales, strict=True)], dim=-1)
        return torch.einsum("ijl,lk->iljk", each, eye).reshape(len(Z) * NUM_LABELS, -1).tolist()

    model = label_model_of(LABELS["classes"], covar_module=covar_module)
    assert_right(model, LABELS["classes"], covariance_of=covariance_of)


@pytest.mark.parametrize(
    "names", [["numeric", "preference", "validity", "partial ranking"], ["binary", "tie", "choice"]], ids=" and ".join
)
def test_kinds_with_a_kernel_that_is_not_stationary(names):
    straight = gpytorch.kernels.LinearKernel().double()
    straight.variance = 0.4

    def covariance_of(points):
        Z = tensor(*points)
        return (rbf(Z, Z, OUTPUTSCALE, LENGTHSCALE) + 0.4 * Z @ Z.mT).tolist()

    observations = [KINDS[name] for name in names]
    model = model_of(observations, num_draws=1024, covar_module=kernel() + straight)
    assert_right(model, observations, limit=4.8, covariance_of=covariance_of)


@pytest.mark.parametrize("name", ["numeric", "preference", "validity", "slope", "none"])
def test_skew_prior_with_data(name):
    anchors = Anchors([[0.4], [1.8]], [1.0, -1.0], [0.1, -0.4])
    observations = [] if name == "none" else [KINDS[name]]
    prior = SkewPrior(anchors.points, anchors.phases, anchors.truncation)
    assert_right(model_of(observations, skew_prior=prior), observations, anchors)


@pytest.mark.slow
def test_all_kinds_at_once():
    assert_right(model_of([*KINDS.values()]), [*KINDS.values()])


SINGLE = ["numeric", "binary", "ordinal", "censored", "preference", "tie", "choice", "ranking", "validity", "affine",
          "slope"]  # fmt: skip


def _marks(first: str, second: str) -> list[pytest.MarkDecorator]:
    """Fast are those at two steps from each other, so that every kind is in two pairs."""
    distance = (SINGLE.index(second) - SINGLE.index(first)) % len(SINGLE)
    return [] if min(distance, len(SINGLE) - distance) == 2 else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(*pair, marks=_marks(*pair)) for pair in combinations(SINGLE, 2)]
)
def test_posterior_and_evidence_of_a_pair(first, second):
    observations = [KINDS[first], KINDS[second]]
    assert_right(model_of(observations, num_draws=1024), observations, limit=4.8)


@pytest.mark.parametrize(
    ("first", "second"), [("numeric", "preference"), ("ranking", "binary"), ("validity", "affine")]
)
def test_order_of_kinds_does_not_matter(first, second):
    """The evidence by expectation propagation is the same to rounding whichever kind is listed first."""
    one = log_evidence(model_of([KINDS[first], KINDS[second]]))
    other = log_evidence(model_of([KINDS[second], KINDS[first]]))
    assert abs(one - other) < 1e-8


def test_constants_are_those_of_the_model():
    """The covariance written out is the model's, so that comparisons with it are of posteriors."""
    K = kernel()(TRAIN_X).to_dense()
    assert torch.allclose(K, rbf(TRAIN_X, TRAIN_X, OUTPUTSCALE, LENGTHSCALE), rtol=1e-12, atol=1e-14)

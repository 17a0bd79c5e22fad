"""Expectation propagation where it is hard: it always ends, says so when it fails, and what it says is right."""

import math
import warnings

import pytest
import torch
from linear_operator.utils.errors import NanError
from row_cases import make, zeros

from botorch_skewgp.exceptions import ConvergenceWarning
from botorch_skewgp.truncated.priors import LowRankPrior, Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import log_interval_probability

pytestmark = pytest.mark.rounding


@pytest.fixture
def problem(generator):
    """A smooth kernel matrix of forty points, of rank twenty or so in double precision, a path, and random signs."""
    X = torch.rand(40, 2, dtype=torch.float64, generator=generator)
    K = torch.exp(-2 * torch.cdist(X, X).square())
    eigenvalues, vectors = torch.linalg.eigh(K)
    f = vectors @ (eigenvalues.clamp(min=0).sqrt() * torch.randn(40, dtype=torch.float64, generator=generator))
    signs = torch.where(torch.rand(40, generator=generator) > 0.5, 1.0, -1.0).double()
    return K, f, signs


def flip(K, signs):
    return signs.unsqueeze(-1) * K * signs


def test_two_opposite_rows_that_are_nearly_deterministic():
    """`u_2` is nearly `-u_1`: the orthant has probability `arccos(1 - gap) / (2 pi)`."""
    for gap in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        C = torch.tensor([[1.0, gap - 1.0], [gap - 1.0, 1.0]], dtype=torch.float64)
        ep = expectation_propagation(make(zeros(2), C))
        assert ep.converged
        exact = math.log(2 * math.asin(math.sqrt(gap / 2)) / (2 * math.pi))
        assert ep.log_normalizer.item() == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6, 1e-9])
def test_contradictory_duplicates(noise):
    """Each point is positive and negative many times: no preference, and an evidence that is one integral."""
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(100)
    ep = expectation_propagation(make(zeros(200), LowRankPrior(signs.unsqueeze(-1)), noise=noise))
    assert ep.converged
    assert ep.mean.abs().max() < 1e-7
    sd = math.sqrt(noise)
    h = torch.linspace(-40 * sd, 40 * sd, 40_001, dtype=torch.float64)
    log_f = 100 * (torch.special.log_ndtr(h / sd) + torch.special.log_ndtr(-h / sd)) - 0.5 * h.square()
    exact = torch.logsumexp(log_f, 0) + math.log(80 * sd / 40_000) - 0.5 * math.log(2 * math.pi)
    assert ep.log_normalizer.item() == pytest.approx(exact.item(), abs=0.01)


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.1])
def test_a_thousand_equal_rows(noise):
    """The smallest of many readings of one number; expectation propagation is known to be rough here."""
    ep = expectation_propagation(make(zeros(1000), LowRankPrior(torch.ones(1000, 1).double()), noise=noise))
    assert ep.converged
    h = torch.linspace(-10, 10, 200_001, dtype=torch.float64)
    hard = torch.where(h > 0, 0.0, -math.inf).double()
    log_f = 1000 * torch.special.log_ndtr(h / math.sqrt(noise)) if noise else hard
    exact = torch.logsumexp(log_f - 0.5 * h.square(), 0) + math.log(1e-4) - 0.5 * math.log(2 * math.pi)
    assert ep.log_normalizer.item() == pytest.approx(exact.item(), abs=0.9)
    assert ep.variance.isfinite().all()


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_result_does_not_depend_on_the_unit(problem, scale):
    K, f, _ = problem
    values = [
        expectation_propagation(make(zeros(40), s * flip(K, f.sign()), noise=1e-3 * s)).log_normalizer.item()
        for s in (1.0, scale)
    ]
    assert values[1] == pytest.approx(values[0], abs=1e-6)


@pytest.mark.parametrize(("noise", "error"), [(1e-12, 1e-3), (1e-9, 1e-2)])
def test_labels_almost_without_noise(problem, noise, error):
    K, f, _ = problem
    crisp, noisy = (expectation_propagation(make(zeros(40), flip(K, f.sign()), noise=v)) for v in (0.0, noise))
    assert noisy.log_normalizer.item() == pytest.approx(crisp.log_normalizer.item(), abs=error)


@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-9])
def test_narrow_intervals_tend_to_numbers(problem, width):
    """The log probability less the logarithm of the widths is the log density of the middle."""
    K, f, _ = problem
    K = K + 0.01 * torch.eye(40, dtype=torch.float64)
    for noise in (0.0, 0.01):
        reference = torch.distributions.MultivariateNormal(zeros(40), K + noise * torch.eye(40, dtype=torch.float64))
        ep = expectation_propagation(make(zeros(40), K, f - width, f + width, noise))
        assert ep.converged
        found = ep.log_normalizer.item() - 40 * math.log(2 * width)
        assert found == pytest.approx(reference.log_prob(f).item(), abs=1e-5 + 1e6 * width**2)


def test_narrow_intervals_on_a_singular_covariance(problem):
    """Forty rows of a path that twenty numbers determine: cavities are lost to rounding if computed as differences."""
    K, f, _ = problem
    ep = expectation_propagation(make(zeros(40), K, f - 1e-2, f + 1e-2))
    assert ep.converged
    assert -200 < ep.log_normalizer.item() < -20
    assert (ep.mean - f).abs().max() < 2e-2
    assert (ep.variance > 0).all()
    assert ep.variance.max() < 1e-4


@pytest.mark.parametrize("distance", [5.0, 30.0])
@pytest.mark.parametrize("noise", [1e-4, 1.0])
def test_far_tails_of_independent_rows_are_exact(distance, noise):
    eye = torch.eye(5, dtype=torch.float64)
    for upper in (math.inf, distance + 0.1):
        ep = expectation_propagation(make(zeros(5), eye, distance, upper, noise))
        sd = math.sqrt(1 + noise)
        bounds = torch.tensor([distance / sd, upper / sd], dtype=torch.float64)
        assert ep.log_normalizer.item() == pytest.approx(5 * log_interval_probability(*bounds).item(), rel=1e-9)


def test_impossible_rows_without_noise_end_with_a_warning():
    """`u > 0` and `-u > 0`: no distribution is left, and the message says what to do."""
    C = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    with pytest.warns(ConvergenceWarning, match="Give the rows more noise.* state intervals far narrower"):
        ep = expectation_propagation(make(zeros(2), C))
    assert not ep.converged
    assert ep.log_normalizer.item() < -10


def test_intervals_beyond_rounding_end_with_a_warning_and_finite_numbers(problem):
    K, f, _ = problem
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ep = expectation_propagation(make(zeros(40), K, f - 1e-10, f + 1e-10))
    assert ep.converged or any(issubclass(w.category, ConvergenceWarning) for w in caught)
    for value in (ep.mean, ep.variance, ep.sites.precision, ep.sites.shift, ep.log_normalizer):
        assert value.isfinite().all()


def test_a_start_that_the_covariance_does_not_admit_is_dropped(problem):
    """Sites so precise that rounding makes the matrix to factor indefinite."""
    K, f, _ = problem
    distribution = make(zeros(40), flip(K, f.sign()), noise=0.1)
    fresh = expectation_propagation(distribution)
    absurd = Sites(torch.full((40,), 1e25, dtype=torch.float64), zeros(40))
    warm = expectation_propagation(distribution, initial_sites=absurd)
    assert warm.converged
    assert warm.log_normalizer.item() == pytest.approx(fresh.log_normalizer.item(), abs=1e-7)


def test_gradient_is_right_where_sites_are_precise(problem):
    """The derivative in the mean of narrow intervals, where moments are computed as corrections to the sites."""
    K, f, _ = problem
    mean = zeros(40).requires_grad_()
    covariance = K + 1e-3 * torch.eye(40, dtype=torch.float64)
    expectation_propagation(make(mean, covariance, f - 1e-4, f + 1e-4)).log_normalizer.backward()
    wanted = torch.linalg.solve(covariance, f)
    assert torch.allclose(mean.grad, wanted, rtol=1e-3, atol=1e-3 * wanted.abs().max().item())


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_covariance_that_is_no_number_is_an_error_that_fits_can_handle(value):
    with pytest.raises(NanError, match="contains NaN"):
        expectation_propagation(make(zeros(2), torch.tensor([[value, 0.0], [0.0, 1.0]])))


@pytest.mark.parametrize("rest", [0.0, 1e-22, -1e-22])
def test_a_row_that_is_all_noise_up_to_rounding(rest):
    """A duel of equal points: its variance is rounding, which may leave it below zero; the others converge."""
    C = torch.tensor([[1.0, 0.5, 1e-17], [0.5, 1.0, 0.0], [1e-17, 0.0, rest]], dtype=torch.float64)
    noise = torch.tensor([0.0, 0.0, 200.0], dtype=torch.float64)
    ep = expectation_propagation(TruncatedNormal(zeros(3), C, zeros(3), zeros(3) + math.inf, noise))
    assert ep.converged
    alone = expectation_propagation(make(zeros(2), C[:2, :2])).log_normalizer.item()
    assert ep.log_normalizer.item() == pytest.approx(alone + math.log(0.5), abs=1e-9)

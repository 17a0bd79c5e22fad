"""Bridge sampling: against scipy's multivariate normal distribution function and closed forms."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats

from botorch_skewgp.papers import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.evidence import _bridge, bridge_log_normalizer
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding

INF = math.inf
LIMIT = 3.5  # standard errors
SCIPY_ERROR = 5e-4  # nats


def rows(m, sides, noise, generator, r=None):
    """Random rows; `sides` is `one` for bounds below, `two` for bounds on both sides, `mixed` for some of either."""
    normal = partial(torch.randn, dtype=torch.float64, generator=generator)
    root = normal(m, m if r is None else r)
    covariance = root @ root.mT / root.shape[-1] + (0.1 * torch.eye(m, dtype=torch.float64) if r is None else 0)
    if r is not None:
        covariance = LowRankPrior(root / math.sqrt(r))
    lower = normal(m) - 1
    upper = lower + 0.5 + 2 * torch.rand(m, dtype=torch.float64, generator=generator)
    if sides == "one":
        upper = torch.full_like(lower, INF)
    if sides == "mixed":
        upper[::3], lower[1::3] = INF, -INF
    return TruncatedNormal(0.5 * normal(m), covariance, lower, upper, torch.full_like(lower, noise))


def scipy_log_probability(distribution):
    """By randomised quasi-Monte Carlo; its own error is far below that of the bridge."""
    moments = distribution.mean.numpy(), distribution.gamma.numpy()
    settings = {"seed": np.random.default_rng(0), "maxpts": 300_000, "abseps": 1e-10, "releps": 1e-4}
    reference = stats.multivariate_normal(*moments, allow_singular=True, **settings)
    return math.log(reference.cdf(distribution.upper.numpy(), lower_limit=distribution.lower.numpy()))


def assert_agrees(estimate, expected, error=0.0):
    deviation = (float(estimate.value) - expected) / math.hypot(float(estimate.standard_error), error)
    assert abs(deviation) < LIMIT, (deviation, float(estimate.value), expected, float(estimate.standard_error))


@pytest.mark.parametrize("sides", ["one", "two", "mixed"])
@pytest.mark.parametrize(
    ("m", "r", "noise"), [(2, None, 0.0), (2, None, 0.5), (8, None, 0.0), (8, None, 0.5), (8, 1, 0.3), (8, 3, 0.3)]
)
def test_rows_with_a_covariance_or_a_root(m, r, noise, sides, generator):
    distribution = rows(m, sides, noise, generator, r)
    assert distribution.prior.is_low_rank == (r is not None)
    estimate = bridge_log_normalizer(distribution)
    assert estimate.value.shape == estimate.standard_error.shape == torch.Size()
    assert 0 < float(estimate.standard_error) < 0.1
    assert_agrees(estimate, scipy_log_probability(distribution), error=SCIPY_ERROR)


def test_where_expectation_propagation_is_off():
    """The same answer eight times, `E[Phi(h / s)^8]`."""
    m, variance, noise = 8, 2.0, 0.5
    zeros = torch.zeros(m, dtype=torch.float64)
    root = math.sqrt(variance) * torch.ones(m, 1, dtype=torch.float64)
    distribution = TruncatedNormal(zeros, LowRankPrior(root), zeros, zeros + INF, zeros + noise)
    z = torch.linspace(-8, 8, 20_001, dtype=torch.float64)
    log_likelihood = m * torch.special.log_ndtr(z * math.sqrt(variance / noise))
    expected = float((torch.softmax(-0.5 * z.square(), 0) * log_likelihood.exp()).sum().log())
    estimate = bridge_log_normalizer(distribution)
    assert_agrees(estimate, expected)
    ep_error = float(expectation_propagation(distribution).log_normalizer) - expected
    assert abs(ep_error) > 5 * float(estimate.standard_error), (ep_error, estimate)


@pytest.mark.parametrize("m", [0, 4])
def test_no_rows_and_rows_replaced_by_their_sites(m):
    """Rows far out are drawn around their sites, which are exact where rows tell nothing of each other."""
    zeros = torch.zeros(m, dtype=torch.float64)
    covariance = 0.75 * torch.eye(m, dtype=torch.float64)
    estimate = bridge_log_normalizer(TruncatedNormal(zeros - 13, covariance, zeros, zeros + INF, zeros + 0.25))
    assert float(estimate.value) == pytest.approx(m * stats.norm.logcdf(-13.0), abs=1e-9)
    assert float(estimate.standard_error) == 0


def test_given_draws_and_approximation(generator):
    distribution = rows(5, "mixed", 0.3, generator)
    draws, ep = draw(distribution, DrawSettings(num_draws=4096)), expectation_propagation(distribution)
    estimate = bridge_log_normalizer(distribution, draws, ep)
    assert_agrees(estimate, scipy_log_probability(distribution), error=SCIPY_ERROR)
    assert float(estimate.standard_error) < 0.75 * float(bridge_log_normalizer(distribution).standard_error)


def labels(n, generator):
    """Probit classification: labels of a function drawn from a Gaussian process in two dimensions."""
    X = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    K = 4 * torch.exp(-0.5 * (torch.cdist(X, X) / 0.7).square()) + 1e-8 * torch.eye(n, dtype=torch.float64)
    noisy = torch.linalg.cholesky(K) @ torch.randn(n, generator=generator, dtype=torch.float64)
    sign = (noisy + torch.randn(n, generator=generator, dtype=torch.float64)).sign()
    zeros = torch.zeros_like(sign)
    return TruncatedNormal(zeros, sign.unsqueeze(-1) * K * sign, zeros, zeros + INF, zeros + 1)


CALIBRATION = {
    "few draws": (lambda g: rows(6, "one", 0.3, g), DrawSettings(num_draws=256)),
    "labels": (lambda g: labels(16, g), DrawSettings(num_draws=512)),
    "without noise": (lambda g: rows(8, "mixed", 0.0, g), DrawSettings(num_draws=512)),
    "correlated draws": (
        lambda g: labels(6, g),
        DrawSettings(num_draws=512, sampler=LinearEllipticalSliceSampler, max_thinning=1, min_effective_size=1),
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.PoorDrawsWarning")  # on purpose: errors must tell
@pytest.mark.parametrize("case", CALIBRATION)
def test_standard_errors_are_calibrated(case, generator):
    """Deviations from the truth in standard errors have a root mean square of one over seeds."""
    make, settings = CALIBRATION[case]
    distribution, repeats = make(generator), 60
    exact, ep = scipy_log_probability(distribution), expectation_propagation(distribution)
    runs = [torch.Generator().manual_seed(seed) for seed in range(repeats)]
    estimates = [bridge_log_normalizer(distribution, None, ep, run, settings) for run in runs]
    scores = torch.stack([(estimate.value - exact) / estimate.standard_error for estimate in estimates])
    spread = float(scores.square().mean().sqrt())
    # the logarithm of a root mean square of n normal deviations has a standard error of 1 / sqrt(2 n); log 2 is 0.69
    assert abs(math.log(spread)) < 4 / math.sqrt(2 * repeats), spread


@pytest.mark.parametrize(
    ("num_gaussian", "num_posterior", "correlation"), [(1600, 64, 0.0), (64, 1600, 0.0), (200, 1600, 0.6)]
)
def test_both_parts_of_the_bridge_count_in_its_error(num_gaussian, num_posterior, correlation, generator):
    """Draws of two normals of density ratio `exp(x)`: one part, the other, both, or its chains decide the error."""
    repeats = 600
    kind = {"dtype": torch.float64, "generator": generator}
    at_q = torch.randn(repeats, num_gaussian, **kind)
    chains = torch.randn(repeats, 4, num_posterior // 4, **kind)  # autoregressive
    for i in range(1, chains.shape[-1]):
        chains[..., i] = correlation * chains[..., i - 1] + math.sqrt(1 - correlation**2) * chains[..., i]
    at_p = 1 + chains.flatten(-2)
    estimate, variance = _bridge(at_q, at_p, num_chains=4)
    truth = 0.5  # log E exp(x)
    # the variance of n normal deviations has a relative error of sqrt(2 / n); sizes are estimates below the true ones
    ratio = float((estimate - truth).square().mean() / variance.mean())
    assert abs(math.log(ratio)) < 0.15 + 4 * math.sqrt(2 / repeats)

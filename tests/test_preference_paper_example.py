"""The one-dimensional example of the preference paper against an independent computation.

Benavoli, Azzimonti, Piga. Preferential Bayesian optimisation with skew Gaussian processes. GECCO 2021: seven duels over
eight points, an RBF kernel of lengthscale 0.35 and "variance 0.02". The duels are said to come from `g(x) = cos(5 x) +
exp(-x^2 / 2)`; the last two, as printed, contradict it. All are kept as printed.

The paper does not say whose variance 0.02 is. Both readings are tested: (a) the kernel's, with items' noise 1, where
the posterior is nearly the prior; (b) the noise of a difference, with kernel variance 1, where it is clearly skewed.
"""

import math
from functools import cache

import numpy as np
import pytest
import torch
from botorch.models.pairwise_gp import PairwiseGP
from scipy import stats

from benchmarks._observations import Noise, rbf_kernel
from benchmarks.fuzz.cases import Case, Seen, model_of
from benchmarks.fuzz.reference import Reference, reference_of
from botorch_skewgp import SkewGP

DUELS = [(1.25, -1.8), (-1.23, 1.25), (0.18, -1.23), (0.18, -2.52), (-2.52, 2.18), (-1.8, -0.5), (-1.8, 0.67)]
POINTS = sorted({x for duel in DUELS for x in duel})
BETWEEN = [-2.2, -0.9, 0.4, 1.7, 3.0]
PAIRS = [[POINTS.index(a), POINTS.index(b)] for a, b in DUELS]
TRAIN_X, TEST_X = (torch.tensor(x, dtype=torch.float64).unsqueeze(-1) for x in (POINTS, POINTS + BETWEEN))
LENGTHSCALE = 0.35
# kernel variance and one item's noise variance, half of that of a difference
READINGS = {"kernel variance 0.02": (0.02, 1.0), "noise variance 0.02": (1.0, 0.01)}
LIMIT = 4.2  # standard errors; 91 dependent statistics in each case


def case_of(reading: str) -> Case:
    variance, noise = READINGS[reading]
    duels = [Seen("Preference", {"pairs": PAIRS})]
    return Case(TRAIN_X.tolist(), duels, TEST_X.tolist(), Noise(items=noise), LENGTHSCALE, variance)


@cache
def reference(reading: str) -> Reference:
    return reference_of(case_of(reading), size=160_000)


@cache
def model(reading: str) -> SkewGP:
    return model_of(case_of(reading), num_draws=4096)


def size_of(reading: str) -> float:
    draws = model(reading).draws
    return min(float(draws.effective_size.min()), draws.num_draws)


def assert_near(found: torch.Tensor, expected: np.ndarray, error: np.ndarray, reading: str) -> None:
    """Errors are those of the reference's draws; the model's are as many times larger as it has fewer."""
    error = error * math.sqrt(1 + reference(reading).effective_size / size_of(reading))
    deviations = (found.flatten().numpy() - expected) / error
    assert np.abs(deviations).max() < LIMIT, deviations


@pytest.mark.parametrize("reading", READINGS)
def test_moments(reading):
    own, known = model(reading).posterior(TEST_X), reference(reading)
    assert known.effective_size > 20_000
    assert_near(own.mean, *known.mean(), reading)
    assert_near(own.variance.sqrt(), *known.standard_deviation(), reading)
    assert_near(own.skewness, *known.skewness(), reading)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("level", [0.025, 0.975])
def test_quantiles(reading, level):
    """The reference's distribution function, at the model's quantiles."""
    own = model(reading).posterior(TEST_X).quantile(torch.tensor(level, dtype=torch.float64))
    assert_near(torch.full_like(own, level), *reference(reading).cdf(own.flatten().numpy()), reading)


def test_first_reading_is_nearly_the_prior_and_the_second_clearly_skewed():
    first, second = (model(reading).posterior(TEST_X).skewness.abs() for reading in READINGS)
    assert first.max() < 0.01, first.max()
    assert second.max() > 0.25, second.max()


@pytest.mark.parametrize("reading", READINGS)
def test_log_evidence(reading):
    variance, noise = READINGS[reading]
    K = variance * np.exp(-0.5 * (np.subtract.outer(POINTS, POINTS) / LENGTHSCALE) ** 2)
    eye = np.eye(len(POINTS))
    winner, loser = eye[np.array(PAIRS).T]
    Gamma = (winner - loser) @ K @ (winner - loser).T + 2 * noise * np.eye(len(PAIRS))
    distribution = stats.multivariate_normal(cov=Gamma, seed=1, maxpts=1_000_000, abseps=1e-10, releps=1e-5)
    exact = math.log(distribution.cdf([0.0] * len(PAIRS)))
    ep = float(model(reading).log_marginal_likelihood("ep").value)
    bridge = model(reading).log_marginal_likelihood("exact")
    assert abs(ep - exact) < 0.01, (ep, exact)
    assert abs(float(bridge.value) - exact) < 3 * float(bridge.standard_error), (bridge, exact)
    assert float(bridge.standard_error) < 0.02


@torch.no_grad()
def errors_beside_reference(reading: str, posterior, scale: float) -> tuple[float, float]:
    """The largest errors of means, in standard deviations, and of logarithms of standard deviations."""
    (mean, _), (sd, _) = reference(reading).mean(), reference(reading).standard_deviation()
    found = ((scale * values).flatten().numpy() for values in (posterior.mean, posterior.variance.sqrt()))
    return float(np.abs((next(found) - mean) / sd).max()), float(np.abs(np.log(next(found) / sd)).max())


def test_laplace_posterior_is_off_where_the_posterior_is_skewed_and_ours_is_not():
    """Of BoTorch, whose items' noise is 1, so utilities are divided by its standard deviation."""
    first, second = READINGS
    laplace = {}
    for reading, (variance, noise) in READINGS.items():
        kernel = rbf_kernel(variance / noise, LENGTHSCALE)
        posterior = PairwiseGP(TRAIN_X, torch.tensor(PAIRS), covar_module=kernel).eval().posterior(TEST_X)
        laplace[reading] = errors_beside_reference(reading, posterior, math.sqrt(noise))
    ours = errors_beside_reference(second, model(second).posterior(TEST_X), 1.0)
    assert max(laplace[first]) < 0.01, laplace  # the same model: what follows is the approximation's
    assert laplace[second][0] > 0.8, laplace  # 1.1 to 1.5: where its search for the mode ends hangs on rounding
    assert laplace[second][1] > 0.1, laplace
    assert max(ours) < 0.04, ours

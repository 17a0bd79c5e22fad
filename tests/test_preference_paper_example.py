"""The one-dimensional example of the preference paper against an independent computation.

Benavoli, Azzimonti, Piga. Preferential Bayesian optimisation with skew Gaussian processes. GECCO 2021: seven duels over
eight points, an RBF kernel of lengthscale 0.35 and "variance 0.02". The duels are said to come from `g(x) = cos(5 x) +
exp(-x^2 / 2)`; the last two, as printed, contradict it. All are kept as printed.

The paper does not say whose variance 0.02 is. Both readings are tested: (a) the kernel's, with items' noise 1, where
the posterior is nearly the prior; (b) the noise of a difference, with kernel variance 1, where it is clearly skewed.

The reference writes the model out: differences `u = f(a) - f(b) + noise` are drawn by sequential importance sampling
with exact weights (Geweke, Hajivassiliou, Keane), and `f` given `u` is Gaussian.
"""

import math
from functools import cache
from typing import NamedTuple

import pytest
import torch
from botorch.models.pairwise_gp import PairwiseGP
from scipy import stats
from torch import Tensor

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.truncated.draws import DrawSettings

DUELS = [(1.25, -1.8), (-1.23, 1.25), (0.18, -1.23), (0.18, -2.52), (-2.52, 2.18), (-1.8, -0.5), (-1.8, 0.67)]
POINTS = sorted({x for duel in DUELS for x in duel})
BETWEEN = [-2.2, -0.9, 0.4, 1.7, 3.0]
LENGTHSCALE = 0.35
# kernel variance and one item's noise variance, half of that of a difference
CASES = {"kernel variance 0.02": (0.02, 1.0), "noise variance 0.02": (1.0, 0.01)}
NUM_PARTICLES, GROUP = 160_000, 4000
LIMIT = 4.2  # standard errors; 65 dependent statistics in each case


def tensor(values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


TRAIN_X = tensor(POINTS).unsqueeze(-1)
TEST_X = tensor(POINTS + BETWEEN).unsqueeze(-1)
PAIRS = torch.tensor([[POINTS.index(a), POINTS.index(b)] for a, b in DUELS])


def prior(variance: float, noise: float) -> tuple[Tensor, Tensor, Tensor]:
    """Covariances of `f` at the test points, of these with the differences, and of the differences."""
    K = variance * torch.exp(-0.5 * ((TEST_X - TEST_X.T) / LENGTHSCALE).square())
    A = torch.zeros(len(DUELS), len(TEST_X), dtype=torch.float64)
    for i, (a, b) in enumerate(DUELS):
        A[i, POINTS.index(a)], A[i, POINTS.index(b)] = 1.0, -1.0
    return K, K @ A.T, A @ K @ A.T + 2 * noise * torch.eye(len(DUELS), dtype=torch.float64)


class Reference(NamedTuple):
    means: Tensor  # particles x points: E[f | u]
    variance: Tensor  # points: Var[f | u], the same for all u
    weights: Tensor  # particles

    @property
    def effective_size(self) -> float:
        return float(1 / self.weights.square().sum())

    def statistics(self, means: Tensor, weights: Tensor) -> Tensor:
        """Posterior mean, standard deviation and skewness; `3 x points`."""
        mean = weights @ means
        deviation = means - mean
        variance = weights @ deviation.square() + self.variance
        return torch.stack([mean, variance.sqrt(), weights @ deviation.pow(3) / variance.pow(1.5)])

    def errors(self, size: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The statistics, and their standard errors if computed from `size` independent draws."""
        which = torch.multinomial(self.weights, GROUP * 50, replacement=True, generator=generator)
        equal = self.weights.new_full((GROUP,), 1 / GROUP)
        groups = torch.stack([self.statistics(self.means[block], equal) for block in which.split(GROUP)])
        one = groups.std(0) * math.sqrt(GROUP)
        return self.statistics(self.means, self.weights), one * math.sqrt(1 / size + 1 / self.effective_size)

    def cdf(self, x: Tensor, size: float) -> tuple[Tensor, Tensor]:
        """`P(f <= x)` at one `x` for each point, and the standard error of the same from `size` draws."""
        values = torch.special.ndtr((x - self.means) / self.variance.sqrt())
        probability = self.weights @ values
        variance = self.weights @ (values - probability).square()
        return probability, (variance * (1 / size + 1 / self.effective_size)).sqrt()


@cache
def reference(case: str) -> Reference:
    K, cross, Gamma = prior(*CASES[case])
    generator = torch.Generator().manual_seed(1)
    L = torch.linalg.cholesky(Gamma)
    white = torch.zeros(NUM_PARTICLES, len(DUELS), dtype=torch.float64)
    log_weights = torch.zeros(NUM_PARTICLES, dtype=torch.float64)
    for i in range(len(DUELS)):
        bound = -(white[:, :i] @ L[i, :i]) / L[i, i]
        log_weights += torch.special.log_ndtr(-bound)
        uniform = torch.rand(NUM_PARTICLES, dtype=torch.float64, generator=generator)
        white[:, i] = -torch.special.ndtri(uniform * torch.special.ndtr(-bound))
    u = white @ L.T
    assert (u > 0).all()
    gain = torch.linalg.solve(Gamma, cross.T)
    return Reference(u @ gain, (K - cross @ gain).diagonal(), torch.softmax(log_weights, 0))


@cache
def model(case: str) -> SkewGP:
    variance, noise = CASES[case]
    return SkewGP(
        TRAIN_X,
        Preference(PAIRS),
        likelihood=PreferenceLikelihood(noise=noise),
        covar_module=rbf_kernel(variance, LENGTHSCALE),
        draw_settings=DrawSettings(num_draws=4096),
    ).eval()


def size_of(case: str) -> float:
    draws = model(case).draws
    return min(float(draws.effective_size.min()), draws.num_draws)


@pytest.mark.parametrize("case", CASES)
def test_moments(case, generator):
    own = model(case).posterior(TEST_X)
    found = torch.stack([own.mean, own.variance.sqrt(), own.skewness]).squeeze(-1)
    expected, errors = reference(case).errors(size_of(case), generator)
    deviations = (found - expected) / errors
    assert reference(case).effective_size > 20_000
    assert deviations.abs().max() < LIMIT, deviations


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("level", [0.025, 0.975])
def test_quantiles(case, level):
    """The reference's distribution function, at the model's quantiles."""
    own = model(case).posterior(TEST_X).quantile(tensor(level)).squeeze(-1)
    probability, error = reference(case).cdf(own, size_of(case))
    deviations = (probability - level) / error
    assert deviations.abs().max() < LIMIT, deviations


def test_first_reading_is_nearly_the_prior_and_the_second_clearly_skewed():
    first, second = (model(case).posterior(TEST_X).skewness.abs() for case in CASES)
    assert first.max() < 0.01, first.max()
    assert second.max() > 0.25, second.max()


@pytest.mark.parametrize("case", CASES)
def test_log_evidence(case):
    Gamma = prior(*CASES[case])[2].numpy()
    distribution = stats.multivariate_normal(cov=Gamma, seed=1, maxpts=1_000_000, abseps=1e-10, releps=1e-5)
    exact = math.log(distribution.cdf([0.0] * len(DUELS)))
    ep = float(model(case).log_marginal_likelihood("ep").value)
    bridge = model(case).log_marginal_likelihood("exact")
    assert abs(ep - exact) < 0.01, (ep, exact)
    assert abs(float(bridge.value) - exact) < 3 * float(bridge.standard_error), (bridge, exact)
    assert float(bridge.standard_error) < 0.02


@torch.no_grad()
def errors_beside_reference(case: str, posterior, scale: float, generator: torch.Generator) -> tuple[float, float]:
    """The largest errors of means, in standard deviations, and of logarithms of standard deviations."""
    (mean, sd, _), _ = reference(case).errors(1.0, generator)
    found = scale * posterior.mean.squeeze(-1), scale * posterior.variance.squeeze(-1).sqrt()
    return float(((found[0] - mean) / sd).abs().max()), float((found[1] / sd).log().abs().max())


def test_laplace_posterior_is_off_where_the_posterior_is_skewed_and_ours_is_not(generator):
    """Of BoTorch, whose items' noise is 1, so utilities are divided by its standard deviation."""
    first, second = CASES
    laplace = {}
    for case, (variance, noise) in CASES.items():
        kernel = rbf_kernel(variance / noise, LENGTHSCALE)
        posterior = PairwiseGP(TRAIN_X, PAIRS, covar_module=kernel).eval().posterior(TEST_X)
        laplace[case] = errors_beside_reference(case, posterior, math.sqrt(noise), generator)
    ours = errors_beside_reference(second, model(second).posterior(TEST_X), 1.0, generator)
    assert max(laplace[first]) < 0.01, laplace  # the same model: what follows is the approximation's
    assert laplace[second][0] > 0.8, laplace  # 1.1 to 1.5: where its search for the mode ends hangs on rounding
    assert laplace[second][1] > 0.1, laplace
    assert max(ours) < 0.04, ours

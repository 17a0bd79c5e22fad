"""Rows that act like numbers: far in a tail or narrow, against quadrature over the other row."""

import math

import pytest
import torch
from scipy import integrate, stats
from scipy.special import log_ndtr
from tensors import tensor

from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.gaussian_rows import SiteConditioned, gaussian_rows
from botorch_skewgp.truncated.priors import BorderedPrior, LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = math.inf
SETTINGS = DrawSettings(num_draws=1024)


def two_rows(lower, upper, noise, correlation=0.6, low_rank=False):
    """Two rows of unit variance before noise; as a low-rank root with a third row that asks nothing."""
    root = tensor([1.0, 0.0], [correlation, math.sqrt(1 - correlation**2)])
    if not low_rank:
        return TruncatedNormal(tensor(0, 0), root @ root.mT, tensor(*lower), tensor(*upper), tensor(*noise))
    root = torch.cat([root, tensor([0.5, 0.5])])
    bounds = tensor(*lower, -INF), tensor(*upper, INF)
    return TruncatedNormal(tensor(0, 0, 0), LowRankPrior(root), *bounds, tensor(*noise, 1.0))


def truth(lower, upper, noise, correlation=0.6):
    """Mean of the second row and the log evidence, by quadrature over the first row's place between its bounds."""
    variance, start = 1 + noise[0], lower[0]
    # in units of the exponential that the tail nearly is, or of the interval
    unit, end = (variance / start, 60.0) if upper[0] == INF else (upper[0] - start, 1.0)
    slope, left = correlation / variance, math.sqrt(1 + noise[1] - correlation**2 / variance)
    bound = lower[1] - slope * start

    def log_density(t):  # over that at the first row's lower bound
        return -(start + 0.5 * unit * t) * unit * t / variance + log_ndtr((slope * unit * t - bound) / left)

    def mean_of_second(t):
        a = (bound - slope * unit * t) / left
        return slope * (start + unit * t) + left * math.exp(stats.norm.logpdf(a) - log_ndtr(-a))

    peak = log_density(0.0)
    mass = integrate.quad(lambda t: math.exp(log_density(t) - peak), 0, end)[0]
    first = integrate.quad(lambda t: mean_of_second(t) * math.exp(log_density(t) - peak), 0, end)[0]
    constant = math.log(unit) - 0.5 * start**2 / variance - 0.5 * math.log(2 * math.pi * variance)
    return first / mass, math.log(mass) + peak + constant


FAR = [((b, 0.0), (INF, INF), (0.1, 0.0)) for b in (80.0, 300.0, 1e4, 1e6)]
NARROW = [((0.3, 0.0), (0.3 + w, INF), (0.1, 0.0)) for w in (1e-2, 1e-5, 1e-9)]
NOISELESS = [((0.3, 0.0), (0.3 + w, INF), (0.0, 0.0)) for w in (1e-3, 1e-5)]  # given the others a row has a spread
AGAINST = [((b, -0.6 * b / 1.1), (INF, INF), (0.1, 0.2)) for b in (80.0, 1e5)]


CASES = [(case, False) for case in FAR + NARROW + NOISELESS + AGAINST] + [(FAR[1], True), (NARROW[1], True)]


@pytest.mark.parametrize(("case", "low_rank"), CASES)
def test_draws_and_evidence_of_two_rows(case, low_rank, generator):
    lower, upper, noise = case
    noise = (noise[0], 0.2) if low_rank else noise
    distribution = two_rows(lower, upper, noise, low_rank=low_rank)
    assert gaussian_rows(expectation_propagation(distribution)).tolist()[:2] == [True, False]
    draws = draw(distribution, SETTINGS, generator)
    mean, log_evidence = truth(lower, upper, noise)
    error = float(draws.rows[:, 1].std()) / math.sqrt(float(draws.effective_size.min()))
    assert float(draws.rows[:, 1].mean()) == pytest.approx(mean, abs=4 * error, rel=1e-12)
    first = (draws.rows[:, 0] - lower[0]).sort().values
    assert first[0] >= 0
    reference = stats.uniform(scale=upper[0] - lower[0]) if upper[0] < INF else stats.expon(scale=1.1 / lower[0])
    if lower[0] in (0.3, 1e4, 1e6):  # where uniform, respectively exponential, up to 1e-3
        assert stats.kstest(first.numpy(), reference.cdf).pvalue > 1e-3
    estimate = bridge_log_normalizer(distribution, draws if low_rank else None, None, generator, SETTINGS)
    tolerance = 4 * float(estimate.standard_error) + 1e-5 + 1e-9 * abs(log_evidence)
    assert float(estimate.value) == pytest.approx(log_evidence, abs=tolerance)


def test_rows_that_say_more_than_a_number_stay():
    """Tails that are not far, intervals that are not narrow, and a far row with too little noise to hide its shape."""
    root = torch.cat([torch.eye(4), torch.ones(1, 4)]).double()
    lower, upper = tensor(3.0, 0.0, -1.0, 100.0, -INF), tensor(INF, 0.3, INF, INF, INF)
    for noise in (1e-4, 0.1):
        noises = tensor(0.1, 0.1, 0.1, noise, 0.1)
        distribution = TruncatedNormal(torch.zeros_like(lower), LowRankPrior(root), lower, upper, noises)
        found = gaussian_rows(expectation_propagation(distribution))
        assert found.tolist() == [False, False, False, noise == 0.1, False]


@pytest.mark.parametrize("mean", [(0, 0), (5e3, 2e3)])
def test_rows_without_others_are_drawn_independently(mean, generator):
    """No chain is run; opposite far bounds of correlated rows, against the exponentials that both nearly are."""
    b = 1e4
    lower, upper = tensor(mean[0] + b, -INF), tensor(INF, mean[1] - b)
    distribution = TruncatedNormal(tensor(*mean), tensor([1.0, 0.9], [0.9, 1.0]), lower, upper, tensor(0.1, 0.1))
    draws = draw(distribution, SETTINGS, generator)
    assert draws.sampler == "independent"
    assert float(draws.effective_size.min()) == SETTINGS.num_draws
    force = torch.linalg.solve(distribution.gamma, tensor(b, -b)).abs()
    for i, sign in enumerate((1, -1)):
        excess = sign * (draws.rows[:, i] - mean[i]) - b
        assert stats.kstest(excess.numpy(), stats.expon(scale=1 / float(force[i])).cdf).pvalue > 1e-3
    assert abs(float(torch.corrcoef(draws.rows.mT)[0, 1])) < 4 / math.sqrt(SETTINGS.num_draws)


def test_conditioning_by_points_equals_conditioning_by_rows(generator):
    """The same distribution as a root and dense."""
    root = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    lower, noise = tensor(40.0, 0, 0, -1, 0, 0), torch.full((6,), 0.3, dtype=torch.float64)
    both = []
    for covariance in (LowRankPrior(root), root @ root.mT):
        distribution = TruncatedNormal(torch.zeros_like(lower), covariance, lower, lower + INF, noise)
        approximation = expectation_propagation(distribution)
        both.append(SiteConditioned(distribution, approximation, lower > 1))
    torch.testing.assert_close(both[0].rest.mean, both[1].rest.mean, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(both[0].rest.gamma, both[1].rest.gamma, rtol=1e-7, atol=1e-9)


def test_far_rows_of_blocks_are_replaced_as_those_of_the_same_prior_by_a_root():
    block, root = torch.arange(20) // 5, torch.ones(20, 1, dtype=torch.float64)
    prior = BorderedPrior(root, 2 * torch.eye(2, dtype=torch.float64)[torch.arange(20) % 2], block)
    lower, noise = torch.full((20,), -1.0, dtype=torch.float64), torch.full((20,), 10.0, dtype=torch.float64)
    lower[::5] = 60.0
    for kind in (prior, prior.wide):
        rows = TruncatedNormal(torch.zeros_like(lower), kind, lower, torch.full_like(lower, INF), noise)
        assert not gaussian_rows(expectation_propagation(rows)).any()
        farther = TruncatedNormal(torch.zeros_like(lower), kind, 10 * lower, torch.full_like(lower, INF), noise)
        assert gaussian_rows(expectation_propagation(farther))[::5].all()

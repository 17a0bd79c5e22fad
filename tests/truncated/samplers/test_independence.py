"""Independence sampling from the Gaussian of expectation propagation."""

from dataclasses import replace

import pytest
import torch

from botorch_skewgp.truncated import draws as module
from botorch_skewgp.truncated.draws import DrawSettings, choose_sampler, draw
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.independence import IndependenceSampler
from botorch_skewgp.truncated.samplers.start import feasible_start
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = torch.inf


def distribution_of(generator, m: int, r: int, **kwargs) -> TruncatedNormal:
    """Rows with one bound, of either kind."""
    root = torch.randn(m, r, dtype=torch.float64, generator=generator)
    lower = torch.where(torch.arange(m) % 2 == 0, -0.3, -INF).double()
    values = {
        "mean": 0.3 * torch.randn(m, dtype=torch.float64, generator=generator),
        "lower": lower,
        "upper": torch.where(lower.isfinite(), INF, 0.4).double(),
        "noise": 0.5 + torch.rand(m, dtype=torch.float64, generator=generator),
        **kwargs,
    }
    return TruncatedNormal(prior=LowRankPrior(root), **values)


def expected_mean(distribution: TruncatedNormal, num: int = 2**17) -> torch.Tensor:
    """The mean of `h`, by importance sampling from the prior with quasi-random numbers."""
    root = torch.linalg.cholesky(distribution.prior.covariance + 1e-10 * torch.eye(distribution.num_rows))
    uniform = torch.quasirandom.SobolEngine(root.shape[-1], scramble=True, seed=0).draw(num, dtype=torch.float64)
    h = distribution.mean + torch.special.ndtri(uniform.clamp(1e-12, 1 - 1e-12)) @ root.mT
    scale = distribution.noise.sqrt()
    inside = torch.special.ndtr((distribution.upper - h) / scale) - torch.special.ndtr((distribution.lower - h) / scale)
    weight = inside.prod(-1, keepdim=True)
    return (weight * h).sum(0) / weight.sum()


def test_a_poor_approximation_makes_slow_chains_and_not_wrong_ones(generator):
    distribution = distribution_of(generator, 4, 3)
    poor = replace(distribution, lower=distribution.lower - 0.7, upper=distribution.upper - 0.5)
    sampler = IndependenceSampler(distribution, expectation_propagation(poor))
    state = sampler.init(*feasible_start(distribution, 16, generator))
    _, positions, _ = sampler.run(state, 1500, generator)
    h = distribution.noiseless(positions)
    error = h.mean(0).std(0) / 4
    assert ((h.mean((0, 1)) - expected_mean(distribution)).abs() <= 4.5 * error).all()


def test_it_is_chosen_for_many_rows_over_few_coordinates(generator, monkeypatch):
    many = distribution_of(generator, 1200, 3)
    assert choose_sampler(many) == "independence"
    draws = draw(many, DrawSettings(num_draws=256))
    assert draws.sampler == "independence"
    monkeypatch.setattr(module, "MIN_SHARE", 1.1)  # no approximation is so good
    assert choose_sampler(many) == "collapsed"


def test_every_row_needs_noise(generator):
    distribution = distribution_of(generator, 4, 3, noise=torch.tensor([0.0, 1.0, 1.0, 1.0]).double())
    with pytest.raises(ValueError, match="positive variance"):
        IndependenceSampler(distribution, expectation_propagation(distribution))

"""Adaptive importance sampling on densities of which all is known in closed form."""

import math

import pytest
import torch
from tensors import tensor
from torch.distributions import Chi2

from botorch_skewgp.fitting.importance import (
    DEGREES_OF_FREEDOM,
    AdaptiveImportanceSampler,
    StudentProposal,
    WeightedPoints,
    laplace_proposal,
)

ROOT = tensor(0.7, 0.2, 0.2, 1.3).view(2, 2)
PROPOSAL = StudentProposal(tensor(0.5, -1.0), ROOT)


def test_density_of_a_proposal_is_that_of_scaled_normals():
    """A multivariate t is a normal whose covariance is divided by a chi-squared over its degrees of freedom."""
    x = tensor(1.0, 0.0, -3.0, 2.0, 0.5, -1.0).view(3, 2)
    q = torch.linspace(0.001, 60, 40_000, dtype=torch.float64)
    white = torch.linalg.solve(ROOT, (x - PROPOSAL.location).mT).square().sum(0)
    scale = q / DEGREES_OF_FREEDOM
    normal = scale * (-0.5 * scale * white.unsqueeze(-1)).exp() / (2 * math.pi * torch.linalg.det(ROOT))
    wanted = torch.trapezoid(normal * Chi2(DEGREES_OF_FREEDOM).log_prob(q).exp(), q)
    torch.testing.assert_close(PROPOSAL.log_density(x), wanted.log(), atol=1e-6, rtol=0)


def test_draws_of_a_proposal_have_its_density(generator):
    """Squared distances from the centre over the coordinates have an F distribution, the rest no direction."""
    x = PROPOSAL.draw(20_000, generator)
    white = torch.linalg.solve(ROOT, (x - PROPOSAL.location).mT).mT
    square = white.square().sum(-1)
    for threshold in (0.5, 2.0, 8.0):  # in two coordinates the tail has a closed form
        tail = (1 + threshold / DEGREES_OF_FREEDOM) ** (-DEGREES_OF_FREEDOM / 2)
        assert (square > threshold).double().mean().item() == pytest.approx(tail, abs=4 * (tail / 20_000) ** 0.5)
    assert (white / square.sqrt().unsqueeze(-1)).mean(0).abs().max() < 4 * (0.5 / 20_000) ** 0.5


def banana(x):
    """Normal in the first coordinate, and given it in the second around 0.3 times its square; not normalised."""
    return -0.5 * x[:, 0].square() - 0.5 * (x[:, 1] - 0.3 * x[:, 0].square()).square() + 3.0


def sampled(rounds, generator, log_density=banana):
    root = torch.eye(2, dtype=torch.float64)
    sampler = AdaptiveImportanceSampler(log_density, root)
    away = StudentProposal(tensor(2.0, 2.0), root)
    sampler.draw_round([(StudentProposal(tensor(-0.5, 0.0), root), 80), (away, 20)], generator)
    for _ in range(rounds - 1):
        sampler.draw_round([(sampler.fitted_proposal(), 100)], generator)
    return sampler


def test_weights_are_with_respect_to_the_mixture_of_all_proposals(generator):
    """Of one with the share that it has in the points; a density that is that mixture has equal weights."""
    near = StudentProposal(tensor(0.0, 0.0), ROOT)
    far = StudentProposal(tensor(3.0, 1.0), 0.5 * ROOT)

    def mixture(x):
        return torch.logaddexp(near.log_density(x) + math.log(0.75), far.log_density(x) + math.log(0.25))

    sampler = AdaptiveImportanceSampler(mixture, ROOT)
    sampler.draw_round([(near, 60), (far, 10)], generator)
    assert sampler.points.effective_size < 69.9
    sampler.draw_round([(far, 10)], generator)
    torch.testing.assert_close(sampler.points.log_weights, torch.full((80,), -math.log(80), dtype=torch.float64))
    assert sampler.points.effective_size == pytest.approx(80)


def test_fitted_proposals_come_close_to_a_normal_density(generator):
    """From a start two standard deviations away, with a scale that is much too small."""
    covariance = tensor(1.0, 0.6, 0.6, 2.0).view(2, 2)
    precision = torch.linalg.inv(covariance)

    def normal(x):
        return -0.5 * ((x - 1) @ precision * (x - 1)).sum(-1)

    sampler = AdaptiveImportanceSampler(normal, 0.3 * torch.eye(2, dtype=torch.float64))
    sampler.draw_round([(StudentProposal(tensor(-1.0, 2.0), sampler.root), 64)], generator)
    for _ in range(9):
        sampler.draw_round([(sampler.fitted_proposal(), 64)], generator)
    fitted = sampler.fitted_proposal()
    torch.testing.assert_close(fitted.location, torch.ones(2, dtype=torch.float64), atol=0.25, rtol=0)
    torch.testing.assert_close(fitted.root @ fitted.root, covariance, atol=0.5, rtol=0)
    torch.testing.assert_close(fitted.root, fitted.root.mT)


def test_a_few_points_with_all_the_weight_do_not_make_a_narrow_proposal(generator):
    def spike(x):
        return -1e4 * x.square().sum(-1)

    sampler = sampled(1, generator, spike)
    assert sampler.points.effective_size < 2
    scales = torch.linalg.eigvalsh(sampler.fitted_proposal().root)
    assert scales.min() > 0.1


def test_places_without_density_have_no_weight(generator):
    def half(x):
        return torch.where(x[:, 0] > 0, -0.5 * x.square().sum(-1), -torch.inf)

    points = sampled(4, generator, half).points
    assert ((points.log_weights == -torch.inf) == (points.x[:, 0] <= 0)).all()
    assert (points.x[points.resampled(200, generator), 0] > 0).all()
    assert points.pareto_shape < 0.7


def test_draws_are_as_many_as_weights_say(generator):
    """Rounded up or down, and on average exactly."""
    weights = tensor(0.1, 0.0, 0.45, 0.25, 0.2)
    points = WeightedPoints(torch.zeros(5, 1), torch.zeros(5), weights.log())
    total = torch.zeros(5, dtype=torch.float64)
    for _ in range(400):
        number = points.resampled(6, generator).bincount(minlength=5)
        assert ((number - 6 * weights).abs() < 1).all()
        total += number / 400
    torch.testing.assert_close(total, 6 * weights, atol=0.1, rtol=0)


def test_effective_size_and_shape_of_weights():
    log_weights = torch.full((40,), -math.log(40), dtype=torch.float64)
    equal = WeightedPoints(torch.zeros(40, 1), log_weights, log_weights)
    assert equal.effective_size == pytest.approx(40)
    assert equal.pareto_shape == -math.inf
    few = equal._replace(log_weights=tensor(0.5, 0.25, 0.25).log())
    assert few.effective_size == pytest.approx(1 / (0.25 + 2 / 16))
    assert few.pareto_shape == math.inf


def test_laplace_proposal_of_a_normal_density(generator):
    """One Newton step finds the mode, and the Hessian the scale; where the density is flat it is limited."""
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    precision = root @ root.mT + torch.eye(3, dtype=torch.float64)
    mode, x = tensor(0.2, 0.4, -0.6), tensor(0.3, -0.2, 0.5)

    def normal(precision):
        return lambda x: (-0.5 * (x - mode) @ precision @ (x - mode), -precision @ (x - mode))

    proposal = laplace_proposal(normal(precision), x, 2.0)
    scale = proposal.root
    assert torch.allclose(scale @ scale @ precision, torch.eye(3, dtype=torch.float64), atol=1e-8)
    assert torch.allclose(proposal.location, mode, atol=1e-8)
    limited = laplace_proposal(normal(torch.diag(tensor(1.0, 1e-6, -4.0))), x, 2.0)
    assert torch.allclose(limited.root, torch.diag(tensor(1.0, 2.0, 0.5)), atol=1e-8)


def test_newton_steps_are_limited():
    def linear(x):
        return 10 * x.sum(), torch.full_like(x, 10.0)

    proposal = laplace_proposal(linear, tensor(0.0, 1.0), 2.0)
    torch.testing.assert_close(proposal.location, tensor(4.0, 5.0))

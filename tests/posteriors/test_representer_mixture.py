"""The order of a mixture's draws, and what samples are made of."""

import pytest
import torch
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.distributions import MultivariateNormal

from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.posteriors.representer_mixture import _principal_components, space_filling_order


@pytest.mark.parametrize("num_points", [1, 2, 3, 7, 64, 100])
def test_space_filling_order(num_points, generator):
    """A permutation, also of points that are all the same; in one dimension it sorts."""
    points = torch.randn(num_points, 3, dtype=torch.float64, generator=generator)
    for some in (points, torch.ones_like(points)):
        assert torch.equal(space_filling_order(some).sort().values, torch.arange(num_points))
    line = torch.nn.functional.pad(points[:, :1], (1, 1))
    assert torch.equal(space_filling_order(line), points[:, 0].argsort())


def test_space_filling_order_keeps_groups_together(generator):
    """Four clusters at the corners of a rectangle: the far pairs part first, and none is left before it is done."""
    corners = torch.tensor([[0.0, 0.0, 5.0, 5.0], [0.0, 2.0, 0.0, 2.0]], dtype=torch.float64)
    which = torch.randperm(64, generator=generator) % 4
    points = corners[:, which] + 0.1 * torch.randn(2, 64, dtype=torch.float64, generator=generator)
    assert torch.equal(which[space_filling_order(points.mT)], torch.arange(4).repeat_interleave(16))


def kernel(x, z):
    return torch.exp(-0.5 * (x - z.mT).square() / 0.3**2)


def ordered_posteriors(num_draws, generator):
    """The same posterior at two of six points, with its draws as they come and in order."""
    Z = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    X, K = Z[[1, 4]] + 0.05, kernel(Z, Z)
    root = torch.linalg.inv(torch.linalg.cholesky(K + 0.1 * torch.eye(6, dtype=torch.float64))).mT
    weights = root @ torch.randn(6, num_draws, dtype=torch.float64, generator=generator).exp()
    mixture = RepresenterMixture(weights, root)
    rest = torch.zeros(2, dtype=torch.float64), kernel(X, Z), kernel(X, X)
    return [SkewGPPosterior(*rest, m) for m in (mixture, mixture.in_space_filling_order(K))]


def test_order_leaves_the_law_as_it_is(generator):
    plain, ordered = ordered_posteriors(300, generator)
    assert not torch.equal(plain.component_means, ordered.component_means)
    torch.testing.assert_close(plain.component_means.sort(-1).values, ordered.component_means.sort(-1).values)
    torch.testing.assert_close(plain.covariance_matrix, ordered.covariance_matrix)


def test_order_is_by_values_and_not_by_weights():
    """Opposite weights of two points that coincide make no difference to values."""
    K = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    size = torch.randn(2, 65, dtype=torch.float64, generator=generator)
    weights = torch.stack([100 * size[0], -100 * size[0], size[1]])
    ordered = RepresenterMixture(weights, K).in_space_filling_order(K).weights[2]
    assert torch.equal(ordered if ordered[0] < 0 else ordered.flip(0), size[1].sort().values)  # either way round


def test_order_makes_quasi_monte_carlo_averages_vary_less(generator):
    """The variance over seeds of the expected best of two values, with 64 Sobol samples of 1024 draws."""
    variances = []
    for posterior in ordered_posteriors(1024, generator):
        samplers = [SobolQMCNormalSampler(torch.Size([64]), seed=seed) for seed in range(50)]
        variances.append(torch.stack([sampler(posterior).amax(-2).mean() for sampler in samplers]).var())
    assert variances[1] < 0.5 * variances[0], variances


@pytest.mark.parametrize("num_points", [1, 3])
@pytest.mark.parametrize("is_shared", [True, False])
def test_samples_of_a_gaussian_that_has_no_columns(num_points, is_shared, generator):
    """By hand: the mean plus a root of the covariance times the base samples, the first of which picks nothing."""
    mean = torch.randn(4, num_points, dtype=torch.double, generator=generator)
    root = torch.randn(4, num_points, num_points, dtype=torch.double, generator=generator)
    covariance = root @ root.mT + torch.eye(num_points)
    posterior = SkewGPPosterior.from_gaussian(MultivariateNormal(mean, covariance))
    shape = (5, 1 if is_shared else 4, 1 + num_points)
    base_samples = torch.randn(*shape, dtype=torch.double, generator=generator)
    samples = posterior.rsample_from_base_samples(torch.Size([5]), base_samples)
    factor = torch.linalg.cholesky(covariance)
    expected = mean + (factor @ base_samples[..., 1:].unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(samples.squeeze(-1), expected, rtol=1e-6, atol=1e-6)


def mixture_posterior(generator, batch_shape=(4,)):
    """A posterior at three points of thirty draws over five columns."""
    location = torch.randn(*batch_shape, 3, dtype=torch.double, generator=generator)
    cross = torch.randn(*batch_shape, 3, 5, dtype=torch.double, generator=generator)
    weights = torch.randn(5, 30, dtype=torch.double, generator=generator)
    covariance = torch.eye(3, dtype=torch.double).expand(*batch_shape, 3, 3)
    return SkewGPPosterior(location, cross, covariance, RepresenterMixture(weights, weights.new_zeros(5, 0)))


def test_base_samples_keep_their_gradient_where_equal_ones_came_before(generator):
    posterior = mixture_posterior(generator)
    base_samples = torch.randn(5, 1, 4, dtype=torch.double, generator=generator)
    posterior.rsample_from_base_samples(torch.Size([5]), base_samples)
    needed = base_samples.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(posterior.rsample_from_base_samples(torch.Size([5]), needed).sum(), needed)
    torch.testing.assert_close(gradient[..., 1:], torch.full((5, 1, 3), 4.0).double())  # four of the batch share them


@pytest.mark.parametrize("base_batch", [(1,), (0,)])
def test_samples_of_no_points_at_all(base_batch, generator):
    posterior = mixture_posterior(generator, batch_shape=(0,))
    base_samples = torch.randn(5, *base_batch, 4, dtype=torch.double, generator=generator)
    assert posterior.rsample_from_base_samples(torch.Size([5]), base_samples).shape == (5, 0, 3, 1)


@pytest.mark.parametrize("shape", [(7, 2, 4), (7, 1, 1, 4)])
def test_base_samples_of_another_batch_are_refused(shape, generator):
    base_samples = torch.zeros(1, dtype=torch.double).expand(shape)
    with pytest.raises(RuntimeError, match="cannot be broadcast"):
        mixture_posterior(generator).rsample_from_base_samples(torch.Size([7]), base_samples)


@pytest.mark.parametrize("shape", [(256, 100), (40, 100), (5, 3), (1, 4)])
def test_order_is_along_the_widest_directions(shape, generator):
    """The variance along them, beside that along as many singular vectors; and the widest come last."""
    deviations = torch.randn(*shape, dtype=torch.float64, generator=generator)
    deviations = deviations * torch.arange(1.0, shape[1] + 1, dtype=torch.float64).reciprocal()
    components = _principal_components(deviations)
    eye = torch.eye(components.shape[-1], dtype=torch.float64)
    torch.testing.assert_close(components.mT @ components, eye)
    along = (deviations @ components).square().sum(0)
    assert torch.equal(along, along.sort().values) or shape[0] == 1
    most = torch.linalg.svdvals(deviations)[: len(along)].square()
    assert along.sum() > 0.97 * most.sum()
    assert along[-1] > 0.999 * most[0]

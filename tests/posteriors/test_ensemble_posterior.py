"""Posteriors of an ensemble against those of its members, and their mixture against the mixture of all components."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors import GPyTorchPosterior
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from scipy.stats import norm
from torch import Tensor

from botorch_skewgp.posteriors import RepresenterMixture, SkewGPEnsemblePosterior, SkewGPPosterior
from botorch_skewgp.posteriors.representer_mixture import RootFactor

NUM_MEMBERS = 3


def normal(seed):
    g = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)


def members(batch_shape=(), q=2, num_outputs=2) -> list[SkewGPPosterior]:
    """Posteriors with different draws, covariances and locations."""
    randn, posteriors, e = normal(0), [], q * num_outputs
    for _ in range(NUM_MEMBERS):
        root = randn(e, e)
        mixture = RepresenterMixture(randn(2, 5).square(), 0.01 * randn(2, 1))
        prior = (root @ root.mT + torch.eye(e)).expand(*batch_shape, e, e)
        location, cross = randn(*batch_shape, e), randn(*batch_shape, e, 2)
        posteriors.append(SkewGPPosterior(location, cross, prior, mixture, num_outputs))
    return posteriors


MAPS = {
    "itself": lambda p: p,
    "affine": lambda p: p.affine(torch.tensor([[1.0, -2.0, 0.5, 0.0], [0.0, 1.0, 1.0, 3.0]], dtype=torch.float64), 0.3),
    "select_outputs": lambda p: p.select_outputs([1]),
    "scalarize": lambda p: p.scalarize(torch.tensor([2.0, -1.0], dtype=torch.float64), 0.7),
    "scalarize one": lambda p: p.select_outputs([0]).scalarize(torch.tensor([-2.0], dtype=torch.float64), 0.7),
    "expectation": lambda p: p.expectation(torch.tensor([[0.3], [0.7]], dtype=torch.float64), n_w=2),
    "add_noise": lambda p: p.add_noise(torch.tensor([0.5, 2.0], dtype=torch.float64)),
}
ASKED = {
    "mean": lambda p: p.mean,
    "variance": lambda p: p.variance,
    "skewness": lambda p: p.skewness,
    "cdf": lambda p: p.cdf(0.4),
    "density": lambda p: p.density(0.4),
    "quantile": lambda p: p.quantile(0.8),
    "probability_above": lambda p: p.probability_above(0.4),
}
batches = pytest.mark.parametrize("batch_shape", [(), (2, 2)])


@batches
@pytest.mark.parametrize("name", MAPS)
def test_maps_keep_the_members(name, batch_shape):
    """Whatever is asked of a map of the ensemble is what its members say, side by side."""
    own = members(batch_shape)
    image = MAPS[name](SkewGPEnsemblePosterior.stack(own))
    images = [MAPS[name](p) for p in own]
    assert type(image) is SkewGPEnsemblePosterior
    assert image.batch_shape == (*batch_shape, NUM_MEMBERS)
    for asked in ASKED.values():
        torch.testing.assert_close(asked(image), torch.stack([asked(p) for p in images], dim=-3))
    torch.testing.assert_close(image.covariance_matrix, torch.stack([p.covariance_matrix for p in images], dim=-3))


@batches
@pytest.mark.parametrize("name", MAPS)
def test_mixture_of_all_members(name, batch_shape):
    """Against all components of all members, written out."""
    own = [MAPS[name](p) for p in members(batch_shape)]
    image = MAPS[name](SkewGPEnsemblePosterior.stack(members(batch_shape)))
    shape = own[0].mean.shape
    means = torch.cat([p.component_means for p in own], dim=-1)
    sd = torch.cat([p.gaussian_variance.sqrt().unsqueeze(-1).expand(p.component_means.shape) for p in own], dim=-1)

    def mixture(function, value: Tensor) -> Tensor:
        return torch.from_numpy(function(value.numpy(), means.numpy(), sd.numpy())).mean(-1).reshape(shape)

    mean = means.mean(-1).reshape(shape)
    variance = ((means - means.mean(-1, keepdim=True)).square() + sd.square()).mean(-1).reshape(shape)
    torch.testing.assert_close(image.mixture_mean, mean)
    torch.testing.assert_close(image.mixture_variance, variance)
    values = torch.tensor([-0.5, 0.4, 2.0], dtype=torch.float64)
    for function, of_members in ((norm.cdf, image.cdf), (norm.pdf, image.density)):
        torch.testing.assert_close(of_members(values).mean(-3), torch.stack([mixture(function, v) for v in values]))
    for level in (0.03, 0.5, 0.9):
        quantile = image.mixture_quantile(level)
        assert quantile.shape == shape
        cdf = mixture(norm.cdf, quantile.flatten(-2).unsqueeze(-1))
        torch.testing.assert_close(cdf, torch.full_like(cdf, level), rtol=0, atol=1e-10)


def test_samples_of_a_map_are_maps_of_samples():
    ensemble = SkewGPEnsemblePosterior.stack(members(num_outputs=1, q=1))
    base = torch.randn(6, *ensemble.base_sample_shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    samples = ensemble.rsample_from_base_samples(torch.Size([6]), base)
    scaled = ensemble.scalarize(torch.tensor([3.0]), 1.0).rsample_from_base_samples(torch.Size([6]), base)
    torch.testing.assert_close(scaled, 1 + 3 * samples)


def test_moment_matched_is_botorchs_mixture():
    own = members((4,), num_outputs=1)
    matched = SkewGPEnsemblePosterior.stack(own).moment_matched()
    assert isinstance(matched, GaussianMixturePosterior)
    ensemble = SkewGPEnsemblePosterior.stack(own)
    torch.testing.assert_close(matched.mean, ensemble.mean)
    torch.testing.assert_close(matched.variance, ensemble.variance)
    torch.testing.assert_close(matched.mixture_mean, ensemble.mixture_mean)
    torch.testing.assert_close(matched.mixture_variance, ensemble.mixture_variance)
    assert type(own[0].moment_matched()) is GPyTorchPosterior


def unlike_members(batch_shape=()):
    """Of other numbers of draws, columns and rows each; one has weighted draws, one a factor in place of a root."""
    randn = normal(1)
    L, weight = torch.tensor([[2.0, 0.0], [0.5, 3.0]], dtype=torch.float64), 0.1 * randn(2, 4)
    root = torch.linalg.solve_triangular(L, weight, upper=False).mT
    mixtures = [
        RepresenterMixture(randn(2, 5), 0.01 * randn(2, 1)),
        RepresenterMixture(randn(3, 7), 0.01 * randn(3, 3), randn(7).log_softmax(-1)),
        RepresenterMixture(randn(4, 1), root, factor=RootFactor(L, weight)),
    ]
    return [
        SkewGPPosterior(
            randn(*batch_shape, 4), randn(*batch_shape, 4, len(m.root)), torch.diag(randn(4).exp() + 2), m, 2
        )
        for m in mixtures
    ]


@batches
@pytest.mark.parametrize("name", ASKED)
def test_members_may_differ_in_draws_points_and_rows(name, batch_shape):
    own = unlike_members(batch_shape)
    found = ASKED[name](SkewGPEnsemblePosterior.stack(own))
    for i, member in enumerate(own):
        torch.testing.assert_close(found.select(len(batch_shape), i), ASKED[name](member), rtol=1e-8, atol=1e-9)


def test_the_mixture_of_unlike_members_has_their_weights():
    own = unlike_members()
    ensemble = SkewGPEnsemblePosterior.stack(own)
    level = torch.stack([p.cdf(ensemble.mixture_quantile(0.7)) for p in own]).mean(0)
    torch.testing.assert_close(level, torch.full_like(level, 0.7), rtol=0, atol=1e-10)
    base = torch.randn(50, 1, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    samples = ensemble.rsample_from_base_samples(torch.Size([50]), base)
    for i, member in enumerate(own):
        alone = member.rsample_from_base_samples(torch.Size([50]), base[:, 0])
        torch.testing.assert_close(samples[:, i], alone, rtol=1e-8, atol=1e-9)


def test_what_is_refused():
    first, second, _ = members()
    cross, prior = torch.ones(4, 2, dtype=torch.float64), torch.eye(4, dtype=torch.float64)
    location = torch.zeros(4, dtype=torch.float64)
    drawn = RepresenterMixture(first.mixture.weights, first.mixture.root, parent=first.mixture)
    with pytest.raises(UnsupportedError, match="or of fantasies, equally often"):
        SkewGPEnsemblePosterior.stack([second, SkewGPPosterior(location, [cross, cross], prior, drawn, 2)])

"""Bordered covariances do what the dense matrices that they stand for do."""

import pytest
import torch

from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.priors import BorderedPrior, NoisyPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

double = torch.double


def parts(seed, m=50, r=3, p=4, num_blocks=12):
    """A root, a local root and blocks of one to about ten rows, and which rows stand alone."""
    generator = torch.Generator().manual_seed(seed)
    randn = lambda *shape: torch.randn(*shape, dtype=double, generator=generator)  # noqa: E731
    U, N = 1.5 * randn(m, r), randn(m, p)
    block = torch.randint(num_blocks, (m,), generator=generator)
    return U, N, block, 0.3 * randn(m)


def normal(U, N, block, mean, dense):
    prior = BorderedPrior(U, N, block)
    m = len(mean)
    return TruncatedNormal(
        mean=mean,
        prior=prior.covariance if dense else prior,
        lower=torch.full((m,), -0.2, dtype=double),
        upper=torch.where(torch.arange(m) % 3 == 0, 1.5, torch.inf).to(double),
        noise=torch.ones(m, dtype=double),
    )


@pytest.mark.parametrize(("seed", "m", "p"), [(0, 50, 4), (1, 260, 9), (2, 40, 45)])
def test_propagation_and_its_gradient_are_those_of_the_dense_matrix(seed, m, p):
    U, N, block, mean = parts(seed, m, p=p)
    results = []
    for dense in (False, True):
        given = [x.clone().requires_grad_() for x in (U, N, mean)]
        approximation = expectation_propagation(normal(*given[:2], block, given[2], dense), tolerance=1e-11)
        value = approximation.log_normalizer
        results.append([value.detach(), approximation.variance, *torch.autograd.grad(value, given)])
    for bordered, dense in zip(*results, strict=True):
        assert torch.allclose(bordered, dense, rtol=1e-7, atol=1e-8)


def test_shared_coordinates_and_latent_coordinates():
    U, N, block, mean = parts(3, m=60, num_blocks=5)
    approximation = expectation_propagation(normal(U, N, block, mean, dense=False))
    dense = expectation_propagation(normal(U, N, block, mean, dense=True))
    z, root = approximation.factor.shared_coordinates
    C, precision = dense.distribution.prior.covariance, dense.sites.precision
    # E z = U^T C^-1 E (h - mean), and likewise the covariance
    solved = torch.linalg.solve(C + torch.diag(1 / precision), U)
    assert torch.allclose(z, solved.mT @ (dense.sites.shift / precision - mean), atol=1e-8)
    assert torch.allclose(root @ root.mT, torch.eye(3, dtype=double) - U.mT @ solved, atol=1e-8)
    latent = approximation.distribution.noiseless(approximation.latent_mean.unsqueeze(-2)).squeeze(-2)
    assert torch.allclose(latent, dense.mean, atol=1e-7)
    assert torch.allclose(
        corrected_log_normalizer(approximation.distribution), corrected_log_normalizer(dense.distribution), atol=1e-8
    )


@pytest.mark.parametrize("p", [4, 60])
def test_what_is_told_of_shared_coordinates_is_watched(p):
    U, N, block, _ = parts(4, p=p)
    noise = 0.2 + torch.rand(len(U), dtype=double, generator=torch.Generator().manual_seed(0))
    noisy = NoisyPrior(BorderedPrior(U, N, block), noise)
    inverse = torch.linalg.inv(noisy.covariance)
    residual = torch.randn(6, len(U), dtype=double, generator=torch.Generator().manual_seed(1))
    own = noise if noisy.prior.is_low_rank else 1 / inverse.diagonal()  # latent coordinates are drawn too, or not
    assert torch.allclose(noisy.own_variances, own)
    watched = noisy.expectations()(residual)
    assert torch.allclose(watched[:, :-1], residual @ inverse @ U)
    assert torch.allclose(watched[:, -1], (residual @ inverse @ U).square().sum(-1))

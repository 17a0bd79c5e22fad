"""Weights of nodes, against an integral in another basis and one node at a time; default priors and units."""

import math

import pytest
import torch
from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from torch.distributions import MultivariateNormal, Normal
from transformed_cases import data, shared

from botorch_skewgp.models.defaults import MIN_LENGTHSCALE
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.transformed.defaults import (
    default_transformed_covar_module,
    default_transformed_likelihood,
    outcome_units,
)
from botorch_skewgp.warpings import Affine, BoxCox


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_evidence_of_a_node_is_an_integral(mean):
    # of a few numbers, over coefficients and scale by brute force in the coordinates of another basis
    X, Y = data(n=5, d=1)
    transformed = BayesianTransformedGP(X, Y, warping=BoxCox(), mean=mean, standardize=False)
    log_likelihood = transformed._process.weigh(transformed.coordinates().unsqueeze(0)).log_likelihood
    z = transformed.warping(Y.squeeze(-1)).detach()
    K = transformed.covar_module(X).to_dense().detach() + transformed.likelihood.noise.detach() * torch.eye(5).to(X)
    M = torch.ones_like(X) if mean == "constant" else torch.cat([torch.ones_like(X), X], -1)
    p = M.shape[-1]
    # the marginal law of the contrasts N^T z, with N orthogonal to M: a multivariate t without location
    null = torch.linalg.svd(M.mT)[2][p:].mT
    contrast, covariance = null.mT @ z, null.mT @ K @ null
    q = contrast @ torch.linalg.solve(covariance, contrast)
    df = 5 - p
    value = math.lgamma(df / 2) - df / 2 * math.log(math.pi) - 0.5 * torch.logdet(covariance) - df / 2 * q.log()
    # and the Jacobian of the change from z to contrasts and coefficients
    value = value - 0.5 * torch.logdet(M.mT @ M) + (1 - p / 5) * transformed.warping.log_derivative(Y.squeeze(-1)).sum()
    assert log_likelihood.item() == pytest.approx(value.item(), rel=1e-9)


def test_kernels_are_shared_by_nodes(generator):
    transformed = shared("sinh-arcsinh")
    u = transformed.coordinates() + 0.1 * torch.randn(16, 5, generator=generator, dtype=torch.float64)
    u[:, :3] = u[::4, :3].repeat(4, 1)
    nodes = transformed._process.weigh(u)
    assert len(nodes.regression.root) == 4
    # the same nodes without sharing, one at a time
    each = torch.cat([transformed._process.weigh(u.unsqueeze(0)).log_likelihood for u in nodes.u])
    torch.testing.assert_close(nodes.log_likelihood, each, rtol=1e-10, atol=1e-10)


def test_kept_nodes_keep_what_is_theirs():
    nodes = shared("sinh-arcsinh", tolerance=0.0).weighted_nodes
    assert len(nodes.u) == 16
    some = nodes.keep(torch.tensor([1, 4, 6, 15]))
    torch.testing.assert_close(some.of_kernels[some.kernel][:, :3], some.u[:, :3])
    torch.testing.assert_close(
        some.select(some.regression.square), nodes.select(nodes.regression.square)[[1, 4, 6, 15]], rtol=0, atol=0
    )


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_laws_of_mean_and_scale_are_the_posterior_of_both(mean):
    # of a node: up to a constant the prior 1 / tau times the likelihood, anywhere
    X, Y = data(n=8, d=1)
    transformed = BayesianTransformedGP(X, Y, warping=BoxCox(), mean=mean, quadrature="mode")
    law = transformed.mean_and_scale()
    z = transformed.warping(transformed.units.standardise(Y.squeeze(-1))).detach()
    K = transformed.covar_module(X).to_dense().detach() + transformed.likelihood.noise.detach() * torch.eye(8).to(X)
    M = torch.ones_like(X) if mean == "constant" else torch.cat([torch.ones_like(X), X], -1)
    p = M.shape[-1]
    beta, tau = torch.randn(5, p, dtype=X.dtype), torch.rand(5, dtype=X.dtype) + 0.1
    residual = z - beta @ M.mT
    log_target = 3 * tau.log() - 0.5 * tau * (residual * torch.linalg.solve(K, residual.mT).mT).sum(-1)
    center, A = law.coefficients[0], M.mT @ torch.linalg.solve(K, M)
    given_tau = MultivariateNormal(center, precision_matrix=A * tau.view(-1, 1, 1))
    constant = given_tau.log_prob(beta) + law.precision.log_prob(tau) - log_target
    torch.testing.assert_close(constant, constant[:1].expand(5), rtol=0, atol=1e-7)
    betas, taus = law.sample(20000)
    assert betas.shape == (20000, p)
    assert taus.mean() == pytest.approx(law.precision.mean.item(), rel=4 / math.sqrt(20000 * law.concentration))
    white = (betas - center) @ torch.linalg.cholesky(A) * taus.sqrt().unsqueeze(-1)
    torch.testing.assert_close(white.mT.cov().view(p, p), torch.eye(p).to(X), rtol=0, atol=4 * math.sqrt(2 / 20000))


def test_log_priors_are_densities_of_coordinates():
    # the logarithm of a positive parameter has a normal prior; a location has its own
    transformed = shared("sinh-arcsinh")
    u = transformed.coordinates() + torch.tensor([[0.0], [0.7], [-1.1]], dtype=torch.float64)
    median = math.log(0.3 * math.sqrt(2))
    laws = {"lengthscale": (median, 2.0), "noise": (-4.0, 2.0), "skewness": (0.0, 1.0), "tail_weight": (0.0, 0.75)}
    bounds = {"lengthscale": MIN_LENGTHSCALE, "noise": MIN_INFERRED_NOISE_LEVEL}  # coordinates count from there
    expected = torch.zeros(3, dtype=torch.float64)
    for name, coordinate in zip(transformed.parameter_names(), u.mT, strict=True):
        name = name.rpartition("raw_")[-1]
        value = (coordinate.exp() + bounds[name]).log() if name in bounds else coordinate
        expected += Normal(*laws[name]).log_prob(value) + coordinate - value
    torch.testing.assert_close(transformed.log_prior(u), expected)


@pytest.mark.parametrize("dim", [1, 16])
def test_parameters_start_at_the_medians_of_their_priors(dim):
    kernel, likelihood = default_transformed_covar_module(dim), default_transformed_likelihood()
    torch.testing.assert_close(kernel.lengthscale, torch.full((1, dim), 0.3 * math.sqrt(dim)))
    torch.testing.assert_close(kernel.lengthscale_prior.cdf(kernel.lengthscale), torch.full((1, dim), 0.5))
    torch.testing.assert_close(likelihood.noise_covar.noise_prior.cdf(likelihood.noise), torch.tensor([0.5]))


@pytest.mark.parametrize(
    ("values", "warping", "units"),
    [
        ((0.0, 1.0, 2.0, 3.0, 1e6), Affine, (2.0, 2 / 1.349)),  # an outlier does not count
        ((0.0, 0.0, 0.0, 0.0, 5.0), Affine, (0.0, math.sqrt(5))),  # quartiles coincide: the standard deviation
        ((1.0, 10.0, 100.0), BoxCox, (0.0, 10.0)),  # the geometric mean
        ((0.0, 1e200, 2e200, 3e200, 4e200), Affine, (2e200, 2e200 / 1.349)),  # squares overflow
    ],
)
def test_units_of_outcomes(values, warping, units):
    assert outcome_units(torch.tensor(values, dtype=torch.double), warping()) == pytest.approx(units)

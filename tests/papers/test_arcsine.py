"""The arcsine kernel against the network that it is the covariance of, and against quadrature."""

import math
import pickle

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import ScaleKernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels import slope_covariance
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.papers import ArcsineKernel

DOUBLE = torch.float64


def kernel(weights=(0.3, 2.0, 0.7), bias=0.5, **kwargs) -> ArcsineKernel:
    entry = ArcsineKernel(ard_num_dims=len(weights), **kwargs).double()
    entry.weight_variance, entry.bias_variance = torch.tensor(weights, dtype=DOUBLE), bias
    return entry


def points(generator: torch.Generator, n: int, d: int = 3) -> Tensor:
    return torch.randn(n, d, dtype=DOUBLE, generator=generator)


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_covariance_of_a_network_by_quadrature(size, generator):
    """`E[erf(s) erf(t)]` for the two normal inputs of a hidden unit, by the trapezoidal rule."""
    X, Z = size * points(generator, 4), size * points(generator, 3)
    nodes = torch.linspace(-9, 9, 20_001, dtype=DOUBLE)
    weights = (-0.5 * nodes.square()).exp()
    weights = weights / weights.sum()
    variances = torch.tensor([0.5, 0.3, 2.0, 0.7], dtype=DOUBLE)

    def inner(a: Tensor, b: Tensor) -> Tensor:
        return (torch.cat([torch.ones(1), a]) * variances * torch.cat([torch.ones(1), b])).sum()

    found = kernel()(X, Z).to_dense()
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            # t given s is normal, and the error function of a normal variable has a mean in closed form
            slope = inner(x, z) / inner(x, x)
            rest = inner(z, z) - slope * inner(x, z)
            s = inner(x, x).sqrt() * nodes
            expected = (weights * torch.erf(s) * torch.erf(slope * s / (1 + 2 * rest).sqrt())).sum()
            assert found[i, j].item() == pytest.approx(expected.item(), abs=1e-10)


def test_diagonal_batches_and_common_weights(generator):
    X = points(generator, 5)
    entry = kernel()
    K = entry(X).to_dense()
    torch.testing.assert_close(entry(X, diag=True), K.diagonal())
    torch.testing.assert_close(entry(X, X.flip(0), diag=True), entry(X, X.flip(0)).to_dense().diagonal())
    common = ArcsineKernel().double()
    common.weight_variance = 0.4
    torch.testing.assert_close(common(X).to_dense(), kernel((0.4,) * 3, math.log(2))(X).to_dense())  # softplus(0)
    batched = ArcsineKernel(ard_num_dims=3, batch_shape=torch.Size([2])).double()
    batched.weight_variance = torch.tensor([[[0.3, 2.0, 0.7]], [[1.0, 1.0, 1.0]]], dtype=DOUBLE)
    batched.bias_variance = torch.tensor([[[0.5]], [[0.1]]], dtype=DOUBLE)
    both = batched(X.expand(2, 5, 3)).to_dense()
    torch.testing.assert_close(both, torch.stack([K, kernel((1.0, 1.0, 1.0), 0.1)(X).to_dense()]))
    torch.testing.assert_close(batched(X.expand(2, 5, 3), diag=True), both.diagonal(dim1=-2, dim2=-1))
    some = kernel((0.3, 0.7), active_dims=(0, 2))
    torch.testing.assert_close(some(X).to_dense(), kernel((0.3, 1e-300, 0.7))(X).to_dense())


@pytest.mark.rounding
def test_far_points_keep_a_proper_covariance(generator):
    """The argument of the arcsine is within rounding of one there."""
    K = kernel()(1e8 * points(generator, 30)).to_dense()
    assert K.isfinite().all()
    assert K.abs().max() <= 1
    assert torch.linalg.eigvalsh(K).min() > -1e-12


def test_derivatives(generator):
    X, Z = points(generator, 3).requires_grad_(), points(generator, 2)
    assert torch.autograd.gradcheck(lambda x: kernel()(x, Z).to_dense(), X)
    assert torch.autograd.gradcheck(lambda x: kernel()(x).to_dense(), X)
    raw = torch.zeros(1, 3, dtype=DOUBLE, requires_grad=True)

    def of_weights(raw: Tensor) -> Tensor:
        return torch.func.functional_call(kernel(), {"raw_weight_variance": raw}, (Z, Z)).to_dense()

    assert torch.autograd.gradcheck(of_weights, raw)


def test_slopes(generator):
    """Covariances of slopes against central differences."""
    X, Z, step = points(generator, 3), points(generator, 2), 1e-4
    K = slope_covariance(kernel(), X, torch.full((3,), 1), Z, torch.full((2,), -1))
    move = step * torch.eye(3, dtype=DOUBLE)[1]
    expected = (kernel()(X + move, Z).to_dense() - kernel()(X - move, Z).to_dense()) / (2 * step)
    torch.testing.assert_close(K, expected, rtol=0, atol=1e-7)


def test_pseudo_points_are_divided_by_the_standard_deviation():
    """`f(u)` given `f(u) / sd(u) > 0` is half-normal: its mean is `sd(u) sqrt(2 / pi)`, wherever `u` is."""
    pseudo = torch.tensor([[0.2], [1.0]], dtype=DOUBLE)
    for i in range(2):
        prior = SkewPrior(pseudo[i : i + 1], phases=torch.ones(1), truncation=torch.zeros(1))
        model = SkewGP(pseudo, mean_module=None, covar_module=kernel((2.0,), 0.1), skew_prior=prior)
        sd = model.covar_module(pseudo, diag=True)[i].sqrt()
        posterior = model.posterior(pseudo[i : i + 1])
        assert posterior.mean.item() == pytest.approx(sd.item() * math.sqrt(2 / math.pi), rel=0.03)


def test_is_fitted_with_priors_and_constraints(generator):
    X = torch.rand(30, 2, dtype=DOUBLE, generator=generator)
    entry = ArcsineKernel(
        ard_num_dims=2,
        weight_variance_prior=LogNormalPrior(0.0, 2.0),
        bias_variance_prior=LogNormalPrior(0.0, 2.0),
        weight_variance_constraint=GreaterThan(1e-3),
        bias_variance_constraint=GreaterThan(1e-3),
    )
    model = SkewGP(X, Binary(X[:, 0] > 0.5), covar_module=ScaleKernel(entry).double())
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    with torch.no_grad():
        before = mll(model(X), None)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 15}})
    with torch.no_grad():
        assert mll.train()(model.train()(X), None) > before
    weights = entry.weight_variance.flatten()
    assert weights[0] > 2 * weights[1]  # the label hangs on the first input
    assert (weights > 1e-3).all()


def test_priors_are_kept_by_pickling_and_set():
    again = pickle.loads(pickle.dumps(kernel(bias_variance_prior=LogNormalPrior(0.0, 1.0))))
    _, module, prior, read, write = next(iter(again.named_priors()))
    write(module, torch.tensor([[2.0]], dtype=DOUBLE))
    assert read(module).item() == pytest.approx(2.0)
    assert isinstance(prior, LogNormalPrior)

"""Covariances in few operations are those of GPyTorch's kernels, with their gradients; others are left to it."""

import pytest
import torch
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import ConstantKernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from torch.autograd import grad

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels.squared_exponential import MAX_SPREAD, SquaredExponential
from botorch_skewgp.observations import Binary, Preference

DOUBLE = torch.float64
X = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
Z = torch.cat([torch.rand(5, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE), X[0]])


def scaled(**options):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2, **options))
    kernel.outputscale, kernel.base_kernel.lengthscale = 700.0, torch.tensor([0.2, 1.3])
    return kernel


def constant():
    kernel = ConstantKernel()
    kernel.constant = torch.tensor([9.0])
    return kernel


KERNELS = {"plain": RBFKernel, "scaled": scaled, "with a constant": lambda: scaled() + constant()}


def by_hand(kernel, x, z):
    """The covariance by its formula, differentiable where points coincide."""
    parts = list(kernel.modules())
    (rbf,) = (part for part in parts if isinstance(part, RBFKernel))
    scale = next((part.outputscale for part in parts if isinstance(part, ScaleKernel)), 1.0)
    level = next((part.constant for part in parts if isinstance(part, ConstantKernel)), 0.0)
    distances = (x.unsqueeze(-2) - z.unsqueeze(-3)) / rbf.lengthscale.squeeze(0)
    return scale * torch.exp(-0.5 * distances.square().sum(-1)) + level


@pytest.mark.parametrize("name", KERNELS)
def test_values_and_derivatives_are_those_of_gpytorch(name):
    kernel = KERNELS[name]().double().requires_grad_(False)
    few = SquaredExponential.of(kernel)
    points = X.clone().requires_grad_()
    torch.testing.assert_close(few.variance(X), kernel(X, diag=True), rtol=1e-14, atol=0)
    weights = torch.randn(4, 3, 8, generator=torch.Generator().manual_seed(2), dtype=DOUBLE)
    cases = [
        (few.among(points), kernel(points).to_dense(), weights[..., :3]),
        (few.with_points(Z)(points), kernel(points, Z).to_dense(), weights),
    ]
    for found, expected, weight in cases:
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
        other = by_hand(kernel, points, points if weight.shape[-1] == 3 else Z)  # GPyTorch's has no curvature at zero
        torch.testing.assert_close(found, other, rtol=1e-12, atol=0)
        first, other_first = (grad((K * weight).sum(), points, create_graph=True)[0] for K in (found, other))
        torch.testing.assert_close(first, grad((expected * weight).sum(), points)[0], rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(first, other_first, rtol=1e-11, atol=1e-11)
        second, other_second = (grad(g.square().sum(), points)[0] for g in (first, other_first))
        torch.testing.assert_close(second, other_second, rtol=1e-10, atol=1e-8)


def test_categories():
    """Two numbers and two categories, in any order: values and derivatives in the numbers."""
    numbers = RBFKernel(ard_num_dims=2, active_dims=(0, 3))
    numbers.lengthscale = torch.tensor([0.3, 0.9])
    categories = CategoricalKernel(ard_num_dims=2, active_dims=(1, 2))
    categories.lengthscale = torch.tensor([0.4, 2.5])
    kernel = (ScaleKernel(numbers * categories) + constant()).double().requires_grad_(False)
    few = SquaredExponential.of(kernel)
    x = torch.rand(4, 3, 4, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
    x[..., 1:3] = (3 * x[..., 1:3]).floor()
    z = torch.cat([x[0], x[1]])
    z[:, 1] = 2 - z[:, 1]
    with_others = x.clone()
    with_others[:, 0, 1] = 7.0  # in no point that stays
    with_others.requires_grad_()
    for found, expected in (
        (few.among(with_others), kernel(with_others).to_dense()),
        (few.with_points(z)(with_others), kernel(with_others, z).to_dense()),
    ):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
        weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(2), dtype=DOUBLE)
        slope, other = (grad((K * weight).sum(), with_others)[0] for K in (found, expected))
        torch.testing.assert_close(slope, other, rtol=1e-11, atol=1e-11)
    shared = CategoricalKernel(active_dims=(1, 2))  # one lengthscale for both
    shared.lengthscale = 0.7
    kernel = (numbers * shared).double().requires_grad_(False)
    torch.testing.assert_close(SquaredExponential.of(kernel).among(x), kernel(x).to_dense(), rtol=1e-12, atol=0)


def test_points_that_nearly_coincide_keep_their_digits():
    """The variance of a difference, far from the origin: 1e-4 lengthscales are left of it."""
    kernel = scaled().double().requires_grad_(False)
    pair = torch.tensor([[100.0, 0.0], [100.00002, 0.0]], dtype=DOUBLE)
    K = SquaredExponential.of(kernel).among(pair)
    gap = (pair[1, 0] - pair[0, 0]) / 0.2
    expected = -2 * 700 * torch.expm1(-0.5 * gap.square())
    torch.testing.assert_close(K[0, 0] + K[1, 1] - 2 * K[0, 1], expected, rtol=1e-4, atol=0)


def test_others_are_left_to_gpytorch():
    others = [
        scaled(active_dims=(0,)),
        RBFKernel(batch_shape=torch.Size([2])),
        ScaleKernel(MaternKernel()),
        scaled() + LinearKernel(),
        scaled() + constant() + constant(),
        scaled() * constant(),
        scaled() * CategoricalKernel(active_dims=(1,)),  # the numbers' kernel has all inputs
        RBFKernel(active_dims=(0,)) * CategoricalKernel(),
    ]
    assert all(SquaredExponential.of(kernel.requires_grad_(False)) is None for kernel in others)
    assert SquaredExponential.of(scaled()) is None  # its parameters are being learned


def test_points_too_far_apart_are_left_to_gpytorch():
    few = SquaredExponential.of(RBFKernel().double().requires_grad_(False))
    reach = MAX_SPREAD**0.5 * few.lengthscale.item()
    points = torch.tensor([[-1.0], [1.0]], dtype=DOUBLE) * reach
    assert few.with_points(0.99 * points) is not None
    assert few.with_points(1.01 * points) is None
    assert few.with_points(0.99 * points.float()) is None  # digits of single precision are too few
    assert few.with_points(points[:0]) is None


@pytest.mark.parametrize("observation", [Preference([[0, 1], [2, 3]]), Binary([1, 0, 1, 1])], ids=["duels", "labels"])
def test_posteriors_of_default_models_use_it(observation):
    model = SkewGP(Z[:4], observation).eval()
    model.posterior(X)
    assert model.snapshot.prior._with_value_points is not None
    assert model.latent_prior()._with_value_points is None

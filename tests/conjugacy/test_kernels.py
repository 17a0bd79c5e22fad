"""Every kind of observation with kernels of every sort, whose covariances are written out here."""

import math

import gpytorch.kernels as gpytorch_kernels
import pytest
import torch
from kind_cases import KINDS, TEST_X, TRAIN_X, assert_right, model_of, tensor
from torch import Tensor

from botorch_skewgp.papers import ArcsineKernel

GROUPS = [
    ["numeric", "preference", "validity", "partial ranking"],
    ["binary", "censored", "ranking"],
    ["ordinal", "tie", "choice", "affine"],
]


def distance(a: Tensor, b: Tensor) -> Tensor:
    return (a - b.mT).abs()


def rbf(a: Tensor, b: Tensor) -> Tensor:
    return torch.exp(-0.5 * (distance(a, b) / 0.7) ** 2)


def linear(a: Tensor, b: Tensor) -> Tensor:
    return 0.4 * a * b.mT


def arcsine(a: Tensor, b: Tensor) -> Tensor:
    def inner(x: Tensor, y: Tensor) -> Tensor:
        return 2 * (0.5 + 1.5 * x * y)

    a_, b_ = inner(a, a), inner(b, b).mT
    return 2 / math.pi * torch.arcsin(inner(a, b.mT) / ((1 + a_) * (1 + b_)).sqrt())


def matern(a: Tensor, b: Tensor) -> Tensor:
    r = math.sqrt(5) * distance(a, b) / 0.7
    return (1 + r + r**2 / 3) * torch.exp(-r)


WRITTEN_OUT = {
    "arcsine": arcsine,
    "Matern": matern,
    "periodic": lambda a, b: torch.exp(-2 * torch.sin(math.pi * distance(a, b) / 2.5) ** 2 / 0.8),
    "polynomial": lambda a, b: 0.2 * (a * b.mT + 1.1) ** 2,
    "linear": lambda a, b: linear(a, b) + 1.0,
    "sum": lambda a, b: rbf(a, b) + linear(a, b),
    "product": lambda a, b: rbf(a, b) * (1 + linear(a, b)),
}


def made(name: str) -> gpytorch_kernels.Kernel:
    def scaled(value: float, entry: gpytorch_kernels.Kernel) -> gpytorch_kernels.Kernel:
        kernel = gpytorch_kernels.ScaleKernel(entry)
        kernel.outputscale = value
        return kernel

    def constant() -> gpytorch_kernels.Kernel:
        entry = gpytorch_kernels.ConstantKernel()
        entry.constant = torch.ones(1)
        return entry

    smooth, straight = gpytorch_kernels.RBFKernel(), gpytorch_kernels.LinearKernel()
    smooth.lengthscale, straight.variance = 0.7, 0.4
    if name == "arcsine":
        kernel = ArcsineKernel()
        kernel.weight_variance, kernel.bias_variance = 1.5, 0.5
    elif name == "Matern":
        kernel = gpytorch_kernels.MaternKernel(nu=2.5)
        kernel.lengthscale = 0.7
    elif name == "periodic":
        kernel = gpytorch_kernels.PeriodicKernel()
        kernel.period_length, kernel.lengthscale = 2.5, 0.8
    elif name == "polynomial":
        kernel = gpytorch_kernels.PolynomialKernel(power=2)
        kernel.offset = 1.1
        kernel = scaled(0.2, kernel)
    elif name == "linear":
        kernel = straight + constant()
    elif name == "sum":
        kernel = smooth + straight
    else:
        kernel = smooth * (straight + constant())
    return kernel.double()


@pytest.mark.parametrize("group", GROUPS, ids=" and ".join)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "arcsine" else [pytest.mark.slow]) for n in WRITTEN_OUT]
)
def test_kinds_with_a_kernel(name, group):
    Z = torch.cat([TRAIN_X, TEST_X])
    covariance = WRITTEN_OUT[name](Z, Z)
    kernel = made(name)
    torch.testing.assert_close(kernel(Z, Z.flip(0)).to_dense(), covariance.flip(-1), rtol=1e-6, atol=1e-6)
    observations = [KINDS[kind] for kind in group]
    model = model_of(observations, num_draws=1024, covar_module=kernel)
    assert_right(
        model, observations, limit=4.8, covariance_of=lambda points: WRITTEN_OUT[name](*2 * [tensor(*points)]).tolist()
    )

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


def linear(a: Tensor, b: Tensor) -> Tensor:
    return 0.4 * a * b.mT


def arcsine(a: Tensor, b: Tensor) -> Tensor:
    def inner(x: Tensor, y: Tensor) -> Tensor:
        return 2 * (0.5 + 1.5 * x * y)

    a_, b_ = inner(a, a), inner(b, b).mT
    return 2 / math.pi * torch.arcsin(inner(a, b.mT) / ((1 + a_) * (1 + b_)).sqrt())


def matern(a: Tensor, b: Tensor) -> Tensor:
    r = math.sqrt(5) * (a - b.mT).abs() / 0.7
    return (1 + r + r**2 / 3) * torch.exp(-r)


WRITTEN_OUT = {
    "arcsine": arcsine,
    "Matern": matern,
    "sum": lambda a, b: matern(a, b) + linear(a, b),
    "product": lambda a, b: matern(a, b) * (1 + linear(a, b)),
}


def made(name: str) -> gpytorch_kernels.Kernel:
    if name == "arcsine":
        kernel = ArcsineKernel()
        kernel.weight_variance, kernel.bias_variance = 1.5, 0.5
        return kernel.double()
    smooth, straight, constant = (
        gpytorch_kernels.MaternKernel(nu=2.5),
        gpytorch_kernels.LinearKernel(),
        gpytorch_kernels.ConstantKernel(),
    )
    smooth.lengthscale, straight.variance, constant.constant = 0.7, 0.4, torch.ones(1)
    kernel = {"Matern": smooth, "sum": smooth + straight, "product": smooth * (straight + constant)}[name]
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

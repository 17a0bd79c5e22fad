"""Covariances of slopes against GPyTorch's gradient kernels, finite differences, and what gradcheck finds."""

from functools import partial

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import (
    ConstantKernel,
    CosineKernel,
    IndexKernel,
    LinearKernel,
    Matern52KernelGrad,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    PolynomialKernelGrad,
    RBFKernel,
    RBFKernelGrad,
    RQKernel,
    ScaleKernel,
)

from botorch_skewgp.kernels import slope_covariance
from botorch_skewgp.kernels.judges import JudgeKernel
from botorch_skewgp.papers import ArcsineKernel

D = 3
VALUE = -1
LENGTHSCALE = torch.tensor([[0.4, 0.9, 1.3]], dtype=torch.float64)


def points(n, generator, *batch_shape) -> torch.Tensor:
    return torch.rand(*batch_shape, n, D, generator=generator, dtype=torch.float64)


def values_and_all_slopes(kernel, X, Z):
    """The order of GPyTorch's gradient kernels: of each point the value, then the slope in every input."""

    def repeated(points):
        reads = torch.tensor([VALUE, *range(D)]).repeat(points.shape[-2])
        return points.repeat_interleave(D + 1, dim=-2), reads

    return slope_covariance(kernel, *repeated(X), *repeated(Z))


def with_lengthscale(kernel):
    kernel = kernel.double()
    if kernel.has_lengthscale:
        kernel.lengthscale = LENGTHSCALE if kernel.ard_num_dims else LENGTHSCALE[:, :1]
    return kernel


GRADIENT_KERNELS = {
    "rbf": (RBFKernel(), RBFKernelGrad()),
    "rbf, ARD": (RBFKernel(ard_num_dims=D), RBFKernelGrad(ard_num_dims=D)),
    "matern": (MaternKernel(nu=2.5), Matern52KernelGrad()),
    "matern, ARD": (MaternKernel(nu=2.5, ard_num_dims=D), Matern52KernelGrad(ard_num_dims=D)),
    "polynomial": (PolynomialKernel(power=3), PolynomialKernelGrad(power=3)),
}


@pytest.mark.parametrize("name", GRADIENT_KERNELS)
def test_against_the_gradient_kernels_of_gpytorch(name, generator):
    kernel, reference = (with_lengthscale(entry) for entry in GRADIENT_KERNELS[name])
    X = points(4, generator)
    Z = torch.cat([X[:2], points(3, generator)])  # two points in both
    found = values_and_all_slopes(kernel, X, Z)
    torch.testing.assert_close(found, reference(X, Z).to_dense(), rtol=1e-9, atol=1e-9)


def smooth_kernels() -> dict[str, gpytorch.kernels.Kernel]:
    first_two = MaternKernel(nu=1.5, ard_num_dims=2, active_dims=[0, 1])
    last = RBFKernel(active_dims=[2])
    scaled = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=D))
    scaled.outputscale = 2.3
    return {
        "rational quadratic": RQKernel(ard_num_dims=D),
        "periodic": PeriodicKernel(ard_num_dims=D),
        "linear": LinearKernel(),
        "matern with nu = 1.5": MaternKernel(nu=1.5),
        "scaled": scaled,
        "sum": ScaleKernel(RBFKernel()) + LinearKernel(),
        "sum over parts of the inputs": first_two + last,
        "product over parts of the inputs": first_two * last,
        "scaled sum of a product": ScaleKernel(first_two * last + RQKernel(active_dims=[1])),
        "active inputs in another order": RBFKernel(ard_num_dims=2, active_dims=[2, 0]),
    }


AT_ONE_POINT = {"RBF": RBFKernel(), "RQ": RQKernel(), "scaled": ScaleKernel(RQKernel()), "arcsine": ArcsineKernel()}
AT_ONE_POINT |= {"judges": JudgeKernel(RQKernel(), RBFKernel()), "polynomial": PolynomialKernel(power=2)}
AT_ONE_POINT |= {"linear": LinearKernel() + RQKernel()}


@pytest.mark.parametrize("kernel", AT_ONE_POINT.values(), ids=AT_ONE_POINT)
@pytest.mark.parametrize("num", [1, 3])
def test_variances_of_slopes_against_finite_differences(kernel, num, generator):
    """At points that coincide, where a clamped distance may have no second derivative, and at one point alone."""
    kernel, X, h = kernel.double(), points(num, generator), 1e-4
    step, dims = h * torch.eye(D, dtype=torch.float64)[0], torch.zeros(num, dtype=torch.long)
    found = slope_covariance(kernel, X, dims, X, dims)
    with torch.no_grad():
        ends = [[kernel(X + a * step, X + b * step).to_dense() for b in (1, -1)] for a in (1, -1)]
        expected = (ends[0][0] - ends[0][1] - ends[1][0] + ends[1][1]) / (4 * h * h)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", smooth_kernels())
def test_against_finite_differences(name, generator):
    """Of values of the kernel as GPyTorch computes them, along a direction at points and at others apart."""
    kernel = smooth_kernels()[name].double()
    X, Z, h = points(3, generator), points(4, generator), 1e-3
    u, v = (torch.randn(D, generator=generator, dtype=torch.float64) for _ in range(2))

    def central(stencil):  # fourth order
        return (8 * (stencil(1) - stencil(-1)) - (stencil(2) - stencil(-2))) / (12 * h)

    def moved(a, b=0):
        return kernel(X + a * h * u, Z + b * h * v).to_dense()

    with torch.no_grad():
        found = values_and_all_slopes(kernel, X, Z).view(3, D + 1, 4, D + 1)
        torch.testing.assert_close(found[:, 0, :, 0], moved(0), rtol=1e-12, atol=1e-12)
        slopes = torch.einsum("ndm,d->nm", found[:, 1:, :, 0], u)
        torch.testing.assert_close(slopes, central(moved), rtol=1e-7, atol=1e-8)
        slopes = torch.einsum("nimj,i,j->nm", found[:, 1:, :, 1:], u, v)
        expected = central(lambda a: central(lambda b: moved(a, b)))
        torch.testing.assert_close(slopes, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # linear_operator's products
def test_slopes_beside_categories(generator):
    """The last category has no successor."""
    rbf, categories = RBFKernel(active_dims=[0, 1]), IndexKernel(num_tasks=2, rank=1, active_dims=[2])
    X = points(2, generator).index_fill(-1, torch.tensor([2]), 1.0)
    first = torch.zeros(2, dtype=torch.long)
    found = slope_covariance((rbf * categories).double(), X, first, X, first)
    expected = slope_covariance(rbf.double(), X, first, X, first) * categories.covar_matrix.to_dense()[1, 1]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


# -d^2/dx^2 of the kernel at zero, for lengthscale l: 1 / l^2 for RBF, 3 / l^2 and 5 / (3 l^2) for Matern
@pytest.mark.parametrize(
    ("kernel", "factor"),
    [(RBFKernel(), 1), (MaternKernel(1.5), 3), (MaternKernel(2.5), 5 / 3)],
    ids=["rbf", "matern 1.5", "matern 2.5"],
)
@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-7])
def test_points_that_coincide_or_nearly_do(kernel, factor, distance, generator):
    """The variance of a slope has its closed form, with none of it lost to cancellation."""
    kernel = kernel.double()
    kernel.lengthscale = 0.3
    X = 100 + points(1, generator)  # far from zero
    Z = X + distance * torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    in_first, value = torch.tensor([0]), torch.tensor([VALUE])
    variance = slope_covariance(kernel, X, in_first, Z, in_first)
    torch.testing.assert_close(variance.item(), factor / 0.3**2, rtol=1e-5, atol=0)
    with_value = slope_covariance(kernel, X, value, Z, in_first)
    expected = -factor * float((Z - X)[0, 0]) / 0.3**2
    torch.testing.assert_close(with_value.item(), expected, rtol=1e-5, atol=1e-15)
    with_other = slope_covariance(kernel, X, in_first, Z, torch.tensor([1]))
    assert with_other.abs().item() < 1e-12


@pytest.mark.parametrize("kernel", [RBFKernel(), MaternKernel(1.5), MaternKernel(2.5), ScaleKernel(RQKernel())])
def test_batches_gradients_and_precision(kernel, generator):
    X, Z, kernel = points(3, generator, 2, 1), points(4, generator, 5), kernel.double()
    dims_X, dims_Z = torch.tensor([VALUE, 0, 2]), torch.tensor([1, VALUE, 0, 2])
    found = slope_covariance(kernel, X, dims_X, Z, dims_Z)
    assert found.shape == (2, 5, 3, 4)
    torch.testing.assert_close(found[1, 3], slope_covariance(kernel, X[1, 0], dims_X, Z[3], dims_Z))
    assert slope_covariance(kernel, X, dims_X, Z[:, :0], dims_Z[:0]).shape == (2, 5, 3, 0)
    with torch.no_grad():
        without = slope_covariance(kernel, X, dims_X, Z, dims_Z)
    assert not without.requires_grad
    torch.testing.assert_close(without, found.detach())
    single = slope_covariance(kernel.float(), X.float(), dims_X, Z.float(), dims_Z)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "kernel",
    [RBFKernel(ard_num_dims=D), MaternKernel(nu=1.5), MaternKernel(nu=2.5), RQKernel()],
    ids=lambda k: f"{type(k).__name__} {getattr(k, 'nu', '')}",
)
@pytest.mark.parametrize("same", [False, True], ids=["apart", "the same points"])
def test_derivatives_in_points_and_hyperparameters(kernel, same, generator):
    kernel = kernel.double()
    kernel.lengthscale = 0.8
    dims = torch.tensor([VALUE, 0, 2])
    X = points(3, generator).requires_grad_()
    Z = points(3, generator).requires_grad_()
    raw = kernel.raw_lengthscale.detach().clone().requires_grad_()

    def covariance(X, Z, raw):
        with torch.nn.utils.stateless._reparametrize_module(kernel, {"raw_lengthscale": raw}):
            return slope_covariance(kernel, X, dims, X if same else Z, dims)

    if same:  # the training points and what is learned about them
        assert torch.autograd.gradcheck(lambda raw: covariance(X.detach(), Z, raw), (raw,))
    else:
        assert torch.autograd.gradcheck(covariance, (X, Z, raw))


def test_second_derivatives_in_points(generator):
    """Newton's methods ask for them: `gradgradcheck` of what acquisition functions use, values with slopes."""
    X, Z, dims, values = points(2, generator).requires_grad_(), points(2, generator), torch.tensor([0, 2]), [VALUE] * 2
    for kernel in (RBFKernel().double(), MaternKernel(nu=1.5).double(), MaternKernel(nu=2.5).double()):
        covariance = partial(slope_covariance, kernel, dims_X=torch.tensor(values), Z=Z, dims_Z=dims)
        assert torch.autograd.gradgradcheck(covariance, (X,))


def test_constant_kernels_have_no_slopes(generator):
    """A constant part of a sum drops out."""
    X, dims = points(3, generator), torch.tensor([0, 1, 2])
    rbf, alone = RBFKernel().double(), ConstantKernel().double()
    total = rbf + alone
    torch.testing.assert_close(slope_covariance(total, X, dims, X, dims), slope_covariance(rbf, X, dims, X, dims))
    assert (slope_covariance(alone, X, dims, X, dims) == 0).all()


class OfTorch(gpytorch.kernels.Kernel):
    def forward(self, x1, x2, diag=False, **params):
        return torch.exp(-torch.cdist(x1, x2).square())


def test_kernels_without_slopes_are_refused(generator):
    X, dims = points(2, generator), torch.tensor([0, 1])
    with pytest.raises(UnsupportedError, match=r"Matern kernel with nu = 0\.5 has no slopes"):
        slope_covariance(ScaleKernel(MaternKernel(nu=0.5)).double(), X, dims, X, dims)
    for kernel in (CosineKernel(), OfTorch()):  # written by a distance: without slopes at zero, without second ones
        with pytest.raises(UnsupportedError, match=f"cannot be found for {type(kernel).__name__}"):
            slope_covariance(kernel.double(), X, dims, X, dims)

"""Whatever a kernel overrides or sets, the model's prior, slopes and categories are those of the kernel itself."""

import pytest
import torch
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.means import ZeroMean

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels import ItemEffectKernel, slope_covariance
from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.kernels.evaluation import PlusConstantKernel, covariance_between, variance_of_difference
from botorch_skewgp.kernels.items import categorical_inputs
from botorch_skewgp.kernels.judges import JudgeKernel, LinearTastesKernel, Reliability
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.observations import Binary

DOUBLE = torch.float64
D = 3
X, Z = torch.rand(2, 4, D, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))


class Tapered:
    """A variance that grows with the first input of the kernel."""

    def forward(self, x1, x2, diag=False, **params):
        K, w1, w2 = super().forward(x1, x2, diag=diag, **params), 1 + x1[..., 0], 1 + x2[..., 0]
        return K * w1 * w2 if diag else K * (w1.unsqueeze(-1) * w2.unsqueeze(-2))


class TaperedScale(Tapered, ScaleKernel):
    pass


class TaperedSum(Tapered, AdditiveKernel):
    pass


class TaperedProduct(Tapered, ProductKernel):
    pass


class TaperedLinear(Tapered, LinearKernel):
    pass


class TaperedRBF(Tapered, RBFKernel):
    pass


class Whole(AdditiveKernel):
    """A sum to which nothing is added."""

    def __add__(self, other):
        raise NotImplementedError


class Warped(Kernel):
    """A kernel of another kernel's, at squared inputs."""

    def __init__(self, base_kernel):
        super().__init__()
        self.base_kernel = base_kernel

    def forward(self, x1, x2, diag=False, **params):
        return self.base_kernel(x1.square(), x2.square(), diag=diag, **params)


def with_inputs(kernel, inputs):
    kernel.active_dims = torch.tensor(inputs)
    return kernel


def scaled(base_kernel, scale=3.0, **options):
    kernel = ScaleKernel(base_kernel, **options)
    kernel.outputscale = scale
    return kernel


def ard(*lengthscales, **options):
    kernel = RBFKernel(ard_num_dims=len(lengthscales), **options)
    kernel.lengthscale = torch.tensor(lengthscales)
    return kernel


def matern(**options):
    return MaternKernel(nu=2.5, **options)


KERNELS = {
    "scale with inputs": lambda: scaled(ard(0.3, 0.9), active_dims=[2, 0]),
    "scale of a part with inputs": lambda: scaled(ard(0.3, 0.9, active_dims=[2, 0])),
    "scale of a scale with inputs": lambda: scaled(scaled(matern(active_dims=[1]))),
    "scale with inputs of a sum with inputs": lambda: scaled(
        RBFKernel(active_dims=[0]) + matern(active_dims=[1]), active_dims=[2, 0]
    ),
    "sum with inputs": lambda: with_inputs(ard(0.3, 0.9) + LinearKernel(), [1, 2]),
    "product with inputs": lambda: with_inputs(RBFKernel(active_dims=[1]) * LinearKernel(), [1, 2]),
    "subclass of a scale": lambda: TaperedScale(matern(active_dims=[1, 2])),
    "subclass of a scale beside a line": lambda: TaperedScale(RBFKernel()) + LinearKernel(),
    "subclass of a sum": lambda: TaperedSum(scaled(RBFKernel()), LinearKernel()),
    "subclass of a product": lambda: TaperedProduct(RBFKernel(active_dims=[0]), LinearKernel()),
    "subclass of a line in a sum": lambda: TaperedLinear() + scaled(RBFKernel()),
    "subclass of a squared exponential": lambda: scaled(TaperedRBF()),
    "a sum to which nothing is added": lambda: Whole(RBFKernel(), matern()),
    "of another kernel": lambda: Warped(scaled(matern(active_dims=[1, 2])) + LinearKernel()),
    "with a constant": lambda: PlusConstantKernel(TaperedSum(RBFKernel(), LinearKernel()), ConstantKernel()),
}


def build(name):
    return KERNELS[name]().double().requires_grad_(False)


def pairwise(kernel, x, z):
    """The kernel itself at one point after another, where no set is equal to another."""
    return torch.stack([kernel(point, torch.cat([z, z])).to_dense()[0, : len(z)] for point in x.unsqueeze(-2)])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("mean", [IntegratedConstantMean(4.0), ZeroMean()], ids=["integrated", "zero"])
def test_the_prior_of_a_model_is_that_of_its_kernel(name, mean):
    kernel = build(name)
    prior = SkewGP(X, Binary([1, 0, 1, 1]), covar_module=kernel, mean_module=mean).latent_prior()
    constant = 4.0 if isinstance(mean, IntegratedConstantMean) else 0.0
    many = torch.cat([X, Z])  # more points than those of the data
    sets = [(X, None), (many, None), (X[:1], None), (Z, X), (X, X), (X.expand(2, -1, -1), Z)]
    for x, z in sets:
        expected = pairwise(kernel, x[-1] if x.ndim == 3 else x, x if z is None else z) + constant
        covariance = prior.covariance_at(x, z)
        torch.testing.assert_close(covariance.to_dense()[-len(expected) :].reshape(-1, *expected.shape)[-1], expected)
        if z is None:
            torch.testing.assert_close(covariance.diagonal(), expected.diagonal())


FORMULAS = {
    "scaled": lambda: scaled(RBFKernel()),
    "scaled with inputs": lambda: scaled(ard(0.3, 0.9, active_dims=[2, 0])),
    "checked": lambda: CheckedScaleKernel(CheckedRBFKernel(ard_num_dims=D)),
    "sum": lambda: scaled(ard(0.3, 0.9), active_dims=[1, 2]) + LinearTastesKernel(D) + scaled(RBFKernel()),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_of_known_kernels_have_the_derivatives_of_the_kernels(name, dtype):
    """In parameters and points, first and second, for batches and after parameters have changed."""
    kernel, x = FORMULAS[name]().to(dtype), X[:2].requires_grad_()
    parameters = list(kernel.parameters())
    with torch.no_grad():
        parameters[0].add_(0.3)
    for x1, x2 in ((x, Z), (x, None), (x.expand(2, -1, -1), Z)):
        found, expected = [], []
        for results, K in (
            (found, covariance_between(kernel, x1, x2)),
            (expected, kernel(x1, x2.clone() if x2 is not None else x1 + 0)),
        ):
            slope = torch.autograd.grad(K.to_dense().square().sum(), [x, *parameters], create_graph=True)
            results += [K.to_dense(), *slope, *torch.autograd.grad(slope[-1].sum(), [x, parameters[-1]])]
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9 if dtype == torch.float64 else 1e-4, atol=1e-9)
    pair, K = torch.stack([X[0], X[0] + 1e-9]), covariance_between(kernel, X[:2]).to_dense()
    torch.testing.assert_close(variance_of_difference(kernel, X[:2]), K[0, 0] + K[1, 1] - 2 * K[0, 1])
    if name == "scaled":  # where differences of covariances have no digits
        expected = kernel.outputscale * D * (1e-9 / kernel.base_kernel.lengthscale.squeeze().double()).square()
        torch.testing.assert_close(variance_of_difference(kernel, pair), expected, rtol=1e-6, atol=0.0)


def test_a_kernel_that_was_changed_by_hand_is_evaluated_by_itself():
    by_hand = scaled(RBFKernel()).double()
    by_hand.base_kernel.forward = lambda x1, x2, **params: torch.ones(len(x1), len(x2), dtype=DOUBLE)
    assert bool((covariance_between(by_hand, X, Z).to_dense() == by_hand.outputscale).all())
    batch = ScaleKernel(RBFKernel(batch_shape=torch.Size([2])), batch_shape=torch.Size([2])).double()
    batch.outputscale = torch.tensor([1.0, 2.0])
    torch.testing.assert_close(covariance_between(batch, X, Z).to_dense(), batch(X, Z).to_dense())


OF_JUDGES = {
    "with reliability": lambda: JudgeKernel(TaperedScale(RBFKernel()), LinearTastesKernel(D), Reliability(2)),
    "of inputs": lambda: JudgeKernel(scaled(ard(0.3, 0.9), active_dims=[2, 0]) + LinearKernel(), TaperedLinear()),
}


@pytest.mark.parametrize("name", [*KERNELS, *OF_JUDGES])
def test_slopes_are_differences_of_the_kernel_itself(name):
    """Along a direction, at points of one set and of another, one of which is in both."""
    kernel = OF_JUDGES[name]().double().requires_grad_(False) if name in OF_JUDGES else build(name)
    if name in OF_JUDGES:
        kernel.reliability and kernel.reliability.logarithm.copy_(torch.tensor([0.5, -1.0]))
    x, z, h = X, torch.cat([X[:1], Z]), 1e-4
    codes = [torch.tensor([[0.0], [1.0], [2.0], [1.0], [2.0]], dtype=DOUBLE)] if name in OF_JUDGES else []
    u, v = torch.randn(2, D, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))

    def moved(a, b):
        sets = [[points + step, *(code[: len(points)] for code in codes)] for points, step in ((x, a * u), (z, b * v))]
        return pairwise(kernel, *(torch.cat(columns, dim=-1) for columns in sets))

    def found(of_x, of_z):
        sets = [torch.cat([points, *(code[: len(points)] for code in codes)], dim=-1) for points in (x, z)]
        dims = [torch.full((len(points),), dim) for points, dim in zip(sets, (of_x, of_z), strict=True)]
        return slope_covariance(kernel, sets[0], dims[0], sets[1], dims[1])

    torch.testing.assert_close(found(-1, -1), moved(0, 0))
    along_u = sum(u[i] * found(i, -1) for i in range(D))
    torch.testing.assert_close(along_u, (moved(h, 0) - moved(-h, 0)) / (2 * h), rtol=1e-6, atol=1e-6)
    along_both = sum(u[i] * v[j] * found(i, j) for i in range(D) for j in range(D))
    ends = moved(h, h) - moved(h, -h) - moved(-h, h) + moved(-h, -h)
    torch.testing.assert_close(along_both, ends / (4 * h * h), rtol=1e-4, atol=1e-5)


def test_a_kernel_is_as_before():
    """What is changed to be evaluated is a copy, with the parameters themselves."""
    kernel = (scaled(RBFKernel()) + LinearKernel()).double()
    fields = [dict(vars(part)) for part in kernel.modules()]
    covariance_between(kernel, X, Z).to_dense().sum().backward()
    slope_covariance(kernel, X, torch.zeros(4, dtype=torch.long), Z, torch.zeros(4, dtype=torch.long))
    assert [vars(part).keys() for part in kernel.modules()] == [before.keys() for before in fields]
    assert all(parameter.grad is not None for parameter in kernel.parameters())


@pytest.mark.parametrize(
    ("kernel", "categories"),
    [
        (lambda: CategoricalKernel(), [0, 1, 2, 3]),
        (lambda: RBFKernel() + ItemEffectKernel(active_dims=[3, 1]), [1, 3]),
        (lambda: ScaleKernel(RBFKernel(active_dims=[0]) * CategoricalKernel(active_dims=[1]), active_dims=[2, 0]), [0]),
        (lambda: ScaleKernel(CategoricalKernel(active_dims=[2])) + RBFKernel(), [2]),
        (lambda: with_inputs(TaperedSum(RBFKernel(), CategoricalKernel(active_dims=[1])), [1, 3]), [3]),
        (lambda: scaled(RBFKernel()), []),
        (lambda: ConstantKernel(), []),
    ],
)
def test_categories_are_the_inputs_that_reach_their_kernels(kernel, categories):
    assert categorical_inputs(kernel(), 4) == categories


@pytest.mark.parametrize("lengthscale", [1e-2, 1e-6, 1e-12])
def test_variances_are_the_scale_however_short_lengthscales_are(lengthscale):
    """Squares of 1e24 lose all digits of their difference."""
    X = torch.rand(6, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = lengthscale, 3.0
    variances = covariance_between(kernel, X).to_dense().diagonal()
    torch.testing.assert_close(variances, torch.full((6,), 3.0, dtype=torch.double), rtol=1e-12, atol=0)

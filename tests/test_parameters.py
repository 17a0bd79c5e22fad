"""Modules with tensors in the place of parameters, and unbounded coordinates of parameters."""

import math

import pytest
import torch
from gpytorch.constraints import GreaterThan, Interval, LessThan, Positive
from gpytorch.kernels import AdditiveKernel, MaternKernel, RBFKernel
from gpytorch.priors import LogNormalPrior, UniformPrior

from botorch_skewgp.parameters import (
    ParameterSpace,
    bijection,
    constrained,
    from_unbounded,
    unconstrained,
    with_parameters,
)
from botorch_skewgp.warpings import Affine, Composition, SinhArcsinh

DOUBLE = torch.float64


def test_the_original_stays_as_it_is():
    warping = Composition([Affine(), SinhArcsinh()])
    before = {name: value.clone() for name, value in warping.state_dict().items()}
    name = "warpings.1.raw_skewness"
    given = torch.tensor([[0.5], [1.0]], dtype=DOUBLE, requires_grad=True)
    twin = with_parameters(warping, {name: given})
    assert twin(torch.zeros(3, dtype=DOUBLE)).shape == (2, 3)
    assert not any(parameter.requires_grad for parameter in twin.parameters())
    assert all(parameter.requires_grad for parameter in warping.parameters())
    with torch.no_grad():
        next(iter(twin.parameters())).fill_(7.0)
    assert warping.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in warping.state_dict().items())
    (slope,) = torch.autograd.grad(twin(torch.zeros(1, dtype=DOUBLE)).sum(), given)
    assert (slope < 0).all()


def test_modules_that_stand_in_two_places_stay_one():
    part = RBFKernel()
    twin = with_parameters(AdditiveKernel(part, MaternKernel(), part), {}, torch.Size())
    assert twin.kernels[0] is twin.kernels[2]
    assert twin.kernels[0] is not part


def test_kernels_get_the_shape_of_their_batch():
    kernel = AdditiveKernel(RBFKernel(), MaternKernel())
    raw = {f"kernels.{i}.raw_lengthscale": torch.zeros(4, 1, 1) for i in range(2)}
    X = torch.rand(5, 2)
    assert with_parameters(kernel, raw, torch.Size([4]))(X).to_dense().shape == (4, 5, 5)
    assert kernel(X).to_dense().shape == (5, 5)


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        (None, [-3.0, 0.0, 7.0]),
        (Positive(), [1e-6, 1.0, 50.0]),
        (GreaterThan(0.5), [0.5001, 1.0, 30.0]),
        (LessThan(-1.0), [-40.0, -2.0, -1.001]),
        (Interval(-2.0, 3.0), [-1.999, 0.0, 2.9]),
    ],
)
def test_there_and_back_with_the_slope(constraint, values):
    value = torch.tensor(values, dtype=torch.float64)
    x = bijection(constraint, value).inv(value).requires_grad_()
    back, log_slope = from_unbounded(constraint, x)
    torch.testing.assert_close(back, value, rtol=1e-9, atol=1e-12)
    slope = torch.autograd.grad(back.sum(), x)[0]
    torch.testing.assert_close(log_slope, slope.abs().log())
    torch.testing.assert_close(constrained(constraint, unconstrained(constraint, value)), value)
    assert x.diff().gt(0).all() != (isinstance(constraint, LessThan))


def test_priors_without_slopes_have_those_of_the_coordinates():
    kernel = RBFKernel(
        lengthscale_prior=UniformPrior(0.05, 2.0, validate_args=False), lengthscale_constraint=Positive()
    )
    u = torch.tensor([[-2.0], [0.5], [1.0], [-4.0]], dtype=DOUBLE)
    found = ParameterSpace({"kernel": kernel}).log_prior(u)
    torch.testing.assert_close(found[:2], u[:2, 0] - math.log(1.95))
    assert (found[2:] == -math.inf).all()


def test_coordinates_between_two_bounds_end_at_a_limit():
    kernel = RBFKernel(lengthscale_constraint=Interval(0.0, 1.0))
    kernel.raw_lengthscale.data.fill_(1000.0)
    space = ParameterSpace({"kernel": kernel})
    assert float(space.coordinates()) > 30
    assert float(space.coordinates(8.0)) == 8


def test_priors_of_fixed_parameters_do_not_count_whatever_the_number_of_nodes():
    """A single node, as of the mode, has no constant of its own in the evidence."""
    kernel = AdditiveKernel(*(RBFKernel(lengthscale_prior=LogNormalPrior(0.0, 1.0)) for _ in range(2)))
    kernel.kernels[1].raw_lengthscale.requires_grad_(False)
    space, u = ParameterSpace({"kernel": kernel}), torch.tensor([[-0.7], [0.4]], dtype=DOUBLE)
    lengthscale, log_slope = from_unbounded(space.entries[0].constraint, u)
    wanted = LogNormalPrior(0.0, 1.0).log_prob(lengthscale).squeeze(-1) + log_slope.squeeze(-1)
    torch.testing.assert_close(space.log_prior(u), wanted)
    torch.testing.assert_close(space.log_prior(u[:1]), wanted[:1])

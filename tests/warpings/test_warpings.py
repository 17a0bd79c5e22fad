"""Warpings: round trips into the tails, derivatives against autograd and 50-digit arithmetic, domains."""

import copy
import math
import pickle

import mpmath
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from tensors import tensor

from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh

DOUBLE = torch.float64


def made(kind, **values):
    warping = kind()
    warping.initialize(**{name: tensor(value) for name, value in values.items()})
    return warping


WARPINGS = {
    "affine": made(Affine, offset=0.4, scale=2.5),
    "arcsinh": made(Arcsinh, offset=-0.3, scale=1.7, center=0.8, width=0.2),
    "sinh-arcsinh": made(SinhArcsinh, skewness=0.7, tail_weight=0.6),
    "sinh-arcsinh, light tails": made(SinhArcsinh, skewness=-1.2, tail_weight=1.9),
    "Box-Cox": made(BoxCox, power=0.3),
    "Box-Cox, near the logarithm": made(BoxCox, power=1e-9),
    "L-SA": Composition([made(Affine, offset=1.0, scale=0.3), made(SinhArcsinh, skewness=0.5, tail_weight=0.8)]),
    "A-BC": Composition([made(Arcsinh, offset=5.0, scale=0.5, center=0.2, width=2.0), made(BoxCox, power=0.4)]),
    "L-SA-A": Composition([made(Affine, scale=3.0), made(SinhArcsinh, tail_weight=0.5), made(Arcsinh, width=0.1)]),
}
ALL = pytest.mark.parametrize("warping", WARPINGS.values(), ids=WARPINGS)
CENTRE = torch.cat([torch.linspace(-4, 4, 41, dtype=DOUBLE), tensor(1e-7, -1e-7)])


def points(warping, values):
    low, high = warping.domain
    return values[(values > low) & (values < high)]


@ALL
def test_map_inverse_and_slope(warping):
    y = points(warping, CENTRE).sort().values.requires_grad_()
    z = warping(y)
    assert len(y) > 5
    assert (z.diff() > 0).all()
    torch.testing.assert_close(warping.inverse(z), y, rtol=1e-10, atol=1e-12)
    (slope,) = torch.autograd.grad(z.sum(), y)
    torch.testing.assert_close(warping.log_derivative(y), slope.log(), rtol=1e-10, atol=1e-10)
    some = points(warping, CENTRE[:41])[2::5].clone().requires_grad_()  # away from the ends of domains
    torch.autograd.gradcheck(warping.log_derivative, some, atol=1e-5, rtol=1e-4)
    torch.autograd.gradcheck(warping.inverse, warping(some).detach().requires_grad_(), atol=1e-5, rtol=1e-4)


# beyond about 1e150 the hyperbolic sine of a heavy upper tail overflows
@pytest.mark.parametrize("name", ["affine", "arcsinh", "sinh-arcsinh", "sinh-arcsinh, light tails", "Box-Cox", "L-SA"])
def test_round_trips_into_the_tails(name):
    warping = WARPINGS[name]
    size = torch.logspace(2, 130, 33, dtype=DOUBLE)
    y = points(warping, torch.cat([size, -size]))
    z = warping(y)
    assert z.isfinite().all()
    back = warping.inverse(z)
    # relative to y itself, hence on the scale of its logarithm; an exponent of some hundreds costs as many ulps
    torch.testing.assert_close(back.abs().log(), y.abs().log(), rtol=1e-11, atol=1e-11)
    assert (back.sign() == y.sign()).all()


@pytest.mark.parametrize("y", [1e3, -1e40, 1e200, -1e300])
def test_log_derivative_in_the_tails(y):
    with mpmath.workdps(50):
        t, a, b = mpmath.mpf(y), mpmath.mpf("0.5"), mpmath.mpf(2)
        exact = mpmath.log(b) + mpmath.log(mpmath.cosh(b * mpmath.asinh(t) - a)) - mpmath.log(mpmath.sqrt(1 + t * t))
    warping = made(SinhArcsinh, skewness=0.5, tail_weight=2.0)
    assert warping.log_derivative(tensor(y)).item() == pytest.approx(float(exact), rel=1e-13)
    arcsinh = made(Arcsinh, scale=1.5, center=0.5, width=0.25)
    assert arcsinh.log_derivative(tensor(y)).item() == pytest.approx(math.log(1.5) - math.log(abs(y - 0.5)), rel=1e-6)


@ALL
def test_parameters_broadcast_against_the_last_dimension(warping):
    batched = copy.deepcopy(warping)
    for name, parameter in warping.named_parameters():
        *path, leaf = name.split(".")
        owner = batched.get_submodule(".".join(path))
        delattr(owner, leaf)
        setattr(owner, leaf, torch.stack([parameter.detach(), parameter.detach() + 2.0]))
    y = points(warping, CENTRE)[3:30]
    assert batched(y).shape == (2, len(y))
    torch.testing.assert_close(batched(y)[0], warping(y))
    torch.testing.assert_close(batched.inverse(warping(y).expand(2, -1))[0], y, rtol=1e-9, atol=1e-9)
    assert not torch.equal(batched(y)[1], batched(y)[0])


def test_box_cox_at_the_limits_of_power_and_domain():
    y = tensor(1e-12, 0.1, 1.0, 7.0, 1e12)
    torch.testing.assert_close(WARPINGS["Box-Cox, near the logarithm"](y), y.log(), rtol=1e-7, atol=0)
    warping = made(BoxCox, power=0.5)
    assert warping(tensor(-1.0, 0.0)).tolist() == [-2.0, -2.0]
    assert warping.log_derivative(tensor(-1.0, 0.0)).tolist() == [-math.inf, -math.inf]
    assert warping.inverse(tensor(-2.0, -3.0)).tolist() == [0.0, 0.0]
    y = tensor(-1.0, 2.0).requires_grad_()
    (gradient,) = torch.autograd.grad(warping(y).sum(), y)
    assert gradient.isfinite().all()


def test_domain_and_range_of_compositions():
    low, high = WARPINGS["A-BC"].domain
    # the arcsinh is positive above this
    assert low.item() == pytest.approx(0.2 + 2.0 * math.sinh(-5.0 / 0.5))
    assert high.item() == math.inf
    least, most = WARPINGS["A-BC"].range
    assert (least.item(), most.item()) == pytest.approx((-1 / 0.4, math.inf))
    assert [end.item() for end in WARPINGS["L-SA"].range] == [-math.inf, math.inf]


@pytest.mark.parametrize(
    ("name", "power"),
    [("affine", 1), ("arcsinh", math.inf), ("sinh-arcsinh", 1 / 0.6), ("Box-Cox", 1 / 0.3), ("A-BC", math.inf)],
)
def test_tail_power(name, power):
    warping = WARPINGS[name]
    assert warping.tail_power.item() == pytest.approx(power)
    if math.isfinite(power):
        z = tensor(1e8, 1e10)
        growth = warping.inverse(z).log().diff() / z.log().diff()
        assert growth.item() == pytest.approx(power, rel=1e-5)


def test_redundant_parameters_of_the_outermost():
    assert Affine().redundant_parameters() == {"raw_offset", "raw_scale"}
    assert SinhArcsinh().redundant_parameters() == set()
    composed = Composition([Affine(), Arcsinh()])
    assert composed.redundant_parameters() == {"warpings.1.raw_offset", "warpings.1.raw_scale"}


def test_what_is_refused():
    with pytest.raises(InputDataError, match="scale must be positive and finite"):
        Affine().scale = -1.0
    with pytest.raises(InputDataError, match="at least one"):
        Composition([])


@ALL
def test_pickle_and_deepcopy(warping):
    y = points(warping, CENTRE)
    for twin in (pickle.loads(pickle.dumps(warping)), copy.deepcopy(warping)):
        torch.testing.assert_close(twin(y), warping(y), rtol=0, atol=0)
    for _, module, prior, closure, setter in warping.named_priors():
        assert prior.log_prob(closure(module)).isfinite().all()
        assert setter is not None

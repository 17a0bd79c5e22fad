"""Mixtures of warped Student t laws against scipy, bounds of quantiles, samples and their smoothness."""

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from scipy import integrate, stats

from botorch_skewgp.transformed import student_t
from botorch_skewgp.transformed.marginals import TransformedTMarginals
from botorch_skewgp.transformed.posterior import JointScale, TransformedTPosterior, WarpingNodes
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, SinhArcsinh

DOUBLE = torch.float64
DF = 6


def nodes(warping, **values):
    """A warping at nodes of its parameters."""
    raw = {}
    for name, value in values.items():
        value = torch.tensor(value, dtype=DOUBLE)
        constraint = getattr(warping, f"raw_{name}_constraint", None)
        raw[f"raw_{name}"] = value if constraint is None else constraint.inverse_transform(value)
    return WarpingNodes(warping, raw)


WARPINGS = {
    "affine": nodes(Affine()),
    "arcsinh": nodes(Arcsinh(), center=[0.1, -0.2, 0.0], width=[0.5, 1.0, 2.0]),
    "sinh-arcsinh": nodes(SinhArcsinh(), skewness=[0.3, -0.2, 0.1], tail_weight=[0.8, 0.9, 1.1]),
    "Box-Cox": nodes(BoxCox(), power=[0.9, 0.6, 0.7]),
}
NAMES = pytest.mark.parametrize("name", WARPINGS)


def posterior(name, probabilities=(0.5, 0.2, 0.3), q=2, df=DF, shift=0.0, **kwargs):
    """A posterior over two points of three nodes, the first two of which share a kernel."""
    location = torch.tensor([[0.0, 0.4, 1.0], [-0.5, 0.2, 0.3]], dtype=DOUBLE)[:q] + shift
    matrix = torch.tensor([[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.1], [-0.1, 0.9]]], dtype=DOUBLE)[:, :q, :q]
    group, factor = torch.tensor([0, 0, 1]), torch.tensor([0.4, 0.5, 0.3], dtype=DOUBLE)
    scale = (matrix.diagonal(dim1=-2, dim2=-1).mT[:, group] * factor).sqrt()
    weights = torch.tensor(probabilities, dtype=DOUBLE)
    return TransformedTPosterior(
        location, scale, weights, df, WARPINGS[name], JointScale(lambda: matrix, group, factor), **kwargs
    )


def reference_cdf(name, y, **kwargs):
    """The cdf by scipy, at both points."""
    law = posterior(name, **kwargs)
    warping = WARPINGS[name].everywhere
    z = warping(torch.full((1,), y, dtype=DOUBLE)).numpy()
    standard = stats.t(DF, law._location.numpy(), law._scale.numpy())
    low = np.broadcast_to(warping.range[0].detach().numpy(), z.shape)
    missing = standard.cdf(low)
    return ((standard.cdf(z) - missing) / (1 - missing) * law._probabilities.numpy()).sum(-1)


@NAMES
def test_cdf(name):
    law = posterior(name)
    for y in (0.05, 0.7, 3.0):
        np.testing.assert_allclose(law.cdf(y).squeeze(-1), reference_cdf(name, y), rtol=1e-9)
    assert (law.density(math.inf) == 0).all()
    assert (law.log_density(-math.inf) == -math.inf).all()
    assert (law.cdf(math.inf) == 1).all()
    assert (law.cdf(-math.inf) == 0).all()


def test_box_cox_laws_are_truncated():
    law = posterior("Box-Cox", shift=-1.0)
    assert (law.marginals.missing() > 0.05).any()
    np.testing.assert_allclose(law.cdf(0.3).squeeze(-1), reference_cdf("Box-Cox", 0.3, shift=-1.0), rtol=1e-9)
    assert not torch.stack([law.cdf(0.0), law.cdf(-1.0), law.density(-1.0)]).any()
    total = integrate.quad(lambda v: float(law.density(math.exp(v))[0, 0]) * math.exp(v), -40, 30, limit=300)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


@NAMES
@pytest.mark.parametrize("scale", [(0.0, 1.0), (2.0, -3.0)])
def test_quantiles(name, scale):
    law = posterior(name, offset=scale[0], weight=scale[1])
    levels = torch.tensor([1e-4, 0.3, 0.5, 0.999], dtype=DOUBLE)
    quantiles = law.quantile(levels)
    cdf = law.cdf(quantiles)
    torch.testing.assert_close(cdf, levels.view(4, 1, 1).expand(4, 2, 1), rtol=1e-8, atol=1e-11)
    torch.testing.assert_close(law.median, quantiles[2])
    torch.testing.assert_close(law.probability_above(quantiles), 1 - cdf, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(law.log_probability_above(quantiles).exp(), 1 - cdf, rtol=1e-8, atol=1e-10)
    y = quantiles.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(law.cdf(y).sum(), y)
    torch.testing.assert_close(law.density(y), slope, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("probabilities", [(0.5, 0.2, 0.3), (0.02, 0.95, 0.03), (0.999, 0.0005, 0.0005)])
@NAMES
def test_bounds_of_quantiles_hold(name, probabilities):
    law = posterior(name, probabilities).marginals
    for p in (0.01, 0.3, 0.5, 0.94, 0.9999):
        level = torch.full((2,), p, dtype=DOUBLE)
        exact = law.quantile(level)
        slack = 1e-8 * (1 + exact.abs())
        low, high = law.bracket(level)
        assert ((low <= exact + slack) & (exact <= high + slack)).all()


def test_signed_probabilities():
    law = posterior("sinh-arcsinh", (1.3, -0.1, -0.2))
    exact = reference_cdf("sinh-arcsinh", 0.7, probabilities=(1.3, -0.1, -0.2))
    np.testing.assert_allclose(law.cdf(0.7).squeeze(-1), exact, rtol=1e-9)
    torch.testing.assert_close(law.cdf(law.median), torch.full((2, 1), 0.5, dtype=DOUBLE), rtol=1e-9, atol=0)
    torch.testing.assert_close(law.log_probability_above(0.7).exp(), 1 - law.cdf(0.7))


@NAMES
@pytest.mark.parametrize("weight", [1.0, -2.0])
def test_expected_gain(name, weight):
    # of the component's warped values, whose tail is integrated; the sign of the weight tells which of the two
    law, y = posterior(name, offset=0.3, weight=weight), 1.3
    warping, sign = WARPINGS[name].everywhere, math.copysign(1.0, weight)
    low = np.broadcast_to(warping.range[0].detach().numpy(), 3)
    z = warping(torch.tensor([y], dtype=DOUBLE)).expand(3).numpy()
    slope = warping.log_derivative(torch.tensor([y], dtype=DOUBLE)).exp().expand(3).numpy()
    expected = np.zeros(2)
    for i in range(2):
        for s in range(3):
            t = stats.t(DF, law._location[i, s].item(), law._scale[i, s].item())
            upper, lower = lambda v, t=t, s=s: t.sf(v) / t.sf(low[s]), lambda v, t=t, s=s: 1 - t.sf(v) / t.sf(low[s])
            ends = (z[s], np.inf) if sign > 0 else (low[s], z[s])
            gain = integrate.quad(upper if sign > 0 else lower, *ends, epsabs=1e-12)[0]
            expected[i] += law._probabilities[s].item() * gain / slope[s] * abs(weight)
    found = law.log_expected_gain(0.3 + weight * y).exp().squeeze(-1)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-7)


@pytest.mark.parametrize("name", ["affine", "sinh-arcsinh", "Box-Cox"])
@pytest.mark.parametrize("df", [6, 60])
def test_moments(name, df):
    law = posterior(name, df=df, offset=1.0, weight=-2.0)
    v = torch.linspace(-7, 7, 401, dtype=DOUBLE)  # a normal variable, of which outcomes are functions
    y = law.quantile(torch.special.ndtr(v)).squeeze(-1).numpy()
    weight = stats.norm.pdf(v.numpy())[:, None]
    mean = integrate.simpson(y * weight, x=v.numpy(), axis=0)
    np.testing.assert_allclose(law.mean.squeeze(-1), mean, rtol=2e-3)
    if df == 60:
        variance = integrate.simpson((y - mean) ** 2 * weight, x=v.numpy(), axis=0)
        np.testing.assert_allclose(law.variance.squeeze(-1), variance, rtol=2e-3)


@pytest.mark.parametrize("df", [2.01, 2.3, 5.0, 200.0])
def test_moments_that_barely_exist(df):
    # of a Student t variable; and of one with tails of power 1 behind a warping, where nothing may overflow
    location, scale = torch.tensor([[0.3]], dtype=DOUBLE), torch.tensor([[1.5]], dtype=DOUBLE)
    one = torch.ones(1, dtype=DOUBLE)
    law = TransformedTMarginals(
        location, scale, one, df, nodes(SinhArcsinh(), skewness=[0.0], tail_weight=[1.0]).everywhere
    )
    assert law.expectation().item() == pytest.approx(0.3, rel=1e-6)
    assert law.expectation(one).item() == pytest.approx(1.5**2 * df / (df - 2) + 0.7**2, rel=1e-6)
    heavy = nodes(SinhArcsinh(), skewness=[0.5], tail_weight=[2 / df * 1.0001]).everywhere
    assert TransformedTMarginals(location, scale, one, df, heavy).expectation(0 * one) > 1e3  # infinite beyond floats


@pytest.mark.parametrize(
    ("name", "df", "order", "exists"),
    [
        ("affine", 2, "mean", True),
        ("affine", 2, "variance", False),
        ("affine", 1, "mean", False),
        ("arcsinh", 1000, "mean", False),
        ("sinh-arcsinh", 2, "mean", True),
        ("sinh-arcsinh", 1, "mean", False),
        ("sinh-arcsinh", 2, "variance", False),
        ("sinh-arcsinh", 3, "variance", True),
        ("Box-Cox", 2, "mean", True),
        ("Box-Cox", 3, "variance", False),
        ("Box-Cox", 4, "variance", True),
    ],
)
def test_which_moments_exist(name, df, order, exists):
    law = posterior(name, df=df)
    if exists:
        assert getattr(law, order).isfinite().all()
    else:
        with pytest.raises(UnsupportedError, match=f"no {order}.*quantile"):
            getattr(law, order)


@NAMES
@pytest.mark.parametrize("shift", [0.0, -1.0])
def test_samples_follow_the_marginals(name, shift, generator):
    law = posterior(name, shift=shift)
    base = torch.randn(4000, 4, generator=generator, dtype=DOUBLE)
    samples = law.rsample_from_base_samples(torch.Size([4000]), base)
    assert samples.shape == (4000, 2, 1)
    for point in (0, 1):
        levels = law.cdf(samples)[:, point, 0].numpy()
        assert stats.kstest(levels, "uniform").pvalue > 1e-3
        single = posterior(name, shift=shift, q=1)
        assert single.base_sample_shape == (3,)


def test_samples_are_jointly_t(generator):
    law = posterior("affine", (0.0, 0.0, 1.0))
    base = torch.randn(200_000, 4, generator=generator, dtype=DOUBLE)
    samples = law.rsample_from_base_samples(torch.Size([len(base)]), base).squeeze(-1)
    scale = 0.3 * torch.tensor([[0.5, -0.1], [-0.1, 0.9]], dtype=DOUBLE)
    torch.testing.assert_close(samples.T.cov(), scale * DF / (DF - 2), rtol=0.05, atol=0.005)
    # squares of both values are correlated through the shared chi-square number, as for a multivariate t
    z = (samples - samples.mean(0)).square()
    exact = stats.multivariate_t(shape=scale.numpy(), df=DF, seed=1).rvs(200_000) ** 2
    ours, theirs = torch.corrcoef(z.log().T)[0, 1].item(), np.corrcoef(np.log(exact).T)[0, 1]
    assert ours == pytest.approx(theirs, abs=0.01)


@NAMES
def test_smooth_in_location_and_scale_for_fixed_base_samples(name, generator):
    base = torch.randn(3, 4, generator=generator, dtype=DOUBLE)
    law = posterior(name)

    def sample(location, factor):
        matrix = law._joint.matrix()
        scale = (matrix.diagonal(dim1=-2, dim2=-1).mT[:, law._joint.group] * factor).sqrt()
        joint = law._joint._replace(factor=factor)
        moved = TransformedTPosterior(location, scale, law._probabilities, DF, law._warping, joint)
        return moved.rsample_from_base_samples(torch.Size([3]), base)

    torch.autograd.gradcheck(
        sample, (law._location.clone().requires_grad_(), law._joint.factor.clone().requires_grad_())
    )


@NAMES
def test_quantiles_and_cdfs_are_differentiable(name):
    law = posterior(name)

    def functions(location, scale):
        moved = TransformedTPosterior(location, scale, law._probabilities, DF, law._warping)
        return moved.quantile(0.3), moved.cdf(0.7), moved.log_probability_above(0.7)

    inputs = (law._location.clone().requires_grad_(), law._scale.clone().requires_grad_())
    torch.autograd.gradcheck(functions, inputs, atol=1e-5)


def test_repeated_base_samples_are_mapped_once(monkeypatch, generator):
    law = posterior("sinh-arcsinh")
    batch = TransformedTPosterior(
        law._location.expand(7, 2, 3),
        law._scale.expand(7, 2, 3),
        law._probabilities,
        DF,
        law._warping,
        JointScale(lambda: law._joint.matrix().expand(7, 2, 2, 2), law._joint.group, law._joint.factor),
    )
    base_samples = torch.randn(5, 1, 4, generator=generator, dtype=DOUBLE).expand(5, 7, 4)
    every = batch.rsample_from_base_samples(torch.Size([5]), base_samples.contiguous())
    sizes, quantile = [], student_t.chi_square_quantile
    monkeypatch.setattr(student_t, "chi_square_quantile", lambda x, df: (sizes.append(x.numel()), quantile(x, df))[1])
    torch.testing.assert_close(batch.rsample_from_base_samples(torch.Size([5]), base_samples), every, rtol=0, atol=0)
    assert sizes == [5]


def test_shapes_of_batches():
    law = posterior("affine")
    batched = TransformedTPosterior(
        law._location.expand(4, 2, 3), law._scale.expand(4, 2, 3), law._probabilities.expand(4, 3), DF, law._warping
    )
    assert (batched.base_sample_shape, batched._extended_shape(torch.Size([5]))) == ((4, 4), (5, 4, 2, 1))
    assert batched.cdf(0.3).shape == (4, 2, 1)
    assert batched.quantile(torch.tensor([0.1, 0.9])).shape == (2, 4, 2, 1)
    torch.testing.assert_close(batched.median[2], law.median)
    torch.testing.assert_close(batched.cdf(batched.median), torch.full((4, 2, 1), 0.5, dtype=DOUBLE))
    with pytest.raises(UnsupportedError, match="single points"):
        batched.rsample()


def test_wrong_arguments():
    law = posterior("affine")
    with pytest.raises(UnsupportedError, match="log_probability_above"):
        posterior("arcsinh", df=1).log_expected_gain(0.5)
    with pytest.raises(RuntimeError, match="must have 4 columns"):
        law.rsample_from_base_samples(torch.Size([1]), torch.zeros(1, 5))
    with pytest.raises(RuntimeError, match="disagrees"):
        law.rsample_from_base_samples(torch.Size([2]), torch.zeros(1, 4))
    with pytest.raises(BotorchTensorDimensionError, match="one number"):
        law.scalarize(torch.ones(2))
    with pytest.raises(ValueError, match="strictly between"):
        law.quantile(1.0)

    class Bounded(Affine):
        @property
        def range(self):
            return torch.tensor(-math.inf), torch.tensor(1.0)

    one = torch.ones(2, 1, dtype=DOUBLE)
    with pytest.raises(NotImplementedError, match="upper range"):
        TransformedTMarginals(one, one, one[0], DF, Bounded())

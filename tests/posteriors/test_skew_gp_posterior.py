"""The posterior against an explicit mixture of normals, written out component by component."""

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.posteriors import GPyTorchPosterior
from botorch.sampling.normal import IIDNormalSampler, SobolQMCNormalSampler
from linear_operator.operators import DiagLinearOperator
from scipy.stats import norm
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.draws import DrawSettings

B = torch.tensor([[1.0, 0.4], [0.4, 0.7]], dtype=torch.float64)  # covariance between two outputs


def kernel(x: Tensor, z: Tensor, num_outputs: int = 1) -> Tensor:
    k = torch.exp(-0.5 * (x.unsqueeze(-2) - z.unsqueeze(-3)).square().sum(-1) / 0.3**2)
    if num_outputs == 1:
        return k
    full = torch.einsum("...ij,ab->...iajb", k, B)
    return full.flatten(-4, -3).flatten(-2, -1)


@dataclass(frozen=True)
class Mixture:
    """Normal vectors that share a covariance, component by component."""

    means: Tensor  # batch_shape x e x S
    covariance: Tensor  # batch_shape x e x e
    probabilities: Tensor  # batch_shape x S

    @property
    def mean(self) -> Tensor:
        return (self.means * self.probabilities.unsqueeze(-2)).sum(-1)

    @property
    def total(self) -> Tensor:
        """The joint covariance."""
        second = torch.einsum("...es,...fs,...s->...ef", self.means, self.means, self.probabilities)
        return self.covariance + second - self.mean.unsqueeze(-1) * self.mean.unsqueeze(-2)

    @property
    def skewness(self) -> Tensor:
        """By the third moment of each normal component."""
        own, variance = (matrix.diagonal(dim1=-2, dim2=-1) for matrix in (self.covariance, self.total))
        d = self.means - self.mean.unsqueeze(-1)
        return ((d**3 + 3 * d * own.unsqueeze(-1)) * self.probabilities.unsqueeze(-2)).sum(-1) / variance**1.5

    def marginal(self, function, value: Tensor) -> Tensor:
        """A function of scipy's normal distribution averaged over components; `value` is broadcast to `batch x e`."""
        sd = self.covariance.diagonal(dim1=-2, dim2=-1).sqrt().unsqueeze(-1)
        out = function(value.unsqueeze(-1).numpy(), loc=self.means.numpy(), scale=sd.numpy())
        return (torch.from_numpy(out) * self.probabilities.unsqueeze(-2)).sum(-1)

    def mapped(self, weight: Tensor, offset: Tensor | float = 0.0, noise: Tensor | float = 0.0) -> "Mixture":
        offset = torch.as_tensor(offset, dtype=torch.float64).expand(len(weight)).unsqueeze(-1)
        return Mixture(weight @ self.means + offset, weight @ self.covariance @ weight.mT + noise, self.probabilities)


@dataclass(frozen=True)
class Case:
    """The tensors of a posterior."""

    location: Tensor
    cross: Tensor
    prior: Tensor
    weights: Tensor
    root: Tensor
    log_weights: Tensor | None
    num_outputs: int

    @property
    def posterior(self) -> SkewGPPosterior:
        mixture = RepresenterMixture(self.weights, self.root, self.log_weights)
        return SkewGPPosterior(self.location, self.cross, self.prior, mixture, self.num_outputs)

    @property
    def mixture(self) -> Mixture:
        columns = [(self.cross @ a.unsqueeze(-1)).squeeze(-1) + self.location for a in self.weights.unbind(-1)]
        means, S = torch.stack(columns, dim=-1), len(columns)
        C = self.prior - self.cross @ self.root @ self.root.mT @ self.cross.mT
        p = torch.full((S,), 1 / S, dtype=torch.float64) if self.log_weights is None else self.log_weights.exp()
        return Mixture(means, C.expand(means.shape[:-2] + C.shape[-2:]), p.expand(*means.shape[:-2], S))

    @property
    def batch_shape(self) -> torch.Size:
        return self.mixture.means.shape[:-2]


def make(
    batch_shape=(), num_outputs=1, weighted=False, num_draws=30, q=3, batched_data=True, fantasies=(), seed=0
) -> Case:
    """With `fantasies` every batch has representer weights of its own; all share points and information."""
    g = torch.Generator().manual_seed(seed)
    batch_shape = torch.Size(batch_shape)
    data_batch = batch_shape if batched_data else torch.Size()
    rand, randn = (partial(function, generator=g, dtype=torch.float64) for function in (torch.rand, torch.randn))
    n, o = 4, num_outputs
    X, Z = rand(*batch_shape, q, 2), rand(*data_batch, n, 2)
    A = randn(*data_batch, 5, n * o)
    J = A @ kernel(Z, Z, o) @ A.mT + 0.3 * torch.eye(5)
    root = A.mT @ torch.linalg.inv(torch.linalg.cholesky(J)).mT
    # the squares of normal numbers: components whose average is skewed
    weights = randn(*fantasies, *data_batch, n * o, 1) + 0.7 * randn(*fantasies, *data_batch, n * o, num_draws).square()
    log_weights = randn(*fantasies, *data_batch, num_draws).log_softmax(-1) if weighted else None
    return Case(randn(*batch_shape, q * o), kernel(X, Z, o), kernel(X, X, o), weights, root, log_weights, o)


CASES = [
    pytest.param({}, id="plain"),
    pytest.param({"weighted": True}, id="weighted"),
    pytest.param({"batch_shape": (2,)}, id="batch"),
    pytest.param({"batch_shape": (2, 3), "batched_data": False}, id="t-batch"),
    pytest.param({"batch_shape": (2,), "num_outputs": 2, "weighted": True}, id="batch-two-outputs-weighted"),
    pytest.param({"num_outputs": 2}, id="two-outputs"),
    pytest.param({"q": 1, "batch_shape": (4,), "batched_data": False}, id="single-points"),
    pytest.param({"num_draws": 3}, id="few-draws"),
    pytest.param({"fantasies": (3,), "weighted": True}, id="fantasies"),
]
all_cases = pytest.mark.parametrize("options", CASES)


def event(x: Tensor, case: Case) -> Tensor:
    return x.unflatten(-1, (-1, case.num_outputs))


def check(posterior: SkewGPPosterior, mixture: Mixture, num_outputs: int = 1) -> None:
    """Components, shared covariance and moments, those of the matched Gaussian too."""
    assert isinstance(posterior, SkewGPPosterior)
    covariance, mean, shape = mixture.covariance, mixture.mean, (-1, num_outputs)
    torch.testing.assert_close(posterior.component_means, mixture.means)
    torch.testing.assert_close(posterior.gaussian_covariance.expand_as(covariance), covariance)
    torch.testing.assert_close(posterior.covariance_matrix, mixture.total)
    torch.testing.assert_close(posterior.skewness, mixture.skewness.unflatten(-1, shape))
    assert posterior.rsample(torch.Size([2])).shape == (2, *posterior.mean.shape)
    gaussian = posterior.moment_matched()
    assert type(gaussian) is GPyTorchPosterior
    torch.testing.assert_close(gaussian.distribution.covariance_matrix, mixture.total)
    variance = mixture.total.diagonal(dim1=-2, dim2=-1)
    for either in (posterior, gaussian):
        torch.testing.assert_close(either.mean, mean.unflatten(-1, shape))
        torch.testing.assert_close(either.variance, variance.unflatten(-1, shape))


# Moments


@all_cases
def test_moments(options):
    case = make(**options)
    check(case.posterior, case.mixture, case.num_outputs)
    assert case.posterior.skewness.abs().max() > 0.05  # else the case would not tell skewness from none


@all_cases
def test_shapes(options):
    case = make(**options)
    posterior = case.posterior
    e = case.location.shape[-1]
    shape = case.batch_shape + torch.Size([e // case.num_outputs, case.num_outputs])
    assert posterior.quantile(0.5).shape == posterior.quantile(torch.tensor([0.1, 0.9]))[0].shape == shape
    levels = torch.rand(shape, dtype=torch.float64)
    torch.testing.assert_close(posterior.cdf(posterior.quantile(levels)), levels)
    tenth = torch.tensor(0.1, dtype=torch.float64)
    for name in ("cdf", "density", "probability_above", "quantile"):  # 0.1 in single precision is not 0.1
        assert torch.equal(getattr(posterior, name)(0.1), getattr(posterior, name)(tenth))
    assert posterior.batch_shape == case.batch_shape
    assert posterior.base_sample_shape == case.batch_shape + torch.Size([1 + e])
    assert posterior.batch_range == (0, -1)
    assert posterior._extended_shape(torch.Size([5])) == torch.Size([5]) + shape
    assert posterior.rsample().shape == torch.Size([1]) + shape
    assert posterior.rsample(torch.Size([2, 3])).shape == torch.Size([2, 3]) + shape
    assert posterior.device == case.location.device
    assert posterior.dtype == torch.float64


def test_variance_does_not_need_the_joint_covariance():
    """Marginals at many points: a prior covariance that refuses to become dense must do."""

    class DiagonalOnly(DiagLinearOperator):
        def to_dense(self):
            raise AssertionError("The joint covariance was asked for.")

    case = make(q=5)
    prior = DiagonalOnly(case.prior.diagonal())
    posterior = replace(case, prior=prior).posterior
    torch.testing.assert_close(posterior.variance, case.posterior.variance)
    torch.testing.assert_close(posterior.quantile(0.9), case.posterior.quantile(0.9))
    assert posterior.mean.shape == (5, 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_levels_of_data(weighted, generator):
    """Later data add to means and take from the covariance, with a covariance of their own."""
    case = make(weighted=weighted)
    first = RepresenterMixture(case.weights, case.root)
    cross = torch.randn(5, 3, 2, generator=generator, dtype=torch.float64)  # a batch of five fantasies of two points
    weights = torch.randn(5, 2, 30, generator=generator, dtype=torch.float64)
    root = 0.05 * torch.randn(2, 2, generator=generator, dtype=torch.float64)
    second = RepresenterMixture(weights, root, case.log_weights, parent=first)
    posterior = SkewGPPosterior(case.location, [case.cross, cross], case.prior, second)
    assert second.levels == (first, second)
    assert posterior.batch_shape == torch.Size([5])
    means = case.mixture.means + torch.einsum("fen,fns->fes", cross, weights)
    covariance = case.mixture.covariance - cross @ root @ root.mT @ cross.mT
    mixture = Mixture(means, covariance, case.mixture.probabilities.expand(5, -1))
    check(posterior, mixture)
    base = torch.randn(4, 1, 4, generator=generator, dtype=torch.float64)
    collapsed = posterior.rsample_from_base_samples(torch.Size([4]), base)
    expanded = posterior.rsample_from_base_samples(torch.Size([4]), base.expand(4, 5, 4).clone())
    torch.testing.assert_close(collapsed, expanded)
    for i, f in itertools.product(range(4), range(5)):
        which = int((mixture.probabilities[f].cumsum(-1) < norm.cdf(float(base[i, 0, 0]))).sum())
        expected = means[f, :, which] + torch.linalg.cholesky(covariance[f]) @ base[i, 0, 1:]
        torch.testing.assert_close(collapsed[i, f].squeeze(-1), expected)
    weight, eye = torch.tensor([[1.0, -1.0, 0.0], [0.0, 2.0, 1.0]], dtype=torch.float64), torch.eye(3).double()
    check(posterior.affine(weight), mixture.mapped(weight))
    check(posterior.add_noise(torch.tensor(0.3)), mixture.mapped(eye, noise=0.3 * eye))
    check(posterior.scalarize(torch.tensor([-2.0]), 1.0), mixture.mapped(-2 * eye, 1.0))


# Marginal distribution functions


@all_cases
@pytest.mark.parametrize(
    ("name", "function"), [("cdf", norm.cdf), ("density", norm.pdf), ("probability_above", norm.sf)]
)
def test_marginal_functions(options, name, function, generator):
    case = make(**options)
    found, flat = getattr(case.posterior, name), case.batch_shape + case.location.shape[-1:]

    def expected(values: Tensor) -> Tensor:
        return torch.stack([event(case.mixture.marginal(function, v.expand(flat)), case) for v in values])

    several = torch.tensor([0.4, -1.0, 0.2, 3.0, 5.0], dtype=torch.float64)
    torch.testing.assert_close(found(several), expected(several))
    torch.testing.assert_close(found(0.4), expected(several)[0])
    own = torch.randn(2, *flat, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(found(event(own, case)), expected(own))
    torch.testing.assert_close(found(event(own[0], case)), expected(own)[0])


# Gradients


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


MARGINALS = {
    "mean": lambda p: p.mean,
    "variance": lambda p: p.variance,
    "skewness": lambda p: p.skewness,
    "covariance": lambda p: p.covariance_matrix,
    "cdf": lambda p: p.cdf(0.3),
    "density": lambda p: p.density(0.3),
    "quantile": lambda p: p.quantile(torch.tensor([0.1, 0.8], dtype=torch.float64)),
    "samples": lambda p: p.rsample_from_base_samples(torch.Size([7]), normal(7, *p.base_sample_shape)),
}


@pytest.mark.parametrize(
    ("name", "weighted"), [(name, True) for name in MARGINALS] + [("quantile", False), ("samples", False)]
)
def test_gradients_in_all_tensors(name, weighted):
    case = make(q=2, weighted=weighted, num_draws=6)
    inputs = [case.location, case.cross, case.prior, case.weights, case.root, *[case.log_weights] * weighted]

    def function(location, cross, prior, weights, root, log_weights=None):
        prior = 0.5 * (prior + prior.mT)
        log_weights = None if log_weights is None else log_weights.log_softmax(-1)
        return MARGINALS[name](SkewGPPosterior(location, cross, prior, RepresenterMixture(weights, root, log_weights)))

    assert torch.autograd.gradcheck(function, [x.clone().requires_grad_() for x in inputs])


@pytest.fixture(scope="module")
def preference_model() -> SkewGP:
    g = torch.Generator().manual_seed(3)
    X = torch.rand(7, 2, generator=g, dtype=torch.float64)
    pairs = torch.tensor([[0, 1], [2, 1], [3, 4], [5, 2], [0, 6], [3, 6]])
    model = SkewGP(X, Preference(pairs), draw_settings=DrawSettings(num_draws=64))
    model.covar_module.outputscale = 9.0
    model.covar_module.base_kernel.lengthscale = 0.4
    return model


@pytest.mark.parametrize("name", ["samples", "mean", "quantile", "covariance", "skewness"])
def test_gradients_in_the_inputs_of_a_model(preference_model, name, generator):
    def function(X):
        return MARGINALS[name](preference_model.posterior(X))

    given = torch.rand(2, 2, 2, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(function, given, eps=1e-5, atol=1e-8, rtol=1e-6, fast_mode=True)


# Sampling


@all_cases
def test_samples_spelled_out(options, generator):
    """A sample is the mean of the draw that the first column picks, plus a Cholesky factor times the rest."""
    case = make(**options)
    posterior = case.posterior
    base = torch.randn(6, *posterior.base_sample_shape, generator=generator, dtype=torch.float64)
    samples = posterior.rsample_from_base_samples(sample_shape=torch.Size([6]), base_samples=base).flatten(-2)
    means, L = case.mixture.means, torch.linalg.cholesky(case.mixture.covariance)
    levels = case.mixture.probabilities.cumsum(-1)
    for i in range(6):
        for at in itertools.product(*map(range, case.batch_shape)):
            z = base[(i, *at)]
            which = int((levels[at] < norm.cdf(float(z[0]))).sum())
            expected = means[at][:, which] + L[at] @ z[1:]
            torch.testing.assert_close(samples[(i, *at)], expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sample_shape", [(5,), (2, 3), ()])
def test_collapsed_base_samples_equal_expanded_ones(weighted, sample_shape, generator):
    case = make(batch_shape=(2, 3), weighted=weighted)
    posterior = case.posterior
    sample_shape = torch.Size(sample_shape)
    base = torch.randn(*sample_shape, 1, 1, 4, generator=generator, dtype=torch.float64)
    collapsed = posterior.rsample_from_base_samples(sample_shape, base)
    view = base.expand(*sample_shape, 2, 3, 4)
    assert collapsed.shape == (*sample_shape, 2, 3, 3, 1)
    torch.testing.assert_close(posterior.rsample_from_base_samples(sample_shape, view), collapsed)
    torch.testing.assert_close(posterior.rsample_from_base_samples(sample_shape, view.clone()), collapsed)


def test_extreme_base_samples_pick_the_outer_draws():
    case = make()
    base = torch.zeros(2, 4, dtype=torch.float64)
    base[:, 0] = torch.tensor([-50.0, 50.0])
    weighted = replace(case, log_weights=torch.full((30,), -math.log(30), dtype=torch.float64))
    for posterior in (case.posterior, weighted.posterior):
        samples = posterior.rsample_from_base_samples(torch.Size([2]), base).squeeze(-1)
        torch.testing.assert_close(samples, case.mixture.means[:, [0, -1]].mT)


@pytest.mark.parametrize("sampler_class", [SobolQMCNormalSampler, IIDNormalSampler])
@all_cases
def test_samplers(sampler_class, options):
    case = make(**options)
    posterior = case.posterior
    sampler = sampler_class(torch.Size([256]), seed=1)
    samples = sampler(posterior)
    assert samples.shape == posterior._extended_shape(torch.Size([256]))
    assert torch.equal(sampler(case.posterior), samples)
    ones = (1,) * len(case.batch_shape)
    assert sampler.base_samples.shape == (256, *ones, 1 + case.location.shape[-1])
    mean, covariance = case.mixture.mean, case.mixture.total
    error = (samples.flatten(-2).mean(0) - mean) / (covariance.diagonal(dim1=-2, dim2=-1) / 256).sqrt()
    assert error.abs().max() < 4.5
    assert not torch.equal(sampler_class(torch.Size([256]), seed=2)(posterior), samples)


# Maps


@all_cases
def test_maps(options, generator):
    case = make(**options)
    posterior, mixture, o, e = case.posterior, case.mixture, case.num_outputs, case.location.shape[-1]
    q, eye = e // o, torch.eye(e, dtype=torch.float64)
    weight = torch.randn(min(2, e), e, generator=generator, dtype=torch.float64)
    offset = torch.arange(len(weight), dtype=torch.float64)
    check(posterior.affine(weight, offset), mixture.mapped(weight, offset))
    check(posterior.affine(weight, 1.5, num_outputs=len(weight)), mixture.mapped(weight, 1.5), len(weight))
    weights = torch.tensor([-2.0, 0.5], dtype=torch.float64)[:o]
    matrix = torch.kron(torch.eye(q, dtype=torch.float64), weights.unsqueeze(0))
    check(posterior.scalarize(weights, 3.0), mixture.mapped(matrix, 3.0))
    check(posterior.add_noise(torch.tensor(0.2)), mixture.mapped(eye, noise=0.2 * eye), o)
    noise = torch.rand(*case.batch_shape, e, generator=generator, dtype=torch.float64)
    check(posterior.add_noise(event(noise, case)), mixture.mapped(eye, noise=torch.diag_embed(noise)), o)


@pytest.mark.parametrize("num_outputs", [1, 2])
@pytest.mark.parametrize("own_weights", [False, True])
def test_expectation(num_outputs, own_weights):
    case = make(batch_shape=(2,), q=6, num_outputs=num_outputs)
    weights = torch.rand(3, num_outputs if own_weights else 1, dtype=torch.float64)
    weights = weights / weights.sum(0)
    matrix = torch.zeros(2 * num_outputs, 6 * num_outputs, dtype=torch.float64)
    for block, k, j in itertools.product(range(2), range(3), range(num_outputs)):
        column = (3 * block + k) * num_outputs + j
        matrix[block * num_outputs + j, column] = weights[k, j if own_weights else 0]
    check(case.posterior.expectation(weights, 3), case.mixture.mapped(matrix), num_outputs)


def test_difference_from_itself_has_no_variance():
    case = make(q=1)
    twice = torch.ones(2, 1, dtype=torch.float64)
    difference = case.posterior.affine(twice).affine(torch.tensor([[1.0, -1.0]]))
    samples = difference.rsample(torch.Size([50]))
    assert samples.abs().max() < 1e-3  # GPyTorch's least variance, and no failing Cholesky factorisation


def test_no_distribution_to_be_mistaken_for_a_gaussian():
    assert not hasattr(make().posterior, "distribution")
    with pytest.raises(AttributeError, match="Join models in a ModelList, not in a ModelListGP"):
        make().posterior.distribution  # noqa: B018


def test_wrong_shapes_are_refused():
    posterior = make(batch_shape=(2,)).posterior
    for shape, message in (((4, 2, 4), "disagrees"), ((3, 2, 3), "4 columns")):
        with pytest.raises(RuntimeError, match=message):
            posterior.rsample_from_base_samples(torch.Size([3]), torch.zeros(shape, dtype=torch.float64))
    for weights in (torch.ones(2), torch.ones(1, 1)):
        with pytest.raises(BotorchTensorDimensionError, match="one weight per output"):
            posterior.scalarize(weights)


# Points that nearly coincide


@pytest.mark.parametrize("name", ["qEUBO", "qLogNEI"])
def test_acquisition_is_smooth_as_points_meet(preference_model, name):
    """No warning, no jump, and gradients as of finite differences down to where these have digits left; from there on,
    where the jitter is more than what tells the points apart, gradients do not change.
    """
    sampler = SobolQMCNormalSampler(torch.Size([256 if name == "qEUBO" else 128]), seed=0)
    if name == "qEUBO":
        acquisition = qExpectedUtilityOfBestOption(preference_model, sampler=sampler)
    else:
        baseline = preference_model.train_inputs[0]
        acquisition = qLogNoisyExpectedImprovement(preference_model, baseline, sampler=sampler, prune_baseline=False)
    start, direction = torch.tensor([[0.3, 0.6], [0.6, 0.8]], dtype=torch.float64)

    def value(distance: Tensor) -> Tensor:
        return acquisition(torch.stack([start, start + distance * direction]))

    values, slopes = [], []
    distances = 10.0 ** -torch.arange(2, 13, dtype=torch.float64)
    for distance in distances.clone().requires_grad_().unbind():
        values.append(value(distance))
        slopes.append(torch.autograd.grad(values[-1].sum(), distance)[0])
        with torch.no_grad():
            h = 0.01 * distance
            difference = (value(distance + h) - value(distance - h)).squeeze() / (2 * h)
        if distance > 5e-6:
            torch.testing.assert_close(slopes[-1], difference, rtol=0.02, atol=0.02)
    slopes = torch.stack(slopes)
    torch.testing.assert_close(slopes[distances < 5e-8], slopes[-1].expand(5), rtol=0.05, atol=0)
    assert (torch.cat(values).diff().abs() <= 20 * distances[:-1] + 1e-8).all()


@pytest.mark.parametrize("scale", [1.0, 1e15])
def test_single_precision_at_large_scales(scale):
    """Cubes of large numbers are infinite in single precision; skewness has no units."""
    case = make(batch_shape=(2,))
    mixture = RepresenterMixture(case.weights.float(), case.root.float())
    tensors = scale * case.location.float(), scale * case.cross.float(), scale**2 * case.prior.float()
    posterior = SkewGPPosterior(*tensors, mixture)
    assert posterior.dtype == posterior.rsample(torch.Size([2])).dtype == torch.float32
    for name, power in {"mean": 1, "variance": 2, "skewness": 0, "quantile": 1, "cdf": 0}.items():
        found, expected = getattr(posterior, name), getattr(case.posterior, name)
        if callable(found):
            found, expected = found(0.3 * scale if name == "cdf" else 0.3), expected(0.3)
        torch.testing.assert_close(found / scale**power, expected.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("spacing", [1e-8, 1e-6, 1e-4])
@pytest.mark.parametrize("with_duel", [False, True])
@pytest.mark.rounding
def test_samples_near_numbers_without_noise(spacing, with_duel):
    """Differences of products with large roots are rounding, of which covariances had negative eigenvalues."""
    X = torch.tensor([[0.2], [0.2 + spacing], [0.7]], dtype=torch.double)
    observations = [Numeric(torch.sin(3 * X), noise=0.0)] + ([Preference([[2, 0]])] if with_duel else [])
    model = SkewGP(X, observations)
    model.covar_module.base_kernel.lengthscale = 0.3
    for near in (X + 1e-6, X + spacing / 2, torch.cat([X, X + 1e-3])):
        posterior = model.posterior(near)
        assert bool(posterior.rsample(torch.Size([4])).isfinite().all())
        assert bool((torch.linalg.eigvalsh(posterior.gaussian_covariance) > -1e-11).all())
        assert torch.allclose(posterior.mean, torch.sin(3 * near), atol=1e-2)

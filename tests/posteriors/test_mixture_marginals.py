"""Distribution functions of mixtures against scipy, and quantiles against the cdf they invert."""

import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from botorch_skewgp.posteriors import MixtureMarginals, NormalMixtureMarginals
from botorch_skewgp.posteriors import mixture_marginals as module


class LogisticMixture(MixtureMarginals):
    """Logistic components, with a bracket that may be wrong."""

    error = 0.0  # of the bracket

    def __init__(self, location: Tensor, scale: Tensor, probabilities: Tensor) -> None:
        super().__init__(probabilities, (location, scale))

    def _standardised(self, value):
        location, scale = self.parameters
        return (value - location) / scale

    def component_cdf(self, value):
        return torch.sigmoid(self._standardised(value))

    def component_survival(self, value):
        return torch.sigmoid(-self._standardised(value))

    def component_density(self, value):
        return self.component_cdf(value) * self.component_survival(value) / self.parameters[1]

    def bracket(self, level):
        location, scale = self.parameters
        quantiles = location + scale * torch.logit(level).unsqueeze(-1)
        return quantiles.amin(-1) + self.error, quantiles.amax(-1) + self.error


def mixture(cls, num_components, weighted=False, batch_shape=(7,), log10_scale=(-2.0, 1.0), seed=0):
    """Skewed mixtures whose components are from nearly point masses to wider than their locations are apart."""
    g = torch.Generator().manual_seed(seed)
    location = torch.randn(*batch_shape, num_components, generator=g, dtype=torch.float64).exp()
    low, high = log10_scale
    scale = 10 ** (low + (high - low) * torch.rand(*batch_shape, 1, generator=g, dtype=torch.float64))
    probabilities = torch.full((num_components,), 1 / num_components, dtype=torch.float64)
    if weighted:
        probabilities = torch.randn(*batch_shape, num_components, generator=g, dtype=torch.float64).softmax(-1)
    return cls(location, scale, probabilities)


def check(mixture: MixtureMarginals, level: Tensor, quantile: Tensor) -> None:
    """Right in probability, or on the step of a point mass; and monotone in the level, which is the first dimension."""
    cdf = mixture.cdf(quantile)
    before = mixture.cdf(torch.nextafter(quantile, torch.full_like(quantile, -torch.inf)))
    is_right = ((cdf - level).abs() <= 1e-10) | ((before < level) & (level <= cdf))
    assert is_right.all(), (cdf - level).abs().max()
    assert (quantile.diff(dim=0) >= 0).all()


both = pytest.mark.parametrize("cls", [NormalMixtureMarginals, LogisticMixture])
weights = pytest.mark.parametrize("weighted", [False, True])


@both
@weights
@pytest.mark.parametrize("num_components", [1, 2, 40])
@pytest.mark.parametrize("log10_scale", [(-2.0, 1.0), (-14.0, -3.0), (2.0, 8.0)])
def test_quantiles_invert_the_cdf(cls, weighted, num_components, log10_scale):
    level = torch.linspace(0.01, 0.99, 21, dtype=torch.float64).unsqueeze(-1).expand(21, 7)
    some = mixture(cls, num_components, weighted, log10_scale=log10_scale)
    check(some, level, some.quantile(level))


@weights
def test_distribution_functions_against_scipy(weighted):
    some = mixture(NormalMixtureMarginals, 5, weighted, batch_shape=(2, 3))
    value = torch.randn(4, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    means, scale = (x.numpy() for x in some.parameters)
    for name, function in {"cdf": norm.cdf, "survival": norm.sf, "density": norm.pdf}.items():
        components = torch.from_numpy(function(value.unsqueeze(-1).numpy(), means, scale))
        torch.testing.assert_close(getattr(some, name)(value), (components * some.probabilities).sum(-1))


@weights
def test_quantiles_of_smooth_mixtures_need_no_brackets(weighted, monkeypatch):
    """Two steps from the moments; of mixtures that are not smooth, and far in tails, the bracketed search goes on."""
    searched, search = [], module._search_in_brackets
    monkeypatch.setattr(module, "_search_in_brackets", lambda *args: searched.append(len(args[1])) or search(*args))
    level = torch.tensor([0.025, 0.5, 0.9], dtype=torch.float64).unsqueeze(-1).expand(3, 7)
    smooth, rough = (
        mixture(NormalMixtureMarginals, 40, weighted, log10_scale=scale) for scale in ((0.9, 1.3), (-3.0, -2.0))
    )
    check(smooth, level, smooth.quantile(level))
    assert not searched
    torch.testing.assert_close(smooth.cdf(smooth.quantile(level)), level, rtol=3e-11, atol=0)
    check(rough, level, rough.quantile(level))
    assert searched


@both
@pytest.mark.parametrize("level", [1e-200, 1e-30, 1e-12, 1 - 1e-12])
def test_small_tails_keep_their_digits(cls, level):
    some = mixture(cls, 9, log10_scale=(-3.0, 1.0))
    quantile = some.quantile(torch.full((7,), level, dtype=torch.float64))
    tail, wanted = (some.cdf(quantile), level) if level < 0.5 else (some.survival(quantile), 1 - level)
    torch.testing.assert_close(tail, torch.full_like(tail, wanted), rtol=1e-8, atol=0)


@pytest.mark.parametrize("error", [-1e3, -1e-3, 1e-9, 100.0])
@pytest.mark.parametrize("num_components", [1, 5])
def test_a_wrong_bracket_is_moved(error, num_components):
    some = mixture(LogisticMixture, num_components)
    some.error = error
    level = torch.tensor([0.05, 0.5, 0.8], dtype=torch.float64).unsqueeze(-1).expand(3, 7)
    check(some, level, some.quantile(level))


def test_point_masses_are_stepped_over():
    """Where the components are narrower than the spacing of numbers, quantiles are those of their locations."""
    location = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    some = NormalMixtureMarginals(location, torch.tensor([1e-25], dtype=torch.float64), torch.full_like(location, 0.25))
    quantile = some.quantile(torch.tensor([0.1, 0.3, 0.6, 0.9], dtype=torch.float64))
    torch.testing.assert_close(quantile, location, rtol=1e-15, atol=0)


def test_many_mixtures_take_little_memory_and_agree_with_few(monkeypatch):
    """In parts."""
    some = mixture(NormalMixtureMarginals, 300, batch_shape=(20,))
    level = torch.tensor([0.1, 0.7], dtype=torch.float64).unsqueeze(-1)
    whole = some.quantile(level), some.cdf(level.expand(2, 20)), some.density(level.expand(2, 20))
    monkeypatch.setattr(module, "CHUNK", 1000)
    parts = some.quantile(level), some.cdf(level.expand(2, 20)), some.density(level.expand(2, 20))
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@both
@weights
def test_gradients(cls, weighted):
    some = mixture(cls, 4, weighted, batch_shape=(3,), log10_scale=(-0.5, 0.5))
    inputs = [*some.parameters, some.probabilities, torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)]

    def functions(location, scale, probabilities, level):
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
        made = cls(location, scale, probabilities)
        return made.quantile(level), made.cdf(level), made.survival(level), made.density(level)

    assert torch.autograd.gradcheck(functions, [x.clone().requires_grad_() for x in inputs])


def test_single_precision():
    some = mixture(NormalMixtureMarginals, 30)._map(lambda x: x.float())
    level = torch.linspace(0.01, 0.99, 9, dtype=torch.float32).unsqueeze(-1).expand(9, 7)
    quantile = some.quantile(level)
    assert quantile.dtype == torch.float32
    torch.testing.assert_close(some.cdf(quantile), level, rtol=2e-5, atol=0)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.1, float("nan")])
def test_refuses_other_levels(level):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        mixture(NormalMixtureMarginals, 2).quantile(torch.tensor(level))


@pytest.mark.parametrize("log10_scale", [(-2.0, 1.0), (-0.3, 0.3), (-9.0, -6.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_quantiles_at_once_are_right(weighted, log10_scale):
    """Far levels too."""
    some = mixture(NormalMixtureMarginals, 512, weighted, batch_shape=(40,), log10_scale=log10_scale)
    level = torch.tensor([1e-9, 0.025, 0.5, 0.9, 1 - 1e-7], dtype=torch.float64).unsqueeze(-1)
    quantile = some.quantile(level)
    check(some, level.expand(5, 40), quantile)
    tail = some.cdf(quantile)[0]
    if log10_scale[0] > -3:
        torch.testing.assert_close(tail, torch.full_like(tail, 1e-9), rtol=1e-8, atol=0)
    alone = torch.stack([some.at(torch.tensor([i])).quantile(level) for i in range(3)], dim=1).squeeze(-1)
    torch.testing.assert_close(quantile[:, :3], alone, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("scale", [0.0, float("nan")])
def test_one_point_without_spread_leaves_others_alone(scale):
    """A point mass, and a posterior that is no number."""
    some = mixture(NormalMixtureMarginals, 512, batch_shape=(100,), log10_scale=(-1.0, 1.0))
    means, deviation = (x.clone() for x in some.parameters)
    level = torch.full((100,), 0.2, dtype=torch.float64)
    wanted = some.quantile(level)
    means[3], deviation[3] = 2.0, scale
    quantile = NormalMixtureMarginals(means, deviation, some.probabilities).quantile(level)
    torch.testing.assert_close(quantile[4:], wanted[4:], rtol=1e-12, atol=0)  # sums of other shapes round differently
    assert quantile[3] == 2.0 if scale == 0.0 else quantile[3].isnan()


@pytest.mark.parametrize(("scale", "most"), [(1e-5, 70), (0.5, 15)])
def test_number_of_evaluations(scale, most, monkeypatch):
    """Newton's method creeps near point masses; bisections in between must not let it."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(7, 40, generator=generator, dtype=torch.float64).exp()
    some = NormalMixtureMarginals(means, scale * means[:, :1], torch.full((40,), 1 / 40, dtype=torch.float64))
    steps = []
    step = module._Search.step
    monkeypatch.setattr(module._Search, "step", lambda *args: steps.append(1) or step(*args))
    some.quantile(torch.full((7,), 0.3, dtype=torch.float64))
    assert len(steps) < most

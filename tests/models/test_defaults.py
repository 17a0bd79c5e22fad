"""Default kernels and means: which observations get which, and what can be said of a judge."""

import math

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import ValidityLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import (
    IntegratedConstantMean,
    default_covar_module,
    default_judge_covar_module,
    default_mean_module,
)
from botorch_skewgp.observations import Binary, Censored, Numeric, Ordinal, Preference, Slope, Validity
from botorch_skewgp.sampling.pathwise import SkewGPSamplePath

DUELS = Preference(torch.tensor([[0, 1], [2, 3]]))
LABELS = Binary(torch.tensor([1, 0, 1, 0]))
FAILURES = Validity(torch.tensor([True, False, True, False]))
NUMBERS = Numeric(torch.zeros(4, dtype=torch.float64))


@pytest.mark.parametrize("others", [[DUELS], [LABELS], [FAILURES], [NUMBERS], [DUELS, LABELS]])
def test_slopes_leave_defaults_to_other_observations(others):
    seen = [*others, Slope(dims=[0], signs=[1])]
    for make in (default_covar_module, default_judge_covar_module):
        plain, with_slopes = make(2, others).state_dict(), make(2, seen).state_dict()
        assert all(torch.equal(plain[name], with_slopes[name]) for name in plain)
    assert type(default_mean_module(others)) is type(default_mean_module(seen))


@pytest.mark.parametrize(("seen", "is_full"), [([DUELS], True), ([LABELS], False), ([DUELS, LABELS], False)])
def test_tastes_are_correlated_and_wide_where_all_answers_are_comparisons(seen, is_full):
    tastes = default_judge_covar_module(2, seen).kernels[0]
    assert bool((tastes.taste_mask.tril(-1) != 0).any()) == is_full
    assert float(tastes.root_prior.scale) == (10.0 if is_full else 1.0)


def test_the_likeliest_variance_of_failures_is_about_that_of_the_constant():
    """Else a few valid points are explained by a constant that is high everywhere."""
    mode = float(default_covar_module(2, [FAILURES]).outputscale_prior.mode)
    constant = float(default_mean_module([FAILURES]).variance)
    assert constant == pytest.approx(mode, rel=0.1)


def assert_same_defaults(model, other):
    assert type(model.mean_module) is type(other.mean_module)
    for (name, prior), (same, of_other) in zip(prior_of(model), prior_of(other), strict=True):
        assert name == same
        torch.testing.assert_close((prior.loc, prior.scale), (of_other.loc, of_other.scale))
    assert learned_of_answers(model) == learned_of_answers(other)


def learned_of_answers(model):
    """What is learned of the likelihood of answers, beside that of numbers."""
    part = model.likelihood.for_kind(type(model.observations[0]))
    return {name for name, parameter in part.named_parameters() if parameter.requires_grad}


def prior_of(model):
    return [(name, prior) for name, _, prior, *_ in model.named_priors() if name.startswith("covar_module")]


@pytest.mark.parametrize("seen", [Validity([True, False]), Binary([1, 0]), Ordinal([0, 2], 3), Preference([[0, 1]])])
def test_bounds_of_the_function_leave_defaults_to_answers(seen):
    """A bound tells no numbers, and the answers' noise stays the unit of the function."""
    bound = Censored(0.8, [torch.inf], index=[0], noise=0.0)
    reading = Censored(0.8, [torch.inf], index=[0], noise=0.1)
    alone, bounded, measured = (SkewGP(X[:2], entries) for entries in (seen, [seen, bound], [seen, reading]))
    assert_same_defaults(alone, bounded)
    with pytest.raises(AssertionError):
        assert_same_defaults(alone, measured)


@pytest.mark.parametrize(("noise", "low", "high"), [(0.01, 0.0, 0.1), (1.0, 0.4, 2.0), (4.0, 0.4, 2.0)])
def test_edges_of_failures_are_wide_where_they_come_by_chance(noise, low, high):
    """The distance from 10 to 90 % failures across an edge: the noise's quantiles over the slope, under the prior."""
    model = SkewGP(X[:2], Validity([True, False]), ValidityLikelihood(noise=noise))
    z = torch.randn(4000, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    lengths, scales = (model.covar_module.base_kernel.lengthscale_prior, model.covar_module.outputscale_prior)
    lengthscale = (lengths.loc + lengths.scale * z[:, :2]).exp()
    variance = (scales.loc + scales.scale * z[:, 2:3]).exp()
    slope = (variance.sqrt() / lengthscale * z[:, 3:]).norm(dim=-1)
    width = (2 * 1.2816 * noise**0.5 / slope).median()
    assert low < width < high
    assert (model.mean_module.variance / noise - 3).abs() < 1e-9 or noise < 0.1


def test_a_consistent_judge_is_believed_and_a_noisy_one_less():
    X = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)
    answers = Preference(torch.tensor([[i + 1, i] for i in range(7)]))
    ratio = {}
    for judge in ("noisy", None, "consistent"):
        model = SkewGP(X, answers, covar_module=default_covar_module(1, [answers], judge))
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        scales = torch.logspace(0, 5, 21, dtype=torch.float64)
        values = []
        for scale in scales:
            model.covar_module.outputscale = scale
            with torch.no_grad():
                values.append(mll(model(X), model.observations))
        ratio[judge] = float(scales[torch.stack(values).argmax()])
    assert ratio["noisy"] <= ratio[None] < ratio["consistent"]


@pytest.mark.parametrize("start", [20.0, 20_000.0])
def test_a_fit_finds_the_scale_of_few_comparisons_from_anywhere(start):
    """As itself, and not as its logarithm, an optimiser would leave a scale of thousands where it is."""
    X = torch.rand(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    order = X.sum(-1).argsort(descending=True)
    duels = Preference(torch.stack([order[:10], order[10:]], dim=-1))
    model = SkewGP(X, duels)
    likeliest = model.covar_module.outputscale.item()  # without data, and so little do ten answers tell
    model.covar_module.outputscale = start
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    assert likeliest / 2 < model.covar_module.outputscale.item() < 2 * likeliest


# A constant mean that is integrated over

X = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TEST_X = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
VALUES = torch.tensor([0.3, 1.2, -0.4, 0.8, 0.1, 2.0], dtype=torch.float64)


def test_numbers_are_conditioned_on_as_with_a_constant_of_that_law():
    noise = torch.full((6,), 0.1, dtype=torch.float64)
    kernel = RBFKernel().double()
    model = SkewGP(X, Numeric(VALUES, noise), covar_module=kernel, mean_module=IntegratedConstantMean(4.0)).eval()
    K = kernel(torch.cat([X, TEST_X])).to_dense().detach() + 4.0
    gain = torch.linalg.solve(K[:6, :6] + 0.1 * torch.eye(6, dtype=torch.float64), K[:6, 6:]).mT
    posterior = model.posterior(TEST_X)
    torch.testing.assert_close(posterior.mean.squeeze(-1).detach(), gain @ VALUES)
    torch.testing.assert_close(posterior.covariance_matrix.detach(), K[6:, 6:] - gain @ K[:6, 6:])


def test_comparisons_do_not_see_the_constant():
    duels = Preference(torch.tensor([[0, 1], [2, 3]]))
    pair = TEST_X[:2]
    with_constant = SkewGP(X, duels, mean_module=IntegratedConstantMean(4.0))
    without = SkewGP(X, duels, mean_module=ConstantMean())
    torch.testing.assert_close(with_constant.predictive(pair).probs, without.predictive(pair).probs)


def test_labels_of_one_region_say_little_about_another():
    near = 0.01 * X[:5]
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.1
    model = SkewGP(near, Binary(torch.ones(5)), covar_module=kernel, mean_module=IntegratedConstantMean(1.0))
    # all five read c + g(0), far away c + g(1) with g of variance 1: five noisy signs of one value
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(3, 1_000_000, dtype=torch.float64, generator=generator)
    weight = torch.special.ndtr(draws[0] + draws[1]).pow(5)
    expected = (weight * torch.special.ndtr(draws[0] + draws[2])).sum() / weight.sum()
    far = torch.ones(1, 2, dtype=torch.float64)
    assert float(model.predictive(far).probs.detach()) == pytest.approx(float(expected), abs=0.01)


@pytest.mark.parametrize("observations", [None, Binary([1, 0, 1, 1, 0, 1])], ids=["", "labels"])
def test_sample_paths_draw_the_constant(observations):
    model = SkewGP(X, observations, mean_module=IntegratedConstantMean(4.0))
    num_paths = 4096
    path = SkewGPSamplePath.draw(model, torch.Size([num_paths]), generator=torch.Generator().manual_seed(0))
    values, posterior = path(TEST_X).detach(), model.posterior(TEST_X)
    mean, variance = posterior.mean.squeeze(-1).detach(), posterior.variance.squeeze(-1).detach()
    assert ((values.mean(0) - mean).abs() < 4 * (variance / num_paths).sqrt()).all()
    assert ((values.var(0) / variance - 1).abs() < 6 * math.sqrt(2 / num_paths)).all()


@pytest.mark.parametrize(
    ("observations", "integrated"),
    [
        (Binary(torch.tensor([1, 0])), True),
        (Validity(torch.tensor([True, True])), True),
        (Ordinal(torch.tensor([0, 2]), 3), True),
        ([Binary(torch.tensor([1, 0])), Preference(torch.tensor([[0, 1]]))], True),
        (Preference(torch.tensor([[0, 1]])), False),
        (Numeric(VALUES[:2]), False),
        ([Numeric(VALUES[:2]), Validity(torch.tensor([True, True]))], False),
        (Censored(VALUES[:2], VALUES[:2] + 1), False),
        (None, False),
    ],
)
def test_default_is_integrated_where_labels_or_grades_alone_tell_it(observations, integrated):
    assert isinstance(SkewGP(X[:2], observations).mean_module, IntegratedConstantMean) is integrated

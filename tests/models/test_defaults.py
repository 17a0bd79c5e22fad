"""Default kernels: which observations get which prior, and what can be said of a judge."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module, default_judge_covar_module, default_mean_module
from botorch_skewgp.observations import Binary, Censored, Numeric, Preference, Ranking, Slope, Tie, Validity

DUELS = Preference(torch.tensor([[0, 1], [2, 3]]))
LABELS = Binary(torch.tensor([1, 0, 1, 0]))
FAILURES = Validity(torch.tensor([True, False, True, False]))
NUMBERS = Numeric(torch.zeros(4, dtype=torch.float64))


@pytest.mark.parametrize(
    "observations", [[DUELS], [DUELS, Tie(torch.tensor([[0, 2]]))], [Ranking(torch.tensor([[0, 1, 2]]))]]
)
def test_comparisons_alone_have_lengthscales_near_a_fraction_of_the_diagonal(observations):
    prior = default_covar_module(4, observations).base_kernel.lengthscale_prior
    inside = prior.cdf(torch.tensor(1.0)) - prior.cdf(torch.tensor(0.15))
    assert inside > 0.9


@pytest.mark.parametrize("observations", [[], [LABELS], [DUELS, LABELS]])
def test_labels_have_the_dimension_scaled_prior(observations):
    prior = default_covar_module(4, observations).base_kernel.lengthscale_prior
    assert float(prior.loc) == pytest.approx(math.sqrt(2) + math.log(4) / 2)
    assert float(prior.scale) == pytest.approx(math.sqrt(3))


@pytest.mark.parametrize("observations", [[NUMBERS], [Censored([0.0], [1.0])], [DUELS, NUMBERS], [NUMBERS, FAILURES]])
@pytest.mark.parametrize("dim", [1, 9])
def test_numbers_have_a_narrower_prior_around_the_same_mode(observations, dim):
    kernel, plain = (default_covar_module(dim, seen).base_kernel for seen in (observations, [LABELS]))
    prior = kernel.lengthscale_prior
    median = 0.3 * math.sqrt(dim)
    assert prior.cdf(torch.tensor(2 * median)) - prior.cdf(torch.tensor(median / 2)) == pytest.approx(0.68, abs=0.01)
    assert float(prior.mode) == pytest.approx(float(plain.lengthscale_prior.mode), rel=0.15)
    assert torch.allclose(kernel.lengthscale, torch.tensor(median))  # where fits start
    assert kernel.raw_lengthscale_constraint.lower_bound == plain.raw_lengthscale_constraint.lower_bound


@pytest.mark.parametrize("dim", [1, 9])
def test_failures_alone_have_lengthscales_near_a_fifth_of_the_diagonal(dim):
    kernel = default_covar_module(dim, [FAILURES, FAILURES]).base_kernel
    prior, median = kernel.lengthscale_prior, 0.2 * math.sqrt(dim)
    within = prior.cdf(torch.tensor(1.6 * median)) - prior.cdf(torch.tensor(median / 1.6))
    assert float(within) == pytest.approx(2 / 3, abs=0.02)
    assert float(prior.cdf(torch.tensor(median))) == pytest.approx(0.5, abs=1e-4)
    assert torch.allclose(kernel.lengthscale, torch.tensor(median))  # where fits start


@pytest.mark.parametrize("others", [[DUELS], [LABELS], [FAILURES], [NUMBERS], [DUELS, LABELS]])
def test_slopes_leave_defaults_to_other_observations(others):
    seen = [*others, Slope(dims=[0], signs=[1])]
    for make in (default_covar_module, default_judge_covar_module):
        plain, with_slopes = make(2, others).state_dict(), make(2, seen).state_dict()
        assert all(torch.equal(plain[name], with_slopes[name]) for name in plain)
    assert type(default_mean_module(others)) is type(default_mean_module(seen))


@pytest.mark.parametrize(("seen", "is_full"), [([DUELS], True), ([LABELS], False), ([DUELS, LABELS], False)])
def test_tastes_are_correlated_where_all_answers_are_comparisons(seen, is_full):
    tastes = default_judge_covar_module(2, seen).kernels[0]
    assert bool((tastes.taste_mask.tril(-1) != 0).any()) == is_full


def test_the_likeliest_variance_of_failures_is_about_that_of_the_constant():
    """Else a few valid points are explained by a constant that is high everywhere."""
    mode = float(default_covar_module(2, [FAILURES]).outputscale_prior.mode)
    constant = float(default_mean_module([FAILURES]).variance)
    assert constant == pytest.approx(mode, rel=0.1)


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


def test_refusals():
    with pytest.raises(InputDataError, match="judge must be 'consistent', 'noisy' or None; got 'fickle'"):
        default_covar_module(2, [DUELS], judge="fickle")
    with pytest.raises(UnsupportedError, match="judge is about comparisons"):
        default_covar_module(2, [LABELS], judge="noisy")

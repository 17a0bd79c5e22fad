"""Default kernels: which observations get which prior, and what can be said of a judge."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module, default_judge_covar_module, default_mean_module
from botorch_skewgp.observations import Binary, Numeric, Preference, Slope, Validity

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

"""What objectives keep between evaluations changes no value, belongs to them, and can be dropped."""

import pytest
import torch
from gradients import evaluate
from small_cases import model_of, skew_prior

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import WarmExpectationPropagation
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.papers import BatchedMarginalLogLikelihood, StochasticMarginalLogLikelihood

OBJECTIVES = {
    "whole": SkewGPMarginalLogLikelihood,
    "batches": lambda likelihood, model: BatchedMarginalLogLikelihood(likelihood, model, batch_size=2),
}


def rows_of(model):
    return model.evidence(model(*model.train_inputs)).rows


def test_goes_on_from_the_last_fixed_point():
    model = model_of("labels")
    propagation = WarmExpectationPropagation()
    first = propagation(rows_of(model))
    again = propagation(rows_of(model))
    assert first.num_iterations > 3
    assert again.num_iterations == 1
    fewer = propagation(rows_of(model_of("many duels")))  # another number of rows: from the beginning
    assert fewer.num_iterations > 3


@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_is_that_of_a_cold_start(name):
    model = model_of("labels", skew_prior())
    mll = OBJECTIVES[name](model.likelihood, model).train()
    first = evaluate(mll).item()
    assert evaluate(mll).item() == pytest.approx(first, abs=1e-9)
    model.covar_module.outputscale = 0.5
    warm = evaluate(mll).item()
    mll.reset()
    cold = evaluate(mll).item()
    assert warm == pytest.approx(cold, abs=1e-8)
    mll.reset()
    assert evaluate(mll).item() == cold


def duels_of_few_items(m):
    """More duels than points, whose covariance has a root of low rank; equal ones are merged where they are many."""
    pairs = torch.combinations(torch.arange(6)).repeat(m // 15 + 1, 1)[:m]
    points = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    return SkewGP(points, Preference(pairs))


@pytest.mark.parametrize(
    "build",
    [
        lambda: model_of("labels"),
        lambda: model_of("labels", skew_prior()),
        lambda: model_of("numbers and duels", skew_prior()),
        lambda: SkewGP(torch.rand(5, 1, dtype=torch.float64), Numeric(torch.arange(5.0))),
        lambda: duels_of_few_items(40),
        lambda: duels_of_few_items(3000),
    ],
)
def test_values_at_many_hyperparameters_are_those_of_single_evaluations(build):
    """With covariances that are matrices, and with roots of low rank; sites for later calls stay as they are."""
    model = build()
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    evaluate(mll)
    sites, terms, single = mll._expectation_propagation._sites, [], []
    for scale in (0.5, 2.0, 8.0):
        model.covar_module.outputscale = scale
        cold = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        single.append(evaluate(cold).item())
        with torch.no_grad():
            terms.append(mll.terms(model(*model.train_inputs), model.train_targets))
    assert mll.values_of(terms).tolist() == pytest.approx(single, abs=1e-6)
    assert mll._expectation_propagation._sites is sites
    assert mll.values_of(terms[:1]).tolist() == pytest.approx(single[:1], abs=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_has_values_at_many_hyperparameters(name):
    model = model_of("labels", skew_prior())
    mll = OBJECTIVES[name](model.likelihood, model).train()
    with torch.no_grad():
        terms = [mll.terms(model(*model.train_inputs), model.train_targets)] * 2
    assert mll.values_of(terms).tolist() == pytest.approx([evaluate(mll).item()] * 2, abs=1e-6)


def test_reset_starts_the_chains_anew():
    model = model_of("labels")
    mll = StochasticMarginalLogLikelihood(model.likelihood, model).train()

    def gradient():
        return torch.autograd.grad(evaluate(mll), model.covar_module.raw_outputscale)[0]

    first, second = gradient(), gradient()
    assert not torch.equal(first, second)
    mll.reset()
    assert torch.equal(gradient(), first)


def test_objectives_do_not_share_what_they_keep():
    """Two objectives of one model: evaluating one leaves the other's values the same to the last bit."""
    values = []
    for disturbed in (False, True):
        model = model_of("labels")
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        evaluate(mll)
        model.covar_module.outputscale = 0.5
        if disturbed:
            evaluate(SkewGPMarginalLogLikelihood(model.likelihood, model).train())
        values.append(evaluate(mll).item())
    assert values[0] == values[1]


def test_gradients_from_sites_nearby_are_those_of_a_cold_start():
    model = model_of("many duels")
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    parameter, gradients = model.covar_module.raw_outputscale, []
    for step in (0.0, 0.1, 0.0):
        with torch.no_grad():
            parameter += step
        mll.reset() if len(gradients) == 2 else None
        gradients.append(torch.autograd.grad(evaluate(mll), parameter)[0])
    before, warm, cold = gradients
    assert (warm - cold).abs() < 1e-3 * (before - cold).abs()

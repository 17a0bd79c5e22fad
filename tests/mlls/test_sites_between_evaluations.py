"""What objectives keep between evaluations changes no value, belongs to them, and can be dropped."""

import pytest
import torch
from small_cases import evaluate, model_of, skew_prior

from botorch_skewgp.mlls import (
    BatchedMarginalLogLikelihood,
    SkewGPMarginalLogLikelihood,
    StochasticMarginalLogLikelihood,
)
from botorch_skewgp.mlls.warm_start import WarmExpectationPropagation
from botorch_skewgp.truncated import expectation_propagation

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


def test_exact_values_do_not_depend_on_earlier_ones(monkeypatch):
    monkeypatch.setattr(expectation_propagation, "MOST_COMPILED_SWEEPS", 0)  # they leave hardly anything to see
    values = {}
    for is_exact in (False, True):
        model = model_of("labels")
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        mll.is_exact = is_exact
        mll.reset()
        found = []
        for scale in (0.5, 8.0, 0.5):
            model.covar_module.outputscale = scale
            found.append(torch.autograd.grad(evaluate(mll), model.covar_module.raw_outputscale)[0].item())
        values[is_exact] = abs(found[2] - found[0])
    assert values[True] < 1e-9 < values[False]


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

"""Proposition 1's bound: the formula, where it holds, and where it is vacuous."""

import math

import pytest
import torch
from gpytorch.means import ConstantMean
from gradients import assert_parameter_gradient, evaluate
from small_cases import CASES, TRAIN_X, exact_objective, log_probability, model_of, skew_prior

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import VacuousBoundWarning
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric
from botorch_skewgp.papers import BatchBoundMarginalLogLikelihood

WARNING = "bounds nothing"


def bound_of(model, **kwargs):
    return BatchBoundMarginalLogLikelihood(model.likelihood, model, **kwargs).train()


def probability_bound(mll):
    with torch.no_grad():
        return mll.bound(mll.model(*mll.model.train_inputs), mll.model.train_targets).item()


def nearly_certain(prior=None, numbers=()):
    """All labels are 1 and the mean is high: every row has a probability of about 0.96."""
    observations = [Binary([1, 1, 1, 1, 1, 1]), *numbers]
    model = SkewGP(TRAIN_X / 3, observations, mean_module=ConstantMean(), skew_prior=prior)
    model.mean_module.initialize(constant=3.0)
    return model


@pytest.mark.parametrize("name", CASES)
def test_one_batch_is_the_whole(name):
    model = model_of(name, skew_prior() if name == "labels" else None)
    whole = evaluate(SkewGPMarginalLogLikelihood(model.likelihood, model).train()).item()
    assert evaluate(bound_of(model, batch_size=100)).item() == pytest.approx(whole, abs=1e-8)


def test_formula_for_single_rows():
    """`sum_i p_i - (m - 1)` with marginal probabilities in closed form."""
    model = nearly_certain()
    variance = model.covar_module.outputscale.item() + 1
    p = 0.5 * math.erfc(-3.0 / math.sqrt(2 * variance))
    mll = bound_of(model, batch_size=1)
    assert probability_bound(mll) == pytest.approx(6 * p - 5, abs=1e-9)


@pytest.mark.parametrize("numbers", [(), (Numeric([0.5], noise=0.1, index=[2]),)])
def test_a_skew_prior_joins_every_batch_and_its_normaliser_divides(numbers):
    """`sum_i P(row i | prior's rows) - (m - 1)`, given the number if there is one, by cubature."""
    model = nearly_certain(skew_prior(learn=False), numbers)
    mll = bound_of(model, batch_size=1)
    with torch.no_grad():
        rows = model.evidence(model(*model.train_inputs)).rows
    every = [log_probability(rows.select(torch.tensor([0, 1, 2 + i]))) for i in range(6)]
    of_prior = log_probability(rows.select(torch.tensor([0, 1])))
    wanted = sum(math.exp(one - of_prior) for one in every) - 5
    assert 0.1 < wanted < 0.95
    assert probability_bound(mll) == pytest.approx(wanted, abs=0.01)
    assert evaluate(mll).item() < exact_objective(model) - 1e-3


@pytest.mark.parametrize("prior", [None, skew_prior(learn=False)])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_is_below_the_exact_evidence(batch_size, prior):
    model = nearly_certain(prior)
    mll = bound_of(model, batch_size=batch_size)
    assert 0 < probability_bound(mll) < 1
    assert evaluate(mll).item() < exact_objective(model) - 1e-3


def test_says_when_it_is_vacuous():
    mll = bound_of(model_of("labels"), batch_size=1)
    assert probability_bound(mll) < 0
    with pytest.warns(VacuousBoundWarning, match=WARNING):
        assert evaluate(mll).isfinite()


@pytest.mark.filterwarnings(f"ignore:.*{WARNING}:botorch_skewgp.exceptions.VacuousBoundWarning")  # on purpose
@pytest.mark.parametrize("model", [model_of("labels"), model_of("labels", skew_prior()), nearly_certain()])
def test_gradient_of_a_bound_and_of_a_vacuous_one(model):
    assert_parameter_gradient(bound_of(model, batch_size=2), atol=1e-5)


@pytest.mark.filterwarnings(f"ignore:.*{WARNING}:botorch_skewgp.exceptions.VacuousBoundWarning")  # on purpose
def test_order_of_hyperparameters_is_that_of_the_bound():
    """Through the place where the logarithm gives way to its tangent."""
    values, bounds = [], []
    for constant in torch.linspace(1.2, 3.0, 10).tolist():
        model = nearly_certain()
        model.mean_module.initialize(constant=constant)
        mll = bound_of(model, batch_size=1)
        values.append(evaluate(mll).item())
        bounds.append(probability_bound(mll))
    assert bounds[0] < 0 < bounds[-1]
    assert bounds == sorted(bounds)
    assert values == sorted(values)

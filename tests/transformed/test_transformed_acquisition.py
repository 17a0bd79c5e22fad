"""Acquisition functions of transformed processes: values, gradients, and an optimisation to the end."""

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qSimpleRegret
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.generation.sampling import MaxPosteriorSampling
from botorch.models import SingleTaskGP
from botorch.sampling.normal import SobolQMCNormalSampler
from gradients import assert_gradient
from transformed_cases import DOUBLE, data, shared

from botorch_skewgp.acquisition import QuantileBound
from botorch_skewgp.transformed import TransformedLogExpectedImprovement, TransformedLogProbabilityOfImprovement


def sampler():
    return SobolQMCNormalSampler(torch.Size([32]), seed=1)


FUNCTIONS = {
    "log probability of improvement": lambda m: TransformedLogProbabilityOfImprovement(m, best_f=3.0),
    "log probability of a lower value": lambda m: TransformedLogProbabilityOfImprovement(m, 1.0, maximize=False),
    "log expected improvement": lambda m: TransformedLogExpectedImprovement(m, best_f=3.0),
    "log expected improvement of a lower value": lambda m: TransformedLogExpectedImprovement(m, 1.0, maximize=False),
    "quantile": lambda m: QuantileBound(m, probability=0.9),
    "qLogEI": lambda m: qLogExpectedImprovement(m, best_f=3.0, sampler=sampler()),
    "qLogNEI": lambda m: qLogNoisyExpectedImprovement(m, data()[0], sampler=sampler(), prune_baseline=False),
    "qSimpleRegret": lambda m: qSimpleRegret(m, sampler=sampler()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    acquisition = FUNCTIONS[name](shared("sinh-arcsinh"))
    X = torch.tensor([[[0.31, 0.62]], [[0.74, 0.2]]], dtype=DOUBLE)
    assert acquisition(X).shape == (2,)
    assert_gradient(acquisition, X, rtol=1e-3, atol=1e-5)


def test_probability_of_improvement():
    transformed, X = shared("sinh-arcsinh"), data()[0][:3].unsqueeze(-2)
    posterior = transformed.posterior(X)
    above = TransformedLogProbabilityOfImprovement(transformed, best_f=2.0)(X)
    torch.testing.assert_close(above.exp(), posterior.probability_above(2.0).flatten())
    below = TransformedLogProbabilityOfImprovement(transformed, best_f=2.0, maximize=False)(X)
    torch.testing.assert_close(below.exp(), posterior.cdf(2.0).flatten())
    far = TransformedLogProbabilityOfImprovement(transformed, best_f=1e60)(X)
    assert (far.isfinite() & (far < -10)).all()


@pytest.mark.parametrize("maximize", [True, False])
def test_expected_improvement_without_a_warping(maximize):
    # that of the outcome, by integrating the mixture's tail
    identity = shared("identity")
    X = data()[0][2:5].unsqueeze(-2)
    with torch.no_grad():
        found = TransformedLogExpectedImprovement(identity, best_f=2.0, maximize=maximize)(X).exp()
        posterior = identity.posterior(X)
        u = torch.linspace(0, 1, 4001, dtype=DOUBLE)[1:-1]  # of a step v = u / (1 - u)
        v = u / (1 - u)
        tail = posterior.probability_above(2.0 + v) if maximize else posterior.cdf(2.0 - v)
        expected = (tail.view(len(u), -1) / (1 - u).square().unsqueeze(-1)).sum(0) * (u[1] - u[0])
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=2e-4)


def test_best_values_must_be_one_finite_number_of_the_domain():
    for best_f in (torch.tensor(float("nan")), torch.tensor([1.0, 2.0])):
        with pytest.raises(InputDataError, match="best_f must be a finite number"):
            TransformedLogExpectedImprovement(shared("identity"), best_f=best_f)
    acquisition = TransformedLogExpectedImprovement(shared("Box-Cox"), best_f=-1.0)
    with pytest.raises(ValueError, match="domain"):
        acquisition(data()[0][:1].unsqueeze(0))


def test_expected_improvement_is_finite_where_it_is_all_but_impossible():
    heavy = shared("arcsinh")
    X = data()[0][:2].unsqueeze(-2).clone().requires_grad_()
    value = TransformedLogExpectedImprovement(heavy, best_f=1e60)(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert (value.isfinite().all(), gradient.isfinite().all(), (gradient != 0).any()) == (True, True, True)


def test_other_models_are_refused():
    X, Y = data()
    for function in (TransformedLogProbabilityOfImprovement, TransformedLogExpectedImprovement):
        with pytest.raises(UnsupportedError, match=function.__name__.replace("Transformed", "Skew")):
            function(SingleTaskGP(X, Y), best_f=1.0)(X[:1].unsqueeze(0))


def test_thompson_sampling():
    transformed, X = shared("sinh-arcsinh"), torch.rand(30, 2, dtype=DOUBLE)
    chosen = MaxPosteriorSampling(transformed)(X, num_samples=4)
    assert chosen.shape == (4, 2)
    median = transformed.posterior(X).median
    assert transformed.posterior(chosen).median.mean() > median.mean()

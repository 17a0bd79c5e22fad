"""The stochastic gradient against finite differences of the exact evidence."""

import math

import numpy as np
import pytest
import torch
from gpytorch.priors import LogNormalPrior
from gradients import differences, evaluate, gradients
from small_cases import CASES, exact_objective, model_of, skew_prior
from torch.distributions import Normal

from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.papers import StochasticMarginalLogLikelihood
from botorch_skewgp.papers.stochastic import _by_rows
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

NUM_EVALUATIONS = 25
DIFFERENCE_ERROR = 2e-3  # of finite differences of a numerical integral


def stochastic(model, **kwargs):
    return StochasticMarginalLogLikelihood(model.likelihood, model, **kwargs).train()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "skewed"), [*((name, False) for name in CASES), ("labels", True), ("numbers and duels", True)]
)
def test_gradient_in_every_hyperparameter(name, skewed):
    """Means over evaluations in standard errors, which grow by 1.5 for what is left of autocorrelation."""
    model = model_of(name, skew_prior() if skewed else None)
    mll = stochastic(model, num_chains=64, num_steps=2)
    found = torch.stack([gradients(mll) for _ in range(NUM_EVALUATIONS)])
    error = 1.5 * found.std(0) / math.sqrt(NUM_EVALUATIONS) + DIFFERENCE_ERROR
    wanted = differences(exact_objective, model, 1e-2)
    scores = (found.mean(0) - wanted) / error
    assert scores.abs().max() < 4, scores
    assert (error < 0.1 + 0.2 * wanted.abs()).all(), error  # or the comparison says nothing


def test_value_is_that_of_expectation_propagation_with_priors():
    model = model_of("labels", skew_prior())
    model.covar_module.register_prior("outputscale_prior", LogNormalPrior(1.0, 1.0), "outputscale")
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    assert evaluate(stochastic(model)).item() == pytest.approx(evaluate(mll).item(), abs=1e-7)


def test_chains_go_on_from_where_they_were():
    """The second evaluation differs from the first; a fresh object repeats both."""
    runs = []
    for _ in range(2):
        mll = stochastic(model_of("labels"), seed=3)
        runs.append([gradients(mll), gradients(mll)])
    assert torch.equal(runs[0][0], runs[1][0])
    assert torch.equal(runs[0][1], runs[1][1])
    assert not torch.equal(runs[0][0], runs[0][1])


@pytest.mark.parametrize("wrong", [{"num_chains": 0}, {"num_steps": 0}, {"warmup": -1}])
def test_refuses_impossible_settings(wrong):
    with pytest.raises(ValueError, match="must be positive"):
        stochastic(model_of("labels"), **wrong)


def two_rows():
    """Tensors of a truncated normal of two rows, one of them two-sided, all with gradients."""
    entries = {
        "mean": [0.3, -0.2],
        "covariance": [[1.2, 0.7], [0.7, 0.9]],
        "lower": [0.1, -0.8],
        "upper": [1.9, 0.4],
        "noise": [0.3, 0.5],
    }
    return {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in entries.items()}


def log_probability_of_two_rows(t):
    """The second row's probability given the first, integrated over the first by Gauss-Legendre quadrature."""
    nodes, weights = (torch.from_numpy(x) for x in np.polynomial.legendre.leggauss(60))
    gamma = t["covariance"] + torch.diag(t["noise"])
    half, centre = (t["upper"][0] - t["lower"][0]) / 2, (t["upper"][0] + t["lower"][0]) / 2
    u = centre + half * nodes
    slope = 0.5 * (gamma[0, 1] + gamma[1, 0]) / gamma[0, 0]
    sd = (gamma[1, 1] - slope.square() * gamma[0, 0]).sqrt()
    mean = t["mean"][1] + slope * (u - t["mean"][0])
    inside = torch.special.ndtr((t["upper"][1] - mean) / sd) - torch.special.ndtr((t["lower"][1] - mean) / sd)
    density = Normal(t["mean"][0], gamma[0, 0].sqrt()).log_prob(u).exp()
    return (half * weights * density * inside).sum().log()


def test_gradient_in_every_tensor_from_independent_draws(generator):
    """Many independent draws, so that an error of four per cent in any part would be seen."""
    tensors = two_rows()
    names = list(tensors)
    wanted = dict(zip(names, torch.autograd.grad(log_probability_of_two_rows(tensors), tensors.values()), strict=True))
    distribution = TruncatedNormal(**{"prior" if name == "covariance" else name: x for name, x in tensors.items()})
    frozen = distribution.map(torch.Tensor.detach)
    normals = torch.randn(2_400_000, 2, generator=generator, dtype=torch.float64)
    u = frozen.mean + normals @ frozen.gamma_cholesky.mT
    u = u[((u > frozen.lower) & (u <= frozen.upper)).all(-1)]
    found = [torch.autograd.grad(_by_rows(distribution, frozen, part), tensors.values()) for part in u.chunk(40)]
    for name, parts in zip(names, zip(*found, strict=True), strict=True):
        estimates = torch.stack(parts)
        error = estimates.std(0) / 40**0.5
        assert (error < 0.008 * wanted[name].abs().max()).all(), name  # or the comparison says little
        assert ((estimates.mean(0) - wanted[name]).abs() < 4 * error).all(), name

"""Fractional counts: powers of likelihoods, against quadrature over the one latent value that all answers read."""

import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.means import ZeroMean
from gradients import assert_parameter_gradient

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import NumericLikelihood, OrdinalLikelihood, ProbitLikelihood, VoteLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Censored, Choice, Ordinal, Preference, Vote
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.truncated.powered_factor import PoweredFactor
from botorch_skewgp.truncated.row_factor import RowFactor
from botorch_skewgp.truncated.univariate import log_interval_probability

POINT = torch.zeros(1, 1, dtype=torch.double)
GRID = torch.linspace(-40, 40, 160_001, dtype=torch.double)
STEP = float(GRID[1] - GRID[0])
WEIGHTS = [0.3, 2.4, 0.7]


def over(bounds: list[tuple[float, float]], noise: float = 1.0) -> torch.Tensor:
    """Log probabilities of intervals given values on the grid, a row for each."""
    sd = math.sqrt(noise)
    ends = [[(torch.tensor(end, dtype=torch.double) - GRID) / sd for end in pair] for pair in bounds]
    return torch.stack([log_interval_probability(*pair) for pair in ends])


LABELS = over([(0.0, math.inf), (0.0, math.inf), (-math.inf, 0.0)])
CASES = {
    "labels": (Binary([1, 1, 0], index=[0, 0, 0], count=WEIGHTS), ProbitLikelihood(), LABELS),
    "slips": (
        Binary([1, 1, 0], index=[0, 0, 0], count=WEIGHTS),
        ProbitLikelihood(slip=0.2),
        (0.1 + 0.8 * LABELS.exp()).log(),
    ),
    "grades": (
        Ordinal([2, 1, 1], 3, index=[0, 0, 0], count=WEIGHTS),
        OrdinalLikelihood(3, cutpoints=[-1.0, 1.5]),
        over([(1.5, math.inf), (-1.0, 1.5), (-1.0, 1.5)]),
    ),
    "limits": (
        Censored([-math.inf, 0.5, -1.0], [0.3, math.inf, 1.0], index=[0, 0, 0], count=WEIGHTS),
        NumericLikelihood(noise=0.25),
        over([(-math.inf, 0.3), (0.5, math.inf), (-1.0, 1.0)], noise=0.25),
    ),
}


def model_of(observation, likelihood=None, **kwargs):
    return SkewGP(POINT, observation, likelihood, rbf_kernel(9.0, 1.0), ZeroMean(), **kwargs)


@pytest.mark.parametrize("name", CASES)
def test_posterior_and_evidence_are_those_of_the_powered_likelihood(name):
    observation, likelihood, log_factors = CASES[name]
    weight = torch.tensor(WEIGHTS, dtype=torch.double)
    log_density = weight @ log_factors - GRID.square() / 18 - 0.5 * math.log(18 * math.pi)
    evidence = torch.logsumexp(log_density, 0) + math.log(STEP)
    density = (log_density - evidence).exp() * STEP
    mean = float(density @ GRID)
    sd = float(density @ (GRID - mean).square()) ** 0.5
    model = model_of(observation, likelihood, draw_settings=DrawSettings(num_draws=4096))
    found = model.log_marginal_likelihood("exact")
    assert abs(float(found.value - evidence)) < 4 * float(found.standard_error) + 0.003
    assert float(model.log_marginal_likelihood("ep").value) == pytest.approx(float(evidence), abs=0.08)
    posterior = model.posterior(POINT)
    assert float(posterior.mean) == pytest.approx(mean, abs=4 * sd / math.sqrt(2048))
    assert float(posterior.variance.sqrt()) == pytest.approx(sd, rel=0.04)
    levels = torch.tensor([0.05, 0.5, 0.95], dtype=torch.double)
    exact = GRID[torch.searchsorted(density.cumsum(0), levels)]
    assert torch.allclose(posterior.quantile(levels).flatten(), exact, atol=0.08 * sd)


def test_a_lone_factor_is_integrated_exactly():
    mean, variance, noise, power = 0.7, 4.0, 0.3, 0.4
    log_density = power * over([(-0.2, 1.1)], noise)[0] - (GRID - mean).square() / (2 * variance)
    log_density = log_density - 0.5 * math.log(2 * math.pi * variance) + math.log(STEP)
    mass = float(torch.logsumexp(log_density, 0))
    density = (log_density - mass).exp()
    tilted = float(density @ GRID)
    spread = float(density @ (GRID - tilted).square())
    one = torch.ones(1, dtype=torch.double)
    factor = PoweredFactor(RowFactor(-0.2 * one, 1.1 * one, noise * one), power * one)
    scale, t_mean, t_variance = factor.moments(mean * one, variance * one)
    assert float(factor.log_probability(mean * one, variance * one)) == pytest.approx(mass, abs=1e-9)
    assert float(mean + t_mean * variance / scale) == pytest.approx(tilted, abs=1e-7)
    assert float(variance - (1 - t_variance) * variance**2 / scale**2) == pytest.approx(spread, rel=1e-6)


def test_evidence_has_the_derivatives_of_its_differences():
    model = model_of(CASES["limits"][0], NumericLikelihood(noise=0.25, learn_noise=True))
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(model.likelihood, model).train())


def many(observation, **kwargs):
    X = torch.rand(8, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return SkewGP(X, observation, **{"draw_settings": DrawSettings(num_draws=512)} | kwargs)


PAIRS = [[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [1, 4]]
FRACTIONS = torch.tensor([0.4, 1.2, 0.9, 2.5, 0.3, 0.7])


@pytest.mark.parametrize(
    "kwargs", [{}, {"approximation": "ep"}, {"inducing_points": 4}], ids=["exact", "ep", "inducing"]
)
def test_models_of_weighted_duels_fit_predict_and_look_ahead(kwargs):
    model = many(Preference(PAIRS, count=FRACTIONS, judge=[0, 1, 0, 1, 0, 1]), **kwargs)
    if kwargs == {"approximation": "ep"}:
        options = {"options": {"maxiter": 3}}
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=options)
    copy = deepcopy(model)
    X = torch.rand(3, 2, dtype=torch.double)
    assert torch.equal(copy.posterior(X).mean, model.posterior(X).mean)
    sampler = SobolQMCNormalSampler(torch.Size([2]), seed=0)
    assert model.fantasize(X[:2], sampler).posterior(X).mean.shape == (2, 3, 1)
    assert model.float().posterior(X.float()).mean.dtype == torch.float32


def test_votes_weigh_difference_and_average():
    """Two parts of each vote say what the vote says."""
    answers = ["first", "both bad", "tie", "second", "both good", "first"]
    whole = many(Vote(PAIRS, answers))
    part = torch.tensor([0.2, 0.9, 0.6, 0.1, 0.5, 0.7])
    parts = many(Vote(PAIRS + PAIRS, answers + answers, count=torch.cat([part, 1 - part])))
    values = [model.log_marginal_likelihood("exact") for model in (parts, whole)]
    error = math.hypot(*(float(value.standard_error) for value in values))
    assert abs(float(values[0].value - values[1].value)) < 4 * error + 2e-3


def test_weights_of_duels_turn_round_with_them():
    once = Preference(PAIRS, count=FRACTIONS)
    assert torch.equal(once.reversed().count, once.count)
    assert torch.equal(replace(once, judge=torch.arange(6)).count, once.count)


def posterior_of(model):
    return model.posterior(model.datapoints)


class Ignoring(ProbitLikelihood):
    def rows(self, *args):
        return replace(super().rows(*args), count=None)


ONCE, VOTES = Preference(PAIRS, count=FRACTIONS), Vote(PAIRS, ["first"] * 6, count=FRACTIONS)
LABELLED = CASES["labels"][0]
REFLECTIVE = DrawSettings(sampler="reflective")
WHOLE = "count must hold whole numbers for Choice, whose comparisons share noise"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: Choice([[0, 1, 2]], count=0.5), WHOLE),
        (lambda: Choice([[0, 1, 2]] * 2, count=[1, 1.5]), WHOLE),
        (lambda: leave_one_out(many(ONCE)), "count= of fractions, have no leave-one-out densities"),
        (lambda: many(VOTES, likelihood=VoteLikelihood(slip=0.1)), "Votes that may be slips take whole numbers"),
        (lambda: posterior_of(many(ONCE, draw_settings=REFLECTIVE)), "The reflective sampler draws single rows"),
        (lambda: posterior_of(model_of(LABELLED, Ignoring())), "The rows of Binary observations ignore weights"),
    ],
)
def test_what_takes_no_weights_says_so(ask, message):
    with pytest.raises((InputDataError, UnsupportedError), match=message):
        ask()


def test_equal_answers_add_up_their_weights():
    likelihood = ProbitLikelihood()
    rows = likelihood.rows(Binary([1, 1, 0], index=[0, 0, 0], count=WEIGHTS), torch.zeros(1, dtype=torch.double))
    assert rows.merged()[0].count.tolist() == pytest.approx([WEIGHTS[0] + WEIGHTS[1], WEIGHTS[2]])

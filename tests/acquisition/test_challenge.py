"""Challengers: the hallucination believer and the maximally uncertain challenge."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    DuelingLogExpectedImprovement,
    DuelingUpperConfidenceBound,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings

PAIRS = torch.tensor([[0, 1], [2, 3], [4, 1], [0, 5]])


@pytest.fixture(scope="module")
def model() -> SkewGP:
    X = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = SkewGP(X, Preference(PAIRS), PreferenceLikelihood(0.5), draw_settings=DrawSettings(num_draws=256))
    model.covar_module.outputscale = 4.0
    model.covar_module.base_kernel.lengthscale = 0.4
    return model.eval()


@pytest.fixture(scope="module")
def candidates() -> torch.Tensor:
    return torch.rand(3, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def gaussian_given_draw(model, candidates, reference, draw):
    """Mean and standard deviation of `f(x) - f(x_r)`, by conditioning on the draw's rows with dense linear algebra."""
    X = model.datapoints
    W = torch.zeros(4, 6, dtype=torch.float64).scatter(1, PAIRS, torch.tensor([[1.0, -1.0]] * 4, dtype=torch.float64))
    points = torch.cat([candidates.squeeze(-2), reference])
    K = model.covar_module(torch.cat([X, points])).to_dense().detach()
    rows = W @ K[:6, :6] @ W.mT + 2 * 0.5 * torch.eye(4, dtype=torch.float64)
    contrast = torch.cat([torch.eye(3), -torch.ones(3, 1)], dim=-1).double()
    cross = contrast @ K[6:, :6] @ W.mT
    # the posterior orders its draws: find the one by its means
    means = model.draws.rows.double() @ torch.linalg.solve(rows, cross.mT)  # S x 3
    variance = (contrast @ K[6:, 6:] @ contrast.mT - cross @ torch.linalg.solve(rows, cross.mT)).diagonal()
    return means, variance.sqrt()


def test_hallucinated_improvement_is_that_of_the_gaussian_given_one_draw(model, candidates):
    reference = model.datapoints[:1]
    means, deviation = gaussian_given_draw(model, candidates, reference, 7)
    normal = torch.distributions.Normal(torch.zeros(3).double(), torch.ones(3).double())
    z = means / deviation
    expected = deviation * (z * normal.cdf(z) + normal.log_prob(z).exp())  # of every draw
    value = HallucinatedLogExpectedImprovement(model, reference, draw=7)(candidates).exp()
    assert (expected - value).abs().amax(-1).amin() < 1e-8  # of one draw, at all candidates
    bound = HallucinatedUpperConfidenceBound(model, reference, beta=4.0, draw=7)(candidates)
    assert (means + 2 * deviation - bound).abs().amax(-1).amin() < 1e-8


def test_expected_improvement_is_that_of_the_skewed_posterior(model, candidates):
    reference = model.datapoints[:1]
    value = DuelingLogExpectedImprovement(model, reference)(candidates).exp()
    pairs = torch.cat([candidates, reference.expand(3, 1, 2)], dim=-2)
    torch.manual_seed(0)
    values = model.posterior(pairs).rsample(torch.Size([50_000])).squeeze(-1)
    improvement = (values[..., 0] - values[..., 1]).clamp(min=0)
    assert ((improvement.mean(0) - value).abs() < 4 * improvement.std(0) / 50_000**0.5).all()


def test_confidence_bound_is_that_of_the_moments_of_the_difference(model, candidates):
    reference = model.datapoints[:1]
    pairs = torch.cat([candidates, reference.expand(3, 1, 2)], dim=-2)
    torch.manual_seed(0)
    values = model.posterior(pairs).rsample(torch.Size([50_000])).squeeze(-1)
    difference = values[..., 0] - values[..., 1]
    for quantile, options in ((0.975, {}), (0.5, {"beta": 0.0})):
        number = torch.special.ndtri(torch.tensor(quantile, dtype=torch.float64))
        expected = difference.mean(0) + number * difference.std(0)
        spread = (difference - difference.mean(0) + number * difference.square() / difference.std(0)).std(0)  # generous
        bound = DuelingUpperConfidenceBound(model, reference, **options)(candidates)
        assert ((bound - expected).abs() < 4 * spread / 50_000**0.5).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda model, x: HallucinatedLogExpectedImprovement(model, x, draw=0),
        lambda model, x: DuelingUpperConfidenceBound(model, x),
    ],
    ids=["hallucination", "confidence bound"],
)
def test_challenger_at_the_reference_is_finite_with_gradient(model, make):
    X = model.datapoints[:1].clone().requires_grad_()
    value = make(model, model.datapoints[0])(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


def test_believed_draw_is_random_and_repeats_with_the_generator(model):
    drawn = [
        HallucinatedLogExpectedImprovement(
            model, model.datapoints[0], generator=torch.Generator().manual_seed(seed)
        ).draw
        for seed in (0, 0, 1, 2, 3)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1


def test_uncertain_challenge_is_the_variance_of_the_probability(model, candidates):
    reference = model.datapoints[:1]
    acquisition = MaximallyUncertainChallenge(model, reference)
    pairs = torch.cat([candidates, reference.expand(3, 1, 2)], dim=-2)
    torch.manual_seed(0)
    values = model.posterior(pairs).rsample(torch.Size([50_000])).squeeze(-1)
    probability = torch.special.ndtr((values[..., 0] - values[..., 1]) / (2 * 0.5) ** 0.5)
    error = ((probability - probability.mean(0)).square().std(0)) / 50_000**0.5
    assert ((acquisition(candidates) - probability.var(0)).abs() < 4 * error).all()


def test_refusals(model):
    with pytest.raises(InputDataError, match="draw must be an integer from 0 to 255"):
        HallucinatedLogExpectedImprovement(model, model.datapoints[0], draw=256)
    with pytest.raises(InputDataError, match="beta must be a finite number of at least 0"):
        HallucinatedUpperConfidenceBound(model, model.datapoints[0], beta=-1.0)
    with pytest.raises(InputDataError, match="beta must be a finite number of at least 0"):
        DuelingUpperConfidenceBound(model, model.datapoints[0], beta=-1.0)
    numbers = SkewGP(model.datapoints, Numeric(torch.linspace(-1, 1, 6, dtype=torch.float64)))
    with pytest.raises(InputDataError, match="Preference"):
        MaximallyUncertainChallenge(numbers, model.datapoints[0])

"""Kinds that must agree with each other, and limits with a closed form."""

import math

import gpytorch
import pytest
import torch
from kind_cases import (
    INF,
    KINDS,
    TEST_X,
    TRAIN_X,
    Parameters,
    assert_same_law,
    at,
    kernel,
    log_evidence,
    mean,
    model_of,
    tensor,
)

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OrdinalLikelihood, ProbitLikelihood
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Tie,
    Validity,
)

P = Parameters()
PAIRS = torch.tensor([[0, 1], [2, 3], [4, 1], [1, 0]])


def contrasts(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def eye(n: int) -> torch.Tensor:
    return torch.eye(n, dtype=torch.float64)


def grades(cutpoints: torch.Tensor | None) -> SkewGP:
    likelihood = OrdinalLikelihood(2, cutpoints, noise=tensor(0.6))
    return model_of(Ordinal(LABELS, 2, index=at(0, 1, 1, 4)), with_likelihood=likelihood)


def labels() -> SkewGP:
    return model_of(Binary(LABELS, index=at(0, 1, 1, 4)), with_likelihood=ProbitLikelihood(noise=tensor(0.6)))


def duels() -> SkewGP:
    return model_of(Preference(PAIRS))


def moved() -> AffineProbit:
    given = KINDS["affine"]
    return AffineProbit(given.weight, given.bias + 0.7, given.covariance, given.lower + 0.7, given.upper + 0.7)


LABELS = torch.tensor([1, 0, 0, 1])
OPTIONS = torch.tensor([[1, 0, 2], [4, 3, 5]])
RANKS = torch.tensor([[0, 1, 1], [2, 7, 7]])  # only their order counts
VALID = Validity(torch.ones(2, dtype=torch.bool), index=at(1, 4))
VALID_BY_HAND = AffineProbit(eye(6)[[1, 4]], tensor(-P.threshold)[0], P.validity * eye(2))
LABELS_BY_HAND = AffineProbit(eye(6)[:2], 0.0, P.labels * eye(2), tensor(0.0, -INF), tensor(INF, 0.0))
DUELS_BY_HAND = AffineProbit(
    contrasts([1, -1, 0, 0, 0, 0], [0, 0, 1, -1, 0, 0], [0, -1, 0, 0, 1, 0], [-1, 1, 0, 0, 0, 0]),
    0.0,
    2 * P.items * eye(4),
)
EMPTY = [
    Numeric(tensor()),
    Binary(tensor()),
    Preference(torch.zeros(0, 2, dtype=torch.long)),
    Tie(torch.zeros(0, 2, dtype=torch.long)),
    Choice(torch.zeros(0, 3, dtype=torch.long)),
    Ranking(torch.zeros(0, 3, dtype=torch.long)),
    Ordinal(tensor(), 3),
    Validity(tensor()),
    Censored(tensor(), tensor()),
    AffineProbit(torch.zeros(0, 6).double(), tensor(), torch.zeros(0, 0).double()),
]
INSTRUMENTS = NumericLikelihood(noise=tensor(0.01)), NumericLikelihood(noise=tensor(1.0))
SAME_ROWS = {
    "two grades are a label": (lambda: grades(tensor(0.0)), labels),
    "two grades with cut-points of their own are a label": (lambda: grades(None), labels),
    "a choice of two is a duel": (lambda: model_of(Choice(PAIRS)), duels),
    "a ranking of two is a duel": (lambda: model_of(Ranking(PAIRS)), duels),
    "a ranking of two with a tie is a tie": (
        lambda: model_of(Ranking(PAIRS, torch.zeros_like(PAIRS))), lambda: model_of(Tie(PAIRS))),
    "rankings of two where ties are allowed are duels where they are": (
        lambda: model_of(Ranking(PAIRS, ties_allowed=True)),
        lambda: model_of(Preference(PAIRS), parameters=Parameters(ties_allowed=True))),
    "a padded choice of two is a duel": (
        lambda: model_of(Choice(torch.cat([PAIRS, torch.full_like(PAIRS, -1)], dim=-1))), duels),
    "several observations of a kind are one list": (
        lambda: model_of([Preference(PAIRS[:1]), Preference(PAIRS[1:])]), duels),
    "duels by hand": (lambda: model_of(DUELS_BY_HAND), duels),
    "a ranking with one rank of losers is a choice": (
        lambda: model_of(Ranking(OPTIONS, RANKS, ties_allowed=False)), lambda: model_of(Choice(OPTIONS))),
    "validity by hand": (
        lambda: model_of([KINDS["numeric"], VALID]), lambda: model_of([KINDS["numeric"], VALID_BY_HAND])),
    "labels by hand": (lambda: model_of(LABELS_BY_HAND), lambda: model_of(Binary(torch.tensor([1, 0])))),
    "bias and bounds only count together": (lambda: model_of(KINDS["affine"]), lambda: model_of(moved())),
    "observations without entries say nothing": (
        lambda: model_of([KINDS["binary"], *EMPTY]), lambda: model_of(KINDS["binary"])),
    "the first likelihood that takes a kind is used": (
        lambda: model_of(KINDS["numeric"], with_likelihood=MixedLikelihood(*INSTRUMENTS)),
        lambda: model_of(KINDS["numeric"], with_likelihood=INSTRUMENTS[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_ROWS)
def test_models_of_the_same_rows(name):
    """Their draws are made with the same seed."""
    one, other = (make() for make in SAME_ROWS[name])
    assert log_evidence(one) == pytest.approx(log_evidence(other), abs=1e-10)
    for statistic in ("mean", "variance", "skewness"):
        ours, theirs = (getattr(m.posterior(TEST_X), statistic) for m in (one, other))
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-8)


def test_observations_without_entries_alone():
    assert model_of(EMPTY, with_likelihood=None).posterior(TEST_X).mean.isfinite().all()


OF_CHOICE = AffineProbit(contrasts([-1, 1, 0, 0, 0, 0], [0, 1, -1, 0, 0, 0]), 0.0, P.items * (eye(2) + 1))
OF_RANKING = AffineProbit(
    contrasts([0, 0, 1, -1, 0, 0], [0, 0, 0, 1, -1, 0], [0, 0, 0, 0, 1, -1]),
    0.0,
    P.items * (2 * eye(3) - torch.diag(tensor(1.0, 1.0), 1) - torch.diag(tensor(1.0, 1.0), -1)),
)
LOW = Parameters(threshold=-50.0)  # which validity is far above
FREE = Censored(tensor(-INF, -INF), tensor(INF, INF), index=at(2, 5))
SAME_LAW = {
    "a choice's differences share the winner's noise": ([OF_CHOICE], [Choice(OPTIONS[:1])], P),
    "a ranking's neighbours share the noise of one": ([OF_RANKING], [Ranking(torch.tensor([[2, 3, 4, 5]]))], P),
    "a reading without bounds beside numbers": ([KINDS["numeric"], FREE], [KINDS["numeric"]], P),
    "a reading without bounds beside duels": ([KINDS["preference"], FREE], [KINDS["preference"]], P),
    "validity far above the threshold": (
        [KINDS["numeric"], Validity(torch.ones(6, dtype=torch.bool))], [KINDS["numeric"]], LOW),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_LAW)
def test_models_of_the_same_distribution(name):
    *both, parameters = SAME_LAW[name]
    one, other = (model_of(observations, parameters=parameters) for observations in both)
    assert_same_law(one, other)


def difference_at_zero(pair: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Mean and variance at the test points given that the noisy difference is zero, and its log density there."""
    Z = torch.cat([TRAIN_X, TEST_X])
    K = kernel()(Z).to_dense().detach()
    a = torch.zeros(len(Z), dtype=Z.dtype)
    a[pair[0]], a[pair[1]] = 1.0, -1.0
    variance = a @ K @ a + 2 * P.items
    gain = (K @ a) / variance
    center = mean()(Z).detach() - gain * (a @ mean()(Z).detach())
    spread = K.diagonal() - gain.square() * variance
    return center[6:], spread[6:], float(-0.5 * (2 * math.pi * variance).log())


@pytest.mark.parametrize("width", [1e-2, 1e-5, 1e-8])
def test_narrow_tie_is_a_reading_of_zero(width):
    model = model_of(Tie(torch.tensor([[0, 2]])), parameters=Parameters(tie_width=width), num_draws=128)
    center, spread, log_density = difference_at_zero((0, 2))
    assert log_evidence(model) == pytest.approx(math.log(2 * width) + log_density, abs=width**2 + 1e-6)
    posterior = model.posterior(TEST_X)
    assert torch.allclose(posterior.mean.squeeze(-1), center, rtol=0, atol=width)
    assert torch.allclose(posterior.variance.squeeze(-1), spread, rtol=0, atol=width)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module = mean(), kernel()

    def forward(self, X):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


@pytest.mark.parametrize("given_noise", [False, True])
def test_numbers_alone_are_exact_gp_regression(given_noise):
    y = torch.sin(3 * TRAIN_X).squeeze(-1)
    noise = torch.linspace(0.01, 0.3, 6, dtype=torch.float64)
    if given_noise:
        likelihood, observation = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(noise), Numeric(y, noise)
    else:
        likelihood, observation = gpytorch.likelihoods.GaussianLikelihood().double(), Numeric(y)
        likelihood.initialize(noise=tensor(P.numbers))
    exact = Exact(TRAIN_X, y, likelihood)
    exact_mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, exact)
    exact.train()
    evidence = exact_mll(exact(TRAIN_X), y).item() * len(y)
    exact.eval()
    model = model_of(observation)
    assert log_evidence(model) == pytest.approx(evidence, abs=1e-8)
    distribution, posterior = exact(TEST_X), model.posterior(TEST_X)
    assert torch.allclose(posterior.mean.squeeze(-1), distribution.mean, rtol=0, atol=1e-8)
    assert torch.allclose(posterior.covariance_matrix, distribution.covariance_matrix, rtol=0, atol=1e-8)
    assert (posterior.skewness.abs() < 1e-8).all()
    levels = tensor(0.025, 0.5, 0.975)
    expected = distribution.mean + distribution.stddev * torch.special.ndtri(levels).unsqueeze(-1)
    assert torch.allclose(posterior.quantile(levels).squeeze(-1), expected, rtol=0, atol=1e-8)


def test_noise_that_is_given_need_not_be_positive():
    """Interpolation: readings of variance zero are met exactly."""
    y = tensor(0.3, -0.4, 1.0)
    model = model_of(Numeric(y, noise=torch.zeros(3), index=at(0, 2, 4)))
    posterior = model.posterior(TRAIN_X[[0, 2, 4]])
    assert torch.allclose(posterior.mean.squeeze(-1), y, rtol=0, atol=1e-6)
    assert (posterior.variance < 1e-6).all()

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
    at,
    kernel,
    log_evidence,
    mean,
    model_of,
    own_effective_size,
    own_statistics,
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


def assert_same_rows(one: SkewGP, other: SkewGP) -> None:
    """Models of the same rows, whose draws are made with the same seed."""
    assert log_evidence(one) == pytest.approx(log_evidence(other), abs=1e-10)
    for statistic in ("mean", "variance", "skewness"):
        ours, theirs = (getattr(m.posterior(TEST_X), statistic) for m in (one, other))
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-8)


def assert_same_law(one: SkewGP, other: SkewGP, limit: float = 4.5) -> None:
    """Models of the same distribution whose draws differ."""
    first, second = (own_statistics(m.posterior(TEST_X), own_effective_size(m)) for m in (one, other))
    for name in first:
        error = (first[name].error.square() + second[name].error.square()).sqrt()
        assert ((first[name].value - second[name].value).abs() <= limit * error + 1e-7).all(), name


@pytest.mark.parametrize("cutpoints", [tensor(0.0), None])
def test_two_grades_are_a_label(cutpoints):
    labels = torch.tensor([1, 0, 0, 1])
    ordinal = OrdinalLikelihood(2, cutpoints, noise=tensor(0.6))
    assert_same_rows(
        model_of(Ordinal(labels, 2, index=at(0, 1, 1, 4)), with_likelihood=ordinal),
        model_of(Binary(labels, index=at(0, 1, 1, 4)), with_likelihood=ProbitLikelihood(noise=tensor(0.6))),
    )


@pytest.mark.parametrize("same", [Choice, Ranking])
def test_choice_or_ranking_of_two_is_a_duel(same):
    assert_same_rows(model_of(same(PAIRS)), model_of(Preference(PAIRS)))


def test_padded_choice_of_two_is_a_duel():
    padded = torch.cat([PAIRS, torch.full_like(PAIRS, -1)], dim=-1)
    assert_same_rows(model_of(Choice(padded)), model_of(Preference(PAIRS)))


def test_ranking_with_one_rank_of_losers_is_a_choice():
    options = torch.tensor([[1, 0, 2], [4, 3, 5]])
    ranks = torch.tensor([[0, 1, 1], [2, 7, 7]])  # only their order counts
    assert_same_rows(model_of(Ranking(options, ranks)), model_of(Choice(options)))


def test_reading_without_bounds_says_nothing():
    censored = Censored(tensor(-INF, -INF), tensor(INF, INF), index=at(2, 5))
    for observation in (KINDS["numeric"], KINDS["preference"]):
        with_it, without = model_of([observation, censored]), model_of(observation)
        assert log_evidence(with_it) == pytest.approx(log_evidence(without), abs=1e-9)
        assert_same_law(with_it, without)


def test_validity_far_above_the_threshold_says_nothing():
    low = Parameters(threshold=-50.0)
    valid = Validity(torch.ones(6, dtype=torch.bool))
    with_it = model_of([KINDS["numeric"], valid], parameters=low)
    without = model_of(KINDS["numeric"], parameters=low)
    assert log_evidence(with_it) == pytest.approx(log_evidence(without), abs=1e-9)
    assert_same_law(with_it, without)


def test_validity_is_a_row_that_may_be_written_by_hand():
    weight = torch.eye(6, dtype=torch.float64)[[1, 4]]
    by_hand = AffineProbit(weight, tensor(-P.threshold)[0], P.validity * torch.eye(2, dtype=torch.float64))
    valid = Validity(torch.ones(2, dtype=torch.bool), index=at(1, 4))
    assert_same_rows(model_of([KINDS["numeric"], valid]), model_of([KINDS["numeric"], by_hand]))


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


def contrasts(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_affine_rows_reproduce_labels():
    weight = contrasts([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]])
    by_hand = AffineProbit(
        weight, 0.0, P.labels * torch.eye(2, dtype=torch.float64), tensor(0.0, -INF), tensor(INF, 0.0)
    )
    assert_same_rows(model_of(by_hand), model_of(Binary(torch.tensor([1, 0]))))


def test_affine_rows_reproduce_duels():
    weight = contrasts([[1, -1, 0, 0, 0, 0], [0, 0, 1, -1, 0, 0], [0, -1, 0, 0, 1, 0], [-1, 1, 0, 0, 0, 0]])
    by_hand = AffineProbit(weight, 0.0, 2 * P.items * torch.eye(4, dtype=torch.float64))
    assert_same_rows(model_of(by_hand), model_of(Preference(PAIRS)))


def test_affine_rows_reproduce_correlated_noise():
    """A choice among three: the two differences share the winner's noise."""
    weight = contrasts([[-1, 1, 0, 0, 0, 0], [0, 1, -1, 0, 0, 0]])
    covariance = P.items * (torch.eye(2, dtype=torch.float64) + 1)
    by_hand, choice = model_of(AffineProbit(weight, 0.0, covariance)), model_of(Choice(torch.tensor([[1, 0, 2]])))
    assert log_evidence(by_hand) == pytest.approx(log_evidence(choice), abs=1e-7)
    assert_same_law(by_hand, choice)


def test_affine_ranking_whose_noise_covariance_is_that_of_differences():
    weight = contrasts([[0, 0, 1, -1, 0, 0], [0, 0, 0, 1, -1, 0], [0, 0, 0, 0, 1, -1]])
    eye = torch.eye(3, dtype=torch.float64)
    covariance = P.items * (2 * eye - torch.diag(torch.ones(2).double(), 1) - torch.diag(torch.ones(2).double(), -1))
    by_hand, ranking = model_of(AffineProbit(weight, 0.0, covariance)), model_of(Ranking(torch.tensor([[2, 3, 4, 5]])))
    assert log_evidence(by_hand) == pytest.approx(log_evidence(ranking), abs=1e-7)
    assert_same_law(by_hand, ranking)


def test_bias_and_bounds_of_affine_rows_only_count_together():
    weight, Sigma = KINDS["affine"].weight, KINDS["affine"].covariance
    bias, lower, upper = KINDS["affine"].bias, KINDS["affine"].lower, KINDS["affine"].upper
    moved = AffineProbit(weight, bias + 0.7, Sigma, lower + 0.7, upper + 0.7)
    assert_same_rows(model_of(KINDS["affine"]), model_of(moved))


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


def test_several_observations_of_a_kind_are_one_list():
    one = Preference(PAIRS)
    parts = [Preference(PAIRS[:1]), Preference(PAIRS[1:])]
    assert_same_rows(model_of(one), model_of(parts))


def test_observations_without_entries_say_nothing():
    none = [
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
    assert_same_rows(model_of([KINDS["binary"], *none]), model_of(KINDS["binary"]))
    assert model_of(none, with_likelihood=None).posterior(TEST_X).mean.isfinite().all()


def test_kinds_may_have_likelihoods_of_their_own_for_each_instrument():
    """The first likelihood that takes a kind is used."""
    first, second = NumericLikelihood(noise=tensor(0.01)), NumericLikelihood(noise=tensor(1.0))
    model = model_of(KINDS["numeric"], with_likelihood=MixedLikelihood(first, second))
    assert_same_rows(model, model_of(KINDS["numeric"], with_likelihood=first))

"""Outcome standardisation: the same posterior as the model standardised by hand."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.outcome import Log, Standardize
from kind_cases import INF, TEST_X, TRAIN_X, Parameters, at, kernel, log_evidence, mean, tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.observations import Binary, Censored, Numeric, Observation, Ordinal, Preference, Tie, Validity
from botorch_skewgp.truncated.draws import DrawSettings

P = Parameters()
VALUES = tensor(103.0, 97.2, 99.1, 105.5)
LOCATION, SCALE = VALUES.mean(), VALUES.std()
INDEX = at(0, 2, 3, 5)


def to_latent(outcome: torch.Tensor) -> torch.Tensor:
    return (outcome - LOCATION) / SCALE


def build(observations: list[Observation], likelihood: RowLikelihood, transform: bool) -> SkewGP:
    options = {"outcome_transform": Standardize(m=1) if transform else None}
    settings = DrawSettings(num_draws=256, seed=1)
    return SkewGP(TRAIN_X, observations, likelihood, kernel(), mean(), draw_settings=settings, **options).eval()


def likelihoods(*others: RowLikelihood) -> MixedLikelihood:
    return MixedLikelihood(NumericLikelihood(noise=tensor(P.numbers)), *others)


def of_comparisons() -> MixedLikelihood:
    return likelihoods(
        ProbitLikelihood(noise=tensor(0.6)),
        PreferenceLikelihood(noise=tensor(0.5), tie_width=tensor(0.4)),
        OrdinalLikelihood(3, noise=tensor(0.8)),
    )


VARIANCES = tensor(0.5, 1.0, 2.0, 3.0)
LOWER, UPPER = tensor(-INF, 101.0, 95.0), tensor(98.0, INF, 99.0)
VALID, THRESHOLD = Validity(torch.tensor([1, 0, 1]), index=at(0, 1, 4)), tensor(100.5)
GRADES, CUTPOINTS = Ordinal(torch.tensor([2, 0, 1]), 3, index=at(0, 1, 4)), tensor(99.0, 102.0)
OTHERS = [
    Binary(torch.tensor([1, 0])),
    Preference(torch.tensor([[0, 1], [4, 3]])),
    Tie(torch.tensor([[1, 3]])),
    Ordinal(torch.tensor([2, 0]), 3, index=at(1, 4)),
]
# observations beside the numbers and the likelihood, as functions of what makes outcomes latent values, and its scale
CASES = {
    "numbers": lambda to, _: ([], likelihoods()),
    "given variances": lambda to, scale: ([Numeric(to(VALUES), VARIANCES / scale**2, INDEX)], likelihoods()),
    "censored": lambda to, _: ([Censored(to(LOWER), to(UPPER), index=at(1, 4, 4))], likelihoods()),
    "validity": lambda to, _: ([VALID], likelihoods(ValidityLikelihood(to(THRESHOLD), noise=tensor(P.validity)))),
    "given cut-points": lambda to, _: (
        [GRADES], likelihoods(OrdinalLikelihood(3, to(CUTPOINTS), noise=tensor(0.8)))),
    "labels, grades and comparisons": lambda to, _: (OTHERS, of_comparisons()),
}  # fmt: skip


def by_transform_and_by_hand(kind: str) -> tuple[SkewGP, SkewGP]:
    models = []
    for transform, to, scale in ((True, lambda outcome: outcome, 1.0), (False, to_latent, SCALE)):
        others, likelihood = CASES[kind](to, scale)
        values = [] if kind == "given variances" else [Numeric(to(VALUES), index=INDEX)]
        models.append(build([*values, *others], likelihood, transform))
    return models[0], models[1]


@pytest.mark.parametrize("kind", CASES)
def test_posterior_and_predictions_are_those_of_the_model_standardised_by_hand(kind):
    model, by_hand = by_transform_and_by_hand(kind)
    assert model.outcome_scale.location == pytest.approx(LOCATION.item())  # of the numbers alone
    assert model.outcome_scale.scale == pytest.approx(SCALE.item())
    num_numbers = sum(entry.numbers.numel() for entry in model.observations)  # a density for each
    assert log_evidence(model) == pytest.approx(log_evidence(by_hand) - num_numbers * SCALE.log().item(), abs=1e-9)
    ours, theirs = model.posterior(TEST_X), by_hand.posterior(TEST_X)
    assert torch.allclose(ours.mean, LOCATION + SCALE * theirs.mean, rtol=1e-12, atol=1e-9)
    assert torch.allclose(ours.variance, SCALE**2 * theirs.variance, rtol=1e-10, atol=0)
    assert torch.allclose(ours.skewness, theirs.skewness, rtol=0, atol=1e-9)
    levels = tensor(0.025, 0.975)
    assert torch.allclose(ours.quantile(levels), LOCATION + SCALE * theirs.quantile(levels), rtol=1e-12, atol=1e-8)
    ours, theirs = model.predictive(TEST_X), by_hand.predictive(TEST_X)
    for one, other in zip(ours.values(), theirs.values(), strict=True):
        if hasattr(one, "probs"):
            assert torch.allclose(one.probs, other.probs, rtol=0, atol=1e-10)
        else:
            assert torch.allclose(one.mean, LOCATION + SCALE * other.mean, rtol=1e-12, atol=1e-9)
            assert torch.allclose(one.variance, SCALE**2 * other.variance, rtol=1e-10, atol=0)


def test_densities_of_numbers_are_in_units_of_the_outcome_whoever_is_asked():
    model, by_hand = by_transform_and_by_hand("numbers")
    wanted = model.predictive(TEST_X[:1])[Numeric].density(101.0).log().squeeze()
    found = model.log_predictive_probability(TEST_X[:1], Numeric(tensor(101.0)))
    assert float(found) == pytest.approx(float(wanted), abs=1e-9)
    left_out = leave_one_out(model).log_predictive - leave_one_out(by_hand).log_predictive
    assert torch.allclose(left_out, -SCALE.log())


def test_observation_noise_is_in_units_of_the_outcome_in_the_end():
    model, by_hand = by_transform_and_by_hand("numbers")
    noisy = model.posterior(TEST_X, observation_noise=True)
    expected = SCALE**2 * (by_hand.posterior(TEST_X).variance + P.numbers)
    assert torch.allclose(noisy.variance, expected, rtol=1e-10, atol=0)
    given = model.posterior(TEST_X, observation_noise=tensor(7.0))
    assert torch.allclose(given.variance, model.posterior(TEST_X).variance + 7.0, rtol=1e-10, atol=0)


def test_without_numbers_it_does_nothing():
    duels = Preference(torch.tensor([[0, 1], [4, 3]]))
    with_it, without = (build([duels], PreferenceLikelihood(), transform) for transform in (True, False))
    assert torch.equal(with_it.posterior(TEST_X).mean, without.posterior(TEST_X).mean)


def test_conditioning_keeps_the_scale_and_takes_numbers_in_units_of_the_outcome():
    model, by_hand = by_transform_and_by_hand("validity")
    y = tensor(101.0, 104.0)
    ours = model.condition_on_observations(TEST_X[2:], y.unsqueeze(-1), noise=tensor(1.0, 2.0).unsqueeze(-1))
    theirs = by_hand.condition_on_observations(TEST_X[2:], Numeric(to_latent(y), tensor(1.0, 2.0) / SCALE**2))
    expected = LOCATION + SCALE * theirs.posterior(TEST_X).mean
    assert torch.allclose(ours.posterior(TEST_X).mean, expected, rtol=1e-12, atol=1e-9)


def test_only_affine_transforms_are_taken():
    with pytest.raises(UnsupportedError, match="outcome_transform must be Standardize"):
        SkewGP(TRAIN_X, Numeric(VALUES, index=INDEX), outcome_transform=Log())


def test_censored_readings_alone_are_standardised_by_middles_and_single_bounds():
    lower, upper = tensor(-INF, 101.0, 95.0, -INF), tensor(98.0, INF, 99.0, INF)
    learned_from = tensor(98.0, 101.0, 97.0)

    def scaled(outcome: torch.Tensor) -> torch.Tensor:
        return (outcome - learned_from.mean()) / learned_from.std()

    index = at(1, 4, 5, 0)
    automatic = build([Censored(lower, upper, index=index)], likelihoods(), True)
    by_hand = build([Censored(scaled(lower), scaled(upper), index=index)], likelihoods(), False)
    assert torch.allclose(scaled(automatic.posterior(TEST_X).mean), by_hand.posterior(TEST_X).mean, atol=1e-6)


def test_one_detection_limit_sets_the_level_and_leaves_the_unit():
    limit = torch.full((3,), 500.0, dtype=torch.float64)
    model = build([Censored(-INF, limit, index=at(0, 1, 2))], likelihoods(), True)
    assert (model.outcome_scale.location, model.outcome_scale.scale) == (500.0, 1.0)

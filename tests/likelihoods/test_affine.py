"""The general affine probit, label preferences and mixtures of kinds."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.outcome import Standardize
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import UnknownKindError
from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    MixedLikelihood,
    NumericLikelihood,
    PreferenceLikelihood,
    ProbitAffineLikelihood,
    ProbitLikelihood,
    default_likelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Tie,
    Validity,
)

X = torch.tensor([[0.0], [0.2], [0.45], [0.75], [1.0]], dtype=torch.float64)
NEW_X = torch.tensor([[0.1], [1.3]], dtype=torch.float64)
WEIGHT = torch.tensor([[1.0, -0.5, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]], dtype=torch.float64)
CLASSES = LabelPreference.from_classes(torch.tensor([0, 2, 1, 2]), 3)


def covariance_of(rows) -> torch.Tensor:
    own = torch.diag(rows.noise)
    return own if rows.noise_root is None else own + rows.noise_covariance


@pytest.mark.parametrize(
    "covariance",
    [
        torch.zeros(3, 3),
        0.7 * torch.eye(3),
        torch.ones(3, 3),  # one noise for all
        torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.5]]),
        torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        torch.diag(torch.tensor([0.0, 1.0, 2.0])),
    ],
)
def test_rows_have_the_covariance_given(covariance):
    rows = ProbitAffineLikelihood().rows(AffineProbit(WEIGHT, 0.0, covariance), X)
    assert torch.allclose(covariance_of(rows), covariance.double(), rtol=0, atol=1e-12)
    assert (rows.noise >= 0).all()


def test_rows_refer_to_the_points_named():
    observation = AffineProbit(WEIGHT, 0.0, torch.eye(3), index=torch.tensor([4, 0, 2]))
    f = torch.tensor([1.0, 10.0, 100.0, 1e3, 1e4], dtype=torch.float64)
    rows = ProbitAffineLikelihood().rows(observation, X)
    assert torch.allclose(rows.mean(f), WEIGHT @ f[[4, 0, 2]])
    assert torch.allclose(rows.weight(5) @ f, WEIGHT @ f[[4, 0, 2]])


def test_each_kind_goes_to_the_first_likelihood_that_takes_it():
    parts = [NumericLikelihood(), ProbitLikelihood(), PreferenceLikelihood(noise=0.3), PreferenceLikelihood(noise=0.9)]
    mixed = MixedLikelihood(*parts)
    assert mixed.for_kind(Numeric) is parts[0]
    assert mixed.for_kind(Tie) is parts[2]
    with pytest.raises(InputDataError, match=r"None of NumericLikelihood, .* takes Ordinal observations"):
        mixed.for_kind(Ordinal)


def test_default_likelihood_has_one_entry_for_each_family():
    kinds = [
        Numeric([0.1]),
        Censored([0.0], [1.0]),
        Preference(torch.tensor([[0, 1]])),
        Tie(torch.tensor([[0, 1]])),
        Binary([1]),
        Ordinal([0], 3),
        Validity([1]),
        AffineProbit(WEIGHT, 0.0, torch.eye(3)),
    ]
    mixed = default_likelihood(kinds)
    assert [type(part).__name__ for part in mixed.likelihoods] == [
        "NumericLikelihood",
        "PreferenceLikelihood",
        "ProbitLikelihood",
        "OrdinalLikelihood",
        "ValidityLikelihood",
        "ProbitAffineLikelihood",
    ]
    assert mixed.likelihoods[1].raw_tie_width.requires_grad
    assert not default_likelihood(kinds[2:3]).raw_tie_width.requires_grad
    assert isinstance(default_likelihood([]), NumericLikelihood)
    assert isinstance(default_likelihood([CLASSES]), LabelPreferenceLikelihood)


def test_predictions_of_every_part():
    model = SkewGP(X, [Numeric([0.1, 0.5]), Binary([1, 0]), Ordinal([0, 2], 3)])
    predicted = model.predictive(NEW_X)
    numbers, labels, grades = (predicted[kind] for kind in (Numeric, Binary, Ordinal))
    assert list(predicted) == [Numeric, Binary, Ordinal]
    assert predicted[Censored] is numbers  # the same likelihood takes them
    assert Preference not in predicted
    with pytest.raises(UnknownKindError, match="Predictions are of Numeric, Binary, Ordinal; got Preference"):
        predicted[Preference]
    with pytest.raises(KeyError, match="Predictions are of"):
        predicted[Preference]
    with pytest.raises(InputDataError, match="got 0"):
        predicted[0]
    assert numbers.mean.shape == (2, 1)
    assert labels.probs.flatten().shape == (2,)
    assert grades.probs.shape[-1] == 3
    f = torch.zeros(2, dtype=torch.float64)
    assert [type(distribution).__name__ for distribution in model.likelihood(f)] == [
        "Normal",
        "Bernoulli",
        "Categorical",
    ]


def test_predictions_of_comparisons_at_a_single_point_are_refused_and_those_of_numbers_are_not():
    model = SkewGP(X, [Numeric([1.0, 5.0]), Preference([[0, 1]])], outcome_transform=Standardize(m=1))
    with pytest.raises(InputDataError, match="Preference needs 2 or more points; X has 1") as refusal:
        model.predictive(NEW_X[:1])
    assert "model.likelihood.for_kind(kind)(model.latent_posterior(X), scale=model.outcome_scale)" in str(refusal.value)
    alone = model.likelihood.for_kind(Numeric)(model.latent_posterior(NEW_X[:1]), scale=model.outcome_scale)
    numbers = model.predictive(NEW_X)[Numeric]
    torch.testing.assert_close(alone.mean, numbers.mean[:1])


def test_latent_noise_is_that_of_the_numbers():
    mixed = MixedLikelihood(ProbitLikelihood(noise=0.9), NumericLikelihood(noise=0.2))
    assert mixed.latent_noise(X).item() == pytest.approx(0.2)
    assert MixedLikelihood(ProbitLikelihood(noise=0.9)).latent_noise(X).item() == pytest.approx(0.9)


def test_priors_of_every_part_enter_the_objective():
    prior = LogNormalPrior(loc=-1.0, scale=0.5)
    with_it = MixedLikelihood(
        NumericLikelihood(noise=0.2, learn_noise=False),
        ProbitLikelihood(noise=0.4, learn_noise=True, noise_prior=prior),
    )
    without = MixedLikelihood(NumericLikelihood(noise=0.2, learn_noise=False), ProbitLikelihood(noise=0.4))
    values = []
    for likelihood in (with_it, without):
        model = SkewGP(X, [Numeric([0.1, 0.5]), Binary([1, 0])], likelihood=likelihood)
        mll = SkewGPMarginalLogLikelihood(likelihood, model)
        mll.train()
        values.append(mll(model(X), model.train_targets).item())
    assert values[0] - values[1] == pytest.approx(prior.log_prob(torch.tensor(0.4).double()).item(), abs=1e-6)


def test_models_may_share_a_mixture():
    mixed = MixedLikelihood(NumericLikelihood(noise=0.2), PreferenceLikelihood(noise=0.3))
    first = SkewGP(X, Numeric([0.1, 0.5]), likelihood=mixed)
    second = SkewGP(X, [Numeric([0.1, 0.5]), Preference(torch.tensor([[0, 1]]))], likelihood=mixed)
    before = first.posterior(X[:1]).variance, second.posterior(X[:1]).variance
    mixed.likelihoods[0].noise = math.pi
    assert (first.posterior(X[:1]).variance > before[0]).all()
    assert not torch.allclose(second.posterior(X[:1]).variance, before[1])


def test_keys_of_a_state_dict_name_kinds():
    """Parts in another order are the same parts: a state dict does not swap their noise levels."""
    first = MixedLikelihood(PreferenceLikelihood(0.3), ProbitLikelihood(0.7))
    second = MixedLikelihood(ProbitLikelihood(), PreferenceLikelihood())
    second.load_state_dict(first.state_dict())
    assert second.for_kind(Preference).noise.item() == pytest.approx(0.3)
    assert second.for_kind(Binary).noise.item() == pytest.approx(0.7)
    assert any("Preference" in key for key in first.state_dict())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: SkewGP(X, CLASSES, likelihood=LabelPreferenceLikelihood(2)),
            InputDataError,
            "another number of labels",
        ),
        (lambda: SkewGP(X, [CLASSES, Binary([1])]), InputDataError, "LabelPreference .* one latent function per label"),
        (lambda: SkewGP(X, CLASSES, skew_prior=SkewPrior([[0.5]], [1], 0.0)), UnsupportedError, "one latent function"),
        (lambda: MixedLikelihood(GaussianLikelihood()), InputDataError, "got GaussianLikelihood"),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()

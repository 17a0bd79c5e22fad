"""New answers of every kind: given values, under a posterior and a Gaussian, by simulation; of several kinds."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.outcome import Standardize
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor
from torch.distributions import Bernoulli

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import UnknownKindError
from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    LabelPreference,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Tie,
    Validity,
)

N = 50_000
X = torch.tensor([[0.0], [0.2], [0.45], [0.75], [1.0]], dtype=torch.float64)
CUTS = torch.tensor([-0.5, 0.2, 1.0], dtype=torch.float64)
DUELS, CHOICES = Preference([[0, 1], [2, 3], [0, 4]]), Choice([[0, 1, 2], [3, 4, -1]])
CLASSES = LabelPreference.from_classes([0, 1, 1, 2], 3)


class Case(NamedTuple):
    likelihood: RowLikelihood
    seen: Observation
    decide: Callable[[Tensor], Tensor]  # outcomes of noisy values, of the items in the last dimension
    num_items: int | None = None  # of a comparison
    guess: float = 0.0


def above(level: float) -> Callable[[Tensor], Tensor]:
    return lambda u: (u > level).long()


def tied(u: Tensor) -> Tensor:
    difference = u[..., 0] - u[..., 1]
    return torch.where(difference.abs() <= 0.4, 2, (difference < 0).long())


LABELS, BEST = Binary([1, 0, 1, 1, 0]), lambda u: u.argmax(-1)
CASES = {
    "labels": Case(ProbitLikelihood(0.6, slip=0.1), LABELS, above(0.0)),
    "guesses": Case(ProbitLikelihood(0.6, slip=0.1, guess=0.4), LABELS, above(0.0), guess=0.4),
    "a threshold": Case(ProbitLikelihood(0.6, threshold=0.3), LABELS, above(0.3)),
    "grades": Case(
        OrdinalLikelihood(4, CUTS, 0.6, slip=0.15),
        Ordinal([3, 0, 1, 2], 4, index=[0, 1, 2, 4]),
        lambda u: torch.searchsorted(CUTS, u.contiguous()),
    ),
    "validity": Case(ValidityLikelihood(0.3, noise=0.6, slip=0.1), Validity([1, 0, 1]), above(0.3)),
    "duels": Case(PreferenceLikelihood(0.6, slip=0.1), DUELS, lambda u: (u[..., 0] > u[..., 1]).long(), 2),
    "ties": Case(PreferenceLikelihood(0.6, tie_width=0.4, ties_allowed=True), DUELS, tied, 2),
    "choices": Case(PreferenceLikelihood(0.6, slip=0.12), CHOICES, BEST, 3),
    "choices of five": Case(PreferenceLikelihood(0.6), CHOICES, BEST, 5),
    "classes": Case(LabelPreferenceLikelihood(3, 0.6), CLASSES, BEST, 3),
}


def shares(case: Case, f: Tensor, generator: torch.Generator) -> Tensor:
    """How often each outcome is the answer at values `N x ...`, with noise, slips and guesses."""
    likelihood = case.likelihood
    noise = float(likelihood.noise) ** 0.5
    outcome = case.decide(f + noise * torch.randn(N, *f.shape[1:], dtype=f.dtype, generator=generator))
    reading = likelihood.reading(likelihood.observation_types[0], X, num_points=case.num_items)
    num = 3 if case.decide is BEST and likelihood.num_outputs > 1 else reading.num_outcomes
    coin, slip = (torch.rand(outcome.shape, dtype=f.dtype, generator=generator) for _ in range(2))
    outcome = torch.where(coin < case.guess, 1, outcome)
    outcome = torch.where(
        slip < float(likelihood.slip), torch.randint(num, outcome.shape, generator=generator), outcome
    )
    return torch.nn.functional.one_hot(outcome, num).double().mean(0)


def assert_near(said: object, counted: Tensor, allowance: float = 1e-6) -> None:
    probs = said.probs.detach()
    probs = torch.stack([1 - probs, probs], dim=-1) if isinstance(said, Bernoulli) else probs
    assert probs.shape[-1] == counted.shape[-1]
    probs = probs.reshape(counted.shape)
    assert ((counted - probs).abs() < 4.5 * (probs * (1 - probs) / N).sqrt() + allowance).all()


@pytest.mark.parametrize("name", CASES)
def test_given_values(name, generator):
    case = CASES[name]
    f = torch.randn(2, 2, case.num_items or 1, dtype=torch.float64, generator=generator)
    f = f if case.num_items else f.squeeze(-1)
    assert_near(case.likelihood(f), shares(case, f.expand(N, *f.shape), generator))
    torch.testing.assert_close(case.likelihood(f).probs[1], case.likelihood(f[1]).probs)


@pytest.mark.parametrize("name", CASES)
def test_under_a_posterior(name, generator):
    case = CASES[name]
    model = SkewGP(X, case.seen, likelihood=case.likelihood)
    q = 3 if case.num_items is None or model.num_outputs > 1 else case.num_items
    points = torch.rand(2, q, 1, dtype=torch.float64, generator=generator)
    f = model.latent_posterior(points).rsample(torch.Size([N])).detach()
    f = f if model.num_outputs > 1 else f.squeeze(-1)
    assert_near(model.predictive(points), shares(case, f, generator), 0.006 if model.num_outputs > 1 else 0.002)
    torch.testing.assert_close(model.predictive(points[1]).probs, model.predictive(points).probs[1])
    torch.testing.assert_close(model.likelihood(model.latent_posterior(points)).probs, model.predictive(points).probs)


@pytest.mark.parametrize("name", CASES)
def test_under_a_gaussian(name, generator):
    case = CASES[name]
    q = case.num_items or 2
    root = torch.randn(q, q, dtype=torch.float64, generator=generator)
    mean = torch.randn(q, dtype=torch.float64, generator=generator)
    if case.likelihood.num_outputs > 1:
        distribution = MultitaskMultivariateNormal(mean.unsqueeze(0), root @ root.mT)
    else:
        distribution = MultivariateNormal(mean, root @ root.mT)
    f = mean + torch.randn(N, q, dtype=torch.float64, generator=generator) @ root.mT
    assert_near(case.likelihood(distribution), shares(case, f, generator), 0.01 if len(f) and q > 2 else 1e-6)


# Of several kinds

NEW_X = torch.tensor([[0.1], [1.3]], dtype=torch.float64)


def test_each_kind_goes_to_the_first_likelihood_that_takes_it():
    parts = [NumericLikelihood(), ProbitLikelihood(), PreferenceLikelihood(noise=0.3), PreferenceLikelihood(noise=0.9)]
    mixed = MixedLikelihood(*parts)
    assert mixed.for_kind(Numeric) is parts[0]
    assert mixed.for_kind(Tie) is parts[2]
    with pytest.raises(InputDataError, match=r"None of NumericLikelihood, .* takes Ordinal observations"):
        mixed.for_kind(Ordinal)


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
    assert (numbers.mean.shape, labels.probs.numel(), grades.probs.shape[-1]) == ((2, 1), 2, 3)
    f = torch.zeros(2, dtype=torch.float64)
    assert [type(law).__name__ for law in model.likelihood(f)] == ["Normal", "Bernoulli", "Categorical"]


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
        (lambda: SkewGP(X, CLASSES, LabelPreferenceLikelihood(2)), InputDataError, "another number of labels"),
        (lambda: SkewGP(X, [CLASSES, Binary([1])]), InputDataError, "LabelPreference .* one latent function per label"),
        (lambda: SkewGP(X, CLASSES, skew_prior=SkewPrior([[0.5]], [1], 0.0)), UnsupportedError, "one latent function"),
        (lambda: MixedLikelihood(GaussianLikelihood()), InputDataError, "got GaussianLikelihood"),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()

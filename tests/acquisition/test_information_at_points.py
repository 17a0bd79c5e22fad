"""Information at points against sampled answers, and against models that have been told the answer."""

import pytest
import torch
from acquisition_checks import DOUBLE, points, samples
from acquisition_checks import make_model as model_of
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.transforms.input import InputPerturbation

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    LevelSetInformation,
    PredictiveInformation,
    SkewBayesianActiveLearningByDisagreement,
)
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Preference, Validity

LEVEL = 0.7
POINTS = torch.rand(9, 2, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
REFERENCE = torch.rand(11, 2, generator=torch.Generator().manual_seed(4), dtype=DOUBLE)
LABELS = torch.tensor([1, 0, 1, 1, 0, 1, 0, 0, 1], dtype=torch.bool)
ANSWERS = Binary(LABELS)
GUESSES = {"guess": 0.35 / 0.9, "slip": 0.1}  # P(yes) is between 0.4 and 0.95


class Minimized(SkewGP):
    """A model of which low values are good, so that they are the valid ones."""

    minimize = True


def make_model(observations=ANSWERS, **options) -> SkewGP:
    return model_of(observations, X=POINTS, **options)


MODELS = {
    "labels": make_model,
    "EP": lambda: make_model(approximation="ep"),
    "EP, guesses": lambda: make_model(approximation="ep", likelihood=ProbitLikelihood(guess=0.5, slip=0.04)),
    "little noise": lambda: make_model(likelihood=ProbitLikelihood(noise=0.02)),
    "guesses": lambda: make_model(likelihood=ProbitLikelihood(**GUESSES)),
    "validity": lambda: make_model(Validity(LABELS), likelihood=ValidityLikelihood(threshold=0.4, noise=0.2)),
    "low is valid": lambda: make_model(
        Validity(LABELS), likelihood=ValidityLikelihood(threshold=0.4, noise=0.2), of=Minimized
    ),
}


def sampled(model, x, z, generator, N=400_000):
    """The joint frequencies of an answer at `x` and of `P(yes at z) >= LEVEL`, by the model's own predictions."""
    posterior = model.latent_posterior(torch.stack([x, z]))
    f = samples(posterior, N, generator)
    (kind,) = model.likelihood.observation_types
    reading = model.likelihood.reading(kind, x, model.outcome_scale)
    yes = 0 if model.minimize and kind.turns_round else 1
    p = reading.log_outcome_probabilities(f)[..., yes].exp().detach()
    answer = (torch.rand(N, generator=generator, dtype=DOUBLE) < p[:, 0]).long()
    cell = 2 * answer + (p[:, 1] >= LEVEL).long()
    groups = torch.stack([torch.bincount(part, minlength=4) for part in cell.chunk(40)]).double()
    return groups.view(40, 2, 2) / len(cell) * 40


OTHER_KINDS = {
    "grades": lambda: make_model(Ordinal(torch.tensor([0, 1, 2, 1, 0, 2, 1, 1, 0]), num_grades=3)),
    "duels": lambda: make_model(Preference([[0, 1], [2, 3], [4, 5], [6, 7]])),
    "ties and slips": lambda: make_model(
        Preference([[0, 1], [2, 3], [4, 5], [6, 7]]),
        likelihood=PreferenceLikelihood(noise=0.3, tie_width=0.6, ties_allowed=True, slip=0.1),
    ),
}
PREDICTED = MODELS | OTHER_KINDS


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ("duels", "little noise") else pytest.mark.slow) for name in PREDICTED],
)
def test_information_about_predictions_by_monte_carlo(name, generator):
    """The definition, from the joint frequencies of sampled answers to two questions."""
    model, N = PREDICTED[name](), 400_000
    kind = max(model.likelihood.kinds_of_outcomes, key=lambda known: known.points_per_observation)
    k = kind.points_per_observation
    X, found = torch.cat([POINTS[:2] + 0.02, REFERENCE[:2]]), []
    for x, z in ((X[:k], X[k : 2 * k]), (X[2 : 2 + k], X[2 : 2 + k] + 0.05)):
        f = samples(model.latent_posterior(torch.cat([x, z])), N, generator)
        reading = model.likelihood.reading(kind, x, model.outcome_scale)
        drawn = [
            torch.multinomial(reading.probabilities(half).detach(), 1, generator=generator).squeeze(-1)
            for half in (f[:, :k], f[:, k:])
        ]
        cell = reading.num_outcomes * drawn[0] + drawn[1]
        num = reading.num_outcomes**2
        groups = torch.stack([torch.bincount(part, minlength=num) for part in cell.chunk(40)]).double() / N * 40
        groups = groups.view(40, reading.num_outcomes, -1)
        left_out, every = (groups.sum(0) - groups) / 39, information(groups.mean(0))
        error = (39 * (information(left_out) - every).square().mean()).sqrt()  # the jackknife's
        value = PredictiveInformation(model, z if k == 1 else z.unsqueeze(0))(x.unsqueeze(0)).item()
        assert abs(value - every) < 4.5 * error + 2e-5
        found.append(value / error)
    assert max(found) > 15  # answers tell something


def test_predictions_of_certain_answers_are_the_level_set():
    """Without noise the answer at a point is its side of the level at which a yes has even odds."""
    model = make_model(likelihood=ProbitLikelihood(noise=1e-7))
    X = (POINTS[:5] + 0.02).unsqueeze(-2)
    level = LevelSetInformation(model, 0.5, REFERENCE)(X)
    torch.testing.assert_close(PredictiveInformation(model, REFERENCE)(X), level, rtol=1e-2, atol=1e-4)


def test_predictive_information_is_symmetric_and_less_than_of_the_function(generator):
    model = make_model()
    x, z = points(generator), points(generator)
    there, back = (PredictiveInformation(model, b)(a.unsqueeze(0)) for a, b in ((x, z), (z, x)))
    torch.testing.assert_close(there, back)
    X = points(generator, 6)
    everything = SkewBayesianActiveLearningByDisagreement(model)(X)
    assert (PredictiveInformation(model, REFERENCE)(X) < everything).all()
    with pytest.raises(BotorchTensorDimensionError, match="X_reference must be n x 2 x 2"):
        PredictiveInformation(OTHER_KINDS["duels"](), REFERENCE)


def entropy(p):
    return torch.special.entr(p) + torch.special.entr(1 - p)


def information(joint):
    marginals = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    return (joint * (joint / marginals).log()).sum((-1, -2))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ("labels", "EP, guesses") else pytest.mark.slow) for name in MODELS]
)
def test_values_by_monte_carlo(name, generator):
    """One reference point at a time: the definitions, from sampled answers and memberships."""
    model, found = MODELS[name](), []
    for x, z in ((POINTS[0] + 0.02, POINTS[1]), (POINTS[3], REFERENCE[0]), (REFERENCE[2], REFERENCE[2] + 0.05)):
        groups = sampled(model, x, z, generator)
        left_out = (groups.sum(0) - groups) / 39
        value = LevelSetInformation(model, LEVEL, z.unsqueeze(0))(x.unsqueeze(0)).item()
        every = information(groups.mean(0))
        error = (39 * (information(left_out) - every).square().mean()).sqrt()  # the jackknife's
        assert abs(value - every) < 4.5 * error + 1e-5
        found.append(value)
    assert max(found) > 0.02  # answers tell something


def test_average_over_reference_points(generator):
    model, X = make_model(), points(generator, 5)
    single = torch.stack([LevelSetInformation(model, LEVEL, z.unsqueeze(0))(X) for z in REFERENCE])
    torch.testing.assert_close(LevelSetInformation(model, LEVEL, REFERENCE)(X), single.mean(0), rtol=1e-8, atol=1e-10)


def test_few_candidates_at_a_time(generator, monkeypatch):
    """A joint covariance of all would grow with the square of their number."""
    model, X, sizes = make_model(), points(generator, 10, 30), []
    acquisition = LevelSetInformation(model, LEVEL, REFERENCE)
    expected = torch.stack([acquisition(part) for part in X])
    latent_posterior = model.latent_posterior

    def counted(X):
        sizes.append(len(X))
        return latent_posterior(X)

    monkeypatch.setattr(model, "latent_posterior", counted)
    torch.testing.assert_close(acquisition(X), expected, rtol=1e-8, atol=1e-10)
    assert max(sizes) <= 256 + len(REFERENCE)


@pytest.mark.slow
def test_look_ahead_is_a_model_with_the_answer(generator):
    """Membership of points after an answer at `x`, by models that have been told it."""
    num_draws = 16384
    model = make_model(num_draws=num_draws)
    x = torch.tensor([[0.45, 0.5]], dtype=DOUBLE)
    yes = model.predictive(x).probs.item()
    c = torch.special.ndtri(torch.tensor(LEVEL, dtype=DOUBLE))
    before = entropy(model.latent_posterior(REFERENCE).probability_above(c).squeeze(-1))
    after, spread = 0.0, 0.0
    for answer, probability in ((True, yes), (False, 1 - yes)):
        told = model.condition_on_observations(x, Binary(torch.tensor([answer])))
        posterior = told.latent_posterior(REFERENCE)
        inside = posterior.probability_above(c).squeeze(-1)
        conditional = torch.special.ndtr(
            (posterior.component_means - c) / posterior.gaussian_variance.sqrt().unsqueeze(-1)
        )
        # draws of neighbouring points move together: take the errors of all as one
        slope = (inside / (1 - inside)).log().abs()
        spread += probability * (slope * conditional.std(-1)).mean() / num_draws**0.5
        after = after + probability * entropy(inside)
    value = LevelSetInformation(model, LEVEL, REFERENCE)(x).item()
    expected = (before - after).mean().item()
    error = 4 * (2 * spread + 0.5 / 512**0.5 * 0.05).item()
    assert abs(value - expected) < error
    assert expected > 0


def test_an_answer_that_is_a_guess_tells_less(generator):
    """Numbers make the posterior, which is the same whether new answers are guesses or not."""

    def model_of_numbers(**rates):
        likelihood = MixedLikelihood(NumericLikelihood(noise=2.0), ProbitLikelihood(**rates))
        return make_model(Numeric(2 * LABELS.double()), likelihood=likelihood)

    X = points(generator, 6)
    level = (LEVEL - 0.4) / 0.55  # the same one of the latent function
    sharp = LevelSetInformation(model_of_numbers(), level, REFERENCE)(X)
    guessed = LevelSetInformation(model_of_numbers(**GUESSES), LEVEL, REFERENCE)(X)
    assert (guessed <= sharp).all()
    assert guessed.sum() < 0.8 * sharp.sum()


def test_mixed_model_takes_the_kind():
    both = make_model(
        [Binary(LABELS), Validity(~LABELS)],
        likelihood=MixedLikelihood(ProbitLikelihood(), ValidityLikelihood(threshold=0.3, noise=0.1)),
    )
    first, second = (
        LevelSetInformation(both, LEVEL, REFERENCE, kind=kind)(REFERENCE[:1]) for kind in (Binary, Validity)
    )
    assert abs(first - second) > 1e-3


def test_bad_input():
    model = make_model()
    grades = SkewGP(POINTS, Ordinal(torch.tensor([0, 1, 2, 1, 0, 2, 1, 1, 0]), num_grades=3))
    with pytest.raises(UnsupportedError, match="needs a model of yes/no answers"):
        LevelSetInformation(grades, 0.5, REFERENCE)
    with pytest.raises(InputDataError):
        LevelSetInformation(model, 0.5, REFERENCE, kind=Validity)
    with pytest.raises(InputDataError, match="level must be between 0 and 1"):
        LevelSetInformation(model, 1.0, REFERENCE)
    with pytest.raises(InputDataError, match=r"level must be between 0\.4 and 0\.95"):
        LevelSetInformation(make_model(likelihood=ProbitLikelihood(**GUESSES)), 0.3, REFERENCE)
    with pytest.raises(BotorchTensorDimensionError, match="X_reference must be n x 2"):
        LevelSetInformation(model, LEVEL, REFERENCE[0])
    with pytest.raises(UnsupportedError, match="pending"):
        LevelSetInformation(model, LEVEL, REFERENCE).set_X_pending(REFERENCE[:1])
    perturbed = make_model(input_transform=InputPerturbation(torch.zeros(2, 2, dtype=DOUBLE)))
    with pytest.raises(UnsupportedError, match="one point into many"):
        LevelSetInformation(perturbed, LEVEL, REFERENCE)(REFERENCE[:1])

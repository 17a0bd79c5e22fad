"""Information of answers about the function, level sets and predictions, by simulation; choices from a pool."""

import math
from functools import cache, partial

import pytest
import torch
from acquisition_checks import DOUBLE, PAIRS, POINTS, check_acquisition, finite_gradient, make_model, points, samples
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.normal import SobolQMCNormalSampler
from validity_cases import FallingValidityLikelihood

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    LevelSetInformation,
    PredictiveInformation,
    SkewBayesianActiveLearningByDisagreement,
    active_learning,
    select_from_pool,
)
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Preference, Tie, Validity

LEVEL = 0.7
LABELS = torch.tensor([1, 0, 1, 1, 0, 1, 1])
REFERENCE = torch.rand(11, 2, generator=torch.Generator().manual_seed(4), dtype=DOUBLE)
GUESSES = {"guess": 0.35 / 0.9, "slip": 0.1}  # P(yes) is between 0.4 and 0.95


labels = partial(make_model, Binary(LABELS))
validity = partial(make_model, Validity(LABELS), likelihood=ValidityLikelihood(threshold=0.5, noise=0.2))
ties = partial(make_model, [Preference(PAIRS[:4]), Tie(PAIRS[4:])])
KINDS = {
    "labels": labels,
    "validity": validity,
    "grades": partial(make_model, Ordinal(torch.tensor([0, 1, 2, 3, 3, 2, 0]), 4)),
    "duels": partial(make_model, Preference(PAIRS), likelihood=PreferenceLikelihood(noise=0.3)),
    "ties": partial(ties, likelihood=PreferenceLikelihood(0.3, tie_width=0.7, ties_allowed=True)),
}
LABELLED = {
    "labels": labels,
    "EP": partial(labels, approximation="ep"),
    "EP, guesses": partial(labels, approximation="ep", likelihood=ProbitLikelihood(guess=0.5, slip=0.04)),
    "little noise": partial(labels, likelihood=ProbitLikelihood(noise=0.02)),
    "guesses": partial(labels, likelihood=ProbitLikelihood(**GUESSES)),
    "validity": validity,
    "low is valid": partial(validity, likelihood=FallingValidityLikelihood(threshold=0.5, noise=0.2)),
}
SLIPS = {"slips": partial(ties, likelihood=PreferenceLikelihood(0.3, tie_width=0.6, ties_allowed=True, slip=0.1))}
every = pytest.mark.parametrize("kind", KINDS)


@cache
def model_of(name) -> SkewGP:
    return (KINDS | LABELLED | SLIPS)[name]()


def questions(generator, kind, *batch_shape):
    return points(generator, *batch_shape, q=2 if kind in ("duels", "ties", "slips") else 1)


def information(model, X, pending=None, seed=0):
    return SkewBayesianActiveLearningByDisagreement(model, X_pending=pending, seed=seed)(X)


def outcome_probabilities(model, kind, f):
    """The likelihood's own probabilities of all outcomes given samples `... x q` of the latent function."""
    if kind == "slips":
        return model.likelihood.reading(Preference, POINTS, model.outcome_scale).probabilities(f).detach()
    p = model.likelihood(f if kind in ("duels", "ties") else f.squeeze(-1)).probs.detach()
    return p if kind in ("grades", "ties") else torch.stack([1 - p, p], dim=-1)


# About the function


@every
def test_conformance(kind, generator):
    X = questions(generator, kind, 3, 2)
    check_acquisition(SkewBayesianActiveLearningByDisagreement(model_of(kind)), X, atol=1e-12)
    if kind in ("labels", "ties"):
        pending = questions(generator, kind, 2).flatten(0, 1)
        acquisition = SkewBayesianActiveLearningByDisagreement(KINDS[kind](num_draws=64), X_pending=pending)
        check_acquisition(acquisition, X, atol=1e-12)
        assert acquisition.to(torch.float32)(X[0].float()).dtype == torch.float32


@pytest.mark.parametrize("kind", [*KINDS, "slips"])
def test_information_by_monte_carlo(kind, generator):
    model, X, N = model_of(kind), questions(generator, kind, 4), 20_000
    value = information(model, X)
    p = outcome_probabilities(model, kind, samples(model.posterior(X), N, generator))
    entropy, mean = torch.special.entr(p).sum(-1), p.mean(0)
    expected = torch.special.entr(mean).sum(-1) - entropy.mean(0)
    # to first order the estimate is an average of these
    error = (-(mean.log() * p).sum(-1) - entropy).std(0) / math.sqrt(N)
    assert ((value - expected).abs() < 4.5 * error + 1e-5).all()
    assert (value > 0).all()


@pytest.mark.parametrize("noise", [1e-6, 1e4])
def test_extreme_noise(noise, generator):
    acquisition = SkewBayesianActiveLearningByDisagreement(labels(likelihood=ProbitLikelihood(noise=noise)))
    values, _ = finite_gradient(acquisition, points(generator, 20))
    assert (values > -1e-9).all()
    assert (values < (math.log(2) if noise < 1 else 1e-2)).all()


@every
def test_pending_information_by_monte_carlo(kind, generator):
    """`I(y; f | y_P)` with joint samples and all joint outcomes spelled out."""
    model, X, pending, N = model_of(kind), questions(generator, kind, 3), questions(generator, kind, 2), 20_000
    q = X.shape[-2]
    pending[0] = X[0] + 0.01  # one that tells much of the same
    acquisition = SkewBayesianActiveLearningByDisagreement(model)
    alone = acquisition(X)
    acquisition.set_X_pending(pending.flatten(0, 1))
    value = acquisition(X)
    every_point = torch.cat([pending.flatten(0, 1), X.flatten(0, 1)])
    f = samples(model.posterior(every_point), N, generator).unflatten(-1, (5, q))
    p = outcome_probabilities(model, kind, f)  # N x 5 x K
    joint = torch.einsum("na,nb,nxk->abxk", p[:, 0], p[:, 1], p[:, 2:]) / N
    prior = torch.einsum("na,nb->ab", p[:, 0], p[:, 1]) / N
    conditional = torch.special.entr(joint).sum((0, 1, 3)) - torch.special.entr(prior).sum()
    expected = conditional - torch.special.entr(p[:, 2:]).sum(-1).mean(0)
    assert (value - expected).abs().max() < 0.015
    assert value[0] < alone[0] - 0.02
    assert (value < alone + 0.005).all()
    acquisition.set_X_pending(None)
    assert torch.equal(acquisition(X), alone)


def test_sampled_outcomes_average_to_all_of_them(generator, monkeypatch):
    """64 of the 128 joint outcomes of seven pending labels, drawn with many seeds, against all 128."""
    model = make_model(Binary(torch.tensor([1, 1, 1, 1, 0, 1, 1])), num_draws=64)
    pending, X = points(generator, q=7), points(generator, 6)
    sampled = torch.stack([information(model, X, pending, seed) for seed in range(24)])
    monkeypatch.setattr(active_learning, "MAX_OUTCOMES", 128)
    difference = sampled - information(model, X, pending)
    assert ((difference.mean(0)).abs() < 4.5 * difference.std(0) / 24**0.5).all()
    assert (difference.std(0) / 24**0.5 < 0.004).all()
    assert (difference.std(0) > 1e-6).any()  # seeds differ


def test_kinds_of_a_mixed_model(generator):
    likelihood = MixedLikelihood(ProbitLikelihood(), PreferenceLikelihood())
    model = make_model([Preference(PAIRS), Binary(LABELS)], likelihood=likelihood)
    assert SkewBayesianActiveLearningByDisagreement(model).kind is Preference
    assert SkewBayesianActiveLearningByDisagreement(model, kind=Binary)(points(generator, 3)).shape == (3,)
    both = MixedLikelihood(ProbitLikelihood(), ValidityLikelihood(threshold=0.3, noise=0.1))
    model = make_model([Binary(LABELS), Validity(1 - LABELS)], likelihood=both)
    first, second = (LevelSetInformation(model, LEVEL, REFERENCE, kind)(REFERENCE[:1]) for kind in (Binary, Validity))
    assert abs(first - second) > 1e-3


def test_information_does_not_depend_on_units(generator):
    values = 5 + 10 * torch.randn(7, generator=generator, dtype=DOUBLE)
    standard = (values - values.mean()) / values.std()
    X, cuts = points(generator, 3), torch.tensor([-0.5, 0.4], dtype=DOUBLE)

    def of_grades(y, cutpoints, **options):
        likelihood = MixedLikelihood(NumericLikelihood(), OrdinalLikelihood(3, cutpoints=cutpoints))
        grades = Ordinal(torch.tensor([0, 1, 2, 2, 1, 0, 1]), 3)
        options["approximation"] = "ep"  # draws of one seed agree only until rounding has grown
        return information(make_model([Numeric(y), grades], 64, likelihood=likelihood, **options), X)

    scaled = of_grades(values, values.mean() + values.std() * cuts, outcome_transform=Standardize(m=1))
    torch.testing.assert_close(scaled, of_grades(standard, cuts), rtol=1e-5, atol=1e-8)


# At points


def mutual_information(first, second):
    """Of two sampled integers, in nats, and the jackknife's error."""
    num = int(second.max()) + 1
    cell, size = num * first + second, num * (int(first.max()) + 1)
    groups = torch.stack([torch.bincount(part, minlength=size) for part in cell.chunk(40)]).double() / len(cell) * 40

    def of(joint):
        marginals = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
        return torch.where(joint > 0, joint * (joint / marginals).log(), 0.0).sum((-1, -2))

    groups = groups.view(40, -1, num)
    value = of(groups.mean(0))
    return value, (39 * (of((groups.sum(0) - groups) / 39) - value).square().mean()).sqrt()


FAST = {
    ("predictions", "duels"),
    ("predictions", "little noise"),
    ("level set", "labels"),
    ("level set", "EP, guesses"),
}
CASES = [("predictions", name) for name in KINDS | LABELLED | SLIPS] + [("level set", name) for name in LABELLED]


@pytest.mark.parametrize(
    ("target", "name"), [pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow) for case in CASES]
)
def test_information_at_points_by_monte_carlo(target, name, generator):
    """The definitions, from sampled answers and memberships of the level set, at one reference at a time."""
    model, N, found = model_of(name), 200_000, []
    kind = max(model.likelihood.kinds_of_outcomes, key=lambda known: known.points_per_observation)
    k, reading = kind.points_per_observation, model.likelihood.reading(kind, POINTS, model.outcome_scale)
    X = torch.cat([POINTS[:2] + 0.02, REFERENCE[:2]])
    for x, z in ((X[:k], X[k : 2 * k]), (X[2 : 2 + k], X[2 : 2 + k] + 0.05)):
        f = samples(model.latent_posterior(torch.cat([x, z])), N, generator)
        p, other = (reading.probabilities(half).detach() for half in (f[:, :k], f[:, k:]))
        if target == "predictions":
            told = torch.multinomial(other, 1, generator=generator).squeeze(-1)
            acquisition = PredictiveInformation(model, z if k == 1 else z.unsqueeze(0))
        else:
            told = (other[:, 1] >= LEVEL).long()
            acquisition = LevelSetInformation(model, LEVEL, z)
        expected, error = mutual_information(torch.multinomial(p, 1, generator=generator).squeeze(-1), told)
        value = acquisition(x.unsqueeze(0)).item()
        assert abs(value - expected) < 4.5 * error + 2e-5
        found.append(value / error)
    assert max(found) > 10  # answers tell something


def test_few_candidates_at_a_time_and_the_average_over_points(generator, monkeypatch):
    """A joint covariance of all would grow with the square of their number."""
    model, X, sizes = labels(), points(generator, 10, 30), []
    single = torch.stack([LevelSetInformation(model, LEVEL, z.unsqueeze(0))(X[0]) for z in REFERENCE])
    acquisition = LevelSetInformation(model, LEVEL, REFERENCE)
    expected = torch.stack([acquisition(part) for part in X])
    torch.testing.assert_close(expected[0], single.mean(0), rtol=1e-8, atol=1e-10)
    latent_posterior = model.latent_posterior
    monkeypatch.setattr(model, "latent_posterior", lambda X, judges=None: sizes.append(len(X)) or latent_posterior(X))
    torch.testing.assert_close(acquisition(X), expected, rtol=1e-8, atol=1e-10)
    assert max(sizes) <= 256 + len(REFERENCE)


BALD = SkewBayesianActiveLearningByDisagreement
GAUSSIAN = SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True))
PERTURBED = partial(labels, input_transform=InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=DOUBLE)))


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: BALD(GAUSSIAN), UnsupportedError, "SingleTaskGP"),
        (lambda: BALD(make_model(Numeric(POINTS.sum(-1)))), UnsupportedError, "NumericLikelihood takes no kind"),
        (lambda: BALD(PERTURBED())(POINTS[:2].unsqueeze(-2)), UnsupportedError, "one point into many"),
        (lambda: BALD(model_of("duels"))(POINTS[:2].unsqueeze(-2)), AssertionError, "q=2"),
        (lambda: BALD(model_of("duels"), kind=Validity), InputDataError, "Validity"),
        (lambda: BALD(model_of("duels"), kind=Tie), UnsupportedError, "kind Tie"),
        (lambda: BALD(model_of("duels"), X_pending=POINTS[:3]), BotorchTensorDimensionError, "2 point"),
        (lambda: PredictiveInformation(model_of("duels"), POINTS), BotorchTensorDimensionError, "must be n x 2 x 2"),
        (lambda: LevelSetInformation(model_of("grades"), 0.5, POINTS), UnsupportedError, "of yes/no answers"),
        (lambda: LevelSetInformation(labels(), 0.5, POINTS, kind=Validity), InputDataError, "Validity"),
        (lambda: LevelSetInformation(labels(), 1.0, POINTS), InputDataError, "level must be between 0 and 1"),
        (lambda: LevelSetInformation(model_of("guesses"), 0.3, POINTS), InputDataError, r"level .* 0\.4 and 0\.95"),
        (lambda: LevelSetInformation(labels(), 0.5, POINTS[0]), BotorchTensorDimensionError, "must be n x 2"),
        (lambda: LevelSetInformation(labels(), 0.5, POINTS).set_X_pending(POINTS), UnsupportedError, "pending"),
        (lambda: select_from_pool(BALD(labels()), POINTS[0]), BotorchTensorDimensionError, "N x d"),
        (lambda: select_from_pool(BALD(labels()), POINTS, 0), InputDataError, "num must be an integer from 1 to 7"),
        (lambda: select_from_pool(BALD(labels()), POINTS, 8), InputDataError, "num must be an integer from 1 to 7"),
        (lambda: select_from_pool(LogExpectedImprovement(GAUSSIAN, 1.0), POINTS, 2), UnsupportedError, "X_pending"),
    ],
)
def test_what_is_refused(act, error, message):
    with pytest.raises(error, match=message):
        act()


# Pools


@pytest.mark.parametrize("kind", ["labels", "duels"])
@pytest.mark.parametrize("pending", [0, 1])
def test_pool_is_chosen_greedily(kind, pending, generator, monkeypatch):
    """Beside what was pending, which stays so."""
    pool, given = questions(generator, kind, 12), questions(generator, kind, 1).flatten(0, 1) if pending else None
    acquisition = SkewBayesianActiveLearningByDisagreement(model_of(kind), X_pending=given)
    monkeypatch.setattr(active_learning, "BATCH", 7)
    chosen, values = select_from_pool(acquisition, pool, num=3)
    assert acquisition.X_pending is None if given is None else torch.equal(acquisition.X_pending, given)
    assert chosen.shape == values.shape == (3,)
    for i in range(3):
        before = [pool[chosen[:i]].flatten(0, 1), *([] if given is None else [given])]
        acquisition.set_X_pending(torch.cat(before[::-1]))
        with torch.no_grad():
            left = acquisition(pool)
        left[chosen[:i]] = -math.inf
        assert int(left.argmax()) == int(chosen[i])
        torch.testing.assert_close(left.max(), values[i])


def test_pool_with_other_acquisition_functions(generator):
    sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
    acquisition = qExpectedUtilityOfBestOption(model_of("duels"), sampler=sampler)
    chosen, _ = select_from_pool(acquisition, questions(generator, "duels", 10), num=2)
    assert len(set(chosen.tolist())) == 2
    numeric = LogExpectedImprovement(GAUSSIAN, 1.0)
    _, value = select_from_pool(numeric, POINTS)
    with torch.no_grad():
        assert value == numeric(POINTS.unsqueeze(-2)).max()

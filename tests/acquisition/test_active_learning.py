"""Information of labels, grades and duels against nested Monte Carlo and numerical integration; choices from a pool."""

import math

import pytest
import torch
from acquisition_checks import DOUBLE, PAIRS, POINTS, check_acquisition, make_model, points, samples
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.preference import PairwiseBayesianActiveLearningByDisagreement, qExpectedUtilityOfBestOption
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import active_learning
from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Preference, Tie, Validity

LABELS = torch.tensor([1, 0, 1, 1, 0, 1, 1])


KINDS = {
    "binary": lambda: make_model(Binary(LABELS)),
    "validity": lambda: make_model(Validity(LABELS), likelihood=ValidityLikelihood(threshold=0.5, noise=0.2)),
    "ordinal": lambda: make_model(Ordinal(torch.tensor([0, 1, 2, 3, 3, 2, 0]), 4)),
    "preference": lambda: make_model(Preference(PAIRS), likelihood=PreferenceLikelihood(noise=0.3)),
    "ties": lambda: make_model(
        [Preference(PAIRS[:4]), Tie(PAIRS[4:])], likelihood=PreferenceLikelihood(0.3, tie_width=0.7, ties_allowed=True)
    ),
}
DUELS = ("preference", "ties")
every = pytest.mark.parametrize("kind", KINDS)
_MODELS: dict[str, SkewGP] = {}


@pytest.fixture
def model(kind) -> SkewGP:
    if kind not in _MODELS:
        _MODELS[kind] = KINDS[kind]()
    return _MODELS[kind]


def questions(generator, kind, *batch_shape):
    return torch.rand(*batch_shape, 2 if kind in DUELS else 1, 2, generator=generator, dtype=DOUBLE)


def outcome_probabilities(model, kind, f):
    """The likelihood's own probabilities of all outcomes given samples `... x q` of the latent function."""
    if kind == "ordinal":
        return model.likelihood(f.squeeze(-1)).probs.detach()
    if kind == "ties":
        return model.likelihood(f).probs.detach()
    p = model.likelihood(f if kind == "preference" else f.squeeze(-1)).probs.detach()
    return torch.stack([1 - p, p], dim=-1)


@every
def test_conformance(model, kind, generator):
    X = questions(generator, kind, 3, 2)
    for pending in (None, questions(generator, kind, 2).flatten(0, 1)):
        check_acquisition(SkewBayesianActiveLearningByDisagreement(model, X_pending=pending), X, atol=1e-12)


@every
def test_information_by_monte_carlo(model, kind, generator):
    X, N = questions(generator, kind, 4), 50_000
    value = SkewBayesianActiveLearningByDisagreement(model)(X)
    p = outcome_probabilities(model, kind, samples(model.posterior(X), N, generator))
    entropy, mean = torch.special.entr(p).sum(-1), p.mean(0)
    expected = torch.special.entr(mean).sum(-1) - entropy.mean(0)
    # to first order the estimate is an average of these
    error = (-(mean.log() * p).sum(-1) - entropy).std(0) / math.sqrt(N)
    assert ((value - expected).abs() < 4.5 * error + 1e-5).all()
    assert (value > 0).all()


def test_seed_of_the_sample_of_outcomes(generator):
    model, X = KINDS["binary"](), questions(generator, "binary", 5)
    pending = questions(generator, "binary", 9).flatten(0, 1)

    def values(seed):
        return SkewBayesianActiveLearningByDisagreement(model, X_pending=pending, seed=seed)(X)

    assert torch.equal(values(1), values(1))
    assert (values(1) - values(2)).abs().max() > 1e-6


@pytest.mark.parametrize("noise", [1e-6, 1e4])
def test_extreme_noise(noise, generator):
    model = make_model(Binary(LABELS), likelihood=ProbitLikelihood(noise=noise))
    X = questions(generator, "binary", 20).requires_grad_()
    values = SkewBayesianActiveLearningByDisagreement(model)(X)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    assert gradient.isfinite().all()
    assert (values > -1e-9).all()
    assert (values < math.log(2)).all()
    if noise > 1:
        assert (values < 1e-2).all()


# Pending observations


@every
def test_pending_information_by_monte_carlo(model, kind, generator):
    """`I(y; f | y_P)` with joint samples and all joint outcomes spelled out."""
    X, pending, N = questions(generator, kind, 3), questions(generator, kind, 2), 50_000
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


def test_joint_information_in_any_order(generator):
    """The chain rule: `I(y_1) + I(y_2 | y_1) = I(y_2) + I(y_1 | y_2)`."""
    model = make_model(Binary(LABELS))
    X = questions(generator, "binary", 2)
    X[1] = X[0] + 0.1

    def total(first, second):
        acquisition = SkewBayesianActiveLearningByDisagreement(model)
        value = acquisition(X[first])
        acquisition.set_X_pending(X[first])
        return value + acquisition(X[second])

    torch.testing.assert_close(total(0, 1), total(1, 0), rtol=0, atol=2e-3)


def test_many_pending_outcomes_are_sampled(generator):
    """Beyond the number of joint outcomes that are kept apart; against few pending points repeated exactly."""
    model = make_model(Binary(LABELS))
    X = questions(generator, "binary", 10)
    acquisition = SkewBayesianActiveLearningByDisagreement(model)
    alone = acquisition(X)
    acquisition.set_X_pending(torch.rand(12, 2, generator=generator, dtype=DOUBLE))
    values = acquisition(X)
    assert values.mean() < 0.9 * alone.mean()  # each of them is an average over 64 outcomes
    assert (values > 0).all()


def test_sampled_outcomes_average_to_all_of_them(generator, monkeypatch):
    """64 of the 128 joint outcomes of seven pending labels, drawn with many seeds, against all 128."""
    model = make_model(Binary(torch.tensor([1, 1, 1, 1, 0, 1, 1])))
    pending, X = points(generator, q=7), points(generator, 6)

    def information(seed):
        return SkewBayesianActiveLearningByDisagreement(model, X_pending=pending, seed=seed)(X)

    sampled = torch.stack([information(seed) for seed in range(24)])
    monkeypatch.setattr(active_learning, "MAX_OUTCOMES", 128)
    difference = sampled - information(0)
    assert (difference.mean(0).abs() < 4.5 * difference.std(0) / 24**0.5).all()
    assert (difference.std(0) / 24**0.5 < 0.004).all()


@pytest.mark.parametrize("kind", ["preference"])
def test_pending_points_come_in_pairs(model):
    with pytest.raises(BotorchTensorDimensionError, match="2 point"):
        SkewBayesianActiveLearningByDisagreement(model, X_pending=POINTS[:3])


# Kinds and scales


def test_kinds_of_a_mixed_model(generator):
    model = make_model(
        [Preference(PAIRS), Binary(LABELS)], likelihood=MixedLikelihood(ProbitLikelihood(), PreferenceLikelihood())
    )
    assert SkewBayesianActiveLearningByDisagreement(model).kind is Preference
    X = questions(generator, "binary", 3)
    values = SkewBayesianActiveLearningByDisagreement(model, kind=Binary)(X)
    assert values.shape == (3,)
    with pytest.raises(AssertionError, match="q=2"):
        SkewBayesianActiveLearningByDisagreement(model)(X)
    with pytest.raises(InputDataError, match="Validity"):
        SkewBayesianActiveLearningByDisagreement(model, kind=Validity)
    with pytest.raises(UnsupportedError, match="kind Tie"):
        SkewBayesianActiveLearningByDisagreement(model, kind=Tie)


def test_information_does_not_depend_on_units(generator):
    values = 5 + 10 * torch.randn(7, generator=generator, dtype=DOUBLE)
    standard = (values - values.mean()) / values.std()
    X = questions(generator, "ordinal", 3)
    cuts = torch.tensor([-0.5, 0.4], dtype=DOUBLE)

    def information(y, cutpoints, **options):
        likelihood = MixedLikelihood(NumericLikelihood(), OrdinalLikelihood(3, cutpoints=cutpoints))
        grades = torch.tensor([0, 1, 2, 2, 1, 0, 1])
        options["approximation"] = "ep"  # draws of one seed agree only until rounding has grown
        model = make_model([Numeric(y), Ordinal(grades, 3)], 64, likelihood=likelihood, **options)
        return SkewBayesianActiveLearningByDisagreement(model)(X)

    scaled = information(values, values.mean() + values.std() * cuts, outcome_transform=Standardize(m=1))
    torch.testing.assert_close(scaled, information(standard, cuts), rtol=1e-5, atol=1e-8)


def test_what_is_refused(generator):
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        SkewBayesianActiveLearningByDisagreement(SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)))
    with pytest.raises(UnsupportedError, match="NumericLikelihood takes no kind"):
        SkewBayesianActiveLearningByDisagreement(make_model(Numeric(POINTS.sum(-1))))
    transform = InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=DOUBLE))
    perturbed = make_model(Binary(LABELS), input_transform=transform)
    with pytest.raises(UnsupportedError, match="one point into many"):
        SkewBayesianActiveLearningByDisagreement(perturbed)(questions(generator, "binary", 2))


@every
def test_moves_with_its_model(kind, generator):
    acquisition = SkewBayesianActiveLearningByDisagreement(
        KINDS[kind](), X_pending=questions(generator, kind, 2).flatten(0, 1)
    ).to(torch.float32)
    values = acquisition(questions(generator, kind, 2).float())
    assert values.dtype == torch.float32
    assert values.isfinite().all()


@pytest.mark.parametrize("kind", ["preference"])
def test_botorch_takes_one_items_noise_for_a_duels(model, generator):
    """The reason for a function of our own beside the skewness: BoTorch's assumes noise variance 1 for a difference."""
    X = questions(generator, "preference", 4)
    ours = SkewBayesianActiveLearningByDisagreement(model)(X)
    theirs = PairwiseBayesianActiveLearningByDisagreement(model, num_samples=4096)(X)
    assert (ours - theirs).abs().max() > 0.01


# Pools


@every
def test_pool_is_chosen_greedily(model, kind, generator, monkeypatch):
    pool = questions(generator, kind, 12)
    acquisition = SkewBayesianActiveLearningByDisagreement(model)
    monkeypatch.setattr(active_learning, "BATCH", 7)
    chosen, values = select_from_pool(acquisition, pool, num=3)
    assert acquisition.X_pending is None
    assert chosen.shape == values.shape == (3,)
    for i in range(3):
        acquisition.set_X_pending(pool[chosen[:i]].flatten(0, 1) if i else None)
        with torch.no_grad():
            left = acquisition(pool)
        left[chosen[:i]] = -math.inf
        assert int(left.argmax()) == int(chosen[i])
        torch.testing.assert_close(left.max(), values[i])


def test_pool_is_diverse():
    """Clones of the most informative point: one after the other, at most one of them is chosen early."""
    model = make_model(Binary(LABELS), likelihood=ProbitLikelihood(noise=0.05))
    spread = torch.cartesian_prod(*[torch.linspace(0, 1, 6, dtype=DOUBLE)] * 2)
    acquisition = SkewBayesianActiveLearningByDisagreement(model)
    first, _ = select_from_pool(acquisition, spread)
    clones = spread[first] + 1e-3 * torch.arange(1, 6, dtype=DOUBLE).unsqueeze(-1)
    pool = torch.cat([clones, spread])
    with torch.no_grad():
        best_alone = acquisition(pool.unsqueeze(-2)).topk(3).indices
    assert torch.pdist(pool[best_alone]).max() < 0.01  # information alone chooses copies
    chosen, _ = select_from_pool(acquisition, pool, num=3)
    assert torch.pdist(pool[chosen]).min() > 0.1


def test_pool_with_other_acquisition_functions(generator):
    model = make_model(Preference(PAIRS))
    pool = questions(generator, "preference", 10)
    acquisition = qExpectedUtilityOfBestOption(model, sampler=SobolQMCNormalSampler(torch.Size([64]), seed=0))
    chosen, _ = select_from_pool(acquisition, pool, num=2)
    assert len(set(chosen.tolist())) == 2
    numeric = LogExpectedImprovement(SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)), 1.0)
    with pytest.raises(UnsupportedError, match="X_pending"):
        select_from_pool(numeric, POINTS, num=2)
    chosen, value = select_from_pool(numeric, POINTS)
    with torch.no_grad():
        assert value == numeric(POINTS.unsqueeze(-2)).max()


def test_pool_keeps_what_was_pending(generator):
    model = make_model(Binary(LABELS))
    acquisition = SkewBayesianActiveLearningByDisagreement(model, X_pending=POINTS[:1])
    pool = torch.rand(5, 2, generator=generator, dtype=DOUBLE)
    chosen, values = select_from_pool(acquisition, pool, num=2)
    assert torch.equal(acquisition.X_pending, POINTS[:1])
    acquisition.set_X_pending(torch.cat([POINTS[:1], pool[chosen[:1]]]))
    with torch.no_grad():
        torch.testing.assert_close(acquisition(pool[chosen[1:], None]), values[1:])


def test_pool_is_checked():
    acquisition = SkewBayesianActiveLearningByDisagreement(make_model(Binary(LABELS)))
    with pytest.raises(BotorchTensorDimensionError, match="N x d"):
        select_from_pool(acquisition, POINTS[0])
    for num in (0, 8):
        with pytest.raises(InputDataError, match="num must be an integer from 1 to 7"):
            select_from_pool(acquisition, POINTS, num)

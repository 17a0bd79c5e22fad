"""Duels with a reference point, and several pairs to ask about at once, by the criterion of one pair."""

import pytest
import torch
from acquisition_checks import (
    BOUNDS,
    DOUBLE,
    POINTS,
    assert_allowed,
    assert_average,
    finite_gradient,
    make_model,
    points,
    samples,
)
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import CandidateGenerationError, InputDataError
from botorch.models import PairwiseGP
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import DuelingLogExpectedImprovement, next_choice, next_pair, recommend
from botorch_skewgp.acquisition.dueling import qExpectedUtilityAfterAnswers
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Numeric, Preference

SMALL = {"num_restarts": 2, "raw_samples": 16}
APART = torch.tensor(  # where nearly nothing is known, answers to all of these tell
    [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.0], [0.5, 1.0]], [[0.0, 0.5], [1.0, 0.5]]],
    dtype=DOUBLE,
)


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return make_model(likelihood=PreferenceLikelihood(noise=0.5))


def of_one_duel() -> SkewGP:
    return make_model(Preference([[0, 1]]), likelihood=PreferenceLikelihood(noise=0.5))


def ensemble() -> FullyBayesianSkewGP:
    members = [of_one_duel() for _ in range(2)]
    members[1].covar_module.base_kernel.lengthscale = 1.5
    return FullyBayesianSkewGP(members)


def criterion(model, pairs, num=16384, **options):
    acquisition = qExpectedUtilityAfterAnswers(model, pairs, **options)
    acquisition.sampler = SobolQMCNormalSampler(torch.Size([num]), seed=0)
    return acquisition


def best_after_answers(model, values, duels):
    """`E[max_x E[f(x) | answers]]` over samples, `S x n`, cut by drawn answers to duels of their points."""
    noise = (2 * model.likelihood.noise).sqrt().detach()
    duels = torch.tensor(duels, dtype=torch.long).view(-1, 2)
    differences = (values[:, duels[:, 0]] - values[:, duels[:, 1]]).mT
    answers = differences + noise * torch.randn(differences.shape, dtype=DOUBLE) > 0
    answers = (answers.long() * 2 ** torch.arange(len(duels)).unsqueeze(-1)).sum(0)
    return sum(values[answers == part].sum(0).max() for part in answers.unique()) / len(values)


@pytest.mark.parametrize(
    ("make", "num_points", "num_duels"),
    [(of_one_duel, 2, 1), (of_one_duel, 4, 2), (of_one_duel, 8, 4), (of_one_duel, 5, 2), (ensemble, 4, 2)],
    ids=["alone", "two", "four", "a point that is not compared", "mixture"],
)
def test_the_criterion_by_simulation(make, num_points, num_duels):
    """Of the members of an ensemble the best point after answers is one, not one for each member."""
    model, X = make(), APART.flatten(0, 1)[:num_points]
    duels = torch.arange(2 * num_duels).view(-1, 2).tolist()
    new = num_points - num_points % 2 - 2 * (num_points % 2 == 0)  # the first point of the new pair
    members = getattr(model, "members", [model])
    with torch.no_grad():
        found = criterion(model, X[:new].view(-1, 2, 2))(X[new:])
        torch.manual_seed(0)
        drawn = [m.posterior(X).rsample(torch.Size([40_000 // len(members)])).squeeze(-1) for m in members]
    values = torch.cat(drawn)
    expected = best_after_answers(members[0], values, duels)
    assert float(found) == pytest.approx(float(expected), abs=0.03)
    assert num_points == 5 or expected > best_after_answers(members[0], values, duels[1:]) + 0.1


def test_one_point_of_the_pair_is_given(model):
    X = APART.flatten(0, 1)[:5]
    with torch.no_grad():
        beside = criterion(model, X[:2].unsqueeze(0), X_pending=X[2:3])(X[4:])
        torch.testing.assert_close(beside, criterion(model, X[:2].unsqueeze(0))(X[[4, 2]]))


def test_gradients(model, generator):
    pending = torch.rand(2, 2, 2, generator=generator, dtype=DOUBLE)
    acquisition = criterion(model, pending, 64)
    X = torch.rand(3, 2, 2, generator=generator, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(acquisition, X, atol=1e-4)


def same(pair, other) -> bool:
    return bool(torch.cdist(pair, other).lt(1e-6).sum() == 2)


TRIANGLE = [(torch.tensor([0, 1]), torch.tensor([1.0, 1.0], dtype=DOUBLE), 0.5)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fixed_features": {0: 0.3}},
        {"discrete_dims": {0: [0.0, 0.5, 1.0]}},
        {"cat_dims": {0: [0.0, 1.0], 1: [0.0, 1.0]}},
        {"inequality_constraints": TRIANGLE, "options": {"n_burnin": 100}},
    ],
    ids=["plain", "fixed", "whole numbers", "categories", "triangle"],
)
def test_pairs_of_a_domain(model, options):
    pairs, values = next_pair(model, BOUNDS, num_pairs=3, **options, **SMALL)
    assert (pairs.shape, values.shape) == ((3, 2, 2), (3,))
    assert (pairs.dtype, pairs.requires_grad) == (DOUBLE, False)
    assert_allowed(pairs, BOUNDS, options)
    assert not any(same(pairs[i], pairs[j]) for i in range(3) for j in range(i))
    assert (pairs[:, 0] - pairs[:, 1]).abs().amax(-1).gt(1e-3).all()


def test_each_pair_is_the_best_beside_those_before_it(generator):
    model, search = of_one_duel(), {"num_restarts": 4, "raw_samples": 64}
    torch.manual_seed(0)
    pairs, _ = next_pair(model, BOUNDS, num_pairs=2, **search)
    for options in ({}, {"num_pairs": 1}):
        torch.manual_seed(0)
        pair, value = next_pair(model, BOUNDS, **options, **search)
        assert (pair.shape, value.shape) == (((1, 2, 2), (1,)) if options else ((2, 2), ()))
        assert torch.equal(pair.view(2, 2), pairs[0])
    acquisition = criterion(model, pairs[:1], 512)
    others = torch.rand(300, 2, 2, generator=generator, dtype=DOUBLE)
    with torch.no_grad():
        assert acquisition(pairs[1]) > acquisition(others).max() - 0.05
        assert acquisition(pairs[1]) > acquisition(pairs[0]) + 0.05  # which would tell nothing new


def test_all_pairs_of_a_pool(model):
    pairs, values = next_pair(model, X_candidates=POINTS[:4], num_pairs=6)
    assert float(values[0]) == pytest.approx(float(criterion(model, POINTS[:0].view(0, 2, 2), 512)(pairs[:1])), abs=0.1)
    assert values[1] > values[0] - 0.1
    found = {frozenset(int((point == POINTS).all(-1).nonzero()) for point in pair) for pair in pairs}
    assert found == {frozenset((i, j)) for i in range(4) for j in range(i)}


@pytest.mark.filterwarnings("ignore:A not p.d.")  # of BoTorch's posterior, where the search brings two points together
@pytest.mark.parametrize("kind", ["pairwise", "ensemble", "judge", "numbers"])
def test_other_models(kind):
    duels = torch.tensor([[0, 1], [2, 3], [4, 5], [0, 6]])
    options = {"judge": 1} if kind == "judge" else {}
    model = {
        "pairwise": lambda: PairwiseGP(POINTS, duels),
        "ensemble": ensemble,
        "judge": lambda: SkewGP(POINTS, Preference(duels, judge=[0, 1, 0, 1])),
        "numbers": lambda: SkewGP(POINTS, Numeric([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 0.0])),
    }[kind]()
    pairs, values = next_pair(model.eval(), BOUNDS, num_pairs=2, num_restarts=1, raw_samples=8, **options)
    assert pairs.shape == (2, 2, 2)
    assert values.isfinite().all()


# Against a reference point


def test_expected_improvement_is_that_of_the_skewed_posterior(generator):
    model, X = make_model(), points(generator, 3)
    drawn = samples(model.posterior(torch.cat([X, POINTS[:1].expand(3, 1, 2)], dim=-2)), 50_000, generator)
    improvement = (drawn[..., 0] - drawn[..., 1]).clamp(min=0)
    assert_average(DuelingLogExpectedImprovement(model, POINTS[:1])(X).exp(), improvement)


def test_finite_with_gradient_beside_the_reference(model):
    finite_gradient(DuelingLogExpectedImprovement(model, POINTS[0]), POINTS[:1] + 1e-4)


# Pending questions


def test_a_pending_choice_by_simulation(generator):
    """The best of three is told by noisy values of all; then the pair is answered."""
    model = of_one_duel()
    choice, pair = torch.cat([APART[0], APART[1, :1]]), APART[2]
    value = criterion(model, [choice])(pair.unsqueeze(0)).detach()
    values = samples(model.posterior(torch.cat([choice, pair])), 200_000, generator)
    noise = model.likelihood.noise.sqrt().detach()

    def told(part):
        """The number of the best of some points, by noisy values of each."""
        return (values[:, part] + noise * torch.randn(len(values), len(part), dtype=DOUBLE)).argmax(-1)

    averages = []
    for seed in range(8):
        torch.manual_seed(seed)
        answers = 2 * told([0, 1, 2]) + told([3, 4])
        averages.append(sum(values[answers == part].sum(0).max() for part in range(6)) / len(values))
    expected, alone = torch.stack(averages).mean(), criterion(model, [])(pair.unsqueeze(0)).detach()
    assert abs(value - expected) < 0.02
    assert value > alone + 0.1


def test_more_outcomes_than_parts_are_drawn(generator):
    """Eight pending pairs have 256 joint answers; a drawn half of these tells as much."""
    model, pair = of_one_duel(), points(generator, 1, q=2)
    pairs = points(generator, 8, q=2)
    few, more = (criterion(model, pairs[:n], num=2048)(pair).detach() for n in (7, 8))
    assert few - 0.05 < more < few + 0.3


@pytest.mark.parametrize(
    "space",
    [
        {"bounds": BOUNDS},
        {"bounds": BOUNDS, "discrete_dims": {0: [0.0, 0.5, 1.0]}},
        {"bounds": BOUNDS, "fixed_features": {0: 0.5}},
        {"bounds": BOUNDS, "inequality_constraints": [(torch.arange(2), -torch.ones(2, dtype=DOUBLE), -0.8)]},
        {"bounds": BOUNDS, "method": "information"},
        {"X_candidates": POINTS[:4]},
        {"X_candidates": POINTS[:4], "method": "information"},
        {"X_candidates": POINTS[:4], "against": POINTS[0]},
    ],
    ids=["box", "values", "fixed", "constraint", "information", "list", "list by information", "against"],
)
def test_what_is_pending_is_not_asked_again(model, space):
    few = SMALL if "bounds" in space else {}
    asked = []
    for _ in range(3):
        pair, _ = next_pair(model, **space, **few, pending=[question.flip(0) for question in asked])
        asked.append(pair)
    assert_allowed(torch.stack(asked), BOUNDS, {k: v for k, v in space.items() if k != "method"})
    for i, first in enumerate(asked):
        for second in asked[:i]:
            assert not torch.allclose(first, second)
            assert not torch.allclose(first.flip(0), second)


def test_all_pairs_of_few_points_are_asked_in_turn(model):
    """Of four corners there are six pairs, of which the last one shares no point with the first."""
    corners = {"cat_dims": {0: [0.0, 1.0], 1: [0.0, 1.0]}}
    asked = []
    for _ in range(6):
        asked.append(next_pair(model, BOUNDS, **corners, **SMALL, pending=asked)[0])
    assert len({frozenset(map(tuple, pair.tolist())) for pair in asked}) == 6
    with pytest.raises(CandidateGenerationError, match="ask for fewer"):
        next_pair(model, BOUNDS, **corners, **SMALL, pending=asked)
    assert next_choice(model, BOUNDS, 3, **corners, **SMALL, pending=asked)[0].shape == (3, 2)


def test_a_choice_is_not_asked_again_either(model):
    pool, asked = POINTS[:4], []
    for _ in range(4):
        asked.append(next_choice(model, X_candidates=pool, pending=asked)[0])
    assert len({frozenset(map(tuple, choice.tolist())) for choice in asked}) == 4
    with pytest.raises(InputDataError, match="All questions about 3 of 4"):
        next_choice(model, X_candidates=pool, pending=asked)


def test_a_champion_outside_of_the_bounds_is_challenged_as_it_is(model, monkeypatch):
    """Also where the search has coordinates of its own, and chooses one point after the other."""
    champion, seen = POINTS[0] + 5, list[torch.Tensor]()
    before = qExpectedUtilityOfBestOption.set_X_pending
    monkeypatch.setattr(
        qExpectedUtilityOfBestOption,
        "set_X_pending",
        lambda self, X=None: before(self, X) if X is None else (seen.append(X), before(self, X))[1],
    )
    bounds, values = 2 * BOUNDS, {"cat_dims": {0: [0.0, 1.0, 2.0]}}
    options, _ = next_choice(model, bounds, 3, against=champion, **values, **SMALL)
    assert torch.equal(options[-1], champion)
    assert len(seen) > 1
    assert all(torch.equal(X[0], champion) for X in seen)


@pytest.mark.parametrize("space", [{"bounds": BOUNDS}, {"bounds": BOUNDS, "cat_dims": {0: [0.0, 0.5, 1.0]}}])
def test_the_global_generator_stays_as_it_was(model, space):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, _ = next_pair(model, **space, **SMALL, seed=1)
    recommend(model, **space, **SMALL)
    next_choice(model, **space, **SMALL)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    assert torch.equal(next_pair(model, **space, **SMALL, seed=1)[0], first)

"""Several pairs to ask about at once, by the criterion of one pair."""

import pytest
import torch
from acquisition_checks import DOUBLE, POINTS, make_model
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, UnsupportedError
from botorch.models import PairwiseGP
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair
from botorch_skewgp.acquisition.dueling import qExpectedUtilityAfterDuels
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Preference

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=DOUBLE)
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
    acquisition = qExpectedUtilityAfterDuels(model, pairs, **options)
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


@pytest.mark.parametrize("num_pending", [0, 1, 3])
def test_the_criterion_by_simulation(num_pending):
    model, X = of_one_duel(), APART[: num_pending + 1]
    with torch.no_grad():
        found = criterion(model, X[:-1])(X[-1])
        torch.manual_seed(0)
        values = model.posterior(X.flatten(0, 1)).rsample(torch.Size([40_000])).squeeze(-1)
    duels = torch.arange(len(X) * 2).view(-1, 2).tolist()
    assert float(found) == pytest.approx(float(best_after_answers(model, values, duels)), abs=0.03)
    assert best_after_answers(model, values, duels) > best_after_answers(model, values, duels[1:]) + 0.1


def test_a_point_that_is_not_compared_adds_no_answer():
    model, X = of_one_duel(), APART.flatten(0, 1)[:5]
    with torch.no_grad():
        found = criterion(model, X[:4].view(2, 2, 2))(X[4:])
        torch.manual_seed(0)
        values = model.posterior(X).rsample(torch.Size([40_000])).squeeze(-1)
    assert float(found) == pytest.approx(float(best_after_answers(model, values, [(0, 1), (2, 3)])), abs=0.03)
    with torch.no_grad():  # the other one is given
        beside = criterion(model, X[:2].unsqueeze(0), X_pending=X[2:3])
        both = criterion(model, X[:2].unsqueeze(0))
        torch.testing.assert_close(beside(X[4:]), both(X[[4, 2]]))


def test_gradients(model, generator):
    pending = torch.rand(2, 2, 2, generator=generator, dtype=DOUBLE)
    acquisition = criterion(model, pending, 64)
    X = torch.rand(3, 2, 2, generator=generator, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(acquisition, X, atol=1e-4)


def test_members_of_an_ensemble_are_a_mixture():
    """Of which the best point after answers is one, not one for each member."""
    model, X = ensemble(), APART[:2]
    with torch.no_grad():
        found = criterion(model, X[:1])(X[1])
        torch.manual_seed(0)
        every = torch.cat(
            [m.posterior(X.flatten(0, 1)).rsample(torch.Size([20_000])).squeeze(-1) for m in model.members]
        )
    assert float(found) == pytest.approx(float(best_after_answers(model.members[0], every, [(0, 1), (2, 3)])), abs=0.03)


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
    assert ((BOUNDS[0] <= pairs) & (pairs <= BOUNDS[1])).all()
    assert not any(same(pairs[i], pairs[j]) for i in range(3) for j in range(i))
    assert (pairs[:, 0] - pairs[:, 1]).abs().amax(-1).gt(1e-3).all()
    for dim, value in options.get("fixed_features", {}).items():
        assert (pairs[..., dim] == value).all()
    for name in ("discrete_dims", "cat_dims"):
        for dim, allowed in options.get(name, {}).items():
            assert torch.isin(pairs[..., dim], torch.tensor(allowed, dtype=DOUBLE)).all()
    if "inequality_constraints" in options:
        assert (pairs.sum(-1) >= 0.5 - 1e-6).all()


def test_each_pair_is_the_best_beside_those_before_it(generator):
    model, search = of_one_duel(), {"num_restarts": 4, "raw_samples": 64}
    torch.manual_seed(0)
    pairs, _ = next_pair(model, BOUNDS, num_pairs=2, **search)
    torch.manual_seed(0)
    assert torch.equal(pairs[0], next_pair(model, BOUNDS, **search)[0])
    acquisition = criterion(model, pairs[:1], 512)
    others = torch.rand(300, 2, 2, generator=generator, dtype=DOUBLE)
    with torch.no_grad():
        assert acquisition(pairs[1]) > acquisition(others).max() - 0.05
        assert acquisition(pairs[1]) > acquisition(pairs[0]) + 0.05  # which would tell nothing new


def test_all_pairs_of_a_pool(model):
    pairs, _ = next_pair(model, X_candidates=POINTS[:4], num_pairs=6)
    found = {frozenset(int((point == POINTS).all(-1).nonzero()) for point in pair) for pair in pairs}
    assert found == {frozenset((i, j)) for i in range(4) for j in range(i)}


def test_values_of_a_page_from_a_pool_are_of_one_criterion(model):
    pairs, values = next_pair(model, X_candidates=POINTS[:4], num_pairs=2)
    assert float(values[0]) == pytest.approx(float(criterion(model, POINTS[:0].view(0, 2, 2), 512)(pairs[:1])), abs=0.1)
    assert values[1] > values[0] - 0.1


@pytest.mark.parametrize(
    "pairs", [POINTS[:2], POINTS[:6].view(2, 3, 2), torch.full((1, 2, 2), torch.nan), torch.rand(8, 2, 2)]
)
def test_pending_pairs_are_checked(model, pairs):
    with pytest.raises(InputDataError, match="pairs must be finite points, m x 2 x d with m at most 7"):
        qExpectedUtilityAfterDuels(model, pairs)


def test_candidates_are_one_pair(model):
    for shape in ((3, 2), (2, 3)):
        with pytest.raises(InputDataError, match="Candidates must be one pair of points like pairs, 2 x 2"):
            qExpectedUtilityAfterDuels(model, POINTS[:2].view(1, 2, 2))(torch.rand(shape, dtype=DOUBLE))


def test_one_pair_of_several(model):
    with torch.no_grad():
        pairs, values = next_pair(model, BOUNDS, num_pairs=1, **SMALL)
    assert (pairs.shape, values.shape) == ((1, 2, 2), (1,))


@pytest.mark.parametrize("kind", ["pairwise", "ensemble", "judge"])
def test_other_models(kind):
    duels = torch.tensor([[0, 1], [2, 3], [4, 5], [0, 6]])
    options = {"judge": 1} if kind == "judge" else {}
    model = {
        "pairwise": lambda: PairwiseGP(POINTS, duels),
        "ensemble": ensemble,
        "judge": lambda: SkewGP(POINTS, Preference(duels, judge=[0, 1, 0, 1])),
    }[kind]()
    pairs, values = next_pair(model.eval(), BOUNDS, num_pairs=2, num_restarts=1, raw_samples=8, **options)
    assert pairs.shape == (2, 2, 2)
    assert values.isfinite().all()


def test_what_is_asked_for_is_checked(model):
    for wrong in (0, 9, 2.5, True):
        with pytest.raises(InputDataError, match="num_pairs must be an integer from 1 to 8"):
            next_pair(model, BOUNDS, num_pairs=wrong)
    for method in ("information", qExpectedUtilityOfBestOption(model)):
        with pytest.raises(UnsupportedError, match="leave method out, or num_pairs"):
            next_pair(model, BOUNDS, method, num_pairs=2)
    with pytest.raises(InputDataError, match=r"3 different pair\(s\) of X_candidates"):
        next_pair(model, X_candidates=POINTS[:3], num_pairs=4)
    corners = {"cat_dims": {0: [0.0, 1.0]}, "fixed_features": {1: 0.5}}
    with pytest.raises(CandidateGenerationError, match="ask for fewer"):
        next_pair(model, BOUNDS, num_pairs=2, **corners, **SMALL)

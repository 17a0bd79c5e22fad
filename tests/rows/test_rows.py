"""Rows: sparse products against dense matrices, stacking, selection; readings, against what they say of values."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.distributions import MultivariateNormal
from torch.distributions import Normal

from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.likelihoods.base import _outcomes
from botorch_skewgp.observations import Ranking
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import DenseRows, Reading, Rows, first_of_equal
from botorch_skewgp.truncated.step_factor import Heights


def normal(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def random_rows(generator, m, k, n, root=None):
    """Entries may name a point twice, whose weights then add up."""
    lower = normal(generator, m)
    upper = torch.where(torch.arange(m) % 3 == 0, lower, lower + 1)
    index = torch.randint(n, (m, k), generator=generator)
    coefficient, bias, noise = normal(generator, m, k), normal(generator, m), normal(generator, m).square()
    noise_root = None if root is None else normal(generator, m, root)
    return Rows(index, coefficient, bias, lower, upper, noise, noise_root=noise_root)


def weight(rows, n):
    A = torch.zeros(rows.num_rows, n, dtype=torch.float64)
    for i in range(rows.num_rows):
        for j, c in zip(rows.index[i].tolist(), rows.coefficient[i].tolist(), strict=True):
            A[i, j] += c
    return A


# wider rows than eight entries go through a dense matrix
@pytest.mark.parametrize("k", [1, 2, 5, 11])
@pytest.mark.parametrize(("root", "batch_shape"), [(None, ()), (None, (3,)), (3, ())])
def test_products_equal_those_of_dense_matrices(k, root, batch_shape, generator):
    rows, n = random_rows(generator, 7, k, 6, root), 6
    A, K, mean = weight(rows, n), normal(generator, *batch_shape, n, n), normal(generator, *batch_shape, n)
    K = K @ K.mT
    assert torch.allclose(rows.weight(n), A)
    assert torch.allclose(rows.times(K), A @ K)
    assert torch.allclose(rows.mean(mean), mean @ A.mT + rows.bias)
    shared = 0 if root is None else rows.noise_covariance
    assert torch.allclose(rows.covariance(K), A @ K @ A.mT + shared)


def test_stacking(generator):
    """Noise that rows of one block share is independent of that of other blocks."""
    blocks = [random_rows(generator, 3, 1, 4), random_rows(generator, 2, 3, 4, 2), random_rows(generator, 4, 2, 4, 1)]
    rows = Rows.cat(blocks)
    assert rows.num_rows == 9
    assert torch.allclose(rows.weight(4), torch.cat([weight(block, 4) for block in blocks]))
    shared = torch.block_diag(torch.zeros(3, 3, dtype=torch.float64), *(block.noise_covariance for block in blocks[1:]))
    assert torch.allclose(rows.noise_covariance, shared)
    for name in ("bias", "lower", "upper", "noise"):
        assert torch.equal(getattr(rows, name), torch.cat([getattr(block, name) for block in blocks]))
    assert Rows.cat(blocks[:1]) is blocks[0]


def test_stacking_with_no_rows(generator):
    block = random_rows(generator, 3, 2, 4)
    rows = Rows.cat([Rows.empty(block.bias), block])
    assert rows.noise_root is None
    assert torch.allclose(rows.weight(4), weight(block, 4))
    empty = Rows.empty(block.bias)
    assert empty.num_rows == 0
    assert empty.times(normal(generator, 4, 2)).shape == (0, 2)
    assert empty.covariance(normal(generator, 4, 4)).shape == (0, 0)


@pytest.mark.parametrize("ranks", [None, [0, 0, 1, 1]])
def test_noise_of_rankings_is_divided_where_it_can_be(ranks):
    """The covariance of the noise stays; rows of a full ranking get some of their own, those of two pairs do not."""
    ranks = None if ranks is None else [ranks, [0, 1, 2, 3]]
    ranking = Ranking([[0, 1, 2, 3], [3, 1, 0, -1]], ranks=ranks, ties_allowed=False)
    rows = PreferenceLikelihood().rows(ranking, torch.zeros(1, dtype=torch.double))
    divided = rows.with_own_noise()
    before, after = (part.noise_covariance + torch.diag(part.noise) for part in (rows, divided))
    assert torch.allclose(before, after, atol=1e-12)
    of_lines = rows.block == 1 if ranks else rows.block >= 0
    assert bool((divided.noise[of_lines] > 0).all())
    assert bool((rows.noise == 0).any())


@pytest.mark.parametrize(
    "items",
    [
        [[0.1, 2.0], [0.2, 2.0], [0.3, 2.0]],
        [[0.1, 2.0], [0.1, 3.0], [0.1, 2.0], [0.2, 3.0]],
        [[0.1], [0.1], [-0.1], [0.1]],
        [],
    ],
)
def test_first_of_equal(items):
    points = torch.tensor(items, dtype=torch.float64).reshape(len(items), -1 if items else 2)
    assert first_of_equal(points).tolist() == [items.index(item) for item in items]


@pytest.mark.parametrize("which", [torch.tensor([True, False, True]), torch.tensor([2, 0])])
@pytest.mark.parametrize("kind", [Rows, DenseRows])
def test_rows_are_selected_with_all_that_they_have(kind, which):
    values = torch.arange(18, dtype=torch.float64).view(6, 3)
    pairs, index = torch.stack([values[0], values[1]], -1), torch.tensor([[0, 1]]).expand(3, 2)
    parts = {"noise_root": pairs + 1, "count": values[3], "block": torch.tensor([4, 5, 6])}
    heights = Heights(values[4], values[5], values[0])
    rows = kind(index, pairs, *values[:4], **parts, heights=heights)
    some = rows.select(which)
    for name in ("index", "coefficient", "bias", "lower", "upper", "noise", "noise_root", "count", "block"):
        assert torch.equal(getattr(some, name), getattr(rows, name)[which]), name
    assert some.reads is None
    for name in ("outside", "gain", "answer"):
        assert torch.equal(getattr(some.heights, name), getattr(heights, name)[which])


VALUES = torch.tensor([[-1.2], [-0.4], [0.1], [0.7]], dtype=torch.float64)
NOISE = 0.3


def reading(weight: float, *cutpoints: float) -> Reading:
    like = torch.zeros(1, dtype=torch.float64)
    return Reading(like.new_tensor([[weight]]), like.new_tensor([cutpoints]), like.new_tensor([NOISE]))


def cells(weight, *cutpoints):
    """The probabilities of the cells of `w (f + v)`, the lowest first."""
    read = Normal(weight * VALUES, abs(weight) * NOISE**0.5)
    below = torch.stack([read.cdf(torch.tensor(cut)) for cut in (*cutpoints, torch.inf)], dim=-1).squeeze(-2)
    return below.diff(dim=-1, prepend=torch.zeros(len(below), 1))


@pytest.mark.parametrize("weight", [-2.0, 0.5, 1.0])
@pytest.mark.parametrize("cutpoints", [(0.4,), (-0.3, 0.2, 0.9)])
def test_outcomes_of_a_weighted_value(weight, cutpoints):
    asked, expected = reading(weight, *cutpoints), cells(weight, *cutpoints)
    torch.testing.assert_close(asked.log_probabilities(VALUES).exp(), expected)
    torch.testing.assert_close(asked.probabilities(VALUES), expected)
    assert torch.equal(asked.outcome_of(VALUES), (weight * VALUES > torch.tensor(cutpoints)).sum(-1))
    rows = asked.rows(torch.arange(4).unsqueeze(-1), asked.outcome_of(VALUES))
    inside = (rows.coefficient * VALUES > rows.lower.unsqueeze(-1)) & (rows.coefficient * VALUES <= rows.upper[:, None])
    assert inside.all()
    certain = MultivariateNormal(VALUES.squeeze(-1), 1e-18 * torch.eye(4, dtype=torch.float64))
    predicted = _outcomes(SkewGPPosterior.from_gaussian(certain), asked, squeeze=False)
    probabilities = predicted.probs if len(cutpoints) > 1 else torch.stack([1 - predicted.probs, predicted.probs], -1)
    torch.testing.assert_close(probabilities.reshape(expected.shape), expected)


@pytest.mark.parametrize("weight", [0.0, torch.inf, torch.nan])
def test_a_weight_that_reads_nothing_is_refused(weight):
    with pytest.raises(InputDataError, match="finite weight other than 0"):
        reading(weight, 0.0)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_probabilities_of_choices_by_many_draws_of_the_noise(k):
    generator = torch.Generator().manual_seed(0)
    items = 2 * torch.randn(4, k, dtype=torch.float64, generator=generator)
    asked = Reading.choice(k, torch.tensor([NOISE], dtype=torch.float64), items)
    noise = NOISE**0.5 * torch.randn(200_000, 1, k, dtype=torch.float64, generator=generator)
    share = torch.nn.functional.one_hot((items + noise).argmax(-1), k).double().mean(0)
    found = asked.probabilities(items)
    error = (found * (1 - found) / len(noise)).sqrt() + 1e-6
    assert ((found - share).abs() < 4.5 * error).all()
    torch.testing.assert_close(found, asked.log_probabilities(items).exp(), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.sum(-1), torch.ones(4).double())


def test_probabilities_of_independent_readings():
    """A difference and an average of two items, each cut once: the product of the two."""
    like = torch.zeros(1, dtype=torch.float64)
    outcomes = torch.tensor([[[a, a + 1], [b, b + 1]] for a in (0, 1) for b in (0, 1)])
    both = Reading(like.new_tensor([[1.0, -1.0], [0.5, 0.5]]), like.new_tensor([[0.2], [-0.1]]), like + NOISE, outcomes)
    items = torch.tensor([[0.3, -0.4], [5.0, 1.0]], dtype=torch.float64)
    difference = Normal(items[:, 0] - items[:, 1], (2 * NOISE) ** 0.5).cdf(torch.tensor(0.2))
    average = Normal(items.mean(-1), (NOISE / 2) ** 0.5).cdf(torch.tensor(-0.1))
    expected = torch.stack([difference * average, difference * (1 - average),
                            (1 - difference) * average, (1 - difference) * (1 - average)], dim=-1)  # fmt: skip
    torch.testing.assert_close(both.probabilities(items), expected)
    torch.testing.assert_close(both.log_probabilities(items).exp(), expected)


def test_choices_are_told_from_other_readings_of_their_shape():
    one = torch.ones(1, dtype=torch.float64)
    assert all(Reading.choice(k, one, one).is_choice for k in (2, 3, 5))
    weight = torch.tensor([[1.0, -1.0], [0.5, 0.5]], dtype=torch.float64)
    cells = torch.tensor([[[1, 2], [0, 2]], [[0, 1], [0, 2]]])
    assert not Reading(weight, torch.zeros(2, 1, dtype=torch.float64), one, cells).is_choice

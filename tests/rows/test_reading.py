"""A reading of one item with a weight of its own, against what it says of `w (f + v)`."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.distributions import MultivariateNormal
from torch.distributions import Normal

from botorch_skewgp.likelihoods.base import _outcomes
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading

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

"""A reading of one item with a weight of its own, against what it says of `w (f + v)`."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.distributions import MultivariateNormal
from torch.distributions import Normal

from botorch_skewgp.likelihoods import outcome_distribution
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
    assert torch.equal(asked.outcome_of(VALUES), (weight * VALUES > torch.tensor(cutpoints)).sum(-1))
    rows = asked.rows(torch.arange(4).unsqueeze(-1), asked.outcome_of(VALUES))
    inside = (rows.coefficient * VALUES > rows.lower.unsqueeze(-1)) & (rows.coefficient * VALUES <= rows.upper[:, None])
    assert inside.all()
    certain = MultivariateNormal(VALUES.squeeze(-1), 1e-18 * torch.eye(4, dtype=torch.float64))
    predicted = outcome_distribution(SkewGPPosterior.from_gaussian(certain), asked)
    probabilities = predicted.probs if len(cutpoints) > 1 else torch.stack([1 - predicted.probs, predicted.probs], -1)
    torch.testing.assert_close(probabilities.reshape(expected.shape), expected)


@pytest.mark.parametrize("weight", [0.0, torch.inf, torch.nan])
def test_a_weight_that_reads_nothing_is_refused(weight):
    with pytest.raises(InputDataError, match="finite weight other than 0"):
        reading(weight, 0.0)

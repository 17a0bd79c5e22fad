"""What a model learns from its transforms."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import AppendFeatures, ChainedInputTransform, Normalize, Round
from botorch.models.transforms.outcome import Standardize

from botorch_skewgp.models.transforms import learn_outcome_scale, rounded_inputs
from botorch_skewgp.observations import Censored, Numeric, Preference


def test_numbers_alone_are_learned_from():
    values = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    kinds = [Numeric(values[:3]), Censored([0.0], [100.0]), Preference([[0, 1]]), Numeric(values[3:])]
    scale = learn_outcome_scale(kinds, Standardize(m=1))
    assert scale.location == pytest.approx(4.0)
    assert scale.scale == pytest.approx(values.std().item())


def test_overflow_is_said():
    values = torch.tensor([3e38, -3e38, 3e38])
    with pytest.raises(InputDataError, match=r"too large to be standardised in torch\.float32"):
        learn_outcome_scale([Numeric(values)], Standardize(m=1))


RAW = torch.tensor([[0.0, 16.0], [1.0, 512.0]], dtype=torch.float64)
X = torch.rand(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_points_stay_as_they_are_where_nothing_rounds():
    for transform in (None, Normalize(2), Round([0], transform_on_eval=False)):
        assert rounded_inputs(transform, X) is X


@pytest.mark.parametrize("approximate", [False, True])
def test_whole_numbers_of_a_rounding_between_normalisations(approximate):
    """Candidates in the unit cube, as BoTorch's documentation of `Round` has it."""
    chain = ChainedInputTransform(
        raw=Normalize(2, bounds=RAW, reverse=True),
        round=Round([1], approximate=approximate),
        unit=Normalize(2, bounds=RAW),
    )
    rounded = rounded_inputs(chain, X)
    assert torch.equal(rounded[:, 0], X[:, 0])
    whole = RAW[0, 1] + rounded[:, 1] * 496
    torch.testing.assert_close(whole, (RAW[0, 1] + X[:, 1] * 496).round(), rtol=0, atol=1e-10)
    torch.testing.assert_close(chain(rounded), Normalize(2, bounds=RAW)(Normalize(2, bounds=RAW).untransform(rounded)))


def test_categories_become_one_hot():
    categories = rounded_inputs(Round([0], {1: 3}), torch.tensor([[1.6, 0.2, 0.5, 0.3], [0.4, 0.9, 0.1, 0.0]]))
    assert categories.tolist() == [[2.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]


def test_rounding_after_what_cannot_be_undone_is_refused():
    chain = ChainedInputTransform(more=AppendFeatures(feature_set=torch.zeros(1, 1)), round=Round([0]))
    with pytest.raises(UnsupportedError, match="rounds after AppendFeatures"):
        rounded_inputs(chain, X)

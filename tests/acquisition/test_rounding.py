"""Points as the input transform of a model rounds them."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import AppendFeatures, ChainedInputTransform, Normalize, Round

from botorch_skewgp.acquisition.rounding import rounded_inputs

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

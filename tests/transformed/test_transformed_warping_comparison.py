"""The comparison of warpings, on outcomes whose warping is known."""

import pytest
import torch

from botorch_skewgp.transformed import compare_warpings
from botorch_skewgp.warpings import Affine, BoxCox


@pytest.fixture(scope="module")
def scores():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(14, 1, dtype=torch.double, generator=generator)
    y = (2 * torch.sin(6 * X) + 0.2 * torch.randn(X.shape, dtype=torch.double, generator=generator)).exp()
    return compare_warpings(X, y, [Affine(), BoxCox()], num_nodes=16, least_effective=0.0, num_restarts=1)


def test_the_warping_of_an_exponential_is_found(scores):
    best, other = scores
    assert isinstance(best.model.warping, BoxCox)
    assert best.behind == best.standard_error == 0
    assert other.behind > 2 * other.standard_error > 0
    assert best.log_evidence > other.log_evidence


def test_scores_are_those_of_the_models(scores):
    for score in scores:
        assert score.leave_one_out == pytest.approx(float(score.model.leave_one_out().log_density.sum()))
        assert score.behind == pytest.approx(scores[0].leave_one_out - score.leave_one_out)
        assert score.log_evidence == score.model.log_evidence
        assert score.effective_number == float(score.model.leave_one_out().effective_number.min())


def test_the_error_of_nodes_is_part_of_the_standard_error(scores):
    best, other = (score.model.leave_one_out() for score in scores)
    spread = (best.log_density - other.log_density).std() * len(best.log_density) ** 0.5
    exact = (spread**2 + best.standard_error**2 + other.standard_error**2).sqrt()
    assert scores[1].standard_error == pytest.approx(float(exact))
    assert other.standard_error > 0

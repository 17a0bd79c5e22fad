"""Reference points of several objectives, on models that are looked up."""

import pytest
import torch
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal
from linear_operator.operators import DiagLinearOperator

from botorch_skewgp.acquisition.reference_point import plausible_reference_point


class Table(Model):
    """A model with independent normal outcomes that are looked up."""

    def __init__(self, means, variances):
        super().__init__()
        self.means, self.variances = (torch.tensor(entry, dtype=torch.float64) for entry in (means, variances))

    @property
    def num_outputs(self):
        return self.means.shape[-1]

    def posterior(self, X, **kwargs):
        rows = X[:, 0].long()
        covariance = DiagLinearOperator(self.variances[rows].flatten())
        return GPyTorchPosterior(MultitaskMultivariateNormal(self.means[rows], covariance))


MEANS = [[0.0, 4.0, 1.0], [2.0, 3.0, 1.0], [4.0, 0.0, 0.0], [-3.0, -2.0, 1.0], [1.0, 2.5, 1.0]]
CERTAIN = [[1e-8] * 3] * 5
ROWS = torch.arange(5, dtype=torch.float64).unsqueeze(-1)
OBJECTIVES = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)


def test_reference_point_of_a_known_front_is_its_nadir_and_a_tenth():
    """Points 0, 1 and 2 are the front; its nadir is (0, 0), its range 4."""
    point = plausible_reference_point(Table(MEANS, CERTAIN), ROWS, OBJECTIVES)
    assert point.tolist() == pytest.approx([-0.4, -0.4])


def test_reference_point_counts_what_may_be_on_the_front():
    """With a standard deviation of 8, point 3 may have 5 in its first objective; its mean is the nadir then."""
    variances = [*CERTAIN[:3], [64.0, 1e-8, 1e-8], CERTAIN[4]]
    point = plausible_reference_point(Table(MEANS, variances), ROWS, OBJECTIVES)
    assert point.tolist() == pytest.approx([-3 - 0.7, -2 - 0.6])
    variances[3][0] = 6.9**2  # 3.9 is not better than point 2
    assert plausible_reference_point(Table(MEANS, variances), ROWS, OBJECTIVES).tolist() == pytest.approx([-0.4, -0.4])


def test_reference_point_of_minimised_and_weighted_objectives():
    """Only point 3 is best when both are minimised: a tenth of its value is taken off."""
    weights = OBJECTIVES * torch.tensor([-1.0, -2.0, 0.0])
    assert plausible_reference_point(Table(MEANS, CERTAIN), ROWS, weights).tolist() == pytest.approx([2.7, 3.6])


def test_reference_point_leaves_out_what_breaks_a_constraint():
    A, b = torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64), torch.tensor([[-0.5]], dtype=torch.float64)
    point = plausible_reference_point(Table(MEANS, CERTAIN), ROWS, OBJECTIVES, (A, b))
    assert point.tolist() == pytest.approx([-0.2, 2.9])  # points 0 and 1
    nowhere = plausible_reference_point(Table(MEANS, CERTAIN), ROWS, OBJECTIVES, (A, b - 10))
    assert nowhere.tolist() == pytest.approx([-0.4, -0.4])  # all points


def test_reference_point_of_a_model_without_uncertainty():
    model = GenericDeterministicModel(lambda X: torch.cat([X, 1 - X], -1), num_outputs=2)
    X = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1)
    assert plausible_reference_point(model, X, OBJECTIVES[:, :2]).tolist() == pytest.approx([-0.1, -0.1])

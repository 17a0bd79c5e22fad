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
ROWS = torch.arange(5, dtype=torch.float64).unsqueeze(-1)
OBJECTIVES = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
A = torch.tensor([[0.0, 0.0, -1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("sd", "signs", "constraint", "expected"),
    [
        (1e-4, (1.0, 1.0), None, [-0.4, -0.4]),  # points 0, 1 and 2 are the front, of nadir (0, 0) and range 4
        (8.0, (1.0, 1.0), None, [-3 - 0.7, -2 - 0.6]),  # point 3 may have 5 in its first objective: its mean counts
        (6.9, (1.0, 1.0), None, [-0.4, -0.4]),  # 3.9 is not better than point 2
        (1e-4, (-1.0, -2.0), None, [2.7, 3.6]),  # only point 3 is best: a tenth of its value is taken off
        (1e-4, (1.0, 1.0), -0.5, [-0.2, 2.9]),  # points 0 and 1
        (1e-4, (1.0, 1.0), -10.5, [-0.4, -0.4]),  # met nowhere: all points
    ],
    ids=["certain", "uncertain", "less uncertain", "minimised", "constraint", "impossible constraint"],
)
def test_reference_point_is_the_nadir_of_what_may_be_the_front_and_a_tenth(sd, signs, constraint, expected):
    variances = [[1e-8] * 3] * 3 + [[sd**2, 1e-8, 1e-8], [1e-8] * 3]
    weights = OBJECTIVES * torch.tensor([*signs, 0.0])
    constraints = None if constraint is None else (A, torch.tensor([[constraint]], dtype=torch.float64))
    point = plausible_reference_point(Table(MEANS, variances), ROWS, weights, constraints)
    assert point.tolist() == pytest.approx(expected)


def test_reference_point_of_a_model_without_uncertainty():
    model = GenericDeterministicModel(lambda X: torch.cat([X, 1 - X], -1), num_outputs=2)
    X = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1)
    assert plausible_reference_point(model, X, OBJECTIVES[:, :2]).tolist() == pytest.approx([-0.1, -0.1])

"""Pairs by expected utility, and reference points of several objectives."""

import math

import pytest

pytest.importorskip("ax")

import torch
from ax_cases import GENERATES, new_client, next_trial, with_trials
from botorch.acquisition import qUpperConfidenceBound
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal
from linear_operator.operators import DiagLinearOperator

from botorch_skewgp.ax import attach_comparison, get_next_pair
from botorch_skewgp.ax.acquisition import plausible_reference_point

pytestmark = GENERATES


@pytest.mark.parametrize("has_numbers", [False, True])
def test_pairs_are_asked_by_expected_utility_where_there_are_no_numbers(has_numbers, made):
    client = compared(new_client(objective="utility"))
    if has_numbers:
        client.complete_trial(0, {"utility": 3.0})
    get_next_pair(client)
    name = type(made[-1].acqf).__name__
    assert (name == "qExpectedUtilityOfBestOption") is not has_numbers
    next_trial(client)
    assert type(made[-1].acqf).__name__ != "qExpectedUtilityOfBestOption"


def test_pairs_are_asked_by_the_acquisition_function_that_the_user_chose(made):
    client = new_client(objective="utility", acquisition=qUpperConfidenceBound, acquisition_options={"beta": 4.0})
    get_next_pair(compared(client))
    assert type(made[-1].acqf) is qUpperConfidenceBound


def compared(client):
    """Three trials, of which nothing but an order is known."""
    with_trials(client, [0.0, 0.2, 0.4])
    attach_comparison(client, 0, 1)
    attach_comparison(client, 1, 2)
    return client


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


def with_two_objectives(constraints=None):
    """Trials close together in a corner, of which the front is a small piece; elsewhere nothing is known."""
    client = new_client(objective="-a, -b", constraints=constraints)
    for index, x in enumerate([0.0, 0.05, 0.1]):
        client.attach_trial({"x": x})
        client.complete_trial(index, {"a": math.cos(3 * x), "b": x})
    return client


def test_reference_point_is_beyond_a_front_whose_points_lie_close_together(made):
    next_trial(with_two_objectives())
    worst = torch.tensor([-1.0, -0.1], dtype=torch.float64)  # of observed outcomes, as objectives to be maximised
    thresholds = made[-1].objective_thresholds
    assert thresholds[1] < worst[1] - 0.1 * 0.1  # Ax stops at a tenth of the front's range


def test_thresholds_that_the_user_sets_are_kept(made):
    next_trial(with_two_objectives(["a <= 0.9", "b <= 0.7"]))
    assert made[-1].objective_thresholds.tolist() == pytest.approx([-0.9, -0.7])


def test_a_missing_threshold_is_filled_in(made):
    next_trial(with_two_objectives(["b <= 0.7"]))
    filled, given = made[-1].objective_thresholds.tolist()
    assert given == pytest.approx(-0.7)
    assert math.isfinite(filled)

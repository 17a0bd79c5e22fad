"""The penalised bound for safe optimisation."""

import warnings

import pytest
import torch
from acquisition_checks import BOUNDS, points
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.means import ConstantMean
from gradients import assert_gradient
from validity_cases import POINTS, VALUES, WORKED, make_model, mixed_model

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity, QuantileBound
from botorch_skewgp.exceptions import OneClassWarning
from botorch_skewgp.likelihoods import NumericLikelihood, ValidityLikelihood
from botorch_skewgp.observations import Numeric, Validity
from botorch_skewgp.papers.safety import PenalizedUpperConfidenceBound

pytestmark = pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick


@pytest.fixture(scope="module")
def mixed() -> SkewGP:
    return mixed_model()


def test_penalty_spelled_out(mixed, generator):
    X = points(generator, 30)
    acquisition = PenalizedUpperConfidenceBound(mixed, level=0.9, penalty=7.0, probability=0.8)
    probability = LogProbabilityOfValidity(mixed)(X).exp()
    assert probability.min() < 0.9 < probability.max()
    expected = QuantileBound(mixed, 0.8)(X) - 7 * torch.relu(0.9 - probability) ** 2
    torch.testing.assert_close(acquisition(X), expected)
    for i in range(3):
        torch.testing.assert_close(acquisition(X[i]), expected[i : i + 1])
    assert_gradient(acquisition, points(generator, 4))


def test_penalty_keeps_the_optimum_valid():
    likelihood = ValidityLikelihood(threshold=0.5, noise=0.1)
    validity = make_model(Validity(WORKED), likelihood=likelihood, mean_module=ConstantMean())
    objective = make_model(Numeric(VALUES), likelihood=NumericLikelihood(noise=0.01))
    free, _ = optimize_acqf(QuantileBound(objective), BOUNDS, q=1, num_restarts=2, raw_samples=32)
    acquisition = PenalizedUpperConfidenceBound(objective, validity, level=0.8, penalty=30.0)
    kept, _ = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=4, raw_samples=64)
    probability = LogProbabilityOfValidity(validity)(torch.stack([free, kept])).exp()
    assert probability[0] < 0.3 < 0.75 < probability[1]


def test_penalty_is_checked(mixed):
    for options in ({"level": 1.0}, {"probability": 0.0}):
        with pytest.raises(InputDataError, match="strictly between"):
            PenalizedUpperConfidenceBound(mixed, **options)
    with pytest.raises(InputDataError, match="penalty must be a finite number of at least 0"):
        PenalizedUpperConfidenceBound(mixed, penalty=-1.0)
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        PenalizedUpperConfidenceBound(SingleTaskGP(POINTS, VALUES.unsqueeze(-1)))


def test_labels_of_one_class_are_told():
    model = make_model(Validity([True] * 5))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PenalizedUpperConfidenceBound(model)
    assert [entry.category for entry in caught].count(OneClassWarning) == 1

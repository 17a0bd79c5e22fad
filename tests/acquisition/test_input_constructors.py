"""Every acquisition function that Ax can name by class is made from what a host has, and evaluates."""

import inspect

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.utils.datasets import SupervisedDataset

from botorch_skewgp import SkewGP, acquisition
from botorch_skewgp.acquisition.dueling import DuelingAcquisitionFunction
from botorch_skewgp.observations import Numeric, Preference, Validity
from botorch_skewgp.papers import dueling, safety
from botorch_skewgp.truncated.draws import DrawSettings

NOT_BY_NAME = {"ValidityWeightedAcquisitionFunction", "qExpectedUtilityAfterAnswers"}  # made around another, or pairs
CLASSES = [
    entry
    for name in acquisition.__all__
    if inspect.isclass(entry := getattr(acquisition, name))
    and issubclass(entry, AcquisitionFunction)
    and name not in NOT_BY_NAME
]
CLASSES += [
    dueling.DuelingThompsonSampling,
    dueling.DuelingUpperCredibleBound,
    dueling.ExpectedImprovementInformationGain,
    safety.PenalizedUpperConfidenceBound,
]
PAIRS = (acquisition.SkewBayesianActiveLearningByDisagreement,)


@pytest.fixture(scope="module")
def X():
    return torch.tensor([[0.1, 0.3], [0.4, 0.9], [0.7, 0.2], [0.9, 0.6]]).double()


@pytest.fixture(scope="module")
def models(X):
    settings = DrawSettings(num_draws=64)
    duels = SkewGP(X, Preference([[0, 1], [2, 1], [2, 3]]), draw_settings=settings)
    numbers = SkewGP(X, [Numeric([0.1, 0.5, -0.3, 0.9]), Validity([1, 1, 0, 1])], draw_settings=settings)
    return duels, numbers


@pytest.mark.parametrize("acqf_class", CLASSES, ids=lambda entry: entry.__name__)
def test_made_by_name(acqf_class, models, X):
    duels, numbers = models
    model = duels if acqf_class in PAIRS or issubclass(acqf_class, DuelingAcquisitionFunction) else numbers
    data = SupervisedDataset(
        X, torch.tensor([[0.1], [0.5], [-0.3], [0.9]]).double(), feature_names=["a", "b"], outcome_names=["y"]
    )
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    given = {"training_data": data, "bounds": bounds, "X_baseline": X}  # what Ax always has
    inputs = get_acqf_input_constructor(acqf_class)(model=model, **given)
    function = acqf_class(**inputs)
    value = function(torch.rand(3, 2 if acqf_class in PAIRS else 1, 2).double())
    assert value.shape == (3,)
    assert value.isfinite().all()


def test_what_is_challenged_is_the_best_point(models, X):
    duels, _ = models
    inputs = get_acqf_input_constructor(dueling.DuelingUpperCredibleBound)(model=duels, probability=0.5)
    assert torch.equal(inputs["X_reference"], X[duels.posterior(X).mean.argmax()])
    assert dueling.DuelingUpperCredibleBound(**inputs).probability == 0.5
    given = get_acqf_input_constructor(dueling.DuelingThompsonSampling)(model=duels, X_reference=X[1])
    assert torch.equal(given["X_reference"], X[1])


def test_options_reach_the_function(models):
    duels, numbers = models
    inputs = get_acqf_input_constructor(acquisition.QuantileBound)(model=numbers, probability=0.8)
    assert inputs["probability"] == 0.8
    inputs = get_acqf_input_constructor(acquisition.SkewBayesianActiveLearningByDisagreement)(
        model=duels, kind=Preference
    )
    assert inputs["kind"] is Preference
    inputs = get_acqf_input_constructor(acquisition.PredictiveInformation)(model=duels)  # without bounds
    assert torch.equal(inputs["X_reference"], duels.datapoints.view(2, 2, 2))

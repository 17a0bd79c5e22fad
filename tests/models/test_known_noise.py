"""Numbers with known noise variances: what new numbers are expected to have, where all have one."""

from collections.abc import Mapping

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.sampling import SobolQMCNormalSampler
from torch.testing import assert_close

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_question
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood
from botorch_skewgp.models import MomentMatchedModel
from botorch_skewgp.observations import Censored, Numeric, Preference

X = torch.rand(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
NEW = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
VALUES = 5 * torch.sin(3 * X).sum(-1)
VARIANCES = torch.linspace(0.01, 0.2, 8, dtype=torch.float64)
DUELS = Preference([[0, 1], [2, 3]])
SAMPLER = SobolQMCNormalSampler(torch.Size([4]), seed=0)
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def _model(*observations, likelihood=None):
    return SkewGP(X, observations, likelihood, outcome_transform=Standardize(m=1)).eval()


def _added(model):
    return model.posterior(NEW, observation_noise=True).variance - model.posterior(NEW).variance


@pytest.mark.parametrize(
    "further", [(), (DUELS,), (Censored([5.0], [torch.inf], index=[0]),)], ids=["", "duels", "censored"]
)
def test_new_numbers_have_the_mean_of_known_variances_as_in_botorch(further):
    theirs = SingleTaskGP(X, VALUES.unsqueeze(-1), VARIANCES.unsqueeze(-1)).eval()
    model = _model(Numeric(VALUES, noise=VARIANCES), *further)
    predicted = model.predictive(NEW)
    predicted = predicted[Numeric] if isinstance(predicted, Mapping) else predicted
    assert_close(_added(model), _added(theirs))
    assert_close(predicted.variance, model.posterior(NEW, observation_noise=True).variance)


def test_numbers_of_several_observations_count_alike():
    first, others = Numeric(VALUES[:2], noise=1.0), Numeric(VALUES[2:], noise=2.0, index=range(2, 8))
    model = _model(first, others, Numeric([], 0.1, []))
    assert_close(_added(model), torch.full((3, 1), 1.75, dtype=torch.float64))


def test_one_number_without_a_variance_leaves_it_to_the_likelihood():
    model = _model(Numeric(VALUES[:7], noise=1.0), Numeric(VALUES[7:], index=[7]))
    assert_close(_added(model), model.likelihood.noise.expand(3, 1) * model.outcome_scale.scale**2)


NUMBERS = VALUES[:3].unsqueeze(-1)
STEPS = {
    "fantasies": lambda model, **noise: model.fantasize(NEW, SAMPLER, *(n[:1] for n in noise.values())),
    "a tensor": lambda model, **noise: model.condition_on_observations(NEW, NUMBERS, **noise),
    "moments": lambda model, **noise: MomentMatchedModel(model).condition_on_observations(NEW, NUMBERS, **noise),
}


@pytest.mark.parametrize(
    ("name", "noise"), [("fantasies", 0.0), ("fantasies", 0.3), ("a tensor", 0.3), ("moments", 0.3)]
)
def test_further_numbers_have_the_known_variance(name, noise):
    model = _model(Numeric(VALUES, noise=noise), DUELS)
    ours, told = STEPS[name](model), STEPS[name](model, noise=torch.full_like(NUMBERS, noise))
    assert_close(ours.posterior(X).mean, told.posterior(X).mean)
    assert_close(ours.posterior(X).variance, told.posterior(X).variance)
    if name == "a tensor":
        assert_close(_added(ours), torch.full((3, 1), noise, dtype=torch.float64))


def test_questions_look_ahead_to_numbers_with_the_known_variance():
    judgements = PreferenceLikelihood(noise=0.1)
    known = _model(Numeric(VALUES, noise=1e-3), DUELS, likelihood=MixedLikelihood(NumericLikelihood(), judgements))
    noise = 1e-3 / known.outcome_scale.scale**2
    told = MixedLikelihood(NumericLikelihood(noise=noise, learn_noise=False), judgements)
    ours = next_question(known, BOUNDS, [Numeric, Preference], [3.0, 1.0])
    theirs = next_question(_model(Numeric(VALUES), DUELS, likelihood=told), BOUNDS, [Numeric, Preference], [3.0, 1.0])
    assert ours.question == theirs.question
    assert ours.value == pytest.approx(theirs.value, rel=1e-6)

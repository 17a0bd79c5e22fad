"""The Gaussian model of the same moments: against draws of the skewed posterior, and what it takes and refuses."""

import itertools
import math
import re
from copy import deepcopy

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.model import ModelList
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.posteriors import GPyTorchPosterior
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood, ProbitLikelihood
from botorch_skewgp.models import MomentMatchedModel
from botorch_skewgp.observations import Binary, LabelPreference, Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.rounding

DOUBLE = torch.float64
LIMIT = 4.5  # Monte Carlo standard errors
DRAWS = DrawSettings(num_draws=64)
WEIGHTS = torch.tensor([0.5, -1.0, 2.0], dtype=DOUBLE)


def points(n, seed):
    return torch.rand(n, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


TRAIN_X, TEST_X = points(6, 0), points(3, 1)
VALUES = torch.tensor([0.3, -0.8, 1.4, 0.1, -1.2, 0.7], dtype=DOUBLE)


def skewed(observations, likelihood, **kwargs):
    """A model whose posterior is far from Gaussian: labels and comparisons have little noise."""
    covar_module = rbf_kernel(2.0, 0.5)
    return SkewGP(TRAIN_X, observations, likelihood, covar_module, draw_settings=DRAWS, **kwargs).eval()


def preference(**kwargs):
    return skewed(Preference([[0, 1], [0, 2], [3, 4], [5, 4]]), PreferenceLikelihood(0.02), **kwargs)


def labels():
    pairs = torch.tensor([[0, 1], [1, 2], [0, 2], [2, 1], [2, 0], [0, 1]])
    return SkewGP(TRAIN_X, LabelPreference(pairs, num_labels=3), draw_settings=DRAWS).eval()


def numbers():
    return SkewGP(TRAIN_X, Numeric(VALUES), outcome_transform=Standardize(m=1)).eval()


def several():
    """A skewed model, one of numbers and one of BoTorch's."""
    return ModelList(preference(), numbers(), SingleTaskGP(TRAIN_X, VALUES.unsqueeze(-1)).eval())


MODELS = {
    "preference": preference,
    "binary": lambda: skewed(Binary([1, 0, 1, 1, 0, 1]), ProbitLikelihood(0.02)),
    "standardised numbers and a duel": lambda: skewed(
        [Numeric(5 + 10 * VALUES[:2], index=[0, 1]), Preference([[2, 3]])],
        MixedLikelihood(NumericLikelihood(0.1), PreferenceLikelihood(0.02)),
        outcome_transform=Standardize(m=1),
    ),
    "labels": labels,
    "list": several,
}


def stacked(values):
    """Values `... x q x m` as vectors, one output after the other."""
    return values.mT.flatten(-2)


def covariance_of(posterior):
    """The joint covariance, one output after the other."""
    reference = posterior.distribution
    assert not isinstance(reference, MultitaskMultivariateNormal) or not reference._interleaved
    return reference.covariance_matrix


# Moments


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_moments_are_those_of_draws_of_the_skewed_posterior(name):
    model = MODELS[name]()
    posterior = MomentMatchedModel(model).posterior(TEST_X)
    assert isinstance(posterior, GPyTorchPosterior)
    n = 200_000
    draws = stacked(model.posterior(TEST_X).rsample(torch.Size([n])))
    deviation = draws - draws.mean(0)
    error = draws.std(0) / math.sqrt(n)
    assert ((draws.mean(0) - stacked(posterior.mean)).abs() < LIMIT * error).all()
    products = deviation.unsqueeze(-1) * deviation.unsqueeze(-2)
    error = products.std(0) / math.sqrt(n)
    assert ((products.mean(0) - covariance_of(posterior)).abs() < LIMIT * error).all()
    assert torch.allclose(stacked(posterior.variance), covariance_of(posterior).diagonal(), rtol=1e-6)


@pytest.mark.parametrize("name", ["preference", "labels", "list"])
def test_batches_equal_their_members_and_have_gradients(name):
    model = MomentMatchedModel(MODELS[name]())

    def moments(X):
        posterior = model.posterior(X)
        return posterior.mean, covariance_of(posterior)

    X = torch.stack([TEST_X, TRAIN_X[:3], 0.5 * TEST_X])
    for together, *alone in zip(moments(X), *map(moments, X), strict=True):
        assert torch.allclose(together, torch.stack(alone))
    assert torch.autograd.gradcheck(moments, (TEST_X[:2].clone().requires_grad_(),), eps=1e-6, atol=1e-6, rtol=1e-4)


def test_noise_is_added_on_the_diagonal():
    model = preference()
    matched = MomentMatchedModel(model)
    without = matched.posterior(TEST_X)
    noise = torch.tensor([[0.1], [0.2], [0.3]], dtype=DOUBLE)
    for given, expected in ((noise, noise.squeeze(-1)), (True, model.likelihood.latent_noise(TEST_X).expand(3))):
        found = matched.posterior(TEST_X, observation_noise=given)
        assert torch.allclose(found.mean, without.mean)
        assert torch.allclose(covariance_of(found) - covariance_of(without), expected.diag())


# Transforms and outputs


@torch.no_grad()
@pytest.mark.parametrize("name", ["labels", "list"])
def test_scalarised_posterior(name):
    """Against the weights applied by hand to mean and covariance."""
    model = MomentMatchedModel(MODELS[name]())
    plain = model.posterior(TEST_X)
    found = model.posterior(TEST_X, posterior_transform=ScalarizedPosteriorTransform(WEIGHTS, offset=0.4))
    over_points = torch.kron(WEIGHTS, torch.eye(3, dtype=DOUBLE))
    assert isinstance(found.distribution, MultivariateNormal)
    assert torch.allclose(found.mean, 0.4 + plain.mean @ WEIGHTS.unsqueeze(-1))
    assert torch.allclose(found.distribution.covariance_matrix, over_points @ covariance_of(plain) @ over_points.T)


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "outputs"), [*itertools.product(["labels", "list"], [[1], [2, 0], [0, 1, 2]]), ("labels", [-1])]
)
def test_outputs_are_those_of_the_whole(name, outputs):
    model = MomentMatchedModel(MODELS[name]())
    plain, found = model.posterior(TEST_X), [model.posterior(TEST_X, output_indices=outputs)]
    if name == "list":
        found.append(model.subset_output(outputs).posterior(TEST_X))
    index = torch.cat([3 * (i % 3) + torch.arange(3) for i in outputs])
    for posterior in found:
        assert torch.allclose(posterior.mean, plain.mean[..., outputs])
        assert torch.allclose(covariance_of(posterior), covariance_of(plain)[index][:, index])


# More data


@torch.no_grad()
@pytest.mark.parametrize("name", ["preference", "standardised numbers and a duel"])
def test_numbers_are_noisy_readings_of_the_latent_function(name):
    """With the likelihood's noise of it, in squared units of the outcome."""
    model = MODELS[name]()
    X, Y = TEST_X[:1].unsqueeze(0), torch.tensor([[[0.8]]], dtype=DOUBLE)
    found = MomentMatchedModel(model).condition_on_observations(X, Y).posterior(TEST_X)
    noise = model.likelihood.latent_noise(X) * model.outcome_scale.scale**2
    expected = model.condition_on_observations(X, Y, noise=noise.expand_as(Y)).posterior(TEST_X)
    assert torch.allclose(found.mean, expected.mean)
    assert torch.allclose(covariance_of(found), expected.covariance_matrix)


@torch.no_grad()
def test_conditioning_and_fantasies_are_those_of_the_skewed_model():
    model = preference()
    steps = (
        lambda model: model.condition_on_observations(TEST_X, torch.tensor([[0, 1]])),
        lambda model: model.condition_on_observations(TEST_X, [Preference([[0, 1]]), Preference([[2, 1]])]),
        lambda model: model.fantasize(TEST_X, SobolQMCNormalSampler(torch.Size([4]), seed=0)),
    )
    for step in steps:
        found, expected = step(MomentMatchedModel(model)), step(model)
        assert isinstance(found, MomentMatchedModel)
        assert found.batch_shape == expected.batch_shape
        assert torch.allclose(found.posterior(TRAIN_X).mean, expected.posterior(TRAIN_X).mean)
        assert torch.allclose(covariance_of(found.posterior(TRAIN_X)), expected.posterior(TRAIN_X).covariance_matrix)


@torch.no_grad()
def test_lists_are_conditioned_column_by_column():
    model = several()
    model.posterior(TEST_X)  # GPyTorch conditions models that have predicted
    X, Y = TEST_X.unsqueeze(0), torch.tensor([[[0.3, 1.0, -1.0], [0.1, 0.2, 0.4], [-0.2, 0.5, 0.0]]], dtype=DOUBLE)
    found = MomentMatchedModel(model).condition_on_observations(X, Y).posterior(TRAIN_X)
    for i, entry in enumerate(model.models):
        expected = MomentMatchedModel(entry).condition_on_observations(X, Y[..., i : i + 1]).posterior(TRAIN_X)
        assert torch.allclose(found.mean[..., i : i + 1], expected.mean)


# As a model


def test_training_points_are_those_before_the_input_transform():
    X = 10 * TRAIN_X
    transform = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [10.0, 10.0]], dtype=DOUBLE))
    skewed = SkewGP(X, Preference([[0, 1], [3, 4]]), draw_settings=DRAWS, input_transform=transform).eval()
    other = SingleTaskGP(X, VALUES.unsqueeze(-1), input_transform=deepcopy(transform)).eval()
    assert torch.equal(MomentMatchedModel(skewed).train_inputs[0], X)
    both = MomentMatchedModel(ModelList(skewed, other)).train_inputs[0]
    assert torch.equal(both, torch.cat([X, X]).expand(2, 12, 2))
    with torch.no_grad():
        reference = MomentMatchedModel(skewed)(X)
        assert torch.allclose(reference.mean, skewed.posterior(X).mean.squeeze(-1))


# What is refused


def test_refusals():
    with pytest.raises(UnsupportedError, match="must have one output"):
        MomentMatchedModel(ModelList(labels(), preference()))
    with pytest.raises(UnsupportedError, match="cannot be matched by a Gaussian"):
        MomentMatchedModel(GenericDeterministicModel(lambda X: X[..., :1])).posterior(TEST_X)
    with pytest.raises(UnsupportedError, match="A list of models takes a tensor"):
        MomentMatchedModel(several()).condition_on_observations(TEST_X, Preference([[0, 1]]))
    with pytest.raises(UnsupportedError, match="no single noise level"):
        MomentMatchedModel(labels()).posterior(TEST_X, observation_noise=True)
    for outputs in ([3], [0, 3], []):
        with pytest.raises(UnsupportedError, match=rf"must name outputs 0 to 2; got {re.escape(str(outputs))}"):
            MomentMatchedModel(labels()).posterior(TEST_X, output_indices=outputs)
    with pytest.raises(UnsupportedError, match="has 3 output"):
        MomentMatchedModel(labels()).subset_output([1])

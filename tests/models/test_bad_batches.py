"""What is given to models and posteriors once they are made: batches, noise, weights, points; refused in words."""

import math

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import AppendFeatures, Log10

from botorch_skewgp import SkewGP
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings

DOUBLE = torch.float64
X = torch.rand(6, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
BATCH = X[:3].unsqueeze(-2)  # 3 x 1 x 2
PAIRS = X.view(3, 2, 2)


def model_of():
    observations = [Preference([[0, 1], [2, 3]]), Numeric([0.1, 0.5], index=[0, 3])]
    return SkewGP(X, observations, draw_settings=DrawSettings(num_draws=64)).eval()


@pytest.fixture(scope="module")
def model():
    return model_of()


def numbers(value=0.0, shape=(3, 1, 1)):
    return torch.full(shape, value, dtype=DOUBLE)


def duels(*pair):
    return torch.tensor([[list(pair)]] * 3)


BATCHES = {
    "NaN": (BATCH, numbers(math.nan), None, "Y contains NaN or infinite"),
    "infinite": (BATCH, numbers(math.inf), None, "Y contains NaN or infinite"),
    "too few numbers": (
        PAIRS,
        numbers(),
        None,
        r"Y must hold a number for each of the 2 points.*got shape \(3, 1, 1\)",
    ),
    "two outcomes": (BATCH, numbers(shape=(3, 1, 2)), None, r"Y must hold a number for each of the 1 points"),
    "negative noise": (BATCH, numbers(), numbers(-1.0), "noise must hold finite non-negative variances"),
    "noise of NaN": (BATCH, numbers(), numbers(math.nan), "noise must hold finite non-negative variances"),
    "noise of another shape": (BATCH, numbers(), numbers(1.0, (5, 1, 1)), r"of the shape of Y, \(3, 1, 1\); got"),
    "a flag": (BATCH, numbers().bool(), None, r"winner first; got shape \(3, 1, 1\), torch\.bool"),
    "a third point": (PAIRS, duels(0, 2), None, "pairs of different rows of X, from 0 to 1"),
    "a negative index": (PAIRS, duels(0, -1), None, "pairs of different rows of X"),
    "a duel with itself": (PAIRS, duels(1, 1), None, "pairs of different rows of X"),
    "three of a duel": (PAIRS, duels(0, 1, 1), None, r"m x 2 integers, winner first; got shape \(3, 1, 3\)"),
    "points of NaN": (BATCH * math.nan, numbers(), None, r"NaN or infinite.*rows \["),
}


@pytest.mark.parametrize("name", BATCHES)
def test_bad_batches_are_refused_in_words(name, model):
    points, Y, noise, message = BATCHES[name]
    before = model.posterior(X).mean
    with pytest.raises(InputDataError, match=message):
        model.condition_on_observations(points, Y, noise=noise)
    assert torch.equal(model.posterior(X).mean, before)


@torch.no_grad()
def test_noise_of_a_batch_is_broadcast(model):
    full = model.condition_on_observations(BATCH, numbers(), noise=numbers(0.3)).posterior(X).mean
    short = model.condition_on_observations(BATCH, numbers(), noise=torch.tensor([0.3], dtype=DOUBLE)).posterior(X).mean
    assert torch.equal(full, short)


ASKED = {
    "negative noise": (
        lambda model: model.posterior(X, observation_noise=torch.tensor(-1.0)),
        InputDataError,
        "noise must hold finite variances",
    ),
    "noise of NaN": (
        lambda model: model.posterior(X).add_noise(torch.tensor(math.nan)),
        InputDataError,
        "noise must hold finite variances",
    ),
    "a map of other values": (
        lambda model: model.posterior(X).affine(torch.ones(1, 2)),
        BotorchTensorDimensionError,
        r"weight must be e' x 6; got shape \(1, 2\)",
    ),
    "no points to draw at": (
        lambda model: model.condition_on_draws(X[:0]),
        InputDataError,
        "X must hold at least one point",
    ),
    "no draws": (
        lambda model: model.condition_on_draws(X, samples_per_draw=0),
        InputDataError,
        "samples_per_draw must be an integer of at least 1; got 0",
    ),
    "data of other columns": (
        lambda model: model.set_train_data(X[:, :1], Preference([[0, 1]]), strict=False),
        InputDataError,
        "must have 2 columns like the old ones; got 1",
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_cannot_be_asked_is_refused_in_words(name, model):
    ask, error, message = ASKED[name]
    before = model.posterior(X).mean
    with pytest.raises(error, match=message):
        ask(model)
    assert torch.equal(model.posterior(X).mean, before)


def test_points_that_a_transform_makes_NaN_are_refused():
    model = SkewGP(-X, Preference([[0, 1]]), input_transform=Log10(indices=[0]))
    with pytest.raises(InputDataError, match="train_X, after input transforms, contains NaN"):
        model.posterior(X)


def test_columns_that_a_transform_appends_are_left_out_of_queries():
    model = SkewGP(X, Preference([[0, 1]]), input_transform=AppendFeatures(torch.ones(1, 1, dtype=DOUBLE)))
    with pytest.raises(BotorchTensorDimensionError, match="must have 1 columns like train_X, without the 1 that"):
        model.posterior(X)


def test_base_samples_of_another_dtype_are_taken(model):
    posterior, normal = model.posterior(X[:2]), torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    samples = posterior.rsample_from_base_samples(torch.Size([4]), normal)
    assert torch.equal(samples, posterior.rsample_from_base_samples(torch.Size([4]), normal.double()))


@torch.no_grad()
def test_a_model_without_points_is_the_prior():
    model = SkewGP(X[:0], [])
    posterior = model.posterior(X)
    assert (posterior.mean == 0).all()
    model.train()
    torch.testing.assert_close(posterior.covariance_matrix, model.covar_module(X).to_dense())
    assert float(model.log_marginal_likelihood().value) == 0.0


def test_an_ensemble_is_of_models_of_the_same_data(model):
    with pytest.raises(InputDataError, match=r"list of SkewGP models; write \[model\]"):
        FullyBayesianSkewGP(model)
    with pytest.raises(InputDataError, match="number 1 is a SingleTaskGP"):
        FullyBayesianSkewGP([model, SingleTaskGP(X, X[:, :1])])
    for points in (X[:5], X.flip(0), X[:, :1]):
        with pytest.raises(InputDataError, match="must have the same data; number 1"):
            FullyBayesianSkewGP([model, SkewGP(points, Preference([[0, 1], [2, 3]]))])

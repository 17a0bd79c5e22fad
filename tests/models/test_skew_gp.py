"""The model's contract with BoTorch: data, caches, copies, transforms, fitting, bad input."""

import math

import gpytorch
import pytest
import torch
from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import Normalize
from gradients import evaluate

from benchmarks._observations import constant_mean, duel, random_pairs, rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood, SlopeLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Censored, Numeric, Preference, Slope
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.draws import DrawSettings

PAIRS = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [1, 2]])
SMALL = DrawSettings(num_draws=256)


def points(n, generator, d=2):
    return torch.rand(n, d, dtype=torch.float64, generator=generator)


def small_model(X, observations=None, **kwargs):
    return SkewGP(X, Preference(PAIRS) if observations is None else observations, draw_settings=SMALL, **kwargs)


def agree(a, b):
    """The same posterior, to the last digits."""
    return torch.allclose(a.mean, b.mean, rtol=1e-9, atol=1e-11) and torch.allclose(a.variance, b.variance, rtol=1e-9)


def duels(num_duels, num_points, d, generator):
    """Random duels, decided by a smooth utility and noise."""
    X = points(num_points, generator, d)
    utility = 2 * torch.sin(6 * X[:, 0]) + X.sum(-1)
    return X, duel(utility, random_pairs(num_points, num_duels, generator), 1.0, generator)


# Draws at the size that the defaults are made for


@pytest.mark.parametrize("num_points", [100, 400])
def test_two_hundred_duels_are_drawn_well(num_points, generator):
    """Default settings; with 400 points in distinct duels and with 100 points in several each."""
    X, pairs = duels(200, num_points, 6, generator)
    if num_points == 400:
        pairs = torch.randperm(400, generator=generator).view(200, 2)
    draws = SkewGP(X, Preference(pairs)).draws
    assert draws.num_draws == 2048
    assert draws.effective_size.min() >= 1024
    assert draws.r_hat.max() < 1.01
    assert (draws.rows > 0).all()


# Without data it is the prior


@pytest.mark.parametrize("observations", [None, [], (), Preference(torch.zeros(0, 2, dtype=torch.long))])
def test_no_observations_give_exactly_the_prior(observations, generator):
    X, test_X = points(4, generator), points(3, generator)
    model = SkewGP(X, observations, mean_module=constant_mean(0.7))
    posterior = model.posterior(test_X)
    K = model.covar_module(test_X).to_dense()
    assert torch.equal(posterior.mean, torch.full((3, 1), 0.7, dtype=torch.float64))
    torch.testing.assert_close(posterior.variance.squeeze(-1), K.diagonal(), rtol=1e-14, atol=0)
    torch.testing.assert_close(posterior.covariance_matrix, K, rtol=1e-13, atol=0)
    assert (posterior.skewness == 0).all()
    assert posterior.rsample(torch.Size([5])).shape == (5, 3, 1)
    for method in ("exact", "ep"):
        assert float(model.log_marginal_likelihood(method).value) == 0


def test_duel_of_two_equal_points_is_no_reason_for_a_warning(generator):
    """Its row has no variance besides its noise: nothing mixes badly, and the run is not made longer."""
    X = points(8, generator)
    model = SkewGP(torch.cat([X, X[:1]]), Preference(torch.tensor([[0, 8], [1, 2], [8, 0]])))
    assert model.draws.thinning == 1


# Copies and state


def test_a_state_dict_is_of_no_size_of_data(generator):
    state = small_model(points(8, generator)).state_dict()
    assert all(value.numel() < 8 for value in state.values())
    SkewGP(points(3, generator), Preference(PAIRS[:1])).load_state_dict(state)


def test_train_and_eval_flip_input_transforms(generator):
    X, test_X = 10 * points(8, generator) - 3, 10 * points(3, generator) - 3
    model = small_model(X, input_transform=Normalize(2))
    before = model.eval().posterior(test_X)
    assert model.train_inputs[0].amin() == 0
    for _ in range(2):
        model.train()
        assert torch.equal(model.train_inputs[0], X)
        model.eval()
        assert torch.allclose(model.train_inputs[0].amax(0), torch.ones(2, dtype=torch.float64))
    assert agree(before, model.posterior(test_X))
    assert torch.equal(model.datapoints, X)
    assert model.dim == 2
    by_hand = small_model((X - X.amin(0)) / (X.amax(0) - X.amin(0)))
    assert agree(before, by_hand.posterior((test_X - X.amin(0)) / (X.amax(0) - X.amin(0))))


# Precision and device


def test_priors_are_sampled_where_their_model_is(generator):
    """Log-normal ones too, whose samples are from a distribution that is no module."""
    model = SkewGP(points(8, generator), Preference(PAIRS)).double()
    for dtype in (torch.float64, torch.float32, torch.float64):
        model = model.to(dtype)
        priors = [prior for _, _, prior, _, _ in model.named_priors()]
        assert len(priors) > 1
        assert all(prior.sample().dtype == dtype for prior in priors)


# Posteriors


@pytest.mark.parametrize("pairs", [[[0, 1], [1, 0], [0, 1]], [[0, 1], [0, 1], [1, 0], [0, 1], [1, 0]]])
@pytest.mark.parametrize("noise", [1e-4, 1e-8, 1e-10, 1e-13])
def test_duels_of_equal_points_are_thrown_dice_whatever_the_noise(noise, pairs):
    likelihood = PreferenceLikelihood(noise=noise, noise_constraint=gpytorch.constraints.Positive())
    model = small_model(torch.full((2, 1), 0.3, dtype=torch.float64), Preference(pairs), likelihood=likelihood)
    for method in ("ep", corrected_log_normalizer, "exact"):
        value = float(model.log_marginal_likelihood(method).value)
        assert value == pytest.approx(-len(pairs) * math.log(2), abs=1e-9)
    assert model.posterior(torch.tensor([[0.3], [0.7]], dtype=torch.float64)).mean.abs().max() < 1e-6


def test_the_name_of_equal_points_does_not_matter(generator):
    """Slopes, labels and numbers at a point under two rows of `train_X`."""
    X = points(3, generator)
    doubled = torch.cat([X, X[1:2], X[:1]])
    posteriors = []
    for train_X, numbers, signs, labels in ((X, [0, 1], [1, 2], [0, 1]), (doubled, [4, 3], [3, 2], [4, 1])):
        data = [Numeric([0.3, -0.2], index=numbers), Slope(0, 1, index=signs), Binary([1, 0], index=labels)]
        posteriors.append(small_model(train_X, data).posterior(X))
    torch.testing.assert_close(posteriors[0].mean, posteriors[1].mean, atol=1e-7, rtol=0)
    torch.testing.assert_close(posteriors[0].variance, posteriors[1].variance, atol=1e-7, rtol=0)


def test_posterior_transforms_stay_skewed(generator):
    model, test_X = small_model(points(8, generator)), points(4, generator)
    plain = model.posterior(test_X)
    weights = torch.tensor([-2.0], dtype=torch.float64)
    scalarized = model.posterior(test_X, posterior_transform=ScalarizedPosteriorTransform(weights, offset=0.5))
    assert torch.allclose(scalarized.mean, 0.5 - 2 * plain.mean)
    assert torch.allclose(scalarized.skewness, -plain.skewness)
    mean = model.posterior(test_X, posterior_transform=ExpectationPosteriorTransform(n_w=2))
    A = torch.tensor([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], dtype=torch.float64)
    assert isinstance(mean, SkewGPPosterior)
    assert torch.allclose(mean.mean, A @ plain.mean)
    assert torch.allclose(mean.covariance_matrix, A @ plain.covariance_matrix @ A.mT)


# Data


def test_set_train_data(generator):
    X, other, test_X = points(8, generator), points(8, generator), points(3, generator)
    model = small_model(X)
    before = model.posterior(test_X)
    model.set_train_data(other)
    assert agree(model.posterior(test_X), small_model(other).posterior(test_X))
    model.set_train_data((X,), Preference(PAIRS[:2]))
    assert agree(model.posterior(test_X), small_model(X, Preference(PAIRS[:2])).posterior(test_X))
    model.set_train_data(targets=[Preference(PAIRS)])
    assert agree(model.posterior(test_X), before)


def test_set_train_data_refuses_other_shapes_unless_told(generator):
    X, test_X = points(8, generator), points(3, generator)
    model = small_model(X)
    before = model.posterior(test_X)
    for other in (points(9, generator), X.float()):
        with pytest.raises(RuntimeError, match="Pass strict=False to allow others"):
            model.set_train_data(other)
    larger = torch.cat([X, points(1, generator)])
    with pytest.raises(InputDataError, match="refers to row 7 of train_X, which has 3 rows only"):
        model.set_train_data(X[:3], strict=False)
    with pytest.raises(InputDataError, match="refers to row 8"):
        model.set_train_data(targets=Preference([[8, 0]]))
    with pytest.raises(InputDataError, match="contains NaN"):
        model.set_train_data(X * math.nan)
    assert torch.equal(model.datapoints, X)
    assert agree(model.posterior(test_X), before)  # nothing changed
    model.set_train_data(larger, strict=False)
    assert model.datapoints.shape == (9, 2)


def test_observations_of_a_kind_the_likelihood_does_not_take(generator):
    X = points(8, generator)
    model = small_model(X)
    before = model.posterior(X)
    with pytest.raises(InputDataError, match=r"PreferenceLikelihood takes .* got Binary"):
        model.set_train_data(targets=Binary([1, 0]))
    assert agree(model.posterior(X), before)


def test_pairs_in_a_tensor_are_more_duels_winner_first(generator):
    """Under an input transform, which new points are given before."""
    X, new_X, test_X = points(8, generator), points(2, generator), points(3, generator)
    settings = {"input_transform": Normalize(2, bounds=torch.tensor([[0.0, 0.0], [2.0, 2.0]])), "approximation": "ep"}
    model = small_model(X, **settings)
    more = model.condition_on_observations(new_X, torch.tensor([[0, 1], [0, 1]]))
    pairs = torch.cat([PAIRS, torch.tensor([[8, 9], [8, 9]])])
    assert torch.equal(more.datapoints, torch.cat([X, new_X]))
    assert agree(more.posterior(test_X), small_model(more.datapoints, Preference(pairs), **settings).posterior(test_X))


# Fitting


def test_fit_improves_and_repeats(generator):
    X, pairs = duels(40, 20, 2, generator)
    models, values = [], []
    for _ in range(2):
        model = small_model(X, Preference(pairs), input_transform=Normalize(2))
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        before = evaluate(mll.train()).item()
        fit_gpytorch_mll(mll)
        models.append(model)
        values.append((before, evaluate(mll.train()).item()))
    assert values[0] == values[1]
    assert values[0][1] > values[0][0] + 0.5
    for (name, a), b in zip(models[0].state_dict().items(), models[1].state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert torch.equal(models[0].posterior(X).mean, models[1].posterior(X).mean)


def test_draws_of_the_mixture_are_in_order_and_those_of_the_chains_are_not():
    """Neighbours among the mixture's components are closer than those among the chains' draws."""
    X = torch.rand(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    pairs = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [0, 7]])
    model = SkewGP(X, Preference(pairs), draw_settings=DrawSettings(num_draws=512)).eval()
    with torch.no_grad():
        ordered = model.posterior(X).component_means
        rows = model.row_model(model.forward(model.train_inputs[0]))
        as_drawn = rows.covariance @ rows.representer_mixture(model.draws).weights + rows.mean.unsqueeze(-1)
    assert torch.allclose(ordered.sort(-1).values, as_drawn.sort(-1).values)
    steps = [means.diff(dim=-1).norm(dim=-2).mean() for means in (ordered, as_drawn)]
    assert steps[0] < 0.7 * steps[1]


def test_slopes_that_contradict_each_other_are_refused_in_words():
    X = torch.tensor([[0.6], [0.6]], dtype=torch.float64)  # as two points, whose slopes are one
    model = SkewGP(X, Slope(dims=[0, 0], signs=[1, -1]))
    with pytest.raises(InputDataError, match=r"without noise .* cannot hold together"):
        model.posterior(X)


def model_of_numbers(X, observations):
    likelihood = MixedLikelihood(NumericLikelihood(noise=0.1), PreferenceLikelihood(noise=0.1), SlopeLikelihood())
    modules = {"covar_module": rbf_kernel(1.0, 0.5), "mean_module": constant_mean(0.0)}
    return small_model(X, observations, likelihood=likelihood, **modules)


@pytest.mark.parametrize("bound", [50.0, 1e4, 1e10])
def test_a_reading_in_a_far_tail_is_pressed_against_its_bound(bound, generator):
    X = points(2, generator)
    model = model_of_numbers(X, [Censored([bound], [math.inf], index=[0]), Preference([[0, 1]])])
    expected = bound / 1.1  # the row is at the bound, to within its variance over it
    assert float(model.posterior(X[:1]).mean) == pytest.approx(expected, rel=2 / bound**2 + 1e-6)


def test_large_numbers_beside_a_duel_before_a_fit(generator):
    X = points(3, generator)
    for winner in (0, 1):
        data = [Numeric([1000.0, -1000.0], index=[0, 1]), Preference([[winner, 1 - winner]])]
        mean = model_of_numbers(X, data).posterior(X).mean
        assert mean.isfinite().all()
        assert (mean[0] > mean[1]) == (winner == 0) or float(mean[0] - mean[1]) > -1e3


@pytest.mark.parametrize("width", [1e-2, 1e-5, 1e-9])
def test_a_narrow_interval_beside_a_row_without_noise_is_a_number(width, generator):
    X = points(3, generator)
    slope = Slope(0, 1, index=[0, 1])
    narrow = model_of_numbers(X, [Censored([0.3], [0.3 + width], index=[2]), slope])
    number = model_of_numbers(X, [Numeric([0.3 + width / 2], index=[2]), slope])
    a, b = narrow.posterior(X), number.posterior(X)
    error = 4.5 * math.sqrt(2 / float(number.draws.effective_size.min()))
    assert ((a.mean - b.mean).abs() < error * b.variance.sqrt()).all()
    log_density = number.log_marginal_likelihood("ep").value + math.log(width)
    assert float(narrow.log_marginal_likelihood("ep").value) == pytest.approx(float(log_density), abs=1e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_points_of_a_query_are_finite(value, generator):
    X = points(8, generator)
    model = small_model(X)
    with pytest.raises(InputDataError, match=r"X contains NaN or infinite values in rows \[0\]"):
        model.posterior(torch.full((1, 2), value, dtype=torch.float64))
    assert model.posterior(X).mean.isfinite().all()

"""The probability of being the best of some points: against the exact one of two and of three, and bad input."""

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import probability_of_best
from botorch_skewgp.acquisition.outlook import Belief
from botorch_skewgp.likelihoods import NumericLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.tensor([[0.1], [0.5], [0.9], [0.5]], dtype=torch.float64)


def kernel():
    covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    covar_module.base_kernel.initialize(lengthscale=torch.tensor(0.4, dtype=torch.float64))
    return covar_module


def duels():
    settings = DrawSettings(num_draws=512, seed=1)
    return SkewGP(X, Preference([[0, 1], [2, 1]]), covar_module=kernel(), draw_settings=settings).eval()


def test_two_points():
    model = duels()
    pair = X[:2]
    difference = model.latent_posterior(pair).affine(X.new_tensor([[1.0, -1.0]]))
    truth = float(difference.probability_above(0.0))
    found = probability_of_best(model, pair)
    assert float(found.sum()) == pytest.approx(1.0)
    assert float(found[0]) == pytest.approx(truth, abs=4.5 * (truth * (1 - truth) / 4096) ** 0.5)


def ordered():
    settings = DrawSettings(num_draws=4096, seed=3)
    return SkewGP(X[:3], Preference([[0, 1], [1, 2]]), covar_module=kernel(), draw_settings=settings).eval()


def test_some_of_the_draws_are_typical_of_all():
    model = ordered()
    posterior = model.latent_posterior(X[:2])
    belief = Belief.of(posterior, model.outcome_scale)
    assert belief.means.shape[-1] < posterior.component_means.shape[-1]
    deviation = X.new_tensor([1.0, -1.0]) @ posterior.gaussian_covariance @ X.new_tensor([1.0, -1.0])
    every, some = (
        torch.special.ndtr((means[0] - means[1]) / deviation.sqrt())
        for means in (posterior.component_means, belief.means)
    )
    assert float(some @ belief.weights[0]) == pytest.approx(float(every.mean()), abs=0.003)


def test_all_draws_of_the_model_count():
    model = ordered()
    model.covar_module.outputscale = 20.0
    difference = model.latent_posterior(X[:2]).affine(X.new_tensor([[1.0, -1.0]]))
    truth = float(difference.probability_above(0.0))
    num_samples = 2**17
    found = float(probability_of_best(model, X[:2], num_samples=num_samples)[0])
    assert found == pytest.approx(truth, abs=4.5 * (truth * (1 - truth) / num_samples) ** 0.5)


def test_three_points_of_a_gaussian():
    """An orthant of two differences: in closed form by their correlation, for means that are equal."""
    points = X[:3]
    likelihood = NumericLikelihood(noise=0.1, learn_noise=False)
    model = SkewGP(points, Numeric([0.0, 0.0, 0.0]), likelihood, kernel()).eval()
    C = model.posterior(points).covariance_matrix.detach()
    found = probability_of_best(model)
    for i, others in enumerate(([1, 2], [0, 2], [0, 1])):
        W = torch.zeros(2, 3, dtype=C.dtype)
        W[:, i] = 1
        W[0, others[0]] = W[1, others[1]] = -1
        D = W @ C @ W.mT
        truth = 0.25 + float(torch.asin(D[0, 1] / (D[0, 0] * D[1, 1]).sqrt())) / (2 * torch.pi)
        assert float(found[i]) == pytest.approx(truth, abs=4.5 * (truth * (1 - truth) / 4096) ** 0.5)


def test_equal_points_share():
    found = probability_of_best(duels())
    assert found.shape == (4,)
    assert found[1] == found[3]
    assert float(found.sum()) == pytest.approx(1.0)
    assert torch.equal(found, probability_of_best(duels()))
    assert not torch.equal(found, probability_of_best(duels(), seed=1))


def test_an_ensemble_is_the_average():
    model = duels()
    ensemble = FullyBayesianSkewGP([model, model])
    assert torch.allclose(probability_of_best(ensemble), probability_of_best(model), atol=0.05)


def test_bad_input():
    model = duels()
    for points in (X[:0], X.squeeze(-1), torch.tensor([[float("nan")]])):
        with pytest.raises(InputDataError, match="X_candidates must be finite"):
            probability_of_best(model, points)
    with pytest.raises(InputDataError, match="num_samples must be an integer of at least 1"):
        probability_of_best(model, num_samples=0)
    with pytest.raises(UnsupportedError, match="probability_of_best needs a SkewGP"):
        probability_of_best(SingleTaskGP(X, X))

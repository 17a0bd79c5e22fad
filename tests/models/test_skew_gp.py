"""The model's contract: caches, and degenerate data."""

import pytest
import torch

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.truncated.draws import DrawSettings

PAIRS = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [1, 2]])


def points(n, generator, d=2):
    return torch.rand(n, d, dtype=torch.float64, generator=generator)


def test_setting_a_hyperparameter_in_evaluation_mode_renews_the_draws(generator):
    """GPyTorch writes through `.data`, which leaves a tensor's version as it was."""
    X, test_X = points(8, generator), points(3, generator)
    model = SkewGP(X, Preference(PAIRS))
    model.posterior(test_X)
    model.covar_module.base_kernel.lengthscale = 0.1
    model.covar_module.outputscale = 3.0
    fresh = SkewGP(X, Preference(PAIRS))
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(model.posterior(test_X).mean, fresh.posterior(test_X).mean)


def test_new_draw_settings_renew_the_draws(generator):
    X = points(8, generator)
    model = SkewGP(X, Preference(PAIRS))
    assert model.draws.num_draws == 1024
    model.draw_settings = DrawSettings(num_draws=512)
    assert model.draws.num_draws == 512


def test_objective_has_a_finite_gradient_in_learned_noise(generator):
    model = SkewGP(points(8, generator), Preference(PAIRS), likelihood=PreferenceLikelihood(learn_noise=True))
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    mll.train()
    mll(model(*model.train_inputs), model.train_targets).backward()
    assert model.likelihood.raw_noise.grad.isfinite().all()
    assert (model.likelihood.raw_noise.grad != 0).all()


# two equal points: their covariance is singular, and linear_operator says so
@pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning")
def test_duel_of_two_equal_points_is_no_reason_for_a_warning(generator):
    """Its row has no variance besides its noise: nothing mixes badly, and the run is not made longer."""
    X = points(8, generator)
    model = SkewGP(torch.cat([X, X[:1]]), Preference(torch.tensor([[0, 8], [1, 2], [8, 0]])))
    assert model.draws.thinning == 1

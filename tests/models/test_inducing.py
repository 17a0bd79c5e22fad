"""Inducing points of a model: how they are given, chosen and kept, and what they may not be."""

import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import RBFKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference, Slope
from botorch_skewgp.sampling import SkewGPSamplePath
from botorch_skewgp.truncated.draws import DrawSettings

SETTINGS = DrawSettings(num_draws=128)


def points(n: int = 20) -> torch.Tensor:
    return torch.rand(n, 2, dtype=torch.float64)


def labels(X: torch.Tensor) -> Binary:
    return Binary(X.sum(-1) > 1)


def model_of(X: torch.Tensor, inducing_points=5, **kwargs) -> SkewGP:
    return SkewGP(X, labels(X), inducing_points=inducing_points, draw_settings=SETTINGS, **kwargs)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (torch.rand(3, 3).double(), "a column for each input"),
        (torch.rand(3).double(), "M x 2"),
        (torch.zeros(0, 2).double(), "M x 2"),
        (torch.zeros(2, 2, dtype=torch.long), "floating point"),
        (torch.full((1, 2), torch.nan), "NaN"),
        (torch.ones(2, 2), "equal"),
        (21, r"or an integer from 1 to 20, .* got 21\."),
        (0, "from 1 to 20"),
        (True, "or an integer"),
        (2.5, "or an integer"),
    ],
)
def test_what_they_may_not_be(wrong, match):
    with pytest.raises(InputDataError, match=match):
        model_of(points(), wrong)


def test_a_model_without_any_is_asked_for_a_number():
    model = model_of(points(), None)
    assert model.inducing_points is None
    with pytest.raises(InputDataError, match="num_points"):
        model.choose_inducing_points()
    model.choose_inducing_points(4)
    assert model.inducing_points.shape == (4, 2)
    assert not model.inducing_points.requires_grad


def test_chosen_ones_are_training_points_that_leave_less_than_random_ones():
    X = points(60)
    model = model_of(X, 8, covar_module=RBFKernel().double())
    model.covar_module.lengthscale = 0.4
    model.choose_inducing_points()
    Z = model.inducing_points
    assert (Z.unsqueeze(-2) == X).all(-1).any(-1).all()
    assert len(Z.unique(dim=0)) == 8

    def left(at):
        K = [model.covar_module(*pair).to_dense() for pair in ((at, at), (at, X))]
        return len(X) - (K[1] * torch.linalg.solve(K[0], K[1])).sum().item()

    assert left(Z) < min(left(X[torch.randperm(60)[:8]]) for _ in range(20))


def test_points_that_repeat_are_chosen_once_and_a_smooth_kernel_does_not_end_the_choice():
    X = points(12)
    kernel = RBFKernel().double()
    kernel.lengthscale = 100.0
    model = model_of(torch.cat([X, X]), 20, covar_module=kernel)
    assert len(model.inducing_points) == 12
    assert len(model.inducing_points.unique(dim=0)) == 12


def test_they_are_in_units_of_the_inputs():
    X = points()
    wide = 100 * X + 7
    plain = model_of(X, 5)
    transform = Normalize(2, bounds=torch.tensor([[7.0, 7.0], [107.0, 107.0]]).double())
    scaled = SkewGP(wide, labels(X), inducing_points=5, input_transform=transform, draw_settings=SETTINGS)
    assert torch.allclose(scaled.inducing_points, 100 * plain.inducing_points + 7)
    assert torch.allclose(scaled.posterior(wide[:3] + 1).mean, plain.posterior(X[:3] + 0.01).mean, atol=1e-6)


def test_a_transform_learns_from_the_training_points_alone():
    X = points()
    far = torch.cat([X[:5], torch.full((1, 2), 9.0).double()])
    model = model_of(X, far, input_transform=Normalize(2))
    model(*model.train_inputs)
    assert torch.equal(model.input_transform.bounds, torch.stack([X.amin(0), X.amax(0)]))


def test_learned_ones_move_in_a_fit_and_others_stay():
    X = points()
    for learn in (False, True):
        model = model_of(X, X[:4], learn_inducing_points=learn)
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 3}})
        assert torch.equal(model.inducing_points.detach(), X[:4]) != learn


def test_they_are_kept_with_more_data():
    X = points()
    model = model_of(X)
    more = model.condition_on_observations(points(3), Binary([1, 0, 1]))
    assert torch.equal(more.inducing_points, model.inducing_points)
    assert more.posterior(X[:2]).mean.isfinite().all()


def test_a_posterior_follows_inducing_points_that_are_changed():
    X = points()
    model = model_of(X, 3)
    before = model.posterior(X).mean
    model.choose_inducing_points(12)
    assert not torch.allclose(model.posterior(X).mean, before, atol=1e-3)


@pytest.mark.parametrize("kind", ["labels", "numbers", "duels and slopes"])
def test_everything_that_stands_on_a_posterior_works(kind):
    X = points()
    observations, one = {
        "labels": (labels(X), Binary([1])),
        "numbers": (Numeric(X.sum(-1)), Numeric([1.0])),
        "duels and slopes": (
            [Preference(torch.randint(10, (8, 2)) + torch.tensor([0, 10])), Slope(0, 1, index=[2])],
            Slope(0, 1),
        ),
    }[kind]
    model = SkewGP(X, observations, inducing_points=5, draw_settings=SETTINGS)
    q = torch.rand(4, 1, 2, dtype=torch.float64)
    assert LogExpectedImprovement(model, best_f=0.2)(q).isfinite().all() if kind == "numbers" else True
    assert qLogExpectedImprovement(model, best_f=0.2)(q).isfinite().all()
    path = SkewGPSamplePath.draw(model, torch.Size([512]), generator=torch.Generator().manual_seed(0))
    values, posterior = path(X[:3]).detach(), model.posterior(X[:3])
    assert (values.mean(0) - posterior.mean.squeeze(-1)).abs().max() < 0.3 * posterior.variance.max().sqrt()
    assert model.log_marginal_likelihood("exact").value.isfinite()
    assert leave_one_out(model).log_predictive.isfinite().all()
    assert model.log_predictive_probability(X[:1], one) < 3

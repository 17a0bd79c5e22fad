"""A small model of duels, and what every acquisition function of this package has to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from gradients import assert_gradient
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition.look_ahead import AnswerModel, LatentMixture, expected_gain
from botorch_skewgp.observations import Observation, Preference
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import members_of
from botorch_skewgp.truncated.draws import DrawSettings

DOUBLE = torch.float64
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=DOUBLE)
POINTS = torch.rand(7, 2, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
PAIRS = torch.tensor([[0, 1], [2, 1], [3, 4], [5, 2], [0, 6], [3, 6]])


def make_model(
    observations: Observation | list[Observation] | None = None, num_draws: int = 256, X: Tensor = POINTS, **options
) -> SkewGP:
    """A model with hyperparameters that are not refitted; of the duels `PAIRS` if no observations are given."""
    observations = Preference(PAIRS) if observations is None else observations
    model = SkewGP(X, observations, draw_settings=DrawSettings(num_draws=num_draws), **options)
    model.covar_module.outputscale = 4.0
    model.covar_module.base_kernel.lengthscale = 0.4
    return model


def points(generator: torch.Generator, *batch_shape: int, q: int = 1) -> Tensor:
    """Candidates `batch_shape x q x 2` in the unit square."""
    return torch.rand(*batch_shape, q, 2, generator=generator, dtype=DOUBLE)


def assert_allowed(X: Tensor, bounds: Tensor, options: Mapping[str, Any]) -> None:
    """Points, `... x d`, are within bounds, and take the values and satisfy the linear constraints of a search."""
    assert ((bounds[0] <= X) & (bounds[1] >= X)).all()
    values = [options.get(name, {}) for name in ("discrete_dims", "cat_dims")]
    values.append({dim: [value] for dim, value in options.get("fixed_features", {}).items()})
    for dim, allowed in [entry for named in values for entry in named.items()]:
        assert torch.isin(X[..., dim], torch.tensor([*allowed], dtype=X.dtype)).all()
    for name, sign in (("inequality_constraints", 1), ("equality_constraints", 1), ("equality_constraints", -1)):
        for columns, weights, bound in options.get(name, []):
            assert (sign * (X[..., columns] @ weights.to(X) - bound) >= -1e-6).all()


def finite_gradient(function: Callable[[Tensor], Tensor], X: Tensor) -> tuple[Tensor, Tensor]:
    """The values at points and the gradient of their sum, all of them finite."""
    X = X.detach().clone().requires_grad_()
    values = function(X)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    assert values.isfinite().all()
    assert gradient.isfinite().all()
    return values.detach(), gradient


def assert_average(values: Tensor, draws: Tensor, slack: Tensor | float = 0.0) -> None:
    """Values are the means of independent draws, the first dimension, within 4.5 standard errors and a slack."""
    assert ((values - draws.mean(0)).abs() < 4.5 * draws.std(0) / len(draws) ** 0.5 + slack).all()


def samples(posterior: SkewGPPosterior, N: int, generator: torch.Generator) -> Tensor:
    """Joint samples of a posterior of one output, `N x batch_shape x q`."""
    base = torch.randn(N, *posterior.base_sample_shape, generator=generator, dtype=DOUBLE)
    return posterior.rsample_from_base_samples(torch.Size([N]), base).squeeze(-1).detach()


@torch.no_grad()
def gain(model, X: Tensor, candidates: Tensor, kind: type[Observation]) -> Tensor:
    """The expected rise of the best mean among candidates by answers at `n x k x d` points, `n`."""
    n, k, _ = X.shape
    joint, members = torch.cat([X.flatten(0, 1), candidates]), members_of(model, "gain")
    mixtures = [
        LatentMixture.of(m.latent_posterior(joint), m.outcome_scale, m.draw_settings.num_draws) for m in members
    ]
    answers = [AnswerModel.of(m, kind) for m in members]
    return expected_gain(mixtures, answers, n * k + torch.arange(len(candidates)), torch.arange(n * k).view(n, k))


def check_acquisition(
    acquisition: AcquisitionFunction,
    X: Tensor,
    atol: float = 1e-10,
    least_gradient: float = 1e-4,
    everywhere: bool = True,
    step: float = 1e-5,
) -> None:
    """At `X`, `3 x 2 x q x d`: values repeat exactly, are those of candidates alone and of smaller batches, and have
    gradients."""
    values = acquisition(X)
    assert values.shape == X.shape[:2] == (3, 2)
    assert values.isfinite().all()
    assert torch.equal(acquisition(X), values)
    for i in range(3):
        torch.testing.assert_close(acquisition(X[i]), values[i], rtol=1e-9, atol=atol)
        for j in range(2):
            torch.testing.assert_close(acquisition(X[i, j]), values[i, j].unsqueeze(0), rtol=1e-9, atol=atol)
    steep = assert_gradient(acquisition, X, step).abs().amax((-1, -2)) > least_gradient
    assert steep.all() if everywhere else steep.any()

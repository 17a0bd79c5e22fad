"""The models that experiments compare, behind the interface of a SkewGP: the same rows, other posteriors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import gpytorch
import torch
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from linear_operator import to_linear_operator
from torch import Tensor

from benchmarks._observations import VariationalProcess
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import OutcomeScale, PreferenceLikelihood
from botorch_skewgp.models.fitted import DataPosterior, Fitted
from botorch_skewgp.observations import Observation, Preference
from botorch_skewgp.papers import LinearEllipticalSliceSampler
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.draws import Draws, DrawSettings
from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import (
    ExpectationPropagation,
    expectation_propagation,
    product_of_sites,
)
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

# As the papers run it: one chain, nothing thinned, and no look at how good the draws are.
LINEAR_DRAWS = DrawSettings(
    num_draws=3000, num_chains=1, sampler=LinearEllipticalSliceSampler, warmup=100, max_thinning=1
)
FEW_DRAWS = 100  # asked for in a smoke test, which LIN-ESS then makes too
MOST_NEWTON_STEPS, MOST_HALVINGS, NEWTON_TOLERANCE = 100, 30, 1e-9


def build(
    method: str, train_X: Tensor, observations: Sequence[Observation], num_draws: int = 2048, **modules: Any
) -> Model:
    """A model by the name of a method, with draws of SkewGP, and of LIN-ESS if they are few."""
    if method == "PairwiseGP":
        (duels,) = observations
        assert isinstance(duels, Preference)
        return PairwiseGP(train_X, duels.pairs)
    if method == "SkewGP":
        return SkewGP(train_X, observations, draw_settings=DrawSettings(num_draws=num_draws), **modules)
    if method == "LIN-ESS":
        settings = LINEAR_DRAWS if num_draws > FEW_DRAWS else replace(LINEAR_DRAWS, num_draws=num_draws, warmup=1)
        return SkewGP(train_X, observations, draw_settings=settings, **modules)
    return GaussianApproximation(train_X, observations, approximation=method, **modules)


class GaussianApproximation(SkewGP):
    """A SkewGP whose posterior is the normal distribution of expectation propagation, or of Laplace's method."""

    def __init__(self, *args: Any, approximation: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.approximation = approximation
        self._approximated: _Approximated | None = None  # of the last fitted state

    def fitted(self) -> Fitted:
        """The fitted state, with the approximation in place of the posterior of the rows."""
        fitted = super().fitted()
        if self._approximated is None or self._approximated.model is not fitted.model:
            self._approximated = _Approximated(fitted.model)
        return replace(fitted, data=self._approximated)


class _Approximated(DataPosterior):
    """The prior of a model given its data, by the approximation that the model names."""

    def _posterior_of_rows(self, rows: TruncatedNormal) -> Draws | Sites:
        if rows.num_rows == 0:
            return super()._posterior_of_rows(rows)
        approximation = expectation_propagation(rows)
        return (approximation if self.model.approximation == "EP" else at_mode(approximation)).sites


def at_mode(approximation: ExpectationPropagation) -> ExpectationPropagation:
    r"""Laplace's approximation of rows that have one bound each: sites from the log likelihood's curvature at the mode.

    Newton's method for `h`, the rows without their noise, as in Rasmussen and Williams, Gaussian Processes for Machine
    Learning, section 3.4, from the mean of expectation propagation and with steps halved where they overshoot.
    """
    distribution = approximation.distribution
    C, noise = distribution.prior.covariance, distribution.noise
    above = distribution.lower.isfinite()
    assert bool((above != distribution.upper.isfinite()).all()), "Laplace's approximation is for rows with one bound."
    sign, bound = torch.where(above, 1.0, -1.0).to(C), torch.where(above, distribution.lower, distribution.upper)

    def slope_and_curvature(h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = sign * (h - bound) / noise.sqrt()
        log_p = torch.special.log_ndtr(z)
        ratio = torch.exp(-0.5 * z.square() - 0.5 * math.log(2 * math.pi) - log_p)
        return log_p.sum(), sign * ratio / noise.sqrt(), ratio * (z + ratio) / noise

    eye = torch.eye(len(C), dtype=C.dtype)
    alpha = torch.zeros_like(approximation.mean)  # h = mean + C alpha
    value = -torch.inf
    for _ in range(MOST_NEWTON_STEPS):
        h = distribution.mean + C @ alpha
        _, slope, curvature = slope_and_curvature(h)
        root = curvature.clamp(min=0).sqrt()  # rounding only: labels and duels are log-concave
        target = curvature * (h - distribution.mean) + slope
        B = torch.linalg.cholesky(eye + root.unsqueeze(-1) * C * root)
        inner = torch.cholesky_solve((root * (C @ target)).unsqueeze(-1), B).squeeze(-1)
        step = target - root * inner - alpha
        for _ in range(MOST_HALVINGS):
            moved = alpha + step
            log_likelihood, _, _ = slope_and_curvature(distribution.mean + C @ moved)
            new_value = float(log_likelihood - 0.5 * moved @ C @ moved)
            if new_value >= value:
                break
            step = 0.5 * step
        gained, alpha, value = new_value - value, moved, new_value
        if gained < NEWTON_TOLERANCE:
            break
    h = distribution.mean + C @ alpha
    _, slope, curvature = slope_and_curvature(h)
    return product_of_sites(distribution, Sites(curvature, slope + curvature * h))


class LatentModel(Model):
    """What acquisition functions ask a model of one output for, besides its posterior; no answers are kept."""

    num_outputs, observations = 1, ()

    def __init__(self, dim: int, likelihood: Any, outcome_scale: OutcomeScale) -> None:
        super().__init__()
        self.dim, self.likelihood, self.outcome_scale = dim, likelihood, outcome_scale
        self.datapoints = torch.empty(0, dim, dtype=torch.double)

    @property
    def answering_likelihood(self) -> Any:
        return self.likelihood

    def latent_posterior(self, X: Tensor, judges: None = None) -> SkewGPPosterior:
        return self.posterior(X)


class Surrogate(LatentModel):
    """PairwiseGP, factorised once and not for every pair of points; its posteriors differ in BoTorch's jitter alone."""

    def __init__(self, model: PairwiseGP) -> None:
        super().__init__(model.dim, PreferenceLikelihood(), OutcomeScale())
        self.points, self.covar_module = model.datapoints, model.covar_module
        curvature = model.likelihood_hess.detach()
        with torch.no_grad():
            K = model.covar.detach()
            weights = torch.linalg.solve(curvature @ K + torch.eye(len(K), dtype=K.dtype), curvature)
            self.precision = 0.5 * (weights + weights.mT)  # of utilities seen with the likelihood's curvature
            self.alpha = torch.cholesky_solve(model.utility.detach().unsqueeze(-1), model.covar_chol.detach())

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> SkewGPPosterior:
        cross = self.covar_module(X, self.points).to_dense()
        mean = (cross @ self.alpha).squeeze(-1)
        covariance = self.covar_module(X).to_dense() - cross @ self.precision @ cross.mT
        return _normal(mean, covariance)


class MomentMatched(LatentModel):
    """A model whose posterior is the normal distribution with the mean and covariance of another's."""

    def __init__(self, model: SkewGP | Surrogate) -> None:
        super().__init__(model.dim, model.likelihood, model.outcome_scale)
        self.model = model

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> SkewGPPosterior:
        posterior = self.model.posterior(X)
        return _normal(posterior.mean.squeeze(-1), posterior.covariance_matrix)


def _normal(mean: Tensor, covariance: Tensor) -> SkewGPPosterior:
    """A mixture of a single component; its covariance, of points that may come twice, is not factorised."""
    normal = gpytorch.distributions.MultivariateNormal(mean, to_linear_operator(covariance))
    return SkewGPPosterior.from_gaussian(normal)


def variational_probabilities(
    train_X: Tensor, labels: Tensor, test_X: Tensor, mean_module: Mean, covar_module: Kernel, num_steps: int = 40
) -> Tensor:
    """Probabilities of label 1 by a full-rank variational Gaussian, with hyperparameters as they are."""
    natural = gpytorch.variational.NaturalVariationalDistribution(len(train_X))
    model = VariationalProcess(train_X, natural, deepcopy(mean_module), deepcopy(covar_module)).to(train_X)
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    model.covar_module.requires_grad_(False)
    model.mean_module.requires_grad_(False)
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(train_X))
    optimizer = gpytorch.optim.NGD(model.variational_parameters(), num_data=len(train_X), lr=0.3)
    model.train()
    with torch.enable_grad():
        for _ in range(num_steps):
            optimizer.zero_grad()
            (-mll(model(train_X), labels.to(train_X))).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        return likelihood(model(test_X)).mean


def information_score(probability: Tensor, labels: Tensor) -> Tensor:
    """`1 + mean(y log2 p + (1 - y) log2(1 - p))` of probabilities of label 1: 1 if they are certain and right, 0 for a
    coin's (Benavoli, Azzimonti and Piga, Skew Gaussian processes for classification, 2020, section 6).
    """
    return 1 + torch.where(labels == 1, probability, 1 - probability).log2().mean(-1)


def unit_scaled(train_X: Tensor, *others: Tensor) -> list[Tensor]:
    """Inputs in the unit cube of the training points, without those that are constant there."""
    varied = train_X.amax(0) > train_X.amin(0)
    scale = Normalize(int(varied.sum()))
    scale(train_X[:, varied].double())
    scale.eval()
    return [scale(X[:, varied].double()) for X in (train_X, *others)]


def fit_options(most_steps: int) -> dict[str, Any]:
    return {"optimizer_kwargs": {"options": {"maxiter": most_steps}}, "warning_handler": lambda _: True}

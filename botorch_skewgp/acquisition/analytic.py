r"""Closed-form acquisition functions on the mixture that a skewed posterior is.

Given draw `s` the value at a point is normal with mean `m_s(x)` and a variance `v(x)` that all draws share, so that the
expectation of anything with a closed form under a normal law is the average of that form over draws. Logarithms of
averages are taken by `logsumexp` over logarithms of the terms: they stay finite, with gradients, where improvement is
all but impossible ([Ament2023logei]_). Functions of the same names without `Skew`, which are BoTorch's, use the mean
and the variance alone and assume a normal law in between.

All are deterministic functions of the candidate.

.. [Ament2023logei] S. Ament, S. Daulton, D. Eriksson, M. Balandat, E. Bakshy. Unexpected improvements to expected
   improvement for Bayesian optimization. NeurIPS 2023.
.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Letham2019noisyei] B. Letham, B. Karrer, G. Ottoni, E. Bakshy. Constrained Bayesian optimization with noisy
   experiments. Bayesian Analysis 14, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction, _log_ei_helper
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.utils.sampling import draw_sobol_normal_samples
from botorch.utils.transforms import t_batch_mode_transform
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_skewgp.models.fantasy import FantasyLevel
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Binary, Validity
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior


class ComponentLaw(NamedTuple):
    r"""The components of a single value's law.

    Args:
        mean: Their means, `batch_shape x S`.
        standard_deviation: The standard deviation that they share, `batch_shape x 1`.
        log_probability: Their log probabilities, `S` or `batch_shape x S`.
    """

    mean: Tensor
    standard_deviation: Tensor
    log_probability: Tensor


def component_law(posterior: Posterior, user: str) -> ComponentLaw:
    r"""The components of a posterior over one value.

    Args:
        posterior: A skewed posterior at one point with one output.
        user: Who asks, for the error message.

    Raises:
        UnsupportedError: If the posterior is not skewed, or not over one value.
    """
    if not isinstance(posterior, SkewGPPosterior):
        raise UnsupportedError(
            f"{user} needs a model whose posterior is a SkewGPPosterior; got {type(posterior).__name__}. For normal "
            "posteriors BoTorch's analytic acquisition functions are exact."
        )
    if posterior._extended_shape()[-2:] != (1, 1):
        raise UnsupportedError(
            f"{user} needs the posterior of one value; got one of shape {tuple(posterior._extended_shape())}. For "
            "input transforms that turn one point into many, give a posterior_transform that reduces them to one."
        )
    means = posterior.component_means.squeeze(-2)
    means = means.expand(*posterior.batch_shape, means.shape[-1])
    return ComponentLaw(means, posterior.gaussian_variance.sqrt(), log_probabilities(posterior.mixture))


def log_probabilities(mixture: RepresenterMixture) -> Tensor:
    """The log probabilities of a mixture's draws, `S` or `batch_shape x S`."""
    if mixture.log_weights is None:
        return mixture.weights.new_full((mixture.num_draws,), -math.log(mixture.num_draws))
    return mixture.log_weights


class _SkewAnalyticAcquisitionFunction(AnalyticAcquisitionFunction):
    """Base class of those that see the components of one value's law."""

    def _law(self, X: Tensor) -> ComponentLaw:
        self.to(X)  # as BoTorch's analytic functions do
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        return component_law(posterior, type(self).__name__)


class _SkewImprovement(_SkewAnalyticAcquisitionFunction):
    """Base class of those that compare with the best value so far."""

    best_f: Tensor

    def __init__(
        self,
        model: Model,
        best_f: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        r"""
        Args:
            model: A model with skewed posteriors and one output (or several, with a posterior transform to one).
            best_f: The best value so far, a number or a `batch_shape` tensor.
            posterior_transform: A posterior transform; affine ones keep the skewness.
            maximize: Whether large values are good.
        """
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.register_buffer("best_f", torch.as_tensor(best_f))
        self.maximize = maximize

    def _standardised_improvement(self, X: Tensor) -> tuple[Tensor, ComponentLaw]:
        """How many standard deviations every component's mean is better than the best value."""
        law = self._law(X)
        gain = law.mean - self.best_f.to(law.mean).unsqueeze(-1)
        return (gain if self.maximize else -gain) / law.standard_deviation, law


class SkewLogExpectedImprovement(_SkewImprovement):
    r"""The logarithm of the expected improvement under a skewed posterior.

    `log sum_s p_s sd (phi(u_s) + u_s Phi(u_s))` with `u_s = (m_s(x) - best_f) / sd`. Exact given the draws, whereas
    `LogExpectedImprovement` takes the posterior for a normal law of the same mean and variance.

    Example:
        >>> model = SkewGP(train_X, [Numeric(values), Preference(pairs)])
        >>> acq = SkewLogExpectedImprovement(model, best_f=values.max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    _log = True

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log expected improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        improvement, law = self._standardised_improvement(X)
        terms = law.log_probability + _log_ei_helper(improvement)
        return terms.logsumexp(-1) + law.standard_deviation.log().squeeze(-1)


class SkewExpectedImprovement(SkewLogExpectedImprovement):
    r"""The expected improvement under a skewed posterior; see `SkewLogExpectedImprovement`, which optimises better.

    Example:
        >>> acq = SkewExpectedImprovement(model, best_f=values.max())
        >>> acq(torch.rand(5, 1, 2, dtype=torch.double))
    """

    _log = False

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Expected improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return super().forward(X).exp()


class SkewLogProbabilityOfImprovement(_SkewImprovement):
    r"""The logarithm of the probability of improvement, `log sum_s p_s Phi(u_s)`; see `SkewLogExpectedImprovement`.

    Example:
        >>> acq = SkewLogProbabilityOfImprovement(model, best_f=values.max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    _log = True

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log probability of improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        improvement, law = self._standardised_improvement(X)
        return (law.log_probability + torch.special.log_ndtr(improvement)).logsumexp(-1)


class SkewProbabilityOfImprovement(SkewLogProbabilityOfImprovement):
    r"""The probability of improvement under a skewed posterior; see `SkewLogProbabilityOfImprovement`.

    Example:
        >>> acq = SkewProbabilityOfImprovement(model, best_f=values.max())
        >>> acq(torch.rand(5, 1, 2, dtype=torch.double))
    """

    _log = False

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Probability of improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return super().forward(X).exp()


class SkewUpperConfidenceBound(_SkewAnalyticAcquisitionFunction):
    r"""The upper end of a credible interval: the posterior's own quantile, not mean plus standard deviations.

    Where BoTorch's `UpperConfidenceBound` takes `beta`, this takes the probability below the bound:
    `Phi(sqrt(beta))` gives the same for a normal posterior.

    Example:
        >>> acq = SkewUpperConfidenceBound(model, probability=0.975)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model with skewed posteriors and one output (or several, with a posterior transform to one).
        probability: The posterior probability that the value is below the bound, in (0, 1).
        posterior_transform: A posterior transform; affine ones keep the skewness.
        maximize: Whether large values are good. If not, the value is minus the quantile of `1 - probability`.

    Raises:
        ValueError: If the probability is outside (0, 1).
    """

    def __init__(
        self,
        model: Model,
        probability: float = 0.975,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        if not 0 < probability < 1:
            raise ValueError(f"probability must be strictly between 0 and 1; got {probability}.")
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.probability = probability
        self.maximize = maximize

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The bound at `batch_shape x 1 x d` candidates; `batch_shape`."""
        self.to(X)
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        component_law(posterior, type(self).__name__)  # raises for other posteriors
        quantile = posterior.quantile(torch.tensor(self.probability if self.maximize else 1 - self.probability))
        return (quantile if self.maximize else -quantile).squeeze(-1).squeeze(-1)


class SkewLogNoisyExpectedImprovement(_SkewAnalyticAcquisitionFunction):
    r"""The logarithm of the expected improvement over the unknown best of a set of points ([Letham2019noisyei]_).

    `log E[max(f(x) - max f(X_baseline), 0)]`. Each draw `s` of the rows is completed by normal draws of the values at
    the baseline. Given both, `f(x)` is normal in closed form, and so is the improvement; its average over all of them
    is returned. Nothing needs to be known about the noise: comparisons and labels do as well as numbers. Pending points
    join the baseline, which gives noisy expected improvement of all of them up to a constant.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> acq = SkewLogNoisyExpectedImprovement(model, X_baseline=train_X)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output.
        X_baseline: An `n x d` tensor of points.
        samples_per_draw: The number of normal draws at the baseline for each of the model's draws.
        posterior_transform: An affine posterior transform.
        maximize: Whether large values are good.
        seed: The seed of the base samples.

    Raises:
        BotorchTensorDimensionError: If `X_baseline` is not `n x d` with at least one point.
    """

    _log = True

    def __init__(
        self,
        model: SkewGP,
        X_baseline: Tensor,
        samples_per_draw: int = 1,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        seed: int = 0,
    ) -> None:
        if X_baseline.ndim != 2 or X_baseline.shape[-2] == 0:
            raise BotorchTensorDimensionError(
                f"X_baseline must be n x d with n of at least 1; got shape {tuple(X_baseline.shape)}."
            )
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.samples_per_draw, self.maximize, self.seed = samples_per_draw, maximize, seed
        self._prior_model = model
        self.X_baseline = X_baseline.detach()
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Let points that are being evaluated join the baseline.

        Args:
            X_pending: An `m x d` tensor of points, or `None` for none.
        """
        self.X_pending: Tensor | None = None if X_pending is None else X_pending.detach().clone()  # type: ignore[assignment]
        X = self.X_baseline if self.X_pending is None else torch.cat([self.X_baseline, self.X_pending])
        X = X.unique(dim=0)  # values at equal points are equal; their joint covariance would be singular
        with torch.no_grad():
            self.model, values = condition_on_own_draws(self._prior_model, X, self.samples_per_draw, self.seed)
            values = values.mT.unsqueeze(-1)  # S x n x 1
            if self.posterior_transform is not None:
                values = self.posterior_transform.evaluate(values)
            values = values.flatten(1)
            self.best_f = values.amax(-1) if self.maximize else values.amin(-1)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        result = super()._apply(fn, *args, **kwargs)
        baseline = fn(self.X_baseline)
        if baseline is not self.X_baseline:  # what is drawn at the baseline follows it
            self.X_baseline = baseline
            self.set_X_pending(None if self.X_pending is None else fn(self.X_pending))
        return result

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log noisy expected improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        law = self._law(X)
        gain = law.mean - self.best_f.to(law.mean)
        improvement = (gain if self.maximize else -gain) / law.standard_deviation
        terms = law.log_probability + _log_ei_helper(improvement)
        return terms.logsumexp(-1) + law.standard_deviation.log().squeeze(-1)


def condition_on_own_draws(
    model: SkewGP, X: Tensor, samples_per_draw: int = 1, seed: int = 0, weight: Tensor | None = None
) -> tuple[SkewGP, Tensor]:
    r"""A model in which every draw also knows the noise-free values, drawn from the posterior, at given points.

    The law of the latent function does not change, for it is only cut into smaller parts: a mixture over draws of the
    rows and of the values.

    Args:
        model: A SkewGP with one output and no fantasies.
        X: An `n x d` tensor of points.
        samples_per_draw: The number of draws of the values for each of the model's draws.
        seed: The seed of the base samples.
        weight: A `k x n` tensor, to draw `weight f(X)` (of the latent function, in its own units) instead.

    Returns:
        The model and the values, `n x S` in units of the outcome (`k x S` of the latent function with a weight).
    """
    if model.num_outputs != 1:
        raise UnsupportedError(f"Values can be drawn for models with one output; this one has {model.num_outputs}.")
    if model.batch_shape:
        raise UnsupportedError("Values can be drawn for models of data, not of fantasies; build one from its data.")
    model.eval()
    inputs = model.transform_inputs(X)
    posterior = model.latent_posterior(X)
    means, covariance = posterior.component_means, posterior.gaussian_covariance
    if weight is not None:
        weight = weight.to(means)
        means, covariance = weight @ means, weight @ covariance @ weight.mT
    means = means.repeat_interleave(samples_per_draw, dim=-1)
    root = psd_safe_cholesky(covariance)
    white = draw_sobol_normal_samples(
        d=root.shape[-1], n=means.shape[-1], device=means.device, dtype=means.dtype, seed=seed
    ).mT
    values = means + root @ white
    # f(x) given the values: its covariance with them times the inverse of theirs, in factors
    representer = torch.linalg.solve_triangular(root.mT, white, upper=True)
    inverse_root = torch.linalg.inv(root).mT
    if weight is not None:
        representer, inverse_root = weight.mT @ representer, weight.mT @ inverse_root
    mixture = RepresenterMixture(representer, inverse_root, parent=_repeat(posterior.mixture, samples_per_draw))
    new = copy(model)
    new._fantasies = (FantasyLevel(inputs, tuple(posterior.gains), mixture),)
    if weight is None:
        values = model.outcome_scale.location + model.outcome_scale.scale * values
    return new, values


def _repeat(mixture: RepresenterMixture, times: int) -> RepresenterMixture:
    """The same mixture with every draw that many times."""
    return RepresenterMixture(mixture.weights.repeat_interleave(times, dim=-1), mixture.root)


class LogProbabilityOfValidity(_SkewAnalyticAcquisitionFunction):
    r"""The logarithm of the probability that an experiment works.

    `log sum_s p_s Phi((m_s(x) - h) / sqrt(v(x) + noise))` with threshold `h` and noise of the model's likelihood of
    `Validity` observations ([Benavoli2021unified]_, equation (40)); of `Binary` ones, with `h = 0`, if it takes no
    `Validity`. Add it to another log acquisition function to weigh that by the probability of validity.

    Example:
        >>> model = SkewGP(train_X, Validity(worked))
        >>> acq = LogProbabilityOfValidity(model)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP whose likelihood takes `Validity` or `Binary` observations.

    Raises:
        UnsupportedError: If the likelihood takes neither.
    """

    model: SkewGP
    _log = True

    def __init__(self, model: SkewGP) -> None:
        super().__init__(model=model)
        validity_bound(model)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log probability of validity at `batch_shape x 1 x d` candidates; `batch_shape`."""
        self.to(X)
        return log_probability_of_validity(self.model, X).squeeze(-1)


def validity_bound(model: Model) -> tuple[Tensor, Tensor]:
    r"""What the noisy latent function has to exceed for a valid outcome, and the variance of that noise.

    Args:
        model: A SkewGP whose likelihood takes `Validity` or `Binary` observations; others are refused.

    Returns:
        Two tensors of shape `1`, in units of the latent function.

    Raises:
        UnsupportedError: If the likelihood takes neither.
    """
    likelihood = getattr(model, "likelihood", None)
    kinds = getattr(likelihood, "observation_types", ())
    like = model.train_inputs[0] if isinstance(model, SkewGP) else torch.empty(0)
    yes = torch.ones(1, dtype=torch.bool)
    for kind in (Validity, Binary):
        if isinstance(model, SkewGP) and kind in kinds:
            row = model.likelihood.rows(kind(yes), like, model.outcome_scale)
            return row.lower, row.noise
    raise UnsupportedError(
        "The probability of validity needs a SkewGP whose likelihood takes Validity or Binary observations; got "
        f"{type(model).__name__} with {type(likelihood).__name__}."
    )


def log_probability_of_validity(model: SkewGP, X: Tensor, log_odds: bool = False) -> Tensor:
    r"""The log probabilities that experiments at given points work; see `LogProbabilityOfValidity`.

    Args:
        model: A SkewGP whose likelihood takes `Validity` or `Binary` observations.
        X: A `batch_shape x q x d` tensor.
        log_odds: Whether to return `log(p / (1 - p))` instead of `log(p)`.

    Returns:
        A `batch_shape x q` tensor.
    """
    threshold, noise = validity_bound(model)
    model.eval()
    posterior = model.latent_posterior(X)
    deviation = (posterior.gaussian_variance + noise).sqrt().unsqueeze(-1)
    margin = (posterior.component_means - threshold) / deviation
    weights = log_probabilities(posterior.mixture).unsqueeze(-2)
    log_valid = (weights + torch.special.log_ndtr(margin)).logsumexp(-1)
    if not log_odds:
        return log_valid
    return log_valid - (weights + torch.special.log_ndtr(-margin)).logsumexp(-1)

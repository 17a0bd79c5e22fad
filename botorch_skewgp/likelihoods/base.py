r"""What likelihoods share: positive parameters, the scale of outcomes, and predictions as interval probabilities."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.likelihoods import Likelihood
from gpytorch.module import Module
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.likelihoods.rows import FantasyRows, Rows
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.univariate import hermite

LEAST_POSITIVE = 1e-8  # of positive parameters, so that a long step of an optimiser does not underflow to zero


@dataclass(frozen=True)
class OutcomeScale:
    r"""How outcomes relate to the latent function: `outcome = location + scale * latent`.

    Whatever a user states in units of the outcome (values, known variances, bounds, thresholds, given cut-points)
    passes through here; noise levels of likelihoods are in units of the latent function.

    Args:
        location: The outcome at which the latent function is zero.
        scale: The outcome's change for a unit of the latent function; positive.
    """

    location: float = 0.0
    scale: float = 1.0

    def standardize(self, outcome: Tensor) -> Tensor:
        """Outcomes in units of the latent function."""
        return (outcome - self.location) / self.scale


class ReadParameter:
    """Reads a parameter of a module; a prior's closure that can be pickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module) -> Tensor:
        return getattr(module, self.name)


class SetParameter(ReadParameter):
    """Sets a parameter of a module; a prior's closure that can be pickled."""

    def __call__(self, module: Module, value: Tensor) -> None:  # type: ignore[override]
        setattr(module, self.name, value)


class PositiveParameter:
    """A positive parameter `name` of a module, stored as `raw_name` behind a constraint."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            return self
        raw = f"raw_{self.name}"
        return getattr(module, f"{raw}_constraint").transform(getattr(module, raw))

    def __set__(self, module: Any, value: float | Tensor) -> None:
        raw = f"raw_{self.name}"
        parameter = getattr(module, raw)
        value = torch.as_tensor(value, dtype=parameter.dtype, device=parameter.device).detach()
        if not (value > 0).all() or not value.isfinite().all():
            raise InputDataError(f"{self.name} must be positive and finite; got {value.tolist()}.")
        constraint = getattr(module, f"{raw}_constraint")
        module.initialize(**{raw: constraint.inverse_transform(value.expand_as(getattr(module, raw)))})


class RowLikelihood(Likelihood):
    r"""A likelihood that is a product of factors `P(lower < a^T f + bias + v <= upper)`.

    Holds what is learned about how observations come about (noise, cut-points, widths) and no data, so that models may
    share it.
    """

    observation_types: ClassVar[tuple[type[Observation], ...]] = ()
    num_outputs: int = 1  # latent functions that the observations are of

    def _register_positive(
        self, name: str, value: float | Tensor, learn: bool, prior: Prior | None, constraint: Interval | None
    ) -> None:
        """Register `raw_name` behind a constraint, for a class attribute `name = PositiveParameter()`."""
        raw = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=learn)
        self.register_parameter(f"raw_{name}", raw)
        self.register_constraint(f"raw_{name}", GreaterThan(LEAST_POSITIVE) if constraint is None else constraint)
        if prior is not None:
            self.register_prior(f"{name}_prior", prior, ReadParameter(name), SetParameter(name))
        setattr(self, name, value)

    def _check_type(self, observation: Observation) -> None:
        if not isinstance(observation, self.observation_types):
            raise InputDataError(self._refusal(type(observation)))

    def _refusal(self, kind: type[Observation]) -> str:
        names = " or ".join(taken.__name__ for taken in self.observation_types)
        return (
            f"{type(self).__name__} takes {names} observations; got {kind.__name__}. For several kinds at once give a "
            "MixedLikelihood, or none for the default."
        )

    @abstractmethod
    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:
        r"""Turn observations into rows, differentiable in this likelihood's parameters.

        Args:
            observation: Observations of a kind that this likelihood is for.
            like: Any tensor of the wanted dtype and device.
            scale: How outcomes relate to the latent function.

        Raises:
            InputDataError: If the observations are of another kind.
        """

    @abstractmethod
    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The distribution of new observations given values of the latent function."""

    def marginal(
        self,
        function_dist: MultivariateNormal | SkewGPPosterior,
        *args: Any,
        scale: OutcomeScale = OutcomeScale(),
        **kwargs: Any,
    ) -> Any:
        r"""The distribution of new observations, averaged over a law of the latent function.

        Args:
            function_dist: A Gaussian law or a skewed posterior of the latent function at new points.
            scale: How outcomes relate to the latent function.
        """
        return self._predict(_as_posterior(function_dist), scale)

    @abstractmethod
    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Any:
        """The distribution of new observations under a skewed posterior, in closed form where there is one."""

    def __call__(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        r"""`forward` for a tensor of values of the latent function, `marginal` for a law of it."""
        if isinstance(input, SkewGPPosterior):
            return self.marginal(input, *args, **kwargs)
        return super().__call__(input, *args, **kwargs)

    def for_kind(self, kind: type[Observation]) -> RowLikelihood:
        """The likelihood that takes observations of a kind: this one, or a part of it."""
        if not issubclass(kind, self.observation_types):
            raise InputDataError(self._refusal(kind))
        return self

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        r"""What a new observation would tell, for noisy values of the latent function that it comes from.

        Args:
            noisy: A `batch_shape x q` tensor of values of `f(x) + v`.
            scale: How outcomes relate to the latent function.
        """
        raise UnsupportedError(f"{type(self).__name__} cannot draw new observations; pass numbers or duels instead.")

    def latent_noise(self, X: Tensor) -> Tensor:
        r"""The variance of the noise with which the latent function is read at new points.

        Args:
            X: A `batch_shape x q x d` tensor.

        Returns:
            A tensor that broadcasts to `batch_shape x q x num_outputs`.
        """
        raise UnsupportedError(
            f"{type(self).__name__} has no single noise level; pass the variances as observation_noise."
        )


def _as_posterior(function_dist: MultivariateNormal | SkewGPPosterior) -> SkewGPPosterior:
    """A Gaussian law as a skewed posterior of a single component."""
    if isinstance(function_dist, SkewGPPosterior):
        return function_dist
    mean, num_outputs = function_dist.mean, 1
    if isinstance(function_dist, MultitaskMultivariateNormal):
        if not function_dist._interleaved:
            raise UnsupportedError("Give a MultitaskMultivariateNormal with interleaved=True.")
        num_outputs = mean.shape[-1]
        mean = mean.flatten(-2)
    none = RepresenterMixture(mean.new_zeros(0, 1), mean.new_zeros(0, 0))
    return SkewGPPosterior(
        mean, mean.new_zeros(*mean.shape, 0), function_dist.lazy_covariance_matrix, none, num_outputs
    )


def point_rows(
    index: Tensor, like: Tensor, lower: Tensor, upper: Tensor, noise: Tensor, bias: Tensor | None = None
) -> Rows:
    """Rows that each read the latent function at one point."""
    m = index.shape[0]
    return Rows(
        index=index.to(like.device).unsqueeze(-1),
        coefficient=like.new_ones(m, 1),
        bias=like.new_zeros(m) if bias is None else bias,
        lower=lower.to(like).expand(m),
        upper=upper.to(like).expand(m),
        noise=noise.to(like).expand(m),
    )


def comparison_rows(pairs: Tensor, event: Tensor, column: Tensor, noise: Tensor, like: Tensor) -> Rows:
    r"""Rows `f(a) - f(b) + v_a - v_b > 0`, where comparisons of one event share each item's noise.

    An item's noise that only one comparison reads is independent; one that several read goes into the shared root.

    Args:
        pairs: A `p x 2` tensor of items, winner first, that name noises within an event.
        event: A `p`-dim tensor: the event of each comparison.
        column: A `p x 2` tensor: the entries of the latent function that the items stand for.
        noise: The variance of one item's noise; shape `1`.
        like: Any tensor of the wanted dtype and device.
    """
    p = pairs.shape[0]
    pairs, event, column = pairs.to(like.device), event.to(like.device), column.to(like.device)
    sign = torch.tensor([1.0, -1.0], dtype=like.dtype, device=like.device).expand(p, 2)
    key = torch.stack([event.unsqueeze(-1).expand_as(pairs), pairs], dim=-1).reshape(-1, 2)
    _, inverse, counts = key.unique(dim=0, return_inverse=True, return_counts=True)
    shared = counts > 1
    inverse = inverse.view(p, 2)
    noise = noise.to(like)
    own = noise * (~shared)[inverse].to(like).sum(-1)
    root = None
    if bool(shared.any()):
        weight = like.new_zeros(p, counts.shape[0]).scatter_add(-1, inverse, sign)
        root = noise.sqrt() * weight[:, shared]
    zeros = like.new_zeros(p)
    return Rows(
        index=column,
        coefficient=sign,
        bias=zeros,
        lower=zeros,
        upper=torch.full_like(zeros, torch.inf),
        noise=own,
        noise_root=root,
    )


def best_of(utility: Tensor) -> Tensor:
    r"""Probabilities that each of several items is best, `E_v prod_{i != j} Phi(f_j - f_i + v)`, by quadrature over
    `v`.

    Args:
        utility: A `... x k` tensor of utilities, in units of one item's noise standard deviation.

    Returns:
        A `... x k` tensor of probabilities.
    """
    difference = utility.unsqueeze(-1) - utility.unsqueeze(-2)  # ... x j x i
    nodes, log_weights = hermite(utility, 32)
    log_beats = torch.special.log_ndtr(difference.unsqueeze(-1) + nodes)  # ... x j x i x nodes
    beats_all = log_beats.sum(-2) - log_beats.diagonal(dim1=-3, dim2=-2).mT
    return torch.softmax((beats_all + log_weights).logsumexp(-1), dim=-1)

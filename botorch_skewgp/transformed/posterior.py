r"""The posterior of a Bayesian transformed Gaussian process: a mixture of warped multivariate t distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from torch import Tensor

from botorch_skewgp.parameters import with_parameters
from botorch_skewgp.posteriors.mixture_posterior import MixturePosterior, without_repetition
from botorch_skewgp.posteriors.representer_mixture import pick_components
from botorch_skewgp.transformed import student_t
from botorch_skewgp.transformed.marginals import TransformedTMarginals
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.warpings import Warping


class JointScale(NamedTuple):
    """Scale matrices of `T` kernels, `batch_shape x T x q x q`, and of each component its kernel and a factor, `S`."""

    matrix: Callable[[], Tensor]
    group: Tensor
    factor: Tensor
    prior: Tensor | None = None


class WarpingNodes(NamedTuple):
    """A warping at the nodes of its parameters, raw ones by name, each of shape `S`; others keep their values."""

    warping: Warping
    raw: Mapping[str, Tensor]

    @property
    def everywhere(self) -> Warping:
        """The warping with parameters of shape `S`, or 1 for those not named."""
        return with_parameters(self.warping, self.raw)

    def to(self, dtype: torch.dtype) -> WarpingNodes:
        """The nodes in a precision."""
        return self._replace(raw={name: value.to(dtype) for name, value in self.raw.items()})

    def at(self, node: Tensor) -> Warping:
        """The warping with the parameters of chosen nodes, of shape `node.shape x 1`."""
        return with_parameters(self.warping, {name: raw[node].unsqueeze(-1) for name, raw in self.raw.items()})


class TransformedTPosterior(MixturePosterior):
    r"""The joint posterior of a `BayesianTransformedGP` over `q` points, with one output.

    The law of a value is a mixture over nodes `s` of those of `g_s^{-1}(z)`, with `z` Student t; over several points
    `z` is multivariate t. Where the range of `g_s` is bounded below, the laws of single values are truncated, and
    joined by the copula of the multivariate t.

    Quantiles, the median, cdf, density and samples always exist; `mean` and `variance` only if the tails of the
    warpings are light enough at all nodes.

    Example:
        >>> posterior = transformed.posterior(X)  # X is batch_shape x q x d
        >>> posterior.median  # batch_shape x q x 1
        >>> posterior.quantile(torch.tensor([0.025, 0.975]))  # 2 x batch_shape x q x 1
        >>> posterior.rsample(torch.Size([16]))  # 16 x batch_shape x q x 1
    """

    _columns = "2 + q"

    def __init__(
        self,
        location: Tensor,
        scale: Tensor,
        probabilities: Tensor,
        df: float,
        warping: WarpingNodes,
        joint: JointScale | None = None,
        offset: float = 0.0,
        weight: float = 1.0,
    ) -> None:
        r"""Of locations and scales of warped values, `batch_shape x q x S`, and probabilities of the nodes, `S` or
        `batch_shape x S`, which sum to one.

        Samples of several points need the scale matrices, `joint`. Values are `offset + weight y`, with `y` those of
        the warping.
        """
        self._location, self._scale = location, scale
        self._probabilities, self.df = probabilities, df
        self._warping, self._joint = warping, joint
        self._offset, self._weight = offset, weight

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of joint distributions."""
        return self._location.shape[:-2]

    @property
    def base_sample_shape(self) -> torch.Size:
        """`batch_shape x (2 + q)`: the first column picks the node, the second the chi-square number of the t."""
        return self.batch_shape + torch.Size([2 + self._location.shape[-2]])

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + self._location.shape[:-1] + torch.Size([1])

    @cached_property
    def marginals(self) -> TransformedTMarginals:
        """The laws of single values without `offset` and `weight`, a batch of shape `batch_shape x q`."""
        probabilities = self._probabilities if self._probabilities.ndim == 1 else self._probabilities.unsqueeze(-2)
        return TransformedTMarginals(self._location, self._scale, probabilities, self.df, self._warping.everywhere)

    # Marginal distribution functions, beside those of all mixtures

    def _to_event(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1)

    def _log_average(self, function: Callable[[Tensor], Tensor], value: Tensor | float) -> Tensor:
        """The logarithms of averages over nodes of the exponentials of a function of `... x 1` values."""

        def log_average(z: Tensor) -> Tensor:
            x = function(z.unsqueeze(-1))
            largest = x.detach().amax(-1, keepdim=True)
            largest = torch.where(largest.isfinite(), largest, 0.0)
            return self.marginals.average((x - largest).exp()).log() + largest.squeeze(-1)

        return self._at_outcomes(log_average, value)

    def log_probability_above(self, value: Tensor | float) -> Tensor:
        """The logarithms of the probabilities `P(f > value)`, with gradients where these underflow; see `cdf`."""
        law = self.marginals
        return self._log_average(law.component_log_survival if self._weight > 0 else law.component_log_cdf, value)

    def log_expected_gain(self, value: Tensor | float) -> Tensor:
        r"""The logarithms of the expected improvements on a value, measured on the warped scale; see `cdf`.

        See `TransformedLogExpectedImprovement`. Raises `UnsupportedError` if there is one degree of freedom only, and
        `ValueError` if the value is outside of the warping's domain.
        """
        if not self.df > 1:
            raise UnsupportedError(
                f"No expectation exists with {self.df:g} degree of freedom; more points are needed. Use "
                "log_probability_above, or quantile."
            )
        law = self.marginals

        def log_gain(z: Tensor) -> Tensor:
            if not bool(law.warping.log_derivative(z).isfinite().all()):
                raise ValueError(f"The value must be a finite number inside of the warping's domain; got {value}.")
            return law.component_log_gain(z, above=self._weight > 0)

        return self._log_average(log_gain, value) + math.log(abs(self._weight))

    def log_density(self, value: Tensor | float) -> Tensor:
        """The logarithms of the marginal probability densities; see `cdf`."""
        return self._log_average(self.marginals.component_log_density, value) - math.log(abs(self._weight))

    @property
    def median(self) -> Tensor:
        """The marginal medians, `batch_shape x q x 1`."""
        return self.quantile(0.5)

    # Moments

    def _require_moments(self, order: int) -> None:
        power = self.marginals.largest_tail_power()
        if order * power < self.df:
            return
        name = {1: "mean", 2: "variance"}[order]
        growth = f"grow like a power {power:.3g} of" if math.isfinite(power) else "grow exponentially in"
        raise UnsupportedError(
            f"This posterior has no {name}: at some nodes of the warping's parameters values {growth} a Student t "
            f"variable with {self.df:g} degrees of freedom. Use quantile, median, cdf, density or samples, which "
            f"always exist; or build the model with num_moments={order}, which leaves such warpings out."
        )

    @cached_property
    def mean(self) -> Tensor:
        """The posterior mean, `batch_shape x q x 1`; raises `UnsupportedError` if it does not exist."""
        self._require_moments(1)
        return (self._offset + self._weight * self.marginals.expectation()).unsqueeze(-1)

    @cached_property
    def variance(self) -> Tensor:
        """The posterior variances, `batch_shape x q x 1`; raises `UnsupportedError` if they do not exist."""
        self._require_moments(2)
        center = (self.mean.squeeze(-1) - self._offset) / self._weight
        return (self._weight**2 * self.marginals.expectation(center)).unsqueeze(-1)

    # Sampling

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Draw from the joint posterior, `sample_shape x batch_shape x q x 1`; smooth for fixed base samples.

        These are normal numbers, `sample_shape x batch_shape x (2 + q)`, else there is a `RuntimeError`; batches may be
        broadcast.
        """
        self._check_base_samples(sample_shape, base_samples)
        base_samples = base_samples.expand(sample_shape + self.base_sample_shape)
        choices, normal = base_samples[..., :2], base_samples[..., 2:]
        if self._probabilities.ndim == 1:
            choices = without_repetition(choices, len(sample_shape))  # as of acquisition functions
        node = pick_components(self._probabilities, torch.special.ndtr(choices[..., 0]))
        stretch = (self.df / student_t.chi_square_quantile(choices[..., 1], self.df)).sqrt()
        node, stretch = node.expand(normal.shape[:-1]), stretch.unsqueeze(-1)  # sample_shape x batch_shape
        location, scale = self._chosen(self._location.mT, node), self._chosen(self._scale.mT, node)
        deviation = scale * normal if normal.shape[-1] == 1 else self._correlated(node, normal)
        z = location + stretch * deviation
        warping = self._warping.at(node)
        lowest = warping.range[0]
        if bool((lowest != -math.inf).any()):
            missing = student_t.cdf((lowest.to(z) - location) / scale, self.df)
            level = student_t.cdf((location - z) / scale, self.df) * (1 - missing)
            z = location - scale * student_t.quantile(level, self.df)
        return (self._offset + self._weight * warping.inverse(z)).unsqueeze(-1)

    def _correlated(self, node: Tensor, normal: Tensor) -> Tensor:
        """Normal numbers with the scale matrices of chosen nodes; `sample_shape x batch_shape x q`."""
        if self._joint is None:
            raise UnsupportedError("This posterior has the laws of single points only; take samples of one at a time.")
        root = cholesky_with_relative_jitter(self._joint.matrix(), self._joint.prior).to(normal)
        chosen = self._chosen(root.expand(self.batch_shape + root.shape[-3:]), self._joint.group[node])
        factor = self._joint.factor[node].sqrt().unsqueeze(-1)
        return factor * (chosen @ normal.unsqueeze(-1)).squeeze(-1)

    def _chosen(self, entries: Tensor, number: Tensor) -> Tensor:
        """The entries, `batch_shape x K x ...`, of numbers of shape `sample_shape x batch_shape`."""
        batch = torch.arange(self.batch_shape.numel(), device=self.device).view(self.batch_shape)
        num, event = entries.shape[len(self.batch_shape)], entries.shape[len(self.batch_shape) + 1 :]
        flat = entries.reshape(batch.numel() * num, *event)
        return flat.index_select(0, (batch * num + number).flatten()).view(*number.shape, *event)

    # Maps

    def scalarize(self, weights: Tensor, offset: float | Tensor = 0.0) -> TransformedTPosterior:
        """The posterior of `offset + weights_1 f`.

        Raises `BotorchTensorDimensionError` unless the weights are a tensor of one finite number other than zero.
        """
        weight = float(weights) if isinstance(weights, Tensor) and weights.shape == (1,) else 0.0
        if weight == 0 or not math.isfinite(weight):
            raise BotorchTensorDimensionError(f"weights must hold one number other than zero; got {weights}.")
        return TransformedTPosterior(
            self._location,
            self._scale,
            self._probabilities,
            self.df,
            self._warping,
            self._joint,
            offset=float(offset) + weight * self._offset,
            weight=weight * self._weight,
        )

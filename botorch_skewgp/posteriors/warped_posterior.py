r"""The posteriors of increasing functions of a quantity with a skewed posterior: warped outcomes, and probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property

import torch
from botorch.posteriors.transformed import TransformedPosterior
from torch import Tensor

from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior
from botorch_skewgp.truncated.univariate import normal_cdf, owens_t
from botorch_skewgp.warpings import Warping

REACH, STEP = 12.0, 0.4  # of the trapezoidal rule for moments, in standard deviations of a component


class MappedPosterior(TransformedPosterior):
    """The joint posterior of an increasing function of values with a `SkewGPPosterior`; subclasses define moments."""

    def __init__(self, latent: SkewGPPosterior, increasing: Callable[[Tensor], Tensor]) -> None:
        super().__init__(latent, sample_transform=increasing)
        self.latent = latent
        self.batch_shape = latent.batch_shape

    def quantile(self, value: Tensor | float) -> Tensor:
        """The marginal quantiles."""
        return self._sample_transform(self.latent.quantile(value))


class WarpedPosterior(MappedPosterior):
    r"""The joint posterior of `y = location + scale g^{-1}(z)`, where `z` has a `SkewGPPosterior` and `g` is a warping.

    Marginals are mixtures of warped normal distributions. Where the range of `g` has a lower end, the mass of `z` below
    it is at the lower end of the domain.

    Example:
        >>> posterior = WarpedPosterior(model.posterior(X), Arcsinh())  # X is batch_shape x q x d
        >>> posterior.quantile(torch.tensor([0.025, 0.5, 0.975]))  # 3 x batch_shape x q x 1

    Args:
        latent: The posterior of the warped values `z`, of one output.
        warping: The warping `g`; it is copied.
        location: The location of the outcome, in its units.
        scale: The scale of the outcome, positive.
    """

    def __init__(self, latent: SkewGPPosterior, warping: Warping, location: float = 0.0, scale: float = 1.0) -> None:
        super().__init__(latent, self._outcome)
        self.location = location
        self.scale = scale
        self.warping = deepcopy(warping).requires_grad_(False).to(latent.dtype)

    def _outcome(self, z: Tensor) -> Tensor:
        return self.location + self.scale * self.warping.inverse(z)

    # Marginal distribution functions

    def _at(self, function: Callable[[Tensor], Tensor], value: Tensor | float) -> Tensor:
        """A function of standardised outcomes, at values of the posterior."""
        return self.latent._at_values(lambda y: function((y - self.location) / self.scale), value)

    def cdf(self, value: Tensor | float) -> Tensor:
        """The marginal probabilities `P(y <= value)`; values as in `SkewGPPosterior.cdf`."""
        cdf = self.latent.marginals.cdf
        lowest = self.warping.domain[0]
        return self._at(lambda y: torch.where(y < lowest, 0.0, cdf(self.warping(y))), value)

    def probability_above(self, value: Tensor | float) -> Tensor:
        """The marginal probabilities `P(y > value)`, accurate where small; values as in `SkewGPPosterior.cdf`."""
        survival = self.latent.marginals.survival
        lowest = self.warping.domain[0]
        return self._at(lambda y: torch.where(y < lowest, 1.0, survival(self.warping(y))), value)

    def density(self, value: Tensor | float) -> Tensor:
        """The marginal densities, without the point mass at the end of a domain; values as in `SkewGPPosterior.cdf`."""
        density = self.latent.marginals.density
        return self._at(lambda y: density(self.warping(y)) * self.warping.log_derivative(y).exp() / self.scale, value)

    @property
    def median(self) -> Tensor:
        """The marginal medians, `batch_shape x q x 1`."""
        return self.quantile(0.5)

    # Moments

    def _expectation(self, center: Tensor | None = None) -> Tensor:
        """The means, or the mean squares around given numbers; `batch_shape x q`."""
        means = self.latent.component_means
        sd = self.latent.gaussian_variance.sqrt().unsqueeze(-1)
        num = math.ceil(REACH / STEP)
        t = STEP * torch.arange(-num, num + 1, dtype=self.dtype, device=self.device)
        total = torch.zeros_like(means)
        for node, weight in zip(t, torch.softmax(-0.5 * t.square(), dim=0), strict=True):
            y = self._outcome(means + sd * node)
            total = total + weight * (y if center is None else (y - center.unsqueeze(-1)).square())
        return self.latent.marginals.average(total)

    @cached_property
    def mean(self) -> Tensor:
        """The posterior mean, `batch_shape x q x 1`."""
        return self._expectation().unsqueeze(-1)

    @cached_property
    def variance(self) -> Tensor:
        """The marginal posterior variances, `batch_shape x q x 1`."""
        return self._expectation(self.mean.squeeze(-1)).unsqueeze(-1)


class ProbabilityPosterior(MappedPosterior):
    r"""The joint posterior of `p(x) = Phi(f(x) / sqrt(noise))`, for outcomes that are probabilities.

    The mean is the predictive probability; the variance is the uncertainty about the probability itself.

    Example:
        >>> posterior = ProbabilityPosterior(model.posterior(X), noise=model.likelihood.noise)
        >>> posterior.mean, posterior.variance  # each batch_shape x q x 1

    Args:
        latent: The posterior of the latent function.
        noise: The noise variance of the probit likelihood; shape `1`.
    """

    def __init__(self, latent: SkewGPPosterior, noise: Tensor) -> None:
        super().__init__(latent, self._link)
        self.noise = noise.to(latent.mean)

    @cached_property
    def mean(self) -> Tensor:
        """The predictive probabilities, `batch_shape x q x o`."""
        return self.latent.add_noise(self.noise).probability_above(0.0)

    @cached_property
    def variance(self) -> Tensor:
        r"""The marginal variances of the probabilities, `batch_shape x q x o`: given a draw, `E[p^2]` is the
        probability that two noisy readings of `f(x)` are both positive, `Phi(h) - 2 T(h, a)` with Owen's function `T`.
        """
        latent = self.latent
        noise = self.noise
        variance = latent.gaussian_variance.unsqueeze(-1)
        h = latent.component_means / (variance + noise).sqrt()
        a = (noise / (noise + 2 * variance)).sqrt()
        second = latent.marginals.average(normal_cdf(h) - 2 * owens_t(h, a))
        return (latent._to_event(latent._expand(second)) - self.mean.square()).clamp(min=0)  # rounding only

    def _link(self, latent: Tensor) -> Tensor:
        return normal_cdf(latent / self.noise.sqrt())

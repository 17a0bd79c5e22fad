r"""The posterior of a probability `Phi(f(x) / sqrt(noise))`, such as that of a label or of validity."""

from __future__ import annotations

from functools import cached_property

import torch
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior
from botorch_skewgp.truncated.univariate import normal_cdf, owens_t


class ProbabilityPosterior(Posterior):
    r"""The joint posterior of `p(x) = Phi(f(x) / sqrt(noise))`, for outcomes that are probabilities.

    The mean is the predictive probability; the variance tells what is not known about the probability itself.

    Example:
        >>> posterior = ProbabilityPosterior(model.posterior(X), noise=model.likelihood.noise)
        >>> posterior.mean, posterior.variance  # each batch_shape x q x 1
    """

    def __init__(self, latent: SkewGPPosterior, noise: Tensor) -> None:
        r"""
        Args:
            latent: The posterior of the latent function.
            noise: The noise variance of the probit likelihood; shape `1`.
        """
        self.latent = latent
        self.noise = noise.to(latent.mean)

    @property
    def device(self) -> torch.device:
        """The device of the posterior."""
        return self.latent.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the posterior."""
        return self.latent.dtype

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape."""
        return self.latent.batch_shape

    @property
    def base_sample_shape(self) -> torch.Size:
        """The base samples of the latent posterior."""
        return self.latent.base_sample_shape

    @property
    def batch_range(self) -> tuple[int, int]:
        """The range of batch dimensions over which base samples are shared."""
        return self.latent.batch_range

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return self.latent._extended_shape(sample_shape)

    @cached_property
    def _noisy(self) -> SkewGPPosterior:
        return self.latent.add_noise(self.noise)

    @property
    def mean(self) -> Tensor:
        """The predictive probabilities, `batch_shape x q x o`."""
        return self._noisy.probability_above(0.0)

    @cached_property
    def variance(self) -> Tensor:
        r"""The marginal variances of the probabilities, `batch_shape x q x o`.

        Given a draw, `E[p^2]` is the probability that two noisy readings of `f(x)` are both positive,
        `Phi(h) - 2 T(h, a)` with Owen's function `T` (Owen, Annals of Mathematical Statistics 27, 1956).
        """
        latent, noise = self.latent, self.noise
        variance = latent.gaussian_variance.unsqueeze(-1)
        h = latent.component_means / (variance + noise).sqrt()
        a = (noise / (noise + 2 * variance)).sqrt()
        second = latent.marginals.average(normal_cdf(h) - 2 * owens_t(h, a))
        return (latent._to_event(latent._expand(second)) - self.mean.square()).clamp(min=0)  # rounding only

    def quantile(self, value: Tensor) -> Tensor:
        r"""The marginal quantiles of the probabilities.

        Args:
            value: Levels in (0, 1); shapes as in `SkewGPPosterior.cdf`.
        """
        return self._link(self.latent.quantile(value))

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        r"""Samples of the probabilities, `sample_shape x batch_shape x q x o`."""
        return self._link(self.latent.rsample(sample_shape))

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        r"""Samples made from the latent posterior's base samples.

        Args:
            sample_shape: The sample shape.
            base_samples: Standard normal numbers, `sample_shape x base_sample_shape`.
        """
        return self._link(self.latent.rsample_from_base_samples(sample_shape, base_samples))

    def _link(self, latent: Tensor) -> Tensor:
        return normal_cdf(latent / self.noise.sqrt())

r"""The posterior of a probability `Phi(f(x) / sqrt(noise))`, such as that of a label or of validity."""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior
from botorch_skewgp.posteriors.warped_posterior import MappedPosterior
from botorch_skewgp.truncated.univariate import normal_cdf, owens_t


class ProbabilityPosterior(MappedPosterior):
    r"""The joint posterior of `p(x) = Phi(f(x) / sqrt(noise))`, for outcomes that are probabilities.

    The mean is the predictive probability; the variance is the uncertainty about the probability itself.

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
        super().__init__(latent, self._link)
        self.noise = noise.to(latent.mean)

    @cached_property
    def mean(self) -> Tensor:
        """The predictive probabilities, `batch_shape x q x o`."""
        return self.latent.add_noise(self.noise).probability_above(0.0)

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

    def _link(self, latent: Tensor) -> Tensor:
        return normal_cdf(latent / self.noise.sqrt())

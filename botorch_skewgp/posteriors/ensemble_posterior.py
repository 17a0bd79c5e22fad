r"""The posteriors of several models at the same points as one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors.fully_bayesian import MCMC_DIM, GaussianMixturePosterior
from linear_operator.operators import to_linear_operator
from torch import Tensor

from botorch_skewgp.posteriors.mixture_marginals import NormalMixtureMarginals
from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture
from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior


class SkewGPEnsemblePosterior(SkewGPPosterior):
    r"""The posteriors of an ensemble as one batch, whose last dimension is the member: `batch_shape x E x q x o`.

    Moments and distribution functions are those of the members, over which BoTorch's acquisition functions average;
    affine maps of the posterior are ensembles again. `mixture_mean`, `mixture_variance`, `mixture_cdf`, ... are those
    of the equally weighted mixture of all members, by the names of BoTorch's `GaussianMixturePosterior`.
    """

    @classmethod
    def stack(cls, posteriors: Sequence[SkewGPPosterior]) -> SkewGPEnsemblePosterior:
        """Put posteriors of the same shapes, whose draws and columns may differ in number, side by side; raises
        `UnsupportedError` if not all are conditioned on draws, or of fantasies, equally often.
        """
        batch_shape = posteriors[0].batch_shape
        mixtures = [p.mixture for p in posteriors]
        if len({len(mixture.levels) for mixture in mixtures}) > 1:
            raise UnsupportedError(
                "All members of an ensemble must be conditioned on draws, or of fantasies, equally often."
            )
        mixture = RepresenterMixture.stack(mixtures)

        def side_by_side(tensors: Sequence[Tensor], event_dims: int) -> Tensor:
            expanded = [t.expand(*batch_shape, *t.shape[t.ndim - event_dims :]) for t in tensors]
            return torch.stack(expanded, dim=-1 - event_dims)

        def at_level(place: int) -> Tensor:
            columns = mixture.levels[place].root.shape[-2]
            crosses = [p._crosses[place] for p in posteriors]
            return side_by_side([torch.nn.functional.pad(c, (0, columns - c.shape[-1])) for c in crosses], 2)

        return cls(
            location=side_by_side([p._location for p in posteriors], 1),
            cross_covariance=[at_level(place) for place in range(len(mixture.levels))],
            prior_covariance=side_by_side([to_linear_operator(p._prior).to_dense() for p in posteriors], 2),
            mixture=mixture,
            num_outputs=posteriors[0]._num_outputs,
        )

    @property
    def mixture_mean(self) -> Tensor:
        """The mean of the mixture of all members, `batch_shape x q x o` without the members' dimension."""
        return self.mean.mean(MCMC_DIM)

    @property
    def mixture_variance(self) -> Tensor:
        """The variance of the mixture of all members."""
        return self.variance.mean(MCMC_DIM) + self.mean.var(MCMC_DIM, correction=0)

    @property
    def _mixture_marginals(self) -> NormalMixtureMarginals:
        """The marginal distributions of the mixture of all members, a batch of shape `batch_shape x e`."""
        members = (p.expand(self.component_means.shape) for p in self.marginals.parameters)  # ... x E x e x S
        means, standard_deviations = (p.movedim(MCMC_DIM, -2).flatten(-2) for p in members)
        size = self.batch_shape[-1]
        probabilities = (self.probabilities / size).expand(size, -1).flatten()
        return NormalMixtureMarginals(means, standard_deviations, probabilities)

    def _mixture_at(self, function: Callable[[Tensor], Tensor], value: Tensor | float) -> Tensor:
        """A function of the mixture's marginals at values, `value.shape x batch_shape x q x o` without the members."""
        value = torch.as_tensor(value, dtype=self.dtype, device=self.device)
        shape = self.mixture_mean.shape
        result = function(value.reshape(value.shape + (1,) * (len(shape) - 1)))
        return result.reshape(value.shape + shape)

    def mixture_cdf(self, value: Tensor | float) -> Tensor:
        """The marginal probabilities `P(f <= value)` of all members' mixture, `value.shape x batch_shape x q x o`."""
        return self._mixture_at(self._mixture_marginals.cdf, value)

    def mixture_density(self, value: Tensor | float) -> Tensor:
        """The marginal densities of the mixture of all members; values as in `mixture_cdf`."""
        return self._mixture_at(self._mixture_marginals.density, value)

    def mixture_quantile(self, value: Tensor | float) -> Tensor:
        """The marginal quantiles of all members' mixture, as `mixture_cdf`; `ValueError` outside of (0, 1)."""
        return self._mixture_at(self._mixture_marginals.quantile, value)

    def moment_matched(self) -> GaussianMixturePosterior:
        """The Gaussian posteriors of the same means and covariances, one for each member."""
        return GaussianMixturePosterior(super().moment_matched().distribution)

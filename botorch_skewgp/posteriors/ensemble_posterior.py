r"""The posteriors of several models at the same points as one batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors.fully_bayesian import MCMC_DIM
from linear_operator.operators import to_linear_operator
from torch import Tensor

from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture
from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior


class SkewGPEnsemblePosterior(SkewGPPosterior):
    r"""The posteriors of an ensemble as one batch, whose last dimension is the member: `batch_shape x E x q x o`.

    BoTorch's acquisition functions average over the members. The equally weighted mixture of all members is at hand as
    `mixture_mean`, `mixture_variance` and `mixture_cdf`, by the names of BoTorch's `GaussianMixturePosterior`.
    """

    @classmethod
    def stack(cls, posteriors: Sequence[SkewGPPosterior]) -> SkewGPEnsemblePosterior:
        r"""Put posteriors at the same points side by side.

        Args:
            posteriors: Posteriors of the same shapes.
        """
        batch_shape, first = posteriors[0].batch_shape, posteriors[0]
        if any(len(p.mixture.levels) > 1 for p in posteriors):
            raise UnsupportedError("Fantasies of an ensemble are not supported; make fantasies of its members.")

        def side_by_side(tensors: Sequence[Tensor], event_dims: int) -> Tensor:
            expanded = [t.expand(*batch_shape, *t.shape[t.ndim - event_dims :]) for t in tensors]
            return torch.stack(expanded, dim=-1 - event_dims)

        return cls(
            location=side_by_side([p._location for p in posteriors], 1),
            cross_covariance=side_by_side([p._crosses[0] for p in posteriors], 2),
            prior_covariance=side_by_side([to_linear_operator(p._prior).to_dense() for p in posteriors], 2),
            mixture=RepresenterMixture(
                weights=torch.stack([p.mixture.weights for p in posteriors]),
                root=torch.stack([p.mixture.root for p in posteriors]),
            ),
            num_outputs=first._num_outputs,
        )

    @property
    def mixture_mean(self) -> Tensor:
        """The mean of the mixture of all members, `batch_shape x q x o` without the members' dimension."""
        return self.mean.mean(MCMC_DIM)

    @property
    def mixture_variance(self) -> Tensor:
        """The variance of the mixture of all members."""
        return self.variance.mean(MCMC_DIM) + self.mean.var(MCMC_DIM, correction=0)

    def mixture_cdf(self, value: Tensor | float) -> Tensor:
        r"""The marginal probabilities `P(f <= value)` under the mixture of all members.

        Args:
            value: A number.
        """
        return self.cdf(value).mean(MCMC_DIM)

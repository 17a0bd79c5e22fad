"""Samples of a mixture of normal distributions as smooth functions of its points, for given base samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture


@dataclass(frozen=True, eq=False)
class MixtureSamples:
    """A map from base samples to samples: the first one picks a component, the others drive its Gaussian part."""

    location: Tensor  # prior mean, `batch_shape x e`
    crosses: Sequence[Tensor]  # prior covariance with the columns of every level of the mixture, `batch_shape x e x n`
    root: Tensor  # root of the covariance that all components share, `batch_shape x e x e`
    mixture: RepresenterMixture
    component_means: Callable[[], Tensor]  # computes the means of all components, `batch_shape x e x S`
    batch_shape: torch.Size

    def at(self, base_samples: Tensor, num_sample_dims: int) -> Tensor:
        """The samples, `sample_shape x batch_shape x e`.

        Base samples are `sample_shape x batch_shape x (1 + e)`, possibly broadcast.
        """
        base_samples = base_samples.to(self.location)
        sample_shape = base_samples.shape[:num_sample_dims]
        event = sample_shape + self.batch_shape + self.location.shape[-1:]
        shared = self._shared_by_batch(base_samples, num_sample_dims)
        if shared is not None:
            return self._mapped(shared).movedim(-1, 0).reshape(event)
        normal = base_samples[..., 1:].reshape(sample_shape.numel(), *base_samples.shape[num_sample_dims:-1], event[-1])
        deviation = (self.root @ normal.movedim(0, -1)).movedim(-1, 0)
        means = self._chosen_means(base_samples[..., 0], num_sample_dims)
        return (means + deviation.reshape(sample_shape + deviation.shape[1:])).expand(event)

    @property
    def _has_equal_weights(self) -> bool:
        """Whether the whole batch has the same draws, equally likely, of one level."""
        mixture = self.mixture
        return mixture.log_weights is None and mixture.parent is None and mixture.weights.ndim == 2

    def _shared_by_batch(self, base_samples: Tensor, num_sample_dims: int) -> Tensor | None:
        """Base samples as `k x (1 + e)`, if the whole batch has the same ones and the same draws."""
        if not self._has_equal_weights:
            return None
        num_samples = base_samples.shape[:num_sample_dims].numel()
        for d in range(num_sample_dims, base_samples.ndim - 1):
            if base_samples.shape[d] != 1 and base_samples.stride(d) != 0:
                return None
            base_samples = base_samples.narrow(d, 0, 1)
        return base_samples.reshape(num_samples, base_samples.shape[-1])

    def _mapped(self, base_samples: Tensor) -> Tensor:
        """Samples from base samples that the whole batch shares, `k x (1 + e)`; `batch_shape x e x k`.

        One product of a factor of the points and one of the base samples.
        """
        parts = (self.crosses[0], self.root, self.location.unsqueeze(-1))
        of_points = torch.cat([part.expand(*self.batch_shape, *part.shape[-2:]) for part in parts], dim=-1)
        return rounded_product(of_points, self.mixture.factors_of_samples(base_samples), self.location)

    def _chosen_means(self, normal: Tensor, num_sample_dims: int) -> Tensor:
        """Component means of the draws that the base samples pick; `sample_shape x batch_shape x e`."""
        lead, mixture = normal.shape[:num_sample_dims], self.mixture
        num_values = self.batch_shape.numel() * self.location.shape[-1]
        if self._has_equal_weights and mixture.weights.shape[0] * normal.numel() <= num_values * mixture.num_draws:
            # fewer representer weights of the draws picked than means of all draws
            which = mixture.pick(normal.reshape(lead.numel(), *normal.shape[num_sample_dims:]))
            chosen = mixture.weights_by_draw[which].movedim(0, -1)
            means = self.location.unsqueeze(-1) + rounded_product(self.crosses[0], chosen, self.location)
            return means.movedim(-1, 0).unflatten(0, lead) if lead else means.squeeze(-1)
        which, means = mixture.pick(normal.expand(lead + self.batch_shape)), self.component_means()
        means = means.expand(lead + self.batch_shape + means.shape[-2:])
        index = which.unsqueeze(-1).unsqueeze(-1).expand(*which.shape, means.shape[-2], 1)
        return means.gather(-1, index).squeeze(-1)


def rounded_product(cross: Tensor, columns: Tensor, like: Tensor) -> Tensor:
    """A covariance times a matrix, in the covariance's dtype and then rounded to another."""
    return (cross @ columns.to(cross)).to(like)

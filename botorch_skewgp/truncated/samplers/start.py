r"""Feasible rows to start the chains from."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.samplers.feasibility import feasible_point
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


def feasible_start(
    distribution: TruncatedNormal,
    num_chains: int,
    generator: torch.Generator | None = None,
    approximation: ExpectationPropagation | None = None,
) -> Tensor:
    r"""Find rows inside their bounds, `num_chains x m`, without a linear program.

    *Every row has noise.* `h` is drawn from the Gaussian of expectation propagation, or from the prior, and `u`
    given `h` from univariate truncated normals.

    *Some rows have none, and `Gamma` is dense and has full rank.* Any `u` inside the bounds has a density, so every
    row is drawn on its own around the mean of `h`.

    *Some rows have none, and few latent coordinates determine them.* With `h = mean + F z`, some `z` must put those
    rows inside their bounds: all chains leave the one that `feasible_point` finds, in directions of their own. If there
    is none, a `ContradictionError` names the rows.
    """
    like, noisy_prior = distribution.mean, distribution.noisy_prior
    if bool((distribution.noise > 0).all()):
        if approximation is None:
            latent = noisy_prior.sample_latent(num_chains, generator)
        else:
            mean, root = approximation.latent_mean.to(like), approximation.latent_root.to(like)
            latent = mean + _randn(like, num_chains, root.shape[-1], generator) @ root.mT
        h = distribution.noiseless(latent)
        return distribution.factor.draw_given(h, open_uniform(h, generator))
    if noisy_prior.has_full_rank:
        centre, variance = distribution.mean, distribution.gamma_diagonal
        if approximation is not None:
            centre = distribution.noiseless(approximation.latent_mean.to(like).unsqueeze(0)).squeeze(0)
            root = distribution.prior.times(approximation.latent_root.to(like).mT)
            variance = root.square().sum(-2) + distribution.noise
        # a row without spread in the approximation still needs a scale
        least = torch.finfo(variance.dtype).eps * distribution.gamma_diagonal
        scale = torch.maximum(variance, least).sqrt()
        centre = centre.expand(num_chains, -1)
        return distribution.factor.draw(centre, scale, open_uniform(centre, generator))
    h = _between_walls(distribution, approximation).expand(num_chains, -1)
    return distribution.factor.draw_given(h, open_uniform(h, generator))


def _randn(like: Tensor, k: int, size: int, generator: torch.Generator | None) -> Tensor:
    return torch.randn(k, size, dtype=like.dtype, device=like.device, generator=generator)


def require_feasible(distribution: TruncatedNormal, approximation: ExpectationPropagation | None = None) -> None:
    """Raise a `ContradictionError` that names them if rows without noise contradict each other."""
    if bool((distribution.noise > 0).all()) or distribution.noisy_prior.has_full_rank:
        return
    _between_walls(distribution, approximation)


def _between_walls(distribution: TruncatedNormal, approximation: ExpectationPropagation | None) -> Tensor:
    """Noiseless rows with those without noise inside their bounds, from an approximation's mean if there is one."""
    root = distribution.prior.minimal_root()
    z = root.new_zeros(root.shape[-1])
    if approximation is not None and bool(approximation.latent_mean.isfinite().all()):
        z = approximation.latent_mean.to(root)[len(approximation.latent_mean) - root.shape[-1] :]
    return distribution.mean + root @ feasible_point(distribution, root, z)

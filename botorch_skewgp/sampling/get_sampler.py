r"""The default Monte Carlo sampler of the posteriors of this package."""

from __future__ import annotations

import torch
from botorch.sampling.get_sampler import GetSampler
from botorch.sampling.normal import IIDNormalSampler, NormalMCSampler, SobolQMCNormalSampler
from torch.quasirandom import SobolEngine

from botorch_skewgp.posteriors.mixture_posterior import MixturePosterior


@GetSampler.register(MixturePosterior)
def get_skew_gp_sampler(
    posterior: MixturePosterior, sample_shape: torch.Size, *, seed: int | None = None
) -> NormalMCSampler:
    """Sobol base samples, or independent ones where their dimension is beyond the Sobol engine's."""
    if posterior.base_sample_shape[-1] > SobolEngine.MAXDIM:
        return IIDNormalSampler(sample_shape=sample_shape, seed=seed)
    return SobolQMCNormalSampler(sample_shape=sample_shape, seed=seed)

r"""The Gaussian sites that take the place of rows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import Factor, Sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


def multiply_sites(distribution: TruncatedNormal, sites: Sites) -> Factor | None:
    """The product of the prior and sites; `None` where rounding leaves no positive definite matrix."""
    total = Sites(*(distribution.times_count(entry) for entry in sites))
    return distribution.prior.given(distribution.mean, sites, total)


def match_moments(distribution: TruncatedNormal, mean: Tensor, variance: Tensor, non_negative: bool = False) -> Sites:
    """The sites that match the tilted distributions' moments; or the means alone, for precisions not to be negative."""
    scale, t_mean, t_variance = distribution.factor.moments(mean, variance)
    lost = 1 - t_variance
    if non_negative or distribution.heights is None:
        lost = lost.clamp(min=0)  # truncation to an interval never widens a normal; rounding only
    left = distribution.noise + variance * (1 - lost if non_negative else t_variance)
    if distribution.factor.has_noise:
        return Sites(lost / left, (t_mean * scale + mean * lost) / left)
    left = torch.where(left > 0, left, 1.0)
    precision, shift = lost / left, (t_mean * scale + mean * lost) / left
    certain = (variance <= 0) & (distribution.noise <= 0)
    return Sites(precision.masked_fill(certain, 0.0), shift.masked_fill(certain, 0.0))


def next_sites(distribution: TruncatedNormal, factor: Factor, sites: Sites, non_negative: bool = False) -> Sites:
    """The sites that match moments; a row without a proper cavity keeps its site, or half of it beside slips."""
    mean, variance = factor.moments.cavity_mean, factor.moments.cavity_variance
    if variance.numel() == 0:
        return sites
    target = match_moments(distribution, mean, variance, non_negative)
    if float(variance.amin()) >= 0 and math.isfinite(float((target.precision + target.shift).sum())):
        return target
    proper = (variance >= 0) & mean.isfinite() & variance.isfinite()
    target = match_moments(
        distribution,
        torch.where(proper, mean, distribution.mean),
        torch.where(proper, variance, 1.0),
        non_negative,
    )
    proper = proper & target.precision.isfinite() & target.shift.isfinite()
    share = 1.0 if distribution.heights is None else 0.5
    return Sites(*(torch.where(proper, new, share * old) for new, old in zip(target, sites, strict=True)))

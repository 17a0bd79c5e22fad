"""Truncated normals of rows that mostly have mean, bounds and noise in common."""

import math

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = math.inf


def make(mean, prior, lower=0.0, upper=INF, noise=0.0) -> TruncatedNormal:
    """From a mean, a prior or its covariance, and what each row has or all have."""
    mean = torch.as_tensor(mean, dtype=torch.float64)
    if not isinstance(prior, LowRankPrior):
        prior = torch.as_tensor(prior, dtype=torch.float64)
    rows = (torch.as_tensor(value, dtype=torch.float64).expand_as(mean) for value in (lower, upper, noise))
    return TruncatedNormal(mean, prior, *rows)


def low_rank(root) -> LowRankPrior:
    return LowRankPrior(torch.as_tensor(root, dtype=torch.float64))


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)

"""Optimisation of acquisition functions over discrete and continuous inputs."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

MIN_GAIN = 1e-3  # of a round, in nats
MIN_SHARE = 1e-4  # of the interquartile range over the domain, for values that are not logarithmic
NUM_SPREAD = 64  # points that estimate this range


def mixed_search_options(acquisition: AcquisitionFunction, bounds: Tensor) -> dict[str, Any]:
    r"""Options of `optimize_acqf_mixed_alternating`, which searches by turns in the discrete and the free inputs.

    Starts are random points instead of maxima between the values, which lie together; the free inputs take up to 20
    steps instead of 8; and rounds end when one gains next to nothing. BoTorch's own tolerance, also that of a gradient,
    is 1e-8: below the rounding of most acquisition functions, so that line searches end with warnings.

    Args:
        acquisition: The acquisition function.
        bounds: The lower and upper bounds that are searched, `2 x d`.
    """
    tolerance = MIN_GAIN if acquisition._log else _little(acquisition, bounds)
    return {"initialization_strategy": "random", "maxiter_continuous": 20, "tol": tolerance}


@torch.no_grad()
def _little(acquisition: AcquisitionFunction, bounds: Tensor) -> float:
    """A small difference of an acquisition function's values: a share of their interquartile range in the domain."""
    values = acquisition(draw_sobol_samples(bounds, n=NUM_SPREAD, q=1, seed=0))
    finite = values[values.isfinite()]
    spread = (finite.quantile(0.75) - finite.quantile(0.25)).item() if len(finite) else 0.0
    return MIN_SHARE * max(spread, torch.finfo(values.dtype).eps ** 0.5)

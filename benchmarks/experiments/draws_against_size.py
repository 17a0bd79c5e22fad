"""Time of 1,000 draws against the number of labels (skew Gaussian processes for classification, figure 4).

Labels of a probit model at standard normal inputs in one dimension, with lengthscale 0.5 and variance 2. The paper
prefers LIN-ESS to elliptical slice sampling, which rejects, for its speed; times alone do not tell how much a draw is
worth, so that effective draws a second stand beside them. A trial is a data set.
"""

from __future__ import annotations

import torch

from benchmarks._problems import positive_rows, squared_exponential
from benchmarks._race import grid
from benchmarks.experiments._draws import size_experiment
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

SIZES = (50, 100, 200, 400, 800, 1600)
LENGTHSCALE, VARIANCE, NUM_DRAWS = 0.5, 2.0, 1000
METHODS = ("SkewGP", "LIN-ESS", "elliptical slice")


def _labels(n: int, seed: int) -> TruncatedNormal:
    """The rows of labels at points in one dimension."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    K = VARIANCE * (squared_exponential(x, LENGTHSCALE) + 1e-8 * torch.eye(n, dtype=x.dtype))
    latent = torch.linalg.cholesky(K) @ torch.randn(n, generator=generator, dtype=x.dtype)
    sign = torch.where(latent + torch.randn(n, generator=generator, dtype=x.dtype) > 0, 1.0, -1.0).to(K)
    return positive_rows(sign.unsqueeze(-1) * K * sign, 1.0)


EXPERIMENT = size_experiment(_labels, NUM_DRAWS, grid(n=SIZES), METHODS, "draws_against_size")

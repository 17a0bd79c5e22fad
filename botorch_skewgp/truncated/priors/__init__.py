"""Gaussian priors of the rows, and their products with Gaussian sites.

`base` is the interface. Kinds are `low_rank` (by a root), `dense` (by a covariance), `weighted` (each row weighs a
few rows of a matrix) and `bordered` (low rank plus block diagonal). `square` has the products of few rows, and
`noisy` adds the rows' noise.
"""

from botorch_skewgp.truncated.priors.base import Factor, RowPrior, Sites
from botorch_skewgp.truncated.priors.bordered import Blocks, BorderedPrior
from botorch_skewgp.truncated.priors.dense import DensePrior
from botorch_skewgp.truncated.priors.low_rank import LowRankPrior
from botorch_skewgp.truncated.priors.noisy import NoisyPrior
from botorch_skewgp.truncated.priors.weighted import WeightedPrior, keeps_digits

__all__ = [
    "Blocks",
    "BorderedPrior",
    "DensePrior",
    "Factor",
    "LowRankPrior",
    "NoisyPrior",
    "RowPrior",
    "Sites",
    "WeightedPrior",
    "keeps_digits",
]

"""Gaussian priors of the rows, and their products with Gaussian sites and with noise.

`base` is the interface; `dense`, `low_rank`, `weighted` (low rank, each row a weighted sum of few rows of a matrix) and
`bordered` (low rank plus block diagonal) are its kinds.
"""

from botorch_skewgp.truncated.priors.base import Factor, NoisyPrior, PriorGivenSites, RowPrior, Sites
from botorch_skewgp.truncated.priors.bordered import Blocks, BorderedPrior, NoisyBorderedPrior
from botorch_skewgp.truncated.priors.dense import DensePrior
from botorch_skewgp.truncated.priors.low_rank import LowRankPrior, low_rank_prior
from botorch_skewgp.truncated.priors.weighted import WeightedPrior, keeps_digits

__all__ = [
    "Blocks",
    "BorderedPrior",
    "DensePrior",
    "Factor",
    "LowRankPrior",
    "NoisyBorderedPrior",
    "NoisyPrior",
    "PriorGivenSites",
    "RowPrior",
    "Sites",
    "WeightedPrior",
    "keeps_digits",
    "low_rank_prior",
]

"""Gaussian priors of the rows, and their products with Gaussian sites: by a root or a covariance (`low_rank`), by rows
that weigh a few rows of a matrix (`weighted`), low rank plus block diagonal (`bordered`), and with noise (`noisy`).
"""

from botorch_skewgp.truncated.priors.bordered import Blocks, BorderedPrior
from botorch_skewgp.truncated.priors.low_rank import DensePrior, LowRankPrior, Map, Moments, SiteProduct, Sites
from botorch_skewgp.truncated.priors.noisy import NoisyPrior
from botorch_skewgp.truncated.priors.weighted import WeightedPrior, keeps_digits

__all__ = [
    "Blocks",
    "BorderedPrior",
    "DensePrior",
    "LowRankPrior",
    "Map",
    "Moments",
    "NoisyPrior",
    "SiteProduct",
    "Sites",
    "WeightedPrior",
    "keeps_digits",
]

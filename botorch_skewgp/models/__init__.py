"""Models: the skew Gaussian process, its skew prior, its Gaussian of equal moments and ensembles of it.

The Bayesian transformed Gaussian process lives in `botorch_skewgp.transformed`; its name is found here too.
"""

from botorch_skewgp.models.committee import Committee
from botorch_skewgp.models.defaults import default_covar_module, default_mean_module
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.models.judge_summary import JudgeSummary
from botorch_skewgp.models.moment_matched import MomentMatchedModel
from botorch_skewgp.models.panel import default_judge_covar_module
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.transformed import BayesianTransformedGP

__all__ = [
    "BayesianTransformedGP",
    "Committee",
    "FullyBayesianSkewGP",
    "JudgeSummary",
    "MomentMatchedModel",
    "SkewGP",
    "SkewPrior",
    "default_covar_module",
    "default_judge_covar_module",
    "default_mean_module",
]

"""Models: `SkewGP`, and the steps from its observations to its posterior, a file each.

`inputs` and `transforms` check observations and transform outcomes; `defaults`, `skew_prior` and `panel` are parts of
the `latent_prior` over columns, `row_model` has rows under it and `inducing` rows over few columns: `prior_model` is
these in one. `snapshot` is a frozen copy with draws, `state` finds out whether the model has changed since,
`contradictions` and `few_answers` warn, `latent_model` has the posterior and takes more data, by mixtures of
`conditioning`; `skew_gp` is the BoTorch model. `committee` has the utilities of several judges, `fully_bayesian` is an
ensemble, `moment_matched` the Gaussian of equal moments.
"""

from botorch_skewgp.models.committee import Committee
from botorch_skewgp.models.defaults import default_covar_module, default_judge_covar_module, default_mean_module
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.models.moment_matched import MomentMatchedModel
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.transformed import BayesianTransformedGP

__all__ = [
    "BayesianTransformedGP",
    "Committee",
    "FullyBayesianSkewGP",
    "MomentMatchedModel",
    "SkewGP",
    "SkewPrior",
    "default_covar_module",
    "default_judge_covar_module",
    "default_mean_module",
]

"""Models: `SkewGP`, and the steps from its observations to its posterior, a file each.

`inputs` and `transforms` check and transform inputs; `defaults` and `skew_prior` are parts of the prior, `panel` has
the columns of several judges, `latent_prior` the Gaussian prior over columns. `row_model` has rows under that prior,
given the numbers among them; `inducing` writes rows over many points as rows over few. `marginal_likelihood` has the
parts of the evidence. `snapshot` is a frozen copy of the model with the draws of its rows; `state` finds out whether
the model has changed since, `contradictions` and `few_answers` warn. `latent_model` is all this in units of the latent
function, `conditioning` adds data, `skew_gp` is the BoTorch model, `committee` has the utilities of several judges,
`fully_bayesian` is an ensemble over hyperparameters, `moment_matched` the Gaussian of equal moments.
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

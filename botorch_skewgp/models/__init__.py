"""Models: `SkewGP`, and the steps from its observations to its posterior, a file each.

`inputs` and `transforms` check observations and transform outcomes; `defaults`, `skew_prior` and `panel` are parts of
the `latent_prior` over columns, `row_plan` finds the rows of data, once for many hyperparameters, `row_model` has rows
under a prior and `inducing` rows over few columns: `prior_model` is these in one. `fitted` has the fitted state as a
value, from which posteriors and fantasies are made, by mixtures of `conditioning`; `answers` of a judge are averages
over what is open of one, `slips` has the probabilities of slips, `contradictions` and `few_answers` warn. `skew_gp` is
the BoTorch model, whose state is made anew when `state` finds a change. `committee` has the utilities of several
judges, `fully_bayesian` is an ensemble, `moment_matched` the Gaussian of equal moments.
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

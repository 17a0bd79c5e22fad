"""Models: `SkewGP`, and what stands between its observations and its posterior.

From data to posterior, a file each:

- `inputs`, `datasets`, `transforms`: what a model is given, checked and brought to its units.
- `panel`: judges, as columns; `means`, `skew_prior`, `defaults`: the parts of the prior.
- `latent_prior.LatentPrior`: the Gaussian prior over columns; a column is a point and what is read there, by whom.
- `row_model.RowModel`: rows under that prior, given the numbers among them; `inducing` writes rows of many points as
  rows of few.
- `marginal_likelihood.Evidence`: what the evidence is made of.
- `snapshot.Snapshot`: the model as it was at one moment, with the draws of its rows and the mixture that they make.
- `latent_model.LatentModel`: the above as one model of the latent function; `conditioning` and `fantasy` condition it
  on more, `unified_skew_normal` gives the papers' parameters, `contradictions` warns of data that the kernel excludes.
- `committee.Committee`, `judge_summary.JudgeSummary`: several judges as the outputs of one model, and as a table.
- `skew_gp.SkewGP`: the same in units of the outcome, as a BoTorch model.
- `fully_bayesian.FullyBayesianSkewGP`, `moment_matched.MomentMatchedModel`: an ensemble over hyperparameters, and the
  Gaussian of equal moments; `coordinates` unbounds constrained parameters.

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

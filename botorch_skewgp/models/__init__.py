"""Models: `SkewGP`, and the steps from its observations to its posterior.

From data to posterior, a file each:

- `inputs`, `transforms`: checks of inputs, and their transforms.
- `defaults`, `skew_prior`: the parts of the prior.
- `panel`: the columns of a model of several judges.
- `latent_prior.LatentPrior`: the Gaussian prior over columns; a column is a value or slope at a point, perhaps of one
  judge.
- `row_model.RowModel`: rows under that prior, given the numbers among them; `inducing` writes rows over many points as
  rows over few.
- `marginal_likelihood.Evidence`: the parts of the evidence.
- `snapshot.Snapshot`: a frozen copy of the model, with the draws of its rows, their mixture, and the posterior at a
  point; `state` finds out whether the model has changed since, `contradictions` warns of contradictory data, and
  `slips` has the probabilities that answers are slips.
- `latent_model.LatentModel`: the above as one model of the latent function; `conditioning` adds data, in closed form
  for fantasies.
- `skew_gp.SkewGP`: the same in units of the outcome, as a BoTorch model; `committee.Committee` has the utilities of
  several judges as outputs.
- `fully_bayesian.FullyBayesianSkewGP`, `moment_matched.MomentMatchedModel`: an ensemble over hyperparameters, and the
  Gaussian of equal moments; `few_answers` warns where a single model claims too much.

The Bayesian transformed Gaussian process of `botorch_skewgp.transformed` can be imported from here too.
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

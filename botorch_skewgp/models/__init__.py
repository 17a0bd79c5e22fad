"""Models: `SkewGP`, and the steps from its observations to its posterior.

From data to posterior, a file each:

- `inputs`, `transforms`: what a model is given, checked and brought to its units.
- `defaults`, `skew_prior`: the parts of the prior.
- `judges`: several judges, as columns, as the outputs of one model (`Committee`), and as a table (`JudgeSummary`,
  `TasteDirections`).
- `latent_prior.LatentPrior`: the Gaussian prior over columns; a column is a point and what is read there, by whom.
- `row_model.RowModel`: rows under that prior, given the numbers among them; `inducing` writes rows of many points as
  rows of few.
- `marginal_likelihood.Evidence`: what the evidence is made of.
- `snapshot.Snapshot`: the model as it was at one moment, with the draws of its rows, the mixture that they make, and
  the posterior at a point; `contradictions` warns of data that the kernel excludes.
- `latent_model.LatentModel`: the above as one model of the latent function; `conditioning` conditions it on more, in
  closed form for fantasies.
- `skew_gp.SkewGP`: the same in units of the outcome, as a BoTorch model; `unified_skew_normal` has the papers'
  parameters of its posterior.
- `fully_bayesian.FullyBayesianSkewGP`, `moment_matched.MomentMatchedModel`: an ensemble over hyperparameters, and the
  Gaussian of equal moments.

The Bayesian transformed Gaussian process lives in `botorch_skewgp.transformed`; its name is found here too.
"""

from botorch_skewgp.models.defaults import default_covar_module, default_judge_covar_module, default_mean_module
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.models.judges import Committee, JudgeSummary, TasteDirections
from botorch_skewgp.models.moment_matched import MomentMatchedModel
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
    "TasteDirections",
    "default_covar_module",
    "default_judge_covar_module",
    "default_mean_module",
]

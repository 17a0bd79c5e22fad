"""Posteriors: the skewed posterior of a SkewGP as a BoTorch `Posterior`, that of a probability, that of a warped
outcome, those of an ensemble side by side, and the distribution functions of any one-dimensional mixture, on which they
stand.
"""

from botorch_skewgp.posteriors.ensemble_posterior import SkewGPEnsemblePosterior
from botorch_skewgp.posteriors.mixture_marginals import MixtureMarginals, NormalMixtureMarginals
from botorch_skewgp.posteriors.probability_posterior import ProbabilityPosterior
from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture
from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior
from botorch_skewgp.posteriors.warped_posterior import WarpedPosterior

__all__ = [
    "MixtureMarginals",
    "NormalMixtureMarginals",
    "ProbabilityPosterior",
    "RepresenterMixture",
    "SkewGPEnsemblePosterior",
    "SkewGPPosterior",
    "WarpedPosterior",
]

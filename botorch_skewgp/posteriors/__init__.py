"""Posteriors of a SkewGP, a probability, a warped outcome and an ensemble, and their one-dimensional mixtures."""

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

"""Posteriors of a SkewGP, an ensemble, a warped outcome and a probability, and mixtures, which are their marginals."""

from botorch_skewgp.posteriors.ensemble_posterior import SkewGPEnsemblePosterior
from botorch_skewgp.posteriors.mixture_marginals import MixtureMarginals, NormalMixtureMarginals
from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture
from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior
from botorch_skewgp.posteriors.warped_posterior import ProbabilityPosterior, WarpedPosterior

__all__ = [
    "MixtureMarginals",
    "NormalMixtureMarginals",
    "ProbabilityPosterior",
    "RepresenterMixture",
    "SkewGPEnsemblePosterior",
    "SkewGPPosterior",
    "WarpedPosterior",
]

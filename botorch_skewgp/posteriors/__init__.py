"""Posteriors of a SkewGP, a probability, a warped outcome and an ensemble, and their one-dimensional mixtures.

`skew_gp_posterior` is the posterior, of weights in `representer_mixture`. `ensemble_posterior` has several of them;
`warped_posterior` and `probability_posterior` are of increasing functions, and `mixture_posterior` is the base of those
whose marginals are mixtures. `mixture_marginals` has cdf, density and quantile of mixtures.
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

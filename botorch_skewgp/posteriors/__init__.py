"""Posteriors of a SkewGP and their one-dimensional mixtures.

`skew_gp_posterior` is the posterior, of weights in `representer_mixture`; `ensemble_posterior` has several of them, and
`averaged_posterior` is the mixture of several distributions.
`warped_posterior` has those of increasing functions, warped outcomes and probabilities. `mixture_posterior` is the base
of posteriors whose marginals are mixtures, and `mixture_marginals` has their cdf, density and quantile.
"""

from botorch_skewgp.posteriors.averaged_posterior import AveragedPosterior
from botorch_skewgp.posteriors.ensemble_posterior import SkewGPEnsemblePosterior
from botorch_skewgp.posteriors.mixture_marginals import MixtureMarginals, NormalMixtureMarginals
from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture
from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior
from botorch_skewgp.posteriors.warped_posterior import ProbabilityPosterior, WarpedPosterior

__all__ = [
    "AveragedPosterior",
    "MixtureMarginals",
    "NormalMixtureMarginals",
    "ProbabilityPosterior",
    "RepresenterMixture",
    "SkewGPEnsemblePosterior",
    "SkewGPPosterior",
    "WarpedPosterior",
]

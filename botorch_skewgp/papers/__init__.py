"""What the founding papers define and no default uses; nothing else in the package imports this room.

- `unified_skew_normal`: `f(X)` given data is a unified skew-normal vector.
- `batches`, `stochastic`: objectives for `fit_gpytorch_mll`: Propositions 1 and 2, and a composite likelihood.
- `corrections`: log normalisers beside expectation propagation's, for `SkewGP.log_marginal_likelihood(method)`.
- `arcsine`: the covariance of a network of infinitely many units, of the paper on classification.
- `linear_ess`: linear elliptical slice sampling, as `DrawSettings(sampler=LinearEllipticalSliceSampler)`.
- `phases`: the signs of a skew prior, by the evidence.
- `dueling`: the challengers of the paper on preferences; `safety`: the penalised bound of that on mixed observations.
"""

from botorch_skewgp.papers.arcsine import ArcsineKernel
from botorch_skewgp.papers.batches import BatchBoundMarginalLogLikelihood, BatchedMarginalLogLikelihood
from botorch_skewgp.papers.corrections import corrected_log_normalizer
from botorch_skewgp.papers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.papers.phases import fit_phases
from botorch_skewgp.papers.stochastic import StochasticMarginalLogLikelihood
from botorch_skewgp.papers.unified_skew_normal import UnifiedSkewNormalParameters, sun_parameters, unified_skew_normal

__all__ = [
    "ArcsineKernel",
    "BatchBoundMarginalLogLikelihood",
    "BatchedMarginalLogLikelihood",
    "LinearEllipticalSliceSampler",
    "StochasticMarginalLogLikelihood",
    "UnifiedSkewNormalParameters",
    "corrected_log_normalizer",
    "fit_phases",
    "sun_parameters",
    "unified_skew_normal",
]

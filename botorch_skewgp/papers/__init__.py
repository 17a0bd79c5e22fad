"""What the founding papers define and no default uses; nothing else in the package imports this room.

`dueling` has the challengers of the paper on preferences, `safety` the penalised bound of that on mixed observations.
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

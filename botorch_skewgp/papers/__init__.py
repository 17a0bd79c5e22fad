"""What the founding papers define and no default uses; nothing else in the package imports this room.

- `unified_skew_normal`: `f(X)` given data is a unified skew-normal vector ([Benavoli2021unified]_, Theorems 3.1-3.3).
- `batches`: Proposition 1, `P(all rows) >= sum_b P(batch b) - (B - 1)` for `B` batches of rows; and the composite
  likelihood `sum_b log P(batch b)` of [Varin2011composite]_.
- `stochastic`: Proposition 2, `d log Z = E[d log N(u; mean, Gamma)] + sum_i p_i d bound_i` for
  `Z = P(lower < u <= upper)`.
- `corrections`: `log Z - log Z_EP` to second order in the cumulants ([Opper2013perturbative]_), and `Z` by conditioning
  on rows in pairs ([Trinh2015bivariate]_), BoTorch's `MVNXPB`.
- `arcsine`: the covariance of a network of infinitely many units, of the paper on classification.
- `linear_ess`: linear elliptical slice sampling, as `DrawSettings(sampler=LinearEllipticalSliceSampler)`.
- `phases`: the signs of a skew prior, by the evidence.
- `dueling`: the challengers of the paper on preferences; `safety`: the penalised bound of that on mixed observations.

Functions of a model take it as their first argument. The two log normalisers are methods of
`SkewGP.log_marginal_likelihood(method)`, and the other classes objectives for `fit_gpytorch_mll`.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Opper2013perturbative] M. Opper, U. Paquet, O. Winther. Perturbative corrections for approximate inference in
   Gaussian latent variable models. JMLR 14, 2013.
.. [Trinh2015bivariate] G. Trinh, A. Genz. Bivariate conditioning approximations for multivariate normal probabilities.
   Statistics and Computing 25, 2015.
.. [Varin2011composite] C. Varin, N. Reid, D. Firth. An overview of composite likelihood methods. Statistica Sinica 21,
   2011.
"""

from botorch_skewgp.papers.arcsine import ArcsineKernel
from botorch_skewgp.papers.batches import BatchBoundMarginalLogLikelihood, BatchedMarginalLogLikelihood
from botorch_skewgp.papers.corrections import bivariate_log_normalizer, corrected_log_normalizer
from botorch_skewgp.papers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.papers.phases import fit_phases
from botorch_skewgp.papers.stochastic import StochasticMarginalLogLikelihood
from botorch_skewgp.papers.unified_skew_normal import (
    UnifiedSkewNormalParameters,
    sun_parameters,
    unified_skew_normal,
)

__all__ = [
    "ArcsineKernel",
    "BatchBoundMarginalLogLikelihood",
    "BatchedMarginalLogLikelihood",
    "LinearEllipticalSliceSampler",
    "StochasticMarginalLogLikelihood",
    "UnifiedSkewNormalParameters",
    "bivariate_log_normalizer",
    "corrected_log_normalizer",
    "fit_phases",
    "sun_parameters",
    "unified_skew_normal",
]

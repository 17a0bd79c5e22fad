"""BoTorch's default sampler of posteriors (`get_skew_gp_sampler`), and sample paths (`pathwise`)."""

from botorch_skewgp.posteriors.mixture_posterior import get_skew_gp_sampler
from botorch_skewgp.sampling.pathwise import SkewGPSamplePath

__all__ = ["SkewGPSamplePath", "get_skew_gp_sampler"]

"""BoTorch's samplers (`get_sampler`), and sample paths (`pathwise`; prior paths of judges in `judge_paths`)."""

from botorch_skewgp.sampling.get_sampler import get_skew_gp_sampler
from botorch_skewgp.sampling.pathwise import SkewGPSamplePath

__all__ = ["SkewGPSamplePath", "get_skew_gp_sampler"]

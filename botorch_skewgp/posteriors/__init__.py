"""Posteriors: the skewed posterior of a SkewGP as a BoTorch `Posterior`."""

from botorch_skewgp.posteriors.skew_gp_posterior import RepresenterMixture, SkewGPPosterior

__all__ = ["RepresenterMixture", "SkewGPPosterior"]

"""Diagnostics of draws and weights: `mixing` of chains, and tails of weights (`pareto`)."""

from botorch_skewgp.truncated.diagnostics.mixing import Diagnostics, diagnose, effective_sample_size, split_r_hat

__all__ = ["Diagnostics", "diagnose", "effective_sample_size", "split_r_hat"]

"""Diagnostics of draws and weights: `mixing` of chains, for many draws by `compiled_chains` and `compiled_scores`, and
tails of weights (`pareto`).
"""

from botorch_skewgp.truncated.diagnostics.mixing import Diagnostics, diagnose, effective_sample_size, split_r_hat

__all__ = ["Diagnostics", "diagnose", "effective_sample_size", "split_r_hat"]

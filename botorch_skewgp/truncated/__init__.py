"""Truncated normal distributions: expectation propagation, exact samplers, evidence and diagnostics.

Nothing in here knows of Gaussian processes or of BoTorch.
"""

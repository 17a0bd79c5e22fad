"""Bayesian transformed Gaussian processes beside warped ones, Gaussian ones and outcome transforms.

Baselines of maximum likelihood are the same code with one node, the mode.
"""

from __future__ import annotations

from benchmarks.transformed import predictions, quadrature

RACES = (*quadrature.RACES, *predictions.RACES)

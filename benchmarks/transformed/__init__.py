"""Bayesian transformed Gaussian processes beside warped ones, Gaussian ones and outcome transforms."""

from __future__ import annotations

from benchmarks.transformed import predictions, quadrature

RACES = (*quadrature.RACES, *predictions.RACES)

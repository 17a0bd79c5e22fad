"""Markov chains of a truncated normal, all with the interface of `sampler`, and feasible rows to start them from.

`reflective_ess` is the default; `collapsed_ess` and `independence` move latent coordinates, with the noise integrated
out; `linear_ess` is the papers' baseline. `start` and `feasibility` find points inside all bounds.
"""

"""Markov chains of a truncated normal, all with the interface of `sampler`, and feasible rows to start them from.

`reflective_ess` is the default; `collapsed_ess` and `independence` move latent coordinates, with the noise integrated
out; `linear_ess` and `gibbs` are the papers' baselines. `start` and `feasibility` find points inside all bounds.
"""

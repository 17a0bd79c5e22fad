"""Markov chain samplers of a truncated normal with a common interface (`sampler`), and feasible rows to start from.

`reflective_ess` is the default; `collapsed_ess` and `independence` move latent coordinates and integrate the noise out,
and `shared_independence` the own parts of blocks too; `linear_ess` is the papers' baseline. `start` and `feasibility`
find points inside all bounds.
"""

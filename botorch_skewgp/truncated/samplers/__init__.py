"""Markov chain samplers of a truncated normal (`sampler`): `reflective_ess`, and `hamiltonian` in `coordinates` of the
Gaussian of expectation propagation; `feasibility` finds points inside all bounds.
"""

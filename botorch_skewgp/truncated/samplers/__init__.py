"""Markov chain samplers of a truncated normal with a common interface (`sampler`), and feasible rows to start from.

`reflective_ess` serves few rows and rows without noise, `hamiltonian` many rows and answers that may be slips, with the
noise integrated out, in `coordinates` of expectation propagation's Gaussian.
`feasibility` finds points inside all bounds.
"""

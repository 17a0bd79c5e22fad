"""Markov chain samplers of a truncated normal with a common interface (`sampler`), and feasible rows to start from."""

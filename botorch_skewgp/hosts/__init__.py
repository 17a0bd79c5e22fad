"""The shared part of the Ax and Optuna backends: one description of an experiment's data, and one set of rules.

`data`: points, numbers, bounds, validity, constraints and comparisons, and the observations that models are built from.
`entries`: what people recorded in an experiment's storage; entries that cannot be read are left out.
`quiet`: warnings that a host's user cannot act on.
"""

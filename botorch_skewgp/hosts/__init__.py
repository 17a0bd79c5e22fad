"""What the Ax and the Optuna backends share: one description of an experiment's data, and one set of rules for it.

`data`: points, numbers, bounds, validity, constraints and comparisons, and the observations that models are built from.
`entries`: what people recorded in an experiment's storage; entries that cannot be read are left out.
`quiet`: warnings that a host's user cannot act on.
"""

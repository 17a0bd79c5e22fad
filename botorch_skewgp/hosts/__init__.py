"""The shared part of the Ax and Optuna backends.

`data`: points, numbers, bounds, validity, constraints and comparisons, and the observations of models.
`ends`: what a trial without a number says of its point.
`outcomes`: numbers with long tails, brought near a normal distribution.
`entries`: comparisons in an experiment's storage; unreadable entries are left out.
`compilation`: BoTorch's kernel for several objectives, which is not compiled.
`questions`: prices, and the choice of the next question.
`quiet`: warnings that a host's user cannot act on.
"""

"""The shared part of the Ax and Optuna backends.

`data`: points, numbers, bounds, validity, constraints and judgements, and the observations of models.
`records`: what people say, in an experiment's storage; unreadable entries are left out.
`improvement`: what the next point maximises.
`outcomes`: numbers with long tails, brought near a normal distribution.
`questions`: prices, and the choice of the next question.
`quiet`: what a host's user cannot act on.
"""

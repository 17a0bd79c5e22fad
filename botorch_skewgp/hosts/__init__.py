"""The shared part of the Ax and Optuna backends.

`data`: points, numbers, bounds, validity, constraints and judgements, and the observations of models.
`ends`: what a trial without a number says of its point.
`entries`: judgements in an experiment's storage; unreadable entries are left out.
`improvement`: what the next point maximises.
`outcomes`: numbers with long tails, brought near a normal distribution.
`questions`: prices, and the choice of the next question.
`quiet`: what a host's user cannot act on.
"""

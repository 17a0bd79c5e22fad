"""The shared part of the Ax and Optuna backends.

`records` of what people say and `data` become observations, numbers on the scale of `outcomes`; the next point
maximises an `improvement`, prices decide between `questions`, and `quiet` keeps what users cannot act on from them.
"""

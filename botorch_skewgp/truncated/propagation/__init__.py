"""Expectation propagation: Gaussian sites in place of rows, and the evidence that they give.

`sites` says what they are to be, `acceleration` how to get there in fewer sweeps, `compiled_propagation` does the same
for few rows, `site_slopes` gives derivatives where sites are not stationary, and `corrections` is what the evidence
lacks to second order.
"""

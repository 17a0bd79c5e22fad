"""Expectation propagation: Gaussian sites in place of rows, and the evidence that they give.

`expectation_propagation` iterates to the fixed point: `sites` computes the next sites, `acceleration` saves sweeps, and
`compiled_propagation` does both for few rows. `site_slopes` gives derivatives where sites are not stationary.
"""

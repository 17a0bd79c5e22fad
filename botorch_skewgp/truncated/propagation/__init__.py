"""Expectation propagation: Gaussian sites in place of rows, and the evidence that they give.

`expectation_propagation` iterates to the fixed point: `sites` computes the next sites, `steps` how far to go to them or
beyond. `site_slopes` gives derivatives where sites are not stationary.
"""

"""Expectation propagation: `expectation_propagation` iterates to the fixed point, `steps` computes the next sites and
how far to go to them, and `site_slopes` gives derivatives where sites are not stationary.
"""

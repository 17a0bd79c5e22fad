"""Truncated normal distributions: expectation propagation, exact samplers, evidence and diagnostics.

A truncated normal is a Gaussian prior of its rows (`priors/`) times a factor of each row (`row_factor`; slips in
`step_factor`, weights in `powered_factor`). Sites (`propagation/`) and chains (`samplers/`) work on these two; `draws`
chooses a sampler and checks its chains (`diagnostics`), and `evidence` uses both. Nothing in here depends on Gaussian
processes.
"""

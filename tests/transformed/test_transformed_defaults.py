"""Default priors of transformed processes, and the units in which they see outcomes."""

import math

import pytest
import torch

from botorch_skewgp.transformed.defaults import (
    default_transformed_covar_module,
    default_transformed_likelihood,
    outcome_units,
)
from botorch_skewgp.warpings import Affine, BoxCox


@pytest.mark.parametrize("dim", [1, 16])
def test_parameters_start_at_the_medians_of_their_priors(dim):
    kernel, likelihood = default_transformed_covar_module(dim), default_transformed_likelihood()
    torch.testing.assert_close(kernel.lengthscale, torch.full((1, dim), 0.3 * math.sqrt(dim)))
    torch.testing.assert_close(kernel.lengthscale_prior.cdf(kernel.lengthscale), torch.full((1, dim), 0.5))
    torch.testing.assert_close(likelihood.noise_covar.noise_prior.cdf(likelihood.noise), torch.tensor([0.5]))


@pytest.mark.parametrize(
    ("values", "warping", "units"),
    [
        ((0.0, 1.0, 2.0, 3.0, 1e6), Affine, (2.0, 2 / 1.349)),  # an outlier does not count
        ((0.0, 0.0, 0.0, 0.0, 5.0), Affine, (0.0, math.sqrt(5))),  # quartiles coincide: the standard deviation
        ((1.0, 10.0, 100.0), BoxCox, (0.0, 10.0)),  # the geometric mean
        ((0.0, 1e200, 2e200, 3e200, 4e200), Affine, (2e200, 2e200 / 1.349)),  # squares overflow
    ],
)
def test_units_of_outcomes(values, warping, units):
    assert outcome_units(torch.tensor(values, dtype=torch.double), warping()) == pytest.approx(units)

"""Default priors of transformed processes."""

import math

import pytest
import torch

from botorch_skewgp.transformed.defaults import (
    default_transformed_covar_module,
    default_transformed_likelihood,
)


@pytest.mark.parametrize("dim", [1, 16])
def test_lengthscales_start_at_the_median_of_their_prior(dim):
    kernel = default_transformed_covar_module(dim)
    assert kernel.lengthscale.shape == (1, dim)
    torch.testing.assert_close(kernel.lengthscale, torch.full((1, dim), 0.3 * math.sqrt(dim)))
    torch.testing.assert_close(kernel.lengthscale_prior.cdf(kernel.lengthscale), torch.full((1, dim), 0.5))


def test_noise_starts_at_the_median_of_its_prior():
    likelihood = default_transformed_likelihood()
    prior = likelihood.noise_covar.noise_prior
    torch.testing.assert_close(prior.cdf(likelihood.noise), torch.tensor([0.5]))

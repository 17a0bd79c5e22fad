"""Gibbs sampling against closed forms and exact draws."""

import torch
from sampler_cases import (
    INF,
    make,
)

from botorch_skewgp.truncated.samplers.gibbs import GibbsSampler


def test_conditionals_equal_those_of_the_gaussian(generator):
    """Without bounds, the conditional mean and variance from the covariance matrix, by solving for one row."""
    factor = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    gamma = factor @ factor.mT + 0.3 * torch.eye(5)
    sampler = GibbsSampler(make([0.0] * 5, gamma - 0.2 * torch.eye(5), [-INF] * 5, [INF] * 5, [0.2] * 5))
    for i in range(5):
        others = [j for j in range(5) if j != i]
        weight = torch.linalg.solve(gamma[others][:, others], gamma[others, i])
        torch.testing.assert_close(sampler._weight[i, others], weight)
        assert sampler._weight[i, i] == 0
        torch.testing.assert_close(sampler._scale[i].square(), gamma[i, i] - weight @ gamma[others, i])

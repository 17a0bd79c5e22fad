"""Validation, Gaussian factors and latent coordinates of the truncated normal."""

import math

import pytest
import torch

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = math.inf


def arguments(m=3, dtype=torch.float64, **changes):
    values = {
        "mean": torch.zeros(m, dtype=dtype),
        "prior": torch.eye(m, dtype=dtype) + 0.5,
        "lower": torch.zeros(m, dtype=dtype),
        "upper": torch.full((m,), INF, dtype=dtype),
        "noise": torch.full((m,), 0.1, dtype=dtype),
    }
    return values | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": torch.eye(4)}, "prior must be that of 3 rows to match mean; got 4"),
        ({"prior": torch.ones(3)}, r"prior must be batch_shape x m x m if it is a covariance; got \(3,\)"),
        ({"lower": torch.zeros(2, dtype=torch.float64)}, r"lower must have mean's shape \(3,\); got \(2,\)"),
        ({"upper": torch.ones(1, 3, dtype=torch.float64)}, r"upper must have mean's shape \(3,\); got \(1, 3\)"),
        ({"noise": torch.ones(3, dtype=torch.float32)}, "noise must have mean's dtype and device"),
        ({"lower": torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64)}, "lower contains NaN"),
        ({"noise": torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64)}, "noise contains NaN"),
        ({"mean": torch.tensor([0.0, INF, 0.0], dtype=torch.float64)}, "mean contains NaN or infinite"),
        ({"mean": torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64)}, "mean contains NaN or infinite"),
        ({"upper": torch.zeros(3, dtype=torch.float64)}, "strictly below its entry of upper"),
        ({"noise": torch.tensor([0.1, -0.1, 0.1], dtype=torch.float64)}, "must not be negative"),
    ],
)
def test_invalid(changes, message):
    with pytest.raises(ValueError, match=message):
        TruncatedNormal(**arguments(**changes))


def test_dense_factors(generator):
    factor = torch.randn(2, 4, 4, generator=generator, dtype=torch.float64)
    covariance = factor @ factor.mT
    noise = torch.rand(2, 4, generator=generator, dtype=torch.float64)
    zero = torch.zeros(2, 4, dtype=torch.float64)
    distribution = TruncatedNormal(zero + 1, covariance, zero, zero + 2, noise)
    gamma = covariance + torch.diag_embed(noise)
    assert distribution.batch_shape == (2,)
    torch.testing.assert_close(distribution.prior.covariance, covariance)
    torch.testing.assert_close(distribution.gamma, gamma)
    torch.testing.assert_close(distribution.gamma_cholesky @ distribution.gamma_cholesky.mT, gamma)
    assert (distribution.gamma_cholesky.triu(1) == 0).all()
    torch.testing.assert_close(distribution.gamma_diagonal, gamma.diagonal(dim1=-2, dim2=-1))
    root = distribution.prior.root
    torch.testing.assert_close(root @ root.mT, covariance)

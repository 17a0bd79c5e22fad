"""The Cholesky factor with a jitter that never depends on rounding."""

import math

import pytest
import torch
from linear_operator.utils.errors import NanError, NotPSDError

from botorch_skewgp.truncated.factorization import (
    RELATIVE_JITTER,
    cholesky_of_precision,
    cholesky_with_noise,
    cholesky_with_relative_jitter,
    upper_root_with_relative_jitter,
)

pytestmark = pytest.mark.rounding

EPSILON = RELATIVE_JITTER[torch.float64]


def _matrix(n: int, seed: int = 0, batch: tuple[int, ...] = ()) -> torch.Tensor:
    root = torch.randn(*batch, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return root @ root.mT + torch.eye(n, dtype=torch.float64)


def test_factor_of_a_regular_batch():
    matrix = _matrix(5, batch=(2, 3))
    L = cholesky_with_relative_jitter(matrix)
    size = matrix.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    expected = matrix + EPSILON * size * torch.eye(5, dtype=torch.float64)
    torch.testing.assert_close(L @ L.mT, expected, rtol=1e-14, atol=1e-14)
    assert (L.tril() == L).all()


def test_continuous_where_points_meet():
    """Two points of which one moves to the other: the conditional deviation falls smoothly to its floor."""
    distances = torch.cat([torch.zeros(1, dtype=torch.float64), torch.logspace(-12, -2, 200, dtype=torch.float64)])
    correlation = torch.exp(-0.5 * distances.square())
    matrix = torch.stack([torch.ones_like(correlation), correlation, correlation, torch.ones_like(correlation)], -1)
    pivot = cholesky_with_relative_jitter(matrix.reshape(-1, 2, 2))[..., 1, 1]
    expected = (1 - correlation.square() + 2 * EPSILON).sqrt()
    torch.testing.assert_close(pivot, expected, rtol=1e-3, atol=0.0)


def test_never_more_jitter_than_promised():
    """Also not for a matrix whose plain factorisation fails."""
    points = torch.linspace(0, 1, 200, dtype=torch.float64)
    matrix = torch.exp(-0.5 * (points.unsqueeze(-1) - points).square())
    assert torch.linalg.cholesky_ex(matrix).info > 0
    L = cholesky_with_relative_jitter(matrix)
    assert (L @ L.mT - matrix).abs().max() < 2 * EPSILON


def test_derivative():
    matrix = _matrix(4).requires_grad_()

    def log_det(matrix):
        symmetric = 0.5 * (matrix + matrix.mT)
        return 2 * cholesky_with_relative_jitter(symmetric).diagonal().log().sum()

    (gradient,) = torch.autograd.grad(log_det(matrix), matrix)
    torch.testing.assert_close(gradient, torch.linalg.inv(matrix.detach()), rtol=1e-9, atol=1e-9)
    assert torch.autograd.gradcheck(log_det, (matrix,))


def test_scale_of_entries_in_different_units():
    """Two pairs of equal points, one in units a million times as large."""
    units = torch.tensor([1.0, 1.0, 1e6, 1e6], dtype=torch.float64)
    matrix = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)).double()
    plain = cholesky_with_relative_jitter(matrix)
    scaled = cholesky_with_relative_jitter(units.unsqueeze(-1) * matrix * units, scale=units.square())
    torch.testing.assert_close(scaled, units.unsqueeze(-1) * plain, rtol=1e-3, atol=1e-12)


def test_single_precision_and_no_rows():
    points = torch.linspace(0, 1, 300, dtype=torch.float32)
    matrix = torch.exp(-0.5 * (points.unsqueeze(-1) - points).square())
    L = cholesky_with_relative_jitter(matrix)
    assert L.dtype == torch.float32
    assert (L @ L.mT - matrix).abs().max() < 2e-5
    assert cholesky_with_relative_jitter(torch.zeros(2, 0, 0)).shape == (2, 0, 0)


def test_errors():
    matrix = torch.stack([_matrix(3), torch.diag(torch.tensor([1.0, -1e-3, 1.0], dtype=torch.float64))])
    with pytest.raises(NotPSDError, match=r"least eigenvalue is -1\.0e-03 .* at row 1"):
        cholesky_with_relative_jitter(matrix)
    matrix[0, 1, 0] = torch.nan
    with pytest.raises(NanError, match="contains 1 NaN"):
        cholesky_with_relative_jitter(matrix)
    with pytest.raises(NanError, match="infinite"):
        cholesky_with_relative_jitter(torch.tensor([[torch.inf]], dtype=torch.float64))


@pytest.mark.parametrize("noise", [1.0, 1e-6, 1e-11])
def test_noise_makes_jitter_superfluous(noise):
    covariance, noise = torch.ones(4, 4, dtype=torch.float64), torch.full((4,), noise, dtype=torch.float64)
    L = cholesky_with_noise(covariance, noise)
    assert torch.equal(L, torch.linalg.cholesky(covariance + torch.diag(noise)))


def test_noise_less_than_the_jitter_is_raised():
    """Row by row, relative to the row's own variance."""
    units = torch.tensor([1.0, 1e4, 1e-4, 1.0], dtype=torch.float64)
    noise = torch.tensor([0.0, 0.0, 0.5e-20, 0.25], dtype=torch.float64)
    L = cholesky_with_noise(units.unsqueeze(-1) * units, noise)
    expected = torch.tensor([1.0, 1e8, 1e-8, 1.25], dtype=torch.float64)
    expected = expected + torch.tensor([EPSILON, EPSILON * 1e8, EPSILON * 1e-8, 0.0], dtype=torch.float64)
    torch.testing.assert_close((L @ L.mT).diagonal(), expected, rtol=1e-15, atol=0.0)
    torch.testing.assert_close(L[1, 1] / units[1], torch.tensor(2 * EPSILON).sqrt().double(), rtol=1e-3, atol=0.0)


def test_factor_of_a_precision_keeps_the_identity():
    """One direction is known to 1e-8, the other to 1: `(I + p f f')^-1 = I - f f' p / (1 + p f'f)`."""
    f = torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    for precision in (0.0, 3.0, 1e16):
        L = cholesky_of_precision(f, torch.tensor([precision], dtype=torch.float64))
        assert torch.equal(L, L.tril())
        assert (L.diagonal() > 0).all()
        expected = torch.eye(2, dtype=torch.float64) - f.mT @ f * (precision / (1 + precision))
        torch.testing.assert_close(torch.cholesky_inverse(L), expected, rtol=0.0, atol=1e-8)
        assert float(torch.logdet(L)) == pytest.approx(0.5 * math.log1p(precision), rel=1e-12)


def test_upper_root_has_the_jitter_of_its_own_entry():
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    scale = torch.tensor([1e9, 1.0, 0.0, 0.0, 1e10], dtype=torch.float64)
    for given, added in ((None, 0.0), (scale, torch.diag(EPSILON * scale))):
        U = upper_root_with_relative_jitter(half @ half.mT, given)
        assert torch.equal(U, U.triu())
        torch.testing.assert_close(U @ U.mT, half @ half.mT + added, rtol=1e-10, atol=1e-10)

"""Cholesky factors of covariances that may be singular, with a jitter that depends on the matrix alone."""

from __future__ import annotations

import torch
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

RELATIVE_JITTER = {torch.float64: 1e-12, torch.float32: 1e-5}


def cholesky_with_relative_jitter(matrix: Tensor, scale: Tensor | None = None) -> Tensor:
    """The lower Cholesky factor of `matrix + epsilon diag(scale)`, `epsilon = 1e-12` (`1e-5` in single precision), a
    jitter that never grows, as values would jump; `scale`, `batch_shape x n`, has variances of ordinary size, their
    mean if `None`. Raises `NanError` and `NotPSDError`.
    """
    if matrix.shape[-1] == 0:
        return matrix
    diagonal = matrix.diagonal(dim1=-2, dim2=-1).double()
    size = diagonal.mean(-1, keepdim=True) if scale is None else scale.to(diagonal)
    return _cholesky(matrix, RELATIVE_JITTER[matrix.dtype] * size.expand_as(diagonal))


def _cholesky(matrix: Tensor, added: Tensor) -> Tensor:
    """The factor of a matrix plus a diagonal one, in the matrix's dtype."""
    double = matrix.double()
    factor, info = torch.linalg.cholesky_ex(add_to_diagonal(double, added))
    if bool(info.any()) or not bool(factor.detach().diagonal(dim1=-2, dim2=-1).sum().isfinite()):
        _explain(add_to_diagonal(double, added).detach(), int(info.max()))
    return factor.to(matrix)


def upper_root_with_relative_jitter(matrix: Tensor, scale: Tensor | None = None) -> Tensor:
    """The upper triangular `U` with `U U^T = matrix + epsilon diag(scale)`; jitter, errors and arguments as above."""
    reversed_scale = None if scale is None else scale.expand(matrix.shape[:-1]).flip(-1)
    return cholesky_with_relative_jitter(matrix.flip(-2, -1), reversed_scale).flip(-2, -1)


def cholesky_with_noise(covariance: Tensor, noise: Tensor) -> Tensor:
    """The lower Cholesky factor of `covariance + diag(noise)`, with noise at least `1e-12` of the variance."""
    if covariance.shape[-1] == 0:
        return covariance
    variance = covariance.diagonal(dim1=-2, dim2=-1) + noise
    return _cholesky(covariance, noise + missing_noise(variance, noise))


def add_to_diagonal(matrix: Tensor, values: Tensor) -> Tensor:
    """A matrix plus a diagonal one, as a new matrix; differentiable. One of the two may lack batch dimensions."""
    if matrix.shape[:-1] != values.shape:
        return matrix + torch.diag_embed(values)
    # the sum with a diagonal matrix would need as much memory again
    diagonal = matrix.diagonal(dim1=-2, dim2=-1)
    return torch.diagonal_scatter(matrix, diagonal + values, dim1=-2, dim2=-1)


def missing_noise(variance: Tensor, noise: Tensor) -> Tensor:
    """What `cholesky_with_noise` adds to the noise, given variances that include it."""
    return (RELATIVE_JITTER[variance.dtype] * variance - noise).clamp(min=0)


def cholesky_of_precision(root: Tensor, precision: Tensor) -> Tensor:
    """The lower Cholesky factor of `I + F^T diag(precision) F`, `r x r`, by orthogonal transformations, as sums lose
    the identity in the rounding of large precisions, which must not be negative; not differentiable.
    """
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device).expand(*root.shape[:-2], -1, -1)
    stacked = torch.cat([precision.sqrt().unsqueeze(-1) * root, eye], dim=-2)  # large rows first, for their rounding
    upper = torch.linalg.qr(stacked, mode="r").R
    return (upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-1) * upper).mT


def _explain(matrix: Tensor, place: int) -> None:
    """Raise the error of a matrix whose leading block of a size has no Cholesky factor."""
    n = matrix.shape[-1]
    lower = matrix.tril()
    if not bool(lower.isfinite().all()):
        raise NanError(f"The {n} x {n} covariance contains {int((~lower.isfinite()).sum())} NaN or infinite values.")
    symmetric = lower + lower.tril(-1).mT
    raise NotPSDError(
        f"The {n} x {n} covariance is not positive semi-definite: its least eigenvalue is "
        f"{float(torch.linalg.eigvalsh(symmetric).min()):.1e} for a mean variance of "
        f"{float(matrix.diagonal(dim1=-2, dim2=-1).mean()):.1e}, found at row {place - 1}. Check that the kernel is "
        "positive definite and its hyperparameters are in range."
    )

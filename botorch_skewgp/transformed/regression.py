r"""Generalised least squares of several warped outcomes under several kernels, with shared parts computed once.

With covariance `K = L L^T` of the noisy warped outcomes, basis functions `M` and warped outcomes `z`:

    A = M^T K^-1 M,   b = A^-1 M^T K^-1 z,   r = L^-1 (z - M b),   q = r^T r.

Kernels are a batch of `T`; each has the outcomes of `J` warpings, which share all computations beyond `O(n^2)`.

.. [DeOliveira1997btg] V. De Oliveira, B. Kedem, D. A. Short. Bayesian prediction of transformed Gaussian random fields.
   Journal of the American Statistical Association 92, 1997.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class TransformedRegression(NamedTuple):
    """Factors of `T` regressions, each of `J` warped outcomes, in the order of the formulas above.

    `root` is `T x n x n`, `basis` (`L^-1 M`) `T x n x p`, `basis_root` that of `A`, `coefficients` `T x p x J`,
    `residual` `T x n x J`, `square` `T x J`; of covariances without a factor (not `is_valid`, `T`) none counts.
    """

    root: Tensor
    basis: Tensor
    basis_root: Tensor
    coefficients: Tensor
    residual: Tensor
    square: Tensor
    is_valid: Tensor

    @classmethod
    def of(cls, covariance: Tensor, basis: Tensor, outcomes: Tensor) -> TransformedRegression:
        """Factorise covariances, `T x n x n`, with a basis `n x p` and outcomes `T x n x J`."""
        root, info = torch.linalg.cholesky_ex(covariance)
        is_valid = (info == 0) & root.diagonal(dim1=-2, dim2=-1).isfinite().all(-1)
        if not bool(is_valid.all()):
            eye = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
            root = torch.linalg.cholesky(torch.where(is_valid[:, None, None], covariance, eye))
        p = basis.shape[-1]
        white = torch.linalg.solve_triangular(
            root, torch.cat([basis.expand(len(root), -1, -1), outcomes], dim=-1), upper=False
        )
        basis, outcomes = white[..., :p], white[..., p:]
        basis_root = torch.linalg.cholesky(basis.mT @ basis)
        coefficients = torch.cholesky_solve(basis.mT @ outcomes, basis_root)
        residual = outcomes - basis @ coefficients
        return cls(root, basis, basis_root, coefficients, residual, residual.square().sum(-2), is_valid)

    @property
    def df(self) -> int:
        """The degrees of freedom, `n - p`."""
        return self.basis.shape[-2] - self.basis.shape[-1]

    def log_determinants(self) -> Tensor:
        """`log |K| + log |A|`, `T`."""
        roots = (self.root, self.basis_root)
        return 2 * sum((root.diagonal(dim1=-2, dim2=-1).log().sum(-1) for root in roots), torch.zeros(()))

    def log_evidence(self, log_jacobian: Tensor) -> Tensor:
        """The log density of the outcomes, `T x J`, scale and coefficients integrated out; of log Jacobians, `T x J`.

        [DeOliveira1997btg]_, equation (11), with its normalising constant.
        """
        n, p, df = *self.basis.shape[-2:], self.df
        constant = math.lgamma(0.5 * df) - 0.5 * df * math.log(math.pi)
        determinants = self.log_determinants().unsqueeze(-1)
        value = constant - 0.5 * determinants - 0.5 * df * self.square.log() + (1 - p / n) * log_jacobian
        return torch.where(self.is_valid.unsqueeze(-1), value, -math.inf)

    def gains(self, cross: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
        """Covariances of data and points, `T x n x N`, whitened: `V = L^-1 k`, and the root `W` of `h^T A^-1 h`.

        With `h = m - M^T K^-1 k`, `T x p x N`, a covariance is the prior's minus `V^T V` plus `W^T W`.
        """
        gain = torch.linalg.solve_triangular(self.root, cross, upper=False)
        rest = basis.mT - self.basis.mT @ gain
        return gain, torch.linalg.solve_triangular(self.basis_root, rest, upper=False)

    def locations(self, gain: Tensor, basis: Tensor) -> Tensor:
        """The means of the warped outcomes at points, `T x N x J`."""
        return gain.mT @ self.residual + basis @ self.coefficients

    def projections(self) -> Tensor:
        """`P`, `T x n x n`, with `P^T P = Q = K^-1 - K^-1 M A^-1 M^T K^-1` and `P z = r`."""
        n = self.root.shape[-1]
        eye = torch.eye(n, dtype=self.root.dtype, device=self.root.device)
        inverse = torch.linalg.solve_triangular(self.root, eye.expand_as(self.root), upper=False)
        unit = torch.linalg.solve_triangular(self.basis_root, self.basis.mT, upper=False)  # its rows are orthonormal
        return inverse - unit.mT @ (unit @ inverse)

    def at(self, kernels: Tensor) -> TransformedRegression:
        """The factors of some kernels."""
        return TransformedRegression(*(entry[kernels] for entry in self))

r"""Generalised least squares of several warped outcomes under several kernels, at weighted nodes of all parameters.

With covariance `K = L L^T` of the noisy warped outcomes, basis functions `M` and warped outcomes `z`:

    A = M^T K^-1 M,   b = A^-1 M^T K^-1 z,   r = L^-1 (z - M b),   q = r^T r.

Kernels are a batch of `T`; each has the outcomes of `J` warpings, which share all computations beyond `O(n^2)`.

.. [DeOliveira1997btg] De Oliveira, Kedem, Short. Bayesian prediction of transformed Gaussian random fields. 1997.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor
from torch.distributions import Categorical, Gamma, MixtureSameFamily

CANCELLING = 1e-3  # share of `q` without an outcome, below which a difference of squares loses digits


class TransformedRegression(NamedTuple):
    """Factors of `T` regressions, each of `J` warped outcomes, in the terms of the formulas above."""

    root: Tensor  # L, `T x n x n`
    basis: Tensor  # L^-1 M, `T x n x p`
    basis_root: Tensor  # of A
    coefficients: Tensor  # b, `T x p x J`
    residual: Tensor  # r, `T x n x J`
    square: Tensor  # q, `T x J`
    is_valid: Tensor  # whether the covariance has a factor, `T`; else no entry counts

    @classmethod
    def of(cls, covariance: Tensor, basis: Tensor, outcomes: Tensor) -> TransformedRegression:
        """Factorise covariances, `T x n x n`, with a basis `n x p` and outcomes `T x n x J`."""
        root, info = torch.linalg.cholesky_ex(covariance)
        is_valid = (info == 0) & root.diagonal(dim1=-2, dim2=-1).isfinite().all(-1)
        if not bool(is_valid.all()):
            eye = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
            root = torch.linalg.cholesky(torch.where(is_valid[:, None, None], covariance, eye))
        both = torch.cat([basis.expand(len(root), -1, -1), outcomes], dim=-1)
        p = basis.shape[-1]
        whitened = torch.linalg.solve_triangular(root, both, upper=False)
        basis, outcomes = whitened[..., :p], whitened[..., p:]
        orthonormal, R = torch.linalg.qr(basis)  # A = R^T R, without the squares of the basis
        sign = torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).unsqueeze(-1)
        along = orthonormal.mT @ outcomes
        coefficients = torch.linalg.solve_triangular(R, along, upper=True)
        residual = outcomes - orthonormal @ along
        basis_root = (sign * R).mT
        return cls(root, basis, basis_root, coefficients, residual, residual.square().sum(-2), is_valid)

    @property
    def df(self) -> int:
        """The degrees of freedom, `n - p`."""
        return self.basis.shape[-2] - self.basis.shape[-1]

    def log_determinants(self) -> Tensor:
        """`log |K| + log |A|`, `T`."""
        of_covariance = self.root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        of_basis = self.basis_root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * (of_covariance + of_basis)

    def log_evidence(self, log_jacobian: Tensor) -> Tensor:
        """The log density of the outcomes, `T x J`, of log Jacobians, `T x J` ([DeOliveira1997btg]_, equation (11))."""
        n, df = self.basis.shape[-2], self.df
        constant = math.lgamma(0.5 * df) - 0.5 * df * math.log(math.pi)
        determinants = self.log_determinants().unsqueeze(-1)
        value = constant - 0.5 * determinants - 0.5 * df * self.square.log() + df / n * log_jacobian
        return torch.where(self.is_valid.unsqueeze(-1), value, -math.inf)

    def whitened(self, cross: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
        """Covariances of data and points, `T x n x N`, whitened: `V = L^-1 k`, and the root `W` of `h^T A^-1 h`.

        With `h = m - M^T K^-1 k`, `T x p x N`, a covariance is the prior's minus `V^T V` plus `W^T W`.
        """
        V = torch.linalg.solve_triangular(self.root, cross, upper=False)
        h = basis.mT - self.basis.mT @ V
        return V, torch.linalg.solve_triangular(self.basis_root, h, upper=False)

    def locations(self, whitened: Tensor, basis: Tensor) -> Tensor:
        """The means of the warped outcomes at points, `T x N x J`, of `V` and the basis there."""
        return whitened.mT @ self.residual + basis @ self.coefficients

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


class WeightedNodes(NamedTuple):
    """Nodes with the factors that posteriors need, of `T` kernels and up to `J` warpings each."""

    regression: TransformedRegression
    kernel: Tensor  # of every node, `S`
    slot: Tensor  # of its outcomes among the `J` of the kernel, `S`
    u: Tensor  # coordinates, `S x D`
    log_weight: Tensor  # of the size of the quadrature weight times the posterior density, `S`
    log_likelihood: Tensor  # `S`
    warped: Tensor  # outcomes, `S x n`
    log_slope: Tensor  # of the warping at the outcomes, `S x n`

    @property
    def probabilities(self) -> Tensor:
        """The nodes' probabilities, `S`."""
        return self.log_weight.softmax(-1)

    @property
    def of_kernels(self) -> Tensor:
        """The coordinates of one node of every kernel, `T x D`."""
        return self.u[first_of(self.kernel)]

    def select(self, x: Tensor) -> Tensor:
        """The entries of the nodes of a tensor `T x ... x J`, `... x S`."""
        return x.movedim(0, -2).flatten(-2)[..., self.kernel * x.shape[-1] + self.slot]

    def left_out(self) -> tuple[Tensor, Tensor, Tensor]:
        """Locations and scales of the warped outcomes' Student t laws, each from all others, and log weights, `n x S`.

        With `Q = K^-1 - K^-1 M A^-1 M^T K^-1`, leaving out point `i` takes `(Q z)_i^2 / Q_ii` from `q` and
        `(Q z)_i / Q_ii` from `z_i`, and multiplies the determinants by `Q_ii`.
        """
        regression, n = self.regression, self.warped.shape[-1]
        df = regression.df - 1
        if df < 1:
            raise UnsupportedError(f"Leaving one of {n} points out leaves none for the scale; add points.")
        projections = regression.projections()
        diagonal = projections.square().sum(-2).mT[:, self.kernel]  # Q_ii, n x S
        shrink = self.select(projections.mT @ regression.residual) / diagonal
        total = self.select(regression.square)
        square = total - shrink.square() * diagonal
        # where digits cancel, from the residuals of z with its prediction in place of z_i
        i, s = (square < CANCELLING * total).nonzero(as_tuple=True)
        kernel = self.kernel[s]
        residual = regression.residual.movedim(-1, -2)[kernel, self.slot[s]]
        without = residual - shrink[i, s, None] * projections[kernel, :, i]
        square[i, s] = without.square().sum(-1)
        determinants = regression.log_determinants()[self.kernel] + diagonal.log()
        jacobian = self.log_slope.sum(-1) - self.log_slope.mT
        log_likelihood = -0.5 * determinants - 0.5 * df * square.log() + df / (n - 1) * jacobian
        has_weight = self.log_weight != -math.inf
        log_weight = torch.where(has_weight, self.log_weight - self.log_likelihood, -math.inf)
        log_weight = log_weight + log_likelihood.nan_to_num(0.0)  # of a singular covariance
        location, scale = self.warped.mT - shrink, (square / (diagonal * df)).sqrt()
        return location, scale, log_weight

    def keep(self, nodes: Tensor) -> WeightedNodes:
        """Some of the nodes, with the factors of their kernels only."""
        kernels, kernel = torch.unique(self.kernel[nodes], return_inverse=True)
        return WeightedNodes(self.regression.at(kernels), kernel, *(entry[nodes] for entry in self[2:]))


def standard_error(parts: Tensor, kernel: Tensor) -> Tensor:
    """The standard error of a sum over nodes of centered parts, `... x S`, those of equal kernels together."""
    num = int(kernel.max()) + 1
    if num > 1:
        parts = parts.new_zeros(*parts.shape[:-1], num).index_add_(-1, kernel, parts)
    return parts.square().sum(-1).sqrt()


def first_of(kernel: Tensor) -> Tensor:
    """The first node of every kernel."""
    first = torch.zeros(int(kernel.max()) + 1, dtype=torch.long, device=kernel.device)
    first[kernel.flip(0)] = torch.arange(len(kernel), device=kernel.device).flip(0)
    return first


def keep_largest(weights: Tensor, tolerance: float) -> Tensor:
    """The numbers, increasing, of the nodes of largest weight, not zero, that hold all but a share of it."""
    weights, order = weights.sort(descending=True, stable=True)
    left = weights.flip(-1).cumsum(-1).flip(-1)  # with each node, all smaller ones: exactly 0 where all are
    return order[left > tolerance * left[0]].sort().values


def effective_number(weights: Tensor) -> float:
    """The effective number of nodes, `(sum w)^2 / sum w^2`."""
    return float(weights.sum().square() / weights.square().sum())


class MeanAndScale(NamedTuple):
    r"""The joint law of the coefficients `beta` of the mean and the precision `tau` of the process, given the data.

    At every node `tau` has a Gamma distribution, and given it `beta` is normal with covariance `A^-1 / tau`
    ([DeOliveira1997btg]_); both are in units of the warped outcome there.

    Args:
        probabilities: The probabilities of the nodes, `S`.
        coefficients: The locations `b` of `beta`, `S x p`.
        root: The lower Cholesky factor of `A`, `S x p x p`.
        concentration: The shape parameter of the Gamma distributions, `(n - p) / 2`.
        rate: Their rates, `q / 2`, `S`.

    Example:
        >>> law = transformed.mean_and_scale()
        >>> law.precision.mean, law.probabilities @ law.coefficients
    """

    probabilities: Tensor
    coefficients: Tensor
    root: Tensor
    concentration: float
    rate: Tensor

    @property
    def precision(self) -> MixtureSameFamily:
        """The law of `tau`, a mixture of Gamma distributions."""
        return MixtureSameFamily(Categorical(self.probabilities), Gamma(self.concentration, self.rate))

    def sample(self, num: int) -> tuple[Tensor, Tensor]:
        """Draws of `beta`, `num x p`, and `tau`, `num`."""
        node = Categorical(self.probabilities).sample(torch.Size([num]))
        precision = Gamma(self.concentration, self.rate[node]).sample()
        normal = torch.randn_like(self.coefficients[node]).unsqueeze(-1)
        deviation = torch.linalg.solve_triangular(self.root[node].mT, normal, upper=True).squeeze(-1)
        return self.coefficients[node] + deviation / precision.sqrt().unsqueeze(-1), precision

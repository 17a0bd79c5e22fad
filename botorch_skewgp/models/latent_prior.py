r"""The Gaussian prior over the columns of rows, which only this module interprets: values and slopes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Tensor

from botorch_skewgp.kernels.evaluation import covariance_between, variance_of_difference
from botorch_skewgp.kernels.judges import JudgeKernel
from botorch_skewgp.kernels.slopes import VALUE, slope_covariance
from botorch_skewgp.rows import ColumnLayout

MANY_POINTS = 512  # beyond which a covariance is computed when it is used


@dataclass(frozen=True, eq=False)
class ResidualColumns:
    """The residuals of some judges' rows given inducing points, as further columns.

    A residual is what inducing points leave of the function that judges share, which is noise of the row, and what the
    row measures of its judge's own part, which alone it has in common with other points.

    Args:
        points: The points of the rows, with the code of the judge, `c x (d + 1)`.
        dims: The inputs in which slopes are read there, `c`; -1 for values.
        weight: The rows' weights of these, `b x c`.
    """

    points: Tensor
    dims: Tensor
    weight: Tensor


@dataclass(frozen=True, eq=False)
class LatentPrior:
    """Means and covariances of the latent function's columns. Points are those after input transforms.

    Args:
        mean_module: The mean, with a batch dimension for outputs or none.
        covar_module: The kernel, with a batch dimension for outputs or none; outputs are independent.
        points: The points of value columns, `n x d`: the training points or inducing points.
        pseudo_points: The points of a skew prior, `s x d`, if there is one.
        layout: The order of the columns.
        slope_points: The points of slopes, `c x d`; with inducing points slopes are of what judges share.
        training_points: The same as `points`, unless these are inducing points.
        by_judge: Whether the last input of points is the code of a judge, see `botorch_skewgp.models.panel`.
        residuals: Further columns, of judges' rows given inducing points.
    """

    mean_module: Mean
    covar_module: Kernel
    points: Tensor
    pseudo_points: Tensor | None
    layout: ColumnLayout
    slope_points: Tensor
    training_points: Tensor
    by_judge: bool = False
    residuals: ResidualColumns | None = None

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return self.layout.num_outputs

    # Values at any points

    def mean_at(self, X: Tensor) -> Tensor:
        """The mean of values, `batch_shape x (q o)`, output fastest. `X` is `batch_shape x q x d`."""
        reliability = self.covar_module.reliability if isinstance(self.covar_module, JudgeKernel) else None
        by, X = X[..., -1], self._inputs(X)
        if self.num_outputs == 1:
            mean = self.mean_module(X)
        elif getattr(self.mean_module, "batch_shape", None):
            mean = self.mean_module(X.unsqueeze(-3)).mT.flatten(-2)
        else:
            mean = self.mean_module(X).repeat_interleave(self.num_outputs, dim=-1)
        if reliability is not None:
            mean = mean * reliability.at(by).repeat_interleave(self.num_outputs, dim=-1)
        # a constant mean is a view of its parameter, which requires gradients even where none are recorded
        return mean if torch.is_grad_enabled() else mean.detach()

    def _inputs(self, X: Tensor) -> Tensor:
        """Points without the code of the judge."""
        return X[..., :-1] if self.by_judge else X

    def covariance_at(self, X: Tensor, Z: Tensor | None = None) -> LinearOperator:
        """The covariance of values at `q` and `q'` points, `batch_shape x (q o) x (q' o)`, output fastest."""
        if self.num_outputs == 1:
            return covariance_between(self.covar_module, X, Z, is_lazy=Z is None and X.shape[-2] > MANY_POINTS)
        eye = torch.eye(self.num_outputs, dtype=X.dtype, device=X.device)
        is_batched = bool(self.covar_module.batch_shape)
        if is_batched:
            X, Z = X.unsqueeze(-3), None if Z is None else Z.unsqueeze(-3)
        K = covariance_between(self.covar_module, X, Z).to_dense()
        K = (K.movedim(-3, -1) if is_batched else K.unsqueeze(-1)).unsqueeze(-1) * eye  # ... x n x n' x o x o
        return to_linear_operator(K.transpose(-3, -2).flatten(-4, -3).flatten(-2, -1))

    def variance_of_difference(self, X: Tensor) -> Tensor:
        """The variance of the difference of the values at two points, `batch_shape x 2 x d`; `batch_shape`."""
        return variance_of_difference(self.covar_module, X)

    # Columns

    @property
    def value_points(self) -> Tensor:
        """The points of value columns, pseudo-points after training points."""
        if self.pseudo_points is None:
            return self.points
        points = self.pseudo_points.to(self.points)
        return torch.cat([self.points, points.expand(*self.points.shape[:-2], *points.shape)], dim=-2)

    def columns(self) -> MultivariateNormal:
        """The distribution of all columns, in the order of the layout."""
        Z, S = self.value_points, self.slope_points
        mean, covariance = self.mean_at(Z), self.covariance_at(Z)
        if self.layout.has_slopes:
            self._check_slopes()
            dims = self.layout.slope_dims
            mean = torch.cat([mean, self.slope_means(S, dims)], dim=-1)
            slopes = self.cross_covariance(S, dims)
            values = torch.cat([covariance.to_dense(), slopes[..., : Z.shape[-2]].mT], dim=-1)
            covariance = to_linear_operator(torch.cat([values, slopes], dim=-2))
        return MultivariateNormal(mean, covariance)

    def covariance_of(self, X: Tensor, dims: Tensor) -> Tensor:
        """The covariance of values (-1) or slopes in inputs `dims`, `... x q`, at `... x q x d` points."""
        if bool((dims == VALUE).all()):
            return self.covariance_at(X).to_dense()
        self._check_slopes()
        return slope_covariance(self.covar_module, X, dims, X, dims)

    def cross_covariance(self, X: Tensor, dims: Tensor | None = None) -> Tensor:
        """The covariance of values at points, `batch_shape x q x d`, with all columns, `batch_shape x (q o) x c`; or of
        slopes there in inputs `dims`, `q`.
        """
        if dims is not None:
            covariance = self._slopes_with(self.covar_module, X, dims, self.value_points, None)
        else:
            covariance = self.covariance_at(X, self.value_points).to_dense()
        if self.layout.has_slopes:
            self._check_slopes()
            slopes = self._slopes_with(self.covar_module, X, dims, self.slope_points, self.layout.slope_dims)
            covariance = torch.cat([covariance, slopes], dim=-1)
        if self.residuals is None:
            return covariance
        own = self._slopes_with(self._own_kernel, X, dims, self.residuals.points, self.residuals.dims)
        return torch.cat([covariance, own @ self.residuals.weight.to(X).mT], dim=-1)

    @cached_property
    def _own_kernel(self) -> Kernel:
        """The kernel of judges' own parts."""
        assert isinstance(self.covar_module, JudgeKernel)
        return self.covar_module.of_own

    @staticmethod
    def _slopes_with(kernel: Kernel, X: Tensor, dims_X: Tensor | None, Z: Tensor, dims_Z: Tensor | None) -> Tensor:
        """The covariance of values, or of slopes in inputs, at points with those at others, `m x d`."""
        Z = Z.to(X).expand(*X.shape[:-2], *Z.shape[-2:])
        dims_X = torch.full((X.shape[-2],), VALUE) if dims_X is None else dims_X
        dims_Z = torch.full((Z.shape[-2],), VALUE) if dims_Z is None else dims_Z
        if bool((dims_X == VALUE).all() and (dims_Z == VALUE).all()):
            return covariance_between(kernel, X, Z).to_dense()
        return slope_covariance(kernel, X, dims_X, Z, dims_Z)

    def slope_means(self, points: Tensor, dims: Tensor) -> Tensor:
        """The derivatives of the mean in inputs `dims`, `c`, at points, `c x d`."""
        recorded = torch.is_grad_enabled()
        with torch.enable_grad():
            x = points if points.requires_grad else points.detach().clone().requires_grad_()
            total = self.mean_at(x).sum() + 0 * x.sum()  # also of a constant mean
            (gradient,) = torch.autograd.grad(total, x, create_graph=recorded)
        which = dims.to(points.device).unsqueeze(-1).expand(*points.shape[:-1], 1)
        return gradient.gather(-1, which).squeeze(-1)

    def _check_slopes(self) -> None:
        if self.num_outputs > 1:
            raise UnsupportedError(
                "Slopes need a model with one latent function; leave them out for LabelPreference observations."
            )

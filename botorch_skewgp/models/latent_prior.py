r"""The Gaussian prior over the columns of rows, which only this module interprets: values and slopes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from linear_operator.operators import DenseLinearOperator, LinearOperator, to_linear_operator
from torch import Tensor

from botorch_skewgp.kernels.evaluation import covariance_between
from botorch_skewgp.kernels.judges import JudgeKernel
from botorch_skewgp.kernels.slopes import VALUE, slope_covariance
from botorch_skewgp.rows import ColumnLayout


@dataclass(frozen=True, eq=False)
class ResidualColumns:
    """The residuals of some judges' rows given inducing points, as further columns."""

    points: Tensor  # the points of the rows, `c x (d + 1)`
    weight: Tensor  # the rows' weights of values there, `b x c`
    explained: Tensor  # the representer weights of the rows' means given inducing points, `M x b`
    by: Tensor  # the code of each row's judge; residuals of different judges are independent


@dataclass(frozen=True, eq=False)
class LatentPrior:
    """Means and covariances of the latent function's columns. Points are those after input transforms."""

    mean_module: Mean  # with a batch dimension for outputs or none
    covar_module: Kernel  # with a batch dimension for outputs or none; outputs are independent
    points: Tensor  # of value columns, `n x d`: the training points or inducing points
    pseudo_points: Tensor | None  # of a skew prior, `s x d`
    layout: ColumnLayout
    training_points: Tensor  # the same as `points`, unless these are inducing points
    by_judge: bool = False  # whether the last input of points is the code of a judge, see `botorch_skewgp.models.panel`
    residuals: ResidualColumns | None = None  # further columns

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
            if Z is None and X.shape[-2] > self.points.shape[-2]:
                # lazy: it is large, and often only its diagonal is used
                return covariance_between(self.covar_module, X, Z)
            if Z is None and X.shape[-2] == 1:  # a variance, for which no distances are needed
                return DenseLinearOperator(self.covar_module(X, diag=True).unsqueeze(-1))
            with settings.lazily_evaluate_kernels(False):  # a lazy one takes longer than a small matrix
                return covariance_between(self.covar_module, X, Z)
        eye = torch.eye(self.num_outputs, dtype=X.dtype, device=X.device)
        is_batched = bool(self.covar_module.batch_shape)
        if is_batched:
            X, Z = X.unsqueeze(-3), None if Z is None else Z.unsqueeze(-3)
        K = covariance_between(self.covar_module, X, Z).to_dense()
        K = (K.movedim(-3, -1) if is_batched else K.unsqueeze(-1)).unsqueeze(-1) * eye  # ... x n x n' x o x o
        return to_linear_operator(K.transpose(-3, -2).flatten(-4, -3).flatten(-2, -1))

    # Columns

    @property
    def value_points(self) -> Tensor:
        """The points of value columns, pseudo-points after training points."""
        if self.pseudo_points is None:
            return self.points
        points = self.pseudo_points.to(self.points)
        return torch.cat([self.points, points.expand(*self.points.shape[:-2], *points.shape)], dim=-2)

    @property
    def slope_points(self) -> Tensor:
        """The training points of slopes, `c x d`, one for each slope."""
        return self.training_points[..., self.layout.slope_points.to(self.training_points.device), :]

    @property
    def has_slopes(self) -> bool:
        """Whether some columns are slopes."""
        return self.layout.slope_points.shape[0] > 0

    def columns(self) -> MultivariateNormal:
        """The distribution of all columns, in the order of the layout."""
        Z = self.value_points
        mean, covariance = self.mean_at(Z), self.covariance_at(Z)
        if self.has_slopes:
            self._check_slopes()
            S, dims = self.slope_points, self.layout.slope_dims
            mean = torch.cat([mean, self._slope_means(S)], dim=-1)
            values = torch.full((Z.shape[-2],), VALUE)
            mixed = slope_covariance(self.covar_module, Z, values, S, dims)
            slopes = slope_covariance(self.covar_module, S, dims, S, dims)
            top = torch.cat([covariance.to_dense(), mixed], dim=-1)
            covariance = to_linear_operator(torch.cat([top, torch.cat([mixed.mT, slopes], dim=-1)], dim=-2))
        return MultivariateNormal(mean, covariance)

    def cross_covariance(self, X: Tensor) -> Tensor:
        """The covariance of values at points, `batch_shape x q x d`, with all columns; `batch_shape x (q o) x c`."""
        covariance = self.covariance_at(X, self.value_points).to_dense()
        if self.has_slopes:
            self._check_slopes()
            values = torch.full((X.shape[-2],), VALUE)
            S = self.slope_points.expand(*X.shape[:-2], *self.slope_points.shape[-2:])
            slopes = slope_covariance(self.covar_module, X, values, S, self.layout.slope_dims)
            covariance = torch.cat([covariance, slopes], dim=-1)
        if self.residuals is None:
            return covariance
        with_rows = self.covariance_at(X, self.residuals.points.to(X)).to_dense() @ self.residuals.weight.to(X).mT
        left = with_rows - covariance @ self.residuals.explained.to(X)
        return torch.cat([covariance, left * (X[..., -1:] == self.residuals.by.to(X))], dim=-1)

    def _slope_means(self, points: Tensor) -> Tensor:
        """The derivatives of the mean in the inputs of slopes."""
        recorded = torch.is_grad_enabled()
        with torch.enable_grad():
            x = points if points.requires_grad else points.detach().clone().requires_grad_()
            total = self.mean_module(self._inputs(x)).sum() + 0 * x.sum()  # also of a constant mean
            (gradient,) = torch.autograd.grad(total, x, create_graph=recorded)
        dims = self.layout.slope_dims.to(points.device).unsqueeze(-1)
        return gradient.gather(-1, dims.expand(*points.shape[:-1], 1)).squeeze(-1)

    def _check_slopes(self) -> None:
        if self.num_outputs > 1:
            raise UnsupportedError(
                "Slopes need a model with one latent function; leave them out for LabelPreference observations."
            )

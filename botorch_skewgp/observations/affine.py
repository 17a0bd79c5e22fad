r"""The general affine probit observation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.observations.checks import as_each, as_point_index, as_tensor, as_values, check_length, positions
from botorch_skewgp.observations.observation import Observation


@dataclass(frozen=True, eq=False)
class AffineProbit(Observation):
    r"""The general case: `lower < weight f(train_X) + bias + v <= upper` with `v ~ N(0, covariance)`.

    Args:
        weight: An `m x n` tensor over the points of `index`.
        bias: An `m`-dim tensor or a number.
        covariance: An `m x m` positive semi-definite tensor: the covariance of the noise.
        lower: An `m`-dim tensor or a number, below `upper`; `-inf` allowed.
        upper: An `m`-dim tensor or a number; `inf` allowed.
        index: An `n`-dim integer tensor: the row of `train_X` of each column of `weight`; by default `0, ..., n - 1`.

    Raises:
        InputDataError: As in the base class, also if a row of the weight is zero.

    Example:
        >>> AffineProbit(weight=[[0.5, 0.5]], bias=0.0, covariance=[[0.1]])  # the mean of two points is positive
    """

    weight: Tensor
    bias: Tensor
    covariance: Tensor
    lower: Tensor = 0.0  # type: ignore[assignment]
    upper: Tensor = torch.inf  # type: ignore[assignment]
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def _check(self) -> None:
        weight = as_tensor(self.weight, "weight")
        if weight.ndim != 2 or weight.dtype == torch.bool or weight.is_complex() or not weight.isfinite().all():
            raise InputDataError(f"weight must be an m x n tensor of finite numbers; got shape {tuple(weight.shape)}.")
        weight = weight if weight.is_floating_point() else weight.double()
        if empty := positions((weight == 0).all(-1)):
            raise InputDataError(
                f"weight is zero in all of rows {empty}, which then do not depend on the function; leave them out."
            )
        m = weight.shape[0]
        self._set(weight=weight, index=as_point_index(self.index, weight.shape[1], "a row of weight"))
        for name in ("bias", "lower", "upper"):
            value = as_values(as_each(getattr(self, name), name, m), name).to(weight)
            check_length(value, m, name, "rows of weight")
            self._set(**{name: value})
        if not self.bias.isfinite().all():
            raise InputDataError("bias must be finite.")
        if bad := positions(~(self.lower < self.upper)):
            raise InputDataError(f"lower must be below upper; this fails in rows {bad}.")
        covariance = as_tensor(self.covariance, "covariance")
        covariance = covariance if covariance.is_complex() else covariance.to(weight)
        if covariance.shape != (m, m) or covariance.is_complex() or not covariance.isfinite().all():
            raise InputDataError(
                f"covariance must be {m} x {m} and finite; got shape {tuple(covariance.shape)}. For independent noise "
                "give torch.diag(variances)."
            )
        scale = covariance.diagonal().abs().amax() if m else covariance.new_zeros(())
        tolerance = 1e3 * torch.finfo(covariance.dtype).eps * scale
        if ((covariance - covariance.mT).abs() > tolerance).any():
            raise InputDataError("covariance must be symmetric.")
        if m and (torch.linalg.eigvalsh(covariance) < -m * tolerance).any():
            raise InputDataError("covariance must be positive semi-definite; it has a negative eigenvalue.")
        self._set(covariance=covariance)

    @property
    def num_answers(self) -> int:
        """The number of rows of the weight."""
        return self.weight.shape[0]

    def at_columns(self, place: Callable[[Tensor, Tensor], Tensor]) -> Self:
        """A copy whose weight has columns for each judge; see `Observation`."""
        by = torch.zeros(self.num_answers, dtype=torch.long) if self.judge is None else self.judge + 1
        every, position = by.to(self.index.device).unique(return_inverse=True)
        index = place(*(x.flatten() for x in torch.broadcast_tensors(self.index, every.unsqueeze(-1))))
        mine = torch.nn.functional.one_hot(position, len(every)).to(self.weight)  # rows x judges
        return self._with({"index": index, "weight": (mine.unsqueeze(-1) * self.weight.unsqueeze(-2)).flatten(-2)})

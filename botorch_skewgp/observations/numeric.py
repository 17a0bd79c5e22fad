r"""Numbers, of single points and of sums over several, and censored readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import (
    as_each,
    as_index,
    as_point_index,
    as_tensor,
    as_values,
    as_weights,
    check_rows_of_weights,
    positions,
)
from botorch_skewgp.observations.observation import Countable, Mark, Observation


@dataclass(frozen=True, eq=False)
class Numeric(Observation):
    r"""Numbers: values of the latent function, or weighted sums of them, with Gaussian noise.

    With weights, number `i` is `sum_j weights[i, j] f(x_j)` over the points `x_j` of `index`, plus noise: a sum, a
    difference, an average, an integral by the weights of a quadrature. The function is in units of the numbers, so that
    `outcome_transform=Standardize(m=1)` learns from the numbers of single points, or from censored readings, and
    applies what it learned to the sums.

    Args:
        values: An `m`-dim (or `m x 1`) tensor of finite numbers.
        noise: Known noise variances, an `m`-dim tensor or a number; `None` for one level that the likelihood learns.
            With weights they are of the whole sum.
        index: An `m`-dim integer tensor: the row of `train_X` of each number; by default `0, ..., m - 1`. With weights
            a `k`-dim tensor for all numbers, by default `0, ..., k - 1`, or `m x k`; it is kept as `m x k`.
        weights: An `m x k` tensor over the points of `index`, 0 for points that a number leaves out; `None` for numbers
            of single points.

    Raises:
        InputDataError: As in the base class, also if a row of the weights is zero.

    Example:
        >>> Numeric([1.2, 0.7], noise=0.01, index=[0, 4])  # rows 0 and 4 of train_X, both with a variance of 0.01
        >>> Numeric([0.4], weights=[[0.5, 0.5, 0.0]])  # the average of rows 0 and 1
        >>> Numeric([3.1], weights=[[1.0, -1.0]], index=[7, 2])  # by how much row 7 is above row 2
    """

    values: Tensor
    noise: Tensor | None = None
    index: Tensor = None  # type: ignore[assignment]  # set when built
    weights: Tensor | None = None

    anchors_scale: ClassVar[bool] = True

    def _check(self) -> None:
        values = as_values(self.values, "values")
        if not values.isfinite().all():
            raise InputDataError("values must be finite; give readings beyond a limit as Censored observations.")
        self._set(values=values)
        if self.weights is None:
            self._set(index=as_point_index(self.index, values.shape[0], "values"))
        else:
            self._check_weights()
        if self.noise is not None:
            self._set(noise=_as_variances(self.noise, values, "values"))

    def _check_weights(self) -> None:
        """Set the weights and the points that they weigh, both `m x k`."""
        weights = as_weights(self.weights, "weights", "m x k")
        m, k = weights.shape
        if m != len(self.values):
            raise InputDataError(
                f"weights must have one row for each of the {len(self.values)} entries of values; got {m}."
            )
        index = torch.arange(k) if self.index is None else as_tensor(self.index, "index")
        index = as_index(index, "index", "k-dim or m x k", ndim=2 if index.ndim == 2 else 1)
        if index.shape not in ((k,), (m, k)):
            raise InputDataError(
                f"index must hold the {k} points of the columns of weights, or {m} x {k} points, those of each number; "
                f"got shape {tuple(index.shape)}."
            )
        index = index.expand(m, k)
        _, place = index.unique(return_inverse=True)
        of_points = weights.new_zeros(m, int(place.max()) + 1 if place.numel() else 0)
        check_rows_of_weights(of_points.scatter_add(-1, place.to(weights.device), weights), "weights")
        self._set(weights=weights, index=index)

    @property
    def is_of_point(self) -> Tensor:
        """Whether each number is the value of one point, `m`; the others are sums, differences or averages."""
        if self.weights is None:
            return torch.ones_like(self.index, dtype=torch.bool)
        return ((self.weights != 0).sum(-1) == 1) & (self.weights.sum(-1) == 1)

    @property
    def numbers(self) -> Tensor:
        """The values of single points, from which `Standardize` learns where there are any; in units of the outcome."""
        return self.values[self.is_of_point]

    def marks(self) -> tuple[Mark, ...]:
        """The values of single points."""
        index = self.index
        if self.weights is not None:
            index = index[((self.weights != 0) & self.is_of_point.unsqueeze(-1)).to(index.device)]
        return (Mark(index, "number", "value", self.numbers),)


@dataclass(frozen=True, eq=False)
class Censored(Countable):
    r"""Censored readings, known up to bounds: detection limits, saturation, rounding.

    `outcome_transform=Standardize(m=1)` learns from a model's numbers; without numbers from the midpoints of these
    intervals, or their only bound.

    Args:
        lower: An `m`-dim tensor of bounds below `upper`; `-inf` for none. One of the two may be a number for all.
        upper: An `m`-dim tensor of upper bounds; `inf` for none.
        index: An `m`-dim integer tensor: the row of `train_X` of each reading; by default `0, ..., m - 1`.
        noise: Known noise variances, an `m`-dim tensor or a number: 0 for bounds of the function itself. The noise of
            numbers if `None`.

    Example:
        >>> Censored(lower=[-torch.inf, 2.5], upper=[0.1, 3.5])  # below a detection limit of 0.1; rounded to 3
        >>> Censored(lower=0.0, upper=[torch.inf] * 5, noise=0.0)  # the function is nowhere negative at five points
    """

    lower: Tensor
    upper: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built
    noise: Tensor | None = None

    anchors_scale: ClassVar[bool] = True

    def _check(self) -> None:
        lower = as_tensor(self.lower, "lower")
        upper = as_tensor(self.upper, "upper")
        if lower.ndim == 0 or upper.ndim == 0:
            lower, upper = torch.broadcast_tensors(lower, upper)
        lower = as_values(lower, "lower")
        upper = as_values(upper, "upper")
        if lower.shape != upper.shape:
            raise InputDataError(f"lower and upper must have equal shapes; got {lower.shape} and {upper.shape}.")
        if bad := positions(~(lower < upper)):
            raise InputDataError(
                f"lower must be below upper; this fails at positions {bad}. Give exact readings as Numeric."
            )
        self._set(lower=lower, upper=upper.to(lower), index=as_point_index(self.index, lower.shape[0], "lower"))
        if self.noise is not None:
            self._set(noise=_as_variances(self.noise, lower, "lower"))

    @property
    def tells_values(self) -> bool:  # type: ignore[override]
        """Whether some are readings; bounds of the function itself leave the defaults of a model as they are."""
        return self.noise is None or bool((self.noise > 0).any())

    @property
    def middles(self) -> Tensor:
        """The midpoints of intervals, and the bounds of readings with one bound."""
        below = self.upper.isfinite()
        above = self.lower.isfinite()
        lower = self.lower.where(above, self.upper)
        upper = self.upper.where(below, self.lower)
        return (lower + 0.5 * (upper - lower))[below | above]

    @property
    def widths(self) -> Tensor:
        """The widths of intervals with two bounds."""
        width = self.upper - self.lower
        return width[width.isfinite()]

    def marks(self) -> tuple[Mark, ...]:
        """The finite bounds."""
        below = self.upper.isfinite()
        above = self.lower.isfinite()
        return (
            Mark(self.index[below], "at most", "at most", self.upper[below]),
            Mark(self.index[above], "at least", "at least", self.lower[above]),
        )


def _as_variances(noise: Any, values: Tensor, name: str) -> Tensor:
    """Noise variances, one for each of some values; raises `InputDataError` for anything else."""
    variances = as_values(as_each(noise, "noise", len(values)), "noise").to(values)
    if variances.shape != values.shape or not variances.isfinite().all() or (variances < 0).any():
        raise InputDataError(f"noise must hold one finite non-negative variance for each entry of {name}.")
    return variances


def have_sums(observations: Sequence[Observation]) -> bool:
    """Whether some numbers are weighted sums."""
    return any(isinstance(entry, Numeric) and not bool(entry.is_of_point.all()) for entry in observations)


def mean_known_noise(observations: Sequence[Observation]) -> Tensor | None:
    """The mean of the known noise variances of numbers of points; `None` if there are none, or some are unknown."""
    numeric = [entry for entry in observations if isinstance(entry, Numeric) and len(entry.numbers)]
    known = [entry.noise[entry.is_of_point] for entry in numeric if entry.noise is not None]
    return torch.cat(known).mean() if known and len(known) == len(numeric) else None

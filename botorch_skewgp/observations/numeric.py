r"""Numbers and censored readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_each, as_point_index, as_tensor, as_values, positions
from botorch_skewgp.observations.observation import Countable, Mark, Observation


@dataclass(frozen=True, eq=False)
class Numeric(Observation):
    r"""Numbers: values of the latent function with Gaussian noise.

    Args:
        values: An `m`-dim (or `m x 1`) tensor of finite numbers.
        noise: Known noise variances, an `m`-dim tensor or a number; `None` for one level that the likelihood learns.
        index: An `m`-dim integer tensor: the row of `train_X` of each number; by default `0, ..., m - 1`.

    Example:
        >>> Numeric([1.2, 0.7], noise=0.01, index=[0, 4])  # rows 0 and 4 of train_X, both with a variance of 0.01
    """

    values: Tensor
    noise: Tensor | None = None
    index: Tensor = None  # type: ignore[assignment]  # set when built

    anchors_scale: ClassVar[bool] = True

    def _check(self) -> None:
        values = as_values(self.values, "values")
        if not values.isfinite().all():
            raise InputDataError("values must be finite; give readings beyond a limit as Censored observations.")
        self._set(values=values, index=as_point_index(self.index, values.shape[0], "values"))
        if self.noise is not None:
            self._set(noise=_as_variances(self.noise, values, "values"))

    @property
    def numbers(self) -> Tensor:
        """The values, `m`, in units of the outcome: `Standardize` learns from these alone where there are any."""
        return self.values

    def marks(self) -> tuple[Mark, ...]:
        """The values."""
        return (Mark(self.index, "number", "value", self.values),)


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
    def middles(self) -> Tensor:
        """The midpoints of intervals, and the bounds of readings with one bound."""
        below = self.upper.isfinite()
        above = self.lower.isfinite()
        lower = self.lower.where(above, self.upper)
        upper = self.upper.where(below, self.lower)
        return (lower + 0.5 * (upper - lower))[below | above]

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


def mean_known_noise(observations: Sequence[Observation]) -> Tensor | None:
    """The mean of the known noise variances of numbers; `None` if there are no numbers, or some without a variance."""
    noises = [entry.noise for entry in observations if isinstance(entry, Numeric) and len(entry.values)]
    known = [noise for noise in noises if noise is not None]
    return torch.cat(known).mean() if known and len(known) == len(noises) else None

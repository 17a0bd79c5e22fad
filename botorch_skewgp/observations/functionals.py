r"""Linear functionals of the latent function: signs of slopes, and the general affine probit.

.. [Riihimaki2010monotonic] J. Riihimäki, A. Vehtari. Gaussian processes with monotonicity information. AISTATS 2010.
.. [Benavoli2024linearly] Benavoli, Azzimonti. Linearly constrained Gaussian processes are SkewGPs. UAI 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

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
    check_length,
    check_rows_of_weights,
    positions,
)
from botorch_skewgp.observations.observation import Observation


@dataclass(frozen=True, eq=False)
class Slope(Observation):
    r"""Signs of slopes, for monotone functions: the latent function rises or falls in an input at a point.

    A partial derivative is a linear functional of the latent function, and its sign an interval row
    ([Riihimaki2010monotonic]_, [Benavoli2024linearly]_).

    Slopes are those after a model's input transform, which must keep every input in its column and increase in it, as
    `Normalize` and `Log10` do. The kernel must be twice differentiable: RBF, Matern with `nu` of 1.5 or 2.5, rational
    quadratic, periodic, linear or polynomial, their sums and products.

    Slopes have no noise by default, and those at close points are nearly redundant. The evidence of a fit, by
    expectation propagation, counts them too often (it is off by 0.3 nats for 12 in a row in the unit interval, by 1.5
    for 50); posterior and exact evidence are right, and a repeated slope counts once. A few per lengthscale are enough.
    The evidence also favours kernels whose functions rise anyway: fit the kernel to other observations if possible.

    Args:
        dims: An `m`-dim integer tensor: the input (column of `train_X`) of each slope. An integer stands for all.
        signs: An `m`-dim tensor: 1 where the function rises in that input, -1 where it falls. A number stands for all.
        index: An `m`-dim integer tensor: the row of `train_X` of each slope; by default `0, ..., m - 1`.

    Example:
        >>> Slope(dims=[0] * 5, signs=[1] * 5, index=range(5))  # rises in input 0 at the first five rows of train_X
        >>> Slope(dims=0, signs=1, index=range(5))  # the same
    """

    tells_values: ClassVar[bool] = False

    dims: Tensor
    signs: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def _check(self) -> None:
        dims = as_tensor(self.dims, "dims")
        signs = as_tensor(self.signs, "signs")
        index = None if self.index is None else as_tensor(self.index, "index")
        sizes = {len(entry) for entry in (dims, signs, index) if entry is not None and entry.ndim > 0}
        if len(sizes) > 1:
            raise InputDataError(f"dims, signs and index must have one entry for each slope; got {sorted(sizes)}.")
        m = sizes.pop() if sizes else 1
        dims = as_index(as_each(dims, "dims", m), "dims", "m-dim", 1, what="inputs")
        signs = as_each(signs, "signs", m)
        if signs.ndim != 1 or signs.dtype == torch.bool or signs.dtype.is_complex or (signs.abs() != 1).any():
            raise InputDataError(f"signs must be 1 (rises) or -1 (falls) for each slope; got {signs.tolist()}.")
        self._set(dims=dims, signs=signs.long(), index=as_point_index(index, m, "dims"))

    @property
    def num_inputs_needed(self) -> int:
        """The largest input plus one."""
        return int(self.dims.max()) + 1 if self.dims.numel() else 0


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
        weight = as_weights(self.weight, "weight", "m x n")
        check_rows_of_weights(weight, "weight")
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

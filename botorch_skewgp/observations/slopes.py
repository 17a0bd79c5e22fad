r"""Slopes of the latent function.

.. [Riihimaki2010monotonic] J. Riihimäki, A. Vehtari. Gaussian processes with monotonicity information. AISTATS 2010.
.. [Benavoli2024linearly] A. Benavoli, D. Azzimonti. Linearly constrained Gaussian processes are SkewGPs: application to
   monotonic preference learning and desirability. UAI 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.observations.checks import as_each, as_index, as_point_index, as_tensor
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
        dims, signs = as_tensor(self.dims, "dims"), as_tensor(self.signs, "signs")
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

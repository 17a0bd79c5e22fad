"""Search coordinates: the unit cube, with logarithms of inputs where the model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.optim.utils import get_X_baseline
from torch import Tensor

from botorch_skewgp.models.transforms import logarithmic_inputs
from botorch_skewgp.protocols import input_transform_of


@dataclass(frozen=True)
class SearchCoordinates:
    r"""A map between a box and the unit cube, linear or in logarithms.

    Optimisers of acquisition functions take steps of one length in all inputs, stop at gradients of one size, and start
    from evenly spread points: in units of the inputs none suits a learning rate between 1e-5 and 0.1 beside a batch
    size between 16 and 512. Bounds are `d`-dim, and so is whether an input is searched by its logarithm.
    """

    low: Tensor
    high: Tensor
    logarithmic: Tensor

    @classmethod
    def of(cls, model: Model, bounds: Tensor) -> SearchCoordinates:
        """The coordinates of a model: logarithms of the inputs whose logarithm its input transform takes first."""
        logarithmic = torch.zeros_like(bounds[0], dtype=torch.bool)
        logarithmic[logarithmic_inputs(input_transform_of(model))] = True
        return cls(bounds[0], bounds[1], logarithmic)

    @property
    def are_inputs(self) -> bool:
        """Whether they are the inputs themselves."""
        return bool((self.low == 0).all() and (self.high == 1).all())

    @property
    def bounds(self) -> Tensor:
        """The unit cube, `2 x d`; the bounds of a fixed input are equal."""
        return torch.stack([torch.zeros_like(self.low), (self.high > self.low).to(self.low)])

    def from_inputs(self, X: Tensor) -> Tensor:
        """The coordinates of `... x d` points, moved to the bounds if outside."""
        low, width = self._scale(self.low), self._scale(self.high) - self._scale(self.low)
        return (self._scale(X.clamp(self.low, self.high)) - low) / width.where(width > 0, 1)

    def to_inputs(self, U: Tensor) -> Tensor:
        """The points of `... x d` coordinates; 0 and 1 are exactly the bounds."""
        scaled = torch.lerp(self._scale(self.low), self._scale(self.high), U)
        X = scaled.where(~self.logarithmic, scaled.where(self.logarithmic, 0).exp())
        exact = X.clamp(self.low, self.high).where(U > 0, self.low).where(U < 1, self.high)
        return X + (exact - X).detach()  # at a bound, the gradient is that of the inside

    def values(self, dim: int, values: Sequence[float]) -> list[float]:
        """The coordinates of values of one input, ascending."""
        X = self.low.repeat(len(values), 1)
        X[:, dim] = X.new_tensor(values)
        return self.from_inputs(X)[:, dim].tolist()

    def _scale(self, X: Tensor) -> Tensor:
        return X.where(~self.logarithmic, X.where(self.logarithmic, 1).log())


class AcquisitionFunctionOfCoordinates(AcquisitionFunction):
    """An acquisition function of points in search coordinates."""

    def __init__(self, acquisition: AcquisitionFunction, coordinates: SearchCoordinates) -> None:
        super().__init__(model=acquisition.model)
        self.acquisition, self.coordinates = acquisition, coordinates
        self._log = acquisition._log

    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x q x d` coordinates; `batch_shape`."""
        return self.acquisition(self.coordinates.to_inputs(X))

    @property
    def X_baseline(self) -> Tensor:
        """The coordinates of points around which optimisers start, `n x d`."""
        X, low = get_X_baseline(self.acquisition), self.coordinates.low
        return low.new_empty(0, len(low)) if X is None else self.coordinates.from_inputs(X)

    @property
    def X_pending(self) -> Tensor | None:  # type: ignore[override]
        """The coordinates of the acquisition function's pending points, `n x d`."""
        X = self.acquisition.X_pending
        return None if X is None else self.coordinates.from_inputs(X)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Set the acquisition function's pending points, in coordinates."""
        self.acquisition.set_X_pending(None if X_pending is None else self.coordinates.to_inputs(X_pending))

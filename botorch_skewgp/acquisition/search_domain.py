"""The domain that pairs and recommendations come from, some of whose inputs may only take certain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from torch import Tensor

from botorch_skewgp.models.inputs import as_bounds
from botorch_skewgp.models.transforms import rounded_inputs
from botorch_skewgp.observations.checks import as_tensor

Values = Mapping[int, Sequence[float]]
TOLERANCE = 1e-6  # share of its range by which an input may miss its bounds or a value


@dataclass(frozen=True)
class SearchDomain:
    r"""Bounds, and the values that inputs may take.

    Args:
        model: The model whose input transform may round.
        bounds: A `2 x d` tensor of lower and upper bounds.
        discrete_dims: The values of inputs, by their number, where their order matters.
        cat_dims: Likewise where it does not.
    """

    model: Model
    bounds: Tensor
    discrete_dims: dict[int, list[float]]
    cat_dims: dict[int, list[float]]

    @classmethod
    def build(
        cls, model: Model, bounds: Any, discrete_dims: Values | None, cat_dims: Values | None, like: Tensor | None
    ) -> SearchDomain:
        r"""Check a domain, in the dtype and on the device of the model's points.

        Args:
            model: A model.
            bounds: Lower and upper bounds, `2 x d`.
            discrete_dims: The values of inputs, by their number, where their order matters.
            cat_dims: Likewise where it does not.
            like: Points, `... x d`, if there are any.

        Raises:
            InputDataError: If the bounds are not `2 x d`, the model rounds them to values beyond them, or the values
                that inputs may take do not fit them.
        """
        bounds = as_bounds(bounds, None if like is None else like.shape[-1])
        bounds = bounds if like is None else bounds.to(like)
        outside = ((_rounded(model, bounds) - bounds) * bounds.new_tensor([[1.0], [-1.0]]) < 0).any(0)
        if outside.any():
            raise InputDataError(
                f"The model rounds inputs {outside.nonzero().flatten().tolist()} at their bounds, and to values beyond "
                f"them. Give bounds that these inputs may take; got {bounds.tolist()}."
            )
        discrete = _checked_values("discrete_dims", discrete_dims, bounds)
        categorical = _checked_values("cat_dims", cat_dims, bounds)
        for dim, values in discrete.items():
            if dim in categorical:
                raise InputDataError(f"Input {dim} is in discrete_dims and in cat_dims; its order matters or not.")
            if [min(values), max(values)] != bounds[:, dim].tolist():
                raise InputDataError(
                    f"The least and the largest value of input {dim} in discrete_dims must be its bounds, "
                    f"{bounds[:, dim].tolist()}; got {values}."
                )
        return cls(model, bounds, discrete, categorical)

    def contains(self, X: Tensor) -> Tensor:
        """Which of `n x d` points are in it, up to rounding of numbers."""
        low, high = self.bounds
        tolerance = TOLERANCE * (high - low)
        inside = (low - tolerance <= X) & (high + tolerance >= X)
        for dim, values in {**self.discrete_dims, **self.cat_dims}.items():
            distance = (X[:, dim, None] - X.new_tensor(values)).abs().amin(-1)
            inside[:, dim] &= distance <= tolerance[dim]
        return inside.all(-1)

    def rounded(self, X: Tensor) -> Tensor:
        """Points as the model takes them, rounded where its input transform rounds, and within the bounds."""
        return _rounded(self.model, X).clamp(self.bounds[0], self.bounds[1])

    def optimize(self, acquisition: AcquisitionFunction, q: int, **options: Any) -> tuple[Tensor, Tensor]:
        r"""The best `q` points.

        Args:
            acquisition: An acquisition function.
            q: The number of points.
            options: Further arguments of `optimize_acqf`, or of `optimize_acqf_mixed_alternating`.

        Returns:
            The points, `q x d`, and their acquisition value.

        Raises:
            UnsupportedError: If the acquisition function chooses several points at once, which BoTorch's optimiser of
                discrete inputs does not.
        """
        if _rounded(self.model, self.bounds) is not self.bounds:
            options = {"post_processing_func": self.rounded} | options
        if not (self.discrete_dims or self.cat_dims):
            points, value = optimize_acqf(acquisition, bounds=self.bounds, q=q, **options)
            assert value is not None
            return points, value
        if q > 1 and not isinstance(acquisition, qExpectedUtilityOfBestOption):
            raise UnsupportedError(
                f"{type(acquisition).__name__} chooses both points at once, which discrete_dims and cat_dims do not go "
                "with. Use qeubo or a method for challengers."
            )
        options = {"discrete_dims": self.discrete_dims, "cat_dims": self.cat_dims} | options
        points, _ = optimize_acqf_mixed_alternating(acquisition, bounds=self.bounds, q=q, **options)
        with torch.no_grad():
            return points, acquisition(points).squeeze()


def _rounded(model: Model, X: Tensor) -> Tensor:
    """The points that a model takes others for; the same tensor unless its input transform rounds."""
    return rounded_inputs(getattr(model, "input_transform", None), X)


def _checked_values(name: str, choices: Values | None, bounds: Tensor) -> dict[int, list[float]]:
    """The values that inputs may take, in the dtype of the bounds; raises `InputDataError` if they are not within."""
    checked = {}
    for dim, values in (choices or {}).items():
        if not 0 <= dim < bounds.shape[1]:
            raise InputDataError(f"{name} is about inputs 0 to {bounds.shape[1] - 1}; got {dim}.")
        allowed = as_tensor([*values], f"{name}[{dim}]").to(bounds)
        low, high = bounds[:, dim]
        if allowed.ndim != 1 or allowed.numel() == 0 or not ((low <= allowed) & (allowed <= high)).all():
            raise InputDataError(
                f"The values of input {dim} in {name} must be a list within its bounds, {low.item()} and "
                f"{high.item()}; got {values}."
            )
        checked[dim] = allowed.unique().tolist()
    return checked

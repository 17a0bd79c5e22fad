"""Unordered choices as one coordinate of a search each, where the model has the one-hot columns of Ax's `OneHot`.

A search over continuous columns ends between the values, where the acquisition function may be large and no point
exists; its result is rounded to a point of low value, often next to a known one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from ax.adapter.transforms.one_hot import OH_PARAM_INFIX
from ax.core.search_space import SearchSpaceDigest
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim.utils.acquisition_utils import get_X_baseline
from torch import Tensor

Constraints = list[tuple[Tensor, Tensor, float]]


class CategoryCoordinates:
    r"""The map between points with one-hot columns and points with a number for each category.

    Numbered points have the other columns first, in their order, and then the categories.

    Args:
        digest: The search space, in one-hot columns.
    """

    def __init__(self, digest: SearchSpaceDigest) -> None:
        groups: dict[str, list[int]] = {}
        for column, name in enumerate(digest.feature_names):
            parameter, infix, _ = name.rpartition(OH_PARAM_INFIX)
            if infix:
                groups.setdefault(parameter, []).append(column)
        self.groups = list(groups.values())
        one_hot = {column for group in self.groups for column in group}
        self.others = [column for column in range(len(digest.feature_names)) if column not in one_hot]
        self._place = {column: place for place, column in enumerate(self.others)}
        order = [*self.others, *(column for group in self.groups for column in group)]
        self._inverse = sorted(range(len(order)), key=order.__getitem__)
        sizes = {len(self.others) + k: len(group) for k, group in enumerate(self.groups)}
        numbers = {place: list(range(size)) for place, size in sizes.items()}
        choices = {self._place[i]: values for i, values in digest.discrete_choices.items()}
        self.digest = replace(
            digest,
            feature_names=[*(digest.feature_names[i] for i in self.others), *groups],
            bounds=[*(digest.bounds[i] for i in self.others), *((0, size - 1) for size in sizes.values())],
            ordinal_features=[self._place[i] for i in digest.ordinal_features],
            categorical_features=[*(self._place[i] for i in digest.categorical_features), *numbers],
            discrete_choices=choices | numbers,
            fidelity_features=[self._place[i] for i in digest.fidelity_features],
            target_values={self._place[i]: value for i, value in digest.target_values.items()},
            hierarchical_dependencies=None,
        )

    def one_hot(self, X: Tensor) -> Tensor:
        """Points in one-hot columns, `... x d`, from numbered ones."""
        parts, start = [X[..., : len(self.others)]], len(self.others)
        for k, group in enumerate(self.groups):
            values = torch.arange(len(group), dtype=X.dtype, device=X.device)
            parts.append((X[..., start + k].round().unsqueeze(-1) == values).to(X))
        return torch.cat(parts, dim=-1)[..., self._inverse]

    def numbered(self, X: Tensor) -> Tensor:
        """Numbered points from those in one-hot columns."""
        numbers = [X[..., group].argmax(-1, keepdim=True).to(X) for group in self.groups]
        return torch.cat([X[..., self.others], *numbers], dim=-1)

    def constraints(self, constraints: Constraints | None) -> Constraints | None:
        """Linear constraints, which concern the other columns, with the places of these."""
        if constraints is None:
            return None
        return [
            (torch.tensor([self._place[i] for i in indices.tolist()], device=indices.device), coefficients, bound)
            for indices, coefficients, bound in constraints
        ]

    def fixed_features(self, fixed: Mapping[int, float] | None) -> dict[int, float] | None:
        """Fixed values, with a category's number where its columns are fixed."""
        if fixed is None:
            return None
        found = {self._place[i]: value for i, value in fixed.items() if i in self._place}
        for k, group in enumerate(self.groups):
            values = [fixed.get(column, 0.0) for column in group]
            if any(column in fixed for column in group):
                found[len(self.others) + k] = float(values.index(max(values)))
        return found

    def rounding(self, function: Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor] | None:
        """A function of points in one-hot columns as one of numbered points."""
        if function is None:
            return None
        return lambda X: self.numbered(function(self.one_hot(X)))


class NumberedAcquisition(AcquisitionFunction):
    r"""An acquisition function of numbered points.

    Args:
        acquisition: The function of points in one-hot columns.
        coordinates: The map between both.
    """

    def __init__(self, acquisition: AcquisitionFunction, coordinates: CategoryCoordinates) -> None:
        super().__init__(model=acquisition.model)
        self.acquisition, self.coordinates = acquisition, coordinates
        self._log = acquisition._log
        pending = getattr(acquisition, "X_pending", None)
        self.X_pending: Tensor | None = None if pending is None else coordinates.numbered(pending)  # type: ignore[assignment]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Failed to extract X_baseline", BotorchWarning)
            baseline = get_X_baseline(acquisition)
        if baseline is not None:  # else BoTorch takes the model's points, in one-hot columns
            self.X_baseline = coordinates.numbered(baseline)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Set pending points: numbered ones, `p x d`, or `None` for none."""
        self.X_pending = X_pending
        self.acquisition.set_X_pending(None if X_pending is None else self.coordinates.one_hot(X_pending))

    def forward(self, X: Tensor) -> Tensor:
        """The function at `batch_shape x q x d` numbered points."""
        return self.acquisition(self.coordinates.one_hot(X))


def categories_of(digest: SearchSpaceDigest) -> CategoryCoordinates | None:
    """The coordinates of a search space with one-hot columns; `None` for others."""
    coordinates = CategoryCoordinates(digest)
    return coordinates if coordinates.groups else None

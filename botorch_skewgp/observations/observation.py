r"""What all kinds of observations share: references to points, and copies that move them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor


class Mark(NamedTuple):
    r"""Equal marks in a picture, for observations at single points.

    Args:
        points: An `m`-dim integer tensor: the rows of `train_X`.
        label: What they are, for a legend.
        symbol: How they look: a `"value"`, a bound on one, a `"yes"` or a `"no"`, or a text to print.
        values: An `m`-dim tensor in units of the outcome, where they have any.
    """

    points: Tensor
    label: str
    symbol: Literal["value", "at most", "at least", "yes", "no"] | str
    values: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Observation:
    """Base class of all kinds of observations.

    Class attributes say what others ask of a kind, so that nobody asks for a kind by its name.

    Attributes:
        index_field: The field that refers to rows of `train_X`, an integer tensor in which -1 is padding.
        anchors_scale: Whether the observations are stated in units of the outcome, so that they fix location and scale
            of the latent function; labels and comparisons only tell it relative to their noise.
        points_per_observation: The least number of points that one observation refers to.
        tells_validity: Whether an outcome says if an experiment worked at all.
        turns_round: Whether the outcome of a function of which low values are good is the opposite, see `reversed`.
    """

    index_field: ClassVar[str] = "index"
    anchors_scale: ClassVar[bool] = False
    points_per_observation: ClassVar[int] = 1
    tells_validity: ClassVar[bool] = False
    turns_round: ClassVar[bool] = False

    def apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """A copy with `fn`, a change of dtype or device, applied to every tensor held; see `torch.nn.Module._apply`."""
        old = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        new = {name: fn(value) if isinstance(value, Tensor) else value for name, value in old.items()}
        return self if all(new[name] is old[name] for name in old) else self._with(new)

    def shift(self, offset: int) -> Self:
        """A copy that refers to the same points after `offset` others have been put before them."""
        index = getattr(self, self.index_field)
        return self._with({self.index_field: torch.where(index >= 0, index + offset, index)})  # -1 is padding

    def reversed(self) -> Observation:
        """The same observations of a function of which low values are good: judgements (what is preferred, what is
        valid) turn round, readings of the function stay as they are.
        """
        return self

    def _with(self, values: dict[str, Any]) -> Self:
        """A copy with some fields replaced by values that are known to be valid."""
        copy = object.__new__(type(self))
        for entry in fields(self):
            object.__setattr__(copy, entry.name, values.get(entry.name, getattr(self, entry.name)))
        return copy

    @property
    def num_outputs(self) -> int:
        """The number of latent functions that these observations are of."""
        return 1

    @property
    def numbers(self) -> Tensor:
        """What a standardisation learns from, the numbers among them in units of the outcome; mostly none."""
        return torch.empty(0)

    @property
    def duels(self) -> Tensor:
        """The comparisons of two points among them, `m x 2` with the winner first; mostly none."""
        return torch.empty(0, 2, dtype=torch.long)

    @property
    def ties(self) -> Tensor:
        """The pairs of points among them that nobody could tell apart, `m x 2`; mostly none."""
        return torch.empty(0, 2, dtype=torch.long)

    def marks(self) -> tuple[Mark, ...]:
        """How a picture shows what was seen at single points; by default not at all."""
        return ()

    @property
    def num_points_needed(self) -> int:
        """The least number of training points that these observations refer to, the largest index plus one."""
        index: Tensor = getattr(self, self.index_field)
        return int(index.max()) + 1 if index.numel() else 0

    @property
    def num_inputs_needed(self) -> int:
        """The least number of inputs, columns of `train_X`, that these observations refer to; mostly none."""
        return 0

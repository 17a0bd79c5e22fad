r"""Yes/no observations: labels and validity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from botorch_skewgp.observations.checks import as_flags, as_point_index
from botorch_skewgp.observations.observation import Countable, Mark


@dataclass(frozen=True, eq=False)
class Binary(Countable):
    r"""Labels: 1 where the noisy latent function is positive, else 0.

    Args:
        labels: An `m`-dim tensor of 0 and 1 (or booleans).
        index: An `m`-dim integer tensor: the row of `train_X` of each label; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If a label is neither 0 nor 1, or shapes disagree.

    Example:
        >>> Binary([1, 0, 0])  # of the first three rows of train_X
    """

    labels: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        labels = as_flags(self.labels, "labels")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "index", as_point_index(self.index, labels.shape[0], "labels"))
        super().__post_init__()

    def marks(self) -> tuple[Mark, ...]:
        """A yes for each 1 and a no for each 0."""
        return Mark(self.index[self.labels], "label 1", "yes"), Mark(self.index[~self.labels], "label 0", "no")


@dataclass(frozen=True, eq=False)
class Validity(Countable):
    r"""Whether experiments worked: the noisy latent function was above the likelihood's threshold.

    Equation (40) of the unified framework paper and section 3.2 of the preference paper. The number or comparison that
    a valid experiment yields is a `Numeric` or `Preference` beside this; a failed one yields nothing else.

    Args:
        valid: An `m`-dim tensor of booleans (or 0 and 1).
        index: An `m`-dim integer tensor: the row of `train_X` of each outcome; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If an entry is neither 0 nor 1, or shapes disagree.

    Example:
        >>> [Numeric([1.2, 0.7], index=[0, 2]), Validity([True, False, True])]
    """

    valid: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    tells_validity: ClassVar[bool] = True
    turns_round: ClassVar[bool] = True

    def __post_init__(self) -> None:
        valid = as_flags(self.valid, "valid")
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "index", as_point_index(self.index, valid.shape[0], "valid"))
        super().__post_init__()

    def marks(self) -> tuple[Mark, ...]:
        """A yes for each success and a no for each failure."""
        return Mark(self.index[self.valid], "valid", "yes"), Mark(self.index[~self.valid], "not valid", "no")

    def reversed(self) -> Validity:
        """Failures are above the threshold."""
        return self._with({"valid": ~self.valid})

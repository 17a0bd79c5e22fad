r"""Ordered grades."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_skewgp.observations.checks import MAX_CATEGORIES, as_count, as_index, as_point_index, as_values
from botorch_skewgp.observations.observation import Countable, Mark


@dataclass(frozen=True, eq=False)
class Ordinal(Countable):
    r"""Grades: the noisy latent function fell between two neighbouring cut-points.

    Many grades without a 0 cause an `InputDataWarning`, as they may have been counted from 1.

    Args:
        grades: An `m`-dim tensor of integers `0, ..., num_grades - 1`.
        num_grades: The number of grades, from 2 to 10,000.
        index: An `m`-dim integer tensor: the row of `train_X` of each grade; by default `0, ..., m - 1`.
        item: An `m`-dim integer tensor from 0: the item of a questionnaire that each grade answers, where items have
            cut-points of their own; see `OrdinalLikelihood(num_items=)`.

    Raises:
        InputDataError: If a grade is out of range, or shapes disagree.

    Example:
        >>> Ordinal([0, 2, 4], num_grades=5)
    """

    grades: Tensor
    num_grades: int
    index: Tensor = None  # type: ignore[assignment]  # set when built
    item: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_grades", as_count(self.num_grades, "num_grades", most=MAX_CATEGORIES))
        grades = as_values(self.grades, "grades")
        bad = ((grades != grades.round()) | (grades < 0) | (grades >= self.num_grades)).nonzero().squeeze(-1)
        if bad.numel():
            is_from_one = grades.min() == 1 and grades.max() == self.num_grades
            hint = " Grades count from 0: subtract 1." if is_from_one else ""
            raise InputDataError(
                f"grades must be integers from 0 to {self.num_grades - 1}; got {grades[bad[:5]].tolist()} at positions "
                f"{bad[:5].tolist()}.{hint}"
            )
        if self.num_grades >= 4 and len(grades) >= self.num_grades - 1 and grades.min() > 0:
            warnings.warn(
                f"No grade of {len(grades)} is 0, the lowest of {self.num_grades}. If they were counted from 1, as "
                "stars are, subtract 1.",
                InputDataWarning,
                stacklevel=3,
            )
        object.__setattr__(self, "grades", grades.long())
        object.__setattr__(self, "index", as_point_index(self.index, grades.shape[0], "grades"))
        if self.item is not None:
            item = as_index(self.item, "item", "m-dim", ndim=1, what="numbers of items")
            if len(item) != len(grades):
                raise InputDataError(f"item must hold a number for each of the {len(grades)} grades; got {len(item)}.")
            object.__setattr__(self, "item", item)
        super().__post_init__()

    def marks(self) -> tuple[Mark, ...]:
        """The number of each grade."""
        return tuple(
            Mark(self.index[self.grades == grade], f"grade {grade}", str(grade)) for grade in range(self.num_grades)
        )

r"""Labels at points: yes or no, validity, grades, and preferences between labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_skewgp.checks import (
    MAX_CATEGORIES,
    as_codes,
    as_count,
    as_flags,
    as_index,
    as_point_index,
    check_length,
    check_pairs,
)
from botorch_skewgp.observations.observation import Countable, Mark, Observation, Outcomes, as_judge


@dataclass(frozen=True, eq=False)
class Binary(Countable):
    r"""Labels: 1 where the noisy latent function is positive, else 0.

    Args:
        labels: An `m`-dim tensor of 0 and 1 (or booleans).
        index: An `m`-dim integer tensor: the row of `train_X` of each label; by default `0, ..., m - 1`.

    Example:
        >>> Binary([1, 0, 0])  # of the first three rows of train_X
    """

    labels: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def _check(self) -> None:
        labels = as_flags(self.labels, "labels")
        self._set(labels=labels, index=as_point_index(self.index, labels.shape[0], "labels"))

    @property
    def outcomes(self) -> Outcomes:
        """The labels."""
        return Outcomes(self.labels.long(), 2)

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

    Example:
        >>> [Numeric([1.2, 0.7], index=[0, 2]), Validity([True, False, True])]
    """

    valid: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    tells_validity: ClassVar[bool] = True

    def _check(self) -> None:
        valid = as_flags(self.valid, "valid")
        self._set(valid=valid, index=as_point_index(self.index, valid.shape[0], "valid"))

    @property
    def outcomes(self) -> Outcomes:
        """Successes and failures."""
        return Outcomes(self.valid.long(), 2)

    def marks(self) -> tuple[Mark, ...]:
        """A yes for each success and a no for each failure."""
        return Mark(self.index[self.valid], "valid", "yes"), Mark(self.index[~self.valid], "not valid", "no")


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

    Example:
        >>> Ordinal([0, 2, 4], num_grades=5)
    """

    grades: Tensor
    num_grades: int
    index: Tensor = None  # type: ignore[assignment]  # set when built
    item: Tensor | None = None

    def _check(self) -> None:
        self._set(num_grades=as_count(self.num_grades, "num_grades", most=MAX_CATEGORIES))
        grades = as_codes(self.grades, "grades", self.num_grades)
        if self.num_grades >= 4 and len(grades) >= self.num_grades - 1 and grades.min() > 0:
            warnings.warn(
                f"No grade of {len(grades)} is 0, the lowest of {self.num_grades}. If they were counted from 1, as "
                "stars are, subtract 1.",
                InputDataWarning,
                stacklevel=5,
            )
        self._set(grades=grades, index=as_point_index(self.index, grades.shape[0], "grades"))
        if self.item is not None:
            item = as_index(self.item, "item", "m-dim", ndim=1, what="numbers of items")
            check_length(item, len(grades), "item", "grades")
            self._set(item=item)

    @property
    def outcomes(self) -> Outcomes:
        """The grades."""
        return Outcomes(self.grades.long(), self.num_grades)

    def marks(self) -> tuple[Mark, ...]:
        """The number of each grade."""
        return tuple(
            Mark(self.index[self.grades == grade], f"grade {grade}", str(grade)) for grade in range(self.num_grades)
        )


@dataclass(frozen=True, eq=False)
class LabelPreference(Observation):
    r"""One label beats another at a point: multi-class labels and label graphs, one latent function per label.

    Equation (5) of the unified framework paper. A class label is `num_labels - 1` preferences over the other labels,
    see `from_classes`.

    Args:
        labels: An `m x 2` integer tensor of labels, winner first.
        num_labels: The number of labels and of outputs of the model, from 2 to 10,000.
        index: An `m`-dim integer tensor: the row of `train_X` of each preference; by default `0, ..., m - 1`.
        event: An `m`-dim integer tensor: preferences of one event share each label's noise; by default noise is
            independent.

    Example:
        >>> LabelPreference.from_classes([0, 2, 1], num_labels=3)  # class labels of the first three rows of train_X
        >>> LabelPreference([[0, 1], [2, 1]], num_labels=3, index=[0, 0])  # at row 0, labels 0 and 2 both beat label 1
    """

    labels: Tensor
    num_labels: int
    index: Tensor = None  # type: ignore[assignment]  # set when built
    event: Tensor = None  # type: ignore[assignment]  # set when built

    def _check(self) -> None:
        self._set(num_labels=as_count(self.num_labels, "num_labels", most=MAX_CATEGORIES))
        labels = check_pairs(self.labels, "labels", what="labels", item="a label")
        if labels.numel() and int(labels.max()) >= self.num_labels:
            raise InputDataError(f"labels must be from 0 to {self.num_labels - 1}; got {int(labels.max())}.")
        m = labels.shape[0]
        self._set(labels=labels, index=as_point_index(self.index, m, "labels"))
        event = torch.arange(m) if self.event is None else as_index(self.event, "event", "m-dim", 1, what="numbers")
        check_length(event, m, "event", "rows of labels")
        self._set(event=event)

    @property
    def num_outputs(self) -> int:
        """One latent function for each label."""
        return self.num_labels

    @property
    def outcomes(self) -> Outcomes | None:
        """The class labels; `None` for other preferences of labels."""
        event = self.event.unique(return_inverse=True)[1]
        winner = event.new_zeros(int(event.max()) + 1 if len(event) else 0)
        winner[event] = self.labels[:, 0].to(event)
        are_complete = len(event) == len(winner) * (self.num_labels - 1)
        are_classes = are_complete and torch.equal(winner[event], self.labels[:, 0].to(event))
        return Outcomes(winner, self.num_labels) if are_classes else None

    @classmethod
    def from_classes(
        cls, classes: Tensor, num_labels: int, index: Tensor | None = None, *, judge: Tensor | None = None
    ) -> LabelPreference:
        r"""Class labels: the observed label beats every other one in a single event.

        Args:
            classes: An `m`-dim integer tensor of labels `0, ..., num_labels - 1`.
            num_labels: The number of labels.
            index: As in the class.
            judge: The judge of each class label, an `m`-dim integer tensor.
        """
        num_labels = as_count(num_labels, "num_labels", most=MAX_CATEGORIES)
        classes = as_codes(classes, "classes", num_labels)
        index = as_point_index(index, classes.shape[0], "classes")
        others = torch.arange(num_labels, device=classes.device).expand(classes.shape[0], num_labels)
        event, loser = (others != classes.unsqueeze(-1)).nonzero(as_tuple=True)
        judge = None if judge is None else as_judge(judge, len(classes)).to(event)[event]
        pairs = torch.stack([classes[event], loser], dim=-1)
        return cls(pairs, num_labels, index.to(event)[event], event, judge=judge)

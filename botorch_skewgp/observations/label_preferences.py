r"""Preferences between labels at a point."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.observations.checks import MAX_CATEGORIES, as_count, as_index, as_point_index, check_pairs
from botorch_skewgp.observations.observation import Observation, as_judge


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

    Raises:
        InputDataError: If a label is out of range or compared with itself, or shapes disagree.

    Example:
        >>> LabelPreference.from_classes([0, 2, 1], num_labels=3)  # class labels of the first three rows of train_X
        >>> LabelPreference([[0, 1], [2, 1]], num_labels=3, index=[0, 0])  # at row 0, labels 0 and 2 both beat label 1
    """

    labels: Tensor
    num_labels: int
    index: Tensor = None  # type: ignore[assignment]  # set when built
    event: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_labels", as_count(self.num_labels, "num_labels", most=MAX_CATEGORIES))
        labels = check_pairs(self.labels, "labels", what="labels", item="label")
        if labels.numel() and int(labels.max()) >= self.num_labels:
            raise InputDataError(f"labels must be from 0 to {self.num_labels - 1}; got {int(labels.max())}.")
        m = labels.shape[0]
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "index", as_point_index(self.index, m, "labels"))
        event = torch.arange(m) if self.event is None else as_index(self.event, "event", "m-dim", 1, what="numbers")
        if event.shape[0] != m:
            raise InputDataError(f"event must have one entry for each of the {m} rows of labels; got {event.shape[0]}.")
        object.__setattr__(self, "event", event)
        super().__post_init__()

    @property
    def num_outputs(self) -> int:
        """One latent function for each label."""
        return self.num_labels

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

        Raises:
            InputDataError: If a class is not one of the labels, or judges are not one for each class.
        """
        num_labels = as_count(num_labels, "num_labels", most=MAX_CATEGORIES)
        classes = as_index(classes, "classes", "m-dim", ndim=1, what="labels")
        if classes.numel() and int(classes.max()) >= num_labels:
            raise InputDataError(f"classes must be from 0 to {num_labels - 1}; got {int(classes.max())}.")
        index = as_point_index(index, classes.shape[0], "classes")
        others = torch.arange(num_labels, device=classes.device).expand(classes.shape[0], num_labels)
        event, loser = (others != classes.unsqueeze(-1)).nonzero(as_tuple=True)
        judge = None if judge is None else as_judge(judge, len(classes)).to(event)[event]
        pairs = torch.stack([classes[event], loser], dim=-1)
        return cls(pairs, num_labels, index.to(event)[event], event, judge=judge)

r"""Points and observations from what BoTorch's functions and datasets pass."""

from __future__ import annotations

from collections.abc import Sequence

from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.utils.containers import SliceContainer
from botorch.utils.datasets import MultiTaskDataset, RankingDataset, SupervisedDataset
from torch import Tensor

from botorch_skewgp.models.inputs import as_sequence
from botorch_skewgp.observations import Numeric, Observation, Preference, Ranking, Tie


def as_observations(
    Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None
) -> tuple[Observation, ...]:
    """Observations from what BoTorch's functions pass: numbers, or integer pairs for duels.

    Raises:
        InputDataError: If noise is given twice.
    """
    if not isinstance(Y, Tensor):
        if noise is not None:
            raise InputDataError("Give the noise inside Numeric(values, noise) when Y holds observation objects.")
        return as_sequence(Y)
    if not Y.is_floating_point():
        return (Preference(Y),)
    return (Numeric(Y, noise),)


def from_dataset(dataset: SupervisedDataset) -> tuple[Tensor, tuple[Observation, ...]]:
    r"""Points and observations of a BoTorch dataset: numbers, or rankings of two or more points.

    Equal ranks of two points are a tie; in longer rankings points of equal rank are not compared.

    Raises:
        UnsupportedError: If the dataset has tasks, or several outcomes.
    """
    if isinstance(dataset, MultiTaskDataset):
        raise UnsupportedError("SkewGP has no tasks; give it the data of one task, or a kernel over the task column.")
    if dataset.Y.shape[-1] != 1 and not isinstance(dataset, RankingDataset):
        raise UnsupportedError(
            f"SkewGP models one outcome; got {dataset.outcome_names}. Build one model for each and join them in a "
            "ModelList."
        )
    if not isinstance(dataset, RankingDataset):
        noise = None if dataset.Yvar is None else dataset.Yvar.squeeze(-1)
        return dataset.X, (Numeric(dataset.Y.squeeze(-1), noise),)
    container = dataset._X
    assert isinstance(container, SliceContainer)
    ranks, order = dataset.Y.sort(dim=-1, stable=True)
    items = container.indices.gather(-1, order)
    if items.shape[-1] > 2:
        return container.values, (Ranking(items, ranks),)
    tied = ranks[:, 0] == ranks[:, 1]
    kinds = (Preference(items[~tied]), Tie(items[tied]))
    return container.values, tuple(entry for entry in kinds if entry.pairs.shape[0])

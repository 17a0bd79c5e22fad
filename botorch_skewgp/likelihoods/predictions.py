r"""Distributions of new outcomes: of a reading, and averages of such distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from botorch_skewgp.exceptions import UnknownKindError
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading


class Predictions(Mapping[type[Observation], Any]):
    r"""The distributions of new observations of several kinds, as a mapping: `predictions[Numeric]`.

    The keys are the first kind of each likelihood; any other of the kinds that it takes finds the same distribution.
    """

    def __init__(self, kinds: Sequence[tuple[type[Observation], ...]], distributions: Sequence[Any]) -> None:
        self._parts: list[tuple[tuple[type[Observation], ...], Any]] = []
        for own, distribution in zip(kinds, distributions, strict=True):
            if own[0] not in self:
                self._parts.append((own, distribution))

    def mapped(self, predict: Callable[[type[Observation]], Any]) -> Self:
        """Predictions of the same kinds, with a distribution for the first kind of each likelihood."""
        return type(self)([kinds for kinds, _ in self._parts], [predict(kinds[0]) for kinds, _ in self._parts])

    def __getitem__(self, kind: type[Observation]) -> Any:
        """The distribution of new observations of a kind; raises `UnknownKindError` if there is none."""
        for kinds, distribution in self._parts:
            if isinstance(kind, type) and issubclass(kind, kinds):
                return distribution
        asked, known = getattr(kind, "__name__", repr(kind)), ", ".join(own.__name__ for own in self)
        raise UnknownKindError(f"Predictions are of {known}; got {asked}. Ask for one of these kinds of observations.")

    def __iter__(self) -> Iterator[type[Observation]]:
        return (kinds[0] for kinds, _ in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Predictions({', '.join(f'{kind.__name__}: {value}' for kind, value in self.items())})"


def averaged(distributions: Sequence[Any], weights: Tensor) -> Any:
    """The mixture of distributions of outcomes, or of predictions of several kinds."""
    first = distributions[0]
    if isinstance(first, Predictions):
        return first.mapped(lambda kind: averaged([one[kind] for one in distributions], weights))
    probabilities = torch.stack([one.probs for one in distributions], dim=-1) @ weights
    return type(first)(probs=probabilities.clamp(max=1.0))  # rounding only


def outcome_distribution(read: SkewGPPosterior, reading: Reading, squeeze: bool = False) -> Bernoulli | Categorical:
    r"""The distribution of the outcomes of a single reading under a skewed posterior, in closed form.

    Args:
        read: The posterior of the reading, without noise.
        reading: The reading.
        squeeze: Whether to drop the posterior's last two dimensions, those of points and outputs.
    """
    noisy = read.add_noise(reading.variance)
    above = [noisy.probability_above(cut) for cut in reading.cutpoints[0]]
    if reading.num_outcomes == 2:
        probability = above[0] if reading.highest == 1 else noisy.cdf(reading.cutpoints[0, 0])
        if reading.slips is not None:
            probability = probability * (1 - reading.slips.sum()) + reading.slips[1]
        return Bernoulli(probs=probability.squeeze(-1).squeeze(-1) if squeeze else probability)
    below = [noisy.cdf(cut) for cut in reading.cutpoints[0]]
    cells = [below[0], *(high - low for low, high in pairwise(below)), above[-1]]
    probabilities = reading.with_slips(torch.stack([cells[i] for i in reading.outcomes[:, 0, 0].tolist()], dim=-1))
    return Categorical(probs=probabilities.squeeze(-2).squeeze(-2) if squeeze else probabilities)

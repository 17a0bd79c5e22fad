"""A covering design: choices of one value for each feature in which every possible pair of values occurs."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations

Values = dict[str, str]
NUM_GUESSES = 100  # random choices, where none can be completed one value after the other
NUM_TRIES = 3  # random orders in which a choice is completed; the one with most new pairs is taken


class CoveringDesign:
    """A greedy construction: values that must come together are given, the others are those with most missing pairs.

    Args:
        features: The values of each feature, the plain one first.
        is_possible: Whether a choice of all values is possible, or of some, with the others plain.
        rare: Values that are taken only where they have most missing pairs.
        seed: The seed of ties and orders.
    """

    def __init__(
        self,
        features: Mapping[str, Sequence[str]],
        is_possible: Callable[[Values], bool],
        rare: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        self.features, self.is_possible, self.rare = features, is_possible, rare
        self.chance = random.Random(seed)
        self.plain = {name: values[0] for name, values in features.items()}
        self.missing = {
            frozenset([(one, a), (other, b)])
            for one, other in combinations(features, 2)
            for a in features[one]
            for b in features[other]
        }
        self.rows: list[Values] = []

    def build(self, together: Iterable[Values] = ()) -> list[Values]:
        """Rows that hold each of the given choices, and then those that cover what pairs are missing."""
        for given in together:
            self._add(given)
        for pair in sorted(map(sorted, self.missing)):
            if frozenset(pair) in self.missing:
                self._add(dict(pair))
        return self.rows

    def _add(self, given: Values) -> None:
        tries = [row for _ in range(NUM_TRIES) if (row := self._completed(given)) is not None]
        if not tries:  # values that are possible together only
            guesses = (self._guessed(given) for _ in range(NUM_GUESSES))
            tries = [row for row in guesses if self.is_possible(row)][:NUM_TRIES]
        if tries:
            row = max(tries, key=lambda row: len(self._pairs(row) & self.missing))
            self.missing -= self._pairs(row)
            self.rows.append(row)

    @staticmethod
    def _pairs(row: Values) -> set[frozenset[tuple[str, str]]]:
        return set(map(frozenset, combinations(row.items(), 2)))

    def _completed(self, given: Values) -> Values | None:
        """A possible choice with given values; `None` if no order of features leads to one."""
        row = dict(given)
        others = [name for name in self.features if name not in given]
        for name in self.chance.sample(others, len(others)):
            gains = {
                value: (self._gain(name, value, row), value not in self.rare, self.chance.random())
                for value in self.features[name]
            }
            ranked = sorted(gains, key=gains.__getitem__, reverse=True)
            possible = (value for value in ranked if self.is_possible(self.plain | row | {name: value}))
            value = next(possible, None)
            if value is None:
                return None
            row[name] = value
        return {name: row[name] for name in self.features}

    def _guessed(self, given: Values) -> Values:
        """Given values among random ones."""
        return {name: given.get(name, self.chance.choice(values)) for name, values in self.features.items()}

    def _gain(self, name: str, value: str, row: Values) -> int:
        """The number of missing pairs that a value has with those of a row."""
        return sum(frozenset([(name, value), entry]) in self.missing for entry in row.items())

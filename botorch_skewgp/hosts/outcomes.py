r"""Numbers with long tails, brought near a normal distribution for a Gaussian process.

.. [YeoJohnson2000power] Yeo, Johnson. A new family of power transformations to improve normality or symmetry. 2000.
.. [CowenRivers2022hebo] Cowen-Rivers et al. HEBO. Journal of Artificial Intelligence Research 74, 2022.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import inv_boxcox1p
from scipy.stats import yeojohnson, yeojohnson_llf

LONGEST_TAIL = 5.0  # in distances between the median and the upper quartile
ROUNDING = 1e-9  # relative; numbers that differ by less are taken to be equal


class PowerTransform(NamedTuple):
    r"""An increasing map of numbers: bad ones are winsorised at a floor, and all standardised and mapped by
    [YeoJohnson2000power]_, those whose small values are good (`sign` -1) by the map of their negatives. The power is
    between 0, where the good tail is logarithmic, and 2, where the bad one is. The fields are of numbers times the
    sign.
    """

    floor: float = -np.inf
    mean: float = 0.0
    scale: float = 1.0
    power: float = 1.0
    sign: float = 1.0

    def __call__(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The map of an array of any shape; NaN stays NaN."""
        return self.transform(self.cut(numbers))

    def cut(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers, none of which is worse than the floor."""
        return self.sign * np.maximum(self.sign * numbers, self.floor)

    def transform(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The map, increasing beyond the floor too."""
        return self.sign * yeojohnson(self.sign * numbers / self.scale - self.mean / self.scale, self.power)

    def errors(self, numbers: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """The standard errors of the maps of numbers: half the width of the map of an interval of one error around."""
        numbers = self.cut(numbers)
        return (self.transform(numbers + errors) - self.transform(numbers - errors)) / 2

    def bounds(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The maps of lower and of upper bounds: a bad one beyond the floor is no constraint, and stays beyond it."""
        return (self.transform(lower), self(upper)) if self.sign > 0 else (self(lower), self.transform(upper))

    def inverse_transform(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers that the map takes to an array of values; beyond the floor too."""
        values = self.sign * values
        sizes = np.abs(values)
        z = np.where(values < 0, -inv_boxcox1p(sizes, 2 - self.power), inv_boxcox1p(sizes, self.power))
        return self.sign * (self.mean + self.scale * z)

    def rise(self, value: float, amount: float) -> float:
        """By how much numbers become better where a value of the larger-is-better kind rises by an amount."""
        before, after = self._replace(sign=1.0).inverse_transform(np.array([value, value + amount]))
        return float(after - before)


def fit_power_transform(numbers: NDArray[np.float64], sign: float = 1.0) -> PowerTransform:
    """The map after which numbers are nearest to normal ones, as in [CowenRivers2022hebo]_; linear for fewer than three
    different numbers. The floor is as far below the median as one normal number in three thousand, since extremely bad
    numbers would leave the others all alike; there is none where median and upper quartile are equal up to rounding.
    """
    known = sign * numbers[~np.isnan(numbers)]
    largest = np.abs(known).max(initial=0.0)
    if len(np.unique(known)) < 3:
        return PowerTransform(sign=sign)
    units = known / largest  # whose squares do not overflow
    median, upper = np.quantile(units, [0.5, 0.75])
    spread = upper - median
    floor = median - LONGEST_TAIL * spread if spread > ROUNDING * abs(median) else -np.inf
    kept = np.maximum(units, floor)
    mean, scale = kept.mean(), kept.std()
    if not scale * largest > np.finfo(float).tiny:
        return PowerTransform(sign=sign)
    z = (kept - mean) / scale
    power = minimize_scalar(lambda power: -yeojohnson_llf(power, z), bounds=(0.0, 2.0), method="bounded").x
    return PowerTransform(float(floor * largest), float(mean * largest), float(scale * largest), float(power), sign)

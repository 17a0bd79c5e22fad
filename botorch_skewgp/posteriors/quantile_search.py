r"""Quantiles of many distributions at a time: bracketed searches for the roots of their cdfs.

Newton's method runs in the logarithm of the smaller tail, inside a bracket. It is slow where components of a mixture
are nearly point masses: a bisection follows two steps that halve neither the bracket nor the error. A root is returned
when its probability is right, or when the bracket holds no further number, as at a point mass, where the cdf steps over
the level.
"""

from __future__ import annotations

from typing import Protocol, Self

import torch
from torch import Tensor


class Distributions(Protocol):
    """The interface of `n` distributions for a search."""

    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """Two finite values around the quantile, for `n` levels; the search moves them if they do not enclose it."""

    def tail_and_density(self, value: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The survival function where `upper`, else the cdf, and the density, at `n` values."""

    def at(self, points: Tensor) -> Self:
        """The distributions that a mask selects."""


def search_tolerance(dtype: torch.dtype) -> float:
    """The admissible relative error of a probability."""
    return min(torch.finfo(dtype).eps ** 0.7, 1e-5)


def search_quantiles(distributions: Distributions, level: Tensor, start: Tensor) -> Tensor:
    """The quantiles of `n` distributions at one level each, from given starts, `n`."""
    low, high = distributions.bracket(level)
    x = torch.where((start >= low) & (start <= high), start, 0.5 * low + 0.5 * high)
    search = _Search(level, low, high, search_tolerance(level.dtype))
    result, todo = torch.empty_like(x), torch.arange(len(x), device=x.device)
    while len(todo):
        x, found = search.step(x, *distributions.tail_and_density(x, search.upper))
        if bool(found.any()):
            result[todo[found]] = x[found]
            rest = ~found
            todo, x, distributions = todo[rest], x[rest], distributions.at(rest)
            search.keep(rest)
    return result


class _Search:
    """Bracketed searches for the points where decreasing or increasing tails reach given probabilities."""

    def __init__(self, level: Tensor, low: Tensor, high: Tensor, tolerance: float) -> None:
        self.upper = level > 0.5  # whether the upper tail is the smaller one
        self.sign = torch.where(self.upper, -1.0, 1.0).to(level)  # of the slope of the smaller tail
        self.wanted = torch.where(self.upper, 1 - level, level)
        self.log_wanted = self.wanted.log()
        self.low, self.high, self.tolerance = low, high, tolerance
        eps, tiny = torch.finfo(low.dtype).eps, torch.finfo(low.dtype).tiny
        self.checked_low = self.checked_high = torch.zeros_like(self.upper)
        self.growth = torch.maximum(high - low, 4 * eps * torch.maximum(low.abs(), high.abs()) + tiny)
        infinite = torch.full_like(low, torch.inf)
        self.last_width = self.last_but_one_width = self.last_error = self.last_but_one_error = infinite

    def keep(self, which: Tensor) -> None:
        """Keep only some of the points."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value[..., which])

    def step(self, x: Tensor, tail: Tensor, density: Tensor) -> tuple[Tensor, Tensor]:
        """Update the brackets by the values at `x`; returns the next points, and whether they are roots."""
        error = self.sign * (tail.log() - self.log_wanted)
        left = error < 0
        # an end of the bracket on the wrong side of the root is moved
        beyond_high, beyond_low = left & (x >= self.high), ~left & (x <= self.low)
        moved = beyond_high | beyond_low
        self.checked_low = (self.checked_low | left) & ~beyond_low
        self.checked_high = (self.checked_high | ~left) & ~beyond_high
        low = torch.where(beyond_low, x - self.growth, torch.where(left, x, self.low))
        high = torch.where(beyond_high, x + self.growth, torch.where(left, self.high, x))
        self.low, self.high, self.growth = low, high, torch.where(moved, 16 * self.growth, self.growth)
        width, size = high - low, error.abs()
        is_slow = (width > 0.5 * self.last_but_one_width) & (size > 0.5 * self.last_but_one_error)
        self.last_but_one_width, self.last_width = self.last_width, width
        self.last_but_one_error, self.last_error = self.last_error, size
        middle = 0.5 * low + 0.5 * high
        is_last = (middle <= low) | (middle >= high)

        newton = x - error * tail / density
        newton = newton + 2 * torch.finfo(x.dtype).eps * (newton - x).sign() * x.abs()  # past the root, if it is close
        new = torch.where((newton > low) & (newton < high) & ~is_slow, newton, middle)
        new = torch.where(is_last & ~self.checked_low, low, new)
        new = torch.where(is_last & self.checked_low, high, new)
        found = is_last & self.checked_low & self.checked_high

        is_right = ((tail - self.wanted).abs() <= self.tolerance * self.wanted) | error.isnan()
        return torch.where(is_right, x, new), found | is_right

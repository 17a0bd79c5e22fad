r"""Distribution functions of one-dimensional mixtures: cdf, density and quantile, many mixtures at a time.

Quantiles are sought in brackets by Newton's method in the logarithm of the smaller tail; where that is slow, as near
point masses, by bisection.

.. [Cornish1938moments] Cornish, Fisher. Moments and cumulants in the specification of distributions. 1938.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Self

import torch
from torch import Tensor

from botorch_skewgp.truncated.univariate import normal_cdf

SHORT_STEP = 1e-4  # of Halley's method, in units of the length in which a density changes; its error is the cube
CHUNK = 2**17  # numbers held at a time in a temporary tensor, which a cache can hold


class MixtureMarginals(ABC):
    """A batch of one-dimensional mixtures of `S` components each, of probabilities `S` or `batch_shape x S`.

    A subclass defines the distribution functions of the components, elementwise, in terms of `self.parameters` alone,
    which broadcast to `batch_shape x S`, and a bracket. Everything is differentiable in values, levels, parameters and
    probabilities.
    """

    def __init__(self, probabilities: Tensor, parameters: Sequence[Tensor]) -> None:
        self.probabilities = probabilities
        self.parameters = tuple(parameters)

    @abstractmethod
    def component_cdf(self, value: Tensor) -> Tensor:
        """`P(x <= value)` under every component at `... x 1` values; `... x S`, accurate where it is small."""

    @abstractmethod
    def component_survival(self, value: Tensor) -> Tensor:
        """`P(x > value)` under every component at `... x 1` values; `... x S`, accurate where it is small."""

    @abstractmethod
    def component_density(self, value: Tensor) -> Tensor:
        """The density of every component at `... x 1` values; `... x S`."""

    @abstractmethod
    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """Two finite values around quantiles at `batch_shape` levels; the search moves them if they are not."""

    def first_guess(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """Starts for the search of the quantiles of `batch_shape` levels, and which of them are exact; by default the
        middle of the bracket, and none.
        """
        low, high = self.bracket(level)
        return 0.5 * low + 0.5 * high, torch.zeros_like(level, dtype=torch.bool)

    def tail_and_density(self, value: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The survival function where `upper`, else the cdf, and the density, at `batch_shape` values; for searches."""
        x = value.unsqueeze(-1)
        if bool(upper.all()):
            tail = self.component_survival(x)
        elif not bool(upper.any()):
            tail = self.component_cdf(x)
        else:
            tail = torch.where(upper.unsqueeze(-1), self.component_survival(x), self.component_cdf(x))
        return self.average(tail), self.average(self.component_density(x))

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of mixtures."""
        return torch.broadcast_shapes(*(t.shape[:-1] for t in (self.probabilities, *self.parameters)))

    def cdf(self, value: Tensor) -> Tensor:
        """`P(x <= value)` at `... x batch_shape` values, accurate where it is small."""
        return self._average(value, lambda mixture, x: mixture.component_cdf(x))

    def survival(self, value: Tensor) -> Tensor:
        """`P(x > value)` at `... x batch_shape` values, accurate where it is small."""
        return self._average(value, lambda mixture, x: mixture.component_survival(x))

    def density(self, value: Tensor) -> Tensor:
        """The density at `... x batch_shape` values."""
        return self._average(value, lambda mixture, x: mixture.component_density(x))

    def quantile(self, level: Tensor) -> Tensor:
        r"""The smallest values whose cdf reaches given levels, `... x batch_shape`.

        The cdf there is exact to a share of `3e-11` of the smaller tail (`1e-5` in single precision), or it steps over
        the level between this number and the one before. Differentiable by the implicit function theorem. Raises
        `ValueError` if a level is not strictly between 0 and 1.
        """
        if not bool(((level > 0) & (level < 1)).all()):
            raise ValueError("Quantiles are defined for probabilities strictly between 0 and 1.")
        with torch.no_grad():
            root = self._in_chunks(level, search_quantiles)
        if not (torch.is_grad_enabled() and (level.requires_grad or self._requires_grad())):
            return root
        # one Newton step from the root: its value is the root, its derivative the implicit one
        error = self.cdf(root) - level
        density = self.density(root).detach()
        density = torch.where(density > 0, density, torch.ones_like(density))  # it underflows between point masses
        return root - (error - error.detach()) / density

    def at(self, points: Tensor | slice) -> Self:
        """The mixtures at some points, from a batch with one dimension. By numbers, a mask, or a slice."""
        return self._map(lambda t: t[points] if t.ndim > 1 else t)

    def _map(self, fn: Callable[[Tensor], Tensor]) -> Self:
        result = copy(self)
        result.probabilities = fn(self.probabilities)
        result.parameters = tuple(fn(p) for p in self.parameters)
        return result

    def _requires_grad(self) -> bool:
        return any(t.requires_grad for t in (self.probabilities, *self.parameters))

    def _in_chunks(self, x: Tensor, function: Callable[[Self, Tensor], Tensor]) -> Tensor:
        """A function of `c` mixtures and `k x c` values, at `... x batch_shape` values, in parts of bounded memory."""
        x = x.expand(torch.broadcast_shapes(x.shape, self.batch_shape))
        if not x.numel():
            return x
        flat, most = self._flat(), max(CHUNK // self.probabilities.shape[-1], 1)
        by_rows = []
        for rows in x.reshape(-1, self.batch_shape.numel()).split(most):
            size, first, parts = max(most // len(rows), 1), 0, []
            for part in rows.split(size, dim=-1):
                parts.append(function(flat.at(slice(first, first + size)), part))
                first += size
            by_rows.append(torch.cat(parts, dim=-1))
        return torch.cat(by_rows).reshape(x.shape)

    def _flat(self) -> Self:
        """The mixtures in a batch of one dimension; tensors that all points share are not repeated."""
        shape = self.batch_shape

        def flatten(t: Tensor) -> Tensor:
            if t.shape[:-1].numel() == 1:
                return t.flatten()
            return t.expand(*shape, t.shape[-1]).flatten(0, -2)

        return self._map(flatten)

    def _average(self, value: Tensor, function: Callable[[Self, Tensor], Tensor]) -> Tensor:
        """The average over components of a function."""
        size = max(value.numel(), self.batch_shape.numel()) * self.probabilities.shape[-1]
        if size <= 2 * CHUNK or (torch.is_grad_enabled() and (value.requires_grad or self._requires_grad())):
            return self.average(function(self, value.unsqueeze(-1)))
        return self._in_chunks(value, lambda mixture, part: mixture.average(function(mixture, part.unsqueeze(-1))))

    def average(self, x: Tensor) -> Tensor:
        """The average over components of `... x batch_shape x S` numbers."""
        return x @ self.probabilities if self.probabilities.ndim == 1 else (x * self.probabilities).sum(-1)


class NormalMixtureMarginals(MixtureMarginals):
    r"""Mixtures of normal distributions.

    Args:
        means: The means of the components, `batch_shape x S`.
        standard_deviation: Their standard deviations, `batch_shape x S`, or `batch_shape x 1` if they share one.
        probabilities: The probabilities of the components, `S` or `batch_shape x S`.

    Example:
        >>> mixture = NormalMixtureMarginals(torch.tensor([-1.0, 2.0]), torch.tensor([0.5]), torch.tensor([0.3, 0.7]))
        >>> mixture.cdf(mixture.quantile(torch.tensor(0.9)))
        tensor(0.9000)
    """

    def __init__(self, means: Tensor, standard_deviation: Tensor, probabilities: Tensor) -> None:
        super().__init__(probabilities, (means, standard_deviation))

    def _standardised(self, value: Tensor) -> Tensor:
        means, standard_deviation = self.parameters
        return (value - means) / standard_deviation

    def component_cdf(self, value: Tensor) -> Tensor:
        """The normal cdfs at `... x 1` values."""
        return normal_cdf(self._standardised(value))

    def component_survival(self, value: Tensor) -> Tensor:
        """The normal survival functions at `... x 1` values."""
        return normal_cdf(-self._standardised(value))

    def component_density(self, value: Tensor) -> Tensor:
        """The normal densities at `... x 1` values."""
        scale = self.parameters[1] * math.sqrt(2 * math.pi)
        return torch.exp(-0.5 * self._standardised(value).square()) / scale

    def tail_and_density(self, value: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """As in the base class, with little memory and arithmetic; not differentiable."""
        scaled, _ = self._outwards(value, upper)
        tail = 0.5 * self.average(torch.special.erfc(scaled))
        kernel = scaled.square_().neg_().exp_()
        scale = math.sqrt(2 * math.pi) * self.parameters[1]
        if scale.shape[-1] == 1:
            return tail, self.average(kernel) / scale.squeeze(-1)
        return tail, self.average(kernel.div_(scale))

    def first_guess(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """Where components share a standard deviation, by moments ([Cornish1938moments]_) and two steps of Halley's
        method, the first in single precision; exact if the second is so short that nothing is left of its cube.
        """
        means, scale = self.parameters
        if scale.shape[-1] != 1:
            return super().first_guess(level)
        mean = self.average(means)
        centred = means - mean.unsqueeze(-1)
        squares = centred.square()
        variance = self.average(squares) + scale.squeeze(-1).square()
        skewness = (self.average(squares.mul_(centred)) / variance.pow(1.5)).clamp(-1.5, 1.5)
        z = torch.special.ndtri(level)
        z = z + (z.square() - 1) * skewness / 6 - (2 * z.pow(3) - 5 * z) * skewness.square() / 36
        x = variance.sqrt() * z
        upper = level > 0.5
        wanted = torch.where(upper, 1 - level, level)
        rough = NormalMixtureMarginals(centred.float(), scale.float(), self.probabilities.float())
        first, _ = rough._halley_step(x.float(), upper, wanted.float())
        x = torch.where(first.isfinite(), first.to(x), x)
        x, size = NormalMixtureMarginals(centred, scale, self.probabilities)._halley_step(x, upper, wanted)
        x = mean + x
        keeps_digits = _tolerance(x) * scale.squeeze(-1) >= 4 * torch.finfo(x.dtype).eps * x.abs()
        return x, (size <= SHORT_STEP) & keeps_digits

    def _halley_step(self, x: Tensor, upper: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """The next points, and how far they are, in units of the length in which the density changes."""
        # with `t` a component's outward distance over sqrt(2), the tail is the average of `erfc(t) / 2`, the density
        # that of `exp(-t^2)`, and its derivatives those of this times powers of `t`
        scaled, outwards = self._outwards(x, upper)
        tail = 0.5 * self.average(torch.special.erfc(scaled))
        kernel = scaled.square().neg_().exp_()
        density = self.average(kernel) / math.sqrt(2 * math.pi)
        kernel.mul_(scaled)
        fall = self.average(kernel) / (density * math.sqrt(math.pi))  # of the density, relative
        steepness = 1 + (self.average(kernel.mul_(scaled)) / (density * math.sqrt(0.5 * math.pi))).sqrt()
        newton = (tail - wanted) / density
        step = newton / (1 - (0.5 * newton * fall).clamp(-0.5, 0.5))
        return x + math.sqrt(0.5) * step / outwards.squeeze(-1), (newton * steepness).abs()

    def _outwards(self, x: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The components' outward distances over the root of two at `batch_shape` values, and their factor."""
        means, scale = self.parameters
        factor = math.sqrt(0.5) * (2 * upper.to(x) - 1).unsqueeze(-1) / scale
        return (x.unsqueeze(-1) - means).mul_(factor), factor  # in place: passes over all components are the work

    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the largest of the components' quantiles."""
        means, standard_deviation = self.parameters
        least, largest = means.aminmax(dim=-1)
        narrowest, widest = standard_deviation.aminmax(dim=-1)
        z = torch.special.ndtri(level)
        low = least + torch.where(z < 0, widest, narrowest) * z
        high = largest + torch.where(z < 0, narrowest, widest) * z
        return low, high


def search_quantiles(mixtures: MixtureMarginals, level: Tensor) -> Tensor:
    """The quantiles of `c` mixtures at `k` levels each, `k x c`; not differentiable."""
    result, is_exact = mixtures.first_guess(level)
    left = (~is_exact).nonzero(as_tuple=True)
    if len(left[0]):
        result[left] = _search_in_brackets(mixtures.at(left[1]), level[left], result[left])
    return result


def _search_in_brackets(mixtures: MixtureMarginals, level: Tensor, start: Tensor) -> Tensor:
    """The quantiles of `n` mixtures at one level each, `n`."""
    low, high = mixtures.bracket(level)
    x = torch.where((start >= low) & (start <= high), start, 0.5 * low + 0.5 * high)
    search, result = _Search(level, low, high), torch.empty_like(x)
    todo = torch.arange(len(x), device=x.device)
    while len(todo):
        tail, density = mixtures.tail_and_density(x, search.upper)
        x, is_root = search.step(x, tail, density)
        if bool(is_root.any()):
            result[todo[is_root]] = x[is_root]
            rest = ~is_root
            todo = todo[rest]
            x = x[rest]
            mixtures = mixtures.at(rest)
            search.keep(rest)
    return result


def _tolerance(like: Tensor) -> float:
    """The share of the smaller tail to which quantiles are exact."""
    return min(torch.finfo(like.dtype).eps ** 0.7, 1e-5)


class _Search:
    """Bracketed searches for the points where decreasing or increasing tails reach given probabilities.

    Args:
        level: The levels of quantiles, of whose tails the smaller one is watched.
        low: Lower ends of brackets.
        high: Upper ends of brackets.
    """

    def __init__(self, level: Tensor, low: Tensor, high: Tensor) -> None:
        self.upper = level > 0.5  # whether the upper tail is the smaller one
        self.sign = torch.where(self.upper, -1.0, 1.0).to(level)  # of the slope of the smaller tail
        self.wanted = torch.where(self.upper, 1 - level, level)
        self.low = low
        self.high = high
        self.checked_low = torch.zeros_like(self.upper)
        self.checked_high = torch.zeros_like(self.upper)
        limits = torch.finfo(low.dtype)
        self.tolerance = _tolerance(low)
        rounding = 4 * limits.eps * torch.maximum(low.abs(), high.abs()) + limits.tiny
        self.growth = torch.maximum(high - low, rounding)  # of a bracket with an end on the wrong side
        infinite = torch.full_like(low, torch.inf)
        self.widths = torch.stack([infinite, infinite])  # of the last two brackets
        self.errors = torch.stack([infinite, infinite])  # of the last two logarithms of tails

    def keep(self, which: Tensor) -> None:
        """Keep only some of the points."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value[..., which])

    def step(self, x: Tensor, tail: Tensor, density: Tensor) -> tuple[Tensor, Tensor]:
        """Update the brackets by the values at `x`; returns the next points, and whether they are roots."""
        error = self.sign * (tail.log() - self.wanted.log())
        self._update_bracket(x, error < 0)
        is_slow = self._is_slow(error.abs())
        middle = 0.5 * self.low + 0.5 * self.high
        is_last = (middle <= self.low) | (middle >= self.high)  # no number is between the ends

        # Newton's step for log(tail), and a little further: past the root, if it is close
        newton = x - error * tail / density
        newton = newton + 2 * torch.finfo(x.dtype).eps * (newton - x).sign() * x.abs()
        is_inside = (newton > self.low) & (newton < self.high)
        new = torch.where(is_inside & ~is_slow, newton, middle)
        new = torch.where(is_last, torch.where(self.checked_low, self.high, self.low), new)

        is_step = is_last & self.checked_low & self.checked_high
        is_right = ((tail - self.wanted).abs() <= self.tolerance * self.wanted) | error.isnan()
        return torch.where(is_right, x, new), is_step | is_right

    def _update_bracket(self, x: Tensor, is_left: Tensor) -> None:
        """Put `x`, left of the root or right of it, in place of an end; an end on the wrong side is moved."""
        beyond_high = is_left & (x >= self.high)
        beyond_low = ~is_left & (x <= self.low)
        self.checked_low = (self.checked_low | is_left) & ~beyond_low
        self.checked_high = (self.checked_high | ~is_left) & ~beyond_high
        low = torch.where(beyond_low, x - self.growth, torch.where(is_left, x, self.low))
        self.high = torch.where(beyond_high, x + self.growth, torch.where(is_left, self.high, x))
        self.low = low
        self.growth = torch.where(beyond_high | beyond_low, 16 * self.growth, self.growth)

    def _is_slow(self, error: Tensor) -> Tensor:
        """Whether two steps halved neither the bracket nor the error."""
        width = self.high - self.low
        is_slow = (width > 0.5 * self.widths[0]) & (error > 0.5 * self.errors[0])
        self.widths = torch.stack([self.widths[1], width])
        self.errors = torch.stack([self.errors[1], error])
        return is_slow

r"""Mixtures of many normal distributions of one standard deviation, grouped in cells.

Cells cover the range of the means, and are narrow beside the standard deviation. For a mean `t` deviations from the
middle of its cell, and a value `z` deviations from there, the generating function of the Hermite polynomials gives

.. math:: \varphi(z - t) = \varphi(z) \sum_{k \ge 0} \frac{t^k}{k!} He_k(z), \qquad
    \Phi(z - t) = \Phi(z) - \varphi(z) \sum_{k \ge 1} \frac{t^k}{k!} He_{k-1}(z),

so that cdf and density at any value need only a few moments of the `t` of each cell, from one pass over the
components. The truncation error of the cdf is less than `TRUNCATION`.
"""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor

from botorch_skewgp.truncated.backends import choose_backend

CELL_WIDTH = 0.36  # in standard deviations
NUM_MOMENTS = 12  # of a cell, from order zero on
NUM_DENSITY_MOMENTS = 6  # for the density, which only sets the length of a step
MAX_CELLS = 256  # of a mixture; most are empty where components are so narrow
# The term of order `NUM_MOMENTS` at the end of a cell; by Cramer's inequality |He_k(z)| phi(z) <= 0.4335 sqrt(k!).
TRUNCATION = 0.4335 * (CELL_WIDTH / 2) ** NUM_MOMENTS / math.sqrt(math.factorial(NUM_MOMENTS) * NUM_MOMENTS)
EAGER_CHUNK = 2**18  # means at a time, which a cache can hold


def _hermite_polynomials() -> tuple[Tensor, Tensor]:
    """The coefficients of both series above: of powers of `z`, in terms of moments in widths of a cell."""
    hermite = torch.zeros(NUM_MOMENTS, NUM_MOMENTS, dtype=torch.float64)
    hermite[0, 0] = hermite[1, 1] = 1.0
    for k in range(1, NUM_MOMENTS - 1):
        hermite[k + 1] = hermite[k].roll(1) - k * hermite[k - 1]
    order = torch.arange(NUM_MOMENTS, dtype=torch.float64)
    scale = (order * math.log(CELL_WIDTH) - torch.lgamma(order + 1)).exp().unsqueeze(-1)
    num = NUM_DENSITY_MOMENTS
    return (scale * hermite)[:num, :num].mT.contiguous(), (scale[1:] * hermite[:-1, :-1]).mT.contiguous()


DENSITY_SERIES, CDF_SERIES = _hermite_polynomials()


class MixtureCells:
    r"""The cells of `n` mixtures, for `search_quantiles`.

    Args:
        means: The means of the components of mixtures, `N x S`.
        probabilities: Their probabilities, `S` or `N x S`.
        points: The numbers of the mixtures among these, `n`.
        least: Their least means, `n`.
        largest: Their largest means, `n`, at most `MAX_CELLS` cells from the least.
        deviation: The standard deviations of their components, `n`.
    """

    def __init__(
        self, means: Tensor, probabilities: Tensor, points: Tensor, least: Tensor, largest: Tensor, deviation: Tensor
    ) -> None:
        self.least, self.largest, self.deviation = least, largest, deviation
        width = CELL_WIDTH * deviation
        num_cells = int(((largest - least) / width).max()) + 1
        moments = means.new_zeros(NUM_MOMENTS, len(points), num_cells)
        _add_moments(means, probabilities.expand(means.shape), points, least, width, moments)
        self.mass = moments[0]
        self.density_series = torch.tensordot(DENSITY_SERIES.to(means), moments[:NUM_DENSITY_MOMENTS], 1)
        self.cdf_series = torch.tensordot(CDF_SERIES.to(means), moments[1:], 1)  # powers x n x num_cells
        middle, within = self._middles(), CELL_WIDTH * moments[1]
        first = (self.mass * middle + within).sum(-1)
        second = (middle * (self.mass * middle + 2 * within) + CELL_WIDTH**2 * moments[2]).sum(-1)
        self.mean = least + deviation * first
        self.standard_deviation = deviation * (1 + second - first.square()).sqrt()

    def at(self, points: Tensor) -> Self:
        """The cells of the mixtures that a mask selects."""
        result = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(result, name, value[:, points] if name.endswith("_series") else value[points])
        return result

    def first_guess(self, level: Tensor) -> Tensor:
        """The quantiles of the normal distributions of equal moments, `n` for `n` levels."""
        return self.mean + self.standard_deviation * torch.special.ndtri(level)

    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the largest of the components' quantiles, `n` each for `n` levels."""
        reach = self.deviation * torch.special.ndtri(level)
        return self.least + reach, self.largest + reach

    def tail_and_density(self, value: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        """The survival function where `upper`, else the cdf, and the density, at `n` values."""
        z = ((value - self.least) / self.deviation).unsqueeze(-1) - self._middles()
        kernel = (-0.5 * z.square()).exp_().mul_(1 / math.sqrt(2 * math.pi))
        density = (kernel * _polynomial(self.density_series, z)).sum(-1) / self.deviation
        side = torch.where(upper, 1.0, -1.0).to(value).unsqueeze(-1)
        beyond = torch.special.erfc(side * math.sqrt(0.5) * z).mul_(0.5 * self.mass)
        return (beyond + side * kernel * _polynomial(self.cdf_series, z)).sum(-1), density

    def _middles(self) -> Tensor:
        """The middles of cells, in standard deviations from the least mean, `num_cells`."""
        return CELL_WIDTH * (0.5 + torch.arange(self.mass.shape[-1], dtype=self.mass.dtype, device=self.mass.device))


def _polynomial(coefficients: Tensor, z: Tensor) -> Tensor:
    """Polynomials with `k x n x m` coefficients, from that of the constant on, at `n x m` values, by Horner's rule."""
    *others, result = coefficients
    for coefficient in reversed(others):
        result = torch.addcmul(coefficient, result, z)
    return result


def _add_moments(
    means: Tensor, probabilities: Tensor, points: Tensor, least: Tensor, width: Tensor, moments: Tensor
) -> None:
    """Add to `moments`, `orders x n x num_cells`, probabilities times powers of distances from the middles of cells.

    Distances are in widths of a cell, `n`; the first cell of each mixture begins at `least`, `n`.
    """
    if choose_backend("auto", means.device) == "numba":
        from botorch_skewgp.posteriors.compiled_cells import add_moments

        arguments = means.contiguous(), probabilities, points, least, width, moments
        add_moments(*(t.detach().numpy() for t in arguments))
        return
    for part in torch.arange(len(points), device=means.device).split(max(EAGER_CHUNK // means.shape[-1], 1)):
        place = (means[points[part]] - least[part].unsqueeze(-1)).div_(width[part].unsqueeze(-1))
        cell = place.long()
        place.sub_(cell).sub_(0.5)
        power = probabilities[points[part]]
        sums = moments.new_zeros(len(moments), len(part), moments.shape[-1])
        for total in sums:
            total.scatter_add_(-1, cell, power)
            power = power * place
        moments[:, part] += sums

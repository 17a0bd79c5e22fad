"""Powers of row factors, `f_i(h_i)^p_i` with `p_i` at most 1: what an answer of a fractional weight tells.

Integrals are by Gauss-Legendre quadrature in panels around the mode and the bounds. Draws are of the number of variance
`noise / p` that gives `h` its exact mean and variance, which may lie beyond the bounds of the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor

from botorch_skewgp.truncated.row_factor import RowFactor, TiltedMoments
from botorch_skewgp.truncated.univariate import legendre

REACH = 8.5  # standard deviations beyond which a normal distribution, or a narrower one, has no mass
NUM_NODES = 10  # in a panel; errors of 1e-10 for weights of .01 to 1 and noise of 1e-6 to 1e6 of the variance
AROUND_BOUNDS = (-10.0, -3.0, 0.0, 3.0, 10.0)  # ends of panels, in standard deviations of the noise


class PoweredFactor(RowFactor):
    """Powers of the factors of rows, each an answer of its own, with exponents `... x m`, at most 1."""

    def __init__(self, base: RowFactor, power: Tensor) -> None:
        super().__init__(base.lower, base.upper, base.noise)
        self.base, self.power = base, power

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        return type(self)(self.base.map(change), change(self.power))

    def with_noise(self, noise: Tensor) -> Self:
        return type(self)(self.base.with_noise(noise), self.power)

    def clamp(self, u: Tensor) -> Tensor:
        return self.base.clamp(u)

    def log_likelihood(self, h: Tensor) -> Tensor:
        return self.power * self.base.log_likelihood(h)

    def log_likelihood_and_slope(self, h: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = self.base.log_likelihood_and_slope(h)
        return self.power * value, self.power * slope

    def log_probability(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The log of the expected power for `h ~ N(mean, variance)`; differentiable."""
        whole = self.base.log_probability(mean, variance)
        return self._replace(whole, mean, variance, lambda some, m, v: some._quadrature(m, v)[1].logsumexp(-1))

    def moments(self, mean: Tensor, variance: Tensor) -> TiltedMoments:
        """Moments of the row whose factor would move `h` as the power does: with `l` the log of the power `E l'` and
        `-E l'' - Var l'`, under `h`'s distribution times the power, without differences of nearly equal variances.
        """
        scale, *whole = self.base.moments(mean, variance)

        def of_fractions(some: PoweredFactor, m: Tensor, v: Tensor) -> Tensor:
            first, second = some._derivatives(m, v)
            return torch.stack([first * some.scale(v), 1 - second * some.scale(v).square()])

        return TiltedMoments(scale, *self._replace(torch.stack(whole), mean, variance, of_fractions))

    def draw(self, centre: Tensor, scale: Tensor, uniform: Tensor) -> Tensor:
        return self.base.draw(centre, scale, uniform)

    def draw_mean_given(self, h: Tensor, count: Tensor, uniform: Tensor) -> Tensor:
        inside = self.base.draw_mean_given(h, count, uniform)
        return torch.where(self.power < 1, self.base._draw_mean(h, count, uniform), inside)

    def _replace(
        self, whole: Tensor, mean: Tensor, variance: Tensor, of: Callable[[PoweredFactor, Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Values of rows, with those of a function where the power is a fraction."""
        which = (self.power.detach() < 1).flatten(0, -2).any(0) if self.power.ndim > 1 else self.power.detach() < 1
        which = which.nonzero().squeeze(-1)
        mean, variance = (part.expand_as(mean + variance).index_select(-1, which) for part in (mean, variance))
        return whole.index_copy(-1, which, of(self.map(lambda part: part.index_select(-1, which)), mean, variance))

    def _derivatives(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """The derivative of the log integral in the mean, and the negative of the second one."""
        nodes, log_weight = self._quadrature(mean, variance)
        slope, curvature = self._at_nodes()._slopes(nodes)
        weight = log_weight.softmax(-1)
        first = (weight * slope).sum(-1)
        spread = (weight * (slope - first.unsqueeze(-1)).square()).sum(-1)
        return first, (weight * curvature).sum(-1) - spread

    def _slopes(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """The first derivative of the log of the power, and the negative of the second one."""
        scale, t_mean, t_variance = self.base.moments(h, torch.zeros_like(h))
        return self.power * t_mean / scale, self.power * (1 - t_variance) / scale.square()

    def _at_nodes(self) -> PoweredFactor:
        return self.map(lambda part: part.unsqueeze(-1))

    def _quadrature(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes `h`, `... x m x k`, and the logs of their weights under the normal distribution times the power."""
        sd = variance.clamp(min=0).sqrt()
        with torch.no_grad():
            ends = self._ends(mean, sd)
            x, w = legendre(mean, NUM_NODES)
            width = ends.diff(dim=-1).unsqueeze(-1)
            z = (ends[..., :-1].unsqueeze(-1) + width * x).flatten(-2)
            log_weight = (width * w).flatten(-2).log() - 0.5 * z.square() - 0.5 * math.log(2 * math.pi)
        nodes = mean.unsqueeze(-1) + sd.unsqueeze(-1) * z
        return nodes, log_weight + self._at_nodes().log_likelihood(nodes)

    def _ends(self, mean: Tensor, sd: Tensor) -> Tensor:
        """The ends of panels in standard deviations of `h`, `... x m x j`, increasing: they grow from the mode to both
        sides, as far as the prior and the mode have mass, and lie around each bound too.
        """
        some = self._at_nodes()
        mean, sd = mean.unsqueeze(-1), sd.unsqueeze(-1)
        mode, noise_sd = some._mode(mean, sd), some.noise.sqrt() / sd
        low, high = mode.clamp(max=0) - REACH, mode.clamp(min=0) + REACH
        narrowest = (1 + some.power / noise_sd.square()).rsqrt()
        growth = torch.linspace(0, 1, 6, dtype=mean.dtype, device=mean.device)
        outer = narrowest * (REACH / narrowest).pow(growth)
        around_bounds = noise_sd * mean.new_tensor(AROUND_BOUNDS)
        at_bounds = [((bound - mean) / sd + around_bounds).nan_to_num(0.0) for bound in (some.lower, some.upper)]
        ends = torch.cat([low, mode - outer, mode, mode + outer, high, *at_bounds], -1)
        return torch.minimum(torch.maximum(ends, low), high).sort(-1).values

    def _mode(self, mean: Tensor, sd: Tensor) -> Tensor:
        """The mode of `h` in standard deviations from its mean, by Newton steps in a bracket that they shrink."""
        # the log density is concave: its mode is between the mean and where the slope at the mean points to
        near, far = torch.zeros_like(mean), sd * self._slopes(mean)[0]
        side, mode = far.sign(), near
        for _ in range(24):
            slope, curvature = self._slopes(mean + sd * mode)
            slope = sd * slope - mode
            is_before = slope * side > 0
            near, far = torch.where(is_before, mode, near), torch.where(is_before, far, mode)
            step = mode + slope / (1 + sd.square() * curvature)
            is_inside = (step - near) * (step - far) < 0
            mode = torch.where(is_inside, step, 0.5 * (near + far))
        return mode

r"""Mixtures of warped Student t distributions, one component for each node of the parameters.

.. [Zhu2023btg] Zhu et al. Bayesian transformed Gaussian processes. Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.posteriors.mixture_marginals import MixtureMarginals
from botorch_skewgp.transformed import student_t
from botorch_skewgp.warpings import Warping

FARTHEST = 40.0  # node of the quadrature of moments, beyond which tails are powers to machine precision
MAX_LOG = 300.0  # of moments at that node, short of overflow


class TransformedTMarginals(MixtureMarginals):
    r"""Mixtures of laws of `y = g_s^{-1}(location_s + scale_s T)`, with a Student t variable `T`, truncated to the
    range of the warping `g_s` ([Zhu2023btg]_, equation (7)).
    """

    def __init__(self, location: Tensor, scale: Tensor, probabilities: Tensor, df: float, warping: Warping) -> None:
        """Locations and scales, `batch_shape x S`, probabilities, likewise or `S`, and a warping of shape `S` or 1."""
        super().__init__(probabilities, (location, scale))
        self.df, self.warping = df, warping
        lowest, highest = (end.detach().to(location) for end in warping.range)
        if bool((highest != math.inf).any()):
            raise NotImplementedError("Warpings with a bounded upper range are not supported.")
        self._lowest = lowest if bool((lowest != -math.inf).any()) else None

    def _standardised(self, value: Tensor) -> Tensor:
        location, scale = self.parameters
        return (self.warping(value) - location) / scale

    def missing(self) -> Tensor | float:
        """The probability of each component beyond the range of its warping, `batch_shape x S`; 0 if none."""
        if self._lowest is None:
            return 0.0
        location, scale = self.parameters
        return student_t.cdf((self._lowest - location) / scale, self.df)

    def component_cdf(self, value: Tensor) -> Tensor:
        missing = self.missing()
        return (student_t.cdf(self._standardised(value), self.df) - missing) / (1 - missing)

    def component_survival(self, value: Tensor) -> Tensor:
        return student_t.cdf(-self._standardised(value), self.df) / (1 - self.missing())

    def component_log_survival(self, value: Tensor) -> Tensor:
        """The logarithms of the survival functions of the components at `... x 1` values."""
        return student_t.log_cdf(-self._standardised(value), self.df) - self._log_present()

    def component_log_cdf(self, value: Tensor) -> Tensor:
        """The logarithms of the cdfs of the components at `... x 1` values."""
        if self._lowest is None:
            return student_t.log_cdf(self._standardised(value), self.df)
        return self.component_cdf(value).log()

    def component_log_density(self, value: Tensor) -> Tensor:
        """The logarithms of the densities of the components at `... x 1` values."""
        finite = torch.where(value.isinf(), 0.0, value)
        log_density = student_t.log_density(self._standardised(finite), self.df) - self.parameters[1].log()
        log_density = log_density + self.warping.log_derivative(finite) - self._log_present()
        return torch.where(value.isinf(), -math.inf, log_density)

    def component_density(self, value: Tensor) -> Tensor:
        return self.component_log_density(value).exp()

    def component_log_gain(self, value: Tensor, above: bool = True) -> Tensor:
        r"""The logarithms of `E[max(g_s(y) - g_s(value), 0)] / g_s'(value)` at `... x 1` values, or of gains below."""
        location, scale = self.parameters
        t = self._standardised(value)
        log_gain = student_t.log_excess(t if above else -t, self.df)
        if self._lowest is not None and not above:  # without the part beyond the range
            lowest = (self._lowest - location) / scale
            beyond = student_t.log_excess(-lowest, self.df).exp() + (t - lowest) * self.missing()
            log_gain = log_gain + torch.log1p(-beyond * (-log_gain).exp())
        return log_gain - self._log_present() + scale.log() - self.warping.log_derivative(value)

    def _log_present(self) -> Tensor:
        return torch.log1p(-torch.as_tensor(self.missing()))

    def component_quantile(self, level: Tensor) -> Tensor:
        """The quantiles of the components at `... x S` or `... x 1` levels; the largest number where they overflow."""
        location, scale = self.parameters
        if self._lowest is not None:  # from the upper tail, which keeps digits where much is cut off
            t = -student_t.quantile((1 - level) * (1 - self.missing()), self.df)
        else:
            t = student_t.quantile(level, self.df)
        largest = torch.finfo(location.dtype).max
        return self.warping.inverse(location + scale * t).clamp(-largest, largest)

    # The search for the mixture's quantiles

    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """The least and the largest quantile of the components, which bound the mixture's ([Zhu2023btg]_, 4.4)."""
        quantiles = self.component_quantile(level.unsqueeze(-1))
        return quantiles.amin(-1), quantiles.amax(-1)

    def first_guess(self, level: Tensor) -> tuple[Tensor, Tensor]:
        """The average of the components' quantiles, on a scale on which tails are no heavier than exponential."""
        start = torch.sinh(self.average(torch.asinh(self.component_quantile(level.unsqueeze(-1)))))
        return start, torch.zeros_like(start, dtype=torch.bool)

    # Moments

    def largest_tail_power(self) -> float:
        """The largest power with which outcomes grow; moments of order `k` exist if it is below `df / k`."""
        return float(self.warping.tail_power.detach().max())

    def expectation(self, center: Tensor | None = None) -> Tensor:
        """The means of the mixtures, or the mean squares around given numbers, by quadrature; `batch_shape`."""
        # the trapezoidal rule in v, where T = sqrt(df) sinh(v): terms decay like powers of cosh(v), geometrically in
        # the far tails, where their sum has a closed form, so that moments that barely exist need no far nodes
        location, scale = self.parameters
        order = 1 if center is None else 2
        spare = self.df - order * self.warping.tail_power.detach().to(location)
        growth = order * self.largest_tail_power()
        log_cosh = min(37.0 / float(spare.min()), FARTHEST)  # at which terms are below machine precision
        end = min(math.acosh(math.exp(log_cosh)), MAX_LOG / growth)
        num = max(80, math.ceil(end / 0.1))
        v = torch.linspace(-end, end, 2 * num + 1, dtype=location.dtype, device=location.device)
        weights = torch.exp(-self.df * torch.cosh(v).log())
        beyond = 1 / torch.expm1(spare * end / num)  # the sum of all terms after one, relative to it
        total = torch.zeros_like(location)
        nodes = math.sqrt(self.df) * torch.sinh(v)
        for i, (t, weight) in enumerate(zip(nodes, weights / weights.sum(), strict=True)):
            y = self.warping.inverse(location + scale * t)
            term = weight * (y if center is None else (y - center.unsqueeze(-1)).square())
            if i in (0, 2 * num):
                term = term * (1 + beyond)
            total = total + term
        if self._lowest is not None:  # the mass beyond the range was counted at the lower end of the domain
            end_of_domain, missing = self.warping.domain[0].to(location), self.missing()
            cut = end_of_domain if center is None else (end_of_domain - center.unsqueeze(-1)).square()
            total = (total - cut * missing) / (1 - missing)
        return self.average(total)

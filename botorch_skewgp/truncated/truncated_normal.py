r"""The truncated normal of the rows: a Gaussian prior of their noiseless parts, their noise and their bounds.

A row has a likelihood factor, `f_i(h_i) = P(lower < u_i <= upper | h_i)`. A row of `count` `c` stands for `c` equal
answers, or for one of weight `c`: its part of the likelihood is `f_i^c`. Expectation propagation writes it as a product
of `k = ceil(c)` equal factors `f_i^p` (`num_factors`), of the power `p = c / k`, at most 1, each with its own site.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.powered_factor import PoweredFactor
from botorch_skewgp.truncated.priors import DensePrior, LowRankPrior, Map, NoisyPrior
from botorch_skewgp.truncated.row_factor import RowFactor, mapped
from botorch_skewgp.truncated.step_factor import Heights, StepFactor

ALL_NOISE = 1e-14  # variance of a row's noiseless part over its noise's, up to which it is rounding


@dataclass(frozen=True, eq=False)
class TruncatedNormal:
    """The distribution of `u = h + v` given `lower < u <= upper`, with `h ~ N(mean, C)` and `v ~ N(0, diag(noise))`, of
    `Gamma = C + diag(noise)`, in float64. Raises `ValueError` where shapes, values, counts or heights cannot be.
    """

    mean: Tensor  # `m`
    prior: LowRankPrior  # prior of `h - mean`; or its covariance `C`, `m x m`, positive semi-definite
    lower: Tensor  # `m`, lower bounds; `-inf` where there is none
    upper: Tensor  # `m`, upper bounds; `inf` where there is none
    noise: Tensor  # `m`, variances of the rows' independent noise; zero is allowed
    # `m`: the number of rows that a row stands for, of the same `h` and bounds and independent noise;
    # draws of `u` are of their mean. One each if `None`. Needs noise in rows that stand for another number than one.
    # Fractions are powers of factors, see `PoweredFactor`.
    count: Tensor | None = None
    # probabilities of slips, of `mean`'s shape: `u` may then lie beyond the bounds. No slips if `None`
    heights: Heights | None = None

    def __post_init__(self) -> None:
        if isinstance(self.prior, Tensor):
            shape = self.prior.shape
            if len(shape) != 2 or shape[0] != shape[1]:
                raise ValueError(f"prior must be m x m if it is a covariance; got {tuple(shape)}.")
            object.__setattr__(self, "prior", DensePrior(self.prior))
        if self.mean.dtype != torch.float64:
            raise ValueError(f"Truncated normals are in double precision; got a mean of {self.mean.dtype}.")
        if self.mean.ndim != 1:
            raise ValueError(f"mean must be of m rows, of a single distribution; got shape {tuple(self.mean.shape)}.")
        m = self.mean.shape[-1]
        if self.prior.num_rows != m:
            raise ValueError(f"prior must be that of {m} rows to match mean; got {self.prior.num_rows}.")
        for name in ("lower", "upper", "noise"):
            value = getattr(self, name)
            if value.shape != self.mean.shape:
                raise ValueError(f"{name} must have mean's shape {tuple(self.mean.shape)}; got {tuple(value.shape)}.")
            if value.dtype != self.mean.dtype or value.device != self.mean.device:
                raise ValueError(f"{name} must have mean's dtype and device.")
        if m and not bool(((self.lower < self.upper) & (self.noise >= 0) & self.mean.isfinite()).all()):
            self._refuse_values()
        if self.count is not None:
            if self.count.shape != self.mean.shape or not bool((self.count > 0).all()):
                raise ValueError(f"count must hold positive numbers in mean's shape {tuple(self.mean.shape)}.")
            if not bool(((self.noise > 0) | (self.count == 1)).all()):
                raise ValueError("Rows that stand for several need noise.")
        if self.heights is not None:
            slips = self.heights.outside
            if slips.shape != self.mean.shape or self.heights.gain.shape != self.mean.shape:
                raise ValueError(f"heights must have mean's shape {tuple(self.mean.shape)}; got {tuple(slips.shape)}.")
            if not bool(((slips >= 0) & (self.heights.gain > 0)).all()):
                raise ValueError("The heights outside must not be negative, and those inside must be larger.")

    def _refuse_values(self) -> None:
        """Raise an error that names what is wrong with mean, bounds or noise."""
        for name in ("lower", "upper", "noise"):
            if getattr(self, name).isnan().any():
                raise ValueError(f"{name} contains NaN.")
        if not self.mean.isfinite().all():
            raise ValueError("mean contains NaN or infinite values.")
        if not (self.lower < self.upper).all():
            raise ValueError("Every entry of lower must be strictly below its entry of upper.")
        raise ValueError("noise holds variances; they must not be negative.")

    @classmethod
    def empty(cls, like: Tensor) -> TruncatedNormal:
        """The distribution of no rows, of the dtype and device of a tensor."""
        none = like.new_zeros(0)
        return cls(mean=none, prior=DensePrior(like.new_zeros(0, 0)), lower=none, upper=none, noise=none)

    @property
    def num_rows(self) -> int:
        """The number `m` of rows."""
        return self.mean.shape[-1]

    @cached_property
    def factor(self) -> RowFactor:
        """The likelihood factor of each row, to the power `count / num_factors` where some are weights."""
        factor = RowFactor(self.lower, self.upper, self.noise)
        if self.heights is not None:
            factor = StepFactor(self.lower, self.upper, self.noise, self.heights)
        if self.count is None or self.num_factors is None or torch.equal(self.count, self.num_factors):
            return factor
        return PoweredFactor(factor, self.count / self.num_factors)

    @cached_property
    def num_factors(self) -> Tensor | None:
        """The whole number of equal factors of a row."""
        return None if self.count is None else self.count.ceil()

    def times_factors(self, values: Tensor) -> Tensor:
        """Values of rows times the number of their factors, `m` or broadcast with it."""
        return values if self.num_factors is None else values * self.num_factors

    @cached_property
    def noisy_prior(self) -> NoisyPrior:
        """The distribution of `u - mean` before truncation; of rows that stand for several, of their mean."""
        return NoisyPrior(self.prior, self.noise if self.count is None else self.noise / self.count)

    @property
    def gamma(self) -> Tensor:
        """`Gamma`, the dense `m x m` covariance of `u` before truncation; not kept, for it is large."""
        return self.noisy_prior.covariance

    @property
    def gamma_cholesky(self) -> Tensor:
        """The lower Cholesky factor of `Gamma`; noise less than `1e-12` of a row's variance is raised to that."""
        return self.noisy_prior.cholesky

    @cached_property
    def informative(self) -> Tensor | None:
        """1 for rows that are informative and 0 for those that are all noise, `m`; `None` if all are."""
        some = self.prior.variances.detach() > ALL_NOISE * self.noise.detach()
        return None if bool(some.all()) else some.to(self.noise)

    @cached_property
    def gamma_diagonal(self) -> Tensor:
        """The variances of single rows `u` before truncation, `m`."""
        return self.prior.variances + self.noise

    def noiseless(self, latent: Tensor) -> Tensor:
        """Map latent coordinates, `k x r`, to values of `h`, `k x m`, of a single distribution."""
        return self.mean + self.prior.times(latent)

    def conditionals(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Means `k x m` and deviations `m` of every row given all others, rows `k x m`, before truncation."""
        diagonal, product = self.noisy_prior.precision(rows - self.mean)
        return rows - product / diagonal, diagonal.rsqrt()

    def select(self, index: Tensor) -> TruncatedNormal:
        """The distribution of some rows without counts, by a mask `m` or by integers `k`."""
        return self._changed(self.prior.select(index), None, lambda values: values[..., index])

    def map(self, change: Map) -> TruncatedNormal:
        """The distribution with its real tensors changed, such as moved to another device."""
        return self._changed(self.prior.map(change), mapped(self.count, change), change)

    def _changed(self, prior: LowRankPrior, count: Tensor | None, change: Map) -> TruncatedNormal:
        names = ("mean", "lower", "upper", "noise", "heights")
        changed = {name: mapped(getattr(self, name), change) for name in names}
        return TruncatedNormal(prior=prior, count=count, **changed)

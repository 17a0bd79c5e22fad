r"""The exact evidence's gradient from moments of the truncated normal, as an objective for stochastic optimisers.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import WarmExpectationPropagation
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.samplers.feasibility import feasible_start
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import interval_moments, log_normal_density


class StochasticMarginalLogLikelihood(RowMarginalLogLikelihood):
    r"""The exact log evidence's gradient, unbiased up to the draws' equilibrium, and the log priors.

    [Benavoli2021unified]_, Proposition 2: the gradient of a log normaliser is an average over the truncated normal.
    For `Z = P(lower < u <= upper)`, `u ~ N(mean, Gamma)` and `Lambda = Gamma^-1`,

        `d log Z = E[d log N(u; mean, Gamma)] + sum_i p_i(upper_i) d upper_i - p_i(lower_i) d lower_i`,

    where `p_i` is the density of `u_i` under the truncation. The terms of one row (`p_i`, the derivatives in its mean
    and variance) are averaged over `u_i` given the other rows in closed form (Rao and Blackwell). With many rows over
    few points, the average is over the latent coordinates `z` instead, `d log Z = E[d log P(lower < mean + F z + v <=
    upper | z)]`, and no matrix is inverted. The normaliser of a skew prior is subtracted in the same way.

    *The value* is expectation propagation's log evidence, for stopping rules; *the gradient* is the estimate: use
    stochastic optimisers, not L-BFGS. Each evaluation goes on with the chains of the last one for a few steps, and
    repeats only with a fresh object.

    Example:
        >>> mll = StochasticMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll, optimizer=fit_gpytorch_mll_torch)
    """

    def __init__(
        self,
        likelihood: RowLikelihood,
        model: SkewGP,
        num_chains: int = 16,
        num_steps: int = 2,
        warmup: int = 32,
        seed: int = 0,
    ) -> None:
        """Chains make `num_steps` in an evaluation, `warmup` before the first; `ValueError` if these are too few."""
        super().__init__(likelihood, model)
        if num_chains < 1 or num_steps < 1 or warmup < 0:
            raise ValueError("num_chains and num_steps must be positive, and warmup must not be negative.")
        self._chain_settings = num_chains, num_steps, warmup
        self.seed = seed
        self.reset()

    def reset(self) -> None:
        """Forget the chains; new ones start from the seed."""
        self._of_data = _Chains(*self._chain_settings, self.seed)
        self._of_prior = _Chains(*self._chain_settings, self.seed + 1)

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return self._of_data.log_normalizer(rows)

    def _log_prior_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return self._of_prior.log_normalizer(rows)


class _Chains:
    """Chains of a truncated normal, and the gradient of its normaliser from them."""

    def __init__(self, num_chains: int, num_steps: int, warmup: int, seed: int) -> None:
        self.num_chains, self.num_steps, self.warmup, self.seed = num_chains, num_steps, warmup, seed
        self._generator: torch.Generator | None = None
        self._expectation_propagation = WarmExpectationPropagation()

    def log_normalizer(self, distribution: TruncatedNormal) -> Tensor:
        """The log normaliser: expectation propagation's value with the gradient from the chains."""
        with torch.no_grad():
            frozen = distribution.map(Tensor.detach)
            ep = self._expectation_propagation(frozen)
            rows = self._draw(frozen, ep)
            value = ep.log_normalizer
        if frozen.prior.is_low_rank and bool((frozen.noise > 0).all()):
            with torch.no_grad():
                latent = frozen.noisy_prior.draw_latent(rows - frozen.mean, self._generator)
            # the prior of latent coordinates has no parameters
            surrogate = distribution.factor.log_likelihood(distribution.noiseless(latent)).sum(-1).mean(0)
        else:
            surrogate = _by_rows(distribution, frozen, rows)
        return value + surrogate - surrogate.detach()

    def _draw(self, distribution: TruncatedNormal, ep: ExpectationPropagation) -> Tensor:
        """Rows `k x m` of all steps and chains."""
        if self._generator is None or self._generator.device != distribution.mean.device:
            self._generator = torch.Generator(device=distribution.mean.device).manual_seed(self.seed)
        sampler = ReflectiveEllipticalSliceSampler(distribution)
        state = sampler.init(feasible_start(distribution, self.num_chains, self._generator, ep.product))
        if self.warmup > 0:
            state, _, _ = sampler.run(state, self.warmup, self._generator)
        _, positions, _ = sampler.run(state, self.num_steps, self._generator)
        return sampler.rows(positions, self._generator).flatten(0, 1)


def _by_rows(distribution: TruncatedNormal, frozen: TruncatedNormal, rows: Tensor) -> Tensor:
    """Linear in the distribution's tensors, with the derivatives of the log normaliser as coefficients."""
    with torch.no_grad():
        conditional_mean, scale = frozen.conditionals(rows)
        a, b = (frozen.lower - conditional_mean) / scale, (frozen.upper - conditional_mean) / scale
        log_probability, moment, variance = interval_moments(a, b)
        to_mean = (moment / scale).mean(0)
        # the densities p_i at the bounds
        at_lower = torch.exp(log_normal_density(a) - log_probability).div(scale).mean(0)
        at_upper = torch.exp(log_normal_density(b) - log_probability).div(scale).mean(0)
        # d log N(u; mean, Gamma) / d Gamma = 1/2 (Lambda (u - mean) (u - mean)^T Lambda - Lambda)
        gradient = (rows - conditional_mean) / scale.square()  # Lambda (u - mean)
        precision = torch.cholesky_inverse(frozen.gamma_cholesky)
        outer = gradient.mT @ gradient / rows.shape[0]
        diagonal = ((variance + moment.square()) / scale.square()).mean(0)
        to_gamma = 0.5 * (torch.diagonal_scatter(outer, diagonal) - precision)
    value = (to_gamma * distribution.gamma).sum() + (to_mean * distribution.mean).sum()
    for bound, slope in ((distribution.lower, -at_lower), (distribution.upper, at_upper)):
        finite = bound.isfinite()  # the density at an infinite bound is zero
        value = value + (slope * torch.where(finite, bound, torch.zeros_like(bound))).sum()
    return value

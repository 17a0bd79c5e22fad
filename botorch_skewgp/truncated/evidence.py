r"""The probability that a normal vector falls between its bounds: the normaliser of a truncated normal.

.. [Meng1996bridge] Meng, Wong. Simulating ratios of normalizing constants via a simple identity. 1996.
.. [FruehwirthSchnatter2004] Fruehwirth-Schnatter. Econometrics Journal 7, 2004.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.diagnostics import effective_sample_size
from botorch_skewgp.truncated.draws import Draws, DrawSettings, draw, noiseless_given_rows
from botorch_skewgp.truncated.gaussian_rows import SiteConditioned, gaussian_rows
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.row_factor import standard_normal
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class LogNormalizer(NamedTuple):
    """An estimate of a log normaliser, and its standard error in nats; `None` where the method has none."""

    value: Tensor
    standard_error: Tensor | None


@torch.no_grad()
def bridge_log_normalizer(
    distribution: TruncatedNormal,
    draws: Draws | None = None,
    approximation: ExpectationPropagation | None = None,
    generator: torch.Generator | None = None,
    settings: DrawSettings | None = None,
) -> LogNormalizer:
    """`log P(lower < u <= upper)` by the optimal bridge between the Gaussian of expectation propagation and posterior
    draws ([Meng1996bridge]_, section 4), and its standard error ([FruehwirthSchnatter2004]_, section 4).
    """
    settings = settings or DrawSettings()
    zero = distribution.mean.new_zeros(())
    if distribution.num_rows == 0:
        return LogNormalizer(zero, zero)
    if generator is None:
        generator = torch.Generator(device=distribution.mean.device).manual_seed(settings.seed + 1)
    if approximation is None:
        approximation = expectation_propagation(distribution)
    if draws is None:
        draws = draw(distribution, settings, generator, approximation)
    replaced = gaussian_rows(approximation)
    if bool(replaced.any()):
        conditioned = SiteConditioned(distribution, approximation, replaced)
        draws = replace(draws, rows=draws.rows.to(zero)[:, ~replaced])
        rest = bridge_log_normalizer(conditioned.rest, draws, None, generator, settings)
        if conditioned.rest.num_rows == 0:
            return LogNormalizer(approximation.log_normalizer, zero)
        # with the rows' sites in place of the others, expectation propagation's two values differ by their factor
        left = rest.value - expectation_propagation(conditioned.rest).log_normalizer
        return LogNormalizer(approximation.log_normalizer + left, rest.standard_error)
    root = approximation.product.latent_root
    noise = standard_normal((4 * draws.num_draws, len(root)), root, generator)
    latent = approximation.product.latent_mean + noise @ root.mT
    log_q = _log_ratio(distribution, approximation, distribution.noiseless(latent))
    log_p = _log_ratio(distribution, approximation, noiseless_given_rows(distribution, draws.rows, generator))
    log_ratio, relative_variance = _bridge(log_q, log_p, draws.num_chains)
    return LogNormalizer(approximation.base + log_ratio, relative_variance.sqrt())


def _log_ratio(distribution: TruncatedNormal, approximation: ExpectationPropagation, h: Tensor) -> Tensor:
    """Log of likelihood over sites at values of `h`, `k x m`; `-inf` beyond a noise-free row's bounds."""
    tau, nu = approximation.sites
    return distribution.times_factors(distribution.factor.log_likelihood(h) + 0.5 * tau * h.square() - nu * h).sum(-1)


def _size(values: Tensor, num_chains: int) -> Tensor:
    """The effective number of draws, `batch_shape x num_draws`, for their average; at most their number."""
    by_chain = values.unflatten(-1, (num_chains, -1)).transpose(-1, -2).unsqueeze(-1)
    return effective_sample_size(by_chain).squeeze(-1).clamp(max=float(values.shape[-1]))


def _bridge(log_q: Tensor, log_p: Tensor, num_chains: int) -> tuple[Tensor, Tensor]:
    """The log ratio of normalisers and its relative variance, from log density ratios at draws of each."""
    n_q, size_p = log_q.shape[-1], _size(log_p, num_chains)
    share = (size_p / (size_p + n_q)).unsqueeze(-1)
    log_share, log_rest = share.log(), torch.log1p(-share)
    log_r = torch.zeros_like(log_q[..., :1])

    def terms(log_r: Tensor) -> tuple[Tensor, Tensor]:
        at_q = log_q - torch.logaddexp(log_share + log_q, log_rest + log_r)
        at_p = -torch.logaddexp(log_share + log_p, log_rest + log_r)
        return at_q, at_p

    for _ in range(200):
        at_q, at_p = terms(log_r)
        new = _log_mean(at_q) - _log_mean(at_p)
        done = bool(((new - log_r).abs() < 1e-10).all())
        log_r = new
        if done:
            break
    at_q, at_p = terms(log_r)
    size_p = torch.minimum(size_p, _size((at_p - at_p.amax(-1, keepdim=True)).exp(), num_chains))
    relative = _relative_variance(at_q) / n_q + _relative_variance(at_p) / size_p
    return log_r.squeeze(-1), relative


def _log_mean(x: Tensor) -> Tensor:
    return torch.logsumexp(x, dim=-1, keepdim=True) - math.log(x.shape[-1])


def _relative_variance(log_x: Tensor) -> Tensor:
    """Variance over squared mean of exponentials."""
    return (log_x - _log_mean(log_x)).exp().var(-1)

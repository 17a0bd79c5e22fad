r"""Gaussian mixtures conditioned on rows in closed form, draw by draw, and on values drawn from them.

Given a draw, the latent function is Gaussian: a further number updates every draw's mean, and its probability by the
density of the number. A further interval row does so with a value drawn from its truncated normal and the probability
of the interval: a step of sequential importance sampling ([Geweke1991efficient]_).

.. [Geweke1991efficient] Geweke. Computing Science and Statistics 23, 1991.
"""

from __future__ import annotations

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.rows import FantasyRows
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.univariate import (
    log_interval_probability,
    log_normal_density,
    sample_interval,
    standardise,
)


def condition_mixture(posterior: SkewGPPosterior, rows: FantasyRows, uniforms: Tensor) -> RepresenterMixture:
    """The mixture given rows, all numbers or all intervals; `uniforms` is `m x S`, `m x S` more for slips."""
    weight = rows.weight
    means = weight @ posterior.component_means
    covariance = weight @ posterior.gaussian_covariance @ weight.mT + rows.noise_covariance
    L = cholesky_with_relative_jitter(covariance)
    m = weight.shape[-2]
    lower, upper = rows.lower.unsqueeze(-1) - means, rows.upper.unsqueeze(-1) - means
    is_number = bool((rows.lower == rows.upper).all())
    white: list[Tensor] = []
    log_weights = posterior.mixture.log_weights
    batch_shape = torch.broadcast_shapes(means.shape[:-2], rows.lower.shape[:-1])
    change = means.new_zeros(*batch_shape, means.shape[-1])
    for i in range(m):  # each row given those before
        scale = L[..., i, i].unsqueeze(-1)
        shift = sum((L[..., i, j].unsqueeze(-1) * white[j] for j in range(i)), means.new_zeros(()))
        a, b = (standardise(bound[..., i, :], shift, scale) for bound in (lower, upper))
        if is_number:
            white.append(a)
            change = change + log_normal_density(a) - scale.log()
        else:
            log_inside = log_interval_probability(a, b)
            drawn = _draw(a, b, uniforms[i].expand_as(a))
            if rows.slip is not None and rows.slip.shape[-1] == m:  # an answer of its own
                log_inside, slips = _step(log_inside, rows.slip[..., i, None], rows.attention, uniforms[m + i])
                drawn = torch.where(slips, torch.special.ndtri(uniforms[i]), drawn)
            change = change + log_inside
            white.append(drawn)
    if rows.slip is not None and rows.slip.shape[-1] != m:  # one answer of several rows
        change, slips = _step(change, rows.slip, rows.attention, uniforms[m])
        white = [torch.where(slips, torch.special.ndtri(uniforms[i]), drawn) for i, drawn in enumerate(white)]
    logits = change if log_weights is None else change + log_weights
    e = torch.stack(white, dim=-2) if m else means.new_zeros(*batch_shape, 0, means.shape[-1])
    L = L.expand(*batch_shape, m, m)
    weight = weight.expand(*batch_shape, *weight.shape[-2:])
    return RepresenterMixture(
        weights=weight.mT @ torch.linalg.solve_triangular(L.mT, e, upper=True),
        root=torch.linalg.solve_triangular(L, weight, upper=False).mT,
        log_weights=torch.log_softmax(logits, dim=-1),
        parent=posterior.mixture,
    )


def open_uniforms(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform draws in the open interval (0, 1), also after their rounding to a tensor's dtype."""
    uniforms = torch.rand(shape, generator=generator, dtype=torch.float64).to(like)
    eps = torch.finfo(like.dtype).eps
    return uniforms.clamp(0.25 * eps, 1 - 0.5 * eps)


def draw_values(posterior: SkewGPPosterior, samples_per_draw: int, seed: int) -> tuple[RepresenterMixture, Tensor]:
    """The mixture in which every draw is also conditioned on values drawn from the posterior; and these, `n x S`.

    Two scrambled Sobol sequences depend on each other, term by term. Base samples are therefore permuted at random
    where the draws know values of an earlier such sequence.
    """
    means = posterior.component_means.repeat_interleave(samples_per_draw, dim=-1)
    # the covariance may be much smaller than the prior's, and its rounding relative to that
    root = cholesky_with_relative_jitter(posterior.gaussian_covariance, scale=posterior.prior_variance)
    num_draws, generator = means.shape[-1], torch.Generator().manual_seed(seed)
    white = draw_sobol_normal_samples(d=root.shape[-1], n=num_draws, device=means.device, dtype=means.dtype, seed=seed)
    order = torch.arange(num_draws)
    for _ in posterior.mixture.levels[1:]:  # another permutation for every level
        order = torch.randperm(num_draws, generator=generator)
    white = white[order.to(white.device)].mT
    values = means + root @ white
    # representer weights of f(x) given the values
    representer = torch.linalg.solve_triangular(root.mT, white, upper=True)
    inverse_root = torch.linalg.inv(root).mT
    repeated = posterior.mixture.repeated(means.shape[-1])
    return RepresenterMixture(representer, inverse_root, repeated.log_weights, repeated), values


def _step(log_inside: Tensor, slip: Tensor, attention: Tensor | float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The log probability of an answer, from that of an attentive one, and whether the draw is a slip."""
    log_attentive = log_inside + torch.as_tensor(attention).to(log_inside).log()
    log_step = torch.logaddexp(log_attentive, slip.log())
    return log_step, uniform >= (log_attentive - log_step).exp()


def _draw(lower: Tensor, upper: Tensor, uniform: Tensor) -> Tensor:
    """`sample_interval` with the derivatives in the bounds at a fixed level of the draw's cdf, all in logarithms."""
    with torch.no_grad():
        draw = sample_interval(lower, upper, uniform)
        given = log_interval_probability(lower, upper) + log_normal_density(draw)
        slopes = (
            torch.exp(log_interval_probability(draw, upper) + log_normal_density(lower) - given),
            torch.exp(log_interval_probability(lower, draw) + log_normal_density(upper) - given),
        )
    for bound, slope in zip((lower, upper), slopes, strict=True):
        bound = torch.where(bound.isfinite(), bound, 0.0)
        draw = draw + slope * (bound - bound.detach())
    return draw

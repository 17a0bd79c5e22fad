r"""Conditioning draws on further rows in closed form, for batches of fantasies inside acquisition functions.

Given a draw, the latent function is Gaussian, so that a further number updates every draw's mean by Gaussian
conditioning and its probability by the density of the number. A further interval row does the same with the row's
value, drawn from its univariate truncated normal given the draw, and with the probability of the interval: one step of
sequential importance sampling, in the order of the Cholesky factor ([Geweke1991efficient]_).

.. [Geweke1991efficient] J. Geweke. Efficient simulation from the multivariate normal and Student-t distributions
   subject to linear constraints. Computing Science and Statistics 23, 1991.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class FantasyLevel:
    r"""Points of one round of fantasies, and how their covariance with others is reduced by what is known earlier.

    Args:
        inputs: The points, `batch_shape x n' x d`, after input transforms.
        gains: For each earlier level its covariance with these points times its root, `batch_shape x n' x p`.
        mixture: The mixture with this level on top.
    """

    inputs: Tensor
    gains: tuple[Tensor, ...]
    mixture: RepresenterMixture

    def apply(self, fn: Callable[[Tensor], Tensor]) -> FantasyLevel:
        """A copy with `fn` applied to every tensor held, as `torch.nn.Module._apply` does."""
        return FantasyLevel(fn(self.inputs), tuple(fn(gain) for gain in self.gains), self.mixture.apply(fn))


def condition_mixture(posterior: SkewGPPosterior, rows: FantasyRows, uniforms: Tensor) -> RepresenterMixture:
    r"""The mixture given further rows, differentiable in the points.

    Args:
        posterior: The posterior at the points that the rows are over.
        rows: The rows; all numbers or all intervals.
        uniforms: Uniform numbers in (0, 1), `m x S`, that draw the values of interval rows.

    Returns:
        A mixture whose parent is the posterior's.
    """
    weight = rows.weight
    means = weight @ posterior.component_means
    covariance = weight @ posterior.gaussian_covariance @ weight.mT + rows.noise_covariance
    L = cholesky_with_relative_jitter(covariance)
    m = weight.shape[-2]
    lower, upper = rows.lower.unsqueeze(-1) - means, rows.upper.unsqueeze(-1) - means
    white: list[Tensor] = []
    log_weights = posterior.mixture.log_weights
    batch_shape = torch.broadcast_shapes(means.shape[:-2], rows.lower.shape[:-1])
    change = means.new_zeros(*batch_shape, means.shape[-1])
    for i in range(m):  # one row after the other, each given those before
        scale = L[..., i, i].unsqueeze(-1)
        shift = sum((L[..., i, j].unsqueeze(-1) * white[j] for j in range(i)), means.new_zeros(()))
        a, b = (standardise(bound[..., i, :], shift, scale) for bound in (lower, upper))
        if bool((rows.lower == rows.upper).all()):
            white.append(a)
            change = change + log_normal_density(a) - scale.log()
        else:
            change = change + log_interval_probability(a, b)
            white.append(_draw(a, b, uniforms[i].expand_as(a)))
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


def draw_values(
    posterior: SkewGPPosterior, samples_per_draw: int, seed: int, weight: Tensor | None = None
) -> tuple[RepresenterMixture, Tensor]:
    r"""The mixture in which every draw also knows values drawn from the posterior, and these values.

    Args:
        posterior: The posterior at `n` points.
        samples_per_draw: The number of draws of the values for each of the posterior's draws.
        seed: The seed of the base samples.
        weight: A `k x n` tensor, to draw `weight f` instead of the values `f`.

    Returns:
        A mixture whose parent is the posterior's, and a `k x S` tensor.
    """
    means, covariance = posterior.component_means, posterior.gaussian_covariance
    scale = posterior.prior_variance  # what the covariance's rounding is relative to: it may know the values well
    if weight is not None:
        weight = weight.to(means)
        means, covariance, scale = weight @ means, weight @ covariance @ weight.mT, weight.square() @ scale
    means = means.repeat_interleave(samples_per_draw, dim=-1)
    root = cholesky_with_relative_jitter(covariance, scale=scale)
    white = draw_sobol_normal_samples(
        d=root.shape[-1], n=means.shape[-1], device=means.device, dtype=means.dtype, seed=seed
    ).mT
    values = means + root @ white
    # f(x) given the values: its covariance with them times the inverse of theirs, in factors
    representer = torch.linalg.solve_triangular(root.mT, white, upper=True)
    inverse_root = torch.linalg.inv(root).mT
    if weight is not None:
        representer, inverse_root = weight.mT @ representer, weight.mT @ inverse_root
    before = posterior.mixture
    repeated = RepresenterMixture(before.weights.repeat_interleave(samples_per_draw, dim=-1), before.root)
    return RepresenterMixture(representer, inverse_root, parent=repeated), values


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

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
from dataclasses import dataclass, replace

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.models.latent_prior import LatentPrior
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


@dataclass(frozen=True, eq=False)
class SampledValues:
    r"""Joint samples of the values at some points, each a draw that knows its values there.

    Args:
        inputs: The points, `n' x d`, after input transforms.
        mixture: The samples, over the columns of the model's points followed by those of these points.
    """

    inputs: Tensor
    mixture: RepresenterMixture

    def extend(self, prior: LatentPrior) -> LatentPrior:
        """A prior whose columns are those of the mixture; the points are further ones at which columns are values."""
        before = prior.pseudo_points
        points = self.inputs if before is None else torch.cat([before.to(self.inputs), self.inputs])
        return replace(prior, pseudo_points=points)

    def apply(self, fn: Callable[[Tensor], Tensor]) -> SampledValues:
        """A copy with `fn` applied to every tensor held."""
        return SampledValues(fn(self.inputs), self.mixture.apply(fn))


def condition_mixture(posterior: SkewGPPosterior, rows: FantasyRows, uniforms: Tensor) -> RepresenterMixture:
    r"""The mixture given further rows, differentiable in the points.

    Args:
        posterior: The posterior at the points that the rows are over.
        rows: The rows; all numbers or all intervals.
        uniforms: Uniform numbers in (0, 1), `m x S`, or `2m x S` where answers may be slips: the first half draws the values of interval rows, the second
            which answers are slips; derivatives leave out that this depends on the points.

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


def mixture_of_samples(posterior: SkewGPPosterior, base_samples: Tensor) -> RepresenterMixture:
    r"""The mixture of joint samples of the values at some points: every sample is a draw that knows its values there.

    With `c(x, x') = k(x, x') - k(x, Z) R R^T k(Z, x')` what the data leave uncertain and `L L^T = c(B, B)`, given a
    draw with weights `a` and the values `f(B) = m + k(B, Z) a + L e`, the mean of `f(x)` is
    `m + k(x, Z) a + c(x, B) L^-T e`. Collected by columns this is again one vector of weights, and the same holds of
    the root of what is known.

    Args:
        posterior: The posterior at `B`, `n'` points.
        base_samples: `k x (1 + n')` standard normal numbers, as `rsample_from_base_samples` takes them.

    Returns:
        A mixture of `k` draws over the columns of `Z` and `B`.
    """
    before, (gain,) = posterior.mixture, posterior.gains
    L = cholesky_with_relative_jitter(posterior.gaussian_covariance, scale=posterior.prior_variance).to(before.root)
    whitener = torch.linalg.solve_triangular(L, torch.eye(len(L), dtype=L.dtype, device=L.device), upper=False).mT
    known = before.root @ gain.to(before.root).mT
    weights = before.weights_by_draw[before.pick(base_samples[:, 0])].mT
    representer = whitener @ base_samples[:, 1:].to(whitener).mT
    return RepresenterMixture(
        weights=torch.cat([weights - known @ representer, representer]),
        root=torch.cat(
            [
                torch.cat([before.root, -known @ whitener], dim=-1),
                torch.cat([whitener.new_zeros(len(L), before.root.shape[-1]), whitener], dim=-1),
            ]
        ),
    )


def _step(log_inside: Tensor, slip: Tensor, attention: Tensor | float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The log of an answer's probability, from that of an attentive one, and where the answer is drawn as a slip."""
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

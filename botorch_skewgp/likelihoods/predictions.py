r"""Distributions of new observations of several kinds, their averages, and the probabilities of choices.

Given a draw, the probability that an item is best is an orthant probability of normal differences, separated into
univariate ones ([Genz1992numerical]_) and averaged over a Sobol sequence whose first coordinate picks the draw.

.. [Genz1992numerical] Genz. Numerical computation of multivariate normal probabilities. 1992.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from botorch.posteriors import Posterior
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.exceptions import UnknownKindError
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import AveragedPosterior, SkewGPPosterior
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter

# Probabilities of the best of four and of six are then within .002 for 2,048 draws (mostly .0003), and .001 for a
# single Gaussian.
NUM_POINTS = 2048
NUM_POINTS_OF_ONE = 256
MIN_PROBABILITY = 1e-300  # whose normal quantile is finite
HALF_ROOT = 0.5**0.5
MAX_ENTRIES = 2**16  # points times items at a time, which fit into a cache


class Predictions(Mapping[type[Observation], Any]):
    r"""The distributions of new observations, as a mapping by the first kind of each likelihood:
    `predictions[Numeric]`. Any other of the kinds that a likelihood takes finds the same distribution.
    """

    def __init__(self, kinds: Sequence[tuple[type[Observation], ...]], distributions: Sequence[Any]) -> None:
        self._parts: list[tuple[tuple[type[Observation], ...], Any]] = []
        for own, distribution in zip(kinds, distributions, strict=True):
            if own[0] not in self:
                self._parts.append((own, distribution))

    def mapped(self, predict: Callable[[type[Observation]], Any]) -> Self:
        """Predictions of the same kinds, with a distribution for the first kind of each likelihood."""
        return type(self)([kinds for kinds, _ in self._parts], [predict(kinds[0]) for kinds, _ in self._parts])

    def __getitem__(self, kind: type[Observation]) -> Any:
        """The distribution of new observations of a kind; raises `UnknownKindError` if there is none."""
        for kinds, distribution in self._parts:
            if isinstance(kind, type) and issubclass(kind, kinds):
                return distribution
        asked = getattr(kind, "__name__", repr(kind))
        known = ", ".join(own.__name__ for own in self)
        raise UnknownKindError(f"Predictions are of {known}; got {asked}. Ask for one of these kinds of observations.")

    def __iter__(self) -> Iterator[type[Observation]]:
        return (kinds[0] for kinds, _ in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Predictions({', '.join(f'{kind.__name__}: {value}' for kind, value in self.items())})"


def averaged(distributions: Sequence[Any], weights: Tensor) -> Any:
    """The mixture of distributions of outcomes, or of predictions of several kinds."""
    first = distributions[0]
    if isinstance(first, Predictions):
        return first.mapped(lambda kind: averaged([one[kind] for one in distributions], weights))
    if isinstance(first, Posterior):
        return AveragedPosterior(distributions, weights)
    probabilities = torch.stack([one.probs for one in distributions], dim=-1) @ weights
    return type(first)(probs=probabilities.clamp(max=1.0))  # rounding only


def best_of_probabilities(
    posterior: SkewGPPosterior, noise: Tensor, available: Tensor | None = None, level: Tensor | None = None
) -> Tensor:
    """The probability that each of `k` items is chosen as the best, `batch_shape x k` as `available`."""
    covariance = posterior.gaussian_covariance
    means = posterior.component_means
    if level is not None:
        covariance = torch.nn.functional.pad(covariance, (0, 1, 0, 1))
        means = torch.cat([means, level.to(means).expand_as(means[..., :1, :])], dim=-2)
    k = covariance.shape[-1]
    covariance = covariance + noise * torch.eye(k, dtype=covariance.dtype, device=covariance.device)
    num_points = NUM_POINTS_OF_ONE if posterior.mixture.num_draws == 1 else NUM_POINTS
    unit = torch.stack([torch.zeros(k), torch.ones(k)]).to(covariance)
    points = draw_sobol_samples(unit, n=num_points, q=1, seed=0).squeeze(-2).clamp(1e-12, 1 - 1e-12)
    pick = torch.special.ndtri(points[:, 0])
    points = points[:, 1:]
    mixture = posterior.mixture
    batch_shape = torch.broadcast_shapes(means.shape[:-2], covariance.shape[:-2])
    if mixture.log_weights is None:
        which = mixture.pick(pick)
    else:
        batch = mixture.log_weights.shape[:-1]
        which = mixture.pick(pick.view(-1, *[1] * len(batch)).expand(-1, *batch)).movedim(0, -1)
        batch_shape = torch.broadcast_shapes(batch_shape, which.shape[:-1])
        which = which.expand(*batch_shape, -1).reshape(-1, num_points)
    means = means.expand(*batch_shape, *means.shape[-2:]).reshape(-1, *means.shape[-2:])
    covariance = covariance.expand(*batch_shape, k, k).reshape(-1, k, k)
    can = None if available is None else available.expand(*batch_shape, k).reshape(-1, k)
    parts = []
    for chunk in torch.arange(len(means), device=means.device).split(max(1, MAX_ENTRIES // (num_points * k))):
        picked = means[chunk]
        if which.ndim == 1:
            picked = picked[..., which]
        else:
            picked = picked.gather(-1, which[chunk].unsqueeze(-2).expand(-1, k, -1))
        parts.append(_best(picked, covariance[chunk], points, None if can is None else can[chunk]))
    found = torch.cat(parts) if parts else means[..., 0]
    return (found / found.sum(-1, keepdim=True)).view(*batch_shape, k)


def _best(means: Tensor, covariance: Tensor, points: Tensor, available: Tensor | None) -> Tensor:
    """Averages over points, `N x (k - 1)`, for means `b x k x N` and covariances `b x k x k`; `b x k`."""
    k = covariance.shape[-1]
    every = torch.arange(k, device=means.device).unsqueeze(-1)
    other = (every + torch.arange(1, k, device=means.device)) % k
    crossed = covariance[:, every, other]  # of u_i with the other u_a; below, Cov(u_i - u_a, u_i - u_b)
    differences = (
        covariance[:, other.unsqueeze(-1), other.unsqueeze(-2)]
        - crossed.unsqueeze(-1)
        - crossed.unsqueeze(-2)
        + covariance.diagonal(dim1=-2, dim2=-1).unsqueeze(-1).unsqueeze(-1)
    )
    # strongest rivals first: the later draws then vary less
    average = means.mean(-1)
    margin = (average[:, every] - average[:, other]) / differences.diagonal(dim1=-2, dim2=-1).sqrt()
    if available is not None:
        margin = margin.where(available[:, other], torch.inf)
    order = margin.argsort(dim=-1)
    other = other.expand_as(order).gather(-1, order)
    differences = differences.gather(-1, order.unsqueeze(-2).expand_as(differences))
    differences = differences.gather(-2, order.unsqueeze(-1).expand_as(differences))
    L = cholesky_with_relative_jitter(differences)
    scale = L.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)  # b x k x (k - 1) x 1
    slope = (L / scale).unsqueeze(-1)
    batch = torch.arange(len(means), device=means.device).unsqueeze(-1)
    rivals = None if available is None else available[batch.unsqueeze(-1), other].unsqueeze(-1)
    white: list[Tensor] = []
    value = means.new_ones(())
    for j in range(k - 1):
        given = (means - means[batch, other[:, :, j]]) / scale[:, :, j]
        for i in range(j):
            given = torch.addcmul(given, slope[:, :, j, i], white[i], value=-1)
        ahead = torch.special.erfc(given * -HALF_ROOT)  # twice the probability
        if rivals is not None:
            ahead = torch.where(rivals[:, :, j], ahead, 2.0)
        value = value * ahead
        if j < k - 2:  # minus a normal draw above the bound
            white.append(torch.special.ndtri((0.5 * points[:, j] * ahead).clamp(min=MIN_PROBABILITY)))
    found = value.mean(-1) * 0.5 ** (k - 1)
    return found if available is None else torch.where(available, found, torch.zeros_like(found))

r"""Groups of points linked by comparisons, and recommendations that they leave undecided.

Where no chain of comparisons links two points only the kernel tells which is better; often that is enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from botorch.models.model import Model
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from botorch_skewgp.acquisition.dueling import DuelingLogExpectedImprovement
from botorch_skewgp.exceptions import UndecidedRecommendationWarning
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel, is_latent_model, members_of

UNDECIDED = 0.4  # probability of being better, from which another point is as good a recommendation
INFORMATIVE = 1.0  # variance of a difference, in units of a duel's noise, from which a duel is informative


def comparison_groups(observations: Sequence[Observation], X: Tensor) -> Tensor:
    """The group of each point, of points `n x d` that comparisons link, or chains of these; equal points are one."""
    _, place = X.unique(dim=0, return_inverse=True)
    links = [torch.stack([torch.arange(len(X), device=X.device), len(X) + place])]
    for observation in observations:
        if observation.points_per_observation > 1:
            items = getattr(observation, observation.index_field).to(X.device)
            pairs = torch.stack(torch.broadcast_tensors(items[:, :1], items[:, 1:]))
            links.append(pairs[:, pairs[1] >= 0])  # -1 is padding, which is never first
    first, other = torch.cat(links, dim=-1).cpu()
    size = 2 * len(X)
    graph = coo_array((torch.ones(len(first)), (first, other)), shape=(size, size))
    _, groups = connected_components(graph, directed=False)
    return torch.as_tensor(groups[: len(X)], dtype=torch.long, device=X.device)


def warn_if_undecided(model: Model, means: Tensor) -> None:
    """Warn if no comparison links the best point of a model to another that is about as likely to be better."""
    if not is_latent_model(model):
        return
    members = members_of(model, "recommend")
    first = members[0]
    if any(observation.points_per_observation == 1 for observation in first.observations):
        return  # numbers and labels measure each point
    groups = comparison_groups(first.observations, first.datapoints)
    best = means.argmax()
    belongs = groups == groups.unique().unsqueeze(-1)  # groups x points
    sizes = belongs.sum(-1)
    has_best = belongs[:, best]
    # one of the two groups has three points, or first duels would warn
    is_rival = (sizes > 1) & ~has_best & ((sizes > 2) | (sizes[has_best] > 2))
    if not is_rival.any():
        return
    rivals = torch.where(belongs[is_rival], means, -torch.inf).argmax(-1)
    X, best_X = first.datapoints[rivals].unsqueeze(-2), first.datapoints[best]
    with torch.no_grad():
        challenge = DuelingLogExpectedImprovement(model, best_X)
        if first.posterior(best_X.unsqueeze(0)).num_points != 1:
            return  # as where inputs are perturbed
        differences = [challenge.difference(member, X) for member in members]
        better = [difference.probability_above(0.0).flatten() for difference in differences]
        signals = [_signal(member, difference) for member, difference in zip(members, differences, strict=True)]
    is_informative = torch.stack(signals).mean(0) >= INFORMATIVE
    if torch.where(is_informative, torch.stack(better).mean(0), 0.0).max() >= UNDECIDED:
        warnings.warn(
            "No comparison links the recommended point, directly or through others, to another that is as good a "
            "recommendation. Compare the two: next_pair(model, bounds, against=best) challenges the recommended point.",
            UndecidedRecommendationWarning,
            stacklevel=3,
        )


def _signal(member: LatentModel, difference: SkewGPPosterior) -> Tensor:
    """The variances of differences of two points, in units of the noise of a duel between them."""
    kind, scale = member.likelihood.kind_of_duels, member.outcome_scale
    reading = member.answering_likelihood.reading(kind, difference.component_means, scale)
    return difference.variance.flatten() / (scale.scale**2 * reading.variance)

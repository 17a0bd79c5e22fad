"""What questions may be about: points, and sets of these.

The model's own points, maximisers of joint draws and points around them, a challenger, and some spread over the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.model import Model
from botorch.utils.sampling import manual_seed
from torch import Tensor

from botorch_skewgp.acquisition.dueling import DuelingLogExpectedImprovement
from botorch_skewgp.acquisition.look_ahead import LatentMixture, joint_draws, joint_posterior
from botorch_skewgp.acquisition.search_domain import SearchDomain
from botorch_skewgp.protocols import LatentModel
from botorch_skewgp.rows import first_of_equal

NUM_SPREAD = 512  # points over the domain that draws choose from
NUM_PATHS = 64  # draws; each has a best point
NUM_OWN = 48  # the best of the model's own points
NUM_FAR = 32  # points of the pool that are spread over the domain
NUM_PAIRED = 20  # points, the likeliest to be best, all of whose pairs are considered
NUM_SETS = 24  # sets considered for questions of three points or more
SCALES = (0.3, 0.1, 0.03)  # of steps away from the recommended point, in shares of the domain
ZOOM = 0.04  # likewise away from maximisers of draws
CHALLENGER: dict[str, Any] = {"num_restarts": 2, "raw_samples": 64}


def points_to_ask_about(
    model: Model, members: Sequence[LatentModel], domain: SearchDomain | Tensor, seed: int
) -> Tensor:
    """The points of a domain or of a list that questions may be about, `N x d`, all different."""
    if isinstance(domain, Tensor):
        return domain.unique(dim=0)
    domain.check_choice()
    own = domain.nearest(members[0].datapoints)
    if len(own):
        own = own[_mean(members, own).argsort(descending=True)[:NUM_OWN]]
    generator = torch.Generator(own.device).manual_seed(seed)
    spread = domain.spread(NUM_SPREAD)
    best = own[:1] if len(own) else spread[_mean(members, spread).argmax()].unsqueeze(0)
    around_best = [_around(domain, best.repeat(NUM_PATHS // 2, 1), scale, generator) for scale in SCALES]
    likely = _likely(members, torch.cat([own, domain.nearest(torch.cat([spread, *around_best]))]), seed)
    around_likely = domain.nearest(_around(domain, likely.repeat(4, 1), ZOOM, generator))
    likely = _likely(members, torch.cat([own, likely, around_likely]), seed + 1)
    options = CHALLENGER if domain.has_values else {**CHALLENGER, "options": {"maxiter": 30}}
    with torch.enable_grad(), manual_seed(seed):
        acquisition = DuelingLogExpectedImprovement(model, best)
        challenger, _ = domain.optimize(acquisition, 1, **options)
    X = torch.cat([own, challenger.detach().to(own), likely, domain.nearest(spread[:NUM_FAR])])
    return X[first_of_equal(X).unique()]


def sets_to_ask_about(mixtures: Sequence[LatentMixture], k: int, recommended: Tensor, seed: int) -> Tensor:
    """The sets of the first `N` places, at which points are recommended, that questions may be about, `B x k`."""
    N, device = len(recommended), recommended.device
    if k == 1:
        return torch.arange(N, device=device).unsqueeze(-1)
    of_members = [mixture.scenario_means().sum(0)[recommended] for mixture in mixtures]
    mean = torch.stack(of_members).mean(0)
    best = mean.argmax()
    draws = torch.cat([joint_draws(mixture, 8 * NUM_PATHS, seed)[recommended] for mixture in mixtures], dim=-1)
    num_best = torch.bincount(draws.argmax(0), minlength=N)
    # of equal numbers the lowest mean first: the highest ended worse in four of four runs of the race of prices
    rank = mean.argsort().argsort()
    order = (num_best.to(mean) + torch.linspace(0.5, 0, N).to(mean)[rank]).argsort(descending=True)
    likely = order[:NUM_PAIRED]
    if k == 2:
        others = torch.arange(N, device=device)
        others = others[others != best]
        with_best = torch.stack([others, best.expand(N - 1)], dim=-1)
        return torch.cat([torch.combinations(likely), with_best])
    chances = (num_best[likely] + 1).to(mean)
    if len(likely) < k:
        likely = order[: max(k, NUM_PAIRED)]
        chances = torch.ones(len(likely)).to(mean)
    generator = torch.Generator(device).manual_seed(seed)
    drawn = likely[torch.multinomial(chances.expand(NUM_SETS, -1), k, generator=generator)]
    sets = torch.cat([likely[:k].unsqueeze(0), _greedy(draws, likely, k).unsqueeze(0), drawn])
    with_best = sets[(sets != best).all(-1)]
    with_best[:, -1] = best
    return torch.cat([sets, with_best])


def _greedy(draws: Tensor, likely: Tensor, k: int) -> Tensor:
    """The `k` points whose best is expected to be best, chosen one after the other."""
    values = draws[likely]
    chosen: list[int] = []
    reached = torch.full_like(values[0], -torch.inf)
    for _ in range(k):
        gain = torch.maximum(values, reached).mean(-1)
        gain[chosen] = -torch.inf
        chosen.append(int(gain.argmax()))
        reached = torch.maximum(reached, values[chosen[-1]])
    return likely[chosen]


def _mean(members: Sequence[LatentModel], X: Tensor) -> Tensor:
    """The posterior means of `n x d` points, in units of the outcome."""
    means = [member.latent_posterior(X).mean.squeeze(-1) for member in members]
    scaled = [member.outcome_scale.unstandardize(mean) for member, mean in zip(members, means, strict=True)]
    return torch.stack(scaled).mean(0)


def _likely(members: Sequence[LatentModel], X: Tensor, seed: int) -> Tensor:
    """The maximisers of joint draws of the function."""
    X = X[first_of_equal(X).unique()]
    num_draws = max(NUM_PATHS // len(members), 1)
    mixtures = [LatentMixture.of(joint_posterior(member, X), member.outcome_scale) for member in members]
    draws = torch.cat([joint_draws(mixture, num_draws, seed) for mixture in mixtures], dim=-1)
    return X[draws.argmax(0).unique()]


def _around(domain: SearchDomain, X: Tensor, scale: float, generator: torch.Generator) -> Tensor:
    """Points at normal steps from others, in about half of the coordinates."""
    coordinates = domain.coordinates
    U = coordinates.from_inputs(X)
    low, high = coordinates.bounds
    step = scale * (high - low) * torch.randn(U.shape, dtype=U.dtype, device=U.device, generator=generator)
    moves = torch.rand(U.shape, device=U.device, generator=generator) < 0.5
    return coordinates.to_inputs((U + step * moves).clamp(low, high))

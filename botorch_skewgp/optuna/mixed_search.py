"""The best point of a space with discrete and continuous coordinates."""

from __future__ import annotations

import math

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.generation.gen import gen_candidates_scipy, get_reasons_against_fast_path
from botorch.optim.initializers import initialize_q_batch
from torch import Tensor

from botorch_skewgp.optuna.search_space import SearchSpace

NUM_SPREAD, NUM_NEAR = 256, 128
NUM_CLIMBS, NUM_LATER_CLIMBS = 8, 2  # each with other values
MOST_STEPS, MOST_ROUNDS = 20, 6
LEAST_GAIN = 1e-3  # in nats, of a round
CHANCE_OF_ANOTHER_VALUE = 0.3
NEAR = 0.1


def best_mixed_point(
    acquisition: AcquisitionFunction, space: SearchSpace, X_seen: Tensor, generator: torch.Generator
) -> Tensor:
    r"""The best point found by climbing in the free coordinates from the best values of the others, `dim`.

    All combinations of values are evaluated equally often, as far as points suffice, and so are points near those seen
    with the same or other values. The search climbs from the best point of each of the best combinations. Then it
    changes single values of the best point and climbs from there, as long as that gains anything.

    BoTorch's `optimize_acqf_mixed_alternating` starts from points of the whole space and, near those seen, of other
    categories only, and misses small regions, such as the end of a free coordinate at one combination of fifty. As
    there, a coordinate of many values is climbed as a free one, and rounded.

    Args:
        acquisition: The logarithm of a function, of single points.
        space: The search space.
        X_seen: An `n x dim` tensor of points.
        generator: The source of randomness.
    """
    fixed = space.dims_of_few_values
    X = torch.cat([space.spread_evenly(NUM_SPREAD, generator), _near(space, X_seen, fixed, generator)])
    best, value, num_climbs = X[0], -math.inf, NUM_CLIMBS
    for _ in range(MOST_ROUNDS):
        found, values = _climbed(acquisition, space, _starts(acquisition, X, fixed, num_climbs), fixed)
        place = values.argmax()
        gain = float(values[place]) - value
        if gain > 0:
            best, value = found[place], float(values[place])
        if gain < LEAST_GAIN:
            break
        X, num_climbs = space.beside(best), NUM_LATER_CLIMBS
    return best


def _climbed(
    acquisition: AcquisitionFunction, space: SearchSpace, starts: Tensor, fixed: list[int]
) -> tuple[Tensor, Tensor]:
    """Points of the space and their values, of climbing from others in the coordinates that are not fixed."""
    found = starts
    if len(fixed) < space.dim:
        climbed, values = gen_candidates_scipy(
            starts.unsqueeze(1),
            acquisition,
            space.bounds[0],
            space.bounds[1],
            options={"maxiter": MOST_STEPS, "max_optimization_problem_aggregation_size": 1, **tolerance()},
            fixed_features={i: starts[:, i].unsqueeze(-1) for i in fixed},
        )
        climbed = climbed.detach().squeeze(1)
        found = space.rounded(climbed)
        if torch.equal(found, climbed):
            return found, values
    with torch.no_grad():
        return found, acquisition(found.unsqueeze(1))


def tolerance() -> dict[str, float | None]:
    """BoTorch climbs from all starts in parallel, or with versions of scipy that it was not tested with one by one."""
    in_parallel = not get_reasons_against_fast_path("L-BFGS-B", with_grad=True, minimize_options={}, timeout_sec=None)
    return {"ftol": LEAST_GAIN / 10} | ({"factr": None} if in_parallel else {})


def _near(space: SearchSpace, X_seen: Tensor, fixed: list[int], generator: torch.Generator) -> Tensor:
    """Points near those seen, some of whose values are others."""
    if not len(X_seen):
        return X_seen
    X = X_seen[torch.randint(len(X_seen), (NUM_NEAR,), generator=generator)]
    others = space.spread_evenly(NUM_NEAR, generator)[torch.randperm(NUM_NEAR, generator=generator)]
    changed = torch.zeros_like(X, dtype=torch.bool)
    changed[:, fixed] = torch.rand(NUM_NEAR, len(fixed), generator=generator) < CHANCE_OF_ANOTHER_VALUE
    moved = X + NEAR * torch.randn(X.shape, generator=generator, dtype=X.dtype)
    moved[:, fixed] = X[:, fixed]
    return space.rounded(torch.where(changed, others, moved).clamp(*space.bounds))


@torch.no_grad()
def _starts(acquisition: AcquisitionFunction, X: Tensor, fixed: list[int], count: int) -> Tensor:
    """The best point of each of the best combinations of values, and others by chance where there are few of them."""
    values = acquisition(X.unsqueeze(1))
    order = values.argsort(descending=True)
    first: dict[tuple[float, ...], int] = {}
    for row in order.tolist():
        first.setdefault(tuple(X[row, fixed].tolist()), row)
    starts = X[list(first.values())[:count]]
    if len(starts) < count < len(X):
        others, _ = initialize_q_batch(X.unsqueeze(1), values, count - len(starts))
        starts = torch.cat([starts, others.squeeze(1)])
    return starts

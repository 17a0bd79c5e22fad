r"""The votes to ask for next, and the present answer.

Double Thompson sampling ([Wu2016double]_): two joint draws of all utilities are compared, and where they disagree about
the goal, those items are put to the vote. Pairs on which nothing depends, or which are settled, are seldom drawn.

.. [Wu2016double] H. Wu, X. Liu. Double Thompson sampling for dueling bandits. NeurIPS 2016.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.checks import as_count, check_flags, check_pairs
from botorch_skewgp.items.leaderboard import ranks_of, utility_draws

Goal = Literal["best", "top", "order"]
NUM_SAMPLES = 1024
TRIES = 100  # of two draws that agree


class Verdict(NamedTuple):
    r"""The present answer about the items.

    Args:
        items: An integer tensor: the best item, the best `k`, or all of them from the best to the worst.
        probability: The posterior probability that all of this is right.
    """

    items: Tensor
    probability: float


def verdict(
    model: Model,
    goal: Goal = "best",
    k: int | None = None,
    judge: int | str | None = None,
    num_samples: int = 4096,
    seed: int = 0,
    at: float | None = None,
    category: int | None = None,
) -> Verdict:
    r"""The present answer and its probability, as a stopping rule.

    The goal is the `"best"` item, the `"top"` `k`, or the whole `"order"`. Other arguments are as for `leaderboard`.

    Example:
        >>> best, probability = verdict(model)
        >>> is_enough = probability > 0.95

    Raises:
        InputDataError: If the goal is not known, or `k` does not fit it.
    """
    draws = utility_draws(model, num_samples, seed, "verdict", judge, at, category)
    k = _check_goal(goal, k, draws.shape[-1])
    ranks = ranks_of(draws)
    if goal == "order":
        order = draws.mean(0).argsort(descending=True)
        told = draws[:, order]
        return Verdict(order, float((told[:, :-1] > told[:, 1:]).all(-1).double().mean()))
    inside = ranks <= k
    items = inside.double().mean(0).argsort(descending=True)[:k]
    return Verdict(items, float(inside[:, items].all(-1).double().mean()))


@torch.no_grad()
def next_votes(
    model: Model,
    num_votes: int = 1,
    goal: Goal = "best",
    k: int | None = None,
    pairs: Any = None,
    judge: int | str | None = None,
    distinct: bool = True,
    num_samples: int = NUM_SAMPLES,
    seed: int = 0,
    at: float | None = None,
    category: int | None = None,
    pending: Any = None,
) -> Tensor:
    r"""The votes to ask for next, between items about which two draws of the posterior disagree ([Wu2016double]_).

    For the best item or the best `k`: the highest item that is among them in the first draw alone, and the highest that
    is so in the second alone. For the whole order: any pair in which the draws have different winners.

    The goal is as for `verdict`, other arguments as for `leaderboard`. `pairs` are those that can be asked for, an
    `m x 2` integer tensor; all if `None`. Those chosen, `num_votes x 2`, are `distinct` where one person is asked, who
    would repeat an answer. `pending` are pairs that were asked for and not answered yet, `m x 2` numbers of items, in
    either order; they are left out.

    Example:
        >>> pairs = next_votes(model, num_votes=5, goal="top", k=3)

    Raises:
        InputDataError: If the goal is not known, `k` does not fit, or there are fewer (distinct) pairs than wanted.
    """
    draws = utility_draws(model, num_samples, seed, "next_votes", judge, at, category)
    n, device = draws.shape[-1], draws.device
    k = _check_goal(goal, k, n)
    check_flags(distinct=distinct)
    num_votes = as_count(num_votes, "num_votes", least=1)
    pool = torch.combinations(torch.arange(n, device=device)) if pairs is None else _given(pairs, n).to(device)
    if pending is not None and len(pending):
        asked = check_pairs(pending, "pending", what="numbers of items", item="an item").to(device)
        open_ = (pool.sort(-1).values.unsqueeze(1) == asked.sort(-1).values).all(-1).any(-1)
        pool = pool[~open_]
        if not len(pool):
            raise InputDataError("All pairs are pending; wait for an answer, or give more pairs.")
    if distinct and num_votes > len(pool):
        raise InputDataError(
            f"num_votes must be at most {len(pool)}, the number of pairs; got {num_votes}. Pass distinct=False to ask "
            "for a pair twice."
        )
    first, second = torch.cat([pool, pool.flip(-1)]).unbind(-1)
    left = torch.ones(len(first), dtype=torch.bool, device=device)
    generator = torch.Generator(device).manual_seed(seed)
    chosen: list[int] = []
    for _ in range(num_votes):
        for _ in range(TRIES):
            both = draws[torch.randint(len(draws), (2,), generator=generator, device=device)]
            at_first, at_second = both[:, first], both[:, second]
            if goal == "order":
                told = (at_first[0] > at_second[0]) & (at_first[1] < at_second[1])
                score = torch.rand(len(first), generator=generator, dtype=draws.dtype, device=device)
            else:
                one, other = ranks_of(both) <= k
                told = (one & ~other)[first] & (other & ~one)[second]
                score = at_first[0] + at_second[1]
            told = told & left
            if bool(told.any()):
                break
        place = int(torch.where(told if bool(told.any()) else left, score, -torch.inf).argmax()) % len(pool)
        chosen.append(place)
        if distinct:
            left[[place, place + len(pool)]] = False
    return pool[chosen]


def _given(pairs: Any, n: int) -> Tensor:
    """The pairs that can be asked for; raises `InputDataError`."""
    given = check_pairs(pairs, "pairs", what="numbers of items", item="an item")
    if not len(given):
        raise InputDataError("pairs must not be empty; leave it out for all pairs.")
    if int(given.max()) >= n:
        raise InputDataError(f"pairs names item {int(given.max())}; there are {n}, numbered from 0.")
    return given


def _check_goal(goal: str, k: int | None, n: int) -> int:
    """The number of items wanted; raises `InputDataError`."""
    if goal not in ("best", "top", "order"):
        raise InputDataError(f"goal must be 'best', 'top' or 'order'; got {goal!r}.")
    if (goal == "top") != (k is not None):
        raise InputDataError(f"k is for goal='top', which needs it; got k={k} for goal={goal!r}.")
    return 1 if k is None else as_count(k, "k", least=1, most=n - 1)

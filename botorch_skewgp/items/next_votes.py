r"""The next votes to ask for and a stopping rule, from joint posterior draws of all utilities.

For the best item, take two independent draws with best items `i` and `j`: all pairs `(i, j)` have the weight of their
probabilities of being the best. Under the Gaussian with the draws' mean and covariance, a vote between any two items
reduces the variance of `f_i - f_j` by a share, given by the Fisher information of its answer at the mean. The vote with
the largest average share is asked. A batch is chosen sequentially, each vote with the covariance given those before it,
which does not depend on their answers. Double Thompson sampling ([Wu2016double]_) asks about the pair `(i, j)` itself.

For the best `k` and for the order, let `f_s` be draws and `p_s(y)` the probability of outcome `y` of a vote given one.
The information of a vote about a function `t(f)` is `H(E[p]) - E[H(E[p | t])]`, with averages over draws: products of
matrices, for all pairs at once. For the whole order `t = f`, Bayesian active learning by disagreement
([Houlsby2011bald]_); for the best `k` it is the sum over items of the information about the item's membership. The
votes of a batch are chosen given outcomes of those before, drawn with their probabilities.

The draws of an ensemble are those of its members, each with its member's noise, tie width and slips; the Fisher
information of a vote is the members' average.

.. [Wu2016double] H. Wu, X. Liu. Double Thompson sampling for dueling bandits. NeurIPS 2016.
.. [Houlsby2011bald] N. Houlsby, F. Huszar, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification and
   preference learning. arXiv 1112.5745, 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.items.draws import (
    fisher_information,
    outcomes_of_votes,
    shares_of_draws,
    utility_draws,
    vote_readings,
)
from botorch_skewgp.items.leaderboard import Goal, ranks_of
from botorch_skewgp.observations.checks import as_count, check_flags, check_pairs
from botorch_skewgp.rows import Reading

ROUNDING = 1e-8  # of the variance of a difference, relative to those of both items
NUM_SAMPLES = 1024
MAX_PAIRS = 2**14  # evaluated exactly, the best ones by a normal approximation
PATHS = 8  # of outcomes of a batch's earlier votes
CHUNK = 2**11  # pairs at a time, whose draws nearly fit into a cache


class NextVotes(NamedTuple):
    r"""Votes to ask for.

    Args:
        pairs: An `m x 2` integer tensor of items, the most informative pair first.
        values: The expected gain of each when it was chosen: for the best item the average share of the variance of the
            difference between two draws' best items that it removes; for other goals the information in nats.
    """

    pairs: Tensor
    values: Tensor


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
) -> Verdict:
    r"""The present answer and its probability, as a stopping rule.

    Example:
        >>> best, probability = verdict(model)
        >>> is_enough = probability > 0.95

    Args:
        model: As for `leaderboard`.
        goal: The aim: the `"best"` item, the `"top"` `k`, or the whole `"order"`.
        k: The number of items wanted, for `"top"`.
        judge: The judge of the utilities, as for `leaderboard`.
        num_samples: The number of joint draws.
        seed: The seed of the draws.

    Raises:
        InputDataError: If the goal is not known, or `k` does not fit it.
    """
    draws = utility_draws(model, num_samples, seed, "verdict", judge)
    k = _check_goal(goal, k, draws.shape[-1])
    ranks = ranks_of(draws)
    if goal == "order":
        order = draws.mean(0).argsort(descending=True)
        told = draws[:, order]
        return Verdict(order, float((told[:, :-1] > told[:, 1:]).all(-1).double().mean()))
    inside = ranks <= k
    items = inside.double().mean(0).argsort(descending=True)[:k]
    return Verdict(items, float(inside[:, items].all(-1).double().mean()))


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
) -> NextVotes:
    r"""The votes to ask for next: the most informative ones for the goal.

    All pairs of items are evaluated; with more than 180 items the best ones by a normal approximation, for `"best"` and
    `"top"` among plausible items. A hundred items take .1 s, a thousand 1 s.

    Example:
        >>> pairs, values = next_votes(model, num_votes=5, goal="top", k=3)

    Args:
        model: As for `leaderboard`.
        num_votes: The number of votes asked for at once.
        goal: The aim: the `"best"` item, the `"top"` `k`, or the whole `"order"`.
        k: The number of items wanted, for `"top"`.
        pairs: An `m x 2` integer tensor of the pairs that can be asked for; all if `None`.
        judge: The judge who votes, and of the utilities, as for `leaderboard`.
        distinct: Whether all pairs differ, as for one person, who would repeat an answer. Otherwise a pair is repeated
            where a second answer, of another person, is more informative than any other pair.
        num_samples: The number of joint draws.
        seed: The seed of the draws.

    Raises:
        InputDataError: If the goal is not known, `k` does not fit, there are fewer (distinct) pairs than wanted, or
            members of an ensemble allow different answers.
    """
    draws = utility_draws(model, num_samples, seed, "next_votes", judge)
    n = draws.shape[-1]
    k = _check_goal(goal, k, n)
    readings = vote_readings(model, "next_votes", judge)
    if len({reading.num_outcomes for reading in readings}) > 1:
        raise InputDataError("Members of an ensemble must allow the same answers, with the same ties and strengths.")
    pool = _pool(pairs, draws, goal, k, readings)
    check_flags(distinct=distinct)
    if not len(pool):
        raise InputDataError("pairs must not be empty; leave it out for all pairs.")
    num_votes = as_count(num_votes, "num_votes", least=1)
    if distinct and num_votes > len(pool):
        raise InputDataError(
            f"num_votes must be at most {len(pool)}, the number of pairs; got {num_votes}. Pass distinct=False to ask "
            "for a pair twice."
        )
    rule: _Contenders | _Information
    if goal == "best":
        rule = _Contenders.of(draws, readings)
    else:
        rule = _Information.of(draws, goal, k, readings, torch.Generator().manual_seed(seed))
    left = torch.ones(len(pool), dtype=torch.bool, device=draws.device)
    chosen, values = [], []
    for _ in range(num_votes):
        value = torch.cat([rule.values(part) for part in pool.split(CHUNK)])
        value[~left] = -torch.inf
        best = int(value.argmax())
        left[best] = not distinct
        chosen.append(pool[best])
        values.append(value[best])
        if len(chosen) < num_votes:
            rule = rule.after(pool[best])
    return NextVotes(torch.stack(chosen), torch.stack(values).double())


def _check_goal(goal: str, k: int | None, n: int) -> int:
    """The number of items wanted; raises `InputDataError`."""
    if goal not in ("best", "top", "order"):
        raise InputDataError(f"goal must be 'best', 'top' or 'order'; got {goal!r}.")
    if (goal == "top") != (k is not None):
        raise InputDataError(f"k is for goal='top', which needs it; got k={k} for goal={goal!r}.")
    return 1 if k is None else as_count(k, "k", least=1, most=n - 1)


def _pool(pairs: Any, draws: Tensor, goal: Goal, k: int, readings: Sequence[Reading]) -> Tensor:
    """The pairs to evaluate, at most `MAX_PAIRS` unless the user names more."""
    n, device = draws.shape[-1], draws.device
    if pairs is not None:
        given = check_pairs(pairs, "pairs", what="numbers of items", item="item").to(device)
        if given.numel() and int(given.max()) >= n:
            raise InputDataError(f"pairs names item {int(given.max())}; there are {n}, numbered from 0.")
        return given
    if n * (n - 1) // 2 <= MAX_PAIRS:
        return torch.combinations(torch.arange(n, device=device))
    mean, covariance = draws.mean(0), torch.cov(draws.mT)
    variance = covariance.diagonal()
    spread = (variance.unsqueeze(-1) + variance - 2 * covariance).clamp(min=0.0)
    noise = sum(reading.variance.detach().item() for reading in readings) / len(readings)
    gap = mean.unsqueeze(-1) - mean
    # the uncertainty of a vote beside its noise, for close items
    score = (-0.5 * gap.square() / (spread + noise)).exp() * spread / (spread + noise)
    if goal != "order":
        matters = _chance_of_mattering(draws, mean, variance, k)
        score = score * matters.unsqueeze(-1) * matters
    first, second = torch.triu_indices(n, n, 1, device=device)
    best = score[first, second].topk(MAX_PAIRS).indices
    return torch.stack([first[best], second[best]], dim=-1)


def _chance_of_mattering(draws: Tensor, mean: Tensor, variance: Tensor, k: int) -> Tensor:
    """The uncertainty of each item's membership in the best `k`, from its own distribution and the bar's."""
    bar = draws.topk(k, dim=-1).values[:, -1]
    inside = torch.special.ndtr((mean - bar.mean()) / (variance + bar.var()).sqrt())
    return torch.minimum(inside, 1 - inside) if k > 1 else inside


def _outcomes(draws: Tensor, pairs: Tensor, readings: Sequence[Reading]) -> Tensor:
    """The probabilities of all outcomes, `O x P x S`, for each draw by its member's reading."""
    columns = draws.mT
    difference = columns[pairs[:, 0]] - columns[pairs[:, 1]]
    shares = zip(readings, shares_of_draws(len(draws), len(readings)), strict=True)
    parts = [torch.stack(outcomes_of_votes(reading, difference[:, share])) for reading, share in shares]
    known = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
    return torch.cat([known, 1 - known.sum(0, keepdim=True)])


class _Contenders(NamedTuple):
    """The votes that separate the items that may be the best, by the Gaussian of the draws' moments.

    Args:
        weights: The probability that the best items of two draws are those of the row and of the column, `n x n`; zero
            on the diagonal.
        mean: Means of the utilities, `n`.
        covariance: Their covariance, `n x n`, given the votes chosen so far.
        readings: The reading of a vote, for each member of an ensemble.
    """

    weights: Tensor
    mean: Tensor
    covariance: Tensor
    readings: Sequence[Reading]

    @classmethod
    def of(cls, draws: Tensor, readings: Sequence[Reading]) -> _Contenders:
        num, n = draws.shape
        wins = draws.argmax(-1).bincount(minlength=n).to(draws)
        best = (wins + 1 / n) / (num + 1)  # one more draw, with a uniform best item
        weights = best.outer(best).fill_diagonal_(0.0)
        return cls(weights, draws.mean(0), torch.cov(draws.mT, correction=0), readings)

    def values(self, pairs: Tensor) -> Tensor:
        """The expected share of the variance of the difference of two draws' best items that a vote removes, `P`."""
        variance = self.covariance.diagonal()
        total = variance.unsqueeze(-1) + variance
        spread = total - 2 * self.covariance
        weights = torch.where(spread > ROUNDING * total, self.weights / spread, 0.0)  # 0 for equal items
        laplacian = weights.sum(-1).diag() - weights
        gain = self._gain(pairs)
        return 2 * ((gain @ laplacian) * gain).sum(-1)

    def after(self, pair: Tensor) -> _Contenders:
        """The same given the answer of a vote, any answer."""
        gain = self._gain(pair.unsqueeze(0))
        return self._replace(covariance=self.covariance - gain.mT @ gain)

    def _gain(self, pairs: Tensor) -> Tensor:
        """Vectors whose outer products votes remove from the covariance, `P x n`."""
        first, second = pairs.unbind(-1)
        covariances = self.covariance[first] - self.covariance[second]
        spread = (covariances.gather(-1, first.unsqueeze(-1)) - covariances.gather(-1, second.unsqueeze(-1))).squeeze(
            -1
        )
        difference = self.mean[first] - self.mean[second]
        information = torch.stack([fisher_information(reading, difference) for reading in self.readings]).mean(0)
        return covariances * (information / (1 + information * spread)).sqrt().unsqueeze(-1)


class _Information(NamedTuple):
    """The information of votes about the best items or the whole order.

    Args:
        draws: Draws of the utilities, `S x n`, in single precision, which suffices to compare values.
        state: `S x C`: 1 where an item is among the best in a draw; `None` for the whole order.
        weights: Weights of the draws, `W x S`, for several outcomes of the votes chosen so far.
        readings: The reading of a vote, for each member of an ensemble.
        generator: The generator of these outcomes.
    """

    draws: Tensor
    state: Tensor | None
    weights: Tensor
    readings: Sequence[Reading]
    generator: torch.Generator

    @classmethod
    def of(
        cls, draws: Tensor, goal: Goal, k: int, readings: Sequence[Reading], generator: torch.Generator
    ) -> _Information:
        single = (draws - draws.mean(-1, keepdim=True)).float()
        weights = single.new_full((1, len(draws)), 1 / len(draws))
        state = None
        if goal == "top":
            inside = (ranks_of(draws) <= k).float()
            state = inside[:, inside.any(0) & ~inside.all(0)]  # the state of the others is known
        return cls(single, state, weights, readings, generator)

    def values(self, pairs: Tensor) -> Tensor:
        """The information of votes, averaged over weightings of the draws, `P`."""
        p = _outcomes(self.draws, pairs, self.readings)
        return torch.stack([self._value(p, weights) for weights in self.weights]).mean(0)

    def after(self, pair: Tensor) -> _Information:
        """The same given the answer of a vote, one of several."""
        p = _outcomes(self.draws, pair.unsqueeze(0), self.readings).squeeze(1)  # O x S
        weights = self.weights if len(self.weights) == PATHS else self.weights.expand(PATHS, -1)
        chance = (weights @ p.mT).cpu()
        # one path at each quantile: the share of each outcome is its probability
        uniform = torch.randperm(PATHS, generator=self.generator) + torch.rand(PATHS, generator=self.generator)
        outcome = (chance.cumsum(-1) < (uniform / PATHS).unsqueeze(-1)).sum(-1).clamp(max=len(p) - 1)
        weights = weights * p[outcome.to(p.device)]
        return self._replace(weights=weights / weights.sum(-1, keepdim=True))

    def _value(self, p: Tensor, weights: Tensor) -> Tensor:
        """The information for outcomes of probabilities `O x P x S` and one weighting of the draws."""
        average = p @ weights
        entropy = _entropy(average)
        if self.state is None:
            return entropy - _entropy(p) @ weights
        joint = p @ (self.state * weights.unsqueeze(-1))  # O x P x C
        inside = _entropy(joint) - torch.special.entr(joint.sum(0))  # chance times the entropy given the state
        rest = (average.unsqueeze(-1) - joint).clamp(min=0.0)
        outside = _entropy(rest) - torch.special.entr(rest.sum(0))
        return (entropy.unsqueeze(-1) - inside - outside).sum(-1)


def _entropy(p: Tensor) -> Tensor:
    """The entropies of outcomes, the first dimension."""
    return torch.special.entr(p).sum(0)

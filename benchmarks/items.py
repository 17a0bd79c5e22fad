"""Leagues of items: coverage of ranks, held-out votes beside Bradley-Terry, and votes until the best is known."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks._observations import fitted, random_pairs, winner_first
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.items import add_votes, item_model, leaderboard, next_votes, verdict, win_probabilities
from botorch_skewgp.items.leaderboard import ranks_of, utility_draws
from botorch_skewgp.observations import Preference, Tie

TIE_WIDTH = 0.5
SPREAD = 1.5  # of the utilities of a race, in units of the noise of an item
SURE, MOST_VOTES, AT_ONCE, FIT_EVERY = 0.95, 400, 10, 1.3
RESAMPLES = 50
PENALTY, PENALTIES = 1e-2, (0.03, 0.1, 0.3, 1.0)


# Leagues


@dataclass(frozen=True)
class League:
    """Items with true utilities, and votes between random pairs of them."""

    utility: Tensor
    features: Tensor | None
    wins: Tensor
    ties: Tensor
    judges: tuple[Tensor, Tensor] | None

    @property
    def observations(self) -> list[Any]:
        who = (None, None) if self.judges is None else self.judges
        ties = [Tie(self.ties, judge=who[1])] if len(self.ties) else []
        return [Preference(self.wins, judge=who[0]), *ties]


def _league(seed: int, items: int, votes: int, features: int = 0, ties: bool = False, bad_judge: str = "") -> League:
    kind: dict[str, Any] = {"generator": torch.Generator().manual_seed(seed), "dtype": torch.float64}
    F = torch.rand(items, features, **kind) if features else None
    utility = torch.randn(items, **kind)
    if F is not None:  # two features matter linearly, two through a bump; their effects have a variance of about one
        bump = (-((F[:, 2:4] - 0.6) ** 2).sum(-1) / 0.18).exp()
        utility = 0.4 * utility + 2.2 * (F[:, 0] - F[:, 1]) + 2.0 * bump
    asked = random_pairs(items, votes, kind["generator"])
    first, second = asked.unbind(-1)
    gap = utility[first] - utility[second]
    judge = torch.arange(votes) % 3
    if bad_judge == "random":
        gap = torch.where(judge == 2, 0.0, gap)
    if bad_judge == "biased":
        taste = torch.randn(items, **kind)
        gap = torch.where(judge == 2, gap + taste[first] - taste[second], gap)
    said = gap + math.sqrt(2) * torch.randn(votes, **kind)
    tied = said.abs() < TIE_WIDTH if ties else torch.zeros(votes, dtype=torch.bool)
    answered = winner_first(asked, said > 0)
    judges = (judge[~tied], judge[tied]) if bad_judge else None
    return League(utility, F, answered[~tied], asked[tied], judges)


def _fitted(league: League, features: bool = True) -> SkewGP:
    return fitted(item_model(len(league.utility), league.observations, league.features if features else None))


def _truth(league: League, ties: bool = False) -> tuple[Tensor, Tensor]:
    """All pairs, and the true probability that the first wins given that there is no tie."""
    pairs = torch.combinations(torch.arange(len(league.utility)))
    gap = league.utility[pairs[:, 0]] - league.utility[pairs[:, 1]]
    width = TIE_WIDTH if ties else 0.0
    above, below = (torch.special.ndtr((sign * gap - width) / math.sqrt(2)) for sign in (1, -1))
    return pairs, above / (above + below)


def _divergence(true: Tensor, said: Tensor) -> float:
    return float((torch.xlogy(true, true / said) + torch.xlogy(1 - true, (1 - true) / (1 - said))).mean())


def _ours(model: SkewGP, pairs: Tensor) -> Tensor:
    wins = torch.as_tensor(win_probabilities(model).to_numpy(copy=True))
    first, second = pairs.unbind(-1)
    return wins[first, second] / (wins[first, second] + wins[second, first])


def _duels(league: League) -> Tensor:
    """Duels for choix; each twice where there are ties, which are one win of either."""
    if not len(league.ties):
        return league.wins
    return torch.cat([league.wins, league.wins, league.ties, league.ties.flip(-1)])


def _bootstrap(league: League, pairs: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Probabilities averaged over resamples of the votes, and the rank of each item in each."""
    import choix

    generator = torch.Generator().manual_seed(seed)
    items, m = len(league.utility), len(league.wins) + len(league.ties)
    pair = torch.cat([league.wins, league.ties])
    won = torch.cat([torch.ones(len(league.wins)), torch.full((len(league.ties),), 0.5)]).double()
    ranks, said = [], torch.zeros(len(pairs), dtype=torch.float64)
    for _ in range(RESAMPLES):
        which = torch.randint(m, (m,), generator=generator)
        counts = torch.zeros(items, items, dtype=torch.float64)
        counts.index_put_(tuple(pair[which].mT), won[which], accumulate=True)
        counts.index_put_(tuple(pair[which].flip(-1).mT), 1 - won[which], accumulate=True)
        utility = torch.as_tensor(choix.ilsr_pairwise_dense(counts.numpy(), alpha=PENALTY))
        ranks.append((-utility).argsort().argsort() + 1)
        said += torch.sigmoid(utility[pairs[:, 0]] - utility[pairs[:, 1]]) / RESAMPLES
    return said, torch.stack(ranks)


KINDS: dict[str, dict[str, Any]] = {
    "20 items": {"items": 20, "votes": 200},
    "100 items": {"items": 100, "votes": 1000},
    "20 items, features": {"items": 20, "votes": 200, "features": 8},
    "100 items, features": {"items": 100, "votes": 1000, "features": 8},
    "20 items, ties, features": {"items": 20, "votes": 200, "features": 8, "ties": True},
    "20 items, a bad judge": {"items": 20, "votes": 300, "bad_judge": "random"},
    "20 items, a biased judge": {"items": 20, "votes": 300, "bad_judge": "biased"},
}
OF_FEATURES = ("with_half", "with_all", "without")
MEASURED = ("rank_coverage", "rank_mass", "utility_coverage", "rank_width", "divergence", "seconds", "choix",
            "choix_best", "bootstrap", "bootstrap_coverage", "bootstrap_width")  # fmt: skip


def _of_league(kind: str, seed: int) -> dict[str, Cell]:
    """What is measured of one league."""
    design = KINDS[kind]
    league = _league(seed, **design)
    began = time.process_time()
    model = _fitted(league)
    board = leaderboard(model).sort_index()
    seconds = time.process_time() - began
    true = league.utility - league.utility.mean()
    rank = (-true).argsort().argsort() + 1
    low, high = (torch.as_tensor(board[name].to_numpy(copy=True)) for name in ("rank_low", "rank_high"))
    drawn = ranks_of(utility_draws(model, 4096, 1, "items"))
    mass = ((low <= drawn) & (drawn <= high)).double().mean()
    in_utility = (board.lower <= true.numpy()) & (true.numpy() <= board.upper)
    pairs, law = _truth(league, "ties" in design)
    found = [_share(low, rank, high), float(mass), float(in_utility.mean()), float((high - low).double().mean())]
    found += [_divergence(law, _ours(model, pairs)), seconds]
    if importlib.util.find_spec("choix") is None:
        return dict(zip(MEASURED, found + [math.nan] * 5, strict=True))
    import choix

    first, second = pairs.unbind(-1)
    rivals = []
    for penalty in (PENALTY, *PENALTIES):
        utility = torch.as_tensor(choix.opt_pairwise(design["items"], _duels(league).tolist(), alpha=penalty))
        rivals.append(_divergence(law, torch.sigmoid(utility[first] - utility[second])))
    said, ranks = _bootstrap(league, pairs, seed)
    low, high = ranks.double().quantile(torch.tensor([0.05, 0.95], dtype=torch.float64), dim=0).round().long()
    found += [rivals[0], min(rivals), _divergence(law, said)]
    found += [_share(low, rank, high), float((high - low).double().mean())]
    return dict(zip(MEASURED, found, strict=True))


def _share(low: Tensor, value: Tensor, high: Tensor) -> float:
    return float(((low <= value) & (value <= high)).double().mean())


def _of_features(votes: int, seed: int) -> dict[str, Cell]:
    """Divergences with features and half the votes, with features, and without them."""
    full = _league(seed, 100, votes, features=8)
    half = League(full.utility, full.features, full.wins[: votes // 2], full.ties, None)
    pairs, law = _truth(full)
    models = (_fitted(half), _fitted(full), _fitted(full, features=False))
    return dict(zip(OF_FEATURES, (_divergence(law, _ours(model, pairs)) for model in models), strict=True))


# Races


def _at_random(model: SkewGP, generator: torch.Generator) -> Tensor:
    pairs = torch.combinations(torch.arange(len(model.datapoints)))
    return pairs[torch.randperm(len(pairs), generator=generator)[:AT_ONCE]]


class _Quicksort:
    """Sorting by comparisons, again and again: each item of a segment is put before or behind a random one of it."""

    def __init__(self) -> None:
        self.segments: list[list[int]] = []
        self.waiting: list[tuple[list[int], int, dict[int, bool]]] = []  # segment, pivot, who lost to it
        self.asked: list[tuple[int, int]] = []

    def __call__(self, model: SkewGP, generator: torch.Generator) -> Tensor:
        if self.asked:
            self._learn({tuple(pair) for pair in model.observations[-1].pairs.tolist()})
        pairs: list[tuple[int, int]] = []
        while len(pairs) < AT_ONCE:
            open_pairs = [(x, pivot) for segment, pivot, lost in self.waiting for x in segment
                          if x != pivot and x not in lost and (x, pivot) not in pairs]  # fmt: skip
            if open_pairs:
                pairs.append(open_pairs[0])
                continue
            if not self.segments and not self.waiting:
                self.segments = [list(range(len(model.datapoints)))]
            elif not self.segments:
                break  # all that is left waits for these answers
            segment = self.segments.pop()
            pivot = segment[int(torch.randint(len(segment), (1,), generator=generator))]
            self.waiting.append((segment, pivot, {}))
        self.asked = pairs
        return torch.tensor(pairs)

    def _learn(self, won: set[tuple[int, ...]]) -> None:
        for x, by in self.asked:
            for _, pivot, lost in self.waiting:
                if pivot == by:
                    lost[x] = (by, x) in won
        done = [entry for entry in self.waiting if len(entry[2]) == len(entry[0]) - 1]
        self.waiting = [entry for entry in self.waiting if entry not in done]
        for _, _, lost in done:
            parts = [[x for x in lost if lost[x] == below] for below in (True, False)]
            self.segments += [part for part in parts if len(part) > 1]


Policy = Callable[[SkewGP, torch.Generator], Tensor]
POLICIES: dict[str, Callable[[], Policy]] = {
    "double Thompson": lambda: (
        lambda model, generator: next_votes(model, AT_ONCE, seed=int(torch.randint(2**31, (), generator=generator)))
    ),
    "quicksort": _Quicksort,
    "random pairs": lambda: _at_random,
}


def _races(runs: Group) -> dict[str, Cell]:
    more, its_error = runs.less("votes", policy="double Thompson")
    return {
        "races": len(runs), "median_votes": runs.median("votes"), "mean_votes": runs.mean("votes"),
        "error": runs.error("votes"), "unfinished": int((runs.values("votes") >= MOST_VOTES).sum()),
        "right": runs.mean("right"), "more_votes": more, "its_error": its_error,
    }  # fmt: skip


def _votes_needed(policy: str, seed: int) -> dict[str, Cell]:
    """The number of votes until the model is sure, and whether it is right then."""
    kind: dict[str, Any] = {"generator": torch.Generator().manual_seed(seed), "dtype": torch.float64}
    utility = SPREAD * torch.randn(20, **kind)
    order = torch.randperm(20, generator=kind["generator"]).view(10, 2)  # everybody once
    noise = torch.randn(20, 20, MOST_VOTES + 2 * AT_ONCE, **kind)  # the n-th vote of a pair is the same for all rules
    count = torch.zeros(20, 20, dtype=torch.long)

    def answers(pairs: Tensor) -> Preference:
        said = []
        for first, second in pairs.sort(-1).values.tolist():
            drawn = noise[first, second, count[first, second]]
            count[first, second] += 1
            is_first = utility[first] - utility[second] + math.sqrt(2) * drawn > 0
            said.append([first, second] if is_first else [second, first])
        return Preference(said)

    choose = POLICIES[policy]()
    model = item_model(20, answers(order), approximation="ep")
    asked, last_fit = len(order), 0.0
    while True:
        if asked >= FIT_EVERY * last_fit:
            fitted(model)
            last_fit = asked
        now = verdict(model)
        if now.probability > SURE or asked >= MOST_VOTES:
            return {"votes": asked, "right": float(now.items[0] == utility.argmax())}
        pairs = choose(model, kind["generator"])
        model = add_votes(model, answers(pairs))
        asked += len(pairs)


RACES = (
    Race("items_leagues", grid(kind=KINDS), [{}], range(10), _of_league, MEASURED,
         lambda runs: {"leagues": len(runs), **{name: runs.mean(name) for name in MEASURED},
                       **{f"{name}_error": runs.error(f"{name}_coverage") for name in ("rank", "utility")}}),
    Race("items_features", grid(votes=(400, 1000, 2000)), [{}], range(10), _of_features, OF_FEATURES,
         lambda runs: {"items": 100, "leagues": len(runs), **{name: runs.mean(name) for name in OF_FEATURES}}),
    Race("items_race", [{}], grid(policy=POLICIES), range(80), _votes_needed, ("votes", "right"), _races),
)  # fmt: skip

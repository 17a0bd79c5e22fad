"""Leagues of items: coverage of ranks, held-out votes beside Bradley-Terry, seconds, and votes until the best is known.

- `leagues`: simulated leagues of 20 and 100 items with normal utilities, with and without features, with ties, and with
  three judges of whom one answers at random. Coverage of 90 % intervals of ranks and of utilities, whose standard errors
  are those between leagues; divergence of the true probability that an item wins, given that there is no tie, from the
  predicted one, in nats a vote. Beside it choix's Bradley-Terry model (ties are half a win of each), its bootstrap with 100
  resamples, whose probabilities are averages over them, and choix with the penalty that is best in hindsight.
- `features`: the same divergence with features and half the votes, and without them.
- `scale`: seconds to fit and to draw, for a leaderboard, and for the next pair, one thread.
- `race`: votes until one item of 20 is the best with a probability above .95, for pairs chosen by information, by double
  Thompson sampling (the best items of two draws of the same posterior) and at random; the stopping rule is the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from torch import Tensor

from benchmarks._reporting import (
    Table,
    add_bar,
    add_common_arguments,
    bars_table,
    environment,
    load_average,
    prepare,
    publish,
    say,
)
from botorch_skewgp import SkewGP
from botorch_skewgp.items import add_votes, item_model, leaderboard, next_votes, verdict, win_probabilities
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference, Tie

PARTS = ("leagues", "features", "scale", "race")
TIE_WIDTH = 0.5
SURE, MOST_VOTES, AT_ONCE = 0.95, 800, 5
RESAMPLES = 100
PENALTIES = (1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS), help="what to measure; all")
    parser.add_argument("--leagues", type=int, default=10, help="leagues of each kind")
    parser.add_argument("--seeds", type=int, default=20, help="races")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    leagues, seeds = (2, 2) if options.quick else (options.leagues, options.seeds)
    notes = [environment(), f"load average at the start {load_average()}"]
    bars = bars_table("items_bars")
    bars.notes = notes
    tables: list[Table] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in options.parts:
            table = PART[part](bars, options.quick, seeds if part == "race" else leagues)
            table.notes = notes
            tables.append(table)
    publish([*tables, bars], folder)


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


def make_league(items: int, votes: int, features: int, ties: bool, bad_judge: bool, seed: int) -> League:
    kind: dict[str, Any] = {"generator": torch.Generator().manual_seed(seed), "dtype": torch.float64}
    F = torch.rand(items, features, **kind) if features else None
    utility = torch.randn(items, **kind)
    if F is not None:  # two features matter linearly, two through a bump; their effects have a variance of about one
        bump = (-((F[:, 2:4] - 0.6) ** 2).sum(-1) / 0.18).exp()
        utility = 0.4 * utility + 2.2 * (F[:, 0] - F[:, 1]) + 2.0 * bump
    first = torch.randint(items, (votes,), generator=kind["generator"])
    second = (first + torch.randint(1, items, (votes,), generator=kind["generator"])) % items
    gap = utility[first] - utility[second]
    judge = torch.arange(votes) % 3
    if bad_judge:
        gap = torch.where(judge == 2, 0.0, gap)
    said = gap + math.sqrt(2) * torch.randn(votes, **kind)
    tied = said.abs() < TIE_WIDTH if ties else torch.zeros(votes, dtype=torch.bool)
    asked = torch.stack([first, second], dim=-1)
    answered = torch.where((said > 0).unsqueeze(-1), asked, asked.flip(-1))
    judges = (judge[~tied], judge[tied]) if bad_judge else None
    return League(utility, F, answered[~tied], asked[tied], judges)


def _fitted(league: League, features: bool = True, approximation: Any = None) -> SkewGP:
    F = league.features if features else None
    model = item_model(len(league.utility), league.observations, F, approximation=approximation)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def _truth(league: League, ties: bool) -> tuple[Tensor, Tensor]:
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
    """Duels for choix, each twice: a tie is one win of either."""
    return torch.cat([league.wins, league.wins, league.ties, league.ties.flip(-1)])


def _choix(duels: Tensor, items: int, penalty: float = 1e-2) -> Tensor:
    import choix

    return torch.as_tensor(choix.opt_pairwise(items, duels.tolist(), alpha=penalty))


def _bootstrap(league: League, pairs: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Probabilities averaged over resamples of the votes, and the rank of each item in each."""
    generator = torch.Generator().manual_seed(seed)
    duels, items = _duels(league), len(league.utility)
    m = len(duels) // 2
    ranks, said = [], torch.zeros(len(pairs), dtype=torch.float64)
    for _ in range(RESAMPLES):
        which = torch.randint(m, (m,), generator=generator)
        first = torch.where(which < len(league.wins), which, which + len(league.wins))
        other = first + torch.where(which < len(league.wins), len(league.wins), len(league.ties))
        utility = _choix(duels[torch.cat([first, other])], items)
        ranks.append((-utility).argsort().argsort() + 1)
        said += torch.sigmoid(utility[pairs[:, 0]] - utility[pairs[:, 1]]) / RESAMPLES
    return said, torch.stack(ranks)


KINDS: dict[str, dict[str, Any]] = {
    "20 items": {"items": 20, "votes": 200, "features": 0, "ties": False, "bad_judge": False},
    "100 items": {"items": 100, "votes": 1000, "features": 0, "ties": False, "bad_judge": False},
    "20 items, features": {"items": 20, "votes": 200, "features": 8, "ties": False, "bad_judge": False},
    "100 items, features": {"items": 100, "votes": 1000, "features": 8, "ties": False, "bad_judge": False},
    "20 items, ties, features": {"items": 20, "votes": 200, "features": 8, "ties": True, "bad_judge": False},
    "20 items, a bad judge": {"items": 20, "votes": 300, "features": 0, "ties": False, "bad_judge": True},
}


def _leagues(bars: Table, quick: bool, num: int) -> Table:
    columns = ("kind", "leagues", "rank_coverage", "rank_error", "utility_coverage", "utility_error", "rank_width",
               "divergence", "choix", "choix_best", "bootstrap", "bootstrap_coverage", "bootstrap_width", "seconds")  # fmt: skip
    table = Table("items_leagues", columns)
    has_choix = importlib.util.find_spec("choix") is not None
    every: list[list[float]] = []
    for kind, design in KINDS.items():
        if quick and design["items"] > 20:
            continue
        rows = []
        for seed in range(num):
            league = make_league(**design, seed=seed)
            began = time.process_time()
            model = _fitted(league)
            board = leaderboard(model).sort_index()
            seconds = time.process_time() - began
            true = league.utility - league.utility.mean()
            rank = ((-true).argsort().argsort() + 1).numpy()
            in_rank = (board.rank_low <= rank) & (rank <= board.rank_high)
            in_utility = (board.utility_low <= true.numpy()) & (true.numpy() <= board.utility_high)
            pairs, law = _truth(league, design["ties"])
            row = [in_rank.mean(), in_utility.mean(), (board.rank_high - board.rank_low).mean(), seconds]
            row += [_divergence(law, _ours(model, pairs))]
            if has_choix:
                first, second = pairs.unbind(-1)
                by_penalty = []
                for penalty in PENALTIES:
                    utility = _choix(_duels(league), design["items"], penalty)
                    by_penalty.append(_divergence(law, torch.sigmoid(utility[first] - utility[second])))
                said, ranks = _bootstrap(league, pairs, seed)
                ends = ranks.double().quantile(torch.tensor([0.05, 0.95], dtype=torch.float64), dim=0).round().numpy()
                row += [by_penalty[PENALTIES.index(1e-2)], min(by_penalty), _divergence(law, said)]
                row += [((ends[0] <= rank) & (rank <= ends[1])).mean(), (ends[1] - ends[0]).mean()]
            rows.append([float(x) for x in row])
        found = torch.tensor(rows, dtype=torch.float64)
        mean, error = found.mean(0).tolist(), (found.std(0) / math.sqrt(num)).tolist()
        names = ("divergence", "choix", "choix_best", "bootstrap", "bootstrap_coverage", "bootstrap_width")
        table.add(
            kind=kind, leagues=num, rank_coverage=mean[0], rank_error=error[0], utility_coverage=mean[1],
            utility_error=error[1], rank_width=mean[2], seconds=mean[3], **dict(zip(names, mean[4:], strict=False)),
        )  # fmt: skip
        say(f"{table.rows[-1]}")
        every += rows
        if has_choix:
            best_rival = min(mean[5], mean[7])
            add_bar(bars, "divergence against choix and its bootstrap", kind, mean[4], most=best_rival)
    found = torch.tensor([row[:2] for row in every], dtype=torch.float64)
    for name, part in zip(("ranks", "utilities"), found.unbind(-1), strict=True):
        errors = float((part.mean() - 0.9).abs() / (part.std() / math.sqrt(len(part))))
        add_bar(bars, f"coverage of {name}, standard errors from .9", f"{len(part)} leagues", errors, most=2.0)
    return table


def _features(bars: Table, quick: bool, num: int) -> Table:
    table = Table("items_features", ("items", "votes", "leagues", "with_half", "with_all", "without"))
    for votes in (400,) if quick else (400, 1000, 2000):
        rows = []
        for seed in range(num):
            full = make_league(100, votes, 8, False, False, seed)
            half = League(full.utility, full.features, full.wins[: votes // 2], full.ties, None)
            pairs, law = _truth(full, False)
            models = (_fitted(half), _fitted(full), _fitted(full, features=False))
            rows.append([_divergence(law, _ours(model, pairs)) for model in models])
        mean = torch.tensor(rows).mean(0).tolist()
        table.add(items=100, votes=votes, leagues=num, with_half=mean[0], with_all=mean[1], without=mean[2])
        say(f"{table.rows[-1]}")
        add_bar(bars, "divergence with features and half the votes", f"{votes} votes", mean[0], most=mean[2])
    return table


# Seconds


def _scale(bars: Table, quick: bool, num: int) -> Table:
    columns = ("items", "votes", "fit_s", "draws_s", "leaderboard_s", "next_pair_s", "memory_gb", "coverage")
    table = Table("items_scale", columns)
    sizes = ((100, 10_000),) if quick else ((100, 1_000_000), (1000, 100_000))
    for items, votes in sizes:
        league = make_league(items, votes, 0, False, False, seed=0)
        began = time.process_time()
        model = _fitted(league)
        fitted = time.process_time()
        _ = model.draws
        drawn = time.process_time()
        board = leaderboard(model).sort_index()
        made = time.process_time()
        next_votes(model)
        asked = time.process_time()
        true = (league.utility - league.utility.mean()).numpy()
        table.add(
            items=items, votes=votes, fit_s=fitted - began, draws_s=drawn - fitted, leaderboard_s=made - drawn,
            next_pair_s=asked - made, memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
            coverage=float(((board.utility_low <= true) & (true <= board.utility_high)).mean()),
        )  # fmt: skip
        say(f"{table.rows[-1]}")
        case = f"{votes} votes, {items} items"
        if not quick:
            add_bar(bars, "seconds to fit and draw", case, drawn - began, most=60.0 if items == 1000 else 15.0)
            add_bar(bars, "memory in GB", case, float(table.rows[-1]["memory_gb"] or 0.0), most=4.0)
        add_bar(bars, "seconds of the next pair", f"{items} items", asked - made, most=2.0 if items == 1000 else 0.2)
    return table


# Races


def _by_information(model: SkewGP, generator: torch.Generator) -> Tensor:
    return next_votes(model, AT_ONCE).pairs


def _by_double_thompson(model: SkewGP, generator: torch.Generator) -> Tensor:
    X, pairs = model.datapoints, []
    posterior = model.posterior(X)
    while len(pairs) < AT_ONCE:
        base = torch.randn(2, *posterior.base_sample_shape, generator=generator, dtype=X.dtype)
        first, second = posterior.rsample_from_base_samples(torch.Size([2]), base).squeeze(-1).argmax(-1).tolist()
        for _ in range(100):  # until another item is the best of a draw
            if first != second:
                break
            base = torch.randn(1, *posterior.base_sample_shape, generator=generator, dtype=X.dtype)
            second = int(posterior.rsample_from_base_samples(torch.Size([1]), base).argmax())
        if first == second:
            second = (first + 1) % len(X)
        pairs.append([first, second])
    return torch.tensor(pairs)


def _at_random(model: SkewGP, generator: torch.Generator) -> Tensor:
    pairs = torch.combinations(torch.arange(len(model.datapoints)))
    return pairs[torch.randperm(len(pairs), generator=generator)[:AT_ONCE]]


POLICIES: dict[str, Callable[[SkewGP, torch.Generator], Tensor]] = {
    "information": _by_information,
    "double Thompson": _by_double_thompson,
    "random pairs": _at_random,
}


def _race(bars: Table, quick: bool, num: int) -> Table:
    table = Table("items_race", ("policy", "races", "median_votes", "mean_votes", "error", "unfinished", "right"))
    found: dict[str, list[tuple[int, bool]]] = {name: [] for name in POLICIES}
    for seed in range(num):
        for name, policy in POLICIES.items():
            found[name].append(_votes_needed(policy, seed, 100 if quick else MOST_VOTES))
        say(f"race {seed}: { {name: runs[-1] for name, runs in found.items()} }")
    mean = {}
    for name, runs in found.items():
        votes = torch.tensor([float(run[0]) for run in runs])
        mean[name] = float(votes.mean())
        table.add(
            policy=name, races=num, median_votes=float(votes.median()), mean_votes=mean[name],
            error=float(votes.std() / math.sqrt(num)), unfinished=int((votes >= MOST_VOTES).sum()),
            right=sum(run[1] for run in runs) / num,
        )  # fmt: skip
    for name in ("double Thompson", "random pairs"):
        add_bar(bars, f"votes until the best is known, against {name}", "20 items", mean["information"], most=mean[name])
    return table


def _votes_needed(policy: Callable[[SkewGP, torch.Generator], Tensor], seed: int, most: int) -> tuple[int, bool]:
    """The number of votes until the model is sure, and whether it is right then."""
    kind: dict[str, Any] = {"generator": torch.Generator().manual_seed(seed), "dtype": torch.float64}
    utility = torch.randn(20, **kind)
    order = torch.randperm(20, generator=kind["generator"]).view(10, 2)  # everybody once
    noise = torch.Generator().manual_seed(1000 + seed)

    def answers(pairs: Tensor) -> Preference:
        gap = utility[pairs[:, 0]] - utility[pairs[:, 1]]
        said = gap + math.sqrt(2) * torch.randn(len(pairs), generator=noise, dtype=torch.float64)
        return Preference(torch.where((said > 0).unsqueeze(-1), pairs, pairs.flip(-1)))

    model = item_model(20, answers(order), approximation="ep")
    asked = len(order)
    while True:
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
        now = verdict(model)
        if now.probability > SURE or asked >= most:
            return asked, int(now.items[0]) == int(utility.argmax())
        model = add_votes(model, answers(policy(model, kind["generator"])))
        asked += AT_ONCE


PART: dict[str, Callable[[Table, bool, int], Table]] = {
    "leagues": _leagues,
    "features": _features,
    "scale": _scale,
    "race": _race,
}

"""Leaderboards with the uncertainty of ranks, which are functions of all utilities: from joint draws of these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.checks import as_count, as_probability, as_seed
from botorch_skewgp.frames.columns import distinct_names, pandas
from botorch_skewgp.items.model import ItemModel
from botorch_skewgp.protocols import for_judge, members_of
from botorch_skewgp.rows import Reading

if TYPE_CHECKING:
    from pandas import DataFrame

NUM_SAMPLES = 4096
MAX_UTILITIES = 5000  # of a panel, all items and judges; their joint covariance has 200 MB
MAX_ENTRIES = 2**27  # differences of two items in draws, for win probabilities: a second


def leaderboard(
    model: Model,
    items: Sequence[Hashable] | None = None,
    k: int | None = None,
    probability: float = 0.9,
    judge: int | str | None = None,
    judges: Sequence[Hashable] | None = None,
    num_samples: int = NUM_SAMPLES,
    seed: int = 0,
    at: float | None = None,
    category: int | None = None,
) -> DataFrame:
    r"""The items from the best to the worst, with intervals and probabilities.

    Utilities are in units of one item's noise, relative to the mean of all items, since votes determine differences
    only. Rank 1 is the best.

    Example:
        >>> votes = read_votes({"winner": ["a", "c", "d"], "loser": ["b", "a", "b"]})
        >>> model = item_model(len(votes.items), votes.observations)
        >>> table = leaderboard(model, votes.items, k=3)

    Args:
        model: A model of items, or any SkewGP whose points are the items, or an ensemble of such models.
        items: The names of the items; their numbers if `None`.
        k: The number of places of `p_top`; no such column if `None`.
        probability: The probability of intervals, and that two items of different tiers are in the right order.
        judge: The judge of the utilities: a number, or a name if `judges` has names; `"new"` for a person without
            votes; `"panel"` for the mean of those who voted, weighted by reliability; `None` for the shared utility,
            that of the population of judges. `"each"` has a table for the shared utility, for the panel if its judges
            and items have at most 5,000 pairs, and for each judge.
        judges: The names of the judges; their numbers if `None`.
        num_samples: The number of joint draws.
        seed: The seed of the draws.
        at: The time, for votes with times; the latest if `None`.
        category: The category, for votes with categories; none in particular if `None`.

    Returns:
        A data frame, best first, indexed by `item` (by `judge` and `item` for `"each"`, with `"all"` for the shared
        utility and `"panel"`): the posterior `mean` of the utility and its interval, `lower` and `upper`; the median
        `rank` with its interval `rank_low`, `rank_high`; the probabilities `p_best` of being the best of all, `p_top`
        of being among the best `k`, and `win_probability` of winning a vote against a random other item; the number of
        `votes` on the item; and its `tier`: a new tier starts where its first item is below the first of the tier
        before with the given probability.

    Raises:
        InputDataError: If names do not fit the items, or a number is out of its range.
        UnsupportedError: If the model has no mixture posterior with one output, no duels, or no judges.
        ImportError: If pandas is not installed.
    """
    table = partial(
        leaderboard, model, items, k, probability, num_samples=num_samples, seed=seed, at=at, category=category
    )
    if judge == "each":
        return _of_each(table, model, judges)
    judge = _number_of(judge, judges)
    probability = as_probability(probability, "probability")
    draws = utility_draws(model, num_samples, seed, "leaderboard", judge, at, category)
    n = draws.shape[-1]
    names = _names_of(items, n)
    k = None if k is None else as_count(k, "k", least=1, most=n - 1)
    relative = draws - draws.mean(-1, keepdim=True)
    ranks = ranks_of(draws)
    ends = [(1 - probability) / 2, (1 + probability) / 2]
    low, high = quantiles(relative, ends)
    rank_low, rank, rank_high = quantiles(ranks.double(), [ends[0], 0.5, ends[1]]).round().long()
    mean = relative.mean(0)
    order = mean.argsort(descending=True)
    columns: dict[str, Tensor] = {
        "mean": mean,
        "lower": low,
        "upper": high,
        "rank": rank,
        "rank_low": rank_low,
        "rank_high": rank_high,
        "p_best": (ranks == 1).double().mean(0),
    }
    if k is not None:
        columns["p_top"] = (ranks <= k).double().mean(0)
    wins = win_statistics(model, draws, judge)[0]
    columns["win_probability"] = wins.fill_diagonal_(0.0).sum(-1) / (n - 1)
    columns["votes"] = _number_of_votes(model, n)
    columns["tier"] = tiers(draws, order, probability)
    index = pandas().Index([names[i] for i in order.tolist()], name="item", tupleize_cols=False)
    table = pandas().DataFrame({name: column[order].cpu().numpy() for name, column in columns.items()}, index=index)
    table.attrs["level"] = probability  # for a plot's legend
    return table


def _of_each(table: Callable[..., DataFrame], model: Model, judges: Sequence[Hashable] | None) -> DataFrame:
    """The tables of the shared utility, of the panel and of each judge."""
    first: Any = members_of(model, "leaderboard")[0]
    known = sorted(first.judges)
    if not known:
        raise InputDataError('judge="each" needs votes with judges; leave it out.')
    if judges is not None and len(judges) <= max(known):
        raise InputDataError(f"judges must name all {max(known) + 1} judges; got {len(judges)}.")
    if judges is not None and len({"all", "panel", *judges}) <= len(judges) + 1:
        raise InputDataError("judges must name each judge once, without the names 'all' and 'panel'.")
    shown: dict[Any, int | str | None] = {"all": None}
    if 2 <= len(known) <= MAX_UTILITIES // len(_items_of(first, None, None)):
        shown["panel"] = "panel"
    shown |= {number if judges is None else judges[number]: number for number in known}
    return pandas().concat({name: table(judge=judge) for name, judge in shown.items()}, names=["judge"])


def _number_of(judge: int | str | None, judges: Sequence[Hashable] | None) -> int | str | None:
    """The number of a judge given by number or name; raises `InputDataError` for an unknown name."""
    if judges is None or judge in (None, "new", "panel"):
        return judge
    if not isinstance(judges, Sequence) or isinstance(judges, str):
        raise InputDataError(f"judges must be a list of names; got {judges!r}.")
    if judge not in judges:
        raise InputDataError(f"judge must be one of judges, 'new', 'panel' or 'each'; got {judge!r}.")
    return list(judges).index(judge)


def win_probabilities(
    model: Model,
    items: Sequence[Hashable] | None = None,
    judge: int | str | None = None,
    num_samples: int = NUM_SAMPLES,
    seed: int = 0,
    probability: float | None = None,
    at: float | None = None,
    category: int | None = None,
) -> DataFrame:
    r"""The probability that the item of the row wins a new vote against that of the column; NaN on the diagonal.

    If ties are allowed, a pair's two entries add up to less than one. Arguments are as for `leaderboard`, but a judge
    is named by number, intervals are of what is not known of the utilities (none if `probability` is `None`), and fewer
    draws are used for many items, to save time.

    Example:
        >>> low = win_probabilities(model, probability=0.9)["low"]  # 5 % quantiles

    Returns:
        A data frame, in the order of the model's items; with intervals three such tables beside each other, named
        `mean`, `low` and `high` on the first level of columns.

    Raises:
        InputDataError: If names do not fit the items, or a probability is not between 0 and 1.
    """
    levels = []
    if probability is not None:
        levels = [(1 + side * as_probability(probability, "probability")) / 2 for side in (-1, 1)]
    draws = utility_draws(model, num_samples, seed, "win_probabilities", judge, at, category)
    index = pandas().Index(_names_of(items, draws.shape[-1]), tupleize_cols=False)
    mean, *ends = (
        pandas().DataFrame(wins.fill_diagonal_(torch.nan).cpu().numpy(), index=index, columns=index)
        for wins in win_statistics(model, draws, judge, levels)
    )
    return pandas().concat({"mean": mean, "low": ends[0], "high": ends[1]}, axis=1) if ends else mean


def _names_of(items: Sequence[Hashable] | None, n: int) -> list[Any]:
    """The names of items, by default their numbers; raises `InputDataError` unless there is one for each."""
    names = list(range(n)) if items is None else distinct_names(items, "items")
    if len(names) != n:
        raise InputDataError(f"items must name each of the {n} items of the model once; got {names[:5]}.")
    return names


def ranks_of(draws: Tensor) -> Tensor:
    """The rank of each item in each draw, 1 for the best, `S x n`."""
    order = draws.argsort(-1, descending=True)
    places = torch.arange(1, draws.shape[-1] + 1, device=draws.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)


def quantiles(draws: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles over draws without interpolation, `len(levels) x n`."""
    ordered = draws.sort(0).values
    places = [min(max(round(level * (len(draws) - 1)), 0), len(draws) - 1) for level in levels]
    return ordered[places]


def win_statistics(model: Model, draws: Tensor, judge: int | str | None, levels: Sequence[float] = ()) -> Tensor:
    """Posterior mean and quantiles of the probability that one item wins, `(1 + len(levels)) x n x n`."""
    members: Sequence[Any] = members_of(model if judge in (None, "panel") else for_judge(model, judge), "leaderboard")
    kind, n = members[0].likelihood.kind_of_duels, draws.shape[-1]
    laws = [member.fitted().answer_laws(kind) for member in members]
    step = -(-len(draws) // max(64, MAX_ENTRIES // (n**2 * len(laws[0]))))  # draws are thinned for many items
    parts, weights = [], []
    shares = _shares_of_draws(len(draws), len(members))
    for member, of_member, drawn in zip(members, laws, draws.split(shares), strict=True):
        drawn = drawn[::step].float()
        for law in of_member:
            reading = law.likelihood.reading(kind, member.datapoints, member.outcome_scale)
            parts.append((reading, law.factor.item() * drawn))
            weights.append(law.weight.to(drawn).expand(len(drawn)))
    weight, rows = torch.cat(weights), []
    total = weight.sum(dtype=draws.dtype)
    for first in torch.arange(n, device=draws.device).split(max(1, 2**22 // (n * len(weight)))):
        wins = torch.cat(
            [_win_of_first(reading, drawn[:, first].unsqueeze(-1) - drawn.unsqueeze(-2)) for reading, drawn in parts]
        )  # draws x rows x n
        found = [(weight.view(-1, 1, 1) * wins).sum(0, keepdim=True, dtype=draws.dtype) / total]
        if levels:
            ordered, order = wins.sort(0)
            below = weight[order].cumsum(0).movedim(0, -1).contiguous()
            place = torch.searchsorted(below, (weight.new_tensor(levels) * total).repeat(*wins.shape[1:], 1))
            found.append(ordered.gather(0, place.movedim(-1, 0).clamp(max=len(weight) - 1)))
        rows.append(torch.cat(found))
    return torch.cat(rows, dim=1)


def _win_of_first(reading: Reading, difference: Tensor) -> Tensor:
    """The probability of an outright win given a difference of utilities, by the fast `erf`: tails have few digits."""
    slips = reading.slip_of(reading.outcomes[:, 0, 0].argsort()).detach()  # of the outcomes from the lowest
    attentive = (1 - slips.sum()).item()
    standardised = difference.sub(reading.cutpoints[0, -1].item()).div_((2 * reading.variance).sqrt().item())
    return standardised.erf_().mul_(0.5 * attentive).add_(0.5 * attentive + slips[-1].item())


def _number_of_votes(model: Model, n: int) -> Tensor:
    """The number of answers on each item."""
    first = members_of(model, "leaderboard")[0]
    named = [getattr(entry, entry.index_field).cpu().flatten() for entry in first.observations]
    index = torch.cat([torch.zeros(0, dtype=torch.long), *named])
    index = index[index >= 0]
    items = first.datapoints[index, 0].long().cpu() if isinstance(first, ItemModel) else index
    return torch.bincount(items, minlength=n)


def tiers(draws: Tensor, order: Tensor, probability: float) -> Tensor:
    """The tier of each item: from the best down, a new one starts at an item that is surely below the tier's first."""
    tier, found = torch.empty_like(order), 0
    head = int(order[0])
    above = (draws[:, head].unsqueeze(-1) > draws).double().mean(0)
    for item in order.tolist():
        if item != head and float(above[item]) > probability:
            found, head = found + 1, item
            above = (draws[:, head].unsqueeze(-1) > draws).double().mean(0)
        tier[item] = found + 1
    return tier


@torch.no_grad()
def utility_draws(
    model: Model,
    num_samples: int,
    seed: int,
    user: str,
    judge: int | str | None = None,
    at: float | None = None,
    category: int | None = None,
) -> Tensor:
    """Joint draws of the latent utilities of a model's items, or points, `num_samples x n`; of a panel, mean ones."""
    members: Sequence[Any] = members_of(model if judge == "panel" else for_judge(model, judge), user)
    X = _items_of(members[0], at, category)
    if len(X) < 2:
        raise InputDataError(f"{user} needs two items or more; the model has {len(X)}.")
    num_samples = as_count(num_samples, "num_samples", least=len(members))
    generator = torch.Generator().manual_seed(as_seed(seed))
    drawn = []
    for member, share in zip(members, _shares_of_draws(num_samples, len(members)), strict=True):
        judges = _panel_of(member, len(X), user) if judge == "panel" else None
        posterior = member.latent_posterior(X, judges, crossed=judges is not None)
        base = torch.randn(share, *posterior.base_sample_shape, generator=generator, dtype=torch.float64).to(X)
        draws = posterior.rsample_from_base_samples(torch.Size([share]), base).mean(-1)
        if judges is not None and member.judge_reliability is not None:
            draws = draws / member.judge_reliability.values[judges].mean().to(draws)
        drawn.append(draws)
    return torch.cat(drawn)


def _items_of(model: Any, at: float | None, category: int | None) -> Tensor:
    """The items of a model as points, or all points of another model; raises `InputDataError` for `at` there."""
    if isinstance(model, ItemModel):
        return model.items_at(at, category)
    if at is not None or category is not None:
        raise InputDataError("at and category are for models of votes by item_model.")
    return model.datapoints


def _panel_of(model: Any, num_items: int, user: str) -> list[int]:
    """The judges of a model, in their order; raises for fewer than two, or too many utilities of all of them."""
    judges = sorted(model.judges)
    if len(judges) < 2:
        raise InputDataError(f'{user} with judge="panel" needs votes of two judges or more; leave judge out.')
    if len(judges) * num_items > MAX_UTILITIES:
        raise UnsupportedError(
            f"{len(judges)} judges of {num_items} items are too many for joint draws of the panel, which have up to "
            f"{MAX_UTILITIES} utilities; leave judge out for the shared utility."
        )
    return judges


def _shares_of_draws(num_samples: int, num_members: int) -> list[int]:
    """The numbers of draws of the members of an ensemble."""
    return [(num_samples * (i + 1)) // num_members - (num_samples * i) // num_members for i in range(num_members)]

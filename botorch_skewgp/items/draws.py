"""Joint draws of all items' utilities, and the winners of votes given them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.items.model import ItemModel
from botorch_skewgp.observations.checks import as_count, as_seed
from botorch_skewgp.protocols import for_judge, kind_of_duels, members_of
from botorch_skewgp.rows import Reading

MAX_UTILITIES = 5000  # of a panel, all items and judges; their joint covariance has 200 MB


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
    r"""Joint posterior draws of the latent utilities of a model's items, or of its points, `num_samples x n`.

    The members of an ensemble share them equally; for the `"panel"` they are of the mean of all judges' utilities over
    their mean reliability. `user` is the name of the caller, for error messages.
    """
    members: Sequence[Any] = members_of(model if judge == "panel" else for_judge(model, judge), user)
    X = items_of(members[0], at, category)
    if len(X) < 2:
        raise InputDataError(f"{user} needs two items or more; the model has {len(X)}.")
    num_samples = as_count(num_samples, "num_samples", least=len(members))
    generator = torch.Generator().manual_seed(as_seed(seed))
    drawn = []
    for member, of_member in zip(members, shares_of_draws(num_samples, len(members)), strict=True):
        share = of_member.stop - of_member.start
        judges = panel_of(member, user) if judge == "panel" else None
        posterior = member.latent_posterior(X, judges, crossed=judges is not None)
        base = torch.randn(share, *posterior.base_sample_shape, generator=generator, dtype=torch.float64).to(X)
        draws = posterior.rsample_from_base_samples(torch.Size([share]), base).mean(-1)
        if judges is not None and member.judge_reliability is not None:
            draws = draws / member.judge_reliability.values[judges].mean().to(draws)
        drawn.append(draws)
    return torch.cat(drawn)


def items_of(model: Any, at: float | None = None, category: int | None = None) -> Tensor:
    """The items of a model as points, or all points of another model; raises `InputDataError` for `at` there."""
    if isinstance(model, ItemModel):
        return model.items_at(at, category)
    if at is not None or category is not None:
        raise InputDataError("at and category are for models of votes by item_model.")
    return model.datapoints


def panel_of(model: Any, user: str) -> list[int]:
    """The judges of a model, in their order; raises for fewer than two, or too many utilities of all of them."""
    judges = sorted(model.judges)
    if len(judges) < 2:
        raise InputDataError(f'{user} with judge="panel" needs votes of two judges or more; leave judge out.')
    if len(judges) * len(items_of(model)) > MAX_UTILITIES:
        raise UnsupportedError(
            f"{len(judges)} judges of {len(items_of(model))} items are too many for joint draws of the panel, which "
            f"have up to {MAX_UTILITIES} utilities; leave judge out for the shared utility."
        )
    return judges


def vote_readings(model: Model, user: str, judge: int | str | None = None) -> list[Reading]:
    """The reading of a judge's vote, for each member: the difference of two utilities, cut-points, a rate of slips."""
    kind = kind_of_duels(model, user)
    members = members_of(model if judge in (None, "panel") else for_judge(model, judge), user)
    return [member.answering_likelihood.reading(kind, member.datapoints, member.outcome_scale) for member in members]


def shares_of_draws(num_samples: int, num_members: int) -> list[slice]:
    """The slices of draws of each member of an ensemble."""
    ends = [(num_samples * i) // num_members for i in range(num_members + 1)]
    return [slice(*both) for both in pairwise(ends)]


def win_of_first(reading: Reading, difference: Tensor) -> Tensor:
    r"""The probability that the first of two items wins outright, given the difference of their utilities.

    By `erf`: ten times as fast as `log_ndtr`, without relative precision in the tails.
    """
    slips = reading.slip_of(reading.outcomes[:, 0, 0].argsort()).detach()  # of the outcomes from the lowest
    attentive = (1 - slips.sum()).item()
    standardised = difference.sub(reading.cutpoints[0, -1].item()).div_((2 * reading.variance).sqrt().item())
    return standardised.erf_().mul_(0.5 * attentive).add_(0.5 * attentive + slips[-1].item())

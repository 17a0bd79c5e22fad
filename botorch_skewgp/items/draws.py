"""Joint draws of all items' utilities, and what one vote would say given them."""

from __future__ import annotations

from itertools import pairwise

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.protocols import KnowsJudges, kind_of_duels, members_of
from botorch_skewgp.rows import Reading
from botorch_skewgp.truncated.univariate import log_interval_probability, log_normal_density

SQRT_HALF = 0.5**0.5


def for_judge(model: Model, judge: int | str | None) -> Model:
    """The model for a judge; raises `UnsupportedError` if it knows none."""
    if judge is None:
        return model
    if not isinstance(model, KnowsJudges):
        raise UnsupportedError(f"{type(model).__name__} knows no judges; leave judge out, or give a SkewGP.")
    return model.for_judge(judge)


@torch.no_grad()
def utility_draws(model: Model, num_samples: int, seed: int, user: str) -> Tensor:
    r"""Joint posterior draws of the latent utilities of a model's own points, `num_samples x n`.

    Args:
        model: A model with one output, or an ensemble of such models, each of which gives its share of the draws.
        num_samples: The number of draws.
        seed: The seed of the base samples.
        user: Who asks, for error messages.

    Raises:
        InputDataError: If there are fewer draws than members, or fewer than two points.
    """
    members = members_of(model, user)
    X = members[0].datapoints
    if len(X) < 2:
        raise InputDataError(f"{user} needs two items or more; the model has {len(X)}.")
    if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < len(members):
        raise InputDataError(f"num_samples must be a whole number of at least {len(members)}; got {num_samples!r}.")
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for i, member in enumerate(members):
        share = (num_samples * (i + 1)) // len(members) - (num_samples * i) // len(members)
        posterior = member.latent_posterior(X)
        base = torch.randn(share, *posterior.base_sample_shape, generator=generator, dtype=torch.float64).to(X)
        drawn.append(posterior.rsample_from_base_samples(torch.Size([share]), base).squeeze(-1))
    return torch.cat(drawn)


def vote_reading(model: Model, user: str) -> Reading:
    """What a vote between two items reads: the difference of their utilities, and its cut-points."""
    member = members_of(model, user)[0]
    return member.likelihood.reading(kind_of_duels(model, user), member.datapoints, member.outcome_scale)


def win_of_first(reading: Reading, difference: Tensor) -> Tensor:
    r"""The probability that the first of two items wins outright, given the difference of their utilities."""
    cutpoints, deviation = _numbers_of(reading)
    return _ndtr((difference - cutpoints[-1]) / deviation)


def outcomes_of_votes(reading: Reading, difference: Tensor) -> list[Tensor]:
    r"""The probabilities of all outcomes of votes but the last, which has what is left of one.

    Args:
        reading: What a vote reads.
        difference: Differences of utilities, of any shape.

    Returns:
        For each cell of the reading but the last, from the lowest, a tensor of that shape.
    """
    cutpoints, deviation = _numbers_of(reading)
    below = [_ndtr((cut - difference) / deviation) for cut in cutpoints]
    return [below[0], *(upper - lower for lower, upper in pairwise(below))]


def fisher_information(reading: Reading, difference: Tensor) -> Tensor:
    r"""How much a vote tells about the difference of two utilities, `sum_o p_o'^2 / p_o` over outcomes, at given ones.

    Args:
        reading: What a vote reads.
        difference: Differences of utilities, of any shape.
    """
    cutpoints, deviation = _numbers_of(reading)
    ends = [(end - difference) / deviation for end in (-torch.inf, *cutpoints, torch.inf)]
    information = torch.zeros_like(difference)
    for lower, upper in pairwise(ends):
        p = log_interval_probability(lower, upper).exp()
        slope = (log_normal_density(lower).exp() - log_normal_density(upper).exp()) / deviation
        information = information + torch.where(p > 0, slope.square() / p, 0.0)
    return information


def _numbers_of(reading: Reading) -> tuple[list[float], float]:
    """The cut-points of a reading, and the standard deviation of its noise."""
    return reading.cutpoints[0].detach().tolist(), reading.variance.detach().sqrt().item()


def _ndtr(x: Tensor) -> Tensor:
    """The normal distribution function by `erf`, ten times as quick and no relative digits in its tail."""
    return torch.erf(x.mul_(SQRT_HALF)).mul_(0.5).add_(0.5)

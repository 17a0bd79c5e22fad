"""Joint draws of people's utilities, and tables of what is computed of each draw."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_count, as_probability, as_seed, check_class
from botorch_skewgp.frames import Answers
from botorch_skewgp.frames.columns import pandas
from botorch_skewgp.models import SkewGP
from botorch_skewgp.protocols import check_skew_gp

if TYPE_CHECKING:
    from pandas import DataFrame, Index, MultiIndex

NUM_SAMPLES = 1024
JITTER = 1e-9  # of the mean variance of contrasts
ROUNDING = 1e-12  # of the mean variance of utilities
MAX_VALUES = 1536  # utilities with a joint covariance
ALL, NEW = "all", "new"  # the shared utility, and that of somebody who gave no answers


def named_people(model: SkewGP, answers: Answers, people: Any, user: str) -> dict[Hashable, int | str | None]:
    """The judges of named people: all who answered for `"each"`; raises `InputDataError`."""
    check_skew_gp(model, user)
    check_class(answers, "answers", Answers)
    numbers = range(len(answers.people or ()))
    known: dict[Hashable, int | None] = dict(zip(answers.people or (), numbers, strict=True))
    if model.judge_code is None:  # of one person the utility is the shared one
        known = dict.fromkeys(known)
    if isinstance(people, str) and people == "each":
        if not model.judges:
            raise InputDataError('people="each" needs answers that name people; leave it out.')
        return {name: known[name] for name, number in zip(known, numbers, strict=True) if number in model.judges}
    if isinstance(people, str) or not isinstance(people, Iterable):
        raise InputDataError(f'people must be "each" or a list of names; got {people!r}.')
    found: dict[Hashable, int | str | None] = {}
    for name in people:
        if name not in known and name not in (ALL, NEW):
            raise InputDataError(f"people must name people who answered, {ALL!r} or {NEW!r}; got {name!r}.")
        found[name] = known.get(name, NEW if name == NEW else None)
    return found


@torch.no_grad()
def utility_draws(
    model: SkewGP,
    X: Tensor,
    judges: Sequence[int | str | None],
    num_samples: int,
    seed: int,
    weight: Tensor | None = None,
) -> Tensor:
    r"""Joint draws of people's utilities at points, in units of the latent function.

    People who are too many for one covariance are drawn in groups, each jointly with the same draws of the shared
    utility, given which people are nearly independent.

    Args:
        model: A model.
        X: The points, `n x d`.
        judges: The people; `None` for the shared utility.
        num_samples: The number of draws.
        seed: The seed of the draws.
        weight: A `p x n` tensor, for contrasts of a person's utilities instead of these.

    Returns:
        Draws, `num_samples x len(judges) x p`, with `p = n` without a weight.
    """
    num_samples, seed = as_count(num_samples, "num_samples", least=2), as_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    n = len(X)
    p = n if weight is None else len(weight)
    if n > MAX_VALUES // 2:
        raise InputDataError(f"{n} points are too many for joint draws, of at most {MAX_VALUES // 2}; give fewer.")

    def normal(columns: int) -> Tensor:
        return torch.randn(num_samples, 1, columns, generator=generator, dtype=torch.float64).to(X)

    shared, parts = normal(1 + p), []
    size = max(1, MAX_VALUES // n - 1)
    model = model.for_judge(None)
    for first in range(0, len(judges), size):
        group = list(judges[first : first + size])
        if model.judge_code is None:
            if any(judge is not None for judge in group):
                raise InputDataError("The model's answers name fewer than two people; leave people out.")
            posterior, base = model.latent_posterior(X), shared
        else:
            by = [judge for judge in (None, *group) for _ in range(n)]
            posterior = model.latent_posterior(X.repeat(1 + len(group), 1), by)
            base = torch.cat([shared, normal(p * len(group))], dim=-1)
        # linear utilities and contrasts depend on each other, and may be zero but for the rounding of utilities
        noise = ROUNDING * posterior.prior_variance.mean()
        if weight is not None:
            posterior = posterior.affine(torch.block_diag(*[weight] * (posterior.num_points // n)))
            noise = noise + JITTER * posterior.prior_variance.mean()
        posterior = posterior.add_noise(noise.reshape(1, 1))
        drawn = posterior.rsample_from_base_samples(torch.Size([num_samples]), base.reshape(num_samples, -1))
        drawn = drawn.reshape(num_samples, -1, p)
        parts.append(drawn.expand(-1, len(group), -1) if model.judge_code is None else drawn[:, 1:])
    return torch.cat(parts, dim=1)


def interval_table(draws: Tensor, index: Index | MultiIndex, level: float) -> DataFrame:
    """A table of the mean and the interval over draws, `s x rows`."""
    level = as_probability(level, "level")
    ends = [(1 - level) / 2, (1 + level) / 2]
    columns = {"mean": draws.mean(0), **dict(zip(("lower", "upper"), quantiles(draws, ends), strict=True))}
    table = pandas().DataFrame({name: column.cpu().numpy() for name, column in columns.items()}, index=index)
    table.attrs["level"] = level
    return table


def quantiles(draws: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles over draws, of which some may be infinite, `len(levels) x rows`."""
    ends = draws.new_tensor(list(levels))
    finite = bool(draws.isfinite().all())
    return torch.quantile(draws, ends, dim=0, interpolation="linear" if finite else "nearest")


def row_names(frame: Any, num_rows: int) -> list[Hashable]:
    """The names of a frame's rows: those of its index, or numbers."""
    index: Any = getattr(frame, "index", None)
    return list(index) if hasattr(index, "tolist") else list(range(num_rows))

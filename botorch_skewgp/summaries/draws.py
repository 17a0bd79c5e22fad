"""Joint draws of people's utilities, and tables of what is computed of each draw."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_count, as_probability, as_seed, check_class
from botorch_skewgp.frames import Answers
from botorch_skewgp.frames.columns import pandas
from botorch_skewgp.models import SkewGP
from botorch_skewgp.protocols import check_skew_gp

if TYPE_CHECKING:
    from pandas import DataFrame

JITTER = 1e-9  # of the mean variance of contrasts
ROUNDING = 1e-12  # of the mean variance of utilities
MAX_VALUES = 1536  # utilities with a joint covariance
MAX_ROWS = 2**12  # of a table, whose quantiles are computed at a time
ALL, NEW = "all", "new"  # the shared utility, and that of somebody who gave no answers
People = Literal["each"] | Sequence[Hashable]


class Drawing(TypedDict, total=False):
    """How tables of joint draws are made.

    Args:
        level: The probability of intervals; 0.9 if not given.
        num_samples: The number of joint draws; 1,024 if not given.
        seed: The seed of the draws; 0 if not given.
    """

    level: float
    num_samples: int
    seed: int


class Question:
    """A fitted model, the names of its answers, and how its utilities are drawn; `user` is named in errors."""

    def __init__(
        self, user: str, model: SkewGP, answers: Answers, level: float = 0.9, num_samples: int = 1024, seed: int = 0
    ) -> None:
        check_skew_gp(model, user)
        check_class(answers, "answers", Answers)
        self.model, self.answers = model, answers
        self.level, self.seed = as_probability(level, "level"), as_seed(seed)
        self.num_samples = as_count(num_samples, "num_samples", least=2)

    def people(self, people: Any) -> dict[Hashable, int | str | None]:
        """The judges of named people: all who answered for `"each"`; raises `InputDataError`."""
        known: dict[Hashable, int | None] = {name: i for i, name in enumerate(self.answers.people or ())}
        answered = [name for name, number in known.items() if number in self.model.judges]
        if self.model.judge_code is None:  # of one person the utility is the shared one
            known = dict.fromkeys(known)
        if isinstance(people, str) and people == "each":
            if not self.model.judges:
                raise InputDataError('people="each" needs answers that name people; leave it out.')
            return {name: known[name] for name in answered}
        if isinstance(people, str) or not isinstance(people, Iterable):
            raise InputDataError(f'people must be "each" or a list of names; got {people!r}.')
        found: dict[Hashable, int | str | None] = {}
        for name in people:
            if name not in known and name not in (ALL, NEW):
                raise InputDataError(f"people must name people who answered, {ALL!r} or {NEW!r}; got {name!r}.")
            found[name] = known.get(name, NEW if name == NEW else None)
        return found

    @torch.no_grad()
    def utilities(self, X: Tensor, judges: Iterable[int | str | None], weight: Tensor | None = None) -> Tensor:
        r"""Joint draws of people's utilities at points, in units of the latent function.

        People who are too many for one covariance are drawn in groups, each jointly with the same draws of the shared
        utility, given which people are nearly independent.

        Args:
            X: The points, `n x d`.
            judges: The people; `None` for the shared utility.
            weight: A `p x n` tensor, for contrasts of a person's utilities instead of these.

        Returns:
            Draws, `num_samples x len(judges) x p`, with `p = n` without a weight.

        Raises:
            InputDataError: If there are too many points, or people where answers name none.
        """
        generator = torch.Generator().manual_seed(self.seed)
        n, judges, model = len(X), list(judges), self.model.for_judge(None)
        p = n if weight is None else len(weight)
        if n > MAX_VALUES // 2:
            raise InputDataError(f"{n} points are too many for joint draws, of at most {MAX_VALUES // 2}; give fewer.")
        is_shared = model.judge_code is None
        if is_shared and any(judge is not None for judge in judges):
            raise InputDataError("The model's answers name fewer than two people; leave people out.")

        def normal(columns: int) -> Tensor:
            return torch.randn(self.num_samples, columns, generator=generator, dtype=torch.float64).to(X)

        shared, parts = normal(1 + p), []
        size = max(1, MAX_VALUES // n - 1)
        for first in range(0, len(judges), size):
            group = judges[first : first + size]
            posterior, base = model.latent_posterior(X), shared
            if not is_shared:
                by = [judge for judge in (None, *group) for _ in range(n)]
                posterior = model.latent_posterior(X.repeat(1 + len(group), 1), by)
                base = torch.cat([shared, normal(p * len(group))], dim=-1)
            # linear utilities and contrasts depend on each other, and may be zero but for the rounding of utilities
            noise = ROUNDING * posterior.prior_variance.mean()
            if weight is not None:
                posterior = posterior.affine(torch.block_diag(*[weight] * (posterior.num_points // n)))
                noise = noise + JITTER * posterior.prior_variance.mean()
            posterior = posterior.add_noise(noise.reshape(1, 1))
            drawn = posterior.rsample_from_base_samples(torch.Size([self.num_samples]), base)
            drawn = drawn.reshape(self.num_samples, -1, p)
            parts.append(drawn.expand(-1, len(group), -1) if is_shared else drawn[:, 1:])
        return torch.cat(parts, dim=1)

    def table(
        self, draws: Tensor, names: Sequence[str], rows: Sequence[tuple[Hashable, ...]], middle: str = "mean"
    ) -> DataFrame:
        """A table of the mean or the median and the interval over draws, `s x ...`, with a row for each number."""
        draws = draws.flatten(1)
        low, median, high = quantiles(draws, [(1 - self.level) / 2, 0.5, (1 + self.level) / 2])
        columns = {middle: median if middle == "median" else draws.mean(0), "lower": low, "upper": high}
        return named_table(columns, names, rows, self.level)


def named_table(
    columns: Mapping[str, Tensor], names: Sequence[str], rows: Sequence[tuple[Hashable, ...]], level: float
) -> DataFrame:
    """A table of columns with an interval of a probability, whose rows have names."""
    index = pandas().MultiIndex.from_tuples(rows, names=names)
    if len(names) == 1:
        index = pandas().Index([name for (name,) in rows], name=names[0], tupleize_cols=False)
    table = pandas().DataFrame({name: column.detach().cpu().numpy() for name, column in columns.items()}, index=index)
    table.attrs["level"] = level
    return table


def quantiles(draws: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles over draws, of which some may be infinite, `len(levels) x rows`."""
    finite = bool(draws.isfinite().all())
    ends = draws.new_tensor(list(levels))
    method = "linear" if finite else "nearest"
    return torch.cat([torch.quantile(some, ends, 0, interpolation=method) for some in draws.split(MAX_ROWS, 1)], dim=-1)


def row_names(frame: Any, num_rows: int) -> list[Hashable]:
    """The names of a frame's rows: those of its index, or numbers."""
    index: Any = getattr(frame, "index", None)
    return list(index) if hasattr(index, "tolist") else list(range(num_rows))

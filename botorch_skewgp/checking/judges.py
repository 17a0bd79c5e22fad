r"""A table of the judges of a model, from joint samples of their utilities at some points, for any kernels.

A judge's tastes are the coefficients of the best linear approximation of the utility there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.checks import as_count, as_probability, as_seed
from botorch_skewgp.models.inputs import check_query, check_train_X
from botorch_skewgp.models.panel import SHARED, code_of, judge_of
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.protocols import check_skew_gp

NUM_POINTS = 24  # where utilities are compared; at least twice the number of tastes
MAX_VALUES = 2048  # utilities with a joint covariance; of more judges groups have one with what all share
MAX_OF_GROUP = 768
MIN_SHARE = 1e-4  # of the variance between judges, in a direction of tastes


@dataclass(frozen=True, eq=False)
class TasteDirections:
    r"""The principal directions in which judges' tastes differ, with the scores of each judge.

    Tastes are per standard deviation of each input over the points, less the mean of the judges in the table (where
    these are too many for a joint posterior, less the shared taste and the posterior mean of what is left).
    Directions are the principal axes of their expected second moments, those with 1e-4 of the variance or more: none
    for a single judge, and for `LinearTastesKernel(dim, rank=r)` alone at most `r` (without inducing points, whose
    residuals differ between judges).

    Directions have `weights` of the inputs, `r x d` unit vectors with a positive largest entry, and a `share` of the
    variance, `r`, the largest first. Judges' scores, `J x r`, are slopes of their utilities along directions, less the
    mean of judges, in units of the outcome: posterior `mean`, and ends of credible intervals, `lower` and `upper`.
    """

    weights: Tensor
    share: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, apart: Tensor, ends: Tensor) -> Self:
        """The directions of samples of tastes less their mean, `s x d x J`, with the levels of intervals."""
        variance, axes = torch.linalg.eigh((apart @ apart.mT).mean(0))
        share, weights = (variance / variance.sum()).flip(-1), axes.mT.flip(-2)
        weights = weights * weights.gather(-1, weights.abs().argmax(-1, keepdim=True)).sign()
        scores = (weights @ apart).mT  # s x J x d
        lower, upper = torch.quantile(scores, ends, dim=0)
        told = share >= MIN_SHARE
        return cls(weights[told], share[told], scores.mean(0)[:, told], lower[:, told], upper[:, told])


@dataclass(frozen=True, eq=False)
class JudgeSummary:
    r"""A table of judges, with the shared utility in the first row; in units of the outcome and of the inputs.

    Args:
        judges: The judge of each row after the first.
        num_answers: The number of each judge's answers, `J`.
        mean: Posterior means of level and tastes, `(1 + J) x (1 + d)`: the mean utility over the points, then its slope
            in each input. Comparisons do not determine levels.
        lower: Lower ends of their credible intervals.
        upper: Upper ends.
        difference: The distance of each judge from the shared utility, `J`: the root mean square over the points, up to
            a constant.
        agreement: The share of pairs of points on which two judges have the same favourite, `J x J`; where judges are
            too many for a joint posterior, those of two groups are independent given the shared utility.
        directions: The directions in which tastes differ, and each judge's scores.
        level: The probability of intervals.
    """

    judges: tuple[int | str, ...]
    num_answers: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor
    difference: Tensor
    agreement: Tensor
    directions: TasteDirections
    level: float

    def columns(self) -> dict[str, list]:
        """The table as columns by name, for instance for `pandas.DataFrame`."""
        found: dict[str, list] = {
            "judge": ["all", *map(str, self.judges)],
            "answers": [int(self.num_answers.sum()), *self.num_answers.tolist()],
            "difference": [0.0, *self.difference.tolist()],
        }
        for i, label in enumerate(["level", *(f"x{i}" for i in range(self.mean.shape[-1] - 1))]):
            found[label] = self.mean[:, i].tolist()
            found[f"{label}, lower"], found[f"{label}, upper"] = self.lower[:, i].tolist(), self.upper[:, i].tolist()
        return found

    def __str__(self) -> str:
        columns = self.columns()
        cells = [list(columns)] + [
            [f"{entry:.2f}" if isinstance(entry, float) else str(entry) for entry in row]
            for row in zip(*columns.values(), strict=True)
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in cells)


@torch.no_grad()
def judge_summary(
    model: SkewGP,
    judges: Sequence[int | str] | None = None,
    X: Tensor | None = None,
    level: float = 0.9,
    num_samples: int = 512,
    seed: int = 0,
) -> JudgeSummary:
    r"""A table of judges: tastes with intervals, distances from the shared utility, agreement, and directions.

    Hundreds of judges are taken in groups, each in a joint posterior with the utility that all share. Numbers of
    categories are read as quantities, so that slopes in them say nothing: see each category's utility by `posterior`.

    Args:
        model: A model of answers with judges.
        judges: The judges; all by default.
        X: The points, `n x d`, where utilities are compared; by default evenly spaced training points (with those of
            extreme inputs if the others miss a rare category). Tastes are those over these points too if they identify
            them, else over the default ones.
        level: The probability of intervals.
        num_samples: The number of joint samples of utilities.
        seed: The seed of these samples.

    Raises:
        InputDataError: If answers do not name two judges, an argument is out of its range, there are too many points,
            or no points identify linear effects.

    Example:
        >>> panel = Preference([[0, 1], [1, 2], [3, 1]], judge=[0, 1, 0])
        >>> print(judge_summary(SkewGP(torch.rand(4, 2, dtype=torch.double), panel)))  # doctest: +SKIP
    """
    check_skew_gp(model, "judge_summary")
    if len(model.judges) < 2:
        raise InputDataError("A summary needs two judges or more; name them with judge= in observations.")
    level = as_probability(level, "level")
    is_list = (isinstance(judges, Tensor) and judges.ndim == 1) or isinstance(judges, Sequence)
    if judges is not None and (isinstance(judges, str) or not is_list):
        raise InputDataError(f"judges must be a list of judges; write [{judges!r}] for a single one.")
    if judges is not None and not len(judges):
        raise InputDataError("judges must not be empty; leave it out for all judges.")
    num_samples, seed = as_count(num_samples, "num_samples"), as_seed(seed)
    asked: Iterable[Any] = sorted(model.judges) if judges is None else judges
    known: list[Any] = [judge_of(code_of(judge, model.judges)) for judge in asked]
    if X is None:
        X = _some_of(model.datapoints)
    else:
        check_train_X(X, warn=False, name="X")
        X = check_query(X, model.datapoints)
    places = X if _identifies_slopes(X) else _some_of(model.datapoints)
    if not _identifies_slopes(places):
        raise InputDataError(
            f"X or the training points must hold {X.shape[-1] + 1} points or more that are not all on one plane; got "
            f"{len(X)}. Inputs that are constant, or that add up to a constant, have no linear effects of their own."
        )
    num_places = len(X) if places is X else len(X) + len(places)
    if 2 * num_places > MAX_VALUES:
        raise InputDataError(f"{len(X)} points are too many for joint samples; give fewer.")
    size = len(known)
    if num_places * (1 + size) > MAX_VALUES:
        size = max(MAX_OF_GROUP // num_places - 1, 1)
    base = draw_sobol_normal_samples(1 + num_places * (1 + size), num_samples, X.device, X.dtype, seed=seed)
    generator, groups = torch.Generator().manual_seed(seed), []
    for first in range(0, len(known), size):
        group = known[first : first + size]
        base = base[:, : 1 + num_places * (1 + len(group))]
        groups.append(_sampled_group(model, group, X, places, base))
        order = torch.randperm(num_samples, generator=generator).to(X.device)
        base = torch.cat([base[:, : 1 + num_places], base[order, 1 + num_places :]], dim=-1)  # one shared utility
    shared, of_judges, difference, favourites = zip(*groups, strict=True)
    ends = X.new_tensor([(1 - level) / 2, (1 + level) / 2])
    tastes = torch.cat([shared[0], *of_judges], dim=-1)  # s x (1 + d) x (1 + J)
    lower, upper = torch.quantile(tastes, ends, dim=0).mT
    favourite = torch.cat(favourites, dim=-1)
    if len(groups) > 1:
        slopes = torch.cat([own[:, 1:] - common[:, 1:] for common, own in zip(shared, of_judges, strict=True)], dim=-1)
        apart = slopes - slopes.mean((0, -1), keepdim=True)
    else:
        apart = of_judges[0][:, 1:] - of_judges[0][:, 1:].mean(-1, keepdim=True)
    answers = Counter(by for entry in model.observations if entry.judge is not None for by in entry.judge.tolist())
    return JudgeSummary(
        tuple(known),
        torch.tensor([answers[judge] for judge in known]),  # "new" has none
        tastes.mean(0).mT,
        lower,
        upper,
        torch.cat(difference),
        0.5 + 0.5 * (favourite.mT @ favourite / len(favourite)).to(X),
        TasteDirections.of(apart * places.std(0, correction=0).unsqueeze(-1), ends),
        level,
    )


def _sampled_group(
    model: SkewGP, judges: Sequence[int | str], X: Tensor, places: Tensor, base: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Samples of level and tastes, shared, `s x (1 + d) x 1`, and of judges, `s x (1 + d) x J`; distances, signs."""
    n, points = len(X), X if places is X else torch.cat([X, places])
    by = [code for judge in (None, *judges) for code in [judge] * len(points)]
    posterior = model.of_judge(SHARED).latent_posterior(points.repeat(1 + len(judges), 1), by)
    samples = posterior.rsample_from_base_samples(base.shape[:1], base.to(posterior.dtype)).squeeze(-1)
    samples = samples.unflatten(-1, (1 + len(judges), -1)).mT  # s x n x (1 + J)
    samples = model.outcome_scale.location + model.outcome_scale.scale * samples
    tastes = torch.linalg.pinv(_design(places)) @ samples[:, -len(places) :]
    samples = samples[:, :n]
    tastes[:, 0] = samples.mean(-2)
    centred = samples - samples.mean(-2, keepdim=True)
    difference = (centred[..., 1:] - centred[..., :1]).square().mean(-2).mean(0).sqrt()
    first, second = torch.triu_indices(n, n, offset=1, device=X.device)
    sign = (samples[:, first, 1:] - samples[:, second, 1:]).sign()
    return tastes[..., :1], tastes[..., 1:], difference, sign.flatten(0, 1).float()


def _some_of(points: Tensor) -> Tensor:
    """Evenly spaced points; with those of extreme inputs if the former do not identify linear effects."""
    distinct = points.unique(dim=0)
    n, d = distinct.shape
    spaced = torch.linspace(0, n - 1, min(max(NUM_POINTS, 2 * (1 + d)), n), device=points.device).round().long()
    if not _identifies_slopes(distinct[spaced]):
        spaced = torch.cat([spaced, distinct.argmin(0), distinct.argmax(0)]).unique()
    return distinct[spaced]


def _design(X: Tensor) -> Tensor:
    """The regressors of level and tastes at points, `n x (1 + d)`."""
    return torch.cat([X.new_ones(len(X), 1), X - X.mean(0)], dim=-1)


def _identifies_slopes(X: Tensor) -> bool:
    return int(torch.linalg.matrix_rank(_design(X))) == 1 + X.shape[-1]

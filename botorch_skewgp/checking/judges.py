r"""A table of the judges of a model, from joint samples of their utilities at some points, for any kernels.

A judge's tastes are the coefficients of the best linear approximation of the utility there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from botorch_skewgp.models.committee import Committee
from botorch_skewgp.models.inputs import check_query, check_train_X
from botorch_skewgp.models.panel import as_judge_number
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations.checks import as_count, as_names, as_probability, as_seed

NUM_POINTS = 24  # where utilities are compared; at least twice the number of tastes
MAX_VALUES = 2048  # utilities with a joint covariance
MIN_SHARE = 1e-4  # of the variance between judges, in a direction of tastes


@dataclass(frozen=True, eq=False)
class TasteDirections:
    r"""The principal directions in which judges' tastes differ, with the scores of each judge.

    Tastes are per standard deviation of each input over the points, less the mean of the judges in the table.
    Directions are the principal axes of their expected second moments, those with 1e-4 of the variance or more: none
    for a single judge, and for `LinearTastesKernel(dim, rank=r)` alone at most `r` (without inducing points, whose
    residuals differ between judges).

    Args:
        weights: The weights of the inputs in each direction, `r x d`; unit vectors, the largest entry positive.
        share: The share of the variance between judges in each direction, `r`, the largest first.
        mean: Posterior means of judges' scores, `J x r`: the slope of a judge's utility along the direction, less the
            mean of judges, in units of the outcome.
        lower: Lower ends of their credible intervals.
        upper: Upper ends.
    """

    weights: Tensor
    share: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, tastes: Tensor, tail: float) -> Self:
        r"""The directions of joint samples of tastes.

        Args:
            tastes: Samples of judges' tastes, `s x d x J`.
            tail: The probability beyond each end of the intervals.
        """
        apart = tastes - tastes.mean(-1, keepdim=True)
        variance, axes = torch.linalg.eigh((apart @ apart.mT).mean(0))
        share, weights = (variance / variance.sum()).flip(-1), axes.mT.flip(-2)
        weights = weights * weights.gather(-1, weights.abs().argmax(-1, keepdim=True)).sign()
        scores = (weights @ apart).mT  # s x J x d
        lower, upper = torch.quantile(scores, scores.new_tensor([tail, 1 - tail]), dim=0)
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
        agreement: The share of pairs of points on which two judges have the same favourite, `J x J`.
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

    def columns(self, names: Sequence[str] | None = None, inputs: Sequence[str] | None = None) -> dict[str, list]:
        r"""The table as columns by name, for instance for `pandas.DataFrame`.

        Args:
            names: The names of judges; their numbers by default.
            inputs: The names of inputs; `x0`, `x1`, ... by default.

        Raises:
            InputDataError: If names are not a list with one for each judge or input.
        """
        judges, d = [str(judge) for judge in self.judges], self.mean.shape[-1] - 1
        names = judges if names is None else as_names(names, "names", len(judges))
        inputs = [f"x{i}" for i in range(d)] if inputs is None else as_names(inputs, "inputs", d)
        found: dict[str, list] = {
            "judge": ["all", *names],
            "answers": [int(self.num_answers.sum()), *self.num_answers.tolist()],
            "difference": [0.0, *self.difference.tolist()],
        }
        for i, label in enumerate(["level", *inputs]):
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

    Args:
        model: A model of answers with judges.
        judges: The judges; all by default.
        X: The points, `n x d`, where utilities are compared; by default evenly spaced training points (with those of
            extreme inputs if the others miss a rare category).
        level: The probability of intervals.
        num_samples: The number of joint samples of utilities.
        seed: The seed of these samples.

    Raises:
        InputDataError: If answers do not name two judges, an argument is out of its range, there are too many judges
            and points, or the points do not identify linear effects.

    Example:
        >>> panel = Preference([[0, 1], [1, 2], [3, 1]], judge=[0, 1, 0])
        >>> print(judge_summary(SkewGP(torch.rand(4, 2, dtype=torch.double), panel)))  # doctest: +SKIP
    """
    if len(model.judges) < 2:
        raise InputDataError("A summary needs two judges or more; name them with judge= in observations.")
    level = as_probability(level, "level")
    is_list = (isinstance(judges, Tensor) and judges.ndim == 1) or isinstance(judges, Sequence)
    if judges is not None and (isinstance(judges, str) or not is_list):
        raise InputDataError(f"judges must be a list of judges; write [{judges!r}] for a single one.")
    if judges is not None and not len(judges):
        raise InputDataError("judges must not be empty; leave it out for all judges.")
    num_samples, seed = as_count(num_samples, "num_samples"), as_seed(seed)
    judges = sorted(model.judges) if judges is None else [_known(judge) for judge in judges]
    committee = Committee(model, [None, *judges])
    if X is None:
        X = _some_of(model.datapoints)
    else:
        check_train_X(X, warn=False, name="X")
        X = check_query(X, model.datapoints)
    n, d = X.shape
    if n * (1 + len(judges)) > MAX_VALUES:
        raise InputDataError(
            f"{len(judges)} judges at {n} points are too many for joint samples; name some judges, or fewer points."
        )
    design = _design(X)
    if not _has_full_rank(design):
        raise InputDataError(
            f"X must hold {d + 1} points or more that are not all on one plane; got {n}. Inputs that are constant, or "
            "that add up to a constant, have no linear effects of their own."
        )
    posterior = committee.posterior(X)
    samples = SobolQMCNormalSampler(torch.Size([num_samples]), seed=seed)(posterior)  # s x n x (1 + J)
    tastes = torch.linalg.pinv(design) @ samples  # s x (1 + d) x (1 + J)
    tail = (1 - level) / 2
    lower, upper = torch.quantile(tastes, tastes.new_tensor([tail, 1 - tail]), dim=0).mT
    centred = samples - samples.mean(-2, keepdim=True)
    difference = (centred[..., 1:] - centred[..., :1]).square().mean(-2).mean(0).sqrt()
    first, second = torch.triu_indices(n, n, offset=1, device=X.device)
    sign = (samples[:, first, 1:] - samples[:, second, 1:]).sign().flatten(0, 1)
    agreement = 0.5 + 0.5 * sign.mT @ sign / len(sign)
    counts = torch.tensor([_num_answers(model, judge) for judge in judges])
    directions = TasteDirections.of(tastes[:, 1:, 1:] * X.std(0, correction=0).unsqueeze(-1), tail)
    means = tastes.mean(0).mT
    return JudgeSummary(tuple(judges), counts, means, lower, upper, difference, agreement, directions, level)


def _known(judge: Any) -> Any:
    """A judge's number as an `int`; `"new"` unchanged."""
    number = as_judge_number(judge)
    return judge if number < 0 else number


def _some_of(points: Tensor) -> Tensor:
    """Evenly spaced points; with those of extreme inputs if the former do not identify linear effects, as for a rare
    category.
    """
    distinct = points.unique(dim=0)
    n, d = distinct.shape
    spaced = torch.linspace(0, n - 1, min(max(NUM_POINTS, 2 * (1 + d)), n), device=points.device).round().long()
    if not _has_full_rank(_design(distinct[spaced])):
        spaced = torch.cat([spaced, distinct.argmin(0), distinct.argmax(0)]).unique()
    return distinct[spaced]


def _design(X: Tensor) -> Tensor:
    """The regressors of level and tastes at points, `n x (1 + d)`."""
    return torch.cat([X.new_ones(len(X), 1), X - X.mean(0)], dim=-1)


def _has_full_rank(design: Tensor) -> bool:
    return int(torch.linalg.matrix_rank(design)) == design.shape[-1]


def _num_answers(model: SkewGP, judge: int | str) -> int:
    given = (entry.judge for entry in model.observations if entry.judge is not None)
    return sum(int((by == judge).sum()) for by in given) if isinstance(judge, int) else 0

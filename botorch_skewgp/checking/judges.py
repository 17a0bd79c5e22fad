r"""A table of the judges of a model, from joint samples of their utilities at some points, for any kernels.

A judge's tastes are the coefficients of the best linear approximation of the utility there, see `linear_effects`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from botorch.exceptions.errors import InputDataError
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.checking.linear_effects import Effect, design_matrix, identifies_effects, linear_effects
from botorch_skewgp.checks import as_count, as_probability, as_seed
from botorch_skewgp.inputs.points import check_query, check_train_X
from botorch_skewgp.models.panel import code_of, judge_of
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.protocols import check_skew_gp

NUM_POINTS = 24  # where utilities are compared; at least twice the number of tastes
MAX_VALUES = 2048  # utilities with a joint covariance; of more judges groups have one with what all share
MAX_OF_GROUP = 768
MIN_SHARE = 1e-4  # of the variance between judges, in a direction of tastes


@dataclass(frozen=True, eq=False)
class TasteDirections:
    r"""The principal directions in which judges' tastes differ, with the scores of each judge.

    Tastes are per standard deviation of each effect's regressor over the points, less the mean of the judges in the
    table (where these are too many for a joint posterior, less the shared taste and the posterior mean of what is
    left). Directions are the principal axes of their expected second moments, those with 1e-4 of the variance or more:
    none for a single judge, and for `LinearTastesKernel(dim, rank=r)` alone at most `r` (without inducing points, whose
    residuals differ between judges).

    Args:
        weights: The weights of the effects in each of `r` directions, `r x p` unit vectors with a positive largest
            entry.
        share: The share of the variance in each direction, `r`, the largest first.
        mean: Posterior means of judges' scores, `J x r`: the slopes of their utilities along directions, less the mean
            of judges, in units of the outcome.
        lower: Lower ends of the scores' credible intervals.
        upper: Upper ends.
    """

    weights: Tensor
    share: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, deviations: Tensor, ends: Tensor) -> Self:
        """The directions of samples of tastes less their mean, `s x p x J`, with the levels of intervals."""
        second_moments = (deviations @ deviations.mT).mean(0)
        variance, axes = torch.linalg.eigh(second_moments)
        share = (variance / variance.sum()).flip(-1)
        weights = axes.mT.flip(-2)
        largest = weights.abs().argmax(-1, keepdim=True)
        weights = weights * weights.gather(-1, largest).sign()
        scores = (weights @ deviations).mT  # s x J x p
        lower, upper = torch.quantile(scores, ends, dim=0)
        kept = share >= MIN_SHARE
        return cls(weights[kept], share[kept], scores.mean(0)[:, kept], lower[:, kept], upper[:, kept])


@dataclass(frozen=True, eq=False)
class JudgeSummary:
    r"""A table of judges, with the shared utility in the first row; in units of the outcome and of the inputs.

    Args:
        judges: The judge of each row after the first.
        num_answers: The number of each judge's answers, `J`.
        mean: Posterior means of level and tastes, `(1 + J) x (1 + p)`: the mean utility over the points, then its
            `effects`. Comparisons do not determine levels.
        lower: Lower ends of their credible intervals.
        upper: Upper ends.
        difference: The distance of each judge from the shared utility, `J`: the root mean square over the points, up to
            a constant.
        agreement: The share of pairs of points on which two judges have the same favourite, `J x J`; where judges are
            too many for a joint posterior, those of two groups are independent given the shared utility.
        directions: The directions in which tastes differ, and each judge's scores.
        level: The probability of intervals.
        effects: What each taste is: the slope in an input, by tenfold where the model takes its logarithm, or how much
            a level of a category is liked more than its first one.
        num_inputs: The number of the model's inputs.
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
    effects: tuple[Effect, ...]
    num_inputs: int

    def columns(self) -> dict[str, list]:
        """A row for each judge and effect, as columns by name, for instance for `pandas.DataFrame`.

        They are those of `botorch_skewgp.summaries`: `person`, `attribute`, `mean`, `lower`, `upper`; then the person's
        number of `answers` and `difference` from what all share.
        """
        effects = ["level", *(effect.label(f"x{effect.input}") for effect in self.effects)]
        people = ["all", *map(str, self.judges)]
        columns: dict[str, list] = {
            "person": [name for name in people for _ in effects],
            "attribute": [effect for _ in people for effect in effects],
        }
        columns |= {name: getattr(self, name).flatten().tolist() for name in ("mean", "lower", "upper")}
        answers = [int(self.num_answers.sum()), *self.num_answers.tolist()]
        difference = [0.0, *self.difference.tolist()]
        for name, values in (("answers", answers), ("difference", difference)):
            columns[name] = [value for value in values for _ in effects]
        return columns

    def __str__(self) -> str:
        columns = self.columns()
        lines = [list(columns)]
        for row in zip(*columns.values(), strict=True):
            lines.append([f"{value:.2f}" if isinstance(value, float) else str(value) for value in row])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


class _Samples(NamedTuple):
    """Joint samples of what a table shows of a group of judges.

    Args:
        shared: Samples of level and tastes of the shared utility, `s x (1 + p) x 1`.
        of_judges: Those of judges, `s x (1 + p) x J`.
        difference: The distance of each judge from the shared utility, `J`.
        favourite: Which of two points a judge likes more, as signs for each sample and pair, `... x J`.
    """

    shared: Tensor
    of_judges: Tensor
    difference: Tensor
    favourite: Tensor


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

    Hundreds of judges are taken in groups, each in a joint posterior with the utility that all share. Tastes are
    effects of the inputs as the model reads them: slopes in numbers (in the logarithm to base 10 of those that the
    model takes the logarithm of), and for categories, those of the input transform's
    `NumericToCategoricalEncoding` or of a kernel, the difference of each level from the first.

    Args:
        model: A model of answers with judges.
        judges: The judges; all by default.
        X: The points, `n x d`, where utilities are compared; by default evenly spaced training points (with those of
            extreme inputs if the others miss a rare category, and a point at each level of categories if others depend
            on these). Tastes are those over these points too if they identify them, else over the default ones.
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
    level = as_probability(level, "level")
    num_samples, seed = as_count(num_samples, "num_samples"), as_seed(seed)
    known = _known_judges(model, judges)
    X, places, effects = _points_and_effects(model, X)
    groups = _sampled_groups(model, known, X, places, effects, num_samples, seed)
    of_judges = torch.cat([group.of_judges for group in groups], dim=-1)
    tastes = torch.cat([groups[0].shared, of_judges], dim=-1)  # s x (1 + p) x (1 + J)
    ends = X.new_tensor([(1 - level) / 2, (1 + level) / 2])
    lower, upper = torch.quantile(tastes, ends, dim=0).mT
    if len(groups) == 1:
        deviations = of_judges[:, 1:] - of_judges[:, 1:].mean(-1, keepdim=True)
    else:  # samples of different groups are joint given the shared utility only
        from_shared = [group.of_judges[:, 1:] - group.shared[:, 1:] for group in groups]
        deviations = torch.cat(from_shared, dim=-1)
        deviations = deviations - deviations.mean((0, -1), keepdim=True)
    spread = design_matrix(places, effects)[:, 1:].std(0, correction=0)
    favourite = torch.cat([group.favourite for group in groups], dim=-1)
    # two signs agree where their product is 1
    agreement = 0.5 + 0.5 * (favourite.mT @ favourite / len(favourite)).to(X)
    return JudgeSummary(
        judges=tuple(known),
        num_answers=_num_answers(model, known),
        mean=tastes.mean(0).mT,
        lower=lower,
        upper=upper,
        difference=torch.cat([group.difference for group in groups]),
        agreement=agreement,
        directions=TasteDirections.of(deviations * spread.unsqueeze(-1), ends),
        level=level,
        effects=tuple(effects),
        num_inputs=X.shape[-1],
    )


def _known_judges(model: SkewGP, judges: Any) -> list[Any]:
    """The judges of a table; raises `InputDataError` for unknown ones."""
    if len(model.judges) < 2:
        raise InputDataError("A summary needs two judges or more; name them with judge= in observations.")
    if judges is None:
        return sorted(model.judges)
    is_vector = isinstance(judges, Tensor) and judges.ndim == 1
    if isinstance(judges, str) or not (is_vector or isinstance(judges, Sequence)):
        raise InputDataError(f"judges must be a list of judges; write [{judges!r}] for a single one.")
    if not len(judges):
        raise InputDataError("judges must not be empty; leave it out for all judges.")
    return [judge_of(code_of(judge, model.judges)) for judge in judges]


def _num_answers(model: SkewGP, judges: Sequence[Any]) -> Tensor:
    """The number of answers of each judge; none of a new one."""
    answers: Counter = Counter()
    for entry in model.observations:
        if entry.judge is not None:
            answers.update(entry.judge.tolist())
    return torch.tensor([answers[judge] for judge in judges])


def _points_and_effects(model: SkewGP, X: Tensor | None) -> tuple[Tensor, Tensor, list[Effect]]:
    """Points where utilities are compared, those over which tastes are effects, and these effects."""
    if X is not None:
        check_train_X(X, warn=False, name="X")
        X = check_query(X, model.datapoints)
        effects = linear_effects(model, torch.cat([model.datapoints, X]))
        if identifies_effects(X, effects):
            return X, X, effects
    effects = linear_effects(model, model.datapoints)
    places = _some_points(model.datapoints, effects)
    X = places if X is None else X
    if not identifies_effects(places, effects):
        raise InputDataError(
            f"X or the training points must hold {1 + len(effects)} points or more that are not all on one plane; got "
            f"{len(X)}. Inputs that are constant, or that add up to a constant, have no linear effects of their own."
        )
    return X, places, effects


def _some_points(points: Tensor, effects: Sequence[Effect]) -> Tensor:
    """Evenly spaced points; with others if the former do not identify linear effects."""
    distinct = points.unique(dim=0)
    n, device = len(distinct), points.device
    wanted = max(NUM_POINTS, min(2 * (1 + len(effects)), MAX_VALUES // 4))
    spaced = torch.linspace(0, n - 1, min(wanted, n), device=device).round().long()
    if identifies_effects(distinct[spaced], effects):
        return distinct[spaced]
    regressors = design_matrix(distinct, effects)[:, 1:]
    spaced = torch.cat([spaced, regressors.argmin(0), regressors.argmax(0)]).unique()
    if identifies_effects(distinct[spaced], effects):
        return distinct[spaced]
    # inputs that hang on a category alone: a point at each of its levels has one value of them
    levels = [effect for effect in effects if effect.level is not None]
    crossed = distinct[n // 2].repeat(2 * len(levels), 1)
    for i, effect in enumerate(levels):
        crossed[2 * i, effect.input] = effect.reference
        crossed[2 * i + 1, effect.input] = effect.level
    return torch.cat([distinct[spaced], crossed]).unique(dim=0)


def _sampled_groups(
    model: SkewGP,
    judges: Sequence[Any],
    X: Tensor,
    places: Tensor,
    effects: Sequence[Effect],
    num_samples: int,
    seed: int,
) -> list[_Samples]:
    """Samples of groups of judges, of whom each has a joint posterior with the same samples of the shared utility."""
    points = X if places is X else torch.cat([X, places])
    num_points = len(points)
    if 2 * num_points > MAX_VALUES:
        raise InputDataError(
            f"{num_points} points are too many for joint samples, of at most {MAX_VALUES // 2}; give fewer, or merge "
            "levels of categories."
        )
    size = len(judges)
    if num_points * (1 + size) > MAX_VALUES:
        size = max(MAX_OF_GROUP // num_points - 1, 1)
    num_columns = 1 + num_points * (1 + size)
    base = draw_sobol_normal_samples(num_columns, num_samples, X.device, X.dtype, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    least_squares = torch.linalg.pinv(design_matrix(places, effects))
    groups = []
    for first in range(0, len(judges), size):
        group = judges[first : first + size]
        used = base[:, : 1 + num_points * (1 + len(group))]
        samples = _sampled_utilities(model, group, points, used)
        groups.append(_summary_of(samples, len(X), least_squares))
        # the next group has the same shared utility, and another part of its own
        order = torch.randperm(num_samples, generator=generator).to(X.device)
        shared, own = base[:, : 1 + num_points], base[order, 1 + num_points :]
        base = torch.cat([shared, own], dim=-1)
    return groups


def _sampled_utilities(model: SkewGP, judges: Sequence[Any], points: Tensor, base: Tensor) -> Tensor:
    """Joint samples of utilities at points, the shared one first, `s x n x (1 + J)` in units of the outcome."""
    num = 1 + len(judges)
    by = [judge for judge in (None, *judges) for _ in range(len(points))]
    posterior = model.for_judge(None).latent_posterior(points.repeat(num, 1), by)
    samples = posterior.rsample_from_base_samples(base.shape[:1], base.to(posterior.dtype)).squeeze(-1)
    return model.outcome_scale.unstandardize(samples.unflatten(-1, (num, -1)).mT)


def _summary_of(samples: Tensor, num_points: int, least_squares: Tensor) -> _Samples:
    """What a table shows of utilities at points of comparison, the first, and at those that tastes are over."""
    tastes = least_squares @ samples[:, -least_squares.shape[-1] :]
    samples = samples[:, :num_points]
    tastes[:, 0] = samples.mean(-2)
    centred = samples - samples.mean(-2, keepdim=True)
    from_shared = centred[..., 1:] - centred[..., :1]
    difference = from_shared.square().mean(-2).mean(0).sqrt()
    first, second = torch.triu_indices(num_points, num_points, offset=1, device=samples.device)
    favourite = (samples[:, first, 1:] - samples[:, second, 1:]).sign()
    return _Samples(tastes[..., :1], tastes[..., 1:], difference, favourite.flatten(0, 1).float())

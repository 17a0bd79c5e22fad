r"""Several judges: the columns of their model, a committee as a model with several outputs, and a table of judges.

The utility of judge `j` is a shared part plus the judge's own, so that a column is a point and a judge. The last input
of a point is the judge's code: 0 for the shared part alone, `j + 1` for judge `j`, and -1 for a new judge. The table is
computed from joint samples of the judges' utilities at some points, for any kernels: a judge's tastes are the
coefficients of the best linear approximation of the utility there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from botorch_skewgp.models.inputs import check_output_indices, check_query, check_train_X
from botorch_skewgp.models.transforms import apply_posterior_transform
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_count, as_names, as_probability, as_seed

if TYPE_CHECKING:
    from botorch_skewgp.models.skew_gp import SkewGP

NUM_POINTS = 24  # where utilities are compared; at least twice the number of tastes
MAX_VALUES = 2048  # utilities with a joint covariance
MIN_SHARE = 1e-4  # of the variance between judges, in a direction of tastes
SHARED, NEW = 0, -1


@dataclass(frozen=True, eq=False)
class Panel:
    r"""The columns of a model of several judges: the pairs of a judge and a point the judge was asked about.

    Args:
        keys: A sorted integer tensor, `point * (num_judges + 1) + code` for every column.
        num_judges: The number of judges, the largest one plus one.
    """

    keys: Tensor
    num_judges: int

    @classmethod
    def of(cls, observations: Sequence[Observation], device: torch.device) -> Self | None:
        """The columns of observations; `None` if they name fewer than two judges."""
        known = judges_of(observations)
        if len(known) < 2:
            return None
        size, keys = max(known) + 2, [torch.zeros(1, dtype=torch.long, device=device)]

        def collect(index: Tensor, code: Tensor) -> Tensor:
            keys.append((index * size + code).flatten().to(device))
            return index

        for entry in observations:
            entry.at_columns(collect)
        return cls(torch.cat(keys).unique(), size - 1)

    @property
    def codes(self) -> Tensor:
        """The code of the judge of each column."""
        return self.keys % (self.num_judges + 1)

    def resolve(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """Observations whose indices are columns instead of points."""
        return tuple(entry.at_columns(self._place) for entry in observations)

    def _place(self, index: Tensor, code: Tensor) -> Tensor:
        keys = self.keys.to(index.device)
        return torch.searchsorted(keys, (index * (self.num_judges + 1) + code).contiguous())

    def points(self, X: Tensor) -> Tensor:
        r"""The points of the columns, with the code of the judge as the last input.

        Args:
            X: The training points, `n x d`.
        """
        keys = self.keys.to(X.device)
        return torch.cat([X[keys // (self.num_judges + 1)], self.codes.to(X).unsqueeze(-1)], dim=-1)


def code_of(judge: int | str | None, known: frozenset[int] | set[int]) -> int:
    r"""The code of a judge, the last input of points.

    Args:
        judge: A judge's number, `"new"` for one without answers, or `None` for the shared part.
        known: The numbers of the judges who gave answers.

    Raises:
        InputDataError: If the judge gave no answers.
    """
    if judge is None:
        return SHARED
    if isinstance(judge, str) and judge == "new":
        return NEW
    number = _as_number(judge)
    if number not in known:
        named = sorted(known)
        some = f"{named[:10]}{' and others' if len(named) > 10 else ''}" if named else "none did"
        hint = " A judge's number is the position of the name in the list that number_judges returned." * isinstance(
            judge, str
        )
        raise InputDataError(
            f"judge must be the number of a judge who gave answers ({some}) or 'new' for a new one; got {judge!r}."
            f"{hint}"
        )
    return number + 1


def judge_of(code: int) -> int | str | None:
    """The judge of a code: a number, `"new"`, or `None` for the shared part."""
    return code - 1 if code > SHARED else "new" if code == NEW else None


def _as_number(judge: Any) -> int:
    """An integer of any type as an `int`; -1 for anything else."""
    try:
        return -1 if isinstance(judge, bool) else index(judge)
    except TypeError:
        return -1


def _known(judge: Any) -> Any:
    """A judge's number as an `int`; `"new"` unchanged."""
    number = _as_number(judge)
    return judge if number < 0 else number


def judges_of(observations: Sequence[Observation]) -> set[int]:
    """The numbers of all judges who gave answers."""
    named = [entry.judge.unique().tolist() for entry in observations if entry.judge is not None]
    return {number for numbers in named for number in numbers}


def with_code(X: Tensor, code: int) -> Tensor:
    """Points with the code of a judge as the last column."""
    return torch.cat([X, X.new_full((*X.shape[:-1], 1), float(code))], dim=-1)


class Committee(Model):
    r"""The joint utilities of several judges, an output for each; made by `SkewGP.for_judge` from a sequence.

    BoTorch's objectives for several outputs weight the utilities: `ScalarizedPosteriorTransform(weights)`, or
    `LinearMCObjective(weights)`. Comparisons determine each judge's utility up to a constant: compare it between
    points, not between judges.

    Args:
        model: A model of answers with judges.
        judges: Numbers of judges, `"new"` for one without answers, `None` for the shared utility.

    Raises:
        InputDataError: If no judge is given, or one of them gave no answers.

    Example:
        >>> panel = Preference([[0, 1], [1, 2]], judge=[0, 1])
        >>> committee = SkewGP(torch.rand(3, 2, dtype=torch.double), panel).for_judge([0, 1])
        >>> committee.posterior(torch.rand(5, 2, dtype=torch.double)).mean.shape
        torch.Size([5, 2])
    """

    def __init__(self, model: SkewGP, judges: Sequence[int | str | None]) -> None:
        super().__init__()
        if not judges:
            raise InputDataError("judges must name at least one judge; got an empty sequence.")
        for judge in judges:
            code_of(judge, model.judges)
        self.judges, self.model = tuple(judges), model if model._judge == SHARED else model.for_judge(None)

    @property
    def num_outputs(self) -> int:
        """The number of judges."""
        return len(self.judges)

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape, which is empty."""
        return torch.Size()

    @property
    def datapoints(self) -> Tensor:
        """The points that observations refer to, `n x d`."""
        return self.model.datapoints

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        **kwargs: Any,
    ) -> Posterior:
        r"""The joint posterior of the judges' utilities, in units of the outcome.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: The positions of judges; all if `None`.
            observation_noise: Must be `False`: answers are predicted for one judge at a time.
            posterior_transform: A posterior transform. Affine ones keep the skewness.

        Raises:
            UnsupportedError: If `observation_noise` is not `False`.
        """
        if not isinstance(observation_noise, bool) or observation_noise:
            raise UnsupportedError("Answers are predicted for one judge; use model.for_judge(j).")
        if output_indices is not None:
            return self.subset_output(output_indices).posterior(X, posterior_transform=posterior_transform)
        posterior, scale = self.model.latent_posterior(X, self.judges, crossed=True), self.model.outcome_scale
        if scale.scale != 1 or scale.location != 0:
            eye = torch.eye(X.shape[-2] * self.num_outputs, dtype=X.dtype, device=X.device)
            posterior = posterior.affine(scale.scale * eye, scale.location, self.num_outputs)
        return apply_posterior_transform(posterior_transform, posterior, X)

    def fantasize(self, *args: Any, **kwargs: Any) -> Self:
        r"""Not supported: one judge gives an answer, so look ahead with `model.for_judge(j)`.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            "A committee has no fantasies, since one judge gives an answer; use model.for_judge(j), or choose "
            "question and judge by next_question(model, judges=...)."
        )

    def subset_output(self, idcs: list[int]) -> Self:
        r"""The committee of some of the judges.

        Args:
            idcs: The positions of judges.

        Raises:
            UnsupportedError: If a position does not exist, or none is named.
        """
        return type(self)(self.model, [self.judges[i] for i in check_output_indices(idcs, self.num_outputs)])


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
    """

    judges: tuple[int | str, ...]
    num_answers: Tensor
    mean: Tensor
    lower: Tensor
    upper: Tensor
    difference: Tensor
    agreement: Tensor
    directions: TasteDirections

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
def summarize_judges(
    model: SkewGP,
    judges: Sequence[int | str] | None = None,
    X: Tensor | None = None,
    level: float = 0.9,
    num_samples: int = 512,
    seed: int = 0,
) -> JudgeSummary:
    r"""The table of a model's judges.

    Args:
        model: A model of answers with judges.
        judges: The judges; all by default.
        X: The points, `n x d`, where utilities are compared; by default up to 24 of the training points.
        level: The probability of intervals.
        num_samples: The number of joint samples of utilities.
        seed: The seed of these samples.

    Raises:
        InputDataError: If answers do not name two judges, an argument is out of its range, there are too many judges
            and points, or the points do not identify linear effects.
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
    return JudgeSummary(tuple(judges), counts, tastes.mean(0).mT, lower, upper, difference, agreement, directions)


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

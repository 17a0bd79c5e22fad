r"""What was seen: small immutable data classes, validated when built.

Observations refer to rows of `train_X` by index and hold no parameters; noise levels and cut-points belong to the
likelihoods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Observation:
    """Base class of all kinds of observations."""

    def apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """A copy with `fn`, a change of dtype or device, applied to every tensor held; see `torch.nn.Module._apply`."""
        old = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        new = {name: fn(value) if isinstance(value, Tensor) else value for name, value in old.items()}
        return self if all(new[name] is old[name] for name in old) else self._with(new)

    def shift(self, offset: int) -> Self:
        """A copy that refers to the same points after `offset` others have been put before them."""
        index = getattr(self, self._index_field)
        return self._with({self._index_field: torch.where(index >= 0, index + offset, index)})  # -1 is padding

    def _with(self, values: dict[str, Any]) -> Self:
        """A copy with some fields replaced by values that are known to be valid."""
        copy = object.__new__(type(self))
        for entry in fields(self):
            object.__setattr__(copy, entry.name, values.get(entry.name, getattr(self, entry.name)))
        return copy

    _index_field: ClassVar[str] = "index"

    @property
    def num_points_needed(self) -> int:
        """The least number of training points that these observations refer to, the largest index plus one."""
        index: Tensor = getattr(self, self._index_field)
        return int(index.max()) + 1 if index.numel() else 0


def _as_tensor(value: Any, name: str) -> Tensor:
    """A tensor of its own, so that later writes to the caller's change nothing; numbers in lists keep all digits."""
    try:
        if isinstance(value, Tensor):
            return value.detach().clone()
        tensor = torch.tensor(value)
        return torch.tensor(value, dtype=torch.float64) if tensor.is_floating_point() else tensor
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputDataError(f"{name} must be a tensor or a list of numbers; got {type(value).__name__}.") from error


def _as_index(value: Any, name: str, shape: str, ndim: int, padded: bool = False) -> Tensor:
    """Check a tensor of non-negative integer indices (-1 is padding, where allowed) and return it as int64."""
    index = _as_tensor(value, name)
    if index.dtype.is_floating_point or index.dtype.is_complex or index.dtype == torch.bool:
        raise InputDataError(f"{name} must hold integer indices into train_X; got dtype {index.dtype}.")
    if index.ndim != ndim:
        raise InputDataError(f"{name} must be a {shape} tensor; got shape {tuple(index.shape)}.")
    if (index < (-1 if padded else 0)).any():
        hint = " (-1 pads short rows)" if padded else ""
        raise InputDataError(f"{name} must not hold negative indices; count rows of train_X from 0{hint}.")
    return index.long()


def _as_values(value: Any, name: str) -> Tensor:
    """Check a vector of real numbers without NaN and return it as a floating point tensor."""
    values = _as_tensor(value, name)
    if values.dtype.is_complex or values.dtype == torch.bool:
        raise InputDataError(f"{name} must hold real numbers; got dtype {values.dtype}.")
    if not values.is_floating_point():
        values = values.double()
    if values.ndim == 2 and values.shape[-1] == 1:
        values = values.squeeze(-1)  # BoTorch's n x 1 outcomes
    if values.ndim != 1:
        raise InputDataError(f"{name} must be an m-dim or m x 1 tensor; got shape {tuple(values.shape)}.")
    if values.isnan().any():
        where = values.isnan().nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(f"{name} contains NaN at positions {where}; leave these observations out.")
    return values


def _as_point_index(index: Any, m: int, name: str) -> Tensor:
    """Check an index with one entry per observation; by default the first `m` points in order."""
    if index is None:
        return torch.arange(m)
    index = _as_index(index, "index", "m-dim", ndim=1)
    if index.shape[0] != m:
        raise InputDataError(f"index must have one entry for each of the {m} entries of {name}; got {index.shape[0]}.")
    return index


def _check_distinct(index: Tensor, name: str) -> None:
    """Raise if a row of a padded index tensor names a point twice."""
    ordered = index.sort(-1).values
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(-1).nonzero().squeeze(-1)
    if twice.numel():
        raise InputDataError(f"{name} names a point twice in rows {twice[:5].tolist()}; name each point once a row.")


def _check_pairs(pairs: Any, name: str) -> Tensor:
    pairs = _as_index(pairs, name, "m x 2", ndim=2)
    if pairs.shape[-1] != 2:
        raise InputDataError(f"{name} must be m x 2, winner first; got shape {tuple(pairs.shape)}.")
    same = (pairs[:, 0] == pairs[:, 1]).nonzero().squeeze(-1)
    if same.numel():
        raise InputDataError(f"{name} compares a point with itself in rows {same[:5].tolist()}; leave such duels out.")
    return pairs


@dataclass(frozen=True, eq=False)
class Numeric(Observation):
    r"""Numbers: the latent function was read with Gaussian noise.

    Args:
        values: An `m`-dim (or `m x 1`) tensor of finite numbers.
        noise: Known noise variances, an `m`-dim tensor or a number; `None` if the likelihood is to learn one level.
        index: An `m`-dim integer tensor: the row of `train_X` of each number; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If values are not finite, noise is negative, or shapes disagree.

    Example:
        >>> Numeric([1.2, 0.7], noise=0.01, index=[0, 4])  # rows 0 and 4 of train_X, both with a variance of 0.01
    """

    values: Tensor
    noise: Tensor | None = None
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        values = _as_values(self.values, "values")
        if not values.isfinite().all():
            raise InputDataError("values must be finite; give readings beyond a limit as Censored.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "index", _as_point_index(self.index, values.shape[0], "values"))
        if self.noise is not None:
            noise = _as_tensor(self.noise, "noise").to(values)
            noise = _as_values(noise.expand(values.shape) if noise.ndim == 0 else noise, "noise")
            if noise.shape != values.shape or not noise.isfinite().all() or (noise < 0).any():
                raise InputDataError("noise must hold one finite non-negative variance for each entry of values.")
            object.__setattr__(self, "noise", noise)


@dataclass(frozen=True, eq=False)
class Binary(Observation):
    r"""Yes or no: label 1 where the noisy latent function is positive, 0 where it is not.

    Args:
        labels: An `m`-dim tensor of 0 and 1 (or booleans).
        index: An `m`-dim integer tensor: the row of `train_X` of each label; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If a label is neither 0 nor 1, or shapes disagree.

    Example:
        >>> Binary([1, 0, 0])  # of the first three rows of train_X
    """

    labels: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        labels = _as_flags(self.labels, "labels")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "index", _as_point_index(self.index, labels.shape[0], "labels"))


@dataclass(frozen=True, eq=False)
class Ordinal(Observation):
    r"""Grades: the noisy latent function fell between two neighbouring cut-points.

    Args:
        grades: An `m`-dim tensor of integers `0, ..., num_grades - 1`.
        num_grades: The number of grades, at least 2.
        index: An `m`-dim integer tensor: the row of `train_X` of each grade; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If a grade is out of range, or shapes disagree.

    Example:
        >>> Ordinal([0, 2, 4], num_grades=5)
    """

    grades: Tensor
    num_grades: int
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        if not isinstance(self.num_grades, int) or self.num_grades < 2:
            raise InputDataError(f"num_grades must be an integer of at least 2; got {self.num_grades}.")
        grades = _as_values(self.grades, "grades")
        bad = ((grades != grades.round()) | (grades < 0) | (grades >= self.num_grades)).nonzero().squeeze(-1)
        if bad.numel():
            raise InputDataError(
                f"grades must be integers from 0 to {self.num_grades - 1}; got {grades[bad[:5]].tolist()} at positions "
                f"{bad[:5].tolist()}."
            )
        object.__setattr__(self, "grades", grades.long())
        object.__setattr__(self, "index", _as_point_index(self.index, grades.shape[0], "grades"))


@dataclass(frozen=True, eq=False)
class Censored(Observation):
    r"""Readings of which only bounds are known: detection limits, saturation, rounding.

    Args:
        lower: An `m`-dim tensor of lower bounds; `-inf` where there is none.
        upper: An `m`-dim tensor of upper bounds; `inf` where there is none.
        index: An `m`-dim integer tensor: the row of `train_X` of each reading; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If a lower bound is not below its upper bound, or shapes disagree.

    Example:
        >>> Censored(lower=[-torch.inf, 2.5], upper=[0.1, 3.5])  # below a detection limit of 0.1; rounded to 3
    """

    lower: Tensor
    upper: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        lower, upper = _as_values(self.lower, "lower"), _as_values(self.upper, "upper")
        if lower.shape != upper.shape:
            raise InputDataError(f"lower and upper must have equal shapes; got {lower.shape} and {upper.shape}.")
        bad = (~(lower < upper)).nonzero().squeeze(-1)
        if bad.numel():
            raise InputDataError(
                f"lower must be below upper; this fails at positions {bad[:5].tolist()}. Give exact readings as "
                "Numeric."
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper.to(lower))
        object.__setattr__(self, "index", _as_point_index(self.index, lower.shape[0], "lower"))


@dataclass(frozen=True, eq=False)
class Preference(Observation):
    r"""Duels: one point was preferred to another. The same pair may occur often, also in both orders.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`, winner first.

    Raises:
        InputDataError: If `pairs` is not `m x 2` integers, holds a negative index, or compares a point with itself.

    Example:
        >>> Preference(torch.tensor([[0, 1], [2, 1]]))  # 0 beat 1, and 2 beat 1
    """

    pairs: Tensor

    _index_field: ClassVar[str] = "pairs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", _check_pairs(self.pairs, "pairs"))


@dataclass(frozen=True, eq=False)
class Tie(Observation):
    r"""Duels that ended in a tie: the noisy difference was within a width that the likelihood holds.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`, in any order.

    Raises:
        InputDataError: As `Preference`.

    Example:
        >>> Tie([[0, 3]])
    """

    pairs: Tensor

    _index_field: ClassVar[str] = "pairs"

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", _check_pairs(self.pairs, "pairs"))


@dataclass(frozen=True, eq=False)
class Choice(Observation):
    r"""Best of several: the first item of each row was chosen among all items of the row.

    Args:
        options: An `m x k` integer tensor of rows of `train_X`, the chosen one first; `-1` pads shorter rows.

    Raises:
        InputDataError: If a row has fewer than two items or names one twice.

    Example:
        >>> Choice([[2, 0, 1], [3, 4, -1]])  # 2 was the best of three, 3 of two
    """

    options: Tensor

    _index_field: ClassVar[str] = "options"

    def __post_init__(self) -> None:
        options = _as_index(self.options, "options", "m x k", ndim=2, padded=True)
        _check_distinct(options, "options")
        _check_filled(options, "options")
        object.__setattr__(self, "options", options)

    def as_ranking(self) -> Ranking:
        """The same data as a ranking whose losers are not compared with each other."""
        ranks = torch.ones_like(self.options)
        ranks[:, :1] = 0
        return Ranking(self.options, ranks)


@dataclass(frozen=True, eq=False)
class Ranking(Observation):
    r"""Rankings: several items put in order by one judgement, in which each item's noise is drawn once.

    Args:
        items: An `m x k` integer tensor of rows of `train_X`, best first; `-1` pads shorter rankings.
        ranks: An `m x k` integer tensor of ranks, non-decreasing along each row, for partial orders: items of equal
            rank are not compared; every item beats every item of the next rank. By default `0, ..., k - 1`.

    Raises:
        InputDataError: If a row has fewer than two items, names one twice, or its ranks decrease.

    Example:
        >>> Ranking([[2, 0, 1]])  # 2 before 0 before 1
        >>> Ranking([[2, 0, 1, 3]], ranks=[[0, 0, 1, 1]])  # 2 and 0 each before 1 and 3
    """

    items: Tensor
    ranks: Tensor = None  # type: ignore[assignment]  # set when built

    _index_field: ClassVar[str] = "items"

    def __post_init__(self) -> None:
        items = _as_index(self.items, "items", "m x k", ndim=2, padded=True)
        _check_distinct(items, "items")
        _check_filled(items, "items")
        object.__setattr__(self, "items", items)
        if self.ranks is None:
            ranks = torch.arange(items.shape[-1], device=items.device).expand_as(items)
        else:
            ranks = _as_index(self.ranks, "ranks", "m x k", ndim=2)
            if ranks.shape != items.shape:
                raise InputDataError(
                    f"ranks must have the shape of items, {tuple(items.shape)}; got {tuple(ranks.shape)}."
                )
            real = items >= 0
            if ((ranks[:, 1:] < ranks[:, :-1]) & real[:, 1:]).any():
                raise InputDataError("ranks must not decrease along a row; list items best first.")
        object.__setattr__(self, "ranks", ranks)

    def comparisons(self) -> tuple[Tensor, Tensor]:
        r"""The comparisons between neighbouring ranks.

        Returns:
            A `p x 2` tensor of pairs, winner first, and a `p`-dim tensor with the number of each pair's ranking.
        """
        items, ranks = self.items, self.ranks
        real = (items.unsqueeze(-1) >= 0) & (items.unsqueeze(-2) >= 0)
        # the next rank that occurs in the row, for every item
        beyond = torch.where(
            real & (ranks.unsqueeze(-2) > ranks.unsqueeze(-1)), ranks.unsqueeze(-2), torch.iinfo(ranks.dtype).max
        )
        following = beyond.amin(-1, keepdim=True)
        row, winner, loser = (real & (ranks.unsqueeze(-2) == following)).nonzero(as_tuple=True)
        return torch.stack([items[row, winner], items[row, loser]], dim=-1), row


@dataclass(frozen=True, eq=False)
class LabelPreference(Observation):
    r"""One label beats another at a point: multi-class labels and label graphs, one latent function per label.

    Equation (5) of the unified framework paper. A class label `l` of `c` classes is `c - 1` preferences of `l` over the
    other labels, see `from_classes`.

    Args:
        labels: An `m x 2` integer tensor of labels, winner first.
        num_labels: The number of labels, hence of outputs of the model.
        index: An `m`-dim integer tensor: the row of `train_X` of each preference; by default `0, ..., m - 1`.
        event: An `m`-dim integer tensor: preferences of one event share each label's noise; by default every
            preference has its own.

    Raises:
        InputDataError: If a label is out of range or compared with itself, or shapes disagree.

    Example:
        >>> LabelPreference.from_classes([0, 2, 1], num_labels=3)  # class labels of the first three rows of train_X
        >>> LabelPreference([[0, 1], [2, 1]], num_labels=3, index=[0, 0])  # at row 0, labels 0 and 2 both beat label 1
    """

    labels: Tensor
    num_labels: int
    index: Tensor = None  # type: ignore[assignment]  # set when built
    event: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        labels = _check_pairs(self.labels, "labels")
        if not isinstance(self.num_labels, int) or self.num_labels < 2:
            raise InputDataError(f"num_labels must be an integer of at least 2; got {self.num_labels}.")
        if labels.numel() and int(labels.max()) >= self.num_labels:
            raise InputDataError(f"labels must be from 0 to {self.num_labels - 1}; got {int(labels.max())}.")
        m = labels.shape[0]
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "index", _as_point_index(self.index, m, "labels"))
        event = torch.arange(m) if self.event is None else _as_index(self.event, "event", "m-dim", ndim=1)
        if event.shape[0] != m:
            raise InputDataError(f"event must have one entry for each of the {m} rows of labels; got {event.shape[0]}.")
        object.__setattr__(self, "event", event)

    @classmethod
    def from_classes(cls, classes: Tensor, num_labels: int, index: Tensor | None = None) -> LabelPreference:
        r"""Class labels: the label seen beats every other one in a single event.

        Args:
            classes: An `m`-dim integer tensor of labels `0, ..., num_labels - 1`.
            num_labels: The number of labels.
            index: As in the class.
        """
        classes = _as_index(classes, "classes", "m-dim", ndim=1)
        if classes.numel() and int(classes.max()) >= num_labels:
            raise InputDataError(f"classes must be from 0 to {num_labels - 1}; got {int(classes.max())}.")
        index = _as_point_index(index, classes.shape[0], "classes")
        others = torch.arange(num_labels, device=classes.device).expand(classes.shape[0], num_labels)
        event, loser = (others != classes.unsqueeze(-1)).nonzero(as_tuple=True)
        return cls(torch.stack([classes[event], loser], dim=-1), num_labels, index.to(event)[event], event)


@dataclass(frozen=True, eq=False)
class Validity(Observation):
    r"""Whether an experiment worked: the noisy latent function was above a threshold that the likelihood holds.

    Equation (40) of the unified framework paper and section 3.2 of the preference paper. What a valid experiment
    yielded beside its validity, a number or a comparison, is a `Numeric` or `Preference` next to this one; a non-valid
    one yields nothing else.

    Args:
        valid: An `m`-dim tensor of booleans (or 0 and 1).
        index: An `m`-dim integer tensor: the row of `train_X` of each outcome; by default `0, ..., m - 1`.

    Raises:
        InputDataError: If an entry is neither 0 nor 1, or shapes disagree.

    Example:
        >>> [Numeric([1.2, 0.7], index=[0, 2]), Validity([True, False, True])]
    """

    valid: Tensor
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        valid = _as_flags(self.valid, "valid")
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "index", _as_point_index(self.index, valid.shape[0], "valid"))


@dataclass(frozen=True, eq=False)
class AffineProbit(Observation):
    r"""The general case: `lower < weight f(train_X) + bias + v <= upper` with `v ~ N(0, covariance)`.

    Args:
        weight: An `m x n` tensor over the points of `index`.
        bias: An `m`-dim tensor or a number.
        covariance: An `m x m` positive semi-definite tensor: the covariance of the noise.
        lower: An `m`-dim tensor or a number; `-inf` allowed.
        upper: An `m`-dim tensor or a number; `inf` allowed.
        index: An `n`-dim integer tensor: the rows of `train_X` that the columns of `weight` stand for; by default
            `0, ..., n - 1`.

    Raises:
        InputDataError: If shapes disagree, a lower bound is not below its upper bound, or the covariance is not
            symmetric positive semi-definite.

    Example:
        >>> AffineProbit(weight=[[0.5, 0.5]], bias=0.0, covariance=[[0.1]])  # the mean of two points is positive
    """

    weight: Tensor
    bias: Tensor
    covariance: Tensor
    lower: Tensor = 0.0  # type: ignore[assignment]
    upper: Tensor = torch.inf  # type: ignore[assignment]
    index: Tensor = None  # type: ignore[assignment]  # set when built

    def __post_init__(self) -> None:
        weight = _as_tensor(self.weight, "weight")
        if weight.ndim != 2 or not weight.is_floating_point() or not weight.isfinite().all():
            raise InputDataError("weight must be an m x n floating point tensor of finite numbers.")
        m = weight.shape[0]
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "index", _as_point_index(self.index, weight.shape[1], "a row of weight"))
        for name in ("bias", "lower", "upper"):
            value = _as_tensor(getattr(self, name), name).to(weight)
            value = _as_values(value.expand(m) if value.ndim == 0 else value, name)
            if value.shape[0] != m:
                raise InputDataError(f"{name} must have one entry for each of the {m} rows of weight.")
            object.__setattr__(self, name, value)
        if not self.bias.isfinite().all():
            raise InputDataError("bias must be finite.")
        if not (self.lower < self.upper).all():
            raise InputDataError("Every entry of lower must be below its entry of upper.")
        covariance = _as_tensor(self.covariance, "covariance").to(weight)
        if covariance.shape != (m, m) or not covariance.isfinite().all():
            raise InputDataError(f"covariance must be {m} x {m} and finite; got shape {tuple(covariance.shape)}.")
        scale = covariance.diagonal().abs().amax() if m else covariance.new_zeros(())
        tolerance = 1e3 * torch.finfo(covariance.dtype).eps * scale
        if ((covariance - covariance.mT).abs() > tolerance).any():
            raise InputDataError("covariance must be symmetric.")
        if m and (torch.linalg.eigvalsh(covariance) < -m * tolerance).any():
            raise InputDataError("covariance must be positive semi-definite; it has a negative eigenvalue.")
        object.__setattr__(self, "covariance", covariance)


def _as_flags(value: Any, name: str) -> Tensor:
    """Check a vector of 0 and 1 and return it as booleans."""
    flags = _as_tensor(value, name)
    if flags.dtype != torch.bool:
        flags = _as_values(flags, name)
        bad = ((flags != 0) & (flags != 1)).nonzero().squeeze(-1)
        if bad.numel():
            raise InputDataError(
                f"{name} must be 0 or 1; got {flags[bad[:5]].tolist()} at positions {bad[:5].tolist()}."
            )
        return flags.bool()
    if flags.ndim == 2 and flags.shape[-1] == 1:
        flags = flags.squeeze(-1)
    if flags.ndim != 1:
        raise InputDataError(f"{name} must be an m-dim or m x 1 tensor; got shape {tuple(flags.shape)}.")
    return flags


def _check_filled(index: Tensor, name: str) -> None:
    """Raise if a row has fewer than two items, or padding before an item."""
    real = index >= 0
    short = (real.sum(-1) < 2).nonzero().squeeze(-1)
    if short.numel():
        raise InputDataError(f"{name} must name at least two points in every row; see rows {short[:5].tolist()}.")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise InputDataError(f"{name} must be padded with -1 at the end of a row only.")

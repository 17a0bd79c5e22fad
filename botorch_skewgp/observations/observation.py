r"""Base classes of observations: references to points, judges, counts, and copies with other indices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_each, as_index, as_values, check_length, check_names, positions

MAX_JUDGE = 2**24 - 2  # judges are a column of points, whose integers are exact up to here in single precision
MAX_ANSWERS = 10**7  # the sum of counts; answers are stored one by one


class Mark(NamedTuple):
    r"""Equal marks in a picture, for observations at single points.

    Args:
        points: An `m`-dim integer tensor: the rows of `train_X`.
        label: Their entry in the legend.
        symbol: A `"value"`, a bound on one, a `"yes"` or a `"no"`, or a text to print.
        values: An `m`-dim tensor in units of the outcome; `None` without values.
    """

    points: Tensor
    label: str
    symbol: Literal["value", "at most", "at least", "yes", "no"] | str
    values: Tensor | None = None


def as_judge(value: Any, num_answers: int) -> Tensor:
    """Check the judges of answers, and return them as an integer tensor with one for each. Raises `InputDataError`."""
    judge = as_each(value, "judge", num_answers, " Number names by judge, names = number_judges(names).")
    judge = as_index(judge, "judge", "m-dim", ndim=1, what="numbers of judges")
    check_length(judge, num_answers, "judge", "answers")
    if len(judge) and int(judge.max()) > MAX_JUDGE:
        raise InputDataError(
            f"judge must hold numbers up to {MAX_JUDGE}; got {int(judge.max())}. number_judges renumbers them."
        )
    return judge


def as_repeats(value: Any, num_answers: int) -> Tensor:
    """Check the counts of answers, one or one for each; integers, or float64 if fractions. Raises `InputDataError`."""
    count = as_values(as_each(value, "count", num_answers), "count").double()
    check_length(count, num_answers, "count", "answers")
    if bad := positions(~((count > 0) & count.isfinite())):
        raise InputDataError(
            f"count must be positive and finite; it is {count[bad[0]]:g} for answers {bad}. Leave answers that do not "
            "count out."
        )
    if bool((count != count.round()).any()):
        return count
    if float(count.sum()) > MAX_ANSWERS:
        raise InputDataError(
            f"count adds up to {count.sum():.3g} answers; at most {MAX_ANSWERS:,} are supported. Give fewer."
        )
    return count.long()


def number_judges(names: Iterable[Hashable]) -> tuple[Tensor, list[Any]]:
    r"""Number judges that are known by name.

    Args:
        names: The judge of each answer, all of one sortable type; a tensor stands for its numbers.

    Returns:
        An `m`-dim integer tensor for `judge=`, and the names in the order of these numbers.

    Raises:
        InputDataError: If `names` is no list of names, they cannot be sorted, or hold `True` and `1`, which are equal.

    Example:
        >>> judge, names = number_judges(["ann", "bob", "ann"])  # 0, 1, 0 and ["ann", "bob"]
        >>> observation = Preference([[0, 1], [0, 1], [2, 1]], judge=judge)
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputDataError(f"names must be a list with a name for each answer; got {names!r}.")
    given = names.tolist() if isinstance(names, Tensor) else list(names)
    check_names(given, "names")
    try:
        order = sorted(set(given))
    except TypeError as error:
        raise InputDataError(f"names must be of one type that can be hashed and sorted ({error}).") from None
    number = {name: i for i, name in enumerate(order)}
    return torch.tensor([number[name] for name in given], dtype=torch.long), order


class Outcomes(NamedTuple):
    r"""Answers without what they are about, which a predictor that knows nothing of points counts.

    Args:
        label: An `m`-dim integer tensor: the class of each answer.
        num_labels: The number of classes that could have been given.
        num_alike: An `m`-dim tensor, or a number for all: how many answers an answer's class holds that are equally
            likely as long as nothing is known of the points, as the two winners of a duel.
    """

    label: Tensor
    num_labels: int
    num_alike: Tensor | float = 1.0


@dataclass(frozen=True, eq=False)
class Observation:
    """Base class of all kinds of observations.

    Class attributes describe a kind, so that other code need not test for classes.

    Args:
        judge: An `m`-dim integer tensor, keyword only: the judge of each answer, from 0; an integer stands for all, and
            `number_judges` numbers names. `None` for answers about the utility that all judges share.

    Raises:
        InputDataError: If fields do not hold what their descriptions say, or their shapes disagree.

    Attributes:
        index_field: The field that refers to rows of `train_X`, an integer tensor in which -1 is padding.
        anchors_scale: Whether the observations are stated in units of the outcome, so that they fix location and scale
            of the latent function; labels and comparisons determine it relative to their noise only.
        points_per_observation: The minimum number of points of an observation.
        takes_more_points: Whether an observation may have more points.
        tells_validity: Whether the outcome is that an experiment worked or failed.
        tells_level: Whether an observation of several points also informs about their level.
        tells_values: Whether it informs about values or differences of the latent function; default kernels ignore
            others, such as slopes and bounds.
    """

    index_field: ClassVar[str] = "index"
    anchors_scale: ClassVar[bool] = False
    points_per_observation: ClassVar[int] = 1
    takes_more_points: ClassVar[bool] = False
    tells_validity: ClassVar[bool] = False
    tells_level: ClassVar[bool] = False
    tells_values: ClassVar[bool] = True

    judge: Tensor | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        self._check()
        if self.judge is not None:
            self._set(judge=as_judge(self.judge, self.num_answers))

    def _check(self) -> None:
        """Check the fields of a kind, and set those that may be left out."""

    @property
    def num_answers(self) -> int:
        """The number `m` of answers, each of one judge."""
        return len(getattr(self, self.index_field))

    @property
    def answer_weights(self) -> Tensor | None:
        """The power of each answer's likelihood, `m`; `None` if all are 1."""
        return None

    @property
    def outcomes(self) -> Outcomes | None:
        """The answers as classes; `None` for numbers, and for what is stated rather than answered."""
        return None

    def select(self, which: Tensor) -> Self:
        """The answers at some positions, or where a mask is true."""
        m, old = self.num_answers, {entry.name: getattr(self, entry.name) for entry in fields(self)}
        of_answers = {n: v for n, v in old.items() if isinstance(v, Tensor) and v.ndim and len(v) == m}
        return self._with({name: value[which.to(value.device)] for name, value in of_answers.items()})

    def apply(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """A copy with `fn`, a change of dtype or device, applied to every tensor; see `torch.nn.Module._apply`."""
        old = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        new = {name: fn(value) if isinstance(value, Tensor) else value for name, value in old.items()}
        return self if all(new[name] is old[name] for name in old) else self._with(new)

    def shift(self, offset: int) -> Self:
        """A copy with all indices shifted by `offset`, for points that are put before the others."""
        index = getattr(self, self.index_field)
        return self._with({self.index_field: torch.where(index >= 0, index + offset, index)})  # -1 is padding

    def at_columns(self, place: Callable[[Tensor, Tensor], Tensor]) -> Self:
        """A copy whose indices are columns, `place` of points and codes of judges (0 for none, else number + 1)."""
        index = getattr(self, self.index_field)
        by = index.new_zeros(len(index)) if self.judge is None else self.judge.to(index.device) + 1
        by = by.view(-1, *[1] * (index.ndim - 1)).expand_as(index)
        return self._with({self.index_field: torch.where(index >= 0, place(index.clamp(min=0), by), index)})

    def by(self, judge: int) -> Self:
        """The same answers, all given by one judge."""
        index = getattr(self, self.index_field)
        return self._with({"judge": torch.full((self.num_answers,), judge, device=index.device)})

    def reversed(self) -> Observation:
        """The observations where low values are good: points judged against each other turn round, others stay."""
        return self

    def _set(self, **values: Any) -> None:
        """Set fields, as of an object that is being built."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _with(self, values: dict[str, Any]) -> Self:
        """A copy with some fields replaced by valid values."""
        copy = object.__new__(type(self))
        copy._set(**{entry.name: values.get(entry.name, getattr(self, entry.name)) for entry in fields(self)})
        return copy

    @property
    def num_outputs(self) -> int:
        """The number of latent functions."""
        return 1

    @property
    def numbers(self) -> Tensor:
        """The numbers that a standardisation is learned from, in units of the outcome; empty for most kinds."""
        return torch.empty(0)

    @property
    def middles(self) -> Tensor:
        """The values that a standardisation is learned from without numbers; empty for most kinds."""
        return torch.empty(0)

    @property
    def widths(self) -> Tensor:
        """The widths of finite intervals, in units of the outcome; empty for most kinds."""
        return torch.empty(0)

    @property
    def duels(self) -> Tensor:
        """Comparisons of two points, `m x 2`, winner first; empty for most kinds."""
        return torch.empty(0, 2, dtype=torch.long)

    @property
    def ties(self) -> Tensor:
        """Pairs of points judged equally good, `m x 2`; empty for most kinds."""
        return torch.empty(0, 2, dtype=torch.long)

    def marks(self) -> tuple[Mark, ...]:
        """The marks that show observations at single points in a picture; none by default."""
        return ()

    @property
    def num_points_needed(self) -> int:
        """The minimum number of training points, the largest index plus one."""
        index: Tensor = getattr(self, self.index_field)
        return int(index.max()) + 1 if index.numel() else 0

    @property
    def num_inputs_needed(self) -> int:
        """The minimum number of inputs (columns of `train_X`); 0 for most kinds."""
        return 0


Kind = type[Observation]


@dataclass(frozen=True, eq=False)
class Countable(Observation):
    r"""Base class of kinds whose equal answers may be given once, with a count, or have weights.

    Whole numbers are counts: answers are stored one by one, with noise of their own, and `count` is `None` afterwards.
    Fractions are weights, as of a survey: an answer of weight `w` tells the power `w` of its likelihood, which says
    nothing of the extra spread that weighting causes; predictions are of answers of weight 1.

    Args:
        count: An `m`-dim tensor of positive numbers, keyword only: the number of times that each answer was given, or
            its weight; one number stands for all.

    Raises:
        InputDataError: Also if counts add up to more than 10 million, or are fractions for choices and rankings.
    """

    takes_weights: ClassVar[bool] = True  # whether the likelihood of an answer is a product over its rows
    count: Tensor | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count is None:
            return
        count = as_repeats(self.count, self.num_answers)
        if count.is_floating_point():
            if not self.takes_weights:
                raise InputDataError(
                    f"count must hold whole numbers for {type(self).__name__}, whose comparisons share noise; got "
                    f"{count[count != count.round()][:3].tolist()}. Round each weight up with the probability of its "
                    "fraction, and down otherwise; choices among two may be weighted as Preference."
                )
            self._set(count=count.to(getattr(self, self.index_field).device))
            return
        self._set(count=None)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, Tensor):
                self._set(**{entry.name: value.repeat_interleave(count.to(value.device), dim=0)})

    @property
    def answer_weights(self) -> Tensor | None:
        """The counts that are fractions."""
        return self.count

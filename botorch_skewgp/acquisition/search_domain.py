"""Where questions and recommendations are searched: a domain, values of inputs, coordinates of the search."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import MAX_DISCRETE_VALUES
from botorch.optim.parameter_constraints import evaluate_feasibility
from botorch.optim.utils import get_X_baseline
from botorch.utils.sampling import draw_sobol_samples, sparse_to_dense_constraints
from scipy.optimize import linprog
from torch import Tensor

from botorch_skewgp.acquisition.climbing import climb
from botorch_skewgp.acquisition.mixed_search import EACH_START_ALONE, Factor, MixedDomain, MixedSearch, points_within
from botorch_skewgp.acquisition.rounding import rounded_inputs
from botorch_skewgp.acquisition.search_options import CONSTRAINTS, INFEASIBLE, LINEAR, by_column, with_columns
from botorch_skewgp.checks import as_number, as_tensor
from botorch_skewgp.inputs.points import as_bounds
from botorch_skewgp.inputs.transforms import logarithmic_inputs, whole_inputs
from botorch_skewgp.protocols import input_transform_of

Values = Mapping[int, Sequence[float]]
NUM_OTHERS = 512  # points of which one takes the place of a repeated one
TOLERANCE = 1e-6  # share of its range by which an input may miss its bounds or a value
IN_UNITS_OF_INPUTS = {"gen_candidates", "ic_generator"}  # options
OPTIMIZER = {"gen_candidates", "options", "timeout_sec"}  # options of BoTorch's
MAX_AT_ONCE = 64  # sets of points that are evaluated together


@dataclass(frozen=True)
class SearchCoordinates:
    """A map between a box and the unit cube, linear or in logarithms, for steps, gradients and starts of optimisers."""

    low: Tensor  # d
    high: Tensor  # d
    logarithmic: Tensor  # d: whether an input is searched by its logarithm

    @classmethod
    def of(cls, model: Model, bounds: Tensor) -> SearchCoordinates:
        """The coordinates of a model: logarithms of the inputs whose logarithm its input transform takes first."""
        logarithmic = torch.zeros_like(bounds[0], dtype=torch.bool)
        logarithmic[logarithmic_inputs(input_transform_of(model), bounds.shape[-1])] = True
        return cls(bounds[0], bounds[1], logarithmic)

    @property
    def bounds(self) -> Tensor:
        """The unit cube, `2 x d`; the bounds of a fixed input are equal."""
        return torch.stack([torch.zeros_like(self.low), (self.high > self.low).to(self.low)])

    def from_inputs(self, X: Tensor) -> Tensor:
        """The coordinates of `... x d` points, moved to the bounds if outside."""
        low, width = self._scale(self.low), self._scale(self.high) - self._scale(self.low)
        return (self._scale(X.clamp(self.low, self.high)) - low) / width.where(width > 0, 1)

    def to_inputs(self, U: Tensor) -> Tensor:
        """The points of `... x d` coordinates; 0 and 1 are exactly the bounds."""
        scaled = torch.lerp(self._scale(self.low), self._scale(self.high), U)
        X = scaled.where(~self.logarithmic, scaled.where(self.logarithmic, 0).exp())
        exact = X.clamp(self.low, self.high).where(U > 0, self.low).where(U < 1, self.high)
        return X + (exact - X).detach()  # at a bound, the gradient is that of the inside

    def of_box(self, box: MixedDomain) -> MixedDomain:
        """A box with values of inputs, in coordinates."""
        factors = []
        for factor in box.factors:
            X = self.low.repeat(len(factor.values), 1)
            X[:, factor.columns] = factor.values
            factors.append(factor._replace(values=self.from_inputs(X)[:, factor.columns]))
        return MixedDomain(self.bounds, tuple(factors))

    def _scale(self, X: Tensor) -> Tensor:
        return X.where(~self.logarithmic, X.where(self.logarithmic, 1).log())


class AcquisitionFunctionOfCoordinates(AcquisitionFunction):
    """An acquisition function of points in search coordinates."""

    def __init__(self, acquisition: AcquisitionFunction, coordinates: SearchCoordinates) -> None:
        super().__init__(model=acquisition.model)
        self.acquisition, self.coordinates = acquisition, coordinates
        self._log = acquisition._log
        self._given = getattr(acquisition, "X_pending", None)  # may lie outside of the box
        self.X_pending: Tensor | None = None  # type: ignore[assignment]

    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x q x d` coordinates; `batch_shape`."""
        return self.acquisition(self.coordinates.to_inputs(X))

    @property
    def X_baseline(self) -> Tensor:
        """The coordinates of points around which optimisers start, `n x d`."""
        X, low = get_X_baseline(self.acquisition), self.coordinates.low
        return low.new_empty(0, len(low)) if X is None else self.coordinates.from_inputs(X)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Set further pending points of the acquisition function, `n x d` coordinates."""
        super().set_X_pending(X_pending)
        further = [] if X_pending is None else [self.coordinates.to_inputs(X_pending)]
        given = [] if self._given is None else [self._given]
        self.acquisition.set_X_pending(torch.cat([*given, *further]) if further else self._given)


@dataclass(frozen=True)
class SearchDomain:
    """Where points of a model are searched: a box with values and constraints of inputs, some of which are rounded."""

    model: Model
    box: MixedDomain  # in which an input without a choice has equal bounds
    whole: tuple[Factor, ...]  # of inputs without given values that the model rounds to one of a few whole numbers
    constraints: Mapping[str, Any]  # arguments of `optimize_acqf`

    @property
    def bounds(self) -> Tensor:
        """The bounds, `2 x d`; those of a fixed input are equal."""
        return self.box.bounds

    @property
    def has_values(self) -> bool:
        """Whether some inputs take one of a few values."""
        return bool(self.box.factors or self.whole)

    @property
    def is_box(self) -> bool:
        """Whether all points within the bounds are allowed."""
        return not (self.has_values or self.constraints or self.box.process)

    @classmethod
    def build(
        cls,
        model: Model,
        bounds: Any,
        like: Tensor | None = None,
        discrete_dims: Values | None = None,
        cat_dims: Values | None = None,
        fixed_features: Mapping[int, float] | None = None,
        post_processing_func: Any = None,
        **constraints: Any,
    ) -> SearchDomain:
        """A checked domain, in the dtype and on the device of the model's points, `like`, if these are known.

        Raises:
            InputDataError: If an argument names an input that there is not, or a value that it does not take.
            CandidateGenerationError: If no point satisfies linear constraints.
        """
        bounds = as_bounds(bounds, None if like is None else like.shape[-1])
        bounds = bounds.clone() if like is None else bounds.to(like)
        _check_bounds(model, bounds)
        discrete = _checked_values("discrete_dims", discrete_dims, bounds)
        values = discrete | _checked_values("cat_dims", cat_dims, bounds)
        for column, allowed in discrete.items():
            if values[column] is not allowed:
                raise InputDataError(f"Input {column} is in discrete_dims and in cat_dims; its order matters or not.")
            if not torch.equal(allowed[[0, -1]], bounds[:, column]):
                raise InputDataError(
                    f"The least and the largest value of input {column} in discrete_dims must be its bounds, "
                    f"{bounds[:, column].tolist()}; got {allowed.tolist()}."
                )
        if unknown := sorted(constraints.keys() - CONSTRAINTS):
            raise InputDataError(f"There is no argument {', '.join(unknown)}; leave it out.")
        constraints = {name: value for name, value in with_columns(constraints, bounds).items() if value}
        fixed = {column: float(allowed) for column, allowed in values.items() if len(allowed) == 1}
        fixed |= checked_fixed(fixed_features, bounds, values)
        for column, value in fixed.items():
            bounds[:, column] = value
        factors = [
            Factor.of_input(column, allowed, column not in discrete)
            for column, allowed in values.items()
            if column not in fixed
        ]
        bounds = bounds if factors else _of_one_point(bounds, *_linear(constraints))
        whole = [factor for factor in _whole_factors(model, bounds) if factor.columns[0] not in values]
        return cls(model, MixedDomain(bounds, tuple(factors), process=post_processing_func), tuple(whole), constraints)

    def rounded(self, X: Tensor) -> Tensor:
        """Points as the model takes them, rounded where its input transform rounds, moved within the bounds."""
        return _rounded(self.model, X).clamp(self.bounds[0], self.bounds[1])

    def spread(self, num_points: int) -> Tensor:
        """Points spread evenly over the search coordinates, `num_points x d`, between allowed values too; over the
        inputs within linear constraints.
        """
        linear = _linear(self.constraints)
        if any(linear):
            return points_within(self.bounds, num_points, 0, *linear)
        unit = self.coordinates.bounds
        return self.coordinates.to_inputs(draw_sobol_samples(unit, n=num_points, q=1, seed=0).squeeze(-2))

    def nearest(self, X: Tensor) -> Tensor:
        """The nearest points to `n x d` others with allowed values, of those within the constraints."""
        X = self.box.rounded(self.rounded(X))
        X = X if self.box.process is None else self.box.process(X.unsqueeze(-2)).squeeze(-2)
        inequality, equality = _linear(self.constraints)
        others = [entry for entry in self.constraints.get("nonlinear_inequality_constraints", []) if entry[1]]
        return X[evaluate_feasibility(X.unsqueeze(-2), inequality or None, equality or None, others or None)]

    def check_choice(self) -> None:
        """Raise unless there are two different points in the domain."""
        if not (self.bounds[0] < self.bounds[1]).any():
            if self.constraints:
                raise CandidateGenerationError("The constraints leave one point, and a question needs two; widen them.")
            raise InputDataError("Bounds and fixed_features leave one point, and a question needs two; free an input.")

    @property
    def coordinates(self) -> SearchCoordinates:
        """Coordinates to search in."""
        return SearchCoordinates.of(self.model, self.bounds)

    @torch.enable_grad()
    def optimize(self, acquisition: AcquisitionFunction, q: int, **options: Any) -> tuple[Tensor, Tensor]:
        """The best `q` points, `q x d`, and their value, searched in coordinates if nothing is in units of inputs.

        Raises:
            UnsupportedError: If an option does not go with inputs that have a list of values.
            CandidateGenerationError: If no point satisfies the constraints.
        """
        if not (self.bounds[0] < self.bounds[1]).any():
            points = self.bounds[:1].repeat(q, 1)
            return points, _value(acquisition, points)
        box = self._box_for(acquisition, q, options)
        rounds = _rounded(self.model, self.bounds) is not self.bounds
        around_best = (options.get("options") or {}).get("sample_around_best")
        in_inputs = around_best or self.constraints or self.box.process or not IN_UNITS_OF_INPUTS.isdisjoint(options)
        is_unit_cube = torch.equal(self.bounds, self.coordinates.bounds)
        acquisition = _with_frozen_model(acquisition)
        with warnings.catch_warnings():
            if rounds:  # line searches end at steps; the best of their ends is kept
                warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
            if in_inputs or is_unit_cube:
                process = self.box.process or (self.rounded if rounds else None)
                return _search(replace(box, process=process), acquisition, q, self.constraints, options)
            points = self._search_coordinates(box, acquisition, q, options)
        return points, _value(acquisition, points)

    def _box_for(self, acquisition: AcquisitionFunction, q: int, options: Mapping[str, Any]) -> MixedDomain:
        """The box of a search, with lists of values where the points of the acquisition function are chosen in turn."""
        is_chosen_in_turn = q == 1 or isinstance(acquisition, qExpectedUtilityOfBestOption)
        others = sorted((options.keys() - {"num_restarts", "raw_samples"}) | (self.constraints.keys() - LINEAR[:1]))
        if self.box.factors and not is_chosen_in_turn:
            raise UnsupportedError(
                f"{type(acquisition).__name__} chooses both points at once, which discrete_dims and cat_dims do not go "
                "with. Leave the method out, or let it choose a challenger of a point."
            )
        if self.box.factors and others:
            raise UnsupportedError(f"Where inputs have a list of values, leave out {', '.join(others)}.")
        if others or not is_chosen_in_turn:
            return self.box
        return replace(self.box, factors=self.whole + self.box.factors)

    def _search_coordinates(
        self, box: MixedDomain, acquisition: AcquisitionFunction, q: int, options: dict[str, Any]
    ) -> Tensor:
        """The points found by a search in coordinates, in units of the inputs."""
        coordinates = self.coordinates
        starts = options.get("batch_initial_conditions")
        if starts is not None:
            options = options | {"batch_initial_conditions": coordinates.from_inputs(starts)}
        in_coordinates = AcquisitionFunctionOfCoordinates(acquisition, coordinates)
        process = lambda U: coordinates.from_inputs(self.rounded(coordinates.to_inputs(U)))  # noqa: E731
        found, _ = _search(replace(coordinates.of_box(box), process=process), in_coordinates, q, {}, options)
        return box.rounded(self.rounded(coordinates.to_inputs(found)))

    def made_different(
        self, acquisition: AcquisitionFunction, points: Tensor, value: Tensor, given: Tensor, asked: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The points found beside `n x d` given ones, `q x d`, and their value; others in place of some that repeat one
        another, a given one, or with these a question that was asked.
        """
        # where two points are one, as in a corner, both maximise the mean, and gradients do not part them
        q, others = len(points), None
        for place in range(q):
            whole = place == q - 1
            questions = asked if whole else ()
            if self._is_new(points[: place + 1].unsqueeze(0), given, questions).all():
                continue
            others = self.nearest(self.spread(NUM_OTHERS)) if others is None else others
            sets = points.repeat(len(others), 1, 1)
            sets[:, place] = others
            is_new = self._is_new(sets[:, : place + 1], given, questions)
            if whole and not is_new.any():  # all pairs of the first point were asked
                order = torch.rand(NUM_OTHERS, len(others), generator=torch.Generator().manual_seed(0)).argsort(-1)
                sets = others[order[:, :q].to(others.device)]
                is_new = self._is_new(sets, given, questions)
            sets = sets[is_new]
            if len(sets) and self.constraints:
                sets = sets[evaluate_feasibility(sets, **{name: self.constraints.get(name) for name in CONSTRAINTS})]
            if not len(sets):
                raise CandidateGenerationError(
                    f"No {q + len(given)} different points were found that satisfy the constraints; widen the bounds, "
                    "leave constraints or fixed_features out, or ask for fewer."
                )
            with torch.no_grad():
                values = torch.cat([acquisition(part) for part in sets.split(MAX_AT_ONCE)])
            points, value = sets[values.argmax()], values.max()
        return points, value

    def _is_new(self, sets: Tensor, given: Tensor, asked: Sequence[Tensor]) -> Tensor:
        """Which of `B x k x d` sets have different points, beside given ones, and are with these no asked question."""
        sets = torch.cat([sets, given.expand(len(sets), *given.shape)], dim=-2)
        return are_new(sets, asked, TOLERANCE * (self.bounds[1] - self.bounds[0]))


def as_asked(pending: Any, like: Tensor | None) -> list[Tensor]:
    """Questions that were asked, `k x d` points each, from an `m x k x d` tensor or a list; raises `InputDataError`."""
    if pending is None:
        return []
    if not isinstance(pending, Sequence | Tensor) or isinstance(pending, str):
        raise InputDataError(f"pending must be an m x k x d tensor, or a list of k x d tensors; got {pending!r}.")
    asked = [as_points(question, like, "A pending question") for question in pending]
    if any(len(question) < 2 for question in asked):
        raise InputDataError(
            "A pending question must be about two points or more, an m x k x d tensor or a list of k x d ones."
        )
    return asked


def are_new(sets: Tensor, asked: Sequence[Tensor], tolerance: Tensor | float = 0.0) -> Tensor:
    """Which of `B x k x d` sets of points have `k` different ones, and are none of the questions asked, `k' x d` each,
    in any order; points are the same if no input differs by more than a tolerance.
    """
    k = sets.shape[-2]
    same = ((sets.unsqueeze(-2) - sets.unsqueeze(-3)).abs() <= tolerance).all(-1)
    is_new = same.sum((-1, -2)) == k
    for question in asked:
        if len(question) == k:
            in_both = ((sets.unsqueeze(-2) - question).abs() <= tolerance).all(-1)
            is_new &= ~in_both.any(-1).all(-1)
    return is_new


def _with_frozen_model(acquisition: AcquisitionFunction) -> AcquisitionFunction:
    """A copy of its own whose SkewGP keeps its posterior, and is not compared with its parameters at every evaluation;
    others may use the acquisition function meanwhile.
    """
    model: Any = getattr(acquisition, "model", None)
    if not hasattr(model, "frozen"):
        return acquisition
    alone = copy(acquisition)
    for name in ("_modules", "_buffers", "_parameters"):
        alone.__dict__[name] = copy(acquisition.__dict__[name])
    alone.model = model.frozen()
    return alone


def _search(
    box: MixedDomain, acquisition: AcquisitionFunction, q: int, constraints: Mapping[str, Any], options: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """BoTorch's search; the mixed one if some inputs have a list of values."""
    if box.factors:
        box, X_seen = replace(box, constraints=constraints.get("inequality_constraints")), get_X_baseline(acquisition)
        generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        effort = {"num_spread": options["raw_samples"], "num_climbs": options["num_restarts"]}
        search = MixedSearch(acquisition, box, generator, may_repeat=True, **effort)
        points = search.best_points(q, box.bounds[:0] if X_seen is None else X_seen)
        return points, _value(acquisition, points)
    options = {"retry_on_optimization_warning": False} | options  # from a maximum only rounding is left to climb
    if not constraints and OPTIMIZER.isdisjoint(options):
        options["gen_candidates"] = climb
    elif "gen_candidates" not in options:
        options["options"] = EACH_START_ALONE | (options.get("options") or {})
    linear = _linear(constraints)
    is_of_points = sum(map(len, linear)) == sum(len(constraints.get(name, [])) for name in LINEAR)
    if any(linear) and is_of_points and "ic_generator" not in options:

        def generator_of_starts(n: int, q: int, seed: int | None) -> Tensor:
            return points_within(box.bounds, n * q, seed, *linear).view(n, q, -1)

        options["generator"] = generator_of_starts  # BoTorch's walk takes most of a search
    is_fixed = box.bounds[0] == box.bounds[1]
    fixed = {column: float(box.bounds[0, column]) for column in is_fixed.nonzero().flatten().tolist()}
    return optimize_acqf(
        acquisition,
        bounds=box.bounds,
        q=q,
        fixed_features=fixed or None,
        post_processing_func=box.process,
        **constraints,
        **options,
    )  # type: ignore[return-value]


def _linear(constraints: Mapping[str, Any]) -> tuple[list[Any], ...]:
    """The linear inequality and equality constraints of single points; others are of several points of a question."""
    return tuple([entry for entry in constraints.get(name, []) if entry[0].ndim == 1] for name in LINEAR)


def _of_one_point(bounds: Tensor, inequality: list[Any], equality: list[Any]) -> Tensor:
    """The bounds; where linear constraints leave one point within them, up to rounding, those of this point."""
    rows: dict[str, Any] = {}
    for name, part, sign in (("ub", inequality, -1), ("eq", equality, 1)):
        if part:
            A, b = (sign * dense.double().cpu() for dense in sparse_to_dense_constraints(bounds.shape[-1], part))
            rows |= {f"A_{name}": A.numpy(), f"b_{name}": b.numpy()}
    if not rows:
        return bounds
    width = (bounds[1] - bounds[0]).double().cpu()
    direction = torch.arange(1.0, 1 + len(width)).sin() / width.where(width > 0, 1)  # at right angles to no constraint
    ends = [linprog(c, **rows, bounds=bounds.mT.tolist()).x for c in (direction.numpy(), -direction.numpy())]
    if any(end is None for end in ends):
        raise CandidateGenerationError(INFEASIBLE)
    least, most = torch.tensor(np.stack(ends))
    is_one = bool(((most - least).abs() <= TOLERANCE * width).all())
    return least.to(bounds).repeat(2, 1) if is_one else bounds


@torch.no_grad()
def _value(acquisition: AcquisitionFunction, points: Tensor) -> Tensor:
    return acquisition(points).squeeze()


def _rounded(model: Model, X: Tensor) -> Tensor:
    """Points rounded by the model's input transform; the same tensor if it does not round."""
    return rounded_inputs(input_transform_of(model), X)


def search_space(
    model: Model, bounds: Any, X_candidates: Any, like: Tensor | None, **where: Any
) -> SearchDomain | Tensor:
    """A domain, see `SearchDomain.build`, or candidates, `n x d`, with which no other argument has a meaning."""
    if (bounds is None) == (X_candidates is None):
        raise InputDataError("Give either bounds, to search a domain, or X_candidates, to choose from a list.")
    if bounds is not None:
        return SearchDomain.build(model, bounds, like, **where)
    given = sorted(name for name, value in where.items() if value is not None)
    if given:
        raise InputDataError(f"{', '.join(given)} only has a meaning with bounds.")
    return as_points(X_candidates, like, "X_candidates")


def as_points(points: Any, like: Tensor | None, name: str) -> Tensor:
    """Points as a finite `n x d` tensor, in the dtype and on the device of the model's, `like`, if these are known."""
    X = as_tensor(points, name)
    X = X if like is None else X.to(like)
    if X.ndim != 2 or not len(X) or (like is not None and X.shape[1] != like.shape[-1]):
        d = "d" if like is None else like.shape[-1]
        raise InputDataError(f"{name} must be finite and n x {d} with n of at least 1; got shape {tuple(X.shape)}.")
    if not X.isfinite().all():
        raise InputDataError(f"{name} must be finite; got {X[~X.isfinite().all(-1)].tolist()}.")
    return X


def _check_bounds(model: Model, bounds: Tensor) -> None:
    """Raise `InputDataError` where a model rounds bounds to values beyond them, or takes a logarithm that they lack."""
    inwards = bounds.new_tensor([[1.0], [-1.0]])
    outside = ((_rounded(model, bounds) - bounds) * inwards < 0).any(0)
    if outside.any():
        raise InputDataError(
            f"The model rounds inputs {outside.nonzero().flatten().tolist()} at their bounds, and to values beyond "
            f"them. Give bounds that these inputs may take; got {bounds.tolist()}."
        )
    logarithmic = logarithmic_inputs(input_transform_of(model), bounds.shape[-1])
    if (bounds[0, logarithmic] <= 0).any():
        raise InputDataError(
            f"The model takes logarithms of inputs {logarithmic}, whose bounds must be positive; got "
            f"{bounds[:, logarithmic].tolist()}."
        )


def _whole_factors(model: Model, bounds: Tensor) -> list[Factor]:
    """The few whole numbers of inputs that a model rounds."""
    factors = []
    for column in whole_inputs(input_transform_of(model), bounds.shape[-1]):
        low, high = bounds[:, column].tolist()
        if low.is_integer() and high.is_integer() and 0 < high - low < MAX_DISCRETE_VALUES:
            factors.append(Factor.of_input(column, torch.arange(low, high + 1).to(bounds), False))
    return factors


def _checked_values(name: str, choices: Values | None, bounds: Tensor) -> dict[int, Tensor]:
    """The values that inputs may take, ascending, like the bounds; raises `InputDataError` if they are not within."""
    checked = {}
    for dim, values in by_column(choices, name, "{2: [16, 32, 64]}", bounds).items():
        allowed = as_tensor([*values] if isinstance(values, Iterable) else values, f"{name}[{dim}]").to(bounds)
        low, high = bounds[:, dim]
        if allowed.ndim != 1 or allowed.numel() == 0 or not ((low <= allowed) & (allowed <= high)).all():
            raise InputDataError(
                f"The values of input {dim} in {name} must be a list within its bounds, {low.item()} and "
                f"{high.item()}; got {values}."
            )
        checked[dim] = allowed.unique()
    return checked


def checked_fixed(fixed_features: Any, bounds: Tensor, values: Mapping[int, Tensor]) -> dict[int, float]:
    """The values of fixed inputs; raises `InputDataError` where one is none that its input takes."""
    fixed = dict[int, float]()
    for column, given in by_column(fixed_features, "fixed_features", "{0: 0.5}", bounds).items():
        name = f"fixed_features[{column}]"
        value = as_number(given, name)
        low, high = bounds[:, column].tolist()
        rounding = TOLERANCE * (high - low)
        if not low - rounding <= value <= high + rounding:
            raise InputDataError(f"{name} must be within its bounds, {low} and {high}; got {given}.")
        fixed[column] = min(max(value, low), high)
        if column in values:
            same = torch.isclose(values[column], bounds.new_tensor(value))
            if not same.any():
                raise InputDataError(
                    f"{name} must be one of the input's values {values[column].tolist()}; got {given}."
                )
            fixed[column] = float(values[column][same.nonzero()[0, 0]])
    return fixed

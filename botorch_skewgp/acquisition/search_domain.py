"""Where pairs and recommendations are searched: a domain, inputs of certain values, and coordinates of the search."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import CandidateGenerationError, InfeasibilityError, InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import MAX_DISCRETE_VALUES
from botorch.optim.parameter_constraints import evaluate_feasibility
from botorch.optim.utils import get_X_baseline
from botorch.utils.sampling import draw_sobol_samples, get_polytope_samples
from torch import Tensor

from botorch_skewgp.acquisition.mixed_search import EACH_START_ALONE, Factor, MixedDomain, MixedSearch
from botorch_skewgp.acquisition.rounding import rounded_inputs
from botorch_skewgp.acquisition.search_options import (
    CONSTRAINTS,
    LINEAR,
    MIXED_OPTIONS,
    OPTIONS_IN_UNITS_OF_INPUTS,
    with_columns,
)
from botorch_skewgp.checks import as_tensor
from botorch_skewgp.inputs.columns import as_columns
from botorch_skewgp.inputs.points import as_bounds
from botorch_skewgp.inputs.transforms import logarithmic_inputs, whole_inputs
from botorch_skewgp.protocols import input_transform_of

Values = Mapping[int, Sequence[float]]
NUM_OTHERS = 512  # points of which one takes the place of a repeated one
TOLERANCE = 1e-6  # share of its range by which an input may miss its bounds or a value
ONLY_THE_BEST = {"return_best_only": True, "return_full_tree": False, "return_acq_values": True}  # options
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

    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x q x d` coordinates; `batch_shape`."""
        return self.acquisition(self.coordinates.to_inputs(X))

    @property
    def X_baseline(self) -> Tensor:
        """The coordinates of points around which optimisers start, `n x d`."""
        X, low = get_X_baseline(self.acquisition), self.coordinates.low
        return low.new_empty(0, len(low)) if X is None else self.coordinates.from_inputs(X)

    @property
    def X_pending(self) -> Tensor | None:  # type: ignore[override]
        """The coordinates of the acquisition function's pending points, `n x d`."""
        X = self.acquisition.X_pending
        return None if X is None else self.coordinates.from_inputs(X)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Set the acquisition function's pending points, in coordinates."""
        self.acquisition.set_X_pending(None if X_pending is None else self.coordinates.to_inputs(X_pending))


@dataclass(frozen=True)
class SearchDomain:
    """A box with the values that inputs may take, of a model that may round inputs."""

    model: Model
    box: MixedDomain
    whole: tuple[Factor, ...]  # of inputs without given values that the model rounds to one of a few whole numbers

    @property
    def bounds(self) -> Tensor:
        """The bounds, `2 x d`."""
        return self.box.bounds

    @property
    def has_values(self) -> bool:
        """Whether some inputs take one of a few values."""
        return bool(self.box.factors or self.whole)

    @classmethod
    def build(
        cls, model: Model, bounds: Any, discrete_dims: Values | None, cat_dims: Values | None, like: Tensor | None
    ) -> SearchDomain:
        """A checked domain, in the dtype and on the device of the model's points, `like`, if these are known."""
        bounds = as_bounds(bounds, None if like is None else like.shape[-1])
        bounds = bounds.clone() if like is None else bounds.to(like)
        _check_bounds(model, bounds)
        discrete = _checked_values("discrete_dims", discrete_dims, bounds)
        categorical = _checked_values("cat_dims", cat_dims, bounds)
        for column, values in discrete.items():
            if column in categorical:
                raise InputDataError(f"Input {column} is in discrete_dims and in cat_dims; its order matters or not.")
            if not torch.equal(values[[0, -1]], bounds[:, column]):
                raise InputDataError(
                    f"The least and the largest value of input {column} in discrete_dims must be its bounds, "
                    f"{bounds[:, column].tolist()}; got {values.tolist()}."
                )
        without_choice = {column: values for column, values in categorical.items() if len(values) == 1}
        for column, value in without_choice.items():
            bounds[:, column] = value
        factors = [Factor.of_input(column, values, False) for column, values in discrete.items()]
        factors += [
            Factor.of_input(column, values, True)
            for column, values in categorical.items()
            if column not in without_choice
        ]
        listed = {factor.columns[0] for factor in factors}
        whole = _whole_factors(model, bounds, without=listed)
        return cls(model, MixedDomain(bounds, tuple(factors)), whole)

    def contains(self, X: Tensor) -> Tensor:
        """Whether each of `n x d` points is in the domain, up to rounding."""
        low, high = self.bounds
        tolerance = TOLERANCE * (high - low)
        inside = (low - tolerance <= X) & (high + tolerance >= X)
        for (dim,), values, _ in self.box.factors:
            inside[:, dim] &= (X[:, [dim]] - values.mT).abs().amin(-1) <= tolerance[dim]
        return inside.all(-1)

    def rounded(self, X: Tensor) -> Tensor:
        """Points as the model takes them, rounded where its input transform rounds, and within the bounds."""
        return _rounded(self.model, X).clamp(self.bounds[0], self.bounds[1])

    def spread(self, num_points: int) -> Tensor:
        """Points spread evenly over the search coordinates, `num_points x d`, between allowed values too."""
        unit = self.coordinates.bounds
        return self.coordinates.to_inputs(draw_sobol_samples(unit, n=num_points, q=1, seed=0).squeeze(-2))

    def nearest(self, X: Tensor) -> Tensor:
        """The nearest points to `n x d` others with allowed values."""
        return self.box.rounded(self.rounded(X))

    def check_choice(self, options: Mapping[str, Any]) -> None:
        """Raise unless there are two different points in the domain, given fixed features among the options."""
        free = self.bounds[0] < self.bounds[1]
        free[list(self.checked(options).get("fixed_features") or {})] = False
        if not free.any():
            raise InputDataError("Bounds and fixed_features leave one point, and a question needs two; free an input.")

    def checked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options that name inputs by their columns, with fixed features in the domain; raises `InputDataError`."""
        options = with_columns(options, self.bounds)
        for column, value in (options.get("fixed_features") or {}).items():
            name = f"fixed_features[{column}]"
            values = as_tensor(value, name)
            low, high = self.bounds[:, column].tolist()
            rounding = TOLERANCE * (high - low)
            if not ((low - rounding <= values) & (values <= high + rounding)).all():
                raise InputDataError(f"{name} must be within its bounds, {low} and {high}; got {value}.")
            for factor in self.box.factors:
                if factor.columns == [column]:
                    allowed = factor.values[:, 0].to(values)
                    if not torch.isclose(values.unsqueeze(-1), allowed).any(-1).all():
                        raise InputDataError(
                            f"{name} must be one of the input's values {allowed.tolist()}; got {value}."
                        )
        return options

    @property
    def coordinates(self) -> SearchCoordinates:
        """Coordinates to search in."""
        return SearchCoordinates.of(self.model, self.bounds)

    @torch.enable_grad()
    def optimize(self, acquisition: AcquisitionFunction, q: int, **options: Any) -> tuple[Tensor, Tensor]:
        """The best `q` points, `q x d`, and their value, searched in coordinates if no option is in units of inputs.

        Raises:
            InputDataError: If an option names an input that there is not, or a value that it does not take.
            UnsupportedError: If an option is for other results, or does not go with inputs that have a list of values.
            CandidateGenerationError: If no point satisfies the constraints.
        """
        options = self.checked(options)
        for name, needed in ONLY_THE_BEST.items():
            if options.get(name, needed) is not needed:
                raise UnsupportedError(f"Only the best points and their value are returned; leave {name} out.")
        if options.get("sequential"):
            raise UnsupportedError("The points of a question are chosen together; leave sequential out.")
        box = self._box_for(acquisition, q, options)
        rounds = _rounded(self.model, self.bounds) is not self.bounds
        around_best = (options.get("options") or {}).get("sample_around_best")
        in_inputs = around_best or not OPTIONS_IN_UNITS_OF_INPUTS.isdisjoint(options)
        is_unit_cube = torch.equal(self.bounds, self.coordinates.bounds)
        with warnings.catch_warnings(), _frozen_model(acquisition):
            if rounds:  # line searches end at steps; the best of their ends is kept
                warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
            try:
                if in_inputs or is_unit_cube:
                    rounding = {"post_processing_func": self.rounded} if rounds else {}
                    return _search(box, acquisition, q, rounding | options)
                points = self._search_coordinates(box, acquisition, q, options)
            except InfeasibilityError as error:
                raise CandidateGenerationError(
                    "No point within the bounds satisfies the constraints; widen them."
                ) from error
        return points, _value(acquisition, points)

    def _box_for(self, acquisition: AcquisitionFunction, q: int, options: Mapping[str, Any]) -> MixedDomain:
        """The box of a search, with lists of values where the points of the acquisition function are chosen in turn."""
        is_chosen_in_turn = q == 1 or isinstance(acquisition, qExpectedUtilityOfBestOption)
        others = sorted(options.keys() - MIXED_OPTIONS)
        if self.box.factors and not is_chosen_in_turn:
            raise UnsupportedError(
                f"{type(acquisition).__name__} chooses both points at once, which discrete_dims and cat_dims do not go "
                "with. Leave the method out, or let it choose a challenger of an incumbent."
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
        coordinates, pending = self.coordinates, getattr(acquisition, "X_pending", None)
        starts = options.get("batch_initial_conditions")
        options = options | {
            "post_processing_func": lambda U: coordinates.from_inputs(self.rounded(coordinates.to_inputs(U))),
            "batch_initial_conditions": None if starts is None else coordinates.from_inputs(starts),
        }
        in_coordinates = AcquisitionFunctionOfCoordinates(acquisition, coordinates)
        found, _ = _search(coordinates.of_box(box), in_coordinates, q, options)
        if pending is not None:
            acquisition.set_X_pending(pending)  # from coordinates they lack their last digit
        return box.rounded(self.rounded(coordinates.to_inputs(found)))

    def made_different(
        self,
        acquisition: AcquisitionFunction,
        points: Tensor,
        value: Tensor,
        incumbent: Tensor | None,
        asked: Tensor | None,
        options: Mapping[str, Any],
    ) -> tuple[Tensor, Tensor]:
        """The points found, `q x d`, and their value, others in place of those that repeat one or an asked pair."""
        # where two points are one, as in a corner, both maximise the mean, and gradients do not part them
        options = self.checked(options)
        for place in range(len(points)):
            before = points[:place] if incumbent is None else torch.cat([points[:place], incumbent])
            if asked is not None:
                before = torch.cat([before, asked.flip(1)[self._repeats(asked, before).any(-1)]])
            if not self._repeats(points[place], before).any():
                continue
            others = self._others(options)
            others = others[~self._repeats(others, before).any(-1)]
            sets = points.repeat(len(others), 1, 1)
            sets[:, place] = others
            constraints = {name: options.get(name) for name in CONSTRAINTS}
            if len(sets) and any(constraints.values()):
                sets = sets[evaluate_feasibility(sets, **constraints)]
            if not len(sets):
                raise CandidateGenerationError(
                    f"No {len(points) + (incumbent is not None)} different points were found that satisfy the "
                    "constraints; widen the bounds, leave constraints or fixed_features out, or ask for fewer."
                )
            with torch.no_grad():
                values = torch.cat([acquisition(part) for part in sets.split(MAX_AT_ONCE)])
            points, value = sets[values.argmax()], values.max()
        return points, value

    def _repeats(self, X: Tensor, others: Tensor) -> Tensor:
        """Whether each of `... x d` points is each of `n x d` others, up to rounding; `... x n`."""
        near = (X.unsqueeze(-2) - others).abs() <= TOLERANCE * (self.bounds[1] - self.bounds[0])
        return near.all(-1)

    def _others(self, options: Mapping[str, Any]) -> Tensor:
        """Allowed points spread over the domain, within linear constraints on single points, `n x d`."""
        linear = {name: [entry for entry in options.get(name) or [] if entry[0].ndim == 1] for name in LINEAR}
        if any(linear.values()):
            given: dict[str, Any] = {name: value or None for name, value in linear.items()}
            X = get_polytope_samples(NUM_OTHERS, self.bounds, seed=0, n_burnin=100, n_thinning=2, **given)
        else:
            X = self.spread(NUM_OTHERS)
        X = self.nearest(X)
        for column, fixed in (options.get("fixed_features") or {}).items():
            X[:, column] = fixed
        process = options.get("post_processing_func")
        return X if process is None else process(X.unsqueeze(-2)).squeeze(-2)


@contextmanager
def _frozen_model(acquisition: AcquisitionFunction) -> Iterator[None]:
    """Within the block a SkewGP keeps its posterior, and is not compared with its parameters at every evaluation."""
    model: Any = getattr(acquisition, "model", None)
    if not hasattr(model, "frozen"):
        yield
        return
    acquisition.model = model.frozen()
    try:
        yield
    finally:
        acquisition.model = model


def _search(
    box: MixedDomain, acquisition: AcquisitionFunction, q: int, options: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """BoTorch's search; the mixed one if some inputs have a list of values."""
    if not box.factors:
        if "gen_candidates" not in options:
            options = options | {"options": EACH_START_ALONE | (options.get("options") or {})}
        # from a maximum only rounding is left to climb: a line search without progress is no reason to begin again
        options = {"retry_on_optimization_warning": False} | options
        return optimize_acqf(acquisition, bounds=box.bounds, q=q, **options)  # type: ignore[return-value]
    constraints, process = options.get("inequality_constraints"), options.get("post_processing_func")
    box = replace(box, constraints=constraints, process=process).with_fixed(options.get("fixed_features") or {})
    X_seen = get_X_baseline(acquisition)
    generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
    effort = {"num_spread": options["raw_samples"], "num_climbs": options["num_restarts"]}
    search = MixedSearch(acquisition, box, generator, may_repeat=True, **effort)
    points = search.best_points(q, box.bounds[:0] if X_seen is None else X_seen)
    return points, _value(acquisition, points)


@torch.no_grad()
def _value(acquisition: AcquisitionFunction, points: Tensor) -> Tensor:
    return acquisition(points).squeeze()


def _rounded(model: Model, X: Tensor) -> Tensor:
    """Points rounded by the model's input transform; the same tensor if it does not round."""
    return rounded_inputs(input_transform_of(model), X)


def search_space(
    model: Model, bounds: Any, X_candidates: Any, like: Tensor | None, **options: Any
) -> SearchDomain | Tensor:
    """A domain, with `discrete_dims` and `cat_dims` among the options, or candidates, `n x d`, without options."""
    if (bounds is None) == (X_candidates is None):
        raise InputDataError("Give either bounds, to search a domain, or X_candidates, to choose from a list.")
    if bounds is not None:
        return SearchDomain.build(model, bounds, options["discrete_dims"], options["cat_dims"], like)
    given = sorted(name for name, value in options.items() if value is not None)
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


def _whole_factors(model: Model, bounds: Tensor, without: Collection[int]) -> tuple[Factor, ...]:
    """The few whole numbers of inputs that a model rounds, but for some inputs."""
    factors = []
    for column in whole_inputs(input_transform_of(model), bounds.shape[-1]):
        low, high = bounds[:, column].tolist()
        has_choice = low.is_integer() and high.is_integer() and low < high
        if has_choice and high - low < MAX_DISCRETE_VALUES and column not in without:
            factors.append(Factor.of_input(column, torch.arange(low, high + 1).to(bounds), False))
    return tuple(factors)


def _checked_values(name: str, choices: Values | None, bounds: Tensor) -> dict[int, Tensor]:
    """The values that inputs may take, ascending, like the bounds; raises `InputDataError` if they are not within."""
    if choices is None:
        return {}
    if not isinstance(choices, Mapping):
        raise InputDataError(f"{name} must map inputs to their values, such as {{2: [16, 32, 64]}}; got {choices!r}.")
    checked = {}
    columns = as_columns(choices.keys(), bounds.shape[1], name)
    for dim, values in zip(columns, choices.values(), strict=True):
        allowed = as_tensor([*values] if isinstance(values, Iterable) else values, f"{name}[{dim}]").to(bounds)
        low, high = bounds[:, dim]
        if allowed.ndim != 1 or allowed.numel() == 0 or not ((low <= allowed) & (allowed <= high)).all():
            raise InputDataError(
                f"The values of input {dim} in {name} must be a list within its bounds, {low.item()} and "
                f"{high.item()}; got {values}."
            )
        checked[dim] = allowed.unique()
    return checked

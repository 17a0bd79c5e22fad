"""The best points of a space with discrete and continuous coordinates: one search for pairs and all hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import CandidateGenerationError, InfeasibilityError
from botorch.generation.gen import gen_candidates_scipy
from botorch.optim import optimize_acqf_discrete
from botorch.optim.initializers import initialize_q_batch
from botorch.optim.optimize_mixed import MAX_DISCRETE_VALUES
from botorch.optim.parameter_constraints import evaluate_feasibility
from botorch.utils.sampling import draw_sobol_samples, get_polytope_samples
from torch import Tensor

from botorch_skewgp.acquisition.climbing import climb
from botorch_skewgp.acquisition.search_options import INFEASIBLE

NUM_SPREAD, NUM_NEAR = 256, 128
NUM_CLIMBS, NUM_LATER_CLIMBS = 8, 2  # each with other values
MAX_STEPS, MAX_CALLS, MAX_ROUNDS = 20, 30, 6
MAX_POINTS = 4096  # of a discrete space, up to which every point is looked at
MIN_GAIN = 1e-3  # in nats, of a round
MIN_SHARE = 1e-4  # of the interquartile range, of functions that are no logarithms
CHANCE_OF_ANOTHER_VALUE = 0.3
FAR, NEAR = -1.0, -4.0  # powers of ten, of the bounds' distance


class Factor(NamedTuple):
    """Columns that together take one of a list of values, `v x len(columns)`; a category's may be one-hot."""

    columns: list[int]
    values: Tensor
    is_category: bool

    @classmethod
    def of_input(cls, column: int, values: Tensor, is_category: bool) -> Factor:
        """The factor of a single column with a list of values, `v`."""
        return cls([column], values.unsqueeze(-1), is_category)


@dataclass(frozen=True, eq=False)
class MixedDomain:
    """A box, some of whose columns belong to factors, with linear constraints."""

    bounds: Tensor  # 2 x d
    factors: tuple[Factor, ...] = ()
    constraints: list[tuple[Tensor, Tensor, float]] | None = None  # `i, a, b` for `sum_i a_i x_i >= b`
    process: Callable[[Tensor], Tensor] | None = None  # what a host does to points before it tries them

    def with_fixed(self, fixed: Mapping[int, float]) -> MixedDomain:
        """The part of the domain in which some columns have given values."""
        bounds, factors = self.bounds.clone(), []
        for column, value in fixed.items():
            bounds[:, column] = value
        for factor in self.factors:
            given = bounds.new_tensor([fixed.get(column, math.nan) for column in factor.columns])
            is_meant = ((factor.values - given).abs() < 1e-9) | given.isnan()
            values = factor.values[is_meant.all(-1)]
            factors.append(factor._replace(values=values if len(values) else given.nan_to_num(0.0).unsqueeze(0)))
        return replace(self, bounds=bounds, factors=tuple(factors))

    @property
    def few(self) -> list[Factor]:
        """The factors whose values are searched each by itself; other numbers are climbed as free ones, and rounded."""
        return [factor for factor in self.factors if factor.is_category or len(factor.values) <= MAX_DISCRETE_VALUES]

    @property
    def columns_of_few(self) -> list[int]:
        """The columns that are not climbed."""
        return [column for factor in self.few for column in factor.columns]

    @property
    def num_points(self) -> float:
        """The number of points, infinite if some column is free."""
        is_free = self.bounds[0] < self.bounds[1]
        for factor in self.factors:
            is_free[factor.columns] = False
        return math.inf if is_free.any() else math.prod(len(factor.values) for factor in self.factors)

    def all_points(self) -> Tensor:
        """All points of a domain without free columns, `num_points x d`."""
        count = int(self.num_points)
        return self._of_numbers(torch.arange(count), self.bounds[0].repeat(count, 1), self.factors)

    def _of_numbers(self, number: Tensor, X: Tensor, factors: Iterable[Factor]) -> Tensor:
        """Points with the combinations of values of some numbers, in place."""
        for factor in factors:
            X[:, factor.columns] = factor.values[number % len(factor.values)]
            number = number // len(factor.values)
        return X

    def beside(self, point: Tensor) -> Tensor:
        """Points that differ from one in a single factor, `n x d`."""
        X = point.repeat(sum(len(factor.values) for factor in self.factors), 1)
        start = 0
        for factor in self.factors:
            X[start : start + len(factor.values), factor.columns] = factor.values
            start += len(factor.values)
        return X[(point != X).any(-1)]

    def spread(self, num_points: int) -> Tensor:
        """Points spread over the domain, `num_points x d`; the same ones whenever asked."""
        return self.rounded(draw_sobol_samples(self.bounds, n=num_points, q=1, seed=0).squeeze(-2))

    def spread_evenly(self, num_points: int, generator: torch.Generator) -> Tensor:
        """Random points within the constraints, in which all combinations of few values come about equally often."""
        seed = int(torch.randint(2**31, (1,), generator=generator))
        if self.constraints:
            X = points_within(self.bounds, num_points, seed, self.constraints)
        else:
            X = draw_sobol_samples(self.bounds, n=num_points, q=1, seed=seed).squeeze(-2)
        few = self.few
        count = math.prod(len(factor.values) for factor in few)
        if count <= num_points and not self.constraints:
            # consecutive points of a Sobol sequence are spread in the free columns
            combination = torch.arange(num_points) * count // num_points
            X = self._of_numbers(combination, X, few)
        else:
            for factor in few:
                if len(factor.columns) > 1:
                    largest = X[:, factor.columns].argmax(-1)  # of uniform columns
                    X[:, factor.columns] = factor.values[largest % len(factor.values)]
        X = self.rounded(X)
        return X[self.are_feasible(X)]

    def rounded(self, X: Tensor) -> Tensor:
        """Points, `... x d`, at the nearest of their values."""
        X = X.clone()
        for factor in self.factors:
            if len(factor.columns) == 1:
                values = factor.values[:, 0].sort().values
                between = (values[1:] + values[:-1]) / 2
                X[..., factor.columns] = values[torch.bucketize(X[..., factor.columns].contiguous(), between)]
            else:
                away = (X[..., None, factor.columns] - factor.values).square().sum(-1)
                X[..., factor.columns] = factor.values[away.argmin(-1)]
        return X

    def are_feasible(self, X: Tensor) -> Tensor:
        """Whether each of `n x d` points is within the constraints."""
        if not self.constraints:
            return torch.ones(len(X), dtype=torch.bool, device=X.device)
        return evaluate_feasibility(X.unsqueeze(-2), inequality_constraints=self.constraints)

    def near(self, X_seen: Tensor, generator: torch.Generator) -> Tensor:
        """Points near those seen, some of whose values are others."""
        others = self.spread_evenly(NUM_NEAR, generator)
        if not len(X_seen) or not len(others):
            return others[:0]
        count = len(others)
        X = X_seen[torch.randint(len(X_seen), (count,), generator=generator).to(X_seen.device)]
        others = others[torch.randperm(count, generator=generator).to(X_seen.device)]
        low, high = self.bounds
        noise = torch.randn(X.shape, generator=generator, dtype=X.dtype).to(X)
        power = FAR + (NEAR - FAR) * torch.rand(count, 1, generator=generator, dtype=X.dtype).to(X)
        moved = X + 10**power * (high - low) * noise
        for factor in self.few:
            is_changed = torch.rand(count, 1, generator=generator).to(X) < CHANCE_OF_ANOTHER_VALUE
            moved[:, factor.columns] = torch.where(is_changed, others[:, factor.columns], X[:, factor.columns])
        moved = self.rounded(moved.clamp(low, high))
        return moved[self.are_feasible(moved)]


Linear = Sequence[tuple[Tensor, Tensor, float]]  # constraints `i, a, b` for `sum_i a_i x_i >= b`, or `= b`


def points_within(
    bounds: Tensor, num_points: int, seed: int | None, inequality: Linear | None = None, equality: Linear | None = None
) -> Tensor:
    """Random points of a box within linear constraints, `num_points x d`."""
    low, high = bounds
    is_free = low < high
    place = is_free.cumsum(0) - 1  # of a free column among the free ones

    def of_free(constraints: Linear | None) -> list[tuple[Tensor, Tensor, float]]:
        kept = []
        for columns, coefficients, bound in constraints or []:
            free = is_free[columns]
            of_fixed = float((coefficients * low[columns])[~free].sum())
            if free.any():
                kept.append((place[columns[free]], coefficients[free], bound - of_fixed))
        return kept

    X = low.repeat(num_points, 1)
    try:
        X[:, is_free] = get_polytope_samples(
            num_points, bounds[:, is_free], of_free(inequality), of_free(equality), seed, n_burnin=100, n_thinning=4
        )
    except InfeasibilityError as error:
        raise CandidateGenerationError(INFEASIBLE) from error
    return X


# From scipy 1.18 on BoTorch 0.18 maximises the sum over all starts at once, and ends where that hardly rises: early for
# a good start beside one of a much lower value.
EACH_START_ALONE = {"max_optimization_problem_aggregation_size": 1}


@dataclass(frozen=True, eq=False)
class MixedSearch:
    """A search for the points of a domain with the largest acquisition values, for unseen ones if there are any."""

    acquisition: AcquisitionFunction
    domain: MixedDomain
    generator: torch.Generator
    may_repeat: bool = False
    num_spread: int = NUM_SPREAD  # points that are looked at first
    num_climbs: int = NUM_CLIMBS

    def best_points(self, q: int, X_seen: Tensor) -> Tensor:
        """The best points one after another, each pending for those that follow, `q x d`; `n x d` were seen."""
        found, pending = X_seen[:0], getattr(self.acquisition, "X_pending", None)
        try:
            for number in range(q):
                if number:
                    self.acquisition.set_X_pending(found if pending is None else torch.cat([pending, found]))
                found = torch.cat([found, self.best_point(torch.cat([X_seen, found])).unsqueeze(0)])
        finally:
            if q > 1:
                self.acquisition.set_X_pending(pending)
        return found

    def best_point(self, X_seen: Tensor) -> Tensor:
        """The best point, `d`."""
        avoided = X_seen[:0] if self.may_repeat else X_seen
        if self.domain.num_points <= MAX_POINTS:
            return self._best_new(self.domain.all_points(), avoided)
        point = self._climb(X_seen)
        if self.domain.num_points < math.inf and _are_among(point.unsqueeze(0), avoided).any():
            return self._best_new(torch.cat([self.domain.beside(point), self.domain.spread(NUM_SPREAD)]), avoided)
        return point

    def _climb(self, X_seen: Tensor) -> Tensor:
        """The best point found by climbing in the free columns from the best values of the others, `d`."""
        # From the best point of each of the best combinations of values, all of which are looked at equally often; then
        # from the best point with single values changed, as long as that gains anything. BoTorch's
        # `optimize_acqf_mixed_alternating` misses small regions, such as the end of a free column at one combination of
        # fifty: near points seen it starts with other categories only.
        domain = self.domain
        X, values = self._first_points(X_seen)
        least = MIN_GAIN if self.acquisition._log else _little(values)
        best, value, num_climbs = X[0], -math.inf, self.num_climbs
        for _ in range(MAX_ROUNDS):
            ends, reached = self._climbed(self._starts(X, values, num_climbs), least)
            if not len(ends):
                break
            highest = reached.argmax()
            gain = float(reached[highest]) - value
            if gain > 0:
                best, value = ends[highest], float(reached[highest])
            X, num_climbs = domain.beside(best), NUM_LATER_CLIMBS
            X = X[domain.are_feasible(X)]
            if gain < least or not len(X):
                break
            values = self._values(X)
        return best

    def _first_points(self, X_seen: Tensor) -> tuple[Tensor, Tensor]:
        """Points over the domain, near those seen and near the best of these, and their values."""
        domain = self.domain
        X = torch.cat([domain.spread_evenly(self.num_spread, self.generator), domain.near(X_seen, self.generator)])
        if not len(X):
            raise CandidateGenerationError("No point was found that satisfies the constraints; widen them.")
        values = self._values(X)
        beside = domain.near(X[values.argmax()].unsqueeze(0), self.generator)
        return torch.cat([X, beside]), torch.cat([values, self._values(beside)])

    @torch.no_grad()
    def _values(self, X: Tensor) -> Tensor:
        """The values at `n x d` points, each by itself; `n`, also of none."""
        return self.acquisition(X.unsqueeze(1)) if len(X) else X[:, 0]

    def _climbed(self, starts: Tensor, least: float) -> tuple[Tensor, Tensor]:
        """The feasible ends of climbs in all but the columns of few values, and their acquisition values."""
        domain, ends = self.domain, starts
        if len(domain.columns_of_few) < starts.shape[-1]:
            climbed, values = self._local_searches(starts, least)
            ends = domain.rounded(climbed)
            if domain.process is None and not domain.constraints and torch.equal(ends, climbed):
                return ends, values
        if domain.process is not None:
            ends = domain.process(ends.unsqueeze(1)).squeeze(1)
        ends = ends[domain.are_feasible(ends)]
        return ends, self._values(ends)

    def _local_searches(self, starts: Tensor, least: float) -> tuple[Tensor, Tensor]:
        """The ends of local searches, and their values, from `n x d` starts."""
        domain, fixed = self.domain, self.domain.columns_of_few
        if not domain.constraints:
            low, high = domain.bounds
            ends, values = climb(starts.unsqueeze(1), self.acquisition, low, high, fixed, least / 10, MAX_CALLS)
            return ends.squeeze(1), values
        low, width = domain.bounds[0].clone(), domain.bounds[1] - domain.bounds[0]
        width[width == 0] = 1.0
        low[fixed], width[fixed] = 0.0, 1.0
        unit_low, unit_high = (domain.bounds - low) / width
        ends, values = gen_candidates_scipy(
            ((starts - low) / width).unsqueeze(1),
            lambda U: self.acquisition(low + width * U),  # type: ignore[arg-type]  # a function is enough
            unit_low,
            unit_high,
            # a^T (low + width u) >= b
            inequality_constraints=[(i, a * width[i], b - float((a * low[i]).sum())) for i, a, b in domain.constraints],
            options={"maxiter": MAX_STEPS, "ftol": least / 10, **EACH_START_ALONE},
            fixed_features={i: starts[:, i].unsqueeze(-1) for i in fixed},
        )
        return low + width * ends.detach().squeeze(1), values

    def _starts(self, X: Tensor, values: Tensor, count: int) -> Tensor:
        """The best point of each of the best combinations of values, and others by chance where these are few."""
        fixed, first = X[:, self.domain.columns_of_few].tolist(), dict[tuple[float, ...], int]()
        for row in values.argsort(descending=True).tolist():
            first.setdefault(tuple(fixed[row]), row)
        starts = X[list(first.values())[:count]]
        if len(starts) < count < len(X):
            others, _ = initialize_q_batch(X.unsqueeze(1), values, count - len(starts))
            starts = torch.cat([starts, others.squeeze(1)])
        return starts

    def _best_new(self, choices: Tensor, X_avoid: Tensor) -> Tensor:
        """The best of some points within the constraints, of those that were not seen as long as there are any."""
        choices = choices[self.domain.are_feasible(choices)]
        if not len(choices):
            raise CandidateGenerationError("No point satisfies the constraints; widen them.")
        new = ~_are_among(choices, X_avoid)
        choices = choices[new] if new.any() else choices
        point, _ = optimize_acqf_discrete(self.acquisition, q=1, choices=choices, max_batch_size=512)
        return point[0]


def _little(values: Tensor) -> float:
    """A small difference of values that are no logarithms."""
    finite = values[values.isfinite()]
    spread = float(finite.quantile(0.75) - finite.quantile(0.25)) if len(finite) else 0.0
    return MIN_SHARE * max(spread, torch.finfo(values.dtype).eps ** 0.5)


def _are_among(X: Tensor, others: Tensor) -> Tensor:
    """Which points are among others, up to rounding."""
    return (X.unsqueeze(1) - others).abs().amax(-1).lt(1e-9).any(-1)

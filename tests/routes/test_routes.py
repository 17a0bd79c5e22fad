"""Routes that must give one value, over problems in which each pair of features, and each feature and route, meet."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from covering_design import CoveringDesign, Values
from route_list import ROUTES
from route_problems import FEATURES, RARE, Problem, is_possible
from use_routes import USES

pytestmark = [  # answers that slips explain, in pieces without a grade 0, in single precision
    pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.CompetingExplanationsWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
]


def takes(values: Values) -> bool:
    """Whether a problem is possible and quick, and its route takes it."""
    problem = Problem(**{name: value for name, value in values.items() if name != "route"})
    one_sided = problem.kind in ("labels", "validity", "duels")
    is_quick = problem.weights != "fractions" or (problem.slips == "no slips" and one_sided)
    return is_possible(problem) and is_quick and (ROUTES | USES)[values["route"]].takes(problem)


@cache
def fast_cases() -> list[tuple[str, Problem]]:
    """Every route with every kind of answers, in turn without judges and with some; other features in pairs."""
    quick = [name for name, each in ROUTES.items() if not each.is_slow]
    features = {"route": quick} | FEATURES
    plain, _, *several = FEATURES["judges"]
    together = [
        {"route": route, "kind": kind, "judges": [plain, *several][(i + j) % (1 + len(several))]}
        for i, route in enumerate(quick)
        for j, kind in enumerate(FEATURES["kind"])
    ]
    together += [
        {"route": "rows_of_judges_and_of_one", "kind": kind, "judges": "two judges", "slips": slips}
        for kind in FEATURES["kind"]
        for slips in ("no slips", "slips by judge")
    ]
    together += [
        {"route": "posterior_from_values_at_data", "kernel": kernel, "mean": mean, "judges": plain}
        for kernel in FEATURES["kernel"]
        for mean in FEATURES["mean"][:2]
    ]
    together += [
        {"route": "slopes_and_differences", "kind": "slopes", "mean": mean, "judges": judges}
        for mean in FEATURES["mean"]
        for judges in ("two judges", "reliability")
    ]
    rows = CoveringDesign(features, takes, RARE).build(together)
    return [(row["route"], Problem(**{name: row[name] for name in FEATURES})) for row in rows]


@cache
def cases_of_uses() -> list[tuple[str, Problem]]:
    """Every use of a model with every feature that it takes."""
    rows = CoveringDesign({"route": [*USES]} | FEATURES, takes, (*RARE, "skew prior")).build(
        {"route": route, name: value} for route in USES for name in ("kind", "judges") for value in FEATURES[name]
    )
    return [(row["route"], Problem(**{name: row[name] for name in FEATURES})) for row in rows]


@cache
def slow_cases() -> list[tuple[str, Problem]]:
    """Problems of a design of the features alone: of each the routes that take long, and every other one in turn."""
    rows = CoveringDesign(FEATURES, lambda values: is_possible(Problem(**values)), RARE).build()
    return [
        (name, problem)
        for i, problem in enumerate(Problem(**row) for row in rows)
        for j, (name, each) in enumerate(ROUTES.items())
        if each.takes(problem) and (each.is_slow or (i + j) % 2 == 0)
    ]


def named(cases: list[tuple[str, Problem]]) -> list:
    return [pytest.param(route, problem, id=f"{route}: {problem}") for route, problem in cases]


def some_are_slow(cases: list[tuple[str, Problem]]) -> list:
    """Two cases of each quick route in every run, the others as slow tests."""
    seen: Counter[str] = Counter()
    found = []
    for route, problem in cases:
        seen[route] += 1
        is_slow = USES[route].is_slow or seen[route] > 2
        found.append(
            pytest.param(route, problem, id=f"{route}: {problem}", marks=[pytest.mark.slow] if is_slow else [])
        )
    return found


@pytest.mark.parametrize(("route", "problem"), named(fast_cases()))
def test_routes_agree(route, problem):
    ROUTES[route].check(problem)


@pytest.mark.parametrize(("route", "problem"), some_are_slow(cases_of_uses()))
def test_uses_agree(route, problem):
    USES[route].check(problem)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("route", "problem"), named(slow_cases()))
def test_routes_agree_over_the_features(route, problem):
    ROUTES[route].check(problem)

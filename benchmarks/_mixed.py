"""Problems with parameters of several kinds, some of which crash; minimised, with a minimum of 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from botorch.test_functions.synthetic import Branin, Hartmann

Params = Mapping[str, Any]
TRIALS, BATCH, CLOSE = 24, 3, 1e-3
BRANIN_MINIMUM = 0.4176429498967167  # with a whole input, from a grid of 15,001 values of the other
HARTMANN_MAXIMUM = 3.122003008462722  # by searches over the free inputs at each combination of the others


class Parameter(NamedTuple):
    """A parameter: numbers between two bounds, perhaps whole or on a log scale; or categories."""

    low: float = 0.0
    high: float = 1.0
    is_whole: bool = False
    is_log: bool = False
    categories: tuple[str, ...] = ()

    def near(self, first: Any, second: Any) -> bool:
        """Whether two values are one category, or differ by less than a thousandth of the range."""
        if self.categories:
            return bool(first == second)
        if self.is_log:
            return abs(math.log(first / second)) < CLOSE * math.log(self.high / self.low)
        return bool(abs(first - second) < CLOSE * (self.high - self.low))


class MixedProblem(NamedTuple):
    """A function of several kinds of parameters, and the region in which trials crash."""

    parameters: dict[str, Parameter]
    regret: Callable[[Params], float]
    crashes: Callable[[Params], bool] = lambda params: False

    def close(self, params: Params, earlier: Iterable[Params]) -> bool:
        return any(all(entry.near(params[x], other[x]) for x, entry in self.parameters.items()) for other in earlier)


FLOAT = Parameter()
THREE = Parameter(categories=("a", "b", "c"))


def _bowls(tops: Mapping[str, tuple[float, float, int, float, float]], crashes: Callable[[Params], bool]) -> Any:
    """A bowl for each category: its bottom in x, y and k, its depth and its steepness."""
    deepest = max(depth for _, _, _, depth, _ in tops.values())

    def regret(params: Params) -> float:
        x, y, k, depth, steepness = tops[params["c"]]
        bowl = 150 * (params["x"] - x) ** 2 + 100 * (params["y"] - y) ** 2 + 6 * (params["k"] - k) ** 2
        return deepest - depth + steepness * bowl

    return MixedProblem({"x": FLOAT, "y": FLOAT, "k": Parameter(1, 6, is_whole=True), "c": THREE}, regret, crashes)


BRANIN_OF_TWO = 0.397887  # the minimum, at (-pi, 12.275), (pi, 2.275) and (9.42478, 2.475)


def _branin_of_two(params: Params) -> float:
    return float(Branin()(torch.tensor([15 * params["x0"] - 5, 15 * params["x1"]], dtype=torch.double))) - BRANIN_OF_TWO


def _crashes(params: Params) -> bool:
    """A region that has one of Branin's three minima, and reaches to within 0.07 of another."""
    return params["x0"] > 0.61 or (params["x0"] - 0.5) ** 2 + (params["x1"] - 0.6) ** 2 < 0.1


CRASH_REGION = MixedProblem({"x0": FLOAT, "x1": FLOAT}, _branin_of_two, _crashes)


def _branin(params: Params) -> float:
    """Branin with one whole input, moved and raised by the category."""
    second = 2.0 + 11.0 * params["k"] / 15.0 + {"a": 0.0, "b": 2.0, "c": -2.0}[params["c"]]
    inputs = torch.tensor([-5 + 15 * params["x"], second], dtype=torch.double)
    return float(Branin()(inputs)) - BRANIN_MINIMUM + {"a": 5.0, "b": 0.0, "c": 10.0}[params["c"]]


def _network(params: Params) -> float:
    """The error of an imagined network: each optimiser has its learning rate, and depth wants regularisation."""
    rate, error = {"sgd": (-1.0, 0.04), "momentum": (-2.0, 0.0), "adam": (-3.0, 0.01)}[params["optimizer"]]
    away = math.log10(params["learning_rate"]) - rate
    wanted = 0.1 * params["layers"]
    return error + 0.08 * away**2 + 0.02 * (params["layers"] - 5) ** 2 + 0.5 * (params["dropout"] - wanted) ** 2


def _diverges(params: Params) -> bool:
    limit = {"sgd": -0.3, "momentum": -1.4, "adam": -2.0}[params["optimizer"]]
    return math.log10(params["learning_rate"]) > limit - 0.05 * params["layers"]


CORNERS = {"a": 0.2, "b": 0.9, "c": 0.6573}


def _hartmann(params: Params) -> float:
    """Hartmann in 6 dimensions: two inputs in quarters, one in unordered levels."""
    values = [params["x"], params["y"], params["z"], params["i"] / 8, params["j"] / 8, CORNERS[params["c"]]]
    return HARTMANN_MAXIMUM - float(Hartmann(6, negate=True)(torch.tensor(values, dtype=torch.double)))


EIGHTHS = Parameter(0, 8, is_whole=True)

MIXED_PROBLEMS: dict[str, MixedProblem] = {
    "bowls": _bowls(
        {"a": (0.3, 0.7, 2, 60, 1.0), "b": (0.65, 0.35, 4, 90, 1.0), "c": (0.8, 0.8, 5, 70, 1.0)},
        lambda p: p["x"] + p["y"] > 1.5 or (p["c"] == "b" and p["x"] > 0.8),
    ),
    "deceptive": _bowls(
        {"a": (0.3, 0.7, 2, 68, 0.5), "b": (0.65, 0.35, 4, 90, 2.0), "c": (0.8, 0.8, 5, 66, 0.5)},
        lambda p: p["x"] + p["y"] > 1.6 or (p["c"] == "b" and p["x"] > 0.8),
    ),
    "branin": MixedProblem({"x": FLOAT, "k": Parameter(0, 15, is_whole=True), "c": THREE}, _branin),
    "network": MixedProblem(
        {
            "learning_rate": Parameter(1e-5, 1.0, is_log=True),
            "dropout": Parameter(0.0, 0.9),
            "layers": Parameter(1, 8, is_whole=True),
            "optimizer": Parameter(categories=("sgd", "momentum", "adam")),
        },
        _network,
        _diverges,
    ),
    "hartmann": MixedProblem({"x": FLOAT, "y": FLOAT, "z": FLOAT, "i": EIGHTHS, "j": EIGHTHS, "c": THREE}, _hartmann),
}

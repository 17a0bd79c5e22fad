"""Random inputs: every kind of observation and their mixtures, over a few points, with much that is extreme.

A case is plain numbers, as a user would type them, so that the reference need not trust what the package makes of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from random import Random
from statistics import NormalDist
from typing import Any

import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms.outcome import Standardize

from benchmarks._observations import Noise, constant_mean, likelihood_of, rbf_kernel
from botorch_skewgp import SkewGP, observations
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.truncated.draws import DrawSettings

INF = math.inf
MOST_POINTS = 12
CORNER = 1_000_000  # the number of the first input of `corner_case`
PULLED_APART = 2_000_000  # of `pulled_apart_case`


@dataclass(frozen=True)
class Seen:
    """Observations of one kind: the name of the class and its arguments, as lists."""

    kind: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Anchors:
    """A skew prior."""

    points: list[list[float]]
    phases: list[float]
    truncation: list[float]


@dataclass(frozen=True)
class Case:
    """One input: points, what was seen, hyperparameters, and where to predict."""

    points: list[list[float]]
    seen: list[Seen]
    queries: list[list[float]]
    noise: Noise = field(default_factory=Noise)
    lengthscale: float = 0.5
    outputscale: float = 1.0
    mean: float = 0.0
    anchors: Anchors | None = None
    standardize: bool = False
    single_precision: bool = False

    @property
    def num_labels(self) -> int:
        """The number of latent functions."""
        return next((entry.arguments["num_labels"] for entry in self.seen if entry.kind == "LabelPreference"), 1)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the training points."""
        return torch.float32 if self.single_precision else torch.float64

    def kinds(self) -> str:
        """The kinds of observations, for tables."""
        names = sorted({entry.kind for entry in self.seen})
        return " + ".join(names) + ("" if self.anchors is None else " (skew prior)")


# What a random input is made of


def _power(rng: Random, low: float, high: float) -> float:
    return 10 ** rng.uniform(low, high)


def _normal(rng: Random, mean: float, sd: float) -> float:
    """A normal number; from a uniform one, whose range is known to whatever chooses it."""
    return mean + sd * NormalDist().inv_cdf(min(max(rng.random(), 1e-9), 1 - 1e-9))


def _variance(rng: Random) -> float:
    sort = rng.random()
    if sort < 0.7:
        return _power(rng, -2, 1)
    return _power(rng, -6, -2) if sort < 0.9 else _power(rng, 1, 4)


def _place(rng: Random, d: int) -> list[float]:
    return [round(rng.random(), 3) for _ in range(d)]


def _points(rng: Random, n: int, d: int) -> list[list[float]]:
    points: list[list[float]] = []
    for _ in range(n):
        sort = rng.random()
        if points and sort < 0.2:
            points.append(list(rng.choice(points)))
        elif points and sort < 0.3:
            step = _power(rng, -10, -3)
            points.append([x + step for x in rng.choice(points)])
        else:
            points.append(_place(rng, d))
    return points


def _index(rng: Random, n: int, m: int) -> list[int]:
    return [rng.randrange(n) for _ in range(m)]


def _value(rng: Random, sd: float) -> float:
    sort = rng.random()
    if sort < 0.75:
        return _normal(rng, 0.0, sd)
    return rng.choice((-1, 1)) * sd * (_power(rng, 0, 1) if sort < 0.95 else _power(rng, 1, 1.5))


def _numeric(rng: Random, n: int, sd: float) -> dict[str, Any]:
    m = rng.randint(1, 5)
    arguments: dict[str, Any] = {"values": [_value(rng, sd) for _ in range(m)], "index": _index(rng, n, m)}
    if rng.random() < 0.4:
        arguments["noise"] = [0.0 if rng.random() < 0.04 else _variance(rng) for _ in range(m)]
    return arguments


def _bounds(rng: Random, sd: float) -> tuple[float, float]:
    """An interval: half a line, a band about as wide as the function, a narrow one, one far out, a huge one."""
    center, sort = _value(rng, sd), rng.random()
    if sort < 0.35:
        return (center, INF) if rng.random() < 0.5 else (-INF, center)
    if sort < 0.6:
        return center, center + sd * _power(rng, -1, 1)
    if sort < 0.75:
        return center, center + sd * _power(rng, -5, -1)
    if sort < 0.9:
        far = sd * _power(rng, 1, 4) if rng.random() < 0.8 else _power(rng, 4, 12)
        return (-far, center) if rng.random() < 0.5 else (center, center + far)
    far = rng.choice((-1, 1)) * sd * _power(rng, 0.5, 1.5)
    return (far, INF) if rng.random() < 0.5 else (far, far + sd * _power(rng, -2, 1))


def _censored(rng: Random, n: int, sd: float) -> dict[str, Any]:
    bounds = [_bounds(rng, sd) for _ in range(rng.randint(1, 5))]
    lower, upper = ([pair[i] for pair in bounds] for i in range(2))
    return {"lower": lower, "upper": upper, "index": _index(rng, n, len(bounds))}


def _ordinal(rng: Random, n: int, num_grades: int) -> dict[str, Any]:
    m = rng.randint(1, 6)
    grades = [rng.randrange(num_grades) for _ in range(m)]
    return {"grades": grades, "num_grades": num_grades, "index": _index(rng, n, m)}


def _flags(rng: Random, n: int, name: str) -> dict[str, Any]:
    m, share = rng.randint(1, 8), rng.choice((0.0, 0.5, 0.5, 1.0))
    return {name: [int(rng.random() < share) for _ in range(m)], "index": _index(rng, n, m)}


def _slope(rng: Random, n: int, d: int) -> dict[str, Any]:
    m, mostly = rng.randint(1, 5), rng.choice((-1, 1))
    signs = [mostly if rng.random() < 0.8 else -mostly for _ in range(m)]
    return {"dims": [rng.randrange(d) for _ in range(m)], "signs": signs, "index": _index(rng, n, m)}


def _pairs(rng: Random, n: int) -> list[list[int]]:
    pairs = [rng.sample(range(n), 2) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.2:
        pairs += [pairs[0]] * rng.randint(1, 3)
    if rng.random() < 0.2:
        pairs += [pairs[0][::-1]]
    return pairs


def _lists(rng: Random, n: int) -> list[list[int]]:
    width = rng.randint(2, min(5, n))
    rows = [rng.sample(range(n), rng.randint(2, width)) for _ in range(rng.randint(1, 3))]
    return [row + [-1] * (width - len(row)) for row in rows]


def _ranking(rng: Random, n: int) -> dict[str, Any]:
    items = _lists(rng, n)
    if rng.random() < 0.5:
        return {"items": items}
    steps = [[rng.random() < 0.6 for _ in row] for row in items]
    return {"items": items, "ranks": [[sum(row[: i + 1]) for i in range(len(row))] for row in steps]}


def _affine(rng: Random, n: int, sd: float) -> dict[str, Any]:
    m, k = rng.randint(1, 3), rng.randint(1, min(3, n))
    weight = [[0.0 if rng.random() < 0.2 else round(_normal(rng, 0, 1), 3) for _ in range(k)] for _ in range(m)]
    rank, scale = rng.randint(1, m), math.sqrt(_variance(rng))
    root = [[scale * _normal(rng, 0, 1) for _ in range(rank)] for _ in range(m)]
    own = 0.0 if rng.random() < 0.2 else scale**2 * rng.random()
    covariance = [
        [sum(a * b for a, b in zip(root[i], root[j], strict=True)) + own * (i == j) for j in range(m)] for i in range(m)
    ]
    bounds = [_bounds(rng, sd) for _ in range(m)]
    return {
        "weight": weight,
        "bias": [round(_normal(rng, 0, 0.3 * sd), 6) for _ in range(m)],
        "covariance": covariance,
        "lower": [low for low, _ in bounds],
        "upper": [high for _, high in bounds],
        "index": rng.sample(range(n), k),
    }


def _labels(rng: Random, n: int) -> dict[str, Any]:
    num_labels, m = rng.randint(2, 3), rng.randint(1, 6)
    event = sorted(rng.randrange(m) for _ in range(m))
    where = {e: rng.randrange(n) for e in event}
    pairs = []
    for e in event:  # within one event no preference contradicts another
        order = Random(e).sample(range(num_labels), num_labels)
        a, b = sorted(rng.sample(range(num_labels), 2), key=order.index)
        pairs.append([a, b])
    return {"labels": pairs, "num_labels": num_labels, "index": [where[e] for e in event], "event": event}


def random_case(rng: Random) -> Case:
    """A random input."""
    d = rng.randint(1, 2)
    labels = rng.random() < 0.06
    n = rng.randint(1, 4 if labels else MOST_POINTS)
    points = _points(rng, n, d)
    outputscale = rng.choice((1.0, 1.0, 10.0, _power(rng, -3, 3)))
    sd = math.sqrt(outputscale)
    gaps = [sd * _power(rng, -3, 1) for _ in range(rng.randint(0, 3))]
    cutpoints = [_normal(rng, 0, sd)]
    for gap in gaps:
        cutpoints.append(cutpoints[-1] + gap)
    noise = Noise(
        **{name: _variance(rng) for name in ("numbers", "labels", "grades", "items", "validity", "classes")},
        slopes=0.0 if rng.random() < 0.5 else outputscale * _power(rng, -3, 2),
        cutpoints=tuple(cutpoints),
        tie_width=sd * _power(rng, -3, 1),
        ties_allowed=rng.random() < 0.4,
        threshold=rng.choice((0.0, _normal(rng, 0, sd), 5 * _normal(rng, 0, sd))),
    )
    if labels:
        seen = [Seen("LabelPreference", _labels(rng, n))]
    else:
        make: dict[str, Callable[[], dict[str, Any]]] = {
            "Numeric": lambda: _numeric(rng, n, sd),
            "Binary": lambda: _flags(rng, n, "labels"),
            "Ordinal": lambda: _ordinal(rng, n, len(cutpoints) + 1),
            "Censored": lambda: _censored(rng, n, sd),
            "Preference": lambda: {"pairs": _pairs(rng, n)},
            "Tie": lambda: {"pairs": _pairs(rng, n)[:3]},
            "Choice": lambda: {"options": _lists(rng, n)},
            "Ranking": lambda: _ranking(rng, n),
            "Validity": lambda: _flags(rng, n, "valid"),
            "Slope": lambda: _slope(rng, n, d),
            "AffineProbit": lambda: _affine(rng, n, sd),
        }
        possible = [kind for kind in make if n > 1 or kind not in ("Preference", "Tie", "Choice", "Ranking")]
        seen = [Seen(kind, make[kind]()) for kind in rng.sample(possible, rng.choice((1, 1, 2, 2, 3)))]
    anchors = None
    if not labels and rng.random() < 0.25:
        s = rng.randint(1, 3)
        anchors = Anchors(
            points=[list(rng.choice(points)) if rng.random() < 0.4 else _place(rng, d) for _ in range(s)],
            phases=[rng.choice((-1.0, 1.0)) for _ in range(s)],
            truncation=[round(_normal(rng, 0, 1), 3) for _ in range(s)],
        )
    numbers = {value for entry in seen if entry.kind == "Numeric" for value in entry.arguments["values"]}
    queries = [list(rng.choice(points)), _place(rng, d)]
    if not labels:
        queries.append([round(2 * rng.random() - 0.5, 3) for _ in range(d)])
    case = Case(
        points, seen, queries, noise, lengthscale=_power(rng, -1.2, 0.7), outputscale=outputscale,
        mean=rng.choice((0.0, 0.0, _normal(rng, 0, sd))), anchors=anchors,
        standardize=len(numbers) > 1 and rng.random() < 0.25,
    )  # fmt: skip
    return in_single_precision(case) if rng.random() < 0.08 else case


def corner_case(rng: Random) -> Case:
    """A random input of one corner: a skew prior at points that nearly coincide, and data that it all but excludes."""
    n, x = rng.randint(1, 3), round(rng.random(), 3)
    points = [[x]] + [[x + rng.choice((0.0, 1e-6, 1e-4, 0.3))] for _ in range(n - 1)]
    s = rng.randint(1, 2)
    phases = [rng.choice((-1.0, 1.0)) for _ in range(s)]
    anchors = [list(rng.choice(points)) for _ in range(s)]
    truncation = [round(rng.uniform(-3, 1), 3) for _ in range(s)]
    sd = math.sqrt(_power(rng, -1, 2))
    away = -phases[0] * sd * rng.uniform(1, 12)
    m = rng.randint(1, 3)
    index = _index(rng, n, m)
    seen = []
    if rng.random() < 0.6:
        edges = [away + rng.uniform(-0.5, 0.5) * sd for _ in range(m)]
        beyond = (lambda edge: (edge, INF)) if away > 0 else (lambda edge: (-INF, edge))
        bounds = [(e, e + sd * _power(rng, -3, 1)) if rng.random() < 0.5 else beyond(e) for e in edges]
        lower, upper = ([pair[i] for pair in bounds] for i in range(2))
        seen.append(Seen("Censored", {"lower": lower, "upper": upper, "index": index}))
    if rng.random() < 0.6 or not seen:
        seen.append(Seen("Numeric", {"values": [_normal(rng, away, sd) for _ in range(m)], "index": index}))
    if rng.random() < 0.5:
        seen.append(Seen("Ordinal", {"grades": [2 if away > 0 else 0] * 2, "num_grades": 3, "index": [0, n - 1]}))
    if n > 1 and rng.random() < 0.4:
        seen.append(Seen("Choice", {"options": [rng.sample(range(n), n)]}))
    numbers, grades, items = _power(rng, -4, 0) * sd**2, _power(rng, -3, 1), _power(rng, -3, 1)
    noise = Noise(numbers=numbers, grades=grades, items=items, cutpoints=(-0.5 * sd, 0.5 * sd))
    prior, queries = Anchors(anchors, phases, truncation), [points[0], [x + 0.1], [x - 0.4]]
    return Case(points, seen, queries, noise, _power(rng, -1, 0.5), sd**2, anchors=prior)


def pulled_apart_case(rng: Random) -> Case:
    """A random input of one corner: pseudo-points that nearly coincide and must differ, and numbers that contradict."""
    n, x = rng.randint(2, 6), round(rng.random(), 3)
    points = [[x]] + [[x + rng.choice((0.0, 1e-4, 1e-3, rng.uniform(-0.5, 0.5)))] for _ in range(n - 1)]
    s = rng.randint(2, 3)
    anchors = [[rng.choice(points)[0] + rng.choice((0.0, 0.0, 1e-3, -1e-3, 1e-4))] for _ in range(s)]
    phases = [rng.choice((-1.0, 1.0)) for _ in range(s)]
    phases[1] = -phases[0]
    truncation = [round(rng.uniform(-1.5, 0.5), 3) for _ in range(s)]
    sd = math.sqrt(_power(rng, -1, 2))
    values = [_normal(rng, 0, rng.choice((1, 3)) * sd) for _ in range(rng.randint(2, 4))]
    index = [rng.choice((0, rng.randrange(n))) for _ in values]
    seen = [Seen("Numeric", {"values": values, "index": index})]
    if rng.random() < 0.5:
        seen.append(Seen("Ranking", _ranking(rng, n)))
    if rng.random() < 0.3:
        seen.append(Seen("Binary", _flags(rng, n, "labels")))
    noise = Noise(numbers=_power(rng, -3, 0) * sd**2, labels=_power(rng, -3, 1), items=_power(rng, -3, 1))
    prior, queries = Anchors(anchors, phases, truncation), [points[0], [x + 0.2], [x - 0.4]]
    case = Case(points, seen, queries, noise, _power(rng, -1, 0), sd**2, _normal(rng, 0, sd), prior)
    return in_single_precision(case) if rng.random() < 0.7 else case


def numbered_case(number: int) -> Case:
    """The input of a number; those from `CORNER` on are of `corner_case`, from `PULLED_APART` on of its function."""
    if number >= PULLED_APART:
        return pulled_apart_case(Random(number))
    return corner_case(Random(number)) if number >= CORNER else random_case(Random(number))


def _rounded(value: Any) -> Any:
    """All numbers of a case in single precision."""
    if isinstance(value, float):
        return float(torch.tensor(value, dtype=torch.float32))
    if isinstance(value, list | tuple):
        return type(value)(_rounded(entry) for entry in value)
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items()}
    return replace(value, **_rounded(vars(value))) if is_dataclass(value) else value


def in_single_precision(case: Case) -> Case:
    """The case with all numbers rounded to single precision, and no noise too small for it."""
    case, least = _rounded(case), 0.0625
    seen = []
    for entry in case.seen:
        noise = entry.arguments.get("noise")
        own = {} if noise is None else {"noise": [max(value, least) for value in noise]}
        seen.append(Seen(entry.kind, {**entry.arguments, **own}))
    names = ("numbers", "labels", "grades", "items", "validity", "classes")
    noise = replace(case.noise, **{name: max(getattr(case.noise, name), least) for name in names})
    return replace(case, seen=seen, noise=noise, single_precision=True)


# The package's model of a case


def model_of(case: Case, num_draws: int = 2048, seed: int = 1) -> SkewGP:
    """The model of a case, in evaluation mode."""
    entries = [getattr(observations, entry.kind)(**entry.arguments) for entry in case.seen]
    skew_prior = None
    if case.anchors is not None:
        pseudo_points = torch.tensor(case.anchors.points, dtype=case.dtype)
        truncation = torch.tensor(case.anchors.truncation, dtype=case.dtype)
        skew_prior = SkewPrior(pseudo_points, torch.tensor(case.anchors.phases), truncation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=InputDataWarning)  # single precision; inputs that are not scaled
        return SkewGP(
            torch.tensor(case.points, dtype=case.dtype),
            entries,
            likelihood=likelihood_of(case.noise, case.num_labels),
            covar_module=rbf_kernel(case.outputscale, case.lengthscale),
            mean_module=constant_mean(case.mean),
            skew_prior=skew_prior,
            outcome_transform=Standardize(m=1) if case.standardize else None,
            draw_settings=DrawSettings(num_draws=num_draws, seed=seed),
        ).eval()

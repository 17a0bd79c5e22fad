"""Random inputs of every kind and mixture, as plain numbers, so that the reference need not trust the package."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms.outcome import Standardize
from torch import Tensor

from benchmarks._observations import SIMULATORS, Noise, constant_mean, likelihood_of, rbf_kernel
from botorch_skewgp import SkewGP, observations
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Observation
from botorch_skewgp.truncated.draws import DrawSettings

INF = math.inf
MOST_POINTS = 12
CORNER = 1_000_000  # the number of the first input of `corner_case`
PULLED_APART = 2_000_000  # of the first one whose pseudo-points are pulled apart
VARIANCES = ("numbers", "labels", "grades", "items", "validity", "classes")
OF_SEVERAL = ("Preference", "Preference, Tie", "Choice", "Ranking")  # points


@dataclass(frozen=True)
class Seen:
    """Observations of one kind: the name of the class and its arguments, as lists."""

    kind: str
    arguments: dict[str, Any]

    @classmethod
    def of(cls, entry: Observation) -> Seen:
        arguments = {name: getattr(entry, name) for name in vars(entry)}
        plain = {name: x.tolist() if isinstance(x, Tensor) else x for name, x in arguments.items() if x is not None}
        return cls(type(entry).__name__, plain)


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
        return next((entry.arguments["num_labels"] for entry in self.seen if entry.kind == "LabelPreference"), 1)

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.single_precision else torch.float64

    def kinds(self) -> str:
        names = sorted({entry.kind for entry in self.seen})
        return " + ".join(names) + ("" if self.anchors is None else " (skew prior)")


# What a random input is made of


def _power(rng: Random, low: float, high: float) -> float:
    return 10 ** rng.uniform(low, high)


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


def _answers(rng: Random, kinds: Sequence[str], draw: Callable[[str], Tensor], noise: Noise, d: int = 1) -> list[Seen]:
    """Simulated answers, altered, of each kind about one function or two that need not agree."""
    generator, found = torch.Generator().manual_seed(rng.randrange(2**32)), list[Observation]()
    with warnings.catch_warnings(action="ignore", category=InputDataWarning):  # grades that lack the lowest
        for kind in kinds:
            for _ in range(rng.choice((1, 1, 2))):
                found += SIMULATORS[kind](draw(kind), rng.randint(1, 4), noise, generator)
    return [Seen.of(_altered(rng, entry, noise, d, generator)) for entry in found]


def _altered(rng: Random, entry: Observation, noise: Noise, d: int, generator: torch.Generator) -> Observation:
    """Answers that say less than those of a simulator, or say it twice, or the opposite too."""

    def some(like: Tensor, share: float) -> Tensor:
        return torch.rand(like.shape, generator=generator) < share

    if isinstance(entry, observations.Numeric) and rng.random() < 0.4:
        own = [0.0 if rng.random() < 0.04 else _variance(rng) for _ in entry.values]
        return replace(entry, noise=torch.tensor(own, dtype=entry.values.dtype))
    if isinstance(entry, observations.AffineProbit):
        one = entry.covariance[:, :1] @ entry.covariance[:1]
        covariance = noise.affine * (one if rng.random() < 0.3 else entry.covariance)
        masked = entry.weight.masked_fill(some(entry.weight, rng.choice((0.2, 0.8))), 0.0)
        weight = torch.where(masked.any(-1, keepdim=True), masked, entry.weight)
        entry = replace(entry, weight=weight, covariance=covariance)
    if isinstance(entry, observations.Censored | observations.AffineProbit):
        above, below = some(entry.lower, 0.2), some(entry.lower, 0.2)
        lower = entry.lower.masked_fill(below & ~above, -INF)
        return replace(entry, lower=lower, upper=entry.upper.masked_fill(above, INF))
    if isinstance(entry, observations.Slope):
        return replace(entry, dims=torch.randint(d, entry.dims.shape, generator=generator))
    if isinstance(entry, observations.Preference) and rng.random() < 0.3:
        first = entry.pairs[:1].expand(rng.randint(1, 3), 2)
        return observations.Preference(torch.cat([entry.pairs, first, first[: rng.randint(0, 1)].flip(-1)]))
    if isinstance(entry, observations.Choice | observations.Ranking):
        items = entry.options if isinstance(entry, observations.Choice) else entry.items
        left_out = some(items, 0.3) & (torch.arange(items.shape[-1]) > 1)
        items = items.masked_fill(left_out, -1).gather(-1, left_out.long().argsort(dim=-1, stable=True))
        if isinstance(entry, observations.Choice):
            return observations.Choice(items)
        ranks = some(items, 0.6).cumsum(-1) if rng.random() < 0.5 else None
        tied = None if ranks is None else bool(items.sum() % 2)  # not from `rng`, whose numbers make known cases
        return observations.Ranking(items, ranks, tied)
    if isinstance(entry, observations.LabelPreference):
        kept = some(entry.event, 0.7) | (torch.arange(len(entry.event)) == 0)
        return replace(entry, **{name: getattr(entry, name)[kept] for name in ("labels", "index", "event")})
    return entry


def random_case(rng: Random) -> Case:
    d, is_classes = rng.randint(1, 2), rng.random() < 0.06
    n = rng.randint(1, 4 if is_classes else MOST_POINTS)
    points = _points(rng, n, d)
    outputscale = rng.choice((1.0, 1.0, 10.0, _power(rng, -3, 3)))
    sd, num_labels = math.sqrt(outputscale), rng.randint(2, 3) if is_classes else 1
    gaps = [rng.gauss(0, sd), *(sd * _power(rng, -3, 1) for _ in range(rng.randint(0, 3)))]
    noise = Noise(
        **{name: _variance(rng) for name in (*VARIANCES, "affine")},
        slopes=0.0 if rng.random() < 0.5 else outputscale * _power(rng, -3, 2),
        cutpoints=tuple(accumulate(gaps)),
        tie_width=sd * _power(rng, -3, 1),
        ties_allowed=rng.random() < 0.4,
        threshold=rng.choice((0.0, rng.gauss(0, sd), rng.gauss(0, 5 * sd))),
        unit=sd * _power(rng, -5, 1) if rng.random() < 0.8 else _power(rng, 1, 12),
        reach=rng.choice((1.0, 3.0, INF)),
    )
    shift, rising = rng.choice((0.0, 0.0, 0.0, -2.0, 2.0)), rng.choice((-1, 1))

    def draw(kind: str) -> Tensor:
        if kind == "Slope":
            return torch.tensor([rng.gauss(rising, 1) for _ in range(n)], dtype=torch.float64)
        far = [1.0 if rng.random() < 0.75 else _power(rng, 0, 1.5) for _ in range(n * num_labels)]
        f = torch.tensor([sd * (shift + width * rng.gauss(0, 1)) for width in far], dtype=torch.float64)
        return f.view(n, num_labels) if is_classes else f

    possible = [kind for kind in SIMULATORS if kind != "LabelPreference" and (n > 1 or kind not in OF_SEVERAL)]
    kinds = ["LabelPreference"] if is_classes else rng.sample(possible, rng.choice((1, 1, 2, 2, 3)))
    seen = _answers(rng, kinds, draw, noise, d)
    anchors = None
    if not is_classes and rng.random() < 0.25:
        s = rng.randint(1, 3)
        anchors = Anchors(
            points=[list(rng.choice(points)) if rng.random() < 0.4 else _place(rng, d) for _ in range(s)],
            phases=[rng.choice((-1.0, 1.0)) for _ in range(s)],
            truncation=[round(rng.gauss(0, 1), 3) for _ in range(s)],
        )
    numbers = {value for entry in seen if entry.kind == "Numeric" for value in entry.arguments["values"]}
    queries = [list(rng.choice(points)), _place(rng, d)]
    if not is_classes:
        queries.append([round(2 * rng.random() - 0.5, 3) for _ in range(d)])
    case = Case(
        points, seen, queries, noise, lengthscale=_power(rng, -1.2, 0.7), outputscale=outputscale,
        mean=rng.choice((0.0, 0.0, rng.gauss(0, sd))), anchors=anchors,
        standardize=len(numbers) > 1 and rng.random() < 0.25,
    )  # fmt: skip
    return in_single_precision(case) if rng.random() < 0.08 else case


def corner_case(rng: Random, apart: bool) -> Case:
    """Data that a skew prior all but excludes; or `apart`, pseudo-points that nearly coincide and must differ."""
    n, x = rng.randint(1 + apart, 6 if apart else 3), round(rng.random(), 3)
    steps = (0.0, 1e-4, 1e-3, rng.uniform(-0.5, 0.5)) if apart else (0.0, 1e-6, 1e-4, 0.3)
    points = [[x], *([x + rng.choice(steps)] for _ in range(n - 1))]
    s = rng.randint(1 + apart, 2 + apart)
    beside = (0.0, 0.0, 1e-3, -1e-3, 1e-4) if apart else (0.0,)
    places = [[rng.choice(points)[0] + rng.choice(beside)] for _ in range(s)]
    phases = [rng.choice((-1.0, 1.0)) for _ in range(s)]
    if apart:
        phases[1] = -phases[0]
    low, high = (-1.5, 0.5) if apart else (-3, 1)
    anchors = Anchors(places, phases, [round(rng.uniform(low, high), 3) for _ in range(s)])
    sd = math.sqrt(_power(rng, -1, 2))
    noise = Noise(
        numbers=_power(rng, -4, 0) * sd**2, labels=_power(rng, -3, 1), grades=_power(rng, -3, 1),
        items=_power(rng, -3, 1), cutpoints=(-0.5 * sd, 0.5 * sd), unit=sd * _power(rng, -3, 1),
        reach=rng.choice((1.0, INF)),
    )  # fmt: skip
    centre, spread = (0.0, rng.choice((1, 3))) if apart else (-phases[0] * rng.uniform(1, 12), 1)

    def draw(kind: str) -> Tensor:
        return torch.tensor([sd * (centre + spread * rng.gauss(0, 1)) for _ in range(n)], dtype=torch.float64)

    shares = {"Ranking": 0.5, "Binary": 0.3} if apart else {"Censored": 0.6, "Ordinal": 0.5, "Choice": 0.4}
    kinds = [kind for kind, share in shares.items() if rng.random() < share and (n > 1 or kind not in OF_SEVERAL)]
    if apart or not kinds or rng.random() < 0.6:
        kinds.append("Numeric")
    seen, mean = _answers(rng, kinds, draw, noise), rng.gauss(0, sd) if apart else 0.0
    queries = [points[0], [x + 0.1], [x - 0.4]]
    case = Case(points, seen, queries, noise, _power(rng, -1, 0.3), sd**2, mean, anchors)
    return in_single_precision(case) if apart and rng.random() < 0.7 else case


@cache
def mended_cases() -> dict[int, Case]:
    """Inputs that had been wrong, failed without words, or taken too long, by the numbers that they had."""
    stored = json.loads((Path(__file__).parent / "mended.json").read_text(encoding="utf-8"))
    return {int(number): _stored_case(**entry) for number, entry in stored.items()}


def _stored_case(
    seen: list[dict[str, Any]], noise: dict[str, Any], anchors: dict[str, Any] | None = None, **rest: Any
) -> Case:
    noise = {name: tuple(value) if isinstance(value, list) else value for name, value in noise.items()}
    prior = None if anchors is None else Anchors(**anchors)
    return Case(seen=[Seen(**entry) for entry in seen], noise=Noise(**noise), anchors=prior, **rest)


def numbered_case(number: int) -> Case:
    """The input of a number, the same in every run; those from `CORNER` on are of corners."""
    rng, mended = Random(number), mended_cases().get(number)
    return mended or (random_case(rng) if number < CORNER else corner_case(rng, apart=number >= PULLED_APART))


def _rounded(value: Any) -> Any:
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
    noise = replace(case.noise, **{name: max(getattr(case.noise, name), least) for name in VARIANCES})
    return replace(case, seen=seen, noise=noise, single_precision=True)


# The package's model of a case


def model_of(case: Case, num_draws: int = 2048, seed: int = 1) -> SkewGP:
    skew_prior = None
    if case.anchors is not None:
        pseudo_points = torch.tensor(case.anchors.points, dtype=case.dtype)
        truncation = torch.tensor(case.anchors.truncation, dtype=case.dtype)
        skew_prior = SkewPrior(pseudo_points, torch.tensor(case.anchors.phases), truncation)
    with warnings.catch_warnings(action="ignore", category=InputDataWarning):  # single precision, inputs, grades
        return SkewGP(
            torch.tensor(case.points, dtype=case.dtype),
            [getattr(observations, entry.kind)(**entry.arguments) for entry in case.seen],
            likelihood=likelihood_of(case.noise, case.num_labels),
            covar_module=rbf_kernel(case.outputscale, case.lengthscale),
            mean_module=constant_mean(case.mean),
            skew_prior=skew_prior,
            outcome_transform=Standardize(m=1) if case.standardize else None,
            draw_settings=DrawSettings(num_draws=num_draws, seed=seed),
        ).eval()

r"""The posterior of a case, computed another way: rows by hand, algebra with sixty digits, and importance sampling.

What was seen becomes intervals of linear maps of the latent function and of noise. The rows' truncated normal is drawn
coordinate by coordinate with the exponential tilting of [Botev2017]_, whose weights, nearly constant even for events of
probability `e^-1000`, measure whatever error is left.

.. [Botev2017] Botev. Journal of the Royal Statistical Society B 79, 2017.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import root as find_root
from scipy.special import log_ndtr, ndtr, ndtri_exp

from benchmarks.fuzz.cases import Case

DIGITS = 60
Matrix = list[list[Any]]
Arguments = dict[str, Any]


@dataclass
class Row:
    """`lower < sum_i latent_i f_i + sum_k noise_k e_k + bias <= upper`; a number where the bounds are equal."""

    latent: dict[int, Any]
    noise: dict[int, Any]
    lower: Any
    upper: Any
    bias: Any = 0.0


class Rows:
    """The rows of a case, and the covariance of the noises that they name."""

    def __init__(self, case: Case, location: Any, scale: Any) -> None:
        self.case, self.noise, self.location, self.scale = case, case.noise, location, scale
        self.rows: list[Row] = []
        self.covariance: dict[tuple[int, int], Any] = defaultdict(lambda: mpf(0))
        self.slopes: list[tuple[int, int]] = []  # points and inputs; their columns come after those of anchors
        for seen in case.seen:
            getattr(self, f"_{seen.kind.lower()}")(seen.arguments)

    def _new_noise(self, variance: float) -> int:
        name = len(self.covariance)
        self.covariance[name, name] = mpf(variance)
        return name

    def _latent(self, outcome: float) -> Any:
        """An outcome in units of the latent function."""
        return outcome if math.isinf(outcome) else (mpf(outcome) - self.location) / self.scale

    def _at_points(self, index: list[int], bounds: list[tuple[Any, Any]], variance: Any) -> None:
        variances = variance if isinstance(variance, list) else [variance] * len(index)
        for i, (lower, upper), own in zip(index, bounds, variances, strict=True):
            self.rows.append(Row({i: mpf(1)}, {self._new_noise(own): mpf(1)}, lower, upper))

    def _numeric(self, a: Arguments) -> None:
        known = a.get("noise")
        variance = self.noise.numbers if known is None else [mpf(v) / self.scale**2 for v in known]
        if "weights" in a:
            variances = variance if isinstance(variance, list) else [variance] * len(a["values"])
            for value, points, weights, own in zip(a["values"], a["index"], a["weights"], variances, strict=True):
                self._sum(mpf(value), points, weights, own)
            return
        values = [self._latent(value) for value in a["values"]]
        self._at_points(a["index"], [(value, value) for value in values], variance)

    def _sum(self, value: Any, points: list[int], weights: list[float], variance: Any) -> None:
        """A row of a number that is a weighted sum of outcomes `location + scale * f`."""
        latent: dict[int, Any] = defaultdict(lambda: mpf(0))
        for point, weight in zip(points, weights, strict=True):
            latent[point] += mpf(weight)
        rest = (value - self.location * sum(map(mpf, weights))) / self.scale
        self.rows.append(Row(dict(latent), {self._new_noise(variance): mpf(1)}, rest, rest))

    def _binary(self, a: Arguments) -> None:
        self._at_points(a["index"], [_side(mpf(0), label) for label in a["labels"]], self.noise.labels)

    def _validity(self, a: Arguments) -> None:
        edge = self._latent(self.noise.threshold)
        self._at_points(a["index"], [_side(edge, valid) for valid in a["valid"]], self.noise.validity)

    def _ordinal(self, a: Arguments) -> None:
        edges = [-math.inf, *(self._latent(point) for point in self.noise.cutpoints), math.inf]
        self._at_points(a["index"], [(edges[grade], edges[grade + 1]) for grade in a["grades"]], self.noise.grades)

    def _censored(self, a: Arguments) -> None:
        bounds = [(self._latent(low), self._latent(high)) for low, high in zip(a["lower"], a["upper"], strict=True)]
        self._at_points(a["index"], bounds, self.noise.numbers)

    def _compare(
        self, winner: int, loser: int, lower: Any, upper: Any, noises: tuple[int, int] | None = None
    ) -> tuple[int, int]:
        """A row of a difference, whose noises are new ones unless they are given; the noises."""
        first, second = noises or (self._new_noise(self.noise.items), self._new_noise(self.noise.items))
        self.rows.append(Row({winner: mpf(1), loser: mpf(-1)}, {first: mpf(1), second: mpf(-1)}, lower, upper))
        return first, second

    def _preference(self, a: Arguments) -> None:
        least = mpf(self.noise.tie_width if self.noise.ties_allowed else 0)
        edges = [*(least + mpf(edge) for edge in self.noise.strengths), math.inf]
        graded = a.get("strength")
        for i, (winner, loser) in enumerate(a["pairs"]):
            self._compare(winner, loser, *((least, math.inf) if graded is None else edges[graded[i] : graded[i] + 2]))

    def _vote(self, a: Arguments) -> None:
        width, low, high = (mpf(x) for x in (self.noise.tie_width, self.noise.threshold, self.noise.level_gap))
        averages = ((low, low + high), (-math.inf, low), (low + high, math.inf))  # where neither is better
        for (first, second), answer in zip(a["pairs"], a["answers"], strict=True):
            if answer < 2:
                self._compare(*((first, second) if answer == 0 else (second, first)), width, math.inf)
            else:
                half, noises = mpf(1) / 2, self._compare(first, second, -width, width)
                self.rows.append(Row({first: half, second: half}, dict.fromkeys(noises, half), *averages[answer - 2]))

    def _tie(self, a: Arguments) -> None:
        width = mpf(self.noise.tie_width)
        for first, second in a["pairs"]:
            self._compare(first, second, -width, width)

    def _order(self, items: list[int], ranks: list[int]) -> None:
        noises = {item: self._new_noise(self.noise.items) for item in items}
        for better, worse in pairwise(sorted(set(ranks))):
            for i, j in product(range(len(items)), repeat=2):
                if (ranks[i], ranks[j]) == (better, worse):
                    self._compare(items[i], items[j], mpf(0), math.inf, (noises[items[i]], noises[items[j]]))

    def _choice(self, a: Arguments) -> None:
        for options in a["options"]:
            items = [item for item in options if item >= 0]
            self._order(items, [0] + [1] * (len(items) - 1))

    def _ranking(self, a: Arguments) -> None:
        for k, row in enumerate(a["items"]):
            items = [item for item in row if item >= 0]
            ranks = (a["ranks"][k] if "ranks" in a else list(range(len(items))))[: len(items)]
            if a["ties_allowed"]:
                self._face(items, ranks)
            else:
                self._order(items, ranks)

    def _face(self, items: list[int], ranks: list[int]) -> None:
        """A ranking with ties: Rado's inequalities of the permutohedron within groups, and its normal cone between."""
        width, noises = mpf(self.noise.tie_width), [self._new_noise(self.noise.items) for _ in items]
        groups = [[i for i, rank in enumerate(ranks) if rank == value] for value in sorted(set(ranks))]

        def add(weights: dict[int, Any], lower: Any, upper: Any) -> None:
            latent = {items[i]: weight for i, weight in weights.items()}
            self.rows.append(Row(latent, {noises[i]: weight for i, weight in weights.items()}, lower, upper))

        for group in groups:
            n = len(group)
            positions = [width * (mpf(n - 1) / 2 - place) for place in range(n)]
            for size in range(1, n):
                for part in combinations(group, size):
                    if group[0] in part:  # its sum is no further from the mean than that of the first or last positions
                        most = sum(positions[:size], mpf(0))
                        add({i: mpf(i in part) - mpf(size) / n for i in group}, -most, most)
        middles, place = [], 0
        for group in groups:
            middles.append(place + mpf(len(group) - 1) / 2)
            place += len(group)
        for number, (better, worse) in enumerate(pairwise(groups)):
            weights = dict.fromkeys(better, mpf(1) / len(better)) | dict.fromkeys(worse, -mpf(1) / len(worse))
            add(weights, width * (middles[number + 1] - middles[number]), math.inf)

    def _labelpreference(self, a: Arguments) -> None:
        noises: dict[int, list[int]] = {}  # of all labels, by the event
        for labels, i, event in zip(a["labels"], a["index"], a["event"], strict=True):
            if event not in noises:
                noises[event] = [self._new_noise(self.noise.classes) for _ in range(a["num_labels"])]
            winner, loser = (i * a["num_labels"] + label for label in labels)
            self._compare(winner, loser, mpf(0), math.inf, (noises[event][labels[0]], noises[event][labels[1]]))

    def _slope(self, a: Arguments) -> None:
        first = len(self.case.points) + (0 if self.case.anchors is None else len(self.case.anchors.points))
        for i, dim, sign in zip(a["index"], a["dims"], a["signs"], strict=True):
            noise = {self._new_noise(self.noise.slopes): mpf(1)}
            self.rows.append(Row({first + len(self.slopes): mpf(1)}, noise, *_side(mpf(0), sign > 0)))
            self.slopes.append((i, dim))

    def _affineprobit(self, a: Arguments) -> None:
        names = [self._new_noise(0.0) for _ in a["bias"]]
        for i, name in enumerate(names):
            for j, other in enumerate(names):
                self.covariance[name, other] = mpf(a["covariance"][i][j])
            latent: dict[int, Any] = defaultdict(lambda: mpf(0))
            for point, weight in zip(a["index"], a["weight"][i], strict=True):
                latent[point] += mpf(weight)
            bounds = [b if math.isinf(b) else mpf(b) for b in (a["lower"][i], a["upper"][i])]
            self.rows.append(Row(dict(latent), {name: mpf(1)}, *bounds, bias=mpf(a["bias"][i])))


def _side(edge: Any, above: Any) -> tuple[Any, Any]:
    return (edge, math.inf) if above else (-math.inf, edge)


@dataclass
class Factored:
    """The rows of intervals in white coordinates, `lower < root z <= upper`, and what is wanted, linear in `z`."""

    log_density: float  # of the numbers
    root: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pivot: np.ndarray  # zero where a row is determined by those before it
    mean: np.ndarray  # of what is wanted, where z is zero
    gain: np.ndarray
    variance: np.ndarray  # left given z


Column = tuple[list[float], int | None]  # the function at a point, or its slope there in an input
Prior = Callable[[list[list[float]]], Matrix]  # the covariance of all latent functions at points, functions fastest


def _kernel(case: Case, columns: list[Column]) -> Matrix:
    scale, square_length = mpf(case.outputscale), mpf(case.lengthscale) ** 2
    K: Matrix = [[mpf(0)] * len(columns) for _ in columns]
    for i, (x, d) in enumerate(columns):
        for j, (y, e) in enumerate(columns[: i + 1]):
            step = [mpf(a) - mpf(b) for a, b in zip(x, y, strict=True)]
            value = scale * mp.exp(-sum(h**2 for h in step) / (2 * square_length))
            if d is not None and e is not None:
                value *= (mpf(d == e) - step[d] * step[e] / square_length) / square_length
            elif d is not None:
                value *= -step[d] / square_length
            elif e is not None:
                value *= step[e] / square_length
            K[i][j] = K[j][i] = value
    return K


def _cholesky(G: Matrix) -> Matrix:
    """The Cholesky factor; a column of zeros where a row is determined by those before it."""
    L: Matrix = [[mpf(0)] * len(G) for _ in G]
    for i in range(len(G)):
        for j in range(i + 1):
            rest = G[i][j] - sum((L[i][k] * L[j][k] for k in range(j) if L[i][k]), mpf(0))
            if i == j:
                L[i][i] = mp.sqrt(rest) if rest > mpf(10) ** (-DIGITS + 15) * G[i][i] else mpf(0)
            elif L[j][j]:
                L[i][j] = rest / L[j][j]
    return L


def _dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), mpf(0))


def _forward(L: Matrix, b: Sequence[Any]) -> list[Any]:
    """The solution of as many equations of a Cholesky factor; zero where a row is determined by those before it."""
    x: list[Any] = []
    for i, value in enumerate(b):
        x.append((value - _dot(L[i][:i], x)) / L[i][i] if L[i][i] else mpf(0))
    return x


class Contradiction(ArithmeticError):
    """Numbers without noise that cannot all be true."""


def outcome_scale(case: Case) -> tuple[Any, Any]:
    """Mean and standard deviation of the numbers if these are standardised, else 0 and 1."""
    numeric = [entry.arguments for entry in case.seen if entry.kind == "Numeric" and "weights" not in entry.arguments]
    numbers = [value for arguments in numeric for value in arguments["values"]]
    if not case.standardize or not numbers:
        return mpf(0), mpf(1)
    values = [mpf(value) for value in numbers]
    location = sum(values) / len(values)
    return location, mp.sqrt(sum((value - location) ** 2 for value in values) / (len(values) - 1))


def _factor(case: Case, rows: Rows, prior_only: bool = False, covariance_of: Prior | None = None) -> Factored:
    """All algebra, with many digits; `prior_only` leaves out what was seen, for the normaliser of a skew prior."""
    o, n = case.num_labels, len(case.points)
    anchors = [] if case.anchors is None else case.anchors.points
    slopes: list[Column] = [(case.points[i], dim) for i, dim in rows.slopes]
    before: list[Column] = [(x, None) for x in [*case.points, *anchors]]
    columns = [*before, *slopes, *((x, None) for x in case.queries)]
    size = len(columns) * o
    if covariance_of is None:
        base = _kernel(case, columns)
        K = [[base[i // o][j // o] if i % o == j % o else mpf(0) for j in range(size)] for i in range(size)]
    else:
        K = covariance_of([x for x, _ in columns])
    mean = mpf(case.mean)
    no_mean = range(len(before), len(before) + len(slopes))
    listed = [] if prior_only else list(rows.rows)
    if case.anchors is not None:
        for s, (phase, truncation) in enumerate(zip(case.anchors.phases, case.anchors.truncation, strict=True)):
            weight = mpf(phase) / mp.sqrt(mpf(case.outputscale))
            listed.append(Row({n + s: weight}, {}, mpf(0), math.inf, mpf(truncation) - weight * mean))
    numbers = [row for row in listed if row.lower == row.upper]
    intervals = [row for row in listed if row.lower != row.upper]
    centers = {
        id(row): sum((w * mean for i, w in row.latent.items() if i not in no_mean), row.bias + mpf(0)) for row in listed
    }

    def covariance(a: Row, b: Row) -> Any:
        latent = sum((v * w * K[i][j] for i, v in a.latent.items() for j, w in b.latent.items()), mpf(0))
        for i, v in a.noise.items():
            for j, w in b.noise.items():
                if (i, j) in rows.covariance:
                    latent += v * w * rows.covariance[i, j]
        return latent

    def surprise(row: Row) -> float:
        """How improbable a row is on its own; the most improbable ones come first."""
        sd = float(mp.sqrt(covariance(row, row))) or 1e-30
        bounds = [float(b - centers[id(row)]) / sd for b in (row.lower, row.upper)]
        return float(log_difference(np.array(bounds[0]), np.array(bounds[1])))

    intervals.sort(key=surprise)
    ordered = numbers + intervals
    L = _cholesky([[covariance(a, b) for b in ordered] for a in ordered])
    e = len(numbers)
    rests = [row.lower - centers[id(row)] for row in numbers]
    z = _forward(L, rests)
    if any(not L[i][i] and abs(rests[i] - _dot(L[i][:i], z[:i])) > mpf(10) ** -20 for i in range(e)):
        raise Contradiction("numbers without noise contradict each other")
    log_density = -sum((z[i] ** 2 / 2 + mp.log(L[i][i]) + mp.log(2 * mp.pi) / 2 for i in range(e) if L[i][i]), mpf(0))
    pivots = [L[i][i] or mpf(1) for i in range(e, len(ordered))]
    shifts = [centers[id(row)] + _dot(L[e + i][:e], z) for i, row in enumerate(intervals)]
    units = [*zip(intervals, shifts, pivots, strict=True)]
    wanted = range(size - len(case.queries) * o, size)
    gains = [_forward(L, [_dot(row.latent.values(), [K[t][j] for j in row.latent]) for row in ordered]) for t in wanted]
    m = len(intervals)
    return Factored(
        log_density=float(log_density),
        root=np.array([[float(x / by) for x in row[e:]] for row, by in zip(L[e:], pivots, strict=True)]).reshape(m, m),
        lower=np.array([float((row.lower - shift) / by) for row, shift, by in units]),
        upper=np.array([float((row.upper - shift) / by) for row, shift, by in units]),
        pivot=np.array([float(L[i][i]) for i in range(e, len(ordered))]),
        mean=np.array([float(mean + _dot(gain[:e], z)) for gain in gains]),
        gain=np.array([[float(g) for g in gain[e:]] for gain in gains]).reshape(len(gains), m),
        variance=np.maximum([float(K[t][t] - _dot(gain, gain)) for t, gain in zip(wanted, gains, strict=True)], 0.0),
    )


# One-dimensional pieces, in the log domain


def log_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`log(Phi(b) - Phi(a))` for `a < b`."""
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    below, above = log_ndtr(a), log_ndtr(b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.minimum(below - above, 0.0)
        plain = above + np.where(ratio > -1e-3, np.log(-np.expm1(ratio)), np.log1p(-np.exp(ratio)))
        # narrow: the density in the middle times the width
        middle, width = (a + b) / 2, b - a
        narrow = -0.5 * middle**2 - 0.5 * math.log(2 * math.pi) + np.log(width)
        return np.where((width < 1e-6) & (width * np.abs(middle) < 1e-4), narrow, plain)


def _draw_between(a: np.ndarray, b: np.ndarray, log_mass: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Standard normal draws in `(a, b)`."""
    uniform = rng.random(a.shape)
    flip = a > 0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        draws = ndtri_exp(np.minimum(np.logaddexp(log_ndtr(low), log_mass + np.log(uniform)), 0.0))
        # far out: an exponential law below `high`
        rate = np.abs(high)
        tail = high + np.log1p(uniform * np.expm1(-np.minimum(rate * (high - low), 700.0))) / rate
        draws = np.where(high < -1e3, tail, draws)
        narrow = (high - low < 1e-6) & ((high - low) * rate < 1e-4)
        draws = np.where(narrow, low + uniform * (high - low), draws)
    draws = np.clip(draws, low, high)
    return np.where(flip, -draws, draws)


def _tilt(factored: Factored) -> np.ndarray:
    """The tilting of [Botev2017]_, the saddle point of equation (10); zero where none is found."""
    m = len(factored.lower)
    L = np.tril(factored.root, -1)
    free = factored.pivot > 0
    if m < 2:
        return np.zeros(m)

    def gradient(both: np.ndarray) -> np.ndarray:
        x, mu = np.append(both[: m - 1], 0.0), np.append(both[m - 1 :], 0.0)
        shift = L @ x
        a, b = factored.lower - shift - mu, factored.upper - shift - mu
        log_mass = log_difference(a, b)
        with np.errstate(over="ignore", invalid="ignore"):
            hazard = np.exp(-0.5 * a**2 - log_mass) - np.exp(-0.5 * b**2 - log_mass)
        hazard = np.where(free, hazard / math.sqrt(2 * math.pi), 0.0)
        return np.nan_to_num(np.concatenate([(mu - x + hazard)[: m - 1], (L.T @ hazard - mu)[: m - 1]]))

    solution = find_root(gradient, np.zeros(2 * (m - 1)), method="hybr")
    if not solution.success or not np.isfinite(solution.x).all():
        return np.zeros(m)
    return np.append(solution.x[m - 1 :], 0.0)


def _sample(factored: Factored, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """White coordinates, `size x m`, and their log weights; the average weight is the probability of the rows."""
    m = len(factored.lower)
    mu, z, log_weight = _tilt(factored), np.zeros((size, m)), np.zeros(size)
    for k in range(m):
        shift = z[:, :k] @ factored.root[k, :k]
        a, b = factored.lower[k] - shift, factored.upper[k] - shift
        if factored.pivot[k] == 0:  # true up to rounding, or not
            slack = 1e-12 * (1 + np.abs(factored.root[k, :k]).sum() + np.abs(shift))
            log_weight = np.where((a < slack) & (b > -slack), log_weight, -np.inf)
            continue
        log_mass = log_difference(a - mu[k], b - mu[k])
        z[:, k] = mu[k] + _draw_between(a - mu[k], b - mu[k], log_mass, rng)
        log_weight = log_weight + log_mass + 0.5 * mu[k] ** 2 - mu[k] * z[:, k]
    return z, log_weight


def _average(log_weight: np.ndarray) -> tuple[np.ndarray, float, float, float]:
    """The weights' shares, the log of their average with its standard error, and the effective number of draws."""
    top = log_weight.max()
    if not np.isfinite(top):
        return np.zeros_like(log_weight), -math.inf, 0.0, 0.0
    w = np.exp(log_weight - top)
    effective_size = float(w.sum() ** 2 / (w**2).sum())
    return w / w.sum(), float(top + np.log(w.mean())), float(w.std() / w.mean() / math.sqrt(len(w))), effective_size


@dataclass
class Reference:
    """The posterior at the queries as a weighted mixture of Gaussians, in units of the outcome; and the evidence."""

    weights: np.ndarray  # of the components; they sum to one
    means: np.ndarray  # queries x components
    variance: np.ndarray  # shared by the components, one for each query
    log_evidence: float  # of numbers their density in units of the outcome
    log_evidence_error: float
    effective_size: float  # of the components
    evidence_size: float  # of the draws behind the evidence, those of a skew prior's normaliser included

    def _error(self, influence: np.ndarray) -> np.ndarray:
        return np.sqrt((self.weights**2 * influence**2).sum(-1))

    def mean(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means and their standard errors."""
        mean = self.means @ self.weights
        return mean, self._error(self.means - mean[:, None])

    def standard_deviation(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior standard deviations and their standard errors."""
        squared = (self.means - (self.means @ self.weights)[:, None]) ** 2
        between = squared @ self.weights
        sd = np.sqrt(between + self.variance)
        error = np.divide(self._error(squared - between[:, None]), 2 * sd, out=np.zeros_like(sd), where=sd > 0)
        return sd, error

    def skewness(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior skewness and its standard errors."""
        scale = self.standard_deviation()[0][:, None]
        a, c = (self.means - (self.means @ self.weights)[:, None]) / scale, self.variance[:, None] / scale**2
        skewness = (a**3 @ self.weights)[:, None]
        influence = a**3 + 3 * a * (c - 1) - skewness - 1.5 * skewness * (a**2 + c - 1)
        return skewness[:, 0], self._error(influence)

    def cdf(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior probabilities at most `value`, one for each query, and their standard errors."""
        sd = np.maximum(np.sqrt(self.variance), 1e-300)
        below = ndtr((value[:, None] - self.means) / sd[:, None])
        cdf = below @ self.weights
        return cdf, self._error(below - cdf[:, None])


def reference_of(case: Case, size: int = 8192, seed: int = 0, covariance_of: Prior | None = None) -> Reference:
    """The reference of a case from so many importance draws, perhaps with another prior covariance of values."""
    rng = np.random.default_rng(seed)
    with mp.workdps(DIGITS):
        location, scale = outcome_scale(case)
        rows = Rows(case, location, scale)
        factored = _factor(case, rows, covariance_of=covariance_of)
        prior = None if case.anchors is None else _factor(case, rows, prior_only=True)
        location, scale = float(location), float(scale)
    z, log_weight = _sample(factored, size, rng)
    weights, log_evidence, error, effective_size = _average(log_weight)
    evidence_size = effective_size
    if prior is not None:
        _, log_prior, prior_error, prior_size = _average(_sample(prior, size, rng)[1])
        evidence_size = min(effective_size, prior_size)
        log_evidence, error = log_evidence - log_prior, math.hypot(error, prior_error)
    num_numbers = sum(len(entry.arguments["values"]) for entry in case.seen if entry.kind == "Numeric")
    log_evidence -= num_numbers * math.log(scale)
    return Reference(
        weights=weights,
        means=location + scale * (factored.mean[:, None] + factored.gain @ z.T),
        variance=scale**2 * factored.variance,
        log_evidence=factored.log_density + log_evidence,
        log_evidence_error=error,
        effective_size=effective_size,
        evidence_size=evidence_size,
    )

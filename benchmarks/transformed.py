"""Bayesian transformed Gaussian processes beside warped ones, Gaussian ones and BoTorch's outcome transforms.

Predictions of IntSine, of synthetic sets of known warping and of diabetes measurements; how many evaluations bounds of
quantiles save; what leaving one out costs in closed form and by refits; how long a model takes to get ready.
Baselines of maximum evidence are the same code with one node, the mode.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Bilog, Log, Power, Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks._reporting import (
    Table,
    add_bar,
    add_common_arguments,
    bars_table,
    environment,
    load_average,
    prepare,
    publish,
    say,
)
from botorch_skewgp.models import BayesianTransformedGP
from botorch_skewgp.models.transformed_nodes import Nodes
from botorch_skewgp.posteriors import TransformedTMarginals
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh, Warping

DOUBLE = torch.float64
WARPINGS: dict[str, Callable[[], Warping]] = {
    "I": Affine,
    "A": Arcsinh,
    "SA": SinhArcsinh,
    "BC": BoxCox,
    "L-SA": lambda: Composition([Affine(), SinhArcsinh()]),
}
PRINTED = {  # RMSE and NLPD of IntSine, by Zhu et al. (2023)
    "GP": (0.227, -1.179),
    "WGP-A": (0.179, -1.392),
    "WGP-SA": (0.172, -1.693),
    "WGP-BC": (0.184, -1.371),
    "WGP-L-SA": (0.172, -1.693),
    "BTG-I": (0.169, -1.429),
    "BTG-A": (0.168, -1.443),
    "BTG-SA": (0.165, -1.759),
    "BTG-BC": (0.170, -1.439),
    "BTG-L-SA": (0.145, -1.781),
}


class Data(NamedTuple):
    """Training and test points; test outcomes are compared with predictions of new outcomes."""

    X: Tensor
    Y: Tensor
    test_X: Tensor
    test_y: Tensor


def int_sine(seed: int) -> Data:
    """A sine rounded to integers: two steps, with a noise of 0.05."""
    X = torch.linspace(-math.pi, math.pi, 51, dtype=DOUBLE).unsqueeze(-1)
    generator = torch.Generator().manual_seed(seed)
    noise = 0.05 * torch.randn(X.shape, generator=generator, dtype=DOUBLE)
    test_X = torch.linspace(-math.pi, math.pi, 400, dtype=DOUBLE).unsqueeze(-1)
    scaled = (X + math.pi) / (2 * math.pi), (test_X + math.pi) / (2 * math.pi)
    return Data(scaled[0], torch.sin(X).round() + 2 + noise, scaled[1], (torch.sin(test_X).round() + 2).squeeze(-1))


def synthetic(inverse: Callable[[Tensor], Tensor], seed: int, n: int = 40) -> Data:
    """A draw from a Gaussian process of two inputs through a known inverse warping, with noise inside of it."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n + 200, 2, generator=generator, dtype=DOUBLE)
    K = torch.exp(-0.5 * torch.cdist(X / 0.4, X / 0.4).square()) + 0.01 * torch.eye(len(X), dtype=DOUBLE)
    y = inverse(torch.linalg.cholesky(K) @ torch.randn(len(X), generator=generator, dtype=DOUBLE))
    return Data(X[:n], y[:n].unsqueeze(-1), X[n:], y[n:])


def diabetes(seed: int, n: int = 80) -> Data:
    """Disease progression after a year, from ten measurements; scikit-learn's data, another split for each seed."""
    from sklearn.datasets import load_diabetes

    inputs, outcomes = load_diabetes(return_X_y=True)
    X, y = torch.tensor(inputs, dtype=DOUBLE), torch.tensor(outcomes, dtype=DOUBLE)
    X = (X - X.amin(0)) / (X.amax(0) - X.amin(0))
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    train, test = order[:n], order[n : n + 200]
    return Data(X[train], y[train].unsqueeze(-1), X[test], y[test])


SETS: dict[str, Callable[[int], Data]] = {
    "exponential": lambda seed: synthetic(torch.exp, seed),
    "sinh": lambda seed: synthetic(lambda z: torch.sinh(1.5 * z), seed),
    "identity": lambda seed: synthetic(lambda z: z + 5, seed),
    "diabetes": diabetes,
}


class Score(NamedTuple):
    """The error of medians, the mean negative log density, and the share within central intervals of 90 %."""

    rmse: float
    nlpd: float
    coverage: float


def transformed_score(data: Data, warping: Warping, quadrature: str, num_nodes: int) -> Score:
    model = BayesianTransformedGP(data.X, data.Y, warping=warping, quadrature=quadrature, num_nodes=num_nodes)  # type: ignore[arg-type]
    with torch.no_grad():
        posterior = model.posterior(data.test_X.unsqueeze(-2), observation_noise=True)
        y = data.test_y.view(-1, 1, 1)
        level, median = posterior.cdf(y), posterior.median
        nlpd = -posterior.log_density(y).mean()
    return Score(
        float((median - y).square().mean().sqrt()),
        float(nlpd),
        float(((level > 0.05) & (level < 0.95)).double().mean()),
    )


def gaussian_score(data: Data, transform: Callable[[], object]) -> Score:
    """A SingleTaskGP with an outcome transform; its density is that of the transformed outcome times the derivative."""
    outcome = transform()
    model = SingleTaskGP(data.X, data.Y, outcome_transform=outcome)  # type: ignore[arg-type]
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    with torch.no_grad():
        law = model.likelihood(model(data.test_X))
        y = data.test_y.unsqueeze(-1).clone()
        step = 1e-6 * data.Y.std()
        z, above, below = (outcome(y + shift)[0].squeeze(-1) for shift in (0.0, step, -step))  # type: ignore[operator]
        log_slope = ((above - below) / (2 * step)).log()
        normal = torch.distributions.Normal(law.mean, law.variance.sqrt())
        level = normal.cdf(z)
        median = outcome.untransform(law.mean.unsqueeze(-1))[0].squeeze(-1)  # type: ignore[attr-defined]
    error = (median - data.test_y).square().mean().sqrt()
    coverage = ((level > 0.05) & (level < 0.95)).double().mean()
    return Score(float(error), float(-(normal.log_prob(z) + log_slope).mean()), float(coverage))


def methods(data: Data, names: tuple[str, ...], num_nodes: int) -> dict[str, Callable[[], Score]]:
    """All methods that take the outcomes as they are."""
    positive = bool((data.Y > 0).all())
    found: dict[str, Callable[[], Score]] = {}
    for name in names:
        if name == "BC" and not positive:
            continue
        for prefix, quadrature in (("BTG", "sobol"), ("WGP", "mode")):
            found[f"{prefix}-{name}"] = lambda name=name, quadrature=quadrature: transformed_score(
                data, WARPINGS[name](), quadrature, num_nodes
            )
    found["GP"] = lambda: gaussian_score(data, lambda: Standardize(m=1))
    found["GP, Bilog"] = lambda: gaussian_score(data, Bilog)
    if positive:
        found["GP, Log"] = lambda: gaussian_score(data, Log)
        found["GP, Power 0.5"] = lambda: gaussian_score(data, lambda: Power(power=0.5))
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--draws", type=int, default=20, help="noise draws of IntSine")
    parser.add_argument("--sets", type=int, default=4, help="draws of each other set")
    parser.add_argument("--nodes", type=int, default=64, help="nodes in a round")
    parser.add_argument("--parts", nargs="+", default=["cost", "int_sine", "sets"], help="cost, int_sine, sets")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    warnings.simplefilter("ignore")
    notes = [environment(), f"load average at the start {load_average()}", f"{options.nodes} nodes in a round"]
    tables: list[Table] = []
    bars = bars_table("transformed_bars_" + "_".join(options.parts) if len(options.parts) < 3 else "transformed_bars")
    bars.notes = notes
    if "cost" in options.parts:
        tables += [_timings(bars, notes), _bounds(bars, notes, 1 if options.quick else 3), _leave_one_out(bars, notes)]
        publish([*tables, bars], folder)
    if "int_sine" in options.parts:
        tables.append(_int_sine(bars, notes, 2 if options.quick else options.draws, options.nodes))
        publish([tables[-1], bars], folder)
    if "sets" in options.parts:
        tables.append(_sets(bars, notes, 1 if options.quick else options.sets, options.nodes))
        publish([tables[-1], bars], folder)


def _int_sine(bars: Table, notes: list[str], draws: int, num_nodes: int) -> Table:
    table = Table(
        "transformed_int_sine",
        ("method", "rmse", "rmse_sd", "nlpd_scaled", "nlpd_sd", "coverage_90", "printed_rmse", "printed_nlpd"),
        notes=[*notes, f"means over {draws} noise draws; densities of y / max y at the noise-free truth"],
    )
    scores: dict[str, list[Score]] = {}
    for seed in range(draws):
        data = int_sine(seed)
        for name, score in methods(data, ("I", "BC", "SA"), num_nodes).items():
            found = score()
            scores.setdefault(name, []).append(found._replace(nlpd=found.nlpd - float(data.Y.max().log())))
        say(f"IntSine {seed + 1} of {draws}")
    for name, found in scores.items():
        rmse, nlpd, coverage = zip(*found, strict=True)
        printed = PRINTED.get(name, (None, None))
        table.add(
            method=name,
            rmse=statistics.mean(rmse),
            rmse_sd=statistics.stdev(rmse),
            nlpd_scaled=statistics.mean(nlpd),
            nlpd_sd=statistics.stdev(nlpd),
            coverage_90=statistics.mean(coverage),
            printed_rmse=printed[0],
            printed_nlpd=printed[1],
        )
    for name in ("BTG-I", "BTG-BC"):
        row = next(row for row in table.rows if row["method"] == name)
        for measure, printed, spread in (("rmse", 0, "rmse_sd"), ("nlpd_scaled", 1, "nlpd_sd")):
            distance = abs(row[measure] - PRINTED[name][printed]) / row[spread]  # type: ignore[operator]
            add_bar(bars, f"IntSine: {measure} from the printed one, in sd of draws", name, distance, most=2.0)
    return table


def _sets(bars: Table, notes: list[str], draws: int, num_nodes: int) -> Table:
    table = Table(
        "transformed_sets", ("set", "method", "rmse", "nlpd", "coverage_90"), notes=[*notes, f"means of {draws}"]
    )
    gains = []
    for label, make in SETS.items():
        scores: dict[str, list[Score]] = {}
        for seed in range(draws):
            for name, score in methods(make(seed), ("I", "SA", "BC"), num_nodes).items():
                scores.setdefault(name, []).append(score())
            say(f"{label} {seed + 1} of {draws}")
        for name, found in scores.items():
            rmse, nlpd, coverage = (statistics.mean(column) for column in zip(*found, strict=True))
            table.add(set=label, method=name, rmse=rmse, nlpd=nlpd, coverage_90=coverage)
        for name in WARPINGS:
            pairs = zip(scores.get(f"BTG-{name}", []), scores.get(f"WGP-{name}", []), strict=True)
            gains += [warped.nlpd - ours.nlpd for ours, warped in pairs]
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    table.notes.append(f"NLPD of one node less that of many, paired: {statistics.mean(gains):.3f} +- {error:.3f}")
    add_bar(
        bars, "NLPD less than that of maximum evidence, paired, nats", "all sets", statistics.mean(gains), least=0.0
    )
    return table


def levy(n: int, seed: int) -> Data:
    """The Levy function of one input on (-10, 10), exponentiated by a hundredth, with noise."""
    generator = torch.Generator().manual_seed(seed)
    x = 20 * torch.rand(n, 1, generator=generator, dtype=DOUBLE) - 10
    w = 1 + (x - 1) / 4
    y = torch.sin(math.pi * w).square() + (w - 1).square() * (1 + torch.sin(2 * math.pi * w).square())
    X = (x + 10) / 20
    test_X = torch.rand(100, 1, generator=generator, dtype=DOUBLE)
    return Data(X, y + 0.1 * torch.randn(n, 1, generator=generator, dtype=DOUBLE) + 1, test_X, test_X.squeeze(-1))


class _Counted(TransformedTMarginals):
    """Counts how many numbers the cdf is evaluated at, and brackets quantiles in one of several ways."""

    kind, count = "both", 0

    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        reach = torch.full_like(level, 1e3)
        if self.kind == "none":
            return -reach, reach
        if self.kind == "hull":
            return self.hull(level)
        if self.kind == "single weight":
            low, high = self.single_weight_bounds(level, sharp=False)
            return torch.maximum(low, -reach), torch.minimum(high, reach)
        return super().bracket(level)

    def first_guess(self, level: Tensor) -> Tensor:
        if self.kind == "hull and first guess":
            return super().first_guess(level)
        low, high = self.bracket(level)
        return 0.5 * (low + high)

    def component_cdf(self, value: Tensor) -> Tensor:
        type(self).count += value.numel()
        return super().component_cdf(value)

    def component_survival(self, value: Tensor) -> Tensor:
        type(self).count += value.numel()
        return super().component_survival(value)


def _bounds(bars: Table, notes: list[str], trials: int) -> Table:
    kinds = ("none", "hull", "single weight", "hull and sharp single weight", "hull and first guess")
    table = Table(
        "transformed_bounds",
        ("bounds", "evaluations_per_quantile", "seconds"),
        notes=[*notes, f"levels 0.05, 0.5 and 0.95 at 100 points, n = 200 of Levy, {trials} trials"],
    )
    counts, seconds = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0.0)
    for seed in range(trials):
        data = levy(200, seed)
        model = BayesianTransformedGP(data.X, data.Y, num_nodes=32, least_effective=8)
        with torch.no_grad():
            law = model.posterior(data.test_X.unsqueeze(-2)).marginals
        for kind in kinds:
            counted = _Counted(*law.parameters, law.probabilities, law.df, law.warping)
            counted.kind, _Counted.count = kind, 0
            start = time.perf_counter()
            for p in (0.05, 0.5, 0.95):
                counted.quantile(torch.full(law.batch_shape, p, dtype=DOUBLE))
            seconds[kind] += time.perf_counter() - start
            counts[kind] += _Counted.count
        say(f"bounds {seed + 1} of {trials}")
    for kind in kinds:
        table.add(bounds=kind, evaluations_per_quantile=counts[kind] / (300 * trials), seconds=seconds[kind] / trials)
    for kind in kinds[3:]:
        add_bar(bars, "share of evaluations that bounds save", kind, 1 - counts[kind] / counts["none"], least=0.5)
    return table


def _leave_one_out(bars: Table, notes: list[str]) -> Table:
    table = Table("transformed_leave_one_out", ("n", "closed_form_s", "refits_s"), notes=notes)
    sizes = (400, 800, 1600)
    for n in sizes:
        data = levy(n, 0)
        model = BayesianTransformedGP(data.X, data.Y, quadrature="mode")
        u = model.coordinates().unsqueeze(0)
        model.use_nodes(Nodes.single(u.squeeze(0)))
        model.log_evidence  # noqa: B018  made once, outside of the clock
        closed = _clock(lambda model=model: model.leave_one_out())
        again = _clock(lambda model=model, u=u: model.log_posterior(u))
        one = _clock(lambda data=data, u=u, n=n: _refit(u, data, n - 1))
        table.add(n=n, closed_form_s=closed + again, refits_s=n * one)
    for column, most in (("closed_form_s", 3.3), ("refits_s", 4.3)):
        first, last = table.rows[0][column], table.rows[-1][column]
        slope = math.log(last / first) / math.log(sizes[-1] / sizes[0])  # type: ignore[operator]
        add_bar(bars, "leave-one-out: slope of the time in n", column, slope, most=most)
    return table


@torch.no_grad()
def _refit(u: Tensor, data: Data, n: int) -> None:
    BayesianTransformedGP(data.X[:n], data.Y[:n]).log_posterior(u)


def _clock(run: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def _timings(bars: Table, notes: list[str]) -> Table:
    table = Table("transformed_timings", ("what", "seconds"), notes=[*notes, "n = 200, sinh-arcsinh, 2 inputs"])
    data = synthetic(lambda z: torch.sinh(1.5 * z), 0, n=200)
    ready, medians = [], []
    test_X = torch.rand(1000, 1, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    for _ in range(3):
        start = time.process_time()
        model = BayesianTransformedGP(data.X, data.Y)
        model.log_evidence  # noqa: B018
        ready.append(time.process_time() - start)
        start = time.process_time()
        with torch.no_grad():
            _ = model.posterior(test_X).median
        medians.append(time.process_time() - start)
    table.notes.append("processor time, for other processes share the machine; the least of 3")
    table.add(what="model ready", seconds=min(ready))
    table.add(what="1,000 medians", seconds=min(medians))
    add_bar(bars, "seconds until a model is ready", "n = 200, sinh-arcsinh, 2 inputs", min(ready), most=5.0)
    add_bar(bars, "seconds of 1,000 medians", "n = 200, sinh-arcsinh, 2 inputs", min(medians), most=0.5)
    return table

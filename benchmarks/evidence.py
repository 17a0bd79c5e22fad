"""Evidence and fits: expectation propagation and bridge sampling against each other and scipy; fits against PairwiseGP.

Three tables: log evidence of probit classification; agreement of bridge sampling with scipy's cdf of the multivariate
normal on random boxes of up to twenty rows; and `fit_gpytorch_mll` of duels in six dimensions for `SkewGP` and
BoTorch's `PairwiseGP`, on the same duels.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.utils.probability import MVNXPB
from gpytorch.mlls import MarginalLogLikelihood
from scipy.stats import multivariate_normal
from torch import Tensor

from benchmarks._problems import Duels, classification, duel_data
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
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.propagation.corrections import corrected_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

DIMENSION = 6
NOISE = 0.1  # standard deviation of one value of a duel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--parts", nargs="+", choices=("sizes", "scipy", "fits"), default=["sizes", "scipy", "fits"])
    parser.add_argument("--seeds", type=int, help="runs of bridge sampling for each size; 10, or 3 with --quick")
    parser.add_argument("--mvnxpb-limit", type=int, default=200, help="largest number of rows for MVNXPB")
    parser.add_argument("--boxes", type=int, help="random boxes to compare with scipy; 40, or 10 with --quick")
    parser.add_argument("--fit-limit", type=float, default=120.0, help="seconds after which a fit is stopped")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    notes = [environment(), f"load average at the start {load_average()}"]
    bars = bars_table("evidence_bars")
    tables = []
    if "sizes" in options.parts:
        sizes = [70, 200] if options.quick else [70, 200, 500, 1000]
        tables.append(_sizes(sizes, options.seeds or (3 if options.quick else 10), options.mvnxpb_limit, bars))
    if "scipy" in options.parts:
        tables.append(_boxes(options.boxes or (10 if options.quick else 40), bars))
    if "fits" in options.parts:
        tables.append(_fits([20, 50] if options.quick else [20, 50, 100, 500], options.fit_limit, bars))
    notes.append(f"load average at the end {load_average()}")
    for table in (*tables, bars):
        table.notes = notes + table.notes
    publish([*tables, bars], folder)
    if folder is not None and "sizes" in options.parts:
        _plot(tables[0], folder / "evidence.png")


def _sizes(sizes: list[int], num_seeds: int, mvnxpb_limit: int, bars: Table) -> Table:
    table = Table(
        "evidence",
        (
            "n", "ep", "ep_s", "bridge", "standard_error", "sd_over_seeds", "bridge_s", "ep_error",
            "corrected_error", "corrected_s", "mvnxpb",
            "mvnxpb_error", "mvnxpb_s",
        ),
        notes=[f"probit classification; bridge: mean of {num_seeds} runs, the time of one, EP and draws included"],
    )  # fmt: skip
    ratios = []
    for n in sizes:
        problem = classification(n, seed=1)
        _, _ = _timed(lambda problem=problem: expectation_propagation(problem.distribution))  # warm-up
        approximation, ep_seconds = _timed(lambda problem=problem: expectation_propagation(problem.distribution))
        ep = float(approximation.log_normalizer)
        corrected, corrected_seconds = _timed(lambda ep=approximation: float(corrected_log_normalizer(ep)))
        values, errors, seconds = [], [], []
        for seed in range(num_seeds):
            fresh = classification(n, seed=1).distribution
            generator = torch.Generator().manual_seed(seed)
            estimate, took = _timed(lambda fresh=fresh, g=generator: bridge_log_normalizer(fresh, generator=g))
            values.append(float(estimate.value))
            errors.append(float(estimate.standard_error))
            seconds.append(took)
        exact, error = float(np.mean(values)), float(np.mean(errors))
        ratios.append(float(np.var(values, ddof=1) / np.mean(np.square(errors))))
        row = table.add(
            n=n, ep=ep, ep_s=ep_seconds, bridge=exact, standard_error=error,
            sd_over_seeds=float(np.std(values, ddof=1)), bridge_s=float(np.median(seconds)), ep_error=ep - exact,
            corrected_error=corrected - exact, corrected_s=corrected_seconds,
        )  # fmt: skip
        if n <= mvnxpb_limit:
            value, row["mvnxpb_s"] = _timed(lambda problem=problem: _mvnxpb(problem.distribution))
            row["mvnxpb"], row["mvnxpb_error"] = value, value - exact
        say(f"n = {n}: EP {ep:.3f}, bridge {exact:.3f} +- {error:.3f}")
        if n == 1000:
            add_bar(bars, "error of plain EP (method 'ep') in nats", f"n = {n}", abs(ep - exact), most=1)
            name = "error of corrected EP (method 'ep_corrected') in nats"
            add_bar(bars, name, f"n = {n}", abs(corrected - exact), most=1)
            add_bar(bars, "standard error of bridge sampling in nats", f"n = {n}", error, most=0.2)
            add_bar(bars, "seconds of bridge sampling", f"n = {n}", float(np.median(seconds)), most=10)
    degrees = len(sizes) * (num_seeds - 1)
    ratio = math.sqrt(float(np.mean(ratios)))
    name = "scatter of bridge sampling over its standard error"
    # two standard deviations of such a ratio where the standard error is right
    add_bar(bars, name, f"all n, {degrees} degrees of freedom", ratio, most=1 + 2 / math.sqrt(2 * degrees))
    return table


def _timed(function: Callable) -> tuple:
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def _mvnxpb(distribution: TruncatedNormal) -> float:
    bounds = torch.stack([distribution.lower, distribution.upper], -1) - distribution.mean.unsqueeze(-1)
    return float(MVNXPB(covariance_matrix=distribution.gamma, bounds=bounds).solve())


def _random_box(generator: torch.Generator, largest: int = 20) -> TruncatedNormal:
    """One- and two-sided rows with random correlation, noise, means and bounds."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape, generator=generator, dtype=torch.float64)

    m = int(torch.randint(1, largest + 1, (), generator=generator))
    root = torch.randn(m, m, generator=generator, dtype=torch.float64)
    root = root @ torch.diag(uniform(0, 1, m).square()) + uniform(-1, 1, 1)
    mean = uniform(-1, 1, m)
    noise = 10 ** uniform(-2, 0, m)
    sd = (root.square().sum(-1) + noise).sqrt()
    lower = mean - sd * uniform(-0.5, 2, m)
    upper = lower + sd * uniform(0.3, 3, m)
    kind = torch.randint(3, (m,), generator=generator)
    return TruncatedNormal(
        mean=mean,
        prior=root @ root.mT,
        lower=torch.where(kind == 0, -math.inf, lower),
        upper=torch.where(kind == 1, math.inf, upper),
        noise=noise,
    )


def _scipy_log_probability(distribution: TruncatedNormal, repeats: int = 4) -> tuple[float, float]:
    """Mean and standard error of repeated randomised quasi Monte Carlo."""
    m = distribution.num_rows
    reference = multivariate_normal(distribution.mean.numpy(), distribution.gamma.numpy())
    reference.maxpts, reference.abseps, reference.releps = 20_000 * m, 1e-300, 1e-5
    values = [
        float(reference.cdf(distribution.upper.numpy(), lower_limit=distribution.lower.numpy(), rng=seed))
        for seed in range(repeats)
    ]
    mean = float(np.mean(values))
    return math.log(mean), float(np.std(values, ddof=1)) / math.sqrt(repeats) / mean


def _boxes(count: int, bars: Table) -> Table:
    table = Table(
        "evidence_scipy",
        ("case", "m", "scipy", "scipy_error", "bridge", "standard_error", "deviation", "ep_error"),
        notes=["random boxes; deviation in standard errors of the difference"],
    )
    generator = torch.Generator().manual_seed(0)
    for case in range(count):
        distribution = _random_box(generator)
        exact, exact_error = _scipy_log_probability(distribution)
        estimate = bridge_log_normalizer(distribution, generator=torch.Generator().manual_seed(case))
        value, error = float(estimate.value), float(estimate.standard_error)
        table.add(
            case=case, m=distribution.num_rows, scipy=exact, scipy_error=exact_error, bridge=value,
            standard_error=error, deviation=(value - exact) / math.hypot(error, exact_error),
            ep_error=float(expectation_propagation(distribution).log_normalizer) - exact,
        )  # fmt: skip
    deviations = np.array([row["deviation"] for row in table.rows], dtype=float)
    spread = float(np.sqrt(np.mean(deviations**2)))
    table.notes.append(f"root mean square deviation {spread:.2f}; 1 if the standard errors are right")
    largest = float(np.abs(deviations).max())
    add_bar(bars, "largest deviation from scipy in standard errors", f"{count} random boxes, m <= 20", largest, most=3)
    say(f"scipy: largest deviation {largest:.2f}, root mean square {spread:.2f}")
    return table


def _fits(sizes: list[int], limit: float, bars: Table) -> Table:
    table = Table(
        "evidence_fits",
        ("duels", "model", "fit_s", "stopped", "same_seed_repeats", "spread_between_seeds", "lengthscales"),
        notes=[
            f"{DIMENSION}-d, two new points for each duel, noise sd {NOISE}; fits stopped after {limit:g} s",
            "spread: the largest relative difference of a lengthscale between seeds 0, 1 and 2",
        ],
    )
    makers = {"SkewGP": _skew_gp, "PairwiseGP": _pairwise_gp}
    for m in sizes:
        data = duel_data(m, NOISE, DIMENSION)
        took = {}
        for name, make in makers.items():
            if m == sizes[0]:
                _fit(make, data, seed=0, limit=limit)  # warm-up
            lengthscales, seconds, finished = _fit(make, data, seed=0, limit=limit)
            took[name] = seconds
            row = table.add(
                duels=m, model=name, fit_s=seconds, stopped=not finished,
                lengthscales=" ".join(f"{value:.3g}" for value in lengthscales.tolist()),
            )  # fmt: skip
            if finished and seconds < limit / 4:
                again = [_fit(make, data, seed=seed, limit=limit)[0] for seed in (0, 1, 2)]
                others = torch.stack([lengthscales, *again[1:]])
                row["same_seed_repeats"] = bool(torch.equal(again[0], lengthscales))
                row["spread_between_seeds"] = float((others.amax(0) / others.amin(0)).max()) - 1
            say(f"{m} duels, {name}: {seconds:.2f} s{'' if finished else ', stopped'}")
        if m in (100, 500):
            case = f"{m} duels: {took['SkewGP']:.2f} s, {took['PairwiseGP']:.2f} s"
            add_bar(bars, "time of a fit, SkewGP / PairwiseGP", case, took["SkewGP"] / took["PairwiseGP"], most=1)
    for row in table.rows:
        if row["model"] == "SkewGP" and row["spread_between_seeds"] is not None:
            case = f"{row['duels']} duels"
            spread = float(row["spread_between_seeds"])
            add_bar(bars, "relative spread of lengthscales between seeds", case, spread, most=0.05)
            add_bar(bars, "bit for bit under one seed (1: yes)", case, float(bool(row["same_seed_repeats"])), least=1)
    return table


def _skew_gp(data: Duels) -> MarginalLogLikelihood:
    model = SkewGP(data.X, Preference(data.pairs))
    return SkewGPMarginalLogLikelihood(model.likelihood, model)


def _pairwise_gp(data: Duels) -> MarginalLogLikelihood:
    model = PairwiseGP(data.X, data.pairs)
    return PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model)


def _fit(
    make: Callable[[Duels], MarginalLogLikelihood], data: Duels, seed: int, limit: float
) -> tuple[Tensor, float, bool]:
    """Lengthscales, seconds, and whether the fit ended by itself."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        began = time.perf_counter()
        mll = make(data)
        finished = True
        try:
            fit_gpytorch_mll(mll, optimizer_kwargs={"timeout_sec": limit}, max_attempts=1)
        except ModelFittingError:
            finished = False
        seconds = time.perf_counter() - began
        finished = finished and seconds < limit  # a fit that runs out of time returns as if it had converged
    return mll.model.covar_module.base_kernel.lengthscale.detach().flatten().clone(), seconds, finished


def _plot(table: Table, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    def column(name: str, rows: list) -> list[float]:
        return [float(row[name]) for row in rows]

    figure, axis = plt.subplots(figsize=(6, 4))
    n = column("n", table.rows)
    error = column("standard_error", table.rows)
    axis.errorbar(n, [0.0] * len(n), yerr=error, marker="o", capsize=4, label="bridge sampling, standard error")
    axis.plot(n, column("ep_error", table.rows), marker="s", label="expectation propagation")
    axis.plot(n, column("corrected_error", table.rows), marker="^", label="the same, corrected")
    known = [row for row in table.rows if row["mvnxpb_error"] is not None]
    axis.plot(column("n", known), column("mvnxpb_error", known), marker="^", label="MVNXPB")
    axis.set_xscale("log")
    axis.set_xlabel("n")
    axis.set_ylabel("log evidence less bridge sampling's (nats)")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)

"""Optimisation of functions whose values spread over orders of magnitude, by models with and without transforms."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Log, Power
from botorch.optim import optimize_acqf
from botorch.test_functions import Rosenbrock
from botorch.test_functions.synthetic import SyntheticTestFunction
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy import stats
from torch import Tensor

from benchmarks._reporting import Table, say
from benchmarks.transformed.data import DOUBLE
from benchmarks.transformed.runs import Runs
from botorch_skewgp.acquisition import QuantileBound
from botorch_skewgp.models import BayesianTransformedGP
from botorch_skewgp.test_functions import Colville, GoldsteinPrice

PROBLEMS: dict[str, Callable[[], SyntheticTestFunction]] = {
    "Goldstein-Price": lambda: GoldsteinPrice(dtype=DOUBLE),
    "Rosenbrock": lambda: Rosenbrock(dim=2, dtype=DOUBLE),
    "Colville": lambda: Colville(dtype=DOUBLE),
}
EVALUATIONS = (10, 20)  # after which regrets are reported; the last is the end
LEVEL = 0.05  # of the lower quantile bound
SHIFT = 1e-3  # of the logarithm, for functions whose least value is 0

Suggest = Callable[[Tensor, Tensor], AcquisitionFunction]  # from points of the unit cube and values to be minimised


def _transformed(X: Tensor, y: Tensor, num_nodes: int) -> BayesianTransformedGP:
    return BayesianTransformedGP(X, y, num_nodes=num_nodes, least_effective=num_nodes / 4)


def _gaussian(transform: Callable[[Tensor], Tensor]) -> Suggest:
    """Log expected improvement of a SingleTaskGP of transformed, then standardised outcomes."""

    def suggest(X: Tensor, y: Tensor) -> AcquisitionFunction:
        z = transform(y)
        model = SingleTaskGP(X, z)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return LogExpectedImprovement(model, best_f=z.min(), maximize=False)

    return suggest


def _methods(num_nodes: int) -> dict[str, Suggest]:
    power, log = Power(power=0.5), Log()
    return {
        "transformed, quantile bound": lambda X, y: QuantileBound(
            _transformed(X, y, num_nodes), probability=1 - LEVEL, maximize=False
        ),
        "Standardize, log expected improvement": _gaussian(lambda y: y),
        "Power 0.5, log expected improvement": _gaussian(lambda y: power(y)[0]),
        "Log, log expected improvement": _gaussian(lambda y: log(y + SHIFT)[0]),
    }


def _loop(problem: SyntheticTestFunction, suggest: Suggest, seed: int) -> list[float]:
    """The least value after `EVALUATIONS`; all methods of a seed start from the same points."""
    torch.manual_seed(seed)
    dim = problem.dim
    low, high = problem.bounds.to(DOUBLE)
    unit = torch.stack([torch.zeros(dim, dtype=DOUBLE), torch.ones(dim, dtype=DOUBLE)])
    X = draw_sobol_samples(unit, n=2 * dim + 2, q=1, seed=seed).squeeze(-2)
    y = problem(low + (high - low) * X).unsqueeze(-1)
    while len(X) < EVALUATIONS[-1]:
        candidate, _ = optimize_acqf(
            suggest(X, y), unit, q=1, num_restarts=2, raw_samples=64, options={"maxiter": 30, "batch_limit": 2}
        )
        X = torch.cat([X, candidate])
        y = torch.cat([y, problem(low + (high - low) * candidate).unsqueeze(-1)])
    least = y.squeeze(-1).cummin(0).values
    return [float(least[evaluations - 1]) for evaluations in EVALUATIONS]


def loops_tables(bars: Table, notes: list[str], seeds: int, num_nodes: int, folder: Path | None) -> list[Table]:
    """Log regret after some evaluations, and pairs of runs against the transformed process with quantile bounds."""
    del bars  # nothing was promised
    table = Table(
        "transformed_loops",
        ("problem", "method", "evaluations", "median_regret", "mean_log10_regret", "sd_log10_regret"),
        notes=[*notes, f"{seeds} seeds; values untransformed; 2 dim + 2 Sobol points first"],
    )
    paired = Table(
        "transformed_loops_paired",
        ("problem", "baseline", "gain_log10", "standard_error", "won", "wilcoxon_p"),
        notes=[*notes, "log10 of the regret of the baseline less that of quantile bounds, last evaluation, same start"],
    )
    after = [f"after_{i}" for i in EVALUATIONS]
    runs = Runs("transformed_loops_runs", ("problem", "seed", "method"), after, folder, notes)
    for label, make in PROBLEMS.items():
        problem, regrets = make(), {}
        for seed in range(seeds):
            for name, suggest in _methods(num_nodes).items():
                values = runs.get((label, seed, name), lambda s=suggest, p=problem, i=seed: _loop(p, s, i))
                best = [math.log10(max(value - problem.optimal_value, 1e-8)) for value in values]
                regrets.setdefault(name, []).append(best)
            say(f"{label} {seed + 1} of {seeds}")
        for name, of_method in regrets.items():
            for i, evaluations in enumerate(EVALUATIONS):
                final = [run[i] for run in of_method]
                spread = statistics.stdev(final) if len(final) > 1 else math.nan
                table.add(
                    problem=label,
                    method=name,
                    evaluations=evaluations,
                    median_regret=10 ** statistics.median(final),
                    mean_log10_regret=statistics.mean(final),
                    sd_log10_regret=spread,
                )
        ours, *others = regrets
        for name in others:
            gains = [b[-1] - a[-1] for a, b in zip(regrets[ours], regrets[name], strict=True)]
            paired.add(
                problem=label,
                baseline=name,
                gain_log10=statistics.mean(gains),
                standard_error=statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan,
                won=f"{sum(gain > 0 for gain in gains)} of {len(gains)}",
                wilcoxon_p=float(stats.wilcoxon(gains).pvalue) if len(gains) > 1 else math.nan,
            )
    return [table, paired]

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

from benchmarks._reporting import Cell, Table, say
from benchmarks._runs import Runs
from benchmarks._test_functions import Colville, GoldsteinPrice
from benchmarks.transformed.data import DOUBLE
from botorch_skewgp.transformed import BayesianTransformedGP, TransformedLogExpectedImprovement
from botorch_skewgp.warpings import Arcsinh, SinhArcsinh, Warping

PROBLEMS: dict[str, Callable[[], SyntheticTestFunction]] = {
    "Goldstein-Price": lambda: GoldsteinPrice(dtype=DOUBLE),
    "Rosenbrock": lambda: Rosenbrock(dim=2, dtype=DOUBLE),
    "Colville": lambda: Colville(dtype=DOUBLE),
}
STEPS = {2: 14, 4: 15}  # evaluations after the first 2 dim + 2, by dim; regrets are reported halfway, and at the end
FIRST_SEED = 200  # the acquisition function was chosen by a few of the seeds before
SHIFT = 1e-3  # of the logarithm, for functions whose least value is 0

Suggest = Callable[[Tensor, Tensor], AcquisitionFunction]  # from points of the unit cube and values to be minimised


def _transformed(warping: Callable[[], Warping], num_nodes: int) -> Suggest:
    """Log expected improvement on the warped scale."""

    def suggest(X: Tensor, y: Tensor) -> AcquisitionFunction:
        model = BayesianTransformedGP(X, y, warping=warping(), num_nodes=num_nodes, least_effective=num_nodes / 4)
        return TransformedLogExpectedImprovement(model, best_f=y.min(), maximize=False)

    return suggest


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
        "transformed, sinh-arcsinh": _transformed(SinhArcsinh, num_nodes),
        "transformed, arcsinh": _transformed(Arcsinh, num_nodes),
        "Standardize": _gaussian(lambda y: y),
        "Power 0.5": _gaussian(lambda y: power(y)[0]),
        "Log": _gaussian(lambda y: log(y + SHIFT)[0]),
    }


def _loop(problem: SyntheticTestFunction, suggest: Suggest, seed: int) -> list[float]:
    """The least value halfway and at the end; all methods of a seed start from the same points."""
    torch.manual_seed(seed)
    dim = problem.dim
    low, high = problem.bounds.to(DOUBLE)
    unit = torch.stack([torch.zeros(dim, dtype=DOUBLE), torch.ones(dim, dtype=DOUBLE)])
    X = draw_sobol_samples(unit, n=2 * dim + 2, q=1, seed=seed).squeeze(-2)
    y = problem(low + (high - low) * X).unsqueeze(-1)
    for _ in range(STEPS[dim]):
        candidate, _ = optimize_acqf(suggest(X, y), unit, q=1, num_restarts=4, raw_samples=64, options={"maxiter": 50})
        X = torch.cat([X, candidate])
        y = torch.cat([y, problem(low + (high - low) * candidate).unsqueeze(-1)])
    least = y.squeeze(-1).cummin(0).values
    return [float(least[-1 - STEPS[dim] // 2]), float(least[-1])]


def loops_tables(notes: list[str], seeds: int, num_nodes: int, folder: Path | None) -> list[Table]:
    """Log regret after some evaluations, and pairs of runs against the transformed process of each warping."""
    notes = [*notes, f"{seeds} seeds; values untransformed; 2 dim + 2 Sobol points first; log expected improvement"]
    table = Table(
        "transformed_loops",
        ("problem", "method", "evaluations", "median_regret", "mean_log10_regret", "sd_log10_regret"),
        notes=notes,
    )
    paired = Table(
        "transformed_loops_paired",
        ("problem", "warping", "baseline", "gain_log10", "standard_error", "won", "wilcoxon_p"),
        notes=[*notes, "log10 of the regret of the baseline less ours, at the end, from the same start"],
    )
    runs = Runs("transformed_loops_runs", ("problem", "seed", "method"), ("halfway", "at_the_end"), folder)
    problems = {label: make() for label, make in PROBLEMS.items()}
    regrets: dict[str, dict[str, list[list[float]]]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for label, problem in problems.items():
            for name, suggest in _methods(num_nodes).items():
                values = runs.get((label, seed, name), lambda s=suggest, p=problem, i=seed: _loop(p, s, i))
                best = [math.log10(max(value - problem.optimal_value, 1e-8)) for value in values]
                regrets.setdefault(label, {}).setdefault(name, []).append(best)
            say(f"{label} seed {seed}")
    for label, of_problem in regrets.items():
        dim = problems[label].dim
        end = 2 * dim + 2 + STEPS[dim]
        for name, of_method in of_problem.items():
            for i, evaluations in enumerate((end - STEPS[dim] // 2, end)):
                final = [run[i] for run in of_method]
                table.add(
                    problem=label,
                    method=name,
                    evaluations=evaluations,
                    median_regret=10 ** statistics.median(final),
                    mean_log10_regret=statistics.mean(final),
                    sd_log10_regret=statistics.stdev(final) if len(final) > 1 else math.nan,
                )
    ours = [name for name in regrets[next(iter(PROBLEMS))] if name.startswith("transformed")]
    for label, of_problem in [*regrets.items(), ("all", _joined(regrets))]:
        for warping in ours:
            for name in of_problem:
                if name not in ours:
                    gains = [b[-1] - a[-1] for a, b in zip(of_problem[warping], of_problem[name], strict=True)]
                    paired.add(problem=label, warping=warping, baseline=name, **_paired(gains))
    return [table, paired]


def _joined(regrets: dict[str, dict[str, list[list[float]]]]) -> dict[str, list[list[float]]]:
    """The runs of all problems together, by method."""
    methods = next(iter(regrets.values()))
    return {name: [run for of_problem in regrets.values() for run in of_problem[name]] for name in methods}


def _paired(gains: list[float]) -> dict[str, Cell]:
    enough = len(gains) > 1
    return {
        "gain_log10": statistics.mean(gains),
        "standard_error": statistics.stdev(gains) / math.sqrt(len(gains)) if enough else math.nan,
        "won": f"{sum(gain > 0 for gain in gains)} of {len(gains)}",
        "wilcoxon_p": float(stats.wilcoxon(gains).pvalue) if enough else math.nan,
    }

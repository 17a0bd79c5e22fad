"""Optimisation of functions whose values spread over orders of magnitude, by models with and without transforms."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Log, Power
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks._functions import find_utility, unit_cube
from benchmarks._race import Cell, Group, Race, Row, grid, mean_and_error
from benchmarks.transformed.predictions import NODES
from botorch_skewgp.transformed import BayesianTransformedGP, TransformedLogExpectedImprovement
from botorch_skewgp.warpings import Arcsinh, SinhArcsinh, Warping

PROBLEMS = {"Goldstein-Price": "goldstein", "Rosenbrock": "rosenbrock2", "Colville": "colville"}
STEPS = {2: 14, 4: 15}  # evaluations after the first 2 dim + 2, by dim; regrets are those halfway, and at the end
FIRST_SEED = 200  # the acquisition function was chosen by a few of the seeds before
MEASURES = ("halfway", "at_the_end")
SHIFT = 1e-3  # of the logarithm, for functions whose least value is 0

Suggest = Callable[[Tensor, Tensor], AcquisitionFunction]  # from points of the unit cube and values to be minimised


def _transformed(warping: Callable[[], Warping]) -> Suggest:
    """Log expected improvement on the warped scale."""

    def suggest(X: Tensor, y: Tensor) -> AcquisitionFunction:
        model = BayesianTransformedGP(X, y, warping=warping(), **NODES)
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


POWER, LOG = Power(power=0.5), Log()
METHODS: dict[str, Suggest] = {
    "transformed, sinh-arcsinh": _transformed(SinhArcsinh),
    "transformed, arcsinh": _transformed(Arcsinh),
    "Standardize": _gaussian(lambda y: y),
    "Power 0.5": _gaussian(lambda y: POWER(y)[0]),
    "Log": _gaussian(lambda y: LOG(y + SHIFT)[0]),
}
OURS = {"sinh_arcsinh": "transformed, sinh-arcsinh", "arcsinh": "transformed, arcsinh"}


def _run(problem: str, method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    """The least value halfway and at the end; all methods of a seed start from the same points."""
    function = find_utility(PROBLEMS[problem])
    dim, unit = function.dim, unit_cube(function.dim)
    steps = 2 if smoke else STEPS[dim]
    X = draw_sobol_samples(unit, n=2 * dim + 2, q=1, seed=seed).squeeze(-2)
    y = -function.evaluate(X).unsqueeze(-1)
    for _ in range(steps):
        acquisition = METHODS[method](X, y)
        candidate, _ = optimize_acqf(acquisition, unit, q=1, num_restarts=4, raw_samples=64, options={"maxiter": 50})
        X = torch.cat([X, candidate])
        y = torch.cat([y, -function.evaluate(candidate).unsqueeze(-1)])
    least = y.squeeze(-1).cummin(0).values
    return {"halfway": float(least[-1 - steps // 2]), "at_the_end": float(least[-1])}


def _regrets(row: Row) -> dict[str, Cell]:
    best = find_utility(PROBLEMS[row["problem"]]).best
    return {name: math.log10(max(float(row[name]) + best, 1e-8)) for name in MEASURES}


def _columns(runs: Group) -> dict[str, Cell]:
    cells: dict[str, Cell] = {f"median_{name}": 10 ** runs.median(name) for name in MEASURES}
    cells |= {"log10": runs.mean("at_the_end"), "error": runs.error("at_the_end")}
    for name, ours in OURS.items():
        mine, theirs = runs.beside("at_the_end", method=ours)
        cells[f"{name}_gains"], cells[f"{name}_error"] = mean_and_error(mine - theirs)
        cells[f"{name}_wins"] = int((theirs < mine).sum())
    return cells


RACES = (
    Race(
        "transformed_loops", grid(problem=PROBLEMS), grid(method=METHODS), range(FIRST_SEED, FIRST_SEED + 10), _run,
        MEASURES, _columns,
        ["values untransformed; 2 dim + 2 Sobol points first; log expected improvement; regrets",
         "gains, wins: log10 of the method's regret less that of a transformed process, from the same start"],
        derived=_regrets, pooled="problem", quick={"smoke": True},
    ),
)  # fmt: skip

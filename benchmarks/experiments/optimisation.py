"""Optimisation with duels, with numbers and duels, and with fixed hyperparameters (unified framework, figure 12 too;
preferential optimisation, figures 4 to 6): every new point, the best of 5,000, is compared with the current best one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.kernels import Kernel
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._functions import find_utility
from benchmarks._observations import rbf_kernel
from benchmarks._race import Cell, Group, Race, Row, grid
from benchmarks.experiments._models import GaussianApproximation, MomentMatched, Surrogate, build, fit_options
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import DuelingLogExpectedImprovement
from botorch_skewgp.fitting import fit_skew_gp, warm_start
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.observations import Numeric, Observation, Preference
from botorch_skewgp.papers import dueling

NUM_CANDIDATES, NUM_BEST, CHUNK = 5000, 200, 500
NUM_DRAWS, NUM_SAMPLES = 512, 512  # of the posterior; of what bounds and information are estimated from
FEW_SAMPLES, SOME_SAMPLES = 32, 128  # of what points are picked by for a closer look
REFIT_EVERY = 20  # iterations between fits of hyperparameters; every fifth of the first ten
MOST_STEPS = 50  # of a fit
REACH = {"rosenbrock5": 3.0, "levy2": 1.0}  # of the papers' domains, where BoTorch has others

FIRST_DUELS = {  # five on the functions of the unified paper alone
    "cosine": 5, "langermann": 5, "colville": 5, "camel": 10, "hartmann6": 10, "rosenbrock5": 10, "forrester": 10,
    "goldstein": 10, "levy2": 10,
}  # fmt: skip
DUELISTS = (
    "SkewGP, UCB", "EP, UCB", "PairwiseGP, UCB", "SkewGP, EIIG 0.1", "EP, EIIG 0.1", "PairwiseGP, EIIG 0.1",
    "SkewGP, improvement", "SkewGP, Thompson", "SkewGP, EIIG 0.5", "random",
)  # fmt: skip
WITH_NUMBERS = ("cosine", "camel", "langermann", "colville", "rosenbrock5", "hartmann6")
FIXED, STEPS = ("SkewGP", "EP", "Laplace"), 4
AFTER = tuple(f"after_{k}" for k in range(STEPS + 1))
WIDTH, LENGTHSCALE, VARIANCE = 5.2, 0.33, 50.0  # of the domain, and those of the unified framework, figures 4 and 5
SMALL = {"first_duels": 2, "iterations": 1, "smoke": True}

FLOOR = 1e-6  # of regrets whose logarithm is taken
NOTES = (
    "half_way, regret: means, and the standard error of the latter, whose median follows",
    f"log10_less: log10 of the regret of the first method less that of the method, paired (negative: the first is "
    f"better), floored at {FLOOR:g}; of all functions, errors are over runs",
)


@dataclass
class History:
    """Points with a value each, duels between rows of them (winner first), and rows whose value is known."""

    points: Tensor
    value: Callable[[Tensor], Tensor]
    is_valid: Callable[[Tensor], Tensor] = lambda X: torch.ones(len(X), dtype=torch.bool)
    pairs: list[list[int]] = field(default_factory=list)
    measured: list[int] = field(default_factory=list)

    @property
    def valid(self) -> Tensor:
        return self.is_valid(self.points)

    def add(self, point: Tensor) -> int:
        """Add a point; its row."""
        self.points = torch.cat([self.points, point.reshape(1, -1)])
        return len(self.points) - 1

    def duel(self, first: int, second: int) -> None:
        a, b = self.value(self.points[[first, second]]).tolist()
        self.pairs.append([first, second] if a > b else [second, first])

    def observations(self) -> list[Observation]:
        found: list[Observation] = [Preference(torch.tensor(self.pairs))]
        if self.measured:
            index = torch.tensor(self.measured)
            found.append(Numeric(self.value(self.points[index]), index=index))
        return found


class Fitter:
    """Makes models of a growing history, and fits hyperparameters every now and then; with a kernel never."""

    def __init__(
        self, model: str, smoke: bool = False, likelihood: RowLikelihood | None = None, kernel: Kernel | None = None
    ) -> None:
        self.model, self.likelihood, self.kernel = model, likelihood, kernel
        self.num_draws = 16 if smoke else NUM_DRAWS
        self.options: dict[str, Any] = fit_options(1 if smoke else MOST_STEPS)
        self.fitted: Any = None
        self.number = 0

    def __call__(self, points: Tensor, observations: list[Observation]) -> Any:
        """The model of what is known now."""
        due = self.number in (5, 10) or self.number % REFIT_EVERY == 0
        self.number += 1
        if self.model == "PairwiseGP":
            (duels,) = observations
            assert isinstance(duels, Preference)
            if due:
                self.fitted = PairwiseGP(points, duels.pairs)
                mll = PairwiseLaplaceMarginalLogLikelihood(self.fitted.likelihood, self.fitted)
                fit_gpytorch_mll(mll, **self.options)
            return Surrogate(PairwiseGP(points, duels.pairs, covar_module=self.fitted.covar_module).eval())
        has_numbers = any(isinstance(observation, Numeric) for observation in observations)
        outcomes = {"outcome_transform": Standardize(m=1)} if has_numbers else {}
        modules: dict[str, Any] = {"covar_module": self.kernel, "mean_module": ZeroMean()}
        if self.kernel is None:
            if due:
                given = {} if self.likelihood is None else {"likelihood": deepcopy(self.likelihood)}
                fitted: Any = build("SkewGP", points, observations, self.num_draws, **given, **deepcopy(outcomes))
                if self.fitted is not None:
                    warm_start(fitted, self.fitted)
                fit_skew_gp(fitted, **self.options)
                self.fitted = fitted
            modules = {name: getattr(self.fitted, name) for name in ("covar_module", "mean_module", "likelihood")}
        return build(self.model, points, observations, self.num_draws, **modules, **outcomes).eval()


ACQUISITIONS: dict[str, Callable[[Any, Tensor, int, int], AcquisitionFunction]] = {
    "UCB": lambda model, best, seed, num: dueling.DuelingUpperCredibleBound(model, best, sampler=_sampler(seed, num)),
    "EIIG 0.1": lambda model, best, seed, num: dueling.ExpectedImprovementInformationGain(
        model, best, 0.1, _sampler(seed, num)
    ),
    "EIIG 0.5": lambda model, best, seed, num: dueling.ExpectedImprovementInformationGain(
        model, best, 0.5, _sampler(seed, num)
    ),
    "Thompson": lambda model, best, seed, num: dueling.DuelingThompsonSampling(
        model, best, generator=torch.Generator().manual_seed(seed)
    ),
    "improvement": lambda model, best, seed, num: DuelingLogExpectedImprovement(model, best),
}


def _sampler(seed: int, num_samples: int) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([num_samples]), seed=seed)


@torch.no_grad()
def choose(name: str, model: SkewGP | Surrogate, best: Tensor, seed: int, X: Tensor) -> int:
    """The row of the largest acquisition value, among the best 200 by few samples where these foresee it."""
    rows = torch.arange(len(X))
    rough = None
    if isinstance(model, Surrogate | GaussianApproximation):
        rough = ACQUISITIONS[name](MomentMatched(model), best, seed, FEW_SAMPLES)
    elif name.startswith("EIIG"):
        rough = ACQUISITIONS[name](model, best, seed, SOME_SAMPLES)
    if rough is not None and len(X) > NUM_BEST:
        rows = values_at(rough, X).topk(NUM_BEST).indices
    values = values_at(ACQUISITIONS[name](model, best, seed, NUM_SAMPLES), X[rows])
    return int(rows[values.argmax()])


def values_at(acquisition: AcquisitionFunction, X: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([acquisition(part.unsqueeze(-2)) for part in X.split(CHUNK)])


def search(
    history: History,
    fit: Callable[[], SkewGP | Surrogate],
    answer: Callable[[int, int, int], None],
    regret: Callable[[Tensor], float],
    acquisition: str,
    steps: int,
    generator: torch.Generator,
    seed: int,
    among: Callable[[Tensor], Tensor] = lambda X: X,
    smoke: bool = False,
) -> dict[str, Cell]:
    """The regret of the best valid point, by the posterior mean, before each question and after the last."""
    trace, began = [], time.process_time()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for step in range(steps + 1):
            model = fit()
            rows = history.valid.nonzero().squeeze(-1)
            with torch.no_grad():
                best = int(rows[model.posterior(history.points[rows]).mean.flatten().argmax()])
            trace.append(regret(history.points[best]))
            if step == steps:
                break
            num = 100 if smoke else NUM_CANDIDATES
            X = among(torch.rand(num, history.points.shape[-1], generator=generator, dtype=torch.float64))
            chosen = 0
            if acquisition != "random":
                chosen = choose(acquisition, model, history.points[best], 1000 * seed + step, X)
            answer(step, history.add(X[chosen]), best)
    seconds = (time.process_time() - began) / len(trace)
    return {"regret": " ".join(f"{value:.4g}" for value in trace), "seconds_per_step": f"{seconds:.4f}"}


def optimise(
    function: str,
    method: str,
    seed: int,
    first_duels: int,
    iterations: int,
    first_numbers: int = 0,
    number_every: int = 0,
    smoke: bool = False,
    kernel: Kernel | None = None,
) -> dict[str, Cell]:
    """A search after duels of fresh points and values of the first; each `number_every`th question is a number."""
    utility = find_utility(function, REACH.get(function))
    model, _, acquisition = ("SkewGP, random" if method == "random" else method).partition(", ")
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(2 * first_duels, utility.dim, generator=generator, dtype=torch.float64)
    history = History(points, utility.evaluate, measured=[*range(first_numbers)])
    for k in range(first_duels):
        history.duel(2 * k, 2 * k + 1)
    fitter = Fitter(model, smoke, kernel=kernel)

    def answer(step: int, new: int, best: int) -> None:
        if number_every and step % number_every == number_every - 1:
            history.measured.append(new)
        else:
            history.duel(new, best)

    return search(
        history, lambda: fitter(history.points, history.observations()), answer,
        lambda x: utility.best - float(utility.evaluate(x)), acquisition, iterations, generator, seed, smoke=smoke,
    )  # fmt: skip


# Tables and pictures of regret against questions


def trace_of(row: Row) -> list[float]:
    return [float(value) for value in row["regret"].split()]


def regrets(row: Row) -> dict[str, Cell]:
    trace = trace_of(row)
    return {"half_way": trace[len(trace) // 2], "final": trace[-1], "log10": math.log10(max(trace[-1], FLOOR))}


def regret_columns(reference: str, runs: Group) -> dict[str, Cell]:
    """Regret half way and at the end, and the logarithm of the latter beside that of a reference method, paired."""
    more, its_error = runs.less("log10", method=reference)
    return {
        "trials": len(runs), "half_way": runs.mean("half_way"), "regret": runs.mean("final"),
        "error": runs.error("final"), "median": runs.median("final"), "log10_less": -more, "its_error": its_error,
        "seconds_per_step": runs.mean("seconds_per_step"), "error_of_seconds": runs.error("seconds_per_step"),
    }  # fmt: skip


def plot_regret(figure: Any, rows: Sequence[Row], xlabel: str) -> None:
    """Mean regret and its standard error against questions, a panel for every function."""
    rows = [{"function": "regret", **row} for row in rows]
    functions = list(dict.fromkeys(row["function"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    across = min(len(functions), 3)
    down = math.ceil(len(functions) / across)
    figure.set_size_inches(4 * across if across > 1 else 6, 3 * down + (0.6 if across > 1 else 1.0))
    panels = figure.subplots(down, across, squeeze=False).flat
    handles = {}
    for function, panel in zip(functions, panels, strict=False):  # functions first: what is left of panels is hidden
        for i, method in enumerate(methods):
            traces = [trace_of(row) for row in rows if (row["function"], row["method"]) == (function, method)]
            if traces:
                values = torch.tensor(traces, dtype=torch.float64)
                mean, error = values.mean(0).numpy(), (values.std(0, correction=0) / len(values) ** 0.5).numpy()
                steps = torch.arange(len(mean)).numpy()
                color, style = f"C{i % 10}", "-" if i < 10 else "--"
                (handles[method],) = panel.semilogy(steps, mean.clip(FLOOR), color=color, ls=style)
                panel.fill_between(steps, (mean - error).clip(FLOOR), mean + error, color=color, alpha=0.15)
        panel.set(title=function, xlabel=xlabel, ylabel="regret")
    for panel in panels:
        panel.set_axis_off()
    place = {"loc": "outside lower center", "ncols": 4 if across > 1 else 2}
    figure.legend(handles.values(), handles.keys(), **place, frameon=False, fontsize=8)


# Races


def _preferential(function: str, method: str, seed: int, **small: Any) -> dict[str, Cell]:
    return optimise(function, method, seed, **{"first_duels": FIRST_DUELS[function], "iterations": 100, **small})


def _mixed(function: str, method: str, seed: int, **small: Any) -> dict[str, Cell]:
    """Five duels and five numbers, then a number for every fourth question, or duels in the place of numbers."""
    model, _, duels_only = method.partition(", ")
    numbers = {} if duels_only else {"first_numbers": 2 if small else 5, "number_every": 1 if small else 4}
    return optimise(function, f"{model}, UCB", seed, **{"first_duels": 5, "iterations": 60, **small}, **numbers)


def _fixed(method: str, seed: int, **small: Any) -> dict[str, Cell]:
    settings = {"first_duels": 5, "iterations": 30, "kernel": rbf_kernel(VARIANCE, LENGTHSCALE / WIDTH), **small}
    return optimise("cosine", f"{method}, UCB", seed, **settings)


MEASURES = ("regret", "seconds_per_step")
RACES = (
    Race("experiments/fixed_hyperparameters", [{}], grid(method=FIXED), range(20), _fixed, MEASURES,
         lambda runs: {**{name: runs.mean(name) for name in AFTER if name in runs.rows[0]},
                       **{f"error_{name}": runs.error(name) for name in AFTER if name in runs.rows[0]},
                       **regret_columns(FIXED[0], runs)}, NOTES,
         derived=lambda row: {**regrets(row), **dict(zip(AFTER, trace_of(row), strict=False))},
         quick=SMALL),
    Race("experiments/mixed_optimisation", grid(function=WITH_NUMBERS), grid(method=(*FIXED, "SkewGP, duels only")),
         range(20), _mixed, MEASURES, partial(regret_columns, FIXED[0]), NOTES, derived=regrets, pooled="function",
         quick=SMALL),
    Race("experiments/preferential_optimisation", grid(function=FIRST_DUELS), grid(method=DUELISTS), range(20),
         _preferential, MEASURES, partial(regret_columns, DUELISTS[0]), NOTES, derived=regrets, pooled="function",
         plot=partial(plot_regret, xlabel="duels"), quick=SMALL),
)  # fmt: skip

"""Which pair to ask about next, from the first duel on: methods of preferential optimisation raced on known functions.

Protocol. Functions, judges, first duels, methods and measures were fixed before the first look at results; the budget
of the optimiser, refits after every third duel and the look at 30 duels came later, to save time. Priors were chosen on
other seeds, 0 to 2 and 200 to 205, than those that are stored, which begin at 100. A run is a function, a judge, a
method and a seed. Ten first duels between twenty Sobol points are the same for all methods; then the method asks, the
judge answers, and the method recommends, until the wanted number of duels. Inputs are scaled to the unit cube; nobody
sees a value. Reported is the simple regret of the recommended point at 20, 30, 40, 60 and 100 duels, and its mean from
the tenth duel on. Runs of different methods with one seed share the first duels and the judge's noise, and are compared
in pairs: by mean rank over all (function, judge, seed), and by the paired difference of log10 regret with its standard
error over seeds.

Functions are maximised, and have known optima: the six-hump camel on [-2, 2] x [-1, 1], Levy in 2 and 4 dimensions,
Hartmann in 3 and 6, Ackley in 4, Rosenbrock in 5, and Alpine in 4; besides Branin and Griewank in 3, on which nothing
was ever chosen, and ones of ten and more inputs; these do not count in what is said of all functions. Judges:
"consistent", with noise on each value of 0.01 standard deviations of the function (over the domain); "noisy", of 0.1;
"very noisy", of 0.3; "confused", without noise but wrong in 30 % of the duels in which both points are among the
function's best percent; "slips 5 %" and "slips 20 %", consistent but for as many answers that are drawn evenly.

Methods differ in their model, in the pair they ask about and in what they recommend:

- `default`: what `next_pair` and `recommend` do unless told otherwise: qEUBO's free pairs.
- `challenger`: the default before the judges that err were looked at: the challenger of the recommended point with the
  largest expected improvement on it, and a mode of the output scale of 1,000 in place of 30.
- `best challenged`: the default but for its pairs, the recommended point and its challenger with the largest expected
  improvement on it.
- `slips`, `slips, EP`: the default with a learned rate of slips, exact and by expectation propagation.
- `HB-EI`: the hallucination believer of Takeno, Nomura and Karasuyama (ICML 2023) with that paper's numbers, output
  scale 10,000 in units of the noise variance and lengthscales in [0.1, 0.5] by evidence. The winner of the last duel is
  one arm and the recommendation. Our implementation, on our draws; the first winner is the point of largest posterior
  mean, nobody tells which first point is best.
- `qEUBO PairwiseGP`: BoTorch's model, free pairs; the point of largest posterior mean among those seen.
- `former default`: qEUBO's free pairs with the priors before this benchmark (output scale LogNormal(log 10, 1.5), the
  dimension-scaled prior of lengthscales).
- `random`: pairs of uniform points.

All optimise acquisition functions with the same budget (4 restarts, 64 raw samples, 50 iterations). SkewGPs make 512
draws and are fitted after every third duel, from the last hyperparameters; PairwiseGP, which cannot go on from given
ones, after every duel. Seconds are those of the processor, on one thread. Every run is a row of a file; runs that are
there are not repeated.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks._challengers import hallucination_believer
from benchmarks._reporting import RESULTS, Table, environment, load_average, publish, say
from benchmarks._runs import Runs
from benchmarks._utilities import FUNCTIONS, OTHER_FUNCTIONS, Utility, find_utility
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Preference
from botorch_skewgp.truncated.draws import DrawSettings

FIRST, CHECKPOINTS = 10, (20, 30, 40, 60, 100)
REFIT = 3  # duels between fits
BUDGET: dict[str, Any] = {"num_restarts": 4, "raw_samples": 64, "options": {"maxiter": 50}}

# Judges

JUDGES = {"consistent": 0.01, "noisy": 0.1, "very noisy": 0.3, "confused": 0.0, "slips 5 %": 0.01, "slips 20 %": 0.01}
SLIPS = {"slips 5 %": 0.05, "slips 20 %": 0.2}  # answers drawn evenly, whatever the points are
WRONG = 0.3  # of a confused judge's answers among the best percent


@dataclass
class Judge:
    """Answers duels; the k-th answer's noise depends on the seed alone."""

    utility: Utility
    kind: str
    generator: torch.Generator

    def __post_init__(self) -> None:
        self.deviation, self.top = self.utility.quantiles()

    def first_wins(self, pair: Tensor) -> bool:
        """Whether the first row of a `2 x d` tensor beats the second."""
        noise = torch.randn(2, generator=self.generator, dtype=torch.float64)
        errs = float(torch.rand(1, generator=self.generator)) < WRONG
        values = self.utility.evaluate(pair)
        seen = values + JUDGES[self.kind] * self.deviation * noise
        wins = bool(seen[0] > seen[1])
        if self.kind in SLIPS:
            slips, first = torch.rand(2, generator=self.generator, dtype=torch.float64).tolist()
            return first < 0.5 if slips < SLIPS[self.kind] else wins
        return not wins if self.kind == "confused" and errs and bool((values > self.top).all()) else wins


# Methods


@dataclass
class History:
    """What has been asked: points, and rows of them, winner first."""

    points: Tensor
    pairs: Tensor
    model: Model | None = None
    state: dict[str, Tensor] = field(default_factory=dict)
    recommended: int = 0

    def add(self, pair: Tensor, first_wins: bool) -> None:
        """Note a duel; points that are there already are not repeated."""
        rows = []
        for point in pair:
            same = (self.points - point).abs().amax(-1) == 0
            if bool(same.any()):
                rows.append(int(same.nonzero()[0]))
            else:
                self.points = torch.cat([self.points, point.unsqueeze(0)])
                rows.append(len(self.points) - 1)
        self.pairs = torch.cat([self.pairs, torch.tensor([rows if first_wins else rows[::-1]])])


@dataclass(frozen=True)
class Method:
    """A kernel for the SkewGP (or PairwiseGP instead), how to ask, and what to recommend.

    Args:
        ask: Options of `next_pair`; `None` for random pairs.
        covar_module: Builds the kernel for a dimension; the model's default if `None`.
        rival: Makes the challenger of the recommended point that is asked about.
        winner: Whether the winner of the last duel is recommended, and so the incumbent.
        pairwise: Whether the model is BoTorch's PairwiseGP.
    """

    ask: dict[str, Any] | None = field(default_factory=dict)
    covar_module: Callable[[int], Kernel] | None = None
    rival: Callable[[Model, Tensor], AcquisitionFunction] | None = None
    winner: bool = False
    pairwise: bool = False
    learn_slip: bool = False
    approximation: Literal["ep"] | None = None

    def fit(self, history: History) -> Model:
        """Fit the model of all duels, from the last step's hyperparameters."""
        if self.pairwise:
            model: Any = PairwiseGP(history.points, history.pairs)
            objective: Any = PairwiseLaplaceMarginalLogLikelihood
        else:
            kernel = None if self.covar_module is None else self.covar_module(history.points.shape[-1])
            settings = DrawSettings(num_draws=512)
            model = SkewGP(
                history.points,
                Preference(history.pairs),
                likelihood=PreferenceLikelihood(learn_slip=self.learn_slip),
                covar_module=kernel,
                draw_settings=settings,
                approximation=self.approximation,
            )
            objective = SkewGPMarginalLogLikelihood
        hyperparameters = dict(model.named_parameters())
        fits = self.pairwise or (len(history.pairs) - FIRST) % REFIT == 0
        if history.state and not self.pairwise:
            with torch.no_grad():
                for name, value in history.state.items():
                    if not (fits and name == "likelihood.raw_slip"):  # a fit from a rate of zero stays there
                        hyperparameters[name].copy_(value)
        if fits:
            mll = objective(model.likelihood, model)
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 50}}, warning_handler=lambda _: True)
            history.state = {name: p.detach().clone() for name, p in hyperparameters.items() if p.numel()}
        return model.eval()

    def recommend(self, model: Model, history: History) -> int:
        """The row of the recommended point."""
        if self.winner and len(history.pairs) > FIRST:
            return int(history.pairs[-1, 0])
        with torch.no_grad():
            best, _ = recommend(model, X_candidates=history.points)
        return int((history.points - best).abs().sum(-1).argmin())

    def pair(self, model: Model, history: History, generator: torch.Generator) -> Tensor:
        """The next pair."""
        d = history.points.shape[-1]
        if self.ask is None:
            return torch.rand(2, d, generator=generator, dtype=torch.float64)
        bounds = torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.float64)
        asked = dict(self.ask)
        if self.rival is not None:
            asked["method"] = self.rival(model, history.points[history.recommended])
        pair, _ = next_pair(model, bounds, **asked, **BUDGET)
        return pair.detach()


def _published(dim: int) -> Kernel:
    """The hallucination believer's numbers: variance 1 and noise of standard deviation 0.01, lengthscales in a box."""
    base = RBFKernel(ard_num_dims=dim, lengthscale_constraint=Interval(0.1, 0.5, initial_value=0.3))
    kernel = ScaleKernel(base)
    kernel.outputscale = 1e4
    kernel.raw_outputscale.requires_grad_(False)
    return kernel


def former_covar_module(dim: int) -> Kernel:
    """The default kernel before this benchmark."""
    prior = LogNormalPrior(math.log(10.0), 1.5)
    kernel = ScaleKernel(
        get_covar_module_with_dim_scaled_prior(ard_num_dims=dim), prior, Interval(1e-4, 1e4, transform=None)
    )
    kernel.outputscale = prior.mode
    return kernel


def _trusting(dim: int) -> Kernel:
    """The default kernel with the output scale's prior that trusts answers: LogNormal with a mode of 1,000."""
    kernel = default_covar_module(dim, [Preference([[0, 1]])])
    prior = LogNormalPrior(math.log(1000.0) + 1.5**2, 1.5)
    kernel.register_prior("outputscale_prior", prior, "outputscale")
    kernel.outputscale = 1000.0
    return kernel


METHODS: dict[str, Method] = {
    "default": Method(),
    "best challenged": Method({"method": "expected_improvement"}),
    "challenger": Method({"method": "expected_improvement"}, _trusting),
    "slips": Method(learn_slip=True),
    "slips, EP": Method(learn_slip=True, approximation="ep"),
    "HB-EI": Method({}, _published, hallucination_believer, winner=True),
    "qEUBO PairwiseGP": Method(pairwise=True),
    "former default": Method({}, former_covar_module),
    "random": Method(None),
}

# Runs

KEYS = ("function", "judge", "method", "seed", "duels")


def _run(function: str, judge_kind: str, method_name: str, seed: int, duels: int) -> dict[str, Any]:
    """One run; its trace is the regret of the recommended point from the tenth duel on."""
    torch.set_num_threads(1)
    utility, method = find_utility(function), METHODS[method_name]
    judge = Judge(utility, judge_kind, torch.Generator().manual_seed(seed))
    bounds = torch.tensor([[0.0] * utility.dim, [1.0] * utility.dim], dtype=torch.float64)
    first = draw_sobol_samples(bounds, n=FIRST, q=2, seed=seed)
    history = History(first.new_empty(0, utility.dim), torch.empty(0, 2, dtype=torch.long))
    for pair in first:
        history.add(pair, judge.first_wins(pair))
    generator = torch.Generator().manual_seed(seed)
    trace, began = [], time.process_time()
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        while True:
            model = method.fit(history)
            history.recommended = method.recommend(model, history)
            trace.append(utility.best - float(utility.evaluate(history.points[history.recommended])))
            if len(history.pairs) == duels:
                break
            pair = method.pair(model, history, generator)
            history.add(pair, judge.first_wins(pair))
    seconds = (time.process_time() - began) / len(trace)
    shown = " ".join(f"{regret:.3g}" for regret in trace)
    case = dict(zip(KEYS, (function, judge_kind, method_name, seed, duels), strict=True))
    return {**case, "seconds_per_step": f"{seconds:.3g}", "trace": shown}


# Reports


def _at(row: dict[str, Any], duels: int) -> float | None:
    trace = [float(value) for value in row["trace"].split()]
    return trace[duels - FIRST] if duels - FIRST < len(trace) else None


def _tables(rows: list[dict[str, Any]], checkpoints: Iterable[int]) -> list[Table]:
    """Medians for every function and judge, paired comparisons with `default`, and these over all functions."""
    columns = [f"regret_{n}" for n in checkpoints]
    medians = Table(
        "decisions",
        ("function", "judge", "method", "seeds", *columns, "mean_regret", "seconds_per_step"),
        notes=[environment(), "medians over seeds of the recommended point's regret"],
    )
    paired = Table(
        "decisions_paired",
        ("function", "judge", "duels", "method", "seeds", "log10_difference", "standard_error", "mean_rank"),
        notes=[
            "log10_difference: log10 regret of the default less the method's, paired by seed (negative: the default is "
            "better), floored at 1e-6; mean_rank: of the method among all, over seeds that all ran with, 1 is best"
        ],
    )
    overall = Table(
        "decisions_overall",
        ("judge", "duels", "method", "functions", "runs", "mean_rank", "log10_difference", "standard_error", "behind"),
        notes=[
            "over all functions: mean ranks and paired differences as in decisions_paired, standard errors over runs; "
            "behind: functions on which the default is behind the method by more than two standard errors"
        ],
    )
    pooled: dict[tuple[str, int, str], list[tuple[np.ndarray, np.ndarray]]] = {}
    cases = sorted({(row["function"], row["judge"]) for row in rows}, key=lambda case: (case[1], case[0]))
    for function, judge in cases:
        here = [row for row in rows if (row["function"], row["judge"]) == (function, judge)]
        methods = [name for name in METHODS if any(row["method"] == name for row in here)]
        by = {(row["method"], int(row["seed"])): row for row in here}
        for name in methods:
            mine = [row for row in here if row["method"] == name]
            cells: dict[str, Any] = {"function": function, "judge": judge, "method": name, "seeds": len(mine)}
            for n in checkpoints:
                found = [value for row in mine if (value := _at(row, n)) is not None]
                cells[f"regret_{n}"] = float(np.median(found)) if found else None
            means = [float(np.mean([float(v) for v in row["trace"].split()])) for row in mine]
            cells["mean_regret"] = float(np.median(means))
            cells["seconds_per_step"] = float(np.median([float(row["seconds_per_step"]) for row in mine]))
            medians.add(**cells)
        for n in checkpoints:
            logs = {key: math.log10(max(value, 1e-6)) for key, row in by.items() if (value := _at(row, n)) is not None}
            there = [name for name in methods if any(method == name for method, _ in logs)]
            together = sorted({seed for _, seed in logs if all((name, seed) in logs for name in there)})
            grid = np.array([[logs[name, seed] for seed in together] for name in there])
            ranks = 1 + (grid[:, None] > grid[None]).sum(1) + 0.5 * ((grid[:, None] == grid[None]).sum(1) - 1)
            for name, places in zip(there, ranks, strict=True):
                seeds = sorted({seed for _, seed in logs if ("default", seed) in logs and (name, seed) in logs})
                if not seeds:
                    continue
                difference = np.array([logs["default", seed] - logs[name, seed] for seed in seeds])
                paired.add(
                    function=function, judge=judge, duels=n, method=name, seeds=len(seeds),
                    log10_difference=float(difference.mean()), standard_error=_error(difference),
                    mean_rank=float(places.mean()) if together else None,
                )  # fmt: skip
                if function in FUNCTIONS:
                    pooled.setdefault((judge, n, name), []).append((difference, places))
    for (judge, n, name), cells in pooled.items():
        differences, ranks = (np.concatenate(parts) for parts in zip(*cells, strict=True))
        overall.add(
            judge=judge, duels=n, method=name, functions=len(cells), runs=len(differences),
            mean_rank=float(ranks.mean()) if len(ranks) else None,
            log10_difference=float(differences.mean()), standard_error=_error(differences),
            behind=sum(bool(part.mean() > 2 * _error(part)) for part, _ in cells),
        )  # fmt: skip
    return [medians, paired, overall]


def _error(differences: np.ndarray) -> float:
    """The standard error of a mean; NaN for a single number."""
    return float(differences.std(ddof=1)) / math.sqrt(len(differences)) if len(differences) > 1 else math.nan


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Median regret against duels, a panel for every function and judge."""
    from matplotlib.figure import Figure

    cases = sorted({(row["function"], row["judge"]) for row in rows}, key=lambda case: (case[1], case[0]))
    across = min(len(cases), 4)
    down = math.ceil(len(cases) / across)
    figure = Figure(figsize=(3.4 * across, 2.8 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flat
    for panel, (function, judge) in zip(panels, cases, strict=False):
        for i, name in enumerate(METHODS):
            traces = [
                [float(v) for v in row["trace"].split()]
                for row in rows
                if (row["function"], row["judge"], row["method"]) == (function, judge, name)
            ]
            if traces:
                shortest = min(map(len, traces))
                median = np.median(np.array([trace[:shortest] for trace in traces]), axis=0)
                panel.semilogy(range(FIRST, FIRST + shortest), np.maximum(median, 1e-6), label=name, color=f"C{i % 10}")
        panel.set(title=f"{function}, {judge}", xlabel="duels", ylabel="median regret")
        panel.legend(fontsize=6)
    figure.savefig(path, dpi=72)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--functions", nargs="+", choices=FUNCTIONS + OTHER_FUNCTIONS, default=["camel", "hartmann6"])
    parser.add_argument("--judges", nargs="+", choices=list(JUDGES), default=["consistent"])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 10], metavar=("FIRST", "LAST"), help="last excluded")
    parser.add_argument("--duels", type=int, default=60)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of runs, tables and pictures")
    parser.add_argument(
        "--quick", action="store_true", help="one short run of each method on the camel, nothing stored"
    )


def run(options: argparse.Namespace) -> None:
    """Run it."""
    if options.quick:
        rows = [_run("camel", "consistent", name, 0, FIRST + 2) for name in options.methods]
        publish(_tables(rows, [FIRST + 2]), None)
        return
    runs = Runs("decisions_runs", KEYS, ("seconds_per_step", "trace"), options.output)
    known = {
        (row["function"], row["judge"], row["method"], int(row["seed"]))
        for row in runs.rows
        if int(row["duels"]) >= options.duels
    }
    wanted = [
        (function, judge, method, seed)
        for seed in range(*options.seeds)
        for function in options.functions
        for judge in options.judges
        for method in options.methods
        if (function, judge, method, seed) not in known
    ]
    say(f"{len(wanted)} runs of {options.duels} duels, {len(known)} known; load average {load_average()}")
    jobs = (joblib.delayed(_run)(*case, options.duels) for case in wanted)
    for row in joblib.Parallel(n_jobs=options.processes, return_as="generator_unordered")(jobs):
        runs.add(row)
        trace = row["trace"].split()
        shown = " ".join(trace[n - FIRST] for n in CHECKPOINTS if n <= options.duels)
        case = ", ".join(str(row[name]) for name in KEYS[:4])
        say(f"{case}: {shown}; {row['seconds_per_step']} s")
    latest = {(row["function"], row["judge"], row["method"], row["seed"]): row for row in runs.rows}
    rows = list(latest.values())
    publish(_tables(rows, CHECKPOINTS), options.output)
    _plot(rows, options.output / "decisions.png")

"""Optuna studies with failures and comparisons: `SkewGPSampler` beside Optuna's and its dashboard's samplers.

Every sampler gets the same budget and, with one seed, the same first trials, so that runs are compared in pairs.

- `crash`: Branin on the unit square with a region in which trials fail, one of the three minima in it. 30 trials, of
  which the first 10 are random; Optuna's own samplers go on at random until 10 trials have worked, which is how they
  count. Scored is the best value above the minimum.
- `hartmann6`: Hartmann's function in 6 dimensions, on which nothing fails. 40 trials, the first 10 at random.
- `duels`: preferential studies that show two trials (`n_generate=2`), of which a judge without noise names the worse
  one, 30 times; nobody sees a number. Branin, the six-hump camel on [-2, 2] x [-1, 1], and Hartmann in 6 dimensions.
  Scored is the trial that has lost to none, below the maximum.

Seconds are those of the processor, of choosing a trial that is not random; on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import optuna
import torch
from botorch.test_functions.synthetic import Branin, Hartmann, SixHumpCamel, SyntheticTestFunction
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState
from optuna_dashboard.preferential import create_study
from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp.optuna import SkewGPSampler

STARTUP, CRASH_TRIALS, NUM_TRIALS, NUM_DUELS = 10, 30, 40, 30
Params = dict[str, float]


class Function(NamedTuple):
    """A function to maximise over the unit cube, whose largest value is known."""

    evaluate: SyntheticTestFunction
    bounds: torch.Tensor

    def params(self, trial: optuna.Trial) -> Params:
        """What a trial tries."""
        return {f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(self.bounds.shape[1])}

    def regret(self, params: Params) -> float:
        """How far below the largest value."""
        low, high = self.bounds.double()
        x = torch.tensor([params[name] for name in sorted(params)], dtype=torch.double)
        return float(self.evaluate.optimal_value - self.evaluate(low + (high - low) * x))


def _function(evaluate: SyntheticTestFunction, bounds: list[list[float]] | None = None) -> Function:
    return Function(evaluate, evaluate.bounds if bounds is None else torch.tensor(bounds))


FUNCTIONS = {
    "branin": _function(Branin(negate=True)),
    "camel": _function(SixHumpCamel(negate=True), [[-2.0, -1.0], [2.0, 1.0]]),
    "hartmann6": _function(Hartmann(6, negate=True)),
}
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "SkewGPSampler": lambda seed: SkewGPSampler(
        seed=seed, num_startup_trials=STARTUP, independent_sampler=RandomSampler(seed)
    ),
    "GPSampler": lambda seed: GPSampler(seed=seed, n_startup_trials=STARTUP, independent_sampler=RandomSampler(seed)),
    "TPESampler": lambda seed: TPESampler(seed=seed, n_startup_trials=STARTUP),
}
PREFERENTIAL: dict[str, Callable[[int], BaseSampler]] = {
    "SkewGPSampler": SAMPLERS["SkewGPSampler"],
    "PreferentialGPSampler": lambda seed: PreferentialGPSampler(seed=seed, independent_sampler=RandomSampler(seed)),
}


class Run(NamedTuple):
    """What came of one study."""

    regret: float
    failed: int
    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--seeds", type=int, default=10, help="number of repetitions")
    parser.add_argument("--scenarios", nargs="*", choices=list(SCENARIOS), default=list(SCENARIOS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for name in options.scenarios:  # a table for each: they take long, and are run one by one
        publish([_table(name, 1 if options.quick else options.seeds)], folder)


def _table(name: str, num_seeds: int) -> Table:
    """All samplers on one scenario, and how often the first is better than each other one."""
    scenario, samplers = SCENARIOS[name]
    table = Table(
        f"optuna_{name}",
        ("scenario", "sampler", "median", "mean", "worst", "ahead_of_it", "failed_trials", "seconds_a_trial"),
        notes=[
            environment(),
            f"load average at the start {load_average()}",
            f"{num_seeds} seeds; regret of the best; ahead_of_it: in how many seeds SkewGPSampler has less regret",
        ],
    )
    ours: list[float] = []
    for sampler, make in samplers.items():
        runs = []
        for seed in range(num_seeds):
            runs.append(scenario(make(seed)))
            say(f"{name}, {sampler}, seed {seed}: {runs[-1].regret:.4g}, {runs[-1].seconds:.2f} s a trial")
        regrets = [entry.regret for entry in runs]
        ours = ours or regrets
        table.add(
            scenario=name,
            sampler=sampler,
            median=statistics.median(regrets),
            mean=statistics.mean(regrets),
            worst=max(regrets),
            ahead_of_it=None if regrets is ours else sum(a < b for a, b in zip(ours, regrets, strict=True)),
            failed_trials=statistics.mean(entry.failed for entry in runs),
            seconds_a_trial=statistics.mean(entry.seconds for entry in runs),
        )
    return table


def crashes(params: Params) -> bool:
    """A region that has one of Branin's three minima, and reaches to within 0.07 of another."""
    return params["x0"] > 0.61 or (params["x0"] - 0.5) ** 2 + (params["x1"] - 0.6) ** 2 < 0.1


def numbers(function: Function, num_trials: int, fails: Callable[[Params], bool] = lambda params: False) -> Any:
    """A study of numbers, in which trials may fail."""

    def scenario(sampler: BaseSampler) -> Run:
        study, seconds = optuna.create_study(sampler=sampler), 0.0
        for number in range(num_trials):
            trial, start = study.ask(), time.process_time()
            params = function.params(trial)
            seconds += (time.process_time() - start) * (number >= STARTUP)
            if fails(params):
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, function.regret(params))
        failed = len(study.get_trials(states=[TrialState.FAIL]))
        return Run(study.best_value, failed, seconds / (num_trials - STARTUP))

    return scenario


def duels(function: Function, num_duels: int = NUM_DUELS) -> Any:
    """A preferential study of two trials at a time, of which the worse one is named."""

    def scenario(sampler: BaseSampler) -> Run:
        study, seconds = create_study(n_generate=2, sampler=sampler), 0.0
        for number in range(num_duels):
            while study.should_generate():
                trial, start = study.ask(), time.process_time()
                function.params(trial)
                seconds += (time.process_time() - start) * (number > 0)
            losers = {worse.number for _, worse in study.get_preferences(deepcopy=False)}
            shown = [trial for trial in study.get_trials(deepcopy=False) if trial.number not in losers]
            better, worse = sorted(shown, key=lambda trial: function.regret(trial.params))
            study.report_preference(better, worse)
        (best,) = study.best_trials
        return Run(function.regret(best.params), 0, seconds / (num_duels - 1))

    return scenario


SCENARIOS: dict[str, tuple[Callable[[BaseSampler], Run], dict[str, Callable[[int], BaseSampler]]]] = {
    "crash": (numbers(FUNCTIONS["branin"], CRASH_TRIALS, crashes), SAMPLERS),
    "hartmann6": (numbers(FUNCTIONS["hartmann6"], NUM_TRIALS), SAMPLERS),
    **{f"duels_{name}": (duels(function), PREFERENTIAL) for name, function in FUNCTIONS.items()},
}

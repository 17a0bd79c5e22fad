"""Optuna studies with failures and comparisons: `SkewGPSampler` beside Optuna's and its dashboard's samplers.

Every sampler gets the same budget and, with one seed, the same first trials, so that runs are compared in pairs.

- `crash`: Branin on the unit square with a region in which trials fail, one of the three minima in it. 30 trials, of
  which the first 10 are random; Optuna's own samplers go on at random until 10 trials have worked, which is how they
  count. Scored is the best value above the minimum.
- `hartmann6`: Hartmann's function in 6 dimensions, on which nothing fails. 40 trials, the first 10 at random.
- `duels`: preferential studies that show two trials (`n_generate=2`), of which a judge without noise names the worse
  one, 30 times; nobody sees a number. Branin, the six-hump camel on [-2, 2] x [-1, 1], and Hartmann in 6 dimensions.
  Scored is the trial that has lost to none, below the maximum.
- `mixed`: five problems of floats, whole numbers and a category, three of them with regions that crash (`_mixed`). 24
  trials in batches of three, of which the first 10 are random. Close trials are those chosen by a model that are within
  a thousandth of an earlier one in every coordinate.

Optuna's samplers ignore failures. `told` the worst, they get the worst value so far in place of a failure.

Seconds are those of the processor, of choosing a trial that is not random; on one thread. Every run is a row of a file;
runs that are there are not repeated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import optuna
import torch
from botorch.test_functions.synthetic import Branin, Hartmann, SixHumpCamel, SyntheticTestFunction
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState
from optuna_dashboard.preferential import create_study
from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler

from benchmarks._mixed import BATCH, MIXED_PROBLEMS, TRIALS, MixedProblem, Parameter
from benchmarks._race import Group, Race, add_race_arguments, grid, hold_and_publish
from benchmarks._reporting import Cell
from botorch_skewgp.optuna import SkewGPSampler

STARTUP, CRASH_TRIALS, NUM_TRIALS, NUM_DUELS = 10, 30, 40, 30
OURS = "SkewGPSampler"
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
    OURS: lambda seed: SkewGPSampler(seed=seed, num_startup_trials=STARTUP, independent_sampler=RandomSampler(seed)),
    "GPSampler": lambda seed: GPSampler(seed=seed, n_startup_trials=STARTUP, independent_sampler=RandomSampler(seed)),
    "TPESampler": lambda seed: TPESampler(seed=seed, n_startup_trials=STARTUP),
}
TOLD = {f"{name} told": SAMPLERS[name] for name in ("GPSampler", "TPESampler")}
PREFERENTIAL: dict[str, Callable[[int], BaseSampler]] = {
    OURS: SAMPLERS[OURS],
    "PreferentialGPSampler": lambda seed: PreferentialGPSampler(seed=seed, independent_sampler=RandomSampler(seed)),
}


class Run(NamedTuple):
    """What came of one study."""

    regret: float
    failed: float
    seconds: float
    close: float | None = None  # trials within a thousandth of an earlier one, of a mixed batch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=10)
    parser.add_argument("--scenarios", nargs="*", choices=list(SCENARIOS), default=list(SCENARIOS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    race = Race(
        "optuna", grid(scenario=options.scenarios), grid(sampler={**SAMPLERS, **TOLD, **PREFERENTIAL}),
        range(1 if options.quick else options.seeds), _run, Run._fields, _columns,
        ["regret of the best; ahead_of_it: in how many of the seeds SkewGPSampler has less regret"],
    )  # fmt: skip
    hold_and_publish(options, race)


def _run(scenario: str, sampler: str, seed: int) -> Mapping[str, Cell] | list[Mapping[str, Cell]]:
    study, samplers = SCENARIOS[scenario]
    return study(samplers[sampler](seed), sampler in TOLD)._asdict() if sampler in samplers else []


def _columns(runs: Group) -> dict[str, Cell]:
    theirs, ours = runs.beside("regret", sampler=OURS)
    close = float(runs.values("close").sum())
    return {
        "seeds": len(runs), "median": runs.median("regret"), "mean": runs.mean("regret"),
        "worst": float(runs.values("regret").max()), "ahead_of_it": int((ours < theirs).sum()) if len(ours) else None,
        "failed_trials": runs.mean("failed"), "seconds_a_trial": runs.mean("seconds"),
        "close_trials": close if close == close else None,
    }  # fmt: skip


def crashes(params: Params) -> bool:
    """A region that has one of Branin's three minima, and reaches to within 0.07 of another."""
    return params["x0"] > 0.61 or (params["x0"] - 0.5) ** 2 + (params["x1"] - 0.6) ** 2 < 0.1


def numbers(function: Function, num_trials: int, fails: Callable[[Params], bool] = lambda params: False) -> Any:
    """A study of numbers, in which trials may fail."""

    def scenario(sampler: BaseSampler, told: bool) -> Run:
        study, seconds, failed = optuna.create_study(sampler=sampler), 0.0, 0
        for number in range(num_trials):
            trial, start = study.ask(), time.process_time()
            params = function.params(trial)
            seconds += (time.process_time() - start) * (number >= STARTUP)
            if fails(params):
                failed += 1
                _fail(study, trial, told)
            else:
                study.tell(trial, function.regret(params))
        return Run(study.best_value, failed, seconds / (num_trials - STARTUP))

    return scenario


def duels(function: Function, num_duels: int = NUM_DUELS) -> Any:
    """A preferential study of two trials at a time, of which the worse one is named."""

    def scenario(sampler: BaseSampler, told: bool) -> Run:
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


def batches(problem: MixedProblem) -> Any:
    """A study of numbers whose trials are asked for three at a time, and may crash."""

    def scenario(sampler: BaseSampler, told: bool) -> Run:
        study, seconds, close, failed = optuna.create_study(sampler=sampler), 0.0, 0, 0
        seen: list[dict[str, Any]] = []
        while len(seen) < TRIALS:
            trials = []
            for _ in range(BATCH):
                trial, start = study.ask(), time.process_time()
                params = {name: _suggested(trial, name, entry) for name, entry in problem.parameters.items()}
                if len(seen) >= STARTUP:
                    seconds += time.process_time() - start
                    close += problem.close(params, seen)
                seen.append(params)
                trials.append((trial, params))
            for trial, params in trials:
                if problem.crashes(params):
                    failed += 1
                    _fail(study, trial, told)
                else:
                    study.tell(trial, problem.regret(params))
        return Run(study.best_value, failed, seconds / (TRIALS - STARTUP), close)

    return scenario


def _fail(study: optuna.Study, trial: optuna.Trial, told: bool) -> None:
    """A trial that failed, or has the worst value so far where samplers are told so."""
    worked = [other.value for other in study.get_trials(states=[TrialState.COMPLETE]) if other.value is not None]
    if told and worked:
        study.tell(trial, max(worked))
    else:
        study.tell(trial, state=TrialState.FAIL)


def _suggested(trial: optuna.Trial, name: str, parameter: Parameter) -> Any:
    if parameter.categories:
        return trial.suggest_categorical(name, parameter.categories)
    if parameter.is_whole:
        return trial.suggest_int(name, int(parameter.low), int(parameter.high))
    return trial.suggest_float(name, parameter.low, parameter.high, log=parameter.is_log)


SCENARIOS: dict[str, tuple[Callable[[BaseSampler, bool], Run], dict[str, Callable[[int], BaseSampler]]]] = {
    "crash": (numbers(FUNCTIONS["branin"], CRASH_TRIALS, crashes), {**SAMPLERS, **TOLD}),
    "hartmann6": (numbers(FUNCTIONS["hartmann6"], NUM_TRIALS), SAMPLERS),
    **{f"duels_{name}": (duels(function), PREFERENTIAL) for name, function in FUNCTIONS.items()},
    **{f"mixed_{name}": (batches(problem), {**SAMPLERS, **TOLD}) for name, problem in MIXED_PROBLEMS.items()},
}

"""Optuna studies with failures and comparisons: `SkewGPSampler` beside Optuna's and its dashboard's samplers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState
from optuna_dashboard.preferential import create_study
from optuna_dashboard.preferential.samplers.gp import PreferentialGPSampler
from torch import tensor

from benchmarks._functions import find_utility
from benchmarks._mixed import BATCH, CRASH_REGION, FLOAT, MIXED_PROBLEMS, TRIALS, MixedProblem, Params
from benchmarks._race import Cell, Group, Names, Race, grid
from botorch_skewgp.optuna import SkewGPSampler

STARTUP, CRASH_TRIALS, NUM_TRIALS, NUM_DUELS = 10, 30, 40, 30
OURS = "SkewGPSampler"
optuna.logging.set_verbosity(optuna.logging.ERROR)


def _of_function(name: str) -> MixedProblem:
    utility = find_utility(name)

    def regret(params: Params) -> float:
        return utility.best - float(utility.evaluate(tensor([params[name] for name in sorted(params)]).double()))

    return MixedProblem({f"x{i}": FLOAT for i in range(utility.dim)}, regret)


FUNCTIONS = {
    "branin": MixedProblem(CRASH_REGION.parameters, CRASH_REGION.regret),
    "camel": _of_function("camel"),
    "hartmann6": _of_function("hartmann6"),
}


def distributions(problem: MixedProblem) -> dict[str, BaseDistribution]:
    found: dict[str, BaseDistribution] = {}
    for name, entry in problem.parameters.items():
        if entry.categories:
            found[name] = CategoricalDistribution(entry.categories)
        elif entry.is_whole:
            found[name] = IntDistribution(int(entry.low), int(entry.high))
        else:
            found[name] = FloatDistribution(entry.low, entry.high, log=entry.is_log)
    return found


def _skewgp(seed: int, startup: int = STARTUP) -> BaseSampler:
    return SkewGPSampler(seed=seed, n_startup_trials=startup, independent_sampler=RandomSampler(seed))


def _gp(seed: int, startup: int = STARTUP) -> BaseSampler:
    sampler = RandomSampler(seed)
    return GPSampler(seed=seed, n_startup_trials=startup, independent_sampler=sampler, warn_independent_sampling=False)


def _tpe(seed: int, startup: int = STARTUP) -> BaseSampler:
    return TPESampler(seed=seed, n_startup_trials=startup)


SAMPLERS: dict[str, Callable[..., BaseSampler]] = {OURS: _skewgp, "GPSampler": _gp, "TPESampler": _tpe}
TOLD: dict[str, Callable[..., BaseSampler]] = {"GPSampler told": _gp, "TPESampler told": _tpe}
PREFERENTIAL: dict[str, Callable[..., BaseSampler]] = {
    OURS: _skewgp,
    "PreferentialGPSampler": lambda seed: PreferentialGPSampler(seed=seed, independent_sampler=RandomSampler(seed)),
}


def _numbers(
    problem: MixedProblem, num_trials: int, sampler: BaseSampler, told: bool, batch: int = 1
) -> dict[str, Cell]:
    """A study whose trials may crash, of which samplers may be `told` the worst value; in batches, and close ones."""
    study, space, seconds, close, failed = optuna.create_study(sampler=sampler), distributions(problem), 0.0, 0, 0
    seen, worked = list[Params](), list[float]()
    while len(seen) < num_trials:
        trials = []
        for _ in range(batch):
            start = time.process_time()
            trial = study.ask(space)
            if len(seen) >= STARTUP:
                seconds += time.process_time() - start
                close += problem.close(trial.params, seen)
            seen.append(trial.params)
            trials.append(trial)
        for trial in trials:
            has_failed = problem.crashes(trial.params)
            failed += has_failed
            if not has_failed:
                worked.append(problem.regret(trial.params))
                study.tell(trial, worked[-1])
            elif told and worked:
                study.tell(trial, max(worked))
            else:
                study.tell(trial, state=TrialState.FAIL)
    spent = seconds / (num_trials - STARTUP)
    return {"regret": study.best_value, "failed": failed, "seconds": spent, "close": close if batch > 1 else None}


def _duels(problem: MixedProblem, sampler: BaseSampler, told: bool) -> dict[str, Cell]:
    """A preferential study of two trials at a time, of which the worse one is named."""
    study, space, seconds = create_study(n_generate=2, sampler=sampler), distributions(problem), 0.0
    for number in range(NUM_DUELS):
        while study.should_generate():
            start = time.process_time()
            study.ask(space)
            seconds += (time.process_time() - start) * (number > 0)
        losers = {worse.number for _, worse in study.get_preferences(deepcopy=False)}
        shown = [trial for trial in study.get_trials(deepcopy=False) if trial.number not in losers]
        better, worse = sorted(shown, key=lambda trial: problem.regret(trial.params))
        study.report_preference(better, worse)
    (best,) = study.best_trials
    return {"regret": problem.regret(best.params), "failed": 0, "seconds": seconds / (NUM_DUELS - 1)}


SCENARIOS: dict[str, tuple[Callable[..., dict[str, Cell]], dict[str, Callable[..., BaseSampler]]]] = {
    "crash": (partial(_numbers, CRASH_REGION, CRASH_TRIALS), {**SAMPLERS, **TOLD}),
    "hartmann6": (partial(_numbers, FUNCTIONS["hartmann6"], NUM_TRIALS), SAMPLERS),
    **{f"duels_{name}": (partial(_duels, problem), PREFERENTIAL) for name, problem in FUNCTIONS.items()},
    **{
        f"mixed_{name}": (partial(_numbers, problem, TRIALS, batch=BATCH), {**SAMPLERS, **TOLD})
        for name, problem in MIXED_PROBLEMS.items()
    },
}


def _run(scenario: str, sampler: str, seed: int) -> dict[str, Cell] | list[Names]:
    study, samplers = SCENARIOS[scenario]
    return study(sampler=samplers[sampler](seed), told=sampler in TOLD) if sampler in samplers else []


def _columns(runs: Group) -> dict[str, Cell]:
    theirs, ours = runs.beside("regret", sampler=OURS)
    return {
        "seeds": len(runs), "median": runs.median("regret"), "mean": runs.mean("regret"),
        "worst": float(runs.values("regret").max()), "ahead_of_it": int((ours < theirs).sum()) if len(ours) else None,
        "failed_trials": runs.mean("failed"), "seconds_a_trial": runs.mean("seconds"),
        "close_trials": runs.total("close"),
    }  # fmt: skip


RACES = (
    Race("optuna", grid(scenario=SCENARIOS), grid(sampler={**SAMPLERS, **TOLD, **PREFERENTIAL}), range(10), _run,
         ("regret", "failed", "seconds", "close"), _columns,
         ["regret of the best; ahead_of_it: in how many of the seeds SkewGPSampler has less regret"]),
)  # fmt: skip

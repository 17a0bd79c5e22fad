"""Optuna studies whose objective branches: `SkewGPSampler` beside `TPESampler(multivariate=True, group=True)`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import Trial

from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp.optuna import SkewGPSampler

STARTUP, NUM_TRIALS, HALF = 10, 50, 25
LEAST = 1e-6  # of a regret in the comparison
OURS = "SkewGPSampler"
optuna.logging.set_verbosity(optuna.logging.ERROR)


def _far(value: float, best: float, width: float) -> float:
    return ((value - best) / width) ** 2


def classifier(trial: Trial) -> float:
    """Three kinds of models without a parameter in common; the second best is a tenth worse, and easier to tune."""
    match trial.suggest_categorical("kind", ["linear", "kernel", "trees"]):
        case "linear":
            return 0.25 + 0.1 * _far(math.log10(trial.suggest_float("penalty", 1e-6, 1e2, log=True)), -2, 4)
        case "trees":
            depth, share = trial.suggest_int("depth", 1, 20), trial.suggest_float("share", 0.1, 1)
            return 0.1 + 0.3 * _far(depth, 9, 10) + 0.2 * _far(share, 0.4, 0.5)
    cost = math.log10(trial.suggest_float("cost", 1e-3, 1e3, log=True))
    scale = math.log10(trial.suggest_float("scale", 1e-4, 1e1, log=True))
    return 0.4 * (1 - math.exp(-0.5 * (_far(scale, -1.5, 0.8) + _far(cost + scale, 0, 1.2))))


def layers(trial: Trial) -> float:
    """A network of one to four layers, of which each has a width of its own, beside a shared rate."""
    rate = math.log10(trial.suggest_float("rate", 1e-5, 1e-1, log=True))
    count = trial.suggest_int("layers", 1, 4)
    widths = [math.log2(trial.suggest_int(f"width{k}", 8, 512, log=True)) for k in range(count)]
    wanted = (7.0, 6.0, 5.0, 4.0)
    misfit = sum(_far(width, best, 3) for width, best in zip(widths, wanted, strict=False)) / count
    return 0.2 * abs(count - 3) + 0.3 * misfit + 0.3 * _far(rate + 0.2 * count, -2.4, 1)


def training(trial: Trial) -> float:
    """An optimiser and a schedule, each of which brings parameters of its own, and shared ones."""
    rate = math.log10(trial.suggest_float("rate", 1e-5, 1, log=True))
    decay = math.log10(trial.suggest_float("decay", 1e-6, 1e-1, log=True))
    loss = 0.1 * _far(decay, -3.5, 2)
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd":
        momentum = trial.suggest_float("momentum", 0, 0.99)
        loss += 0.05 + 0.2 * _far(rate - math.log10(1 - momentum), 0.0, 1)
    else:
        beta = math.log10(1 - trial.suggest_float("beta", 0.8, 0.999))
        loss += 0.3 * _far(rate, -2.7, 0.8) + 0.05 * _far(beta, -1.5, 1)
    match trial.suggest_categorical("schedule", ["none", "cosine", "steps"]):
        case "none":
            return loss + 0.15
        case "cosine":
            return loss + 0.2 * _far(trial.suggest_float("warmup", 0, 0.5), 0.1, 0.3)
    every, factor = trial.suggest_int("every", 1, 30), trial.suggest_float("factor", 0.05, 0.9)
    return loss + 0.05 + 0.1 * _far(every, 12, 10) + 0.1 * _far(factor, 0.3, 0.3)


PROBLEMS: dict[str, Callable[[Trial], float]] = {"classifier": classifier, "layers": layers, "training": training}
SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    OURS: lambda seed: SkewGPSampler(
        seed=seed, n_startup_trials=STARTUP, independent_sampler=RandomSampler(seed), warn_independent_sampling=False
    ),
    "TPESampler": lambda seed: TPESampler(seed=seed, n_startup_trials=STARTUP, multivariate=True, group=True),
}


def _run(problem: str, sampler: str, seed: int) -> dict[str, Cell]:
    study, spent = optuna.create_study(sampler=SAMPLERS[sampler](seed)), time.process_time()
    study.optimize(PROBLEMS[problem], n_trials=HALF)
    half = study.best_value
    study.optimize(PROBLEMS[problem], n_trials=NUM_TRIALS - HALF)
    return {"half": half, "regret": study.best_value, "seconds": (time.process_time() - spent) / NUM_TRIALS}


def _columns(runs: Group) -> dict[str, Cell]:
    beyond, error = runs.less("regret", LEAST, sampler="TPESampler")
    return {
        "seeds": len(runs), "median_at_25": runs.median("half"), "median": runs.median("regret"),
        "decades_beyond_tpe": beyond, "standard_error": error, "seconds_a_trial": runs.mean("seconds"),
    }  # fmt: skip


RACES = (
    Race("branches", grid(problem=PROBLEMS), grid(sampler=SAMPLERS), range(10), _run, ("half", "regret", "seconds"),
         _columns,
         ["regret after 25 and 50 trials; decades_beyond_tpe: of the latter, beside TPESampler with the same seed"]),
)  # fmt: skip

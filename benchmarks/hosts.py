"""Seconds that Ax and Optuna take to choose a trial, with this package and with their own, in spaces of several kinds.

Every strategy and sampler goes on from the same known trials, in Ax from 20 alone, and chooses the next six one after
another. Spaces: four floats; two floats, an integer of eight values and a choice of three (`mixed`). Fails: in a corner
of the space trials fail. Processor time of one thread.
"""

from __future__ import annotations

import argparse
import functools
import logging
import time
from collections.abc import Callable
from typing import Any

import optuna
import torch
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.utils.common.logger import set_ax_logger_levels
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import GPSampler, TPESampler
from optuna.trial import TrialState, create_trial
from torch.quasirandom import SobolEngine

from benchmarks._race import Names, Race, add_race_arguments, grid, hold_and_publish
from benchmarks._reporting import Cell
from botorch_skewgp.ax import skewgp_generation_strategy
from botorch_skewgp.optuna import SkewGPSampler

KNOWN, CHOSEN = (20, 60, 100), 6
Params = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=2)
    parser.add_argument("--hosts", nargs="*", choices=list(HOSTS), default=list(HOSTS))
    parser.add_argument("--known", nargs="*", type=int, default=KNOWN, help="numbers of trials to go on from")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    set_ax_logger_levels(logging.ERROR)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    race = Race(
        "hosts", grid(known=options.known, host=options.hosts, space=("floats", "mixed"), fails=(False, True)),
        grid(strategy=[name for host in HOSTS.values() for name in host]), range(1 if options.quick else options.seeds),
        _run, ("seconds",), lambda runs: {"seeds": len(runs), "seconds": runs.mean("seconds")},
        ["processor time of choosing a trial, mean over trials and seeds"],
    )  # fmt: skip
    hold_and_publish(options, race)


def _run(known: int, host: str, space: str, fails: bool, strategy: str, seed: int) -> dict[str, Cell] | list[Names]:
    if strategy not in HOSTS[host] or (host == "Ax" and known != KNOWN[0]):
        return []
    return {"seconds": HOSTS[host][strategy](trials(known, space, seed), fails, seed)}


def loss(params: Params) -> float:
    """Smooth in the floats, with a best integer and choice."""
    numbers = (float(value) for name, value in params.items() if name.startswith("x"))
    rest = abs(params["n"] - 3) / 4 + {"a": 1.0, "b": 0.0, "c": 0.5}[params["c"]] if "n" in params else 0.0
    return sum((value - 0.3) ** 2 for value in numbers) + rest


def trials(known: int, space: str, seed: int) -> list[Params]:
    """The trials from which all go on."""
    points = SobolEngine(4, scramble=True, seed=seed).draw(known, dtype=torch.double).tolist()
    if space == "floats":
        return [{f"x{i}": value for i, value in enumerate(point)} for point in points]
    return [{"x0": x, "x1": y, "n": int(8 * n) + 1, "c": "abc"[int(3 * c)]} for x, y, n, c in points]


def failed(fails: bool, params: Params) -> bool:
    """Whether a trial fails."""
    return fails and params["x0"] + params["x1"] > 1


def ax_seconds(ours: bool, known: list[Params], fails: bool, seed: int) -> float:
    """Seconds of processor time for each trial that a model chooses in Ax."""
    floats = [RangeParameterConfig(name=f"x{i}", parameter_type="float", bounds=(0, 1)) for i in range(4)]
    rest: list[Any] = [
        RangeParameterConfig(name="n", parameter_type="int", bounds=(1, 8)),
        ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b", "c"], is_ordered=False),
    ]
    client = Client(random_seed=seed)
    client.configure_experiment(parameters=[*floats[:2], *rest] if "n" in known[0] else floats)
    client.configure_optimization(objective="-loss")
    if ours:
        client.set_generation_strategy(skewgp_generation_strategy(initialization_budget=1, seed=seed))
    else:
        client.configure_generation_strategy(initialization_budget=1, min_observed_initialization_trials=1)

    def tell(index: int, params: Params) -> None:
        if failed(fails, params):
            client.mark_trial_failed(index)
        else:
            client.complete_trial(index, {"loss": loss(params)})

    for params in known:
        tell(client.attach_trial(params), params)
    spent = 0.0
    for _ in range(CHOSEN):
        start = time.process_time()
        ((index, params),) = client.get_next_trials(max_trials=1).items()
        spent += time.process_time() - start
        tell(index, dict(params))
    return spent / CHOSEN


def optuna_seconds(
    make: Callable[[int], optuna.samplers.BaseSampler], known: list[Params], fails: bool, seed: int
) -> float:
    """Seconds of processor time for each trial that a model chooses in Optuna."""
    rest = {"n": IntDistribution(1, 8), "c": CategoricalDistribution(("a", "b", "c"))}
    floats: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0, 1) for i in range(4)}
    distributions = {"x0": floats["x0"], "x1": floats["x1"], **rest} if "n" in known[0] else floats
    study = optuna.create_study(sampler=make(seed))
    for params in known:
        told: Any = {"state": TrialState.FAIL} if failed(fails, params) else {"value": loss(params)}
        study.add_trial(create_trial(params=params, distributions=distributions, **told))
    spent = 0.0
    for _ in range(CHOSEN):
        start = time.process_time()
        trial = study.ask(distributions)
        spent += time.process_time() - start
        if failed(fails, trial.params):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, loss(trial.params))
    return spent / CHOSEN


HOSTS: dict[str, dict[str, Callable[[list[Params], bool, int], float]]] = {
    "Ax": {"skewgp": functools.partial(ax_seconds, True), "ax": functools.partial(ax_seconds, False)},
    "Optuna": {
        "SkewGPSampler": functools.partial(optuna_seconds, lambda seed: SkewGPSampler(seed=seed, num_startup_trials=1)),
        "GPSampler": functools.partial(
            optuna_seconds, lambda seed: GPSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)
        ),
        "TPESampler": functools.partial(optuna_seconds, lambda seed: TPESampler(seed=seed, n_startup_trials=1)),
    },
}

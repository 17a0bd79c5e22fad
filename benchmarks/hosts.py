"""Seconds that Ax and Optuna take to choose a trial, with this package and with their own, in spaces of several kinds.

All go on from the same known trials, of which those in a corner of the space may have failed.
"""

from __future__ import annotations

import time
from typing import Any

import optuna
from optuna.trial import TrialState, create_trial
from torch.quasirandom import SobolEngine

from benchmarks._mixed import FLOAT, THREE, MixedProblem, Parameter, Params
from benchmarks._race import Cell, Names, Race, grid
from benchmarks.ax import OURS, client_of
from benchmarks.optuna import SAMPLERS, distributions

KNOWN, CHOSEN = (20, 60, 100), 6
HOSTS = {"Ax": (OURS, "ax"), "Optuna": tuple(SAMPLERS)}


def _loss(params: Params) -> float:
    """Smooth in the floats, with a best integer and choice."""
    numbers = (float(value) for name, value in params.items() if name.startswith("x"))
    rest = abs(params["n"] - 3) / 4 + {"a": 1.0, "b": 0.0, "c": 0.5}[params["c"]] if "n" in params else 0.0
    return sum((value - 0.3) ** 2 for value in numbers) + rest


MIXED = {"x0": FLOAT, "x1": FLOAT, "n": Parameter(1, 8, is_whole=True), "c": THREE}
SPACES = {"floats": {f"x{i}": FLOAT for i in range(4)}, "mixed": MIXED}


def _trials(known: int, space: str, seed: int) -> list[dict[str, Any]]:
    points = SobolEngine(4, scramble=True, seed=seed).draw(known).double().tolist()
    if space == "floats":
        return [{f"x{i}": value for i, value in enumerate(point)} for point in points]
    return [{"x0": x, "x1": y, "n": int(8 * n) + 1, "c": "abc"[int(3 * c)]} for x, y, n, c in points]


def _ax_seconds(problem: MixedProblem, strategy: str, known: list[dict[str, Any]], seed: int) -> float:
    client = client_of(problem, strategy, seed, initial=1)

    def tell(index: int, params: Params) -> None:
        if problem.crashes(params):
            client.mark_trial_failed(index)
        else:
            client.complete_trial(index, {"loss": problem.regret(params)})

    for params in known:
        tell(client.attach_trial(params), params)
    spent = 0.0
    for _ in range(CHOSEN):
        start = time.process_time()
        ((index, chosen),) = client.get_next_trials(max_trials=1).items()
        spent += time.process_time() - start
        tell(index, chosen)
    return spent / CHOSEN


def _optuna_seconds(problem: MixedProblem, sampler: str, known: list[dict[str, Any]], seed: int) -> float:
    study, space = optuna.create_study(sampler=SAMPLERS[sampler](seed, 1)), distributions(problem)
    for params in known:
        told: Any = {"state": TrialState.FAIL} if problem.crashes(params) else {"value": problem.regret(params)}
        study.add_trial(create_trial(params=params, distributions=space, **told))
    spent = 0.0
    for _ in range(CHOSEN):
        start = time.process_time()
        trial = study.ask(space)
        spent += time.process_time() - start
        if problem.crashes(trial.params):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, problem.regret(trial.params))
    return spent / CHOSEN


def _run(known: int, host: str, space: str, fails: bool, strategy: str, seed: int) -> dict[str, Cell] | list[Names]:
    if strategy not in HOSTS[host] or (host == "Ax" and known != KNOWN[0]):
        return []
    problem = MixedProblem(SPACES[space], _loss, lambda params: fails and params["x0"] + params["x1"] > 1)
    measure = _ax_seconds if host == "Ax" else _optuna_seconds
    return {"seconds": measure(problem, strategy, _trials(known, space, seed), seed)}


RACES = (
    Race("hosts", grid(known=KNOWN, host=HOSTS, space=SPACES, fails=(False, True)),
         grid(strategy=[name for host in HOSTS.values() for name in host]), range(2), _run, ("seconds",),
         lambda runs: {"seeds": len(runs), "seconds": runs.mean("seconds")},
         ["processor time of choosing a trial, mean over trials and seeds"]),
)  # fmt: skip

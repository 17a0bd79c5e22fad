"""Ax experiments with trials that fail, labels and comparisons, by our generation strategy and by Ax's own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from ax.adapter.registry import Generators, MBM_X_trans_base, Y_trans
from ax.adapter.transforms.add_execution_viability import EXECUTION_VIABLE_METRIC_NAME, AddExecutionViability
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.metric import Metric
from ax.core.trial_status import TrialStatus
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.utils.common.logger import set_ax_logger_levels
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated

from benchmarks._mixed import BATCH, BRANIN_OF_TWO, CRASH_REGION, MIXED_PROBLEMS, TRIALS, MixedProblem, Parameter
from benchmarks._race import Cell, Group, Names, Race, grid
from botorch_skewgp.ax import attach_comparison, get_best_arm, skewgp_generation_strategy
from botorch_skewgp.ax.internals import experiment_of, generation_strategy_of

OURS, VIABILITY = "skewgp", "ax with AddExecutionViability"
set_ax_logger_levels(logging.ERROR)


def client_of(
    problem: MixedProblem, strategy: str, seed: int, objective: str = "-loss", initial: int = 5, centre: bool = True,
    **kwargs: Any,
) -> Client:  # fmt: skip
    """A client whose first trials are of Sobol's sequence."""
    client = Client(random_seed=None if strategy == OURS else seed)
    client.configure_experiment(parameters=[_parameter(name, entry) for name, entry in problem.parameters.items()])
    client.configure_optimization(objective=objective, **kwargs)
    if strategy == VIABILITY:
        client.set_generation_strategy(_stock_with_viability(initial, seed))
        experiment_of(client).add_metric(Metric(name=EXECUTION_VIABLE_METRIC_NAME, lower_is_better=False))
    elif strategy == OURS:
        client.set_generation_strategy(skewgp_generation_strategy(initialization_budget=initial, seed=seed))
    else:
        client.configure_generation_strategy(  # its defaults stop where the first trials give no numbers
            initialization_budget=initial, initialization_random_seed=seed, initialize_with_center=centre,
            min_observed_initialization_trials=1, allow_exceeding_initialization_budget=True,
        )  # fmt: skip
    return client


def _parameter(name: str, entry: Parameter) -> RangeParameterConfig | ChoiceParameterConfig:
    if entry.categories:
        return ChoiceParameterConfig(name=name, parameter_type="str", values=list(entry.categories), is_ordered=False)
    kind, scaling = ("int" if entry.is_whole else "float"), ("log" if entry.is_log else "linear")
    return RangeParameterConfig(name=name, parameter_type=kind, bounds=(entry.low, entry.high), scaling=scaling)


def _stock_with_viability(initial: int, seed: int) -> GenerationStrategy:
    """Ax's own strategy with the transform that learns from abandoned trials, three of them at the least."""
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": seed})],
        transition_criteria=[MinTrials(threshold=initial, transition_to="MBM", use_all_trials_in_exp=True)],
    )
    transforms = [*MBM_X_trans_base, AddExecutionViability, *Y_trans]
    spec = GeneratorSpec(generator_enum=Generators.BOTORCH_MODULAR, generator_kwargs={"transforms": transforms})
    return GenerationStrategy(name="viability", nodes=[sobol, GenerationNode(name="MBM", generator_specs=[spec])])


def _numbers(
    problem: MixedProblem, strategy: str, seed: int, num_trials: int, batch: int = 1, labels: bool = False
) -> dict[str, Cell]:
    """Trials that may crash, which fails them, or is their label; of batches also how many are close to others."""
    constraints = {"outcome_constraints": ["validity >= 0.5"]} if labels else {}
    client = client_of(problem, strategy, seed, centre=batch == 1, **constraints)
    mark = client.mark_trial_abandoned if strategy == VIABILITY else client.mark_trial_failed
    seen: list[dict[str, Any]] = []
    best, failed, close = float("inf"), 0, 0
    while len(seen) < num_trials:
        for index, params in client.get_next_trials(max_trials=min(batch, num_trials - len(seen))).items():
            by_model = generation_strategy_of(client).current_node_name in ("MBM", "SkewGP")
            close += by_model and problem.close(params, seen)
            seen.append(params)
            crashed = problem.crashes(params)
            if not crashed:
                best = min(best, problem.regret(params))
            failed += crashed
            if crashed and not labels:
                mark(index)
                continue
            data = {} if crashed else {"loss": problem.regret(params)}
            client.complete_trial(index, {**data, "validity": float(not crashed)} if labels else data)
    return {"score": best, "failed": failed, "close": close if batch > 1 else None}


def _numbers_and_preferences(strategy: str, seed: int, num_trials: int = 18) -> dict[str, Cell]:
    client, values = client_of(CRASH_REGION, strategy, seed), dict[int, float]()
    for _ in range(num_trials):
        for index, params in client.get_next_trials(max_trials=1).items():
            value = CRASH_REGION.regret(params)
            client.complete_trial(index, {"loss": value} if index % 3 == 0 else None)
            if strategy == OURS and values:
                best = min(values, key=lambda i: values[i])
                attach_comparison(client, *((index, best) if value < values[best] else (best, index)))
            values[index] = value
    chosen = get_best_arm(client)[0] if strategy == OURS else client.get_best_parameterization()[0]
    return {"score": CRASH_REGION.regret(chosen), "failed": 0}


def _several_objectives(strategy: str, seed: int, num_trials: int = 22) -> dict[str, Cell]:
    client, seen = client_of(CRASH_REGION, strategy, seed, "-loss, -distance"), []
    for _ in range(num_trials):
        for index, params in client.get_next_trials(max_trials=1).items():
            if CRASH_REGION.crashes(params):
                client.mark_trial_failed(index)
                continue
            loss, distance = CRASH_REGION.regret(params), (params["x0"] - 0.1) ** 2 + (params["x1"] - 0.1) ** 2
            client.complete_trial(index, {"loss": loss, "distance": distance})
            seen.append([-(loss + BRANIN_OF_TWO) / 50, -distance])
    Y = torch.tensor(seen, dtype=torch.double)
    score = -Hypervolume(torch.tensor([-1.0, -1.0]).double()).compute(Y[is_non_dominated(Y)])
    return {"score": score, "failed": len(experiment_of(client).trials_by_status[TrialStatus.FAILED])}


VALID = "regret of the best valid trial"
SCENARIOS: dict[str, tuple[Callable[..., dict[str, Cell]], str]] = {  # and what is scored
    "crash_region": (partial(_numbers, CRASH_REGION, num_trials=25), VALID),
    "validity_label": (partial(_numbers, CRASH_REGION, num_trials=25, labels=True), VALID),
    "numbers_and_preferences": (_numbers_and_preferences, "regret of the recommended arm"),
    "several_objectives": (_several_objectives, "minus the hypervolume of valid trials"),
    **{
        f"mixed_{name}": (partial(_numbers, problem, num_trials=TRIALS, batch=BATCH), VALID)
        for name, problem in MIXED_PROBLEMS.items()
    },
}


def _run(scenario: str, strategy: str, seed: int) -> dict[str, Cell] | list[Names]:
    if strategy == VIABILITY and scenario != "crash_region":
        return []
    began = time.process_time()
    found = SCENARIOS[scenario][0](strategy=strategy, seed=seed)
    return {**found, "seconds": time.process_time() - began}


def _columns(runs: Group) -> dict[str, Cell]:
    """Of ours and each other: the scores, and in how many runs ours is ahead."""
    theirs, ours = runs.beside("score", strategy=OURS)
    return {
        "seeds": len(runs), "score": SCENARIOS[str(runs.names["scenario"])][1], "median": runs.median("score"),
        "mean": runs.mean("score"), "worst": float(runs.values("score").max()), "failed_trials": runs.mean("failed"),
        "seconds": runs.mean("seconds"), "skewgp_ahead": int((ours < theirs).sum()) if len(ours) else None,
        "close_trials": runs.total("close"),
    }  # fmt: skip


RACES = (
    Race("ax", grid(scenario=SCENARIOS), grid(strategy=("ax", OURS, VIABILITY)), range(12), _run,
         ("score", "failed", "seconds", "close"), _columns,
         ["scores: lower is better; seconds of processor time for a whole experiment"]),
)  # fmt: skip

"""Experiments of `python -m benchmarks ax`: for each a function that runs it with our strategy or Ax's, from a seed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
from botorch.test_functions import Branin
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated

from benchmarks._mixed import BATCH, MIXED_PROBLEMS, TRIALS, MixedProblem, Params
from botorch_skewgp.ax import attach_comparison, get_best_arm, skewgp_generation_strategy
from botorch_skewgp.ax.internals import experiment_of, generation_strategy_of

LEAST = 0.397887  # Branin's minimum, at (-pi, 12.275), (pi, 2.275) and (9.42478, 2.475)
INITIAL = 5


class Point(NamedTuple):
    """A point of the unit square."""

    x: float
    y: float


def _client(ours: bool, seed: int, objective: str | None, **kwargs: Any) -> Client:
    client = Client(random_seed=None if ours else seed)
    client.configure_experiment(
        parameters=[RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in Point._fields]
    )
    if objective is not None:
        client.configure_optimization(objective=objective, **kwargs)
    return client


def _configure(client: Client, ours: bool, seed: int, learns_failures: bool = False, centre: bool = True) -> None:
    if learns_failures:
        client.set_generation_strategy(_stock_with_viability(seed))
        experiment_of(client).add_metric(Metric(name=EXECUTION_VIABLE_METRIC_NAME, lower_is_better=False))
    elif ours:
        client.set_generation_strategy(skewgp_generation_strategy(initialization_budget=INITIAL, seed=seed))
    else:
        client.configure_generation_strategy(  # its defaults stop where the first trials give no numbers
            initialization_budget=INITIAL,
            initialization_random_seed=seed,
            initialize_with_center=centre,
            min_observed_initialization_trials=1,
            allow_exceeding_initialization_budget=True,
        )


_branin = Branin()


def loss(p: Point) -> float:
    """Branin on the unit square."""
    return float(_branin(torch.tensor([15 * p.x - 5, 15 * p.y], dtype=torch.double)))


def crashes(p: Point) -> bool:
    """A region without numbers: it has one of the three minima, and reaches to within 0.07 of another."""
    return p.x > 0.61 or (p.x - 0.5) ** 2 + (p.y - 0.6) ** 2 < 0.1


def _failed(client: Client) -> int:
    by_status = experiment_of(client).trials_by_status
    return len(by_status[TrialStatus.FAILED]) + len(by_status[TrialStatus.ABANDONED])


def _stock_with_viability(seed: int) -> GenerationStrategy:
    """Ax's own strategy with the transform that learns from abandoned trials, three of them at the least."""
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": seed})],
        transition_criteria=[MinTrials(threshold=INITIAL, transition_to="MBM", use_all_trials_in_exp=True)],
    )
    transforms = [*MBM_X_trans_base, AddExecutionViability, *Y_trans]
    spec = GeneratorSpec(generator_enum=Generators.BOTORCH_MODULAR, generator_kwargs={"transforms": transforms})
    return GenerationStrategy(name="viability", nodes=[sobol, GenerationNode(name="MBM", generator_specs=[spec])])


def crash_region(ours: bool, seed: int, num_trials: int = 25, learns_failures: bool = False) -> tuple[float, int]:
    """Trials in a region fail, and are marked as failed, or for Ax's transform as abandoned."""
    client, best = _client(ours, seed, "-loss"), float("inf")
    _configure(client, ours, seed, learns_failures)
    torch.manual_seed(seed)
    mark = client.mark_trial_abandoned if learns_failures else client.mark_trial_failed
    for _ in range(num_trials):
        ((index, parameters),) = client.get_next_trials(max_trials=1).items()
        p = Point(**parameters)
        if crashes(p):
            mark(index)
        else:
            best = min(best, loss(p))
            client.complete_trial(index, {"loss": loss(p)})
    return best - LEAST, _failed(client)


def validity_label(ours: bool, seed: int, num_trials: int = 25) -> tuple[float, int]:
    """Every trial reports a label; Ax's own strategy sees it as a number between 0 and 1."""
    client, best, invalid = _client(ours, seed, "-loss", outcome_constraints=["validity >= 0.5"]), float("inf"), 0
    _configure(client, ours, seed)
    for _ in range(num_trials):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            p = Point(**parameters)
            if crashes(p):
                invalid += 1
                client.complete_trial(index, {"validity": 0.0})
            else:
                best = min(best, loss(p))
                client.complete_trial(index, {"loss": loss(p), "validity": 1.0})
    return best - LEAST, invalid


def numbers_and_preferences(ours: bool, seed: int, num_trials: int = 18) -> tuple[float, int]:
    """Every third trial gives a number; all are compared with the best so far, of which Ax knows nothing."""
    client = _client(ours, seed, "-loss")
    _configure(client, ours, seed)
    values: dict[int, float] = {}
    for _ in range(num_trials):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            value = loss(Point(**parameters))
            client.complete_trial(index, {"loss": value} if index % 3 == 0 else None)
            if ours and values:
                best = min(values, key=lambda i: values[i])
                attach_comparison(client, *((index, best) if value < values[best] else (best, index)))
            values[index] = value
    best_parameters = get_best_arm(client)[0] if ours else client.get_best_parameterization()[0]
    return loss(Point(**best_parameters)) - LEAST, 0


def several_objectives(ours: bool, seed: int, num_trials: int = 22) -> tuple[float, int]:
    """Two objectives, and trials that fail; minus the hypervolume of what was seen."""
    client, seen = _client(ours, seed, "-loss, -distance"), []
    _configure(client, ours, seed)
    for _ in range(num_trials):
        for index, parameters in client.get_next_trials(max_trials=1).items():
            p = Point(**parameters)
            if crashes(p):
                client.mark_trial_failed(index)
                continue
            outcomes = {"loss": loss(p), "distance": (p.x - 0.1) ** 2 + (p.y - 0.1) ** 2}
            client.complete_trial(index, outcomes)
            seen.append([-outcomes["loss"] / 50, -outcomes["distance"]])
    Y = torch.tensor(seen, dtype=torch.double)
    return -Hypervolume(torch.tensor([-1.0, -1.0]).double()).compute(Y[is_non_dominated(Y)]), _failed(client)


def _parameters(problem: MixedProblem) -> list[RangeParameterConfig | ChoiceParameterConfig]:
    return [
        ChoiceParameterConfig(name=name, parameter_type="str", values=list(entry.categories), is_ordered=False)
        if entry.categories
        else RangeParameterConfig(
            name=name,
            parameter_type="int" if entry.is_whole else "float",
            bounds=(entry.low, entry.high),
            scaling="log" if entry.is_log else "linear",
        )
        for name, entry in problem.parameters.items()
    ]


def mixed(problem: MixedProblem, ours: bool, seed: int) -> tuple[float, int, int]:
    """Trials in batches of three, some of which crash; also how many are close to an earlier one."""
    client = Client(random_seed=None if ours else seed)
    client.configure_experiment(parameters=_parameters(problem))
    client.configure_optimization(objective="-regret")
    _configure(client, ours, seed, centre=False)
    torch.manual_seed(seed)
    seen: list[Params] = []
    best, close = math.inf, 0
    while len(seen) < TRIALS:
        for index, params in client.get_next_trials(max_trials=min(BATCH, TRIALS - len(seen))).items():
            by_model = generation_strategy_of(client).current_node_name in ("MBM", "SkewGP")
            close += by_model and problem.close(params, seen)
            seen.append(params)
            if problem.crashes(params):
                client.mark_trial_failed(index)
            else:
                best = min(best, problem.regret(params))
                client.complete_trial(index, {"regret": problem.regret(params)})
    return best, _failed(client), close


SCENARIOS: dict[str, tuple[Callable[..., Any], str]] = {
    "crash_region": (crash_region, "regret of the best valid trial"),
    "validity_label": (validity_label, "regret of the best valid trial"),
    "numbers_and_preferences": (numbers_and_preferences, "regret of the recommended arm"),
    "several_objectives": (several_objectives, "minus the hypervolume of valid trials"),
    **{
        f"mixed_{name}": (functools.partial(mixed, problem), "regret of the best valid trial")
        for name, problem in MIXED_PROBLEMS.items()
    },
}

"""Pairs of points to compare, as trials with two arms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import torch
from ax.api.client import Client
from ax.api.types import TParameterization
from ax.core.arm import Arm
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationFeatures
from ax.core.parameter import DerivedParameter
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import SearchSpaceExhausted, UserInputError
from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_skewgp.ax.comparisons import (
    PAIR,
    attach_choice,
    attach_comparison,
    check_one_objective,
    is_pair,
    recorded_comparisons,
    trial_of,
)
from botorch_skewgp.ax.data import INVALID
from botorch_skewgp.ax.internals import experiment_of, generation_strategy_of, save_generation_strategy, save_trial
from botorch_skewgp.ax.registry import fitted_adapter, skewgp_spec_of
from botorch_skewgp.ax.transition import objective_is_known


def get_next_pair(client: Client) -> tuple[int, dict[str, TParameterization]]:
    r"""Ask for the next two points to compare, as one trial with two arms.

    If fewer than two points of a discrete space are untried, tried ones are asked about again. Answer with
    `complete_pair`, or abandon the trial, `client.mark_trial_abandoned(trial_index)`, which is no failure.

    Args:
        client: The client of the experiment.

    Returns:
        The trial's index, and the parameters of each arm by its name.

    Raises:
        UserInputError: If no optimization is configured, the client's strategy has no SkewGP, there are several
            objectives, or the search space has one point only.
    """
    experiment = experiment_of(client)
    if experiment.optimization_config is None:
        raise UserInputError("Call client.configure_optimization(objective=...) before asking for a pair.")
    check_one_objective(experiment)
    skewgp_spec_of(client)
    strategy = generation_strategy_of(client)
    runs: list[GeneratorRun] = []
    # Sobol points are drawn until they are new, without end where there are none
    if strategy.current_node_name != "Sobol" or _num_untried(experiment) >= 2:
        try:
            with _tried_arms_allowed(strategy):
                (runs,) = strategy.gen(experiment=experiment, n=2, num_trials=1)
        except SearchSpaceExhausted:
            runs = []
    new = [arm for run in runs for arm in run.arms]
    if len(new) != 2:
        runs = [GeneratorRun(arms=_with_tried(client, new))]
    trial = experiment.new_batch_trial(generator_runs=runs)
    trial.update_run_metadata({PAIR: True})
    trial.mark_running(no_runner_required=True)
    try:
        save_generation_strategy(client, strategy)
        save_trial(client, experiment, trial)
    except BaseException:
        trial.mark_abandoned(reason="The pair could not be stored, so it was not asked.")
        raise
    return trial.index, {arm.name: cast(TParameterization, arm.parameters) for arm in trial.arms}


def _num_untried(experiment: Experiment) -> float:
    """The number of untried points; infinite unless all parameters are discrete."""
    parameters = experiment.search_space.parameters.values()
    sizes = [entry.cardinality() for entry in parameters if not isinstance(entry, DerivedParameter)]
    return math.prod(sizes) - len(experiment.arms_by_signature)


def _with_tried(client: Client, new: list[Arm]) -> list[Arm]:
    """A pair of at most one new point and tried ones: the best by the model, and the one most likely to beat it;
    without data the least often compared ones.
    """
    experiment = experiment_of(client)
    trials = [trial for trial in experiment.trials.values() if trial.status not in INVALID]
    known = {arm.signature: arm for trial in trials for arm in trial.arms if arm not in trial.abandoned_arms}
    arms = [*new, *(arm for signature, arm in known.items() if signature not in {arm.signature for arm in new})]
    if len(arms) < 2:
        raise UserInputError(
            "The search space has no second point to compare with; two different points could not be generated."
        )
    if not objective_is_known(experiment):
        named = [name for entry in recorded_comparisons(experiment) for name in entry.items]
        return sorted(arms, key=lambda arm: named.count(arm.name))[:2]
    adapter = fitted_adapter(client)
    assert experiment.optimization_config is not None
    ((_, weight),) = experiment.optimization_config.objective.metric_weights
    posterior = adapter.latent_posterior([ObservationFeatures.from_arm(arm) for arm in arms])
    mean = posterior.mean.squeeze(-1)
    first = 0 if new else int((weight * mean).argmax())
    each = torch.eye(len(arms), dtype=mean.dtype, device=mean.device)
    others = [i for i in range(len(arms)) if i != first]
    wins = posterior.affine(math.copysign(1.0, weight) * (each[others] - each[first])).probability_above(0.0)
    return [arms[first], arms[others[int(wins.flatten().argmax())]]]


@contextmanager
def _tried_arms_allowed(strategy: GenerationStrategy) -> Iterator[None]:
    """Keep Ax from replacing tried arms, such as the best one, by Sobol points."""
    before = [(node, node.should_deduplicate) for node in strategy.nodes_by_name.values()]
    try:
        for node, _ in before:
            node.should_deduplicate = False
        yield
    finally:
        for node, value in before:
            node.should_deduplicate = value


def complete_pair(
    client: Client, trial_index: int, winner: str | None, judge: int | str | None = None, or_none: bool = False
) -> None:
    r"""Answer a trial of `get_next_pair`, and mark it completed.

    Args:
        client: The client of the experiment.
        trial_index: The trial's index.
        winner: The name of the better arm; `None` for a tie, or that both are bad where that was an answer.
        judge: The judge who compared them, see `attach_comparison`.
        or_none: Whether "both are bad" was an answer too, see `attach_choice`; ties are none then.

    Raises:
        UserInputError: If the trial was not created by `get_next_pair`, is not open any more, or the winner is not one
            of its arms. The experiment is then as before.
    """
    experiment = experiment_of(client)
    trial = trial_of(experiment, trial_index)
    if trial is None or not is_pair(trial):
        raise UserInputError(f"Trial {trial_index!r} was not created by get_next_pair; use attach_comparison.")
    if trial.status != TrialStatus.RUNNING:
        raise UserInputError(f"Trial {trial_index} is {trial.status.name}; only running pairs can be answered.")
    names = [arm.name for arm in trial.arms]
    if winner is not None and winner not in names:
        raise UserInputError(f"winner must be one of {names}, or None for a tie; got {winner!r}.")
    if or_none:
        attach_choice(client, winner, [name for name in names if name != winner], judge, or_none=or_none)
    else:
        first, second = names if winner != names[1] else reversed(names)
        attach_comparison(client, first, second, tie=winner is None, judge=judge)
    trial.mark_completed()
    save_trial(client, experiment, trial)

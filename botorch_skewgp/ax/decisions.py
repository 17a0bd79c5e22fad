"""What to ask next, a pair or a measurement, and which arm is best by the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, NamedTuple, cast

import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.types import TOutcome, TParameterization
from ax.core.arm import Arm
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationFeatures
from ax.core.parameter import DerivedParameter
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import SearchSpaceExhausted, UserInputError
from ax.generation_strategy.generation_strategy import GenerationStrategy
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.outcome import Standardize
from torch import Tensor

from botorch_skewgp.acquisition import Question
from botorch_skewgp.ax import comparisons, internals
from botorch_skewgp.ax.adapter import SkewGPAdapter, check_fixed
from botorch_skewgp.ax.data import INVALID, known_arms, objective_is_known
from botorch_skewgp.ax.registry import fitted_adapter, skewgp_spec_of
from botorch_skewgp.hosts.questions import NUM_SPREAD, as_prices, choose_question
from botorch_skewgp.hosts.quiet import suppress_irrelevant_warnings
from botorch_skewgp.likelihoods.registry import default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Censored, ChoiceOrNone, Numeric, Observation, Preference

Ask = Literal["number", "comparison"]
KINDS: dict[Ask, type[Observation]] = {"number": Numeric, "comparison": Preference}


def get_next_pair(
    client: Client, fixed_parameters: TParameterization | None = None, against: int | str | None = None
) -> tuple[int, dict[str, TParameterization]]:
    r"""Ask for the next two points to compare, as one trial with two arms.

    Several pairs may be open at once, and are answered in any order: what is open is not asked again, and counts as
    answered one way or the other. If fewer than two points of a discrete space are untried, tried ones are asked about
    again. Answer with `complete_pair`, or abandon the trial, `client.mark_trial_abandoned(trial_index)`, which is no
    failure.

    Args:
        client: The client of the experiment.
        fixed_parameters: Values of parameters that both points have, by name, as in Ax's `get_next_trials`.
        against: The arm that is challenged, such as the last winner: a trial's index, or the arm's name. It is the
            second one of the pair, whose first maximises the expected improvement over it and over open challengers,
            weighted as that of other trials; the best arm by the model is `get_best_arm(client)[2]`.

    Returns:
        The trial's index, and the parameters of each arm by its name.

    Raises:
        UserInputError: If no optimization is configured, the client's strategy has no SkewGP, there are several
            objectives, a parameter is not known or cannot have its fixed value, the arm that is challenged is not in
            the experiment, outside of the search space or without a fixed value, or there is one point only.
    """
    experiment = _ready(client)
    fixed = _checked_fixed(experiment, fixed_parameters)
    given = [] if against is None else [_champion(experiment, against, fixed)]
    num_new, strategy = 2 - len(given), internals.generation_strategy_of(client)
    runs: list[GeneratorRun] = []
    # Sobol points are drawn until they are new, without end where there are none
    if strategy.current_node_name != "Sobol" or _num_untried(experiment, fixed) >= num_new:
        features = ObservationFeatures(parameters=fixed) if fixed else None
        try:
            with _tried_arms_allowed(strategy):
                if given and objective_is_known(experiment):
                    runs = [fitted_adapter(client).challenger(given[0], features)]
                else:
                    (runs,) = strategy.gen(experiment=experiment, n=num_new, num_trials=1, fixed_features=features)
        except SearchSpaceExhausted:
            runs = []
    pair = [*(arm for run in runs for arm in run.arms), *given]
    if len({arm.signature for arm in pair}) < 2 or (given and _is_open(experiment, pair)):
        runs = [GeneratorRun(arms=_with_tried(client, given or pair[:1], fixed, bool(given)))]
    elif given:
        runs = [GeneratorRun(arms=pair)]
    trial = experiment.new_batch_trial(generator_runs=runs)
    trial.update_run_metadata({comparisons.PAIR: True})
    trial.mark_running(no_runner_required=True)
    try:
        internals.save(client, strategy)
        internals.save(client, trial)
    except BaseException:
        trial.mark_abandoned(reason="The pair could not be stored, so it was not asked.")
        raise
    return trial.index, {arm.name: cast(TParameterization, arm.parameters) for arm in trial.arms}


def _checked_fixed(experiment: Experiment, fixed_parameters: TParameterization | None) -> dict[str, Any]:
    """Values that parameters of the search space can have; raises `UserInputError`."""
    fixed: dict[str, Any] = dict(fixed_parameters or {})
    if unknown := sorted(fixed.keys() - experiment.search_space.parameters.keys()):
        raise UserInputError(f"fixed_parameters names {', '.join(unknown)}, which the search space has not.")
    check_fixed(fixed, experiment.search_space)
    return fixed


def _champion(experiment: Experiment, against: int | str, fixed: TParameterization) -> Arm:
    """The arm that is challenged; raises `UserInputError` where it cannot be compared with others of the space."""
    arm = experiment.arms_by_name[comparisons.name_of_arm(experiment, against)]
    if not experiment.search_space.check_membership(arm.parameters):
        raise UserInputError(f"The arm {arm.name}, {arm.parameters}, is outside of the search space.")
    if not _has(arm, fixed):
        raise UserInputError(f"The arm {arm.name}, {arm.parameters}, has other values than fixed_parameters.")
    return arm


def _is_open(experiment: Experiment, pair: Sequence[Arm]) -> bool:
    """Whether a pair of arms waits for an answer."""
    signatures = {arm.signature for arm in pair}
    return any({arm.signature for arm in asked} == signatures for asked in comparisons.open_pairs(experiment))


def _ready(client: Client) -> Experiment:
    """The experiment behind a client that may ask for pairs; raises `UserInputError` for others."""
    experiment = internals.experiment_of(client)
    if experiment.optimization_config is None:
        raise UserInputError("Call client.configure_optimization(objective=...) before asking.")
    comparisons.check_one_objective(experiment)
    skewgp_spec_of(client)
    return experiment


def _num_untried(experiment: Experiment, fixed: TParameterization) -> float:
    """The number of untried points with fixed values; infinite unless all other parameters are discrete."""
    parameters = experiment.search_space.parameters
    free = [entry for name, entry in parameters.items() if name not in fixed]
    sizes = [entry.cardinality() for entry in free if not isinstance(entry, DerivedParameter)]
    return math.prod(sizes) - sum(_has(arm, fixed) for arm in experiment.arms_by_signature.values())


def _has(arm: Arm, fixed: TParameterization) -> bool:
    return all(arm.parameters.get(name) == value for name, value in fixed.items())


def _with_tried(client: Client, new: list[Arm], fixed: TParameterization, is_given: bool) -> list[Arm]:
    """A pair of at most one new or given point, or the best of the tried ones by the model, and the one compared least
    often; one that is open only if all are.
    """
    experiment = internals.experiment_of(client)
    trials = [trial for trial in experiment.trials.values() if trial.status not in INVALID]
    known = {arm.signature: arm for trial in trials for arm in trial.arms if arm not in trial.abandoned_arms}
    arms = [*new, *(arm for signature, arm in known.items() if signature not in {arm.signature for arm in new})]
    arms = [arm for arm in arms if _has(arm, fixed)]
    if len(arms) < 2:
        raise UserInputError(
            "The search space has no second point to compare with; two different points could not be generated."
        )
    named = [name for entry in comparisons.recorded_comparisons(experiment) for name in entry.items]
    arms.sort(key=lambda arm: named.count(arm.name))
    best = fitted_adapter(client).best_of(arms) if objective_is_known(experiment) and not new else None
    first = best or (new or arms)[0]
    pairs = [[first, arm] for arm in arms if arm.signature != first.signature]
    if not is_given:
        pairs += [list(pair) for pair in combinations(arms, 2)]
    return min(pairs, key=lambda pair: _is_open(experiment, pair))


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
    experiment = internals.experiment_of(client)
    trial = comparisons.trial_of(experiment, trial_index)
    if trial is None or not comparisons.is_pair(trial):
        raise UserInputError(f"Trial {trial_index!r} was not created by get_next_pair; use attach_comparison.")
    if trial.status != TrialStatus.RUNNING:
        raise UserInputError(f"Trial {trial_index} is {trial.status.name}; only running pairs can be answered.")
    names = [arm.name for arm in trial.arms]
    if winner is not None and winner not in names:
        raise UserInputError(f"winner must be one of {names}, or None for a tie; got {winner!r}.")
    if or_none:
        comparisons.attach_choice(client, winner, [name for name in names if name != winner], judge, or_none=or_none)
    else:
        first, second = names if winner != names[1] else reversed(names)
        comparisons.attach_comparison(client, first, second, tie=winner is None, judge=judge)
    trial.mark_completed()
    internals.save(client, trial)


class AxQuestion(NamedTuple):
    r"""The next question in an experiment.

    Args:
        ask: A `"number"`, answered by `client.complete_trial(trial_index, {...})`, or a `"comparison"`, by
            `complete_pair(client, trial_index, winner)`.
        trial_index: The running trial that was made for it.
        arms: The parameters of its arms by their names: one to measure, two to compare.
        value: The expected rise of the posterior mean of the best point by an answer of this kind, in units of the
            objective; NaN without data of it.
        cost: Its price.
    """

    ask: Ask
    trial_index: int
    arms: dict[str, TParameterization]
    value: float
    cost: float


def get_next_question(
    client: Client,
    costs: Mapping[Ask, float],
    fixed_parameters: TParameterization | None = None,
    against: int | str | None = None,
) -> AxQuestion:
    r"""Ask for a number or a comparison, whichever has more information for its price, as a trial.

    The kind is chosen by `botorch_skewgp.acquisition.next_question` over the tried points and some that are spread over
    the search space; the strategy then chooses the points. Without data of the objective the cheaper kind is asked.
    Several questions may be open at once: the value is that beyond the answers to those.

    Example:
        >>> client.configure_optimization(objective="-loss")
        >>> client.set_generation_strategy(skewgp_generation_strategy())
        >>> asked = get_next_question(client, {"number": 10.0, "comparison": 1.0})
        >>> asked.ask, asked.trial_index, asked.arms

    Args:
        client: The client of the experiment.
        costs: The price of each allowed kind, in any one unit.
        fixed_parameters: Values of parameters, by name, at which is asked, as in `get_next_pair`.
        against: The arm that a comparison challenges, as in `get_next_pair`.

    Raises:
        UserInputError: If a kind is unknown, a price is not positive, or as `get_next_pair`. The experiment is then as
            before.
    """
    with internals.user_input_errors():
        prices = as_prices(costs, lambda name: name in KINDS, f"{tuple(KINDS)} that may be asked", "a {}")
    experiment = _ready(client)
    fixed = _checked_fixed(experiment, fixed_parameters)
    if against is not None:
        _champion(experiment, against, fixed)
    ask, value = min(prices, key=prices.__getitem__), math.nan
    if objective_is_known(experiment):
        adapter = fitted_adapter(client)
        with suppress_irrelevant_warnings():
            beside_none = ChoiceOrNone in adapter.of_objective[0].kinds
            kinds = [ChoiceOrNone if beside_none and name == "comparison" else KINDS[name] for name in prices]
            asked = dict(zip(prices, map(Question, kinds), strict=True))
            waiting = _waiting(adapter, experiment)
            if any(len(X) == 2 for X in waiting):
                kinds.append(Preference)
            model, pool = _utility_model(adapter, kinds), _pool(adapter, experiment, fixed)
            ask, value = choose_question(model, asked, prices, pool, adapter.power_transform.of_objective, waiting)
    if ask == "number":
        ((index, parameters),) = client.get_next_trials(max_trials=1, fixed_parameters=fixed).items()
        arms = {experiment.trials[index].arms[0].name: parameters}
    else:
        index, arms = get_next_pair(client, fixed, against)
    return AxQuestion(ask, index, arms, value, prices[ask])


def _utility_model(adapter: SkewGPAdapter, asked: Sequence[type[Observation]]) -> SkewGP:
    """A model of the objective, to be maximised, that takes all kinds asked."""
    dataset, fitted = adapter.of_objective
    observations = [_turned(entry) if dataset.minimize else entry for entry in dataset.observations]
    likelihood = default_likelihood((), list(dict.fromkeys((*dataset.kinds, *asked))))
    model = SkewGP(
        dataset.X,
        observations,
        likelihood,
        input_transform=deepcopy(getattr(fitted, "input_transform", None)),
        outcome_transform=Standardize(m=1),
    )
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def _turned(entry: Observation) -> Observation:
    """Numbers and bounds with the other sign; other observations name the better one already."""
    if isinstance(entry, Numeric):
        return replace(entry, values=-entry.values)
    return replace(entry, lower=-entry.upper, upper=-entry.lower) if isinstance(entry, Censored) else entry


def _pool(adapter: SkewGPAdapter, experiment: Experiment, fixed: TParameterization) -> Tensor:
    """Candidate points: the tried ones, and some over the search space."""
    sobol = Generators.SOBOL(experiment=experiment, seed=len(experiment.trials))
    if not fixed:
        return torch.cat([adapter.of_objective[0].X, adapter.points_of(sobol.gen(n=NUM_SPREAD).arms)])
    spread = sobol.gen(n=NUM_SPREAD, fixed_features=ObservationFeatures(parameters=dict(fixed))).arms
    tried = [experiment.arms_by_name[name] for name in known_arms(experiment)]
    return adapter.points_of([arm for arm in (*tried, *spread) if _has(arm, fixed)])


def _waiting(adapter: SkewGPAdapter, experiment: Experiment) -> list[Tensor]:
    """The points of answers that are waited for: open pairs, and where there are numbers those of running trials."""
    asked = comparisons.open_pairs(experiment)
    if Numeric in adapter.of_objective[0].kinds:
        known = known_arms(experiment)
        running = [trial for trial in experiment.trials.values() if trial.status.is_running]
        single = [trial.arms for trial in running if len(trial.arms) == 1]
        asked += [arms for arms in single if arms[0].name not in known]
    return [adapter.points_of(arms) for arms in asked]


def get_best_arm(client: Client) -> tuple[TParameterization, TOutcome, str]:
    r"""The best of the tried arms as predicted by the model, fitted to all data so far.

    `client.get_best_parameterization` needs reported numbers; this uses comparisons too. Arms that failed, and arms
    outside the search space, are left out. An arm must meet all constraints, and work, with a probability of at least
    one half. Where no arm does, those count whose own numbers meet the constraints, with a probability of one quarter:
    the most probable of them is returned.

    Returns:
        The arm's parameters, the predicted mean and standard deviation of each metric, and its name.

    Raises:
        UserInputError: If the client has another strategy, there are no data of the objective, there are several
            objectives, the objective is learned from comparisons of outcomes, or no arm is predicted to satisfy the
            constraints.
    """
    parameters, outcomes, arm, _ = _best(client, SkewGPAdapter.best_of)
    return parameters, outcomes, arm.name


def get_best_point(client: Client) -> tuple[TParameterization, TOutcome, float]:
    r"""The point of the whole search space with the best predicted objective, among those that work, and meet each
    constraint, with a probability of one half; it need not have been tried, and no trial is made.

    Example::

        parameters, outcomes, p_works = get_best_point(client)
        client.attach_trial(parameters)  # to see

    Returns:
        The parameters, the predicted mean and standard deviation of each metric, and the probability that a trial
        works and meets all constraints.

    Raises:
        UserInputError: As `get_best_arm`.
        UnsupportedError: If the objective or a constraint is of a sum of metrics.
    """
    parameters, outcomes, _, p_works = _best(client, SkewGPAdapter.best_point)
    return parameters, outcomes, p_works


def _best(
    client: Client, choose: Callable[[SkewGPAdapter, list[Arm]], Arm | None]
) -> tuple[TParameterization, TOutcome, Arm, float]:
    """What is chosen beside the tried arms, with its predictions and the probability that it works."""
    skewgp_spec_of(client)
    experiment = internals.experiment_of(client)
    known = known_arms(experiment)
    if not known:
        raise UserInputError(
            "Nothing is known of the objective yet: no trial that worked has a number for it, and no trials were "
            "compared. Complete trials with data, or call attach_comparison."
        )
    adapter = fitted_adapter(client)
    if adapter.is_moo_problem or adapter.learns_objective:
        raise UserInputError(
            "No arm is best: with several objectives use client.get_pareto_frontier(); in preference exploration your "
            "comparisons of outcomes decide."
        )
    arms: list[Arm] = [experiment.arms_by_name[name] for name in known]
    arms = [arm for arm in arms if experiment.search_space.check_membership(arm.parameters)]
    best = choose(adapter, arms)
    if best is None:
        raise UserInputError(
            "No arm is best: none of the arms is predicted to satisfy the constraints. Go on with the next trials, or "
            "relax a constraint."
        )
    mean, covariance = adapter.predict([ObservationFeatures.from_arm(best)])
    outcomes = {name: (float(mean[name][0]), float(covariance[name][name][0]) ** 0.5) for name in mean}
    p_works = float(adapter.outlook([best])[1])
    return cast(TParameterization, best.parameters), outcomes, best, p_works

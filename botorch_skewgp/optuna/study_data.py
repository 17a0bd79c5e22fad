"""What a study knows, as points, numbers, comparisons and failures."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_skewgp.optuna.internals import PREFERENTIAL, preferences_in, skipped_in, system_attrs_of, trial_id_of
from botorch_skewgp.optuna.judgements import better_in, check_one_objective, numbers_in, ties_in, unusable_in
from botorch_skewgp.optuna.search_space import SearchSpace

Failures = Literal["constraint", "ignore"]
LARGEST = sys.float_info.max**0.5  # beyond it a number has no square: it stands for infinity, as where trials fail
STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.RUNNING)


@dataclass(frozen=True, eq=False)
class StudyData:
    r"""What is known of a study's trials, one row for each that has all parameters of a search space.

    Args:
        X: An `n x d` tensor of coordinates.
        numbers: An `n x m` tensor of the objectives, the larger the better, NaN where there is none.
        constraints: An `n x c` tensor of Optuna's constraints, at most 0 where they are met, NaN where unknown.
        valid: An `n`-dim tensor: 1 for trials that worked, 0 for those that failed or were pruned, NaN for others.
        pending: Which trials are running, an `n`-dim boolean tensor.
        shown: Which trials of a preferential study the next one will be compared with: those that have lost to no
            other yet. None in other studies.
        preferences: Pairs of rows, the better one first.
        ties: Pairs of rows that were judged to be as good as each other.
        preferential: Whether the study is one of optuna-dashboard's.
    """

    X: Tensor
    numbers: Tensor
    constraints: Tensor
    valid: Tensor
    pending: Tensor
    shown: Tensor
    preferences: tuple[tuple[int, int], ...]
    ties: tuple[tuple[int, int], ...]
    preferential: bool

    @property
    def compared(self) -> Tensor:
        """Which trials were compared, an `n`-dim boolean tensor."""
        mask = torch.zeros_like(self.pending)
        mask[sorted({row for pair in (*self.preferences, *self.ties) for row in pair})] = True
        return mask

    @property
    def feasible(self) -> Tensor:
        """Which trials did not fail and break no constraint, an `n`-dim boolean tensor."""
        return (self.valid != 0) & ~(self.constraints > 0).any(-1)

    @property
    def num_known(self) -> int:
        """The number of trials that are not running."""
        return int((~self.pending).sum())


def read_study(
    study: Study, space: SearchSpace, failures: Failures = "constraint", leave_out: Iterable[int] = ()
) -> StudyData:
    r"""Read what a study knows.

    Failed and pruned trials did not work; nor did trials whose value is infinite. A failed trial that Optuna tried
    again, because its worker had died, says nothing, nor do trials that were skipped in the dashboard. The zeros that
    the dashboard stores for trials that were compared are no numbers.

    Args:
        study: The study.
        space: The search space.
        failures: `"ignore"` to leave out failed and pruned trials.
        leave_out: The numbers of further trials to leave out.

    Raises:
        InputDataError: If a trial was compared that the study does not have, or a constraint is NaN.
        UnsupportedError: If trials were compared in a study of several objectives.
    """
    system_attrs = system_attrs_of(study)  # before the trials, so that those compared are among them
    user_attrs = study.user_attrs
    trials = study.get_trials(deepcopy=False)
    preferential = bool(system_attrs.get(PREFERENTIAL, False))
    better = [pair for pairs in preferences_in(system_attrs).values() for pair in pairs]
    better += better_in(user_attrs).values()
    equal = list(ties_in(user_attrs).values())
    _check_comparisons(study, better + equal, len(trials))
    unusable, reported = unusable_in(user_attrs), numbers_in(user_attrs)
    skipped = skipped_in(system_attrs)
    ignored = {trial.number for trial in trials if trial_id_of(trial) in skipped} - unusable
    ignored |= {*leave_out, *_tried_again(trials)}
    names = sorted({name for trial in trials for name in trial.constraints})
    kept: list[FrozenTrial] = []
    params: list[dict[str, Any]] = []
    valid, numbers, constraints = [], [], []
    for trial in trials:
        state, own = trial.state, with_relative_params(trial, space)
        if state not in STATES or trial.number in ignored:
            continue
        if not space.takes(own, {**space.distributions, **trial.distributions}):
            continue
        values = _numbers(study, trial, preferential, reported)
        failed = state in (TrialState.FAIL, TrialState.PRUNED) or trial.number in unusable
        failed = failed or any(abs(value) > LARGEST for value in values)
        if failed and failures == "ignore":
            continue
        kept.append(trial)
        params.append(own)
        valid.append(0.0 if failed else 1.0 if state == TrialState.COMPLETE else math.nan)
        numbers.append([math.nan] * len(values) if failed else values)
        constraints.append([_constraint(trial, name) for name in names])
    rows = {trial.number: row for row, trial in enumerate(kept)}
    losers = {loser for _, loser in better}
    running = [trial.state == TrialState.RUNNING for trial in kept]
    shown = [preferential and trial.number not in losers and valid[row] != 0 for row, trial in enumerate(kept)]
    number = torch.tensor(numbers, dtype=torch.double).reshape(len(kept), len(study.directions))
    return StudyData(
        X=space.points(params),
        numbers=number,
        constraints=torch.tensor(constraints, dtype=torch.double).reshape(len(kept), len(names)),
        valid=torch.tensor(valid, dtype=torch.double),
        pending=torch.tensor(running, dtype=torch.bool),
        shown=torch.tensor(shown, dtype=torch.bool),
        preferences=_as_rows(better, rows),
        ties=_as_rows(equal, rows),
        preferential=preferential,
    )


RELATIVE_PARAMS = "skewgp:relative_params:"


def with_relative_params(trial: FrozenTrial, space: SearchSpace) -> dict[str, Any]:
    """A trial's parameters, with those that the sampler has chosen and the objective has not asked for yet."""
    if trial.state != TrialState.RUNNING:
        return trial.params
    prefix = RELATIVE_PARAMS
    chosen = {key.removeprefix(prefix): value for key, value in trial.system_attrs.items() if key.startswith(prefix)}
    known = {name: entry for name, entry in space.distributions.items() if name in chosen}
    return {name: entry.to_external_repr(chosen[name]) for name, entry in known.items()} | trial.params


def _numbers(study: Study, trial: FrozenTrial, preferential: bool, reported: dict[int, float]) -> list[float]:
    """The objectives of a trial, the larger the better."""
    none = [math.nan] * len(study.directions)
    if trial.number in reported:
        return [reported[trial.number]]
    if trial.state != TrialState.COMPLETE or trial.values is None:
        return none
    if preferential and not any(trial.values):
        return none
    signs = (-1.0 if direction == StudyDirection.MINIMIZE else 1.0 for direction in study.directions)
    values = [sign * value for sign, value in zip(signs, trial.values, strict=True)]
    return none if any(map(math.isnan, values)) else values


def _constraint(trial: FrozenTrial, name: str) -> float:
    value = trial.constraints.get(name)
    if value is None:
        return math.nan
    if not math.isfinite(value):
        raise InputDataError(
            f"Trial {trial.number} has {value} for the constraint {name!r}. Constraints must be finite; let a trial "
            "fail whose constraints cannot be computed."
        )
    return float(value)


def _tried_again(trials: Sequence[FrozenTrial]) -> set[int]:
    """The trials that failed because their worker died, and were put into the queue again."""
    return {number for trial in trials for number in trial.system_attrs.get("retry_history", [])}


def _check_comparisons(study: Study, pairs: Sequence[tuple[int, int]], num_trials: int) -> None:
    for pair in pairs:
        if not all(isinstance(number, int) and 0 <= number < num_trials for number in pair) or pair[0] == pair[1]:
            raise InputDataError(
                f"Trials {pair[0]} and {pair[1]} were compared; a comparison needs two of the study's trials, which "
                f"are 0 to {num_trials - 1}. Take it back by withdraw_comparison(study, {pair[0]}, {pair[1]})."
            )
    if pairs:
        check_one_objective(study)


def _as_rows(pairs: Sequence[tuple[int, int]], rows: dict[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((rows[a], rows[b]) for a, b in pairs if a in rows and b in rows)

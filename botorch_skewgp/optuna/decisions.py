"""How many trials to show together next, and which trial is best by the model, also without numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial
from torch import Tensor

from botorch_skewgp.acquisition import Question
from botorch_skewgp.checks import as_seed, is_whole
from botorch_skewgp.hosts.data import Observed
from botorch_skewgp.hosts.questions import NUM_SPREAD, as_prices, choose_question
from botorch_skewgp.hosts.quiet import suppress_irrelevant_warnings
from botorch_skewgp.hosts.records import read_judgement
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Choice, ChoiceOrNone, Numeric, Preference
from botorch_skewgp.optuna import internals
from botorch_skewgp.optuna.judgements import AnyTrial, check_single_objective, numbers_of
from botorch_skewgp.optuna.search_space import TRIAL, SearchSpace, search_space_of, takes
from botorch_skewgp.optuna.study_data import AGAINST, FIXED, StudyData, read_study
from botorch_skewgp.optuna.study_model import Fits, StudyModel, fitted_model
from botorch_skewgp.optuna.turns import seeded

NOTHING_IS_KNOWN = (
    "Nothing is known of the objective yet: tell a trial's value, or compare trials by report_comparison."
)
MAX_SHOWN = 4  # trials together, unless prices say otherwise


class OptunaQuestion(NamedTuple):
    r"""What to ask next in a study: which of some trials is the best.

    Args:
        trials: The numbers of trials to show again: in a preferential study those on its page, in others the best one
            according to the model; none as long as nothing is known.
        num_new: The number of new trials to show beside them, by `study.ask()`.
        value: By how much an answer is expected to raise the posterior mean of the best point, in units of the
            objective (of the latent utility without numbers); NaN as long as nothing is known.
        cost: Its price.
    """

    trials: list[int]
    num_new: int
    value: float
    cost: float


def get_next_question(
    study: Any,
    costs: Mapping[int, float] | None = None,
    against: AnyTrial | None = None,
    fixed_parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> OptunaQuestion:
    r"""Ask which of two trials is better, or which of more is the best: whichever has the most information for its
    price.

    The number is chosen by `botorch_skewgp.acquisition.next_question` over the points tried and some that are spread
    over the search space; the sampler chooses the new points. As long as nothing is known, the cheapest is chosen. A
    preferential study then generates that many trials: `should_generate` is true until the new ones are there. Trials
    stay on its page until they have lost, so a question there is about all of them at least.

    Several questions may be open at once, and are answered in any order: new trials keep away from those that run, and
    the value is that beyond the answers to these, their numbers or whether they are better than the best one.

    Example:
        >>> space = {"x": optuna.distributions.FloatDistribution(0, 1)}
        >>> asked = get_next_question(study, {2: 1.0, 4: 1.5})
        >>> shown = [*asked.trials, *(study.ask(space) for _ in range(asked.num_new))]
        >>> report_choice(study, best=shown[0], others=shown[1:])

    Args:
        study: A study with one objective, preferential or not.
        costs: The price of a question by the number of trials shown together, in any one unit; by default as many units
            as trials, for two to four.
        against: The trial that new ones challenge, or its number, which is shown in place of the best one; on the page
            of a preferential study one of those shown.
        fixed_parameters: Values of parameters that the trials have, by name; on a page the new ones alone. With these,
            or with a trial to challenge, the new trials are put into the queue of the study, from which `study.ask()`
            takes them.
        seed: The seed of the points that the question may be about. The sampler, which has its own, chooses new points.

    Raises:
        InputDataError: If a number of trials is less than two, a price is not positive, the page of the study shows
            more trials than there are prices for, or all prices are for more trials than a question can be about: the
            points tried and 128 others, fewer in a discrete space; or if the study has no such trial or parameter, the
            trial is not on the page, or one of them cannot have a fixed value. The study is then as before.
        UnsupportedError: If the study has several objectives.
    """
    study = internals.study_of(study)
    check_single_objective(study)
    preferential, seed = bool(internals.system_attrs_of(study).get(internals.PREFERENTIAL)), as_seed(seed)
    fixed = _checked_fixed(study, fixed_parameters)
    shown = _on_page(study) if preferential else []
    if against is not None:
        (champion,) = numbers_of(study, against)
        _check_champion(study, champion, shown if preferential else None, fixed)
        shown = shown if preferential else [champion]
    prices = _prices(costs, len(shown))
    space, data = _read(study)
    size, value = min(prices, key=prices.__getitem__), math.nan
    if data and (known := data.observed()):
        with seeded(0), suppress_irrelevant_warnings():
            beside_none = any(isinstance(entry, ChoiceOrNone) for entry in known.observations)
            model = fitted_model(known, space, [Preference])
            having = torch.tensor([_has(study, number, fixed) for number in data.trials])
            spread = space.domain_with(fixed).spread(NUM_SPREAD)
            pool = torch.cat([data.X[data.feasible & having], spread]).unique(dim=0)
            sizes = [k for k in prices if k <= len(pool)]
            if not sizes:
                raise InputDataError(
                    f"costs has prices for {min(prices)} trials together or more, and a question is about {len(pool)} "
                    "points of this study at most; add a price for fewer."
                )
            several = ChoiceOrNone if beside_none else Choice
            asked = {k: Question(Preference) if k == 2 and not beside_none else Question(several, k) for k in sizes}
            best = best_number(data, model, having)
            waiting = [] if preferential else _waiting(data, known, best)
            size, value = choose_question(model, asked, prices, pool, data.power_transform, waiting, seed)
        if not shown and best is not None and not preferential:
            shown = [best]
    if preferential:
        internals.set_study_system_attr(study, internals.NUM_SHOWN, size)
    if fixed or against is not None:
        attrs = {FIXED: fixed} if against is None else {FIXED: fixed, AGAINST: champion}
        for _ in range(size - len(shown)):
            study.add_trial(create_trial(state=TrialState.WAITING, system_attrs=attrs))
    return OptunaQuestion(shown, size - len(shown), value, prices[size])


def _waiting(data: StudyData, known: Observed, best: int | None) -> list[Tensor]:
    """The points of answers that are waited for: trials that run, or without numbers each of them and the best one."""
    running = [X.unsqueeze(0) for X in data.X[data.pending]]
    if any(isinstance(entry, Numeric) for entry in known.observations):
        return running
    if data.has_numbers or best is None:
        return []
    champion = data.X[data.trials.index(best)].unsqueeze(0)
    return [torch.cat([X, champion]) for X in running if not torch.equal(X, champion)]


def _checked_fixed(study: Study, fixed_parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Values that parameters can have, by what trials had so far; raises `InputDataError`."""
    fixed = dict(fixed_parameters or {})
    known: dict[str, BaseDistribution] = {}
    for trial in study.get_trials(deepcopy=False):
        known |= trial.distributions
    for name, value in fixed.items() if known else ():
        if name not in known:
            raise InputDataError(f"fixed_parameters names {name}, which no trial has; their parameters are {[*known]}.")
        if not takes(known[name], value):
            raise InputDataError(f"The parameter {name!r} must be fixed at a value of {known[name]}; got {value!r}.")
    return fixed


def _has(study: Study, number: int, fixed: Mapping[str, Any]) -> bool:
    """Whether a trial has values of parameters."""
    params = study.get_trials(deepcopy=False)[number].params
    return all(params.get(name) == value for name, value in fixed.items())


def _check_champion(study: Study, number: int, on_page: Sequence[int] | None, fixed: Mapping[str, Any]) -> None:
    """Raise `InputDataError` unless a trial can be shown: on a page if there is one, and else with fixed values."""
    if on_page is not None and number not in on_page:
        raise InputDataError(f"Trial {number} is not on the page, which shows {list(on_page)}.")
    if on_page is None and not _has(study, number, fixed):
        raise InputDataError(f"Trial {number} has other values than fixed_parameters; got {dict(fixed)}.")


def _read(study: Study) -> tuple[SearchSpace, StudyData | None]:
    """The search space of the model, and the data, if it has any parameter."""
    space = search_space_of(study.get_trials(deepcopy=False))
    return space, read_study(study, space) if space.dim else None


def _prices(costs: Mapping[int, float] | None, num_shown: int) -> dict[int, float]:
    """The prices of questions about as many trials as are shown already, or more."""
    if costs is None:
        costs = {k: float(k) for k in range(2, max(MAX_SHOWN, num_shown) + 1)}
    sizes = "the numbers of trials, from 2 on, that may be shown together, such as {2: 1.0, 4: 1.5}"
    prices = as_prices(costs, lambda size: is_whole(size) and size >= 2, sizes, "{} trials")
    prices = {int(size): price for size, price in prices.items()}
    if max(prices) < num_shown:
        raise InputDataError(
            f"The page shows {num_shown} trials, and costs has prices for {max(prices)} at most; add one for "
            f"{num_shown}."
        )
    return {size: price for size, price in prices.items() if size >= num_shown}


def _on_page(study: Study) -> list[int]:
    """The numbers of the trials that optuna-dashboard's page shows: those that have lost no comparison."""
    attrs = internals.system_attrs_of(study)  # before the trials, which then have those compared
    trials = study.get_trials(deepcopy=False)
    reports = [pairs for pairs in internals.preferences_in(attrs).values() if isinstance(pairs, list | tuple)]
    judgements = [read_judgement(pair, range(len(trials))) for pairs in reports for pair in pairs]
    gone = internals.skipped_in(attrs, trials).union(*(entry.losers for entry in judgements if entry))
    left = [trial.number for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.RUNNING)]
    return [number for number in left if number not in gone]


def get_best_trial(study: Any) -> FrozenTrial:
    r"""The best of the tried trials as predicted by the model, fitted to all numbers, bounds and comparisons.

    `study.best_trial` is the one with the best number, whatever people said; in a preferential study, whose numbers are
    zeros, it means nothing. Trials that failed or broke a constraint are left out.

    Example:
        >>> report_comparison(study, better=3, worse=1)
        >>> get_best_trial(study).params

    Raises:
        InputDataError: If nothing is known of the objective yet, or all trials failed or broke a constraint.
        UnsupportedError: If the study has several objectives.
    """
    study = internals.study_of(study)
    check_single_objective(study)
    space, data = _read(study)
    completed = {trial.number for trial in study.get_trials(deepcopy=False) if trial.state == TrialState.COMPLETE}
    if data is None or not completed <= {*data.trials}:  # such as trials of which a category was taken away since
        space = SearchSpace({TRIAL: CategoricalDistribution(range(max(len(study.get_trials(deepcopy=False)), 1)))})
        data = read_study(study, space)
    known = data.observed()
    if known is None:
        raise InputDataError(NOTHING_IS_KNOWN)
    number = best_number(data, fitted_model(known, space))
    if number is None:
        raise InputDataError("No trial is best: all trials failed or broke a constraint.")
    return study.get_trials()[number]


class BestPoint(NamedTuple):
    r"""The point that is recommended, which need not have been tried.

    Args:
        params: The values of the parameters.
        median: The median of the objective there, without noise, in its units and direction; of the latent utility
            where there are no numbers.
        low: The lower end of the 90 % interval.
        high: The upper end.
        p_works: The probability that a trial there works and meets all constraints.
    """

    params: dict[str, Any]
    median: float
    low: float
    high: float
    p_works: float


def get_best_point(study: Any, seed: int = 0) -> BestPoint:
    r"""The point of the whole search space with the largest posterior mean of the objective (the least where small
    numbers are good), among those where a trial works, and meets each constraint, with a probability of one half.

    `get_best_trial` is for those who want what was tried; this needs no further trial.

    Example:
        >>> best = get_best_point(study)
        >>> study.enqueue_trial(best.params)  # to see

    Args:
        study: A study with one objective, preferential or not.
        seed: The seed of the search.

    Raises:
        InputDataError: If nothing is known of the objective yet, or it has no parameters.
        UnsupportedError: If the study has several objectives.
    """
    study = internals.study_of(study)
    check_single_objective(study)
    space, data = _read(study)
    if data is None or data.observed() is None:
        raise InputDataError(NOTHING_IS_KNOWN)
    with seeded(seed), suppress_irrelevant_warnings():
        model = StudyModel(data, space, Fits(seed))
        point = model.best_point(seed)
        quantiles, p_works = model.outlook(point)
    if study.direction == StudyDirection.MINIMIZE and data.has_numbers and not data.preferential:
        quantiles = [-value for value in reversed(quantiles)]
    low, median, high = quantiles
    return BestPoint(space.params(point, active=True), median, low, high, p_works)


@torch.no_grad()
def best_number(data: StudyData, model: SkewGP, among: Tensor | None = None) -> int | None:
    """The number of the trial with data, of those of a mask, that is best by a model; `None` if none worked."""
    may_be_best = data.known & data.feasible
    rows = (may_be_best if among is None else may_be_best & among).nonzero().squeeze(-1)
    if not len(rows):
        return None
    mean = model.latent_posterior(data.X[rows]).mean.squeeze(-1)
    return data.trials[rows[mean.argmax()]]

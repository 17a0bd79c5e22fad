"""The choice between a measurement and a comparison, by the information for its price."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.types import TParameterization
from ax.core.experiment import Experiment
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import UserInputError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.outcome import Standardize
from torch import Tensor

from botorch_skewgp.acquisition import Question
from botorch_skewgp.ax.adapter import SkewGPAdapter
from botorch_skewgp.ax.comparisons import check_one_objective
from botorch_skewgp.ax.internals import experiment_of, user_input_errors
from botorch_skewgp.ax.pairs import get_next_pair
from botorch_skewgp.ax.registry import fitted_adapter, skewgp_spec_of
from botorch_skewgp.ax.transition import objective_is_known
from botorch_skewgp.hosts.questions import NUM_SPREAD, as_prices, choose_question
from botorch_skewgp.hosts.quiet import suppress_irrelevant_warnings
from botorch_skewgp.likelihoods.registry import default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Censored, ChoiceOrNone, Numeric, Observation, Preference

Ask = Literal["number", "comparison"]
KINDS: dict[Ask, type[Observation]] = {"number": Numeric, "comparison": Preference}


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


def get_next_question(client: Client, costs: Mapping[Ask, float]) -> AxQuestion:
    r"""Ask for a number or a comparison, whichever has more information for its price, as a trial.

    The kind is chosen by `botorch_skewgp.acquisition.next_question` over the tried points and some that are spread over
    the search space; the strategy then chooses the points. Without data of the objective the cheaper kind is asked.

    Example:
        >>> client.configure_optimization(objective="-loss")
        >>> client.set_generation_strategy(skewgp_generation_strategy())
        >>> asked = get_next_question(client, {"number": 10.0, "comparison": 1.0})
        >>> asked.ask, asked.trial_index, asked.arms

    Args:
        client: The client of the experiment.
        costs: The price of each allowed kind, in any one unit.

    Raises:
        UserInputError: If a kind is unknown, a price is not positive, no optimization is configured, the client's
            strategy has no SkewGP, there are several objectives, or the search space has one point only. The experiment
            is then as before.
    """
    prices = _prices(costs)
    experiment = experiment_of(client)
    if experiment.optimization_config is None:
        raise UserInputError("Call client.configure_optimization(objective=...) before asking a question.")
    check_one_objective(experiment)
    skewgp_spec_of(client)
    ask, value = min(prices, key=prices.__getitem__), math.nan
    if objective_is_known(experiment):
        adapter = fitted_adapter(client)
        with suppress_irrelevant_warnings():
            beside_none = ChoiceOrNone in adapter.objective_dataset.kinds
            kinds = [ChoiceOrNone if beside_none and name == "comparison" else KINDS[name] for name in prices]
            model, pool, transform = _utility_model(adapter, kinds), _pool(adapter, experiment), adapter.power_transform
            questions = list(map(Question, kinds))
            place, value = choose_question(model, questions, list(prices.values()), pool, transform.of_objective)
        ask = list(prices)[place]
    if ask == "number":
        ((index, parameters),) = client.get_next_trials(max_trials=1).items()
        arms = {experiment.trials[index].arms[0].name: parameters}
    else:
        index, arms = get_next_pair(client)
    return AxQuestion(ask, index, arms, value, prices[ask])


def _prices(costs: Mapping[Ask, float]) -> dict[Ask, float]:
    with user_input_errors():
        return as_prices(costs, lambda name: name in KINDS, f"{tuple(KINDS)} that may be asked", "a {}")


def _utility_model(adapter: SkewGPAdapter, asked: Sequence[type[Observation]]) -> SkewGP:
    """A model of the objective, to be maximised, that takes all kinds asked."""
    dataset = adapter.objective_dataset
    observations = [_turned(entry) if dataset.minimize else entry for entry in dataset.observations]
    likelihood = default_likelihood((), list(dict.fromkeys((*dataset.kinds, *asked))))
    model = SkewGP(
        dataset.X,
        observations,
        likelihood,
        input_transform=deepcopy(getattr(adapter.objective_model, "input_transform", None)),
        outcome_transform=Standardize(m=1),
    )
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def _turned(entry: Observation) -> Observation:
    """Numbers with the other sign; other observations name the better one already."""
    if isinstance(entry, Numeric):
        return replace(entry, values=-entry.values)
    if isinstance(entry, Censored):
        return replace(entry, lower=-entry.upper, upper=-entry.lower)
    return entry


def _pool(adapter: SkewGPAdapter, experiment: Experiment) -> Tensor:
    """Candidate points: the tried ones, and some over the search space."""
    tried = adapter.objective_dataset.X
    spread = Generators.SOBOL(experiment=experiment, seed=len(experiment.trials)).gen(n=NUM_SPREAD).arms
    features = [ObservationFeatures.from_arm(arm) for arm in spread]
    return torch.cat([tried, adapter.transform_observation_features(features).to(tried)])

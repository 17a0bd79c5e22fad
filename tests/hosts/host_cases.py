"""One experiment in two hosts: a loss of one parameter on the unit interval, to be minimised."""

from __future__ import annotations

import math
import warnings

import pytest

pytest.importorskip("ax")
pytest.importorskip("optuna")

import optuna
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.exceptions.core import UserInputError
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from botorch_skewgp import ax as ours_in_ax
from botorch_skewgp import optuna as ours_in_optuna
from botorch_skewgp.ax.registry import fitted_adapter
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

SPACE = {"x": FloatDistribution(0, 1)}


def by_points(observations, xs):
    """What observations say, by the kind: tuples of points, and what is said of them."""
    found = {}
    for entry in observations:
        kind, judges = type(entry).__name__, entry.judge
        index = next(getattr(entry, name) for name in ("pairs", "options", "index") if hasattr(entry, name))
        for row, places in enumerate(index.tolist()):
            places = places if isinstance(places, list) else [places]
            judge = () if judges is None else (judges[row].item(),)
            said = [getattr(entry, name)[row].item() for name in ("none", "valid", "labels") if hasattr(entry, name)]
            found.setdefault(kind, set()).add((*(xs[place] for place in places if place >= 0), *said, *judge))
    return found


class InOptuna:
    """A study."""

    error = InputDataError

    def __init__(self, seed=0, startup=1):
        self.study = optuna.create_study(sampler=ours_in_optuna.SkewGPSampler(seed=seed, num_startup_trials=startup))

    def attach(self, *xs):
        for x in xs:
            self.study.enqueue_trial({"x": x})
            self.study.ask(SPACE)
        return len(self.study.trials) - 1

    def number(self, trial, value):
        self.study.tell(trial, value)

    def fail(self, trial):
        self.study.tell(trial, state=TrialState.FAIL)

    def unusable(self, trial, value):
        self.number(trial, value)
        ours_in_optuna.report_unusable(self.study, trial)

    def bound(self, trial, lower=None, upper=None):
        if lower is not None:
            ours_in_optuna.report_at_least(self.study, trial, lower)
        if upper is not None:
            ours_in_optuna.report_at_most(self.study, trial, upper)

    def prefer(self, better, worse, judge=None):
        ours_in_optuna.report_comparison(self.study, better, worse, judge)

    def tie(self, first, second):
        ours_in_optuna.report_tie(self.study, first, second)

    def choose(self, best, others, or_none=False, judge=None):
        ours_in_optuna.report_choice(self.study, best, others, judge, or_none)

    def withdraw(self, first, second):
        ours_in_optuna.withdraw_comparison(self.study, first, second)

    def junk(self, *entries):
        for number, entry in enumerate(entries):
            self.study.set_user_attr(f"skewgp:better:junk{number}", entry)

    def clean(self):
        ours_in_optuna.withdraw_unreadable(self.study)

    def stored(self):
        return repr((self.study.user_attrs, [(trial.state, trial.values) for trial in self.study.trials]))

    def read(self):
        data = read_study(self.study, SearchSpace(SPACE))
        known = data.observed()
        said = {} if known is None else by_points(known.observations, known.X.squeeze(-1).tolist())
        xs = data.X.squeeze(-1).tolist()
        numbers = {x: -value for x, (value,) in zip(xs, data.numbers.tolist(), strict=True) if value == value}
        bounds = {x: (-high, -low) for x, (low,), (high,) in zip(xs, *data.bounds.tolist(), strict=True)}
        bounds = {x: pair for x, pair in bounds.items() if pair != (-math.inf, math.inf)}
        valid = {x: value for x, value in zip(xs, data.valid.tolist(), strict=True) if value == value}
        return said, numbers, bounds, valid if 0.0 in valid.values() else {}

    def next(self):
        return self.study.ask(SPACE).params["x"]

    def best(self):
        return ours_in_optuna.get_best_trial(self.study).params["x"]


class InAx:
    """An experiment behind a client."""

    error = UserInputError

    def __init__(self, seed=0, startup=1):
        self.client = Client()
        self.client.configure_experiment([RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))])
        self.client.configure_optimization(objective="-loss")
        strategy = ours_in_ax.skewgp_generation_strategy(initialization_budget=startup, seed=seed)
        self.client.set_generation_strategy(strategy)

    @property
    def experiment(self):
        return self.client._experiment

    def attach(self, *xs):
        return max(self.client.attach_trial({"x": x}) for x in xs)

    def number(self, trial, value):
        self.client.complete_trial(trial, {"loss": value})

    def fail(self, trial):
        self.client.mark_trial_failed(trial)

    def unusable(self, trial, value):
        self.client.configure_tracking_metrics(["validity"])
        self.client.complete_trial(trial, {"loss": value, "validity": 0})

    def bound(self, trial, lower=None, upper=None):
        ours_in_ax.attach_censored(self.client, trial, "loss", lower, upper)

    def prefer(self, better, worse, judge=None):
        ours_in_ax.attach_comparison(self.client, better, worse, judge=judge)

    def tie(self, first, second):
        ours_in_ax.attach_comparison(self.client, first, second, tie=True)

    def choose(self, best, others, or_none=False, judge=None):
        ours_in_ax.attach_choice(self.client, best, others, judge, or_none)

    def withdraw(self, first, second):
        ours_in_ax.withdraw_comparison(self.client, first, second)

    def junk(self, *entries):
        properties = self.experiment._properties
        properties["skewgp_comparisons"] = [*properties.get("skewgp_comparisons", []), *entries]

    def clean(self):
        ours_in_ax.withdraw_unreadable(self.client)

    def stored(self):
        trials = [trial.status for trial in self.experiment.trials.values()]
        return repr((self.experiment._properties, trials, self.experiment.lookup_data().df.to_dict()))

    def read(self):
        adapter = fitted_adapter(self.client)
        sets = {entry.outcome_names[0]: entry for entry in adapter.generator.surrogate.training_data}
        said = by_points(sets["loss"].observations, sets["loss"].X.squeeze(-1).tolist())
        map_of = adapter.power_transform.power_transforms.get("loss")
        xs, numbers, bounds = sets["loss"].X.squeeze(-1).tolist(), {}, {}
        for entry in sets["loss"].observations:
            fields = {"Numeric": ("values",), "Censored": ("lower", "upper")}.get(type(entry).__name__, ())
            values = [getattr(entry, name).numpy() for name in fields]
            values = [value if map_of is None else map_of.inverse_transform(value) for value in values]
            into = numbers if len(values) == 1 else bounds
            for row, place in enumerate(entry.index.tolist() if values else []):
                told = tuple(float(value[row]) for value in values)
                into[xs[place]] = told if len(told) == 2 else told[0]
        valid = sets.get("validity")
        return (
            said,
            numbers,
            bounds,
            {} if valid is None else dict(zip(valid.X.squeeze(-1).tolist(), valid.Y.squeeze(-1).tolist(), strict=True)),
        )

    def next(self):
        ((_, parameters),) = self.client.get_next_trials(max_trials=1).items()
        return parameters["x"]

    def best(self):
        return ours_in_ax.get_best_arm(self.client)[0]["x"]


HOSTS = {"optuna": InOptuna, "ax": InAx}


def told(call):
    """What is told of entries that are left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", InputDataWarning)
        call()
    return [str(entry.message) for entry in caught]

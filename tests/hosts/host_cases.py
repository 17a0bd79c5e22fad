"""One experiment in two hosts: one or two losses of a parameter on the unit interval, minimised or maximised."""

from __future__ import annotations

import functools
import warnings

import optuna
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.exceptions.core import UserInputError
from botorch.exceptions.errors import BotorchError, InputDataError
from botorch.exceptions.warnings import InputDataWarning
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from botorch_skewgp import ax as ours_in_ax
from botorch_skewgp import optuna as ours_in_optuna
from botorch_skewgp.ax import comparisons
from botorch_skewgp.ax.registry import fitted_adapter
from botorch_skewgp.optuna.internals import set_study_system_attr
from botorch_skewgp.optuna.judgements import read_records
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

optuna.logging.set_verbosity(optuna.logging.ERROR)
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


def of_numbers(observations, xs, sign=1.0, inverse=lambda values: values):
    """Numbers and bounds by points."""
    numbers, bounds = {}, {}
    for entry in observations:
        fields = {"Numeric": ("values",), "Censored": ("lower", "upper")}.get(type(entry).__name__, ())
        values = [sign * inverse(getattr(entry, name).numpy()) for name in fields]
        for row, place in enumerate(entry.index.tolist() if values else []):
            told = sorted(float(value[row]) for value in values)
            (numbers if len(told) == 1 else bounds)[xs[place]] = told[0] if len(told) == 1 else tuple(told)
    return numbers, bounds


class Host:
    """Calls by the same name in both hosts, about a study or an experiment."""

    def __getattr__(self, name):
        if name not in self.calls:
            raise AttributeError(name)
        return functools.partial(self.calls[name], self.subject)


class InOptuna(Host):
    """A study."""

    error = InputDataError
    questions = (2, 3)  # the cheaper, and the dearer
    calls = {
        "bound": ours_in_optuna.report_censored,
        "prefer": ours_in_optuna.report_comparison,
        "choose": ours_in_optuna.report_choice,
        "withdraw": ours_in_optuna.withdraw_comparison,
        "withdraw_bound": ours_in_optuna.withdraw_reports,
        "clean": ours_in_optuna.withdraw_unreadable,
    }

    def __init__(self, seed=0, startup=1, sign=-1, num_objectives=1, limit=None, **kwargs):
        sampler = ours_in_optuna.SkewGPSampler(seed=seed, n_startup_trials=startup, **kwargs)
        directions = ["maximize" if sign > 0 else "minimize"] * num_objectives
        self.subject = self.study = optuna.create_study(directions=directions, sampler=sampler)
        self.sign, self.limit = sign, limit

    def attach(self, *xs):
        for x in xs:
            self.study.enqueue_trial({"x": x})
            trial = self.study.ask(SPACE)
            if self.limit is not None:
                trial.set_constraint("x", x - self.limit)
        return len(self.study.trials) - 1

    def number(self, trial, *values):
        self.study.tell(trial, values)

    def fail(self, trial):
        self.study.tell(trial, state=TrialState.FAIL)

    def unusable(self, trial, value):
        self.number(trial, value)
        ours_in_optuna.report_unusable(self.study, trial)

    def junk(self, *entries):
        for number, entry in enumerate(entries):
            self.study.set_user_attr(f"skewgp:judgement:junk{number}", entry)

    def junk_bounds(self, *entries):
        for trial, entry in enumerate(entries):
            self.study.set_user_attr(f"skewgp:bounds:{trial}", entry)

    def write_others(self, of_study, of_user, of_trial, of_running):
        """What others may write beside judgements, with a study and its trials."""
        for key, value in of_user.items():
            self.study.set_user_attr(key, value)
        for key, value in of_study.items():
            set_study_system_attr(self.study, key, value)
        stored = self.study._storage._studies[self.study._study_id].trials  # a storage in memory refuses this by calls
        stored[1].system_attrs.update(of_trial)
        stored[-1].system_attrs.update(of_running)

    def entries(self):
        """What is read of all entries."""
        data, found = read_study(self.study, SearchSpace(SPACE)), read_records(self.study)
        assert not data.constraints.isinf().any()
        assert set(data.valid.nan_to_num(nan=0.5).tolist()) <= {0.0, 0.5, 1.0}
        return found.judgements, found.bounds, found.numbers, found.unusable

    def stored(self):
        return repr((self.study.user_attrs, [(trial.state, trial.values) for trial in self.study.trials]))

    def read(self):
        data = read_study(self.study, SearchSpace(SPACE))
        known = data.observed()
        told = ([], []) if known is None else (known.observations, known.X.squeeze(-1).tolist())
        seen = zip(data.X[:, 0].tolist(), data.valid.tolist(), strict=True)
        valid = {x: value for x, value in seen if value == value}
        numbers = of_numbers(*told, self.sign, data.power_transform.inverse_transform)
        return by_points(*told), *numbers, valid if 0.0 in valid.values() else {}

    def scaled(self):
        known = read_study(self.study, SearchSpace(SPACE)).observed()
        return of_numbers(known.observations, known.X.squeeze(-1).tolist(), self.sign)

    def next(self):
        return self.study.ask(SPACE).params["x"]

    def best(self):
        return ours_in_optuna.get_best_trial(self.study).params["x"]

    def best_point(self):
        found = ours_in_optuna.get_best_point(self.study)
        return found.params["x"], found.p_works

    def ask(self, costs):
        asked = ours_in_optuna.get_next_question(self.study, costs)
        return len(asked.trials) + asked.num_new, asked.value, asked.cost


class InAx(Host):
    """An experiment behind a client."""

    error = UserInputError
    questions = ("comparison", "number")
    calls = {
        "bound": lambda client, trial, *args, **named: ours_in_ax.attach_censored(
            client, trial, "loss", *args, **named
        ),
        "prefer": ours_in_ax.attach_comparison,
        "choose": ours_in_ax.attach_choice,
        "withdraw": ours_in_ax.withdraw_comparison,
        "withdraw_bound": lambda client, trial: ours_in_ax.withdraw_censored(client, trial, "loss"),
        "clean": ours_in_ax.withdraw_unreadable,
    }

    def __init__(self, seed=0, startup=1, sign=-1, num_objectives=1, limit=None, **kwargs):
        self.subject = self.client = Client()
        self.sign, self.limit = sign, limit
        self.client.configure_experiment([RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))])
        self.names = ["loss", "other"][:num_objectives]
        self.client.configure_optimization(
            objective=", ".join(name if sign > 0 else f"-{name}" for name in self.names),
            outcome_constraints=None if limit is None else ["cost <= 0"],
        )
        strategy = ours_in_ax.skewgp_generation_strategy(initialization_budget=startup, seed=seed, **kwargs)
        self.client.set_generation_strategy(strategy)

    @property
    def experiment(self):
        return self.client._experiment

    def attach(self, *xs):
        return max(self.client.attach_trial({"x": x}) for x in xs)

    def number(self, trial, *values):
        told = dict(zip(self.names, values, strict=True))
        if self.limit is not None:
            told["cost"] = self.experiment.trials[trial].arm.parameters["x"] - self.limit
        self.client.complete_trial(trial, told)

    def fail(self, trial):
        self.client.mark_trial_failed(trial)

    def unusable(self, trial, value):
        self.client.configure_tracking_metrics(["validity"])
        self.client.complete_trial(trial, {"loss": value, "validity": 0})

    def junk(self, *entries, key="skewgp_comparisons"):
        properties = self.experiment._properties
        properties[key] = [*properties.get(key, []), *entries]

    def junk_bounds(self, *entries):
        self.junk(*entries, key="skewgp_censored")

    def entries(self):
        """What is read of all entries."""
        return comparisons.recorded(self.experiment)[:2]

    def stored(self):
        trials = [trial.status for trial in self.experiment.trials.values()]
        return repr((self.experiment._properties, trials, self.experiment.lookup_data().df.to_dict()))

    def _read(self):
        adapter = fitted_adapter(self.client)
        sets = {entry.outcome_names[0]: entry for entry in adapter.generator.surrogate.training_data}
        return adapter, sets, (sets["loss"].observations, sets["loss"].X.squeeze(-1).tolist())

    def read(self):
        adapter, sets, told = self._read()
        map_of = adapter.power_transform.power_transforms.get("loss")
        numbers = of_numbers(*told) if map_of is None else of_numbers(*told, inverse=map_of.inverse_transform)
        valid = sets.get("validity")
        points = [] if valid is None else zip(valid.X.squeeze(-1).tolist(), valid.Y.squeeze(-1).tolist(), strict=True)
        return by_points(*told), *numbers, dict(points)

    def scaled(self):
        return of_numbers(*self._read()[2])

    def next(self):
        ((_, parameters),) = self.client.get_next_trials(max_trials=1).items()
        return parameters["x"]

    def best(self):
        return ours_in_ax.get_best_arm(self.client)[0]["x"]

    def best_point(self):
        parameters, _, p_works = ours_in_ax.get_best_point(self.client)
        return parameters["x"], p_works

    def ask(self, costs):
        asked = ours_in_ax.get_next_question(self.client, costs)
        arms = self.experiment.trials[asked.trial_index].arms
        assert [*asked.arms] == [arm.name for arm in arms][: 1 if asked.ask == "number" else 2]
        return asked.ask, asked.value, asked.cost


HOSTS = {"optuna": InOptuna, "ax": InAx}
ERRORS = (UserInputError, BotorchError)


def told(call):
    """What is told of entries that are left out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", InputDataWarning)
        call()
    return [str(entry.message) for entry in caught]

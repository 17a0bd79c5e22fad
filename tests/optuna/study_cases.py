"""Studies of one parameter, and what the tests read of their data."""

import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from optuna_dashboard import preferential

from botorch_skewgp.optuna import SkewGPSampler
from botorch_skewgp.optuna.internals import study_of
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

optuna.logging.set_verbosity(optuna.logging.ERROR)
DISTRIBUTIONS = {"x": FloatDistribution(0, 1)}
SPACE = SearchSpace(DISTRIBUTIONS)


def ask(study, x):
    """A running trial at a value."""
    study_of(study).enqueue_trial({"x": x})
    return study.ask(DISTRIBUTIONS)


def sampler(**kwargs):
    return SkewGPSampler(**{"seed": 0, "n_startup_trials": 3} | kwargs)


def with_trials(xs, value=lambda x: (x - 0.6) ** 2, study=None, **kwargs):
    """A study in which these values were tried; `None` for a value that fails."""
    study = optuna.create_study(sampler=sampler(**kwargs)) if study is None else study
    for x in xs:
        result = value(x)
        study.tell(ask(study, x), result, state=TrialState.FAIL if result is None else None)
    return study


def page(xs, n_generate=2):
    """A preferential study whose trials run."""
    study = preferential.create_study(n_generate=n_generate, sampler=sampler())
    for x in xs:
        ask(study, x)
    return study


def read(study):
    return read_study(study_of(study), SPACE)


def told(data):
    """The numbers of the trials of judgements, by the kind."""
    found = {}
    for entry in data.judgements:
        found.setdefault(entry.kind.__name__, []).append(tuple(data.trials[row] for row in entry.items))
    return found

"""Studies of one parameter, and what the tests read of their data."""

from optuna.distributions import FloatDistribution

from botorch_skewgp.optuna.internals import study_of
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

DISTRIBUTIONS = {"x": FloatDistribution(0, 1)}
SPACE = SearchSpace(DISTRIBUTIONS)


def ask(study, x):
    """A running trial at a value."""
    study_of(study).enqueue_trial({"x": x})
    return study.ask(DISTRIBUTIONS)


def read(study):
    return read_study(study_of(study), SPACE)


def told(data):
    """The numbers of the trials of judgements, by the kind."""
    found = {}
    for entry in data.judgements:
        found.setdefault(entry.kind.__name__, []).append(tuple(data.trials[row] for row in entry.items))
    return found

"""Whatever others have written into an experiment: what can be read is used, the rest is told, and the loop goes on."""

import re

import pytest
from host_cases import HOSTS, told
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botorch_skewgp.hosts import records

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
    pytest.mark.parametrize("make", HOSTS.values(), ids=list(HOSTS)),
]
QUICK = [HealthCheck.too_slow]

items = st.integers(-1, 3) | st.sampled_from(["0_0", "1_0", "2_0", "9_9"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | items
json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
likely = items | st.lists(items, max_size=3) | st.just("loss") | st.booleans() | json


def entries(*names):
    return st.lists(json | st.fixed_dictionaries({}, optional=dict.fromkeys(names, likely)), max_size=4)


JUDGEMENTS = entries("winner", "losers", "tie", "or_none", "judge") | st.lists(st.tuples(items, items), max_size=2)
BOUNDS = entries("trial", "arm", "metric", "lower", "upper") | st.lists(st.lists(scalars, min_size=2, max_size=2))
named = st.integers(-1, 3).map(str) | st.text(max_size=4)


def attrs(*keys):
    """What Optuna stores beside, with a study or a trial."""
    return st.dictionaries(
        st.sampled_from([key for key in keys if key[-1] != ":"])
        | st.builds(str.__add__, st.sampled_from([key for key in keys if key[-1] == ":"]), named),
        json,
        max_size=3,
    )


OF_STUDY = attrs("preference:is_preferential", "preference:values:", "preference:skip_trial:")
OF_USER = attrs("other", "skewgp:unusable:", "skewgp:number:")
OF_TRIAL = attrs("constraints", "retry_history", "skewgp:choosing", "constraints:", "skewgp:relative_params:")


def written(make, judgements, bounds, *others):
    """Two trials with numbers and one that runs, and an entry of each kind beside those given."""
    host = make()
    for number, x in enumerate((0.1, 0.5)):
        host.attach(x)
        host.number(number, x)
    host.attach(0.9)
    host.prefer(0, 1, judge="ann")
    host.bound(2, lower=0.3)
    host.junk(*judgements)
    host.junk_bounds(*bounds)
    if hasattr(host, "write_others"):
        host.write_others(*others)
    return host


@settings(max_examples=150, deadline=None, suppress_health_check=QUICK)
@given(judgements=JUDGEMENTS, bounds=BOUNDS, study=OF_STUDY, user=OF_USER, trial=OF_TRIAL, running=OF_TRIAL)
def test_any_entries_are_read_or_told_and_can_be_taken_back(make, judgements, bounds, study, user, trial, running):
    host = written(make, judgements, bounds, study, user, trial, running)
    messages = told(host.entries)
    assert all(re.search(r"is left out: .*(withdraw_unreadable|no such entry)", text, re.DOTALL) for text in messages)
    assert told(host.entries) == []  # once
    said = host.entries()
    host.clean()
    records._warn_once.cache_clear()
    assert all(re.match(r"(Constraint ['\"].*|retry_history) of trial", text, re.DOTALL) for text in told(host.entries))
    assert host.entries() == said


@settings(max_examples=8, deadline=None, suppress_health_check=QUICK)
@given(judgements=JUDGEMENTS, bounds=BOUNDS, trial=OF_TRIAL)
def test_the_search_goes_on_whatever_others_wrote(make, judgements, bounds, trial):
    host = written(make, judgements, bounds, {}, {}, trial, {})
    told(lambda: host.next())
    assert 0 <= host.next() <= 1

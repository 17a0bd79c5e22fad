"""The models of a study, and what they ask for next."""

import threading
from concurrent.futures import ThreadPoolExecutor

import optuna
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState
from study_cases import SPACE, ask, read

from botorch_skewgp.hosts.data import Observed
from botorch_skewgp.observations import Censored, Numeric, Preference, Tie, Validity
from botorch_skewgp.optuna import report_censored
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_model import Fits, StudyModel, _digest


def test_where_only_failures_are_known_neither_they_nor_running_trials_are_proposed_again():
    """The latter are taken to fail."""
    study = optuna.create_study()
    for x in (0.0, 0.2, 0.9):
        study.tell(ask(study, x), state=TrialState.FAIL)
    data, new = read(study), torch.tensor([[0.55]], dtype=torch.double)
    alone, beside = (StudyModel(data, SPACE, Fits(0)).acquisition(0, running) for running in (new[:0], new))
    assert (alone(new.unsqueeze(0)) > alone(data.X.unsqueeze(1)) + 1.0).all()
    assert alone(new.unsqueeze(0)) > beside(new.unsqueeze(0)) + 0.1


def test_beside_a_bound_each_draw_of_the_rows_has_one_draw_of_the_best_value():
    study = optuna.create_study()
    for x in (0.0, 0.3, 0.6, 0.9):
        study.tell(ask(study, x), x**2)
    report_censored(study, 3, 0.5)
    model = StudyModel(read(study), SPACE, Fits(0))
    (improvement,) = model.acquisition(0, torch.empty(0, 1, dtype=torch.double)).terms
    assert improvement.best_f.shape == (model.objectives[0].draws.num_draws,)


def test_numbers_of_several_objectives_keep_their_units():
    study = optuna.create_study(directions=["minimize", "minimize"])
    for x in (0.1, 0.2, 0.3, 0.9):
        study.tell(ask(study, x), (x, x**9))
    (numbers,) = read(study).observed(1).observations
    torch.testing.assert_close(numbers.values, read(study).numbers[:, 1])


POINTS = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.double)
NUMBERS = torch.tensor([1.0, 3.0, 2.0], dtype=torch.double)
ALL = torch.arange(3)
PAIRS = torch.tensor([[0, 1], [2, 1]])


def known(told, X=POINTS):
    return Observed(X.clone(), [entry.apply(torch.clone) for entry in told], ALL, ALL)


def asked(fits, told):
    return fits.models(SPACE, {"one function": known(told), "another": known(told)})["another"][0]


BEFORE = {
    "numbers": [Numeric(NUMBERS, index=ALL)],
    "variances": [Numeric(NUMBERS, 0.1 * NUMBERS, index=ALL)],
    "duels": [Preference(PAIRS)],
    "bounds": [Censored(NUMBERS, NUMBERS + 1, index=ALL)],
}
AFTER = {
    "another number": ("numbers", {"told": [Numeric(NUMBERS + torch.tensor([0.0, 0.0, 1e-9]), index=ALL)]}),
    "other places": ("numbers", {"told": [Numeric(NUMBERS, index=ALL.flip(0))]}),
    "other noise": ("variances", {"told": [Numeric(NUMBERS, 0.2 * NUMBERS, index=ALL)]}),
    "another point": ("numbers", {"X": POINTS + 1e-9}),
    "another space": ("numbers", {"space": SearchSpace({"x": CategoricalDistribution("ab")}), "X": POINTS.round()}),
    "another name": ("numbers", {"space": SearchSpace({"y": FloatDistribution(0, 1)})}),
    "another scale": ("numbers", {"space": SearchSpace({"x": FloatDistribution(0, 2)})}),
    "other winners": ("duels", {"told": [Preference(PAIRS.flip(-1))]}),
    "ties": ("duels", {"told": [Tie(PAIRS)]}),
    "somebody's answers": ("duels", {"told": [Preference(PAIRS, judge=0)]}),
    "labels": ("numbers", {"told": [Validity(NUMBERS > 1, index=ALL)]}),
}


@pytest.mark.parametrize("before", BEFORE)
def test_the_same_data_are_fitted_once_and_kept_until_others_are_asked_for(num_fits, before):
    fits = Fits(0)
    first, second = (asked(fits, BEFORE[before]) for _ in range(2))
    assert len(num_fits) == 1
    assert first is second
    asked(fits, [Preference(PAIRS[:1])])
    anew = asked(fits, BEFORE[before])
    assert len(num_fits) == 3
    X = torch.tensor([[0.3]], dtype=torch.double)
    for moment in ("mean", "variance"):
        assert torch.equal(getattr(first.posterior(X), moment), getattr(anew.posterior(X), moment))


@pytest.mark.parametrize("after", AFTER)
def test_whatever_changes_is_fitted_again(after):
    before, change = AFTER[after]
    told, X, space = (change.get(*given) for given in (("told", BEFORE[before]), ("X", POINTS), ("space", SPACE)))
    digest = _digest(SPACE, known(BEFORE[before]))
    assert digest == _digest(SPACE, known(BEFORE[before])) != _digest(space, known(told, X))


def test_threads_that_ask_at_the_same_time_share_a_fit(num_fits):
    fits, together = Fits(0), threading.Barrier(4)

    def ask(_):
        together.wait(60)
        return asked(fits, BEFORE["numbers"])

    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(ask, range(4)))
    assert len(num_fits) == 1
    assert len({id(model) for model in models}) == 1

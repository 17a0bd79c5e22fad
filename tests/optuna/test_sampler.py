"""What the sampler asks for next."""

import copy
import math
import pickle
import warnings

import optuna
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from study_cases import DISTRIBUTIONS, SPACE, ask, page, read, sampler, with_trials
from torch.nn.utils import parameters_to_vector

from botorch_skewgp.observations import Validity
from botorch_skewgp.optuna import report_comparison, study_model
from botorch_skewgp.optuna.internals import set_trial_system_attr, study_of
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import FITS, RELATIVE_PARAMS, _fits
from botorch_skewgp.optuna.study_model import Fits, StudyModel, covar_module


def next_x(study):
    return study.ask().suggest_float("x", 0, 1)


@pytest.mark.parametrize("ends", [False, True])
def test_a_trial_that_another_worker_starts_meanwhile_is_accounted_for(monkeypatch, ends):
    """Both would ask for the same point, also where the other worker's objective takes next to no time."""
    study = with_trials([0.0, 0.25, 0.5, 0.75, 1.0])
    alone, pending = next_x(study), []
    study = with_trials([0.0, 0.25, 0.5, 0.75, 1.0])
    trial = study.ask()
    original = StudyModel.acquisition

    def another_worker(self, seed, X_pending, against):
        pending.append(X_pending.flatten().tolist())
        if len(pending) == 1:
            other = ask(study, alone)
            if ends:
                study.tell(other, (alone - 0.6) ** 2)
        return original(self, seed, X_pending, against)

    monkeypatch.setattr(StudyModel, "acquisition", another_worker)
    assert abs(trial.suggest_float("x", 0, 1) - alone) > 0.01
    assert pending == [[], [] if ends else [pytest.approx(alone)]]


def compared(xs, n_generate=2):
    """A preferential study in which large values win."""
    study = page([], n_generate)
    for x in xs:
        ask(study, x)
        losers = {worse.number for _, worse in study.get_preferences()}
        shown = sorted((t for t in study.trials if t.number not in losers), key=lambda t: t.params["x"])
        if len(shown) == n_generate:
            study.report_preference(shown[1:], shown[0])
    return study


def test_nothing_is_modelled_before_the_first_comparison():
    study = compared([0.1])
    assert study.ask()._suggest("x", FloatDistribution(0, 1)) is not None
    assert not [key for key in study.trials[1].system_attrs if key.startswith("skewgp")]


def test_a_trial_is_chosen_for_those_that_it_will_be_compared_with():
    """In a preferential study, the points shown that were compared."""
    data = read(compared([0.1, 0.3, 0.5, 0.4], n_generate=3))
    assert sorted(data.X[data.shown].flatten().tolist()) == [0.4, 0.5]
    model = StudyModel(data, SPACE, Fits(0))
    assert sorted(model._baseline().flatten().tolist()) == [0.4, 0.5]


def objective(trial):
    x = trial.suggest_float("x", 1e-3, 1, log=True)
    k = trial.suggest_int("k", 1, 5)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    extra = trial.suggest_float("extra", 0, 1) if kind == "a" else 0.0
    trial.suggest_float("alone", 2, 2)
    return (math.log10(x) + 1) ** 2 + abs(k - 4) + (kind != "b") + extra


def test_mixed_and_conditional_spaces():
    study = optuna.create_study(sampler=sampler(n_startup_trials=6, warn_independent_sampling=False))
    study.optimize(objective, n_trials=8)
    relative = {key.rpartition(":")[2] for key in study.trials[-1].system_attrs if key.startswith(RELATIVE_PARAMS)}
    assert relative == {"x", "k", "kind", "extra"}


def test_a_range_that_depends_on_another_value_is_obeyed():
    """Of what the model has chosen for the last ranges the nearest value is taken."""
    study = optuna.create_study(sampler=sampler())
    for x, y in ((0.5, 0.1), (0.9, 0.8), (1.0, 0.9), (0.8, 0.7)):
        spaces = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, x)}
        study.add_trial(optuna.create_trial(params={"x": x, "y": y}, distributions=spaces, value=(y - 0.9) ** 2))
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    wanted = study.trials[-1].system_attrs[RELATIVE_PARAMS + "y"]
    assert wanted > 0.3
    assert trial.suggest_float("y", 0, 0.3) == 0.3
    assert study.ask().suggest_float("y", 0, 1) > 0.3


def test_one_branch_alone_is_the_plain_space():
    """A parameter of a single value decides about nothing: proposals are those without it."""
    space = DISTRIBUTIONS | {"branch": CategoricalDistribution(["a"])}
    proposals = []
    for distributions in (DISTRIBUTIONS, space):
        study = optuna.create_study(sampler=sampler())
        for x in (0.1, 0.4, 0.7, 0.9):
            study.enqueue_trial({"x": x, "branch": "a"} if "branch" in distributions else {"x": x})
            study.tell(study.ask(distributions), (x - 0.6) ** 2)
        proposals.append(study.ask(distributions).params["x"])
    assert proposals[0] == proposals[1]


def test_what_is_sampled_independently_is_logged_once(caplog):
    optuna.logging.enable_propagation()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=sampler(n_startup_trials=1))
    for _ in range(2):
        study.add_trial(optuna.create_trial(value=1.0))
    for _ in range(2):
        study.tell(study.ask(DISTRIBUTIONS), 1.0)
    optuna.logging.disable_propagation()
    assert caplog.text.count("'x' is sampled independently") == 1


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_trials_of_all_brackets_of_hyperband_count():
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=sampler(n_startup_trials=2), pruner=pruner)
    for x in (0.2, 0.4, 0.9):
        study.add_trial(optuna.create_trial(params={"x": x}, distributions=DISTRIBUTIONS, value=x))
    report_comparison(study, 0, 2)  # of which one bracket lacks a trial
    study.ask(DISTRIBUTIONS)
    assert RELATIVE_PARAMS + "x" in study.trials[-1].system_attrs


def test_a_discrete_space_is_searched_through_before_points_come_again():
    study = optuna.create_study(sampler=sampler(n_startup_trials=1))
    for _ in range(4):
        trial = study.ask({"k": IntDistribution(0, 3)})
        study.tell(trial, float(trial.params["k"]))
    assert sorted(trial.params["k"] for trial in study.trials) == [0, 1, 2, 3]


def _with_failures():
    return with_trials([0.1, 0.3, 0.5, 0.8, 0.9], lambda x: None if x > 0.7 else (x - 0.6) ** 2)


def _of_two_objectives():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    return with_trials([0.0, 0.1, 0.9, 1.0], lambda x: ((x - 0.3) ** 2, -((x - 0.7) ** 2)), study)


def _of_comparisons():
    return compared([0.1, 0.3, 0.5, 0.9])


BATCHES = [(_with_failures, 2), (_of_comparisons, 1), pytest.param(_of_two_objectives, 2, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("make", "num_functions"), BATCHES)
def test_a_batch_takes_one_fit_and_the_points_that_fresh_samplers_choose(num_fits, make, num_functions):
    kept, fresh = make(), make()
    batch = [next_x(kept) for _ in range(2)]
    assert len(num_fits) == num_functions
    for x in batch:
        of_fresh = study_of(fresh)
        of_fresh.sampler = pickle.loads(pickle.dumps(of_fresh.sampler))  # without what it has fitted
        assert next_x(fresh) == x
    assert len(num_fits) == 2 * num_functions  # the second finds what the first has stored


def test_only_what_a_result_changes_is_fitted_again(num_fits):
    study = _with_failures()
    first, second = study.ask(), study.ask()
    x = [trial.suggest_float("x", 0, 1) for trial in (first, second)]
    assert num_fits == [3, 5]  # numbers, and whether trials worked
    study.tell(first, state=TrialState.FAIL)
    beside = copy.deepcopy(study)
    next_x(study)
    assert num_fits == [3, 5, 6]
    study.tell(second, (x[1] - 0.6) ** 2)
    next_x(study)
    assert num_fits == [3, 5, 6, 4, 7]
    del num_fits[:]
    beside.tell(second.number, (x[1] - 0.6) ** 2)
    assert next_x(beside) is not None
    assert num_fits == [4, 7]


def _of_many(num_trials):
    return with_trials([i / num_trials for i in range(num_trials)], lambda x: math.sin(9 * x))


def test_hyperparameters_stay_until_there_are_more_points_by_a_fifth_and_are_then_a_start(num_fits, monkeypatch):
    study, found, starts, fit = _of_many(10), [], [], study_model.fit_gpytorch_mll

    def from_start(mll, **options):
        starts.append(parameters_to_vector(mll.parameters()).tolist())
        return fit(mll, **options)

    monkeypatch.setattr(study_model, "fit_gpytorch_mll", from_start)
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, math.sin(9 * trial.suggest_float("x", 0, 1)))
        ((_, _, values, num_points),) = study.trials[-1].system_attrs[FITS]
        found.append((values, num_points))
    assert num_fits == [10, 12]
    assert [num_points for _, num_points in found] == [10, 10, 12, 12]
    assert found[0] == found[1] != found[2] == found[3]
    assert starts[1] == found[0][0] != starts[0]


JUNK = [
    3,
    "text",
    [3],
    [["objective 0", "data", "text", 20]],
    [["objective 0", "data", [math.nan] * 4, 20]],
    [["objective 0", "data", [1.0] * 4, "20"]],
    [["objective 0", "data", [1.0] * 4]],
]


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_fit_is_left_out(junk):
    assert _fits(optuna.create_trial(value=1.0, system_attrs={FITS: junk})) == []


def test_a_fit_of_another_model_is_left_out():
    study, again = _of_many(6), _of_many(6)
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    set_trial_system_attr(study, study.trials[6], FITS, [["objective 0", "data", [1.0], 6]])
    study.tell(trial, math.sin(9 * x))
    again.add_trial(optuna.create_trial(params={"x": x}, distributions=DISTRIBUTIONS, value=math.sin(9 * x)))
    assert next_x(study) == next_x(again)


def test_threads_of_one_sampler():
    study = _with_failures()
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.6) ** 2, n_trials=2, n_jobs=2)
    for trial in study.trials[-2:]:
        assert trial.state == TrialState.COMPLETE
        assert trial.system_attrs[RELATIVE_PARAMS + "x"] == trial.params["x"]


def test_another_independent_sampler():
    random = optuna.samplers.RandomSampler(seed=5)
    study = optuna.create_study(sampler=sampler(independent_sampler=random))
    other = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=5))
    assert next_x(study) == next_x(other)
    with pytest.raises(InputDataError, match="independent_sampler must be a sampler of Optuna"):
        sampler(independent_sampler=optuna.samplers.RandomSampler)


@pytest.mark.parametrize("observations", [[], [Validity(torch.tensor([True, False]))]])
def test_functions_of_two_categories_have_a_correlation_of_one_half_at_the_mode_of_the_prior(observations):
    """Whatever the spread of the prior; a mode near 0 had made categories independent, of failures above all."""
    letters = {name: CategoricalDistribution(choices) for name, choices in (("c", "abcd"), ("d", "ab"))}
    space = SearchSpace({"x": FloatDistribution(0, 1), **letters})
    kernel = covar_module(space, observations)
    rbf, categorical = kernel.base_kernel.kernels
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rbf.lengthscale = 0.7
    categorical.lengthscale = categorical.lengthscale_prior.mode
    X = torch.tensor([[0.0, 2.0, 1.0], [1.0, 2.0, 1.0], [0.0, 3.0, 1.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]).double()
    with torch.no_grad():
        row = (kernel.double()(X).to_dense() / kernel.outputscale)[0]
    assert row.tolist() == pytest.approx([1.0, math.exp(-0.5 / 0.7**2), 0.5, 0.5, 0.25])

"""Odd arguments raise errors of BoTorch's classes that name the argument, and change nothing."""

import math
from functools import cache, partial

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.settings import validate_input_scaling
from gpytorch.priors import LogNormalPrior

from botorch_skewgp import SkewGP, acquisition
from botorch_skewgp.checking import check_inducing_points, judge_summary, leave_one_out
from botorch_skewgp.fitting import fit_panel, fit_skew_gp, sample_hyperparameters
from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    OutcomeScale,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
    VoteLikelihood,
    register_default_likelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import (
    FullyBayesianSkewGP,
    MomentMatchedModel,
    SkewPrior,
    default_covar_module,
    default_judge_covar_module,
)
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    Numeric,
    Ordinal,
    Preference,
    Tie,
    Validity,
    number_judges,
)
from botorch_skewgp.papers import sun_parameters, unified_skew_normal
from botorch_skewgp.papers.dueling import DuelingThompsonSampling, DuelingUpperCredibleBound
from botorch_skewgp.papers.safety import PenalizedUpperConfidenceBound
from botorch_skewgp.thresholds import threshold
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick

X = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
PAIRS = [[0, 1], [2, 3], [4, 1]]
FEW = DrawSettings(num_draws=64)
FIRST = torch.tensor([0])
NO_WIDTH = Normalize(2, bounds=0 * UNIT)
QUICK = {"num_restarts": 1, "raw_samples": 4}


@cache
def duels():
    return SkewGP(X, Preference(PAIRS), draw_settings=FEW)


@cache
def labels():
    return SkewGP(X, Binary([1, 0, 1, 0, 1, 1]), draw_settings=FEW)


def unscaled(*args):
    with validate_input_scaling(False):
        return SkewGP(*args)


def fit(model):
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))


LIKELIHOODS = [
    ("learn_noise", lambda: PreferenceLikelihood(learn_noise=1)),
    ("noise_prior", lambda: ProbitLikelihood(noise_prior=LogNormalPrior)),
    ("noise_constraint", lambda: ProbitLikelihood(noise_constraint=1e-4)),
    ("noise", lambda: ProbitLikelihood(noise=True)),
    ("learn_slip", lambda: ProbitLikelihood(learn_slip="no")),
    (r"slip must be 0 or a number .* got 1j", lambda: ProbitLikelihood(slip=1j)),
    ("slip_prior", lambda: ProbitLikelihood(slip=0.1, slip_prior=0.5)),
    *[("scale must", lambda odd=odd: OutcomeScale(0.0, odd)) for odd in (-1.0, 0.0, math.nan, math.inf, "1", True)],
    *[("location must", lambda odd=odd: OutcomeScale(odd)) for odd in (math.nan, math.inf, "0", None)],
    ("ties_allowed", lambda: PreferenceLikelihood(ties_allowed="no")),
    ("num_strengths", lambda: PreferenceLikelihood(num_strengths=0)),
    ("num_grades", lambda: OrdinalLikelihood(True)),
    ("cutpoints", lambda: OrdinalLikelihood(3, cutpoints="ab")),
    ("gap_prior", lambda: OrdinalLikelihood(3, gap_prior=1)),
    ("num_labels", lambda: LabelPreferenceLikelihood(1)),
    ("threshold", lambda: ValidityLikelihood(threshold=torch.zeros(2))),
    ("learn_threshold", lambda: ValidityLikelihood(learn_threshold="no")),
    ("threshold_prior", lambda: ValidityLikelihood(threshold_prior=1)),
    ("threshold", lambda: VoteLikelihood(threshold="a")),
    ("warping", lambda: NumericLikelihood(warping="log")),
    ("factory", lambda: register_default_likelihood(Binary, ProbitLikelihood())),
    ("names", lambda: number_judges("ann")),
]
MODELS = [
    ("slip", lambda: SkewGP(X, Preference(PAIRS), PreferenceLikelihood(slip=[0.1, 0.2]))),
    ("tie_width", lambda: SkewGP(X, Tie(PAIRS), PreferenceLikelihood(tie_width=[0.1, 0.2], ties_allowed=True))),
    ("num_draws", lambda: DrawSettings(num_draws=10**9)),
    ("X contains NaN or infinite values in rows", lambda: duels().posterior(X.index_fill(0, FIRST, math.nan))),
    ("X contains NaN or infinite values in rows", lambda: labels().posterior(X.index_fill(0, FIRST, math.inf))),
    ("Numeric holds numbers that are too large, up to 1e.155", lambda: unscaled(X, Numeric([1, 2, 3, 4, 5, 1e155]))),
    ("Censored has intervals of a width below", lambda: SkewGP(X, Censored([0.0], [1e-300], index=[0]))),
    ("Some points are too large for torch.float64", lambda: fit(unscaled(X.index_fill(0, FIRST, 1e300), Tie(PAIRS)))),
    ("train_X, after input transforms, contains NaN", lambda: fit(SkewGP(X, Tie(PAIRS), input_transform=NO_WIDTH))),
    ("learn_inducing_points", lambda: SkewGP(X, inducing_points=3, learn_inducing_points="no")),
    ("learn_judge_reliability", lambda: SkewGP(X, learn_judge_reliability="no")),
    ("output_indices", lambda: duels().posterior(X, output_indices=0)),
    ("output_indices", lambda: duels().posterior(X, output_indices=["a"])),
    ("observation_noise", lambda: duels().posterior(X, observation_noise="yes")),
    ("posterior_transform", lambda: duels().posterior(X, posterior_transform=3)),
    ("sampler", lambda: duels().fantasize(X[:2], None)),
    ("X", lambda: duels().fantasize([[0.0, 1.0]], None)),
    ("seed", lambda: duels().condition_on_draws(X, seed="a")),
    ("inputs", lambda: duels().set_train_data([[0.0, 1.0]])),
    ("observations", lambda: duels().set_train_data(targets="ab")),
    ("dim", lambda: default_covar_module(0)),
    ("judge", lambda: default_covar_module(2, Preference(PAIRS), judge=["noisy"])),
    ("truncation", lambda: SkewPrior(X[:2], [1, -1], truncation="a")),
    ("models", lambda: FullyBayesianSkewGP(3)),
    ("model", lambda: MomentMatchedModel(3)),
]
QUESTIONS = [
    ("model", lambda: acquisition.next_pair("model", UNIT)),
    ("foo", lambda: acquisition.next_pair(duels(), UNIT, foo=1, **QUICK)),
    ("method", lambda: acquisition.next_pair(duels(), UNIT, method=["qeubo"], **QUICK)),
    ("fixed_features", lambda: acquisition.next_choice(duels(), UNIT, fixed_features={0: 0.5, -1: 0.5}, **QUICK)),
    (r"fixed_features\[0\]", lambda: acquisition.next_pair(duels(), UNIT, fixed_features={0: 7.0}, **QUICK)),
    (r"fixed_features\[1\]", lambda: acquisition.recommend(duels(), UNIT, fixed_features={1: -0.1}, **QUICK)),
    (r"fixed_features\[0\]", lambda: acquisition.recommend(duels(), UNIT, fixed_features={0: float("nan")}, **QUICK)),
    (
        r"fixed_features\[0\]",
        lambda: acquisition.next_pair(duels(), UNIT, discrete_dims={0: [0, 1]}, fixed_features={0: 0.4}),
    ),
    ("fixed_features", lambda: acquisition.next_pair(duels(), UNIT, fixed_features=[0.5], **QUICK)),
    ("got 'a'", lambda: acquisition.next_pair(duels(), UNIT, fixed_features={"a": 0.5}, **QUICK)),
    ("discrete_dims", lambda: acquisition.next_pair(duels(), UNIT, discrete_dims={"a": [0, 1]}, **QUICK)),
    ("values of input 0 in discrete_dims", lambda: acquisition.next_pair(duels(), UNIT, discrete_dims={0: 3}, **QUICK)),
    ("X_candidates", lambda: acquisition.next_choice(duels(), X_candidates=X[[0, 0, 0, 1]])),
    ("judges", lambda: acquisition.next_question(duels(), UNIT, [Preference], judges=1.5)),
    ("num", lambda: acquisition.select_from_pool(acquisition.QuantileBound(duels()), X, num=1.5)),
    ("best_f", lambda: acquisition.SkewLogExpectedImprovement(duels(), best_f="a")),
    ("X_reference", lambda: DuelingUpperCredibleBound(duels(), [0.5, 0.5])),
    ("penalty", lambda: PenalizedUpperConfidenceBound(labels(), penalty="a")),
    ("level", lambda: acquisition.SafetyInequality(labels(), level="a")),
    ("q must", lambda: acquisition.next_safe(acquisition.QuantileBound(duels()), UNIT, labels(), q=0)),
    ("acq_function", lambda: acquisition.next_safe(duels(), UNIT, labels())),
    (
        "leave ic_generator out",
        lambda: acquisition.next_safe(acquisition.QuantileBound(duels()), UNIT, labels(), ic_generator=None),
    ),
    ("samples_per_draw", lambda: acquisition.SkewLogNoisyExpectedImprovement(duels(), X, samples_per_draw=0)),
    ("seed", lambda: acquisition.SkewBayesianActiveLearningByDisagreement(duels(), seed=0.5)),
    ("bounds", lambda: threshold(labels(), X, 0.5, 0, "ab")),
    ("num_draws", lambda: threshold(labels(), X, 0.5, 0, (0.0, 1.0), num_draws=1.5)),
    ("level", lambda: acquisition.LevelSetInformation(labels(), "a", X)),
    ("num_points", lambda: acquisition.Question(Choice, num_points=10**9)),
    ("num_options", lambda: acquisition.next_choice(duels(), UNIT, num_options=10**9)),
    ("maximize", lambda: acquisition.QuantileBound(duels(), maximize="no")),
    ("best_f", lambda: acquisition.SkewLogExpectedImprovement(duels(), best_f=float("nan"))),
    ("generator", lambda: DuelingThompsonSampling(duels(), X[0], generator=3)),
    ("num_features", lambda: DuelingThompsonSampling(duels(), X[0], num_features=0)),
    ("sampler", lambda: DuelingUpperCredibleBound(duels(), X[0], sampler=3)),
    ("X_pending", lambda: acquisition.SkewBayesianActiveLearningByDisagreement(duels(), X_pending="a")),
    ("model", lambda: fit_skew_gp("a")),
    ("num_draws", lambda: sample_hyperparameters(fit_skew_gp(duels()), num_draws=2.5)),
    ("max_evaluations", lambda: sample_hyperparameters(fit_skew_gp(duels()), max_evaluations=100.5)),
    ("tolerance", lambda: check_inducing_points(SkewGP(X, Preference(PAIRS), inducing_points=3), tolerance=math.nan)),
    ("tolerance", lambda: check_inducing_points(SkewGP(X, Preference(PAIRS), inducing_points=3), tolerance=-1.0)),
    ("X contains NaN", lambda: sun_parameters(duels(), X * math.nan)),
    ("dim is about inputs 0 to 1; got 'a'", lambda: threshold(labels(), X, 0.5, "a", (0.0, 1.0))),
    ("X must be batch_shape x 2", lambda: threshold(labels(), X[0, 0], 0.5, 0, (0.0, 1.0))),
    ("categories is about inputs 0 to 1; got 2", lambda: default_judge_covar_module(2, categories=[2])),
    ("categories names input 1 more than once", lambda: fit_panel(X, Preference(PAIRS), categories=[1, -1])),
    (
        "fixed_features is about inputs 0 to 1; got 2",
        lambda: acquisition.next_safe(acquisition.QuantileBound(duels()), UNIT, labels(), fixed_features={2: 0.0}),
    ),
]


@pytest.mark.parametrize(("name", "call"), LIKELIHOODS + MODELS + QUESTIONS)
def test_errors_name_the_argument(name, call):
    with pytest.raises((BotorchTensorDimensionError, InputDataError, UnsupportedError), match=name):
        call()


@pytest.mark.parametrize("model", [None, SingleTaskGP(X, X[:, :1]), ModelListGP(duels())])
def test_other_models_are_refused_in_words(model):
    at_points = [partial(use, X=X) for use in (sun_parameters, unified_skew_normal)]
    noisy = partial(acquisition.SkewLogNoisyExpectedImprovement, X_baseline=X)
    for use in (leave_one_out, judge_summary, check_inducing_points, noisy, *at_points):
        with pytest.raises(UnsupportedError, match=f"needs a .*SkewGP.* got {type(model).__name__}"):
            use(model)


def test_models_are_unchanged_after_errors():
    model = SkewGP(X, Preference(PAIRS), draw_settings=FEW)
    before, mean = {name: value.clone() for name, value in model.state_dict().items()}, model.posterior(X).mean
    points, observations = model.datapoints, model.observations
    refused = (
        lambda: model.set_train_data(targets=Binary([1])),
        lambda: model.set_train_data(X[:, :1], strict=False),
        lambda: model.choose_inducing_points(3, learn="no"),
        lambda: setattr(model.likelihood, "noise", "a"),
        lambda: setattr(model.covar_module, "outputscale", True),
        lambda: model.posterior(X, observation_noise=torch.ones(5, 1)),
    )
    for call in refused:
        with pytest.raises(InputDataError):
            call()
    assert model.datapoints is points
    assert model.observations is observations
    assert model.inducing_points is None
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(model.posterior(X).mean, mean)


def test_a_model_with_judges_takes_rates_of_judges_and_answers_without_a_name():
    of_both = [Preference(PAIRS, judge=[0, 1, 0]), Preference([[5, 0]])]
    model = SkewGP(X, of_both, likelihood=PreferenceLikelihood(slip=[0.1, 0.2]), approximation="ep")
    assert model.posterior(X).mean.shape == (6, 1)
    assert SkewGP(X, likelihood=PreferenceLikelihood(slip=[0.1, 0.2])).num_outputs == 1  # no answers yet


@pytest.mark.parametrize("kind", [Numeric([0.0]), Ordinal([0], 3), Validity([1])])
def test_members_of_ensembles_have_the_same_observations(kind):
    one, other = (SkewGP(X, kind.apply(torch.clone)) for _ in range(2))
    assert len(FullyBayesianSkewGP([one, other]).members) == 2
    with pytest.raises(InputDataError, match="number 1 has other points or observations"):
        FullyBayesianSkewGP([one, duels()])

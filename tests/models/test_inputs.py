"""Checks of what a model is given: its scale, its parts, and what it is asked."""

import math
import re
import warnings

import botorch
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import AppendFeatures, Log10, Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import recommend
from botorch_skewgp.inputs.points import as_bounds
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood, ProbitLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.models.defaults import IntegratedConstantMean, default_covar_module
from botorch_skewgp.observations import Binary, Censored, Numeric, Preference, Slope
from botorch_skewgp.papers import ArcsineKernel, sun_parameters
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
WIDE = X * torch.tensor([1e-3, 64.0], dtype=torch.float64)  # a learning rate and a batch size
Y = torch.tensor([-1.2, 0.3, 1.4, 0.2, -0.5, 0.7], dtype=torch.float64)
DUELS = Preference([[0, 1], [2, 3]])


def messages(make) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(entry.category is InputDataWarning for entry in caught)
    assert all(entry.filename == __file__ for entry in caught)  # it is the user's line that is wrong
    return [str(entry.message) for entry in caught]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        *((lambda x=x: SkewGP(x, DUELS), [rf"columns \[{x.shape[-1] - 1}\].*Normalize"])
          for x in (WIDE, X - 0.1, X + 0.1, WIDE.float().double())),
        *((lambda y=y: SkewGP(X, [Numeric(y), Numeric(y[:2]), DUELS]), ["Standardize"])
          for y in (1e3 * Y, Y + 50, 1e-3 * Y, Y.clone().fill_(7.0))),
        (lambda: SkewGP(WIDE, Numeric(1e3 * Y)), ["Normalize", "Standardize"]),
    ],
)  # fmt: skip
def test_inputs_and_numbers_far_from_the_usual_scale_are_warned_of_once(make, words):
    for word, message in zip(words, messages(make), strict=True):
        assert re.search(word, message)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SkewGP(X, [Numeric(Y), DUELS]),
        lambda: SkewGP(X * 1.005, Numeric(2 * Y + 1)),
        lambda: SkewGP(X, Numeric([0.3, 0.31])),  # two numbers may be close by chance
        lambda: SkewGP(X, Numeric([0.3])),
        lambda: SkewGP(WIDE, DUELS, input_transform=Normalize(2)),
        lambda: SkewGP(X, Numeric(1e3 * Y), outcome_transform=Standardize(1)),
        lambda: SkewGP(WIDE, Numeric(1e3 * Y), covar_module=ScaleKernel(RBFKernel())),  # as in BoTorch's models
        lambda: SkewGP(X, Binary([1, 1, 1])),
        lambda: SkewGP(X),
    ],
)
def test_scaled_data_and_transforms_are_silent(make):
    assert messages(make) == []


SHAPES = {
    "near 1": (0.3 * Y).exp(),
    "large": 1e5 * (0.5 * Y).exp(),
    "small": 1e-4 * (0.5 * Y).exp(),
    "heavy tails": (6 * Y).exp(),
    "narrow": 40 + 0.01 * Y,
    "equal": Y.clone().fill_(7.0),
    "negative": 1e3 * Y,
    "mixed signs": Y,
    "of degrees": 20 + 2 * Y,
}


def shifted():
    """Positive where the numbers are above -3."""
    warping = Composition([Affine(), BoxCox()])
    warping.warpings[0].offset = 3.0
    return warping


WARPINGS = {
    "none": lambda: None,
    "box-cox": BoxCox,
    "sinh-arcsinh": SinhArcsinh,
    "arcsinh": Arcsinh,
    "shifted": shifted,
}


@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("warping", WARPINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_who_follows_every_cure_arrives(shape, warping, standardised):
    """Every advice of a warning or an error about the scale of numbers, until nothing is said."""
    values, make, standardise = SHAPES[shape], WARPINGS[warping], standardised

    def model():
        transform = Standardize(1) if standardise else None
        return SkewGP(X, Numeric(values), NumericLikelihood(warping=make()), outcome_transform=transform)

    for _ in range(4):
        try:
            advice = messages(model)
        except InputDataError as error:
            advice = [str(error)]
        if not advice:
            break
        (message,) = advice
        cure = message.split(". ", 1)[1]
        if "geometric mean" in cure:
            values = values / values.log().mean().exp()
        if "warping out" in cure:
            make = WARPINGS["none"]
        if "logarithms" in cure:
            values = values.log()
        if "outcome_transform out" in cure.lower():
            standardise = False
        elif "outcome_transform=" in cure:
            standardise = True
        elif "SinhArcsinh" in cure:
            make = SinhArcsinh
    else:
        pytest.fail(message)


def test_warnings_can_be_turned_off_as_in_botorch():
    with botorch.settings.validate_input_scaling(False):
        assert messages(lambda: SkewGP(WIDE, Numeric(1e3 * Y))) == []


def test_nothing_is_said_again_when_the_model_is_used():
    with pytest.warns(InputDataWarning):
        model = SkewGP(WIDE, DUELS)
    assert messages(lambda: model.condition_on_observations(WIDE[:2] + 1, Preference([[0, 1]])).posterior(WIDE)) == []


# Points and parts of another kind


def build(**options):
    return SkewGP(X.expand(6, 2), DUELS, **options)


BAD_PARTS = {
    "half precision": (lambda: SkewGP(X.half(), DUELS), r"train_X must be .* got torch\.float16"),
    "bfloat16": (lambda: SkewGP(X.bfloat16(), DUELS), r"got torch\.bfloat16.*dtype=torch\.double"),
    "integers": (lambda: SkewGP(X.long(), DUELS), r"got torch\.int64"),
    "an array": (lambda: SkewGP(X.numpy(), DUELS), "got ndarray"),
    "no columns": (lambda: SkewGP(X[:, :0], DUELS), "Give it a column for each input"),
    "a vector": (lambda: SkewGP(X[:, 0], DUELS), "train_X must be n x d"),
    "a batch": (lambda: SkewGP(X.unsqueeze(0), DUELS), r"n x d; got shape \(1, 6, 1\)"),
    "NaN": (lambda: SkewGP(X.masked_fill(X[3] == X, math.nan), DUELS), r"NaN or infinite values in rows \[3\]"),
    "infinity": (lambda: SkewGP(X.masked_fill(X[5] == X, math.inf), DUELS), r"NaN or infinite values in rows \[5\]"),
    "a row that is not there": (lambda: SkewGP(X[:3], DUELS), "refers to row 3 of train_X, which has 3 rows only"),
    "pairs for observations": (lambda: SkewGP(X, torch.tensor([[0, 1]])), r"got Tensor\. Wrap the data"),
    "a class for observations": (lambda: SkewGP(X, Preference), r"not an instance; write Preference\(...\)"),
    "a number for observations": (lambda: SkewGP(X, 5), r"got int\. Wrap the data"),
    "a dictionary of observations": (lambda: SkewGP(X, {"duels": DUELS}), r"got dict\. Wrap the data"),
    "another likelihood": (lambda: build(likelihood=GaussianLikelihood()), r"must be .*RowLikelihood object"),
    "a list of likelihoods": (lambda: build(likelihood=[PreferenceLikelihood()]), r"must be .*RowLikelihood"),
    "a class of likelihoods": (lambda: build(likelihood=PreferenceLikelihood), "not an instance"),
    "a class of kernels": (lambda: build(covar_module=RBFKernel), r"covar_module must be a .*Kernel object"),
    "a number for a mean": (lambda: build(mean_module=0.0), r"mean_module must be a .*Mean object"),
    "a class of transforms": (lambda: build(input_transform=Normalize), r"input_transform must be .* write Normalize"),
    "a word for a skew prior": (lambda: build(skew_prior="left"), r"skew_prior must be a .*SkewPrior object"),
    "settings in a dictionary": (lambda: build(draw_settings={"num_draws": 8}), "draw_settings must be a"),
    "an input that is not there": (lambda: SkewGP(X, Slope([1], 1)), "refers to input 1, but train_X has 1"),
    "a likelihood of another kind": (lambda: build(likelihood=ProbitLikelihood()), "takes Binary observations"),
    "a standardisation of several outcomes": (
        lambda: SkewGP(X, Numeric(Y), outcome_transform=Standardize(m=2)),
        r"must be Standardize\(m=1\)",
    ),
    "a mixture of nothing": (lambda: MixedLikelihood(), "needs a likelihood for each kind"),
    "a mean of no variance": (lambda: IntegratedConstantMean(0.0), "variance must be"),
    "a fickle judge": (lambda: default_covar_module(2, DUELS, "fickle"), "'consistent', 'noisy' or None; got 'fickle'"),
    "a judge of labels": (lambda: default_covar_module(2, Binary([1]), "noisy"), "judge is about comparisons"),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_bad_parts_are_named(name):
    make, message = BAD_PARTS[name]
    with pytest.raises((InputDataError, UnsupportedError), match=message):
        make()


QUERIES = {
    "integers": (torch.tensor([[0, 1], [1, 1]]), InputDataError, r"X must be .* got torch\.int64"),
    "half precision": (torch.rand(2, 2).half(), InputDataError, r"got torch\.float16"),
    "an array": (np.zeros((2, 2)), InputDataError, "got ndarray"),
    "a list": ([[0.1, 0.2], [0.3, 0.4]], InputDataError, "got list"),
    "too many columns": (torch.rand(2, 3).double(), BotorchTensorDimensionError, "X must have 2 columns like train_X"),
    "too few columns": (torch.rand(2, 1).double(), BotorchTensorDimensionError, "X must have 2 columns like train_X"),
    "a vector": (torch.rand(2).double(), BotorchTensorDimensionError, "X must be batch_shape x q x d"),
}
ASKED = {
    "posterior": lambda model, new: model.posterior(new),
    "latent posterior": lambda model, new: model.latent_posterior(new),
    "predictive": lambda model, new: model.predictive(new),
    "parameters": lambda model, new: sun_parameters(model, new),
    "draws": lambda model, new: model.condition_on_draws(new),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", QUERIES)
def test_bad_queries_are_refused_and_leave_the_model_as_it_was(name, asked):
    query, error, message = QUERIES[name]
    points = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = SkewGP(points, DUELS, input_transform=Normalize(2), draw_settings=DrawSettings(num_draws=64)).eval()
    before = model.posterior(points).mean
    with pytest.raises(error, match=message):
        ASKED[asked](model, query)
    after = model.posterior(points).mean
    assert after.dtype == torch.float64
    assert torch.equal(after, before)


def test_single_precision_queries_are_answered_in_double_precision():
    model = SkewGP(WIDE, DUELS, input_transform=Normalize(2), draw_settings=DrawSettings(num_draws=64))
    before = model.posterior(WIDE).mean
    assert torch.equal(model.posterior(WIDE.float()).mean, model.posterior(WIDE.float().double()).mean)
    assert torch.equal(model.posterior(WIDE).mean, before)


def test_double_precision_queries_of_single_precision_models_are_refused():
    with pytest.warns(InputDataWarning, match="float32"):
        model = SkewGP(X.float(), DUELS, draw_settings=DrawSettings(num_draws=64))
    for ask in ASKED.values():
        with pytest.raises(InputDataError, match=r"X has double and the model single precision\. Build"):
            ask(model, X)
    assert model.posterior(X.float()).mean.dtype == torch.float32


def test_models_do_not_become_half_precise():
    model = SkewGP(X, DUELS, draw_settings=DrawSettings(num_draws=64))
    before = model.posterior(X).mean
    with pytest.raises(InputDataError, match=r"precision; got torch\.float16"):
        model.half()
    assert torch.equal(model.posterior(X).mean, before)


# Values that cannot be


@pytest.mark.parametrize("value", [-1.0, 0.0, math.nan, math.inf, torch.tensor(-1.0)])
@pytest.mark.parametrize("name", ["outputscale", "lengthscale"])
@pytest.mark.parametrize("observations", [Binary([1, 0, 1, 1, 0, 1]), DUELS], ids=["labels", "duels"])
def test_hyperparameters_that_cannot_be_are_named(name, value, observations):
    model = SkewGP(X, observations, draw_settings=DrawSettings(num_draws=64))
    path = "covar_module" if name == "outputscale" else "covar_module.base_kernel"
    kernel = model.get_submodule(path)
    before = model.posterior(X).mean
    for change in (
        lambda: setattr(kernel, name, value),
        lambda: kernel.initialize(**{name: value}),
        lambda: model.initialize(**{f"{path}.{name}": value}),
    ):
        with pytest.raises(InputDataError, match=rf"^{name} must be positive and finite; got "):
            change()
    assert torch.equal(model.posterior(X).mean, before)
    getattr(kernel, f"raw_{name}").data.fill_(math.nan)  # past all checks
    with pytest.raises(InputDataError, match=rf"raw_{name} has the value .* must be positive and finite"):
        model.posterior(X)


PARAMETERS = {
    "noise": lambda: PreferenceLikelihood(),
    "tie_width": lambda: PreferenceLikelihood(),
    "weight_variance": lambda: ArcsineKernel(),
    "bias_variance": lambda: ArcsineKernel(),
    "power": lambda: BoxCox(),
    "tail_weight": lambda: SinhArcsinh(),
    "skewness": lambda: SinhArcsinh(),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_that_cannot_be_are_named(name):
    """Those of kernels and warpings were refused in words about a Gaussian likelihood, or not at all."""
    module = PARAMETERS[name]()
    before = getattr(module, name).clone()
    for value in (math.nan, math.inf) if name == "skewness" else (-1.0, 0.0, math.nan, math.inf):
        with pytest.raises(InputDataError, match=rf"^{name} must be (positive and )?finite; got "):
            setattr(module, name, value)
    assert torch.equal(getattr(module, name), before)


def test_parameters_of_likelihoods_are_single_numbers():
    likelihood = PreferenceLikelihood()
    with pytest.raises(InputDataError, match=r"noise must be a number or of shape \(1,\); got shape \(3,\)"):
        likelihood.noise = [1.0, 2.0, 3.0]
    likelihood.noise = [2.0]
    assert likelihood.noise.item() == pytest.approx(2.0)


@pytest.mark.filterwarnings("ignore:Bounds of readings are far apart")
@pytest.mark.parametrize("bounds", [([1e20], [math.inf]), ([-1e300, 1e200], [1e300, 1e201]), ([-1e30], [-1e20])])
def test_intervals_beyond_all_digits_are_refused(bounds):
    """Rounding of the means was 1e5 there where the spread is 0.3; two of them took minutes."""
    with pytest.raises(InputDataError, match="standard deviations away from the mean given prior and numbers"):
        SkewGP(X, Censored(*bounds)).posterior(X)
    assert SkewGP(X, Censored([1e12], [math.inf])).posterior(X[:1]).variance.item() < 0.1


@pytest.mark.parametrize("observations", [DUELS, Numeric([1.0, 2.0, 0.0, 1.0, 0.0, 1.0])])
def test_points_whose_distances_overflow_are_refused(observations):
    """They gave NaN."""
    points = X.float() * 1e25
    with pytest.warns(InputDataWarning):
        model = SkewGP(points, observations)
    with pytest.raises(InputDataError, match=r"points are too large for torch\.float32: .*Normalize"):
        model.posterior(points)


@pytest.mark.parametrize("size", [1e19, 1e25])
def test_queries_whose_distances_overflow_are_refused(size):
    """They gave NaN, or a value near that of a training point."""
    with pytest.warns(InputDataWarning):
        model = SkewGP(X.float(), DUELS)
    query = size * X.float()
    with pytest.raises(InputDataError, match=r"points are too large for torch\.float32"):
        model.posterior(query)
    assert model.posterior(X.float()).mean.isfinite().all()
    double = SkewGP(X, DUELS)
    assert double.posterior(query).mean.isfinite().all()


def test_numbers_that_overflow_single_precision_are_refused():
    points = X.float()
    with pytest.warns(InputDataWarning), pytest.raises(InputDataError, match=r"too large for torch\.float32"):
        SkewGP(points, Numeric([1e300, 0.0]))
    with pytest.warns(InputDataWarning):
        model = SkewGP(points, Numeric(torch.tensor([1e38, -1e38, 3e38])))
    with pytest.raises(InputDataError, match=r"too large for torch\.float32"):
        model.posterior(points)


@pytest.mark.parametrize(
    "bounds",
    [[[0, 0], [2, 3]], ((0.0, 0.0), (2.0, 3.0)), np.array([[0, 0], [2, 3]]), torch.tensor([[0, 0], [2, 3]])],
    ids=["integers", "tuples", "array", "integer tensor"],
)
def test_bounds_may_be_lists_and_integers(bounds):
    wanted = torch.tensor([[0.0, 0.0], [2.0, 3.0]], dtype=torch.float64)
    assert torch.equal(as_bounds(bounds, 2), wanted)
    model = SkewGP(X.expand(6, 2), DUELS, draw_settings=DrawSettings(num_draws=64)).eval()
    point, _ = recommend(model, bounds, num_restarts=1, raw_samples=4)
    assert ((point >= wanted[0]) & (point <= wanted[1])).all()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], r"bounds must be 2 x 2, lower ones first; got shape \(2, 3\)"),
        ([(0, 1), (0, 1), (0, 1)], "bounds must be 2 x 2"),
        ([[1.0, 0.0], [0.0, 1.0]], "lower ones not above upper ones"),
        ([[0.0, math.nan], [1.0, 1.0]], "bounds must be finite"),
        ([[0.0, 0.0], [math.inf, 1.0]], "bounds must be finite"),
        (None, "bounds must be a tensor or a list"),
    ],
)
def test_bad_bounds_are_named(bounds, message):
    with pytest.raises(InputDataError, match=message):
        as_bounds(bounds, 2)


# Once a model is made: batches, noise, weights, points

PLANE = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
BATCH = PLANE[:3].unsqueeze(-2)  # 3 x 1 x 2
PAIRED = PLANE.view(3, 2, 2)


@pytest.fixture(scope="module")
def model():
    return SkewGP(PLANE, [DUELS, Numeric([0.1, 0.5], index=[0, 3])], draw_settings=DrawSettings(num_draws=64)).eval()


def numbers(value=0.0, shape=(3, 1, 1)):
    return torch.full(shape, value, dtype=torch.float64)


def given(points, Y, **options):
    return lambda model: model.condition_on_observations(points, Y, **options)


def duels(*pair):
    return given(PAIRED, torch.tensor([[list(pair)]] * 3))


NEGATIVE, WRONG_NOISE = torch.tensor(-1.0), "noise must hold finite non-negative variances"
REQUESTS = {
    "NaN": (given(BATCH, numbers(math.nan)), "Y contains NaN or infinite"),
    "infinite": (given(BATCH, numbers(math.inf)), "Y contains NaN or infinite"),
    "too few numbers": (given(PAIRED, numbers()), r"Y must hold a number for each of the 2 .*got shape \(3, 1, 1\)"),
    "two outcomes": (given(BATCH, numbers(shape=(3, 1, 2))), r"Y must hold a number for each of the 1 points"),
    "a vector of numbers": (given(BATCH, numbers(shape=(3,))), r"Y must hold a number for each of the 1 points"),
    "negative noise of a batch": (given(BATCH, numbers(), noise=numbers(-1.0)), WRONG_NOISE),
    "noise of NaN in a batch": (given(BATCH, numbers(), noise=numbers(math.nan)), WRONG_NOISE),
    "noise of another shape": (given(BATCH, numbers(), noise=numbers(1.0, (5, 1, 1))), r"of Y, \(3, 1, 1\); got shape"),
    "a flag": (given(BATCH, numbers().bool()), r"winner first; got shape \(3, 1, 1\), torch\.bool"),
    "a third point": (duels(0, 2), "pairs of different rows of X, from 0 to 1"),
    "a negative index": (duels(0, -1), "pairs of different rows of X"),
    "a duel with itself": (duels(1, 1), "pairs of different rows of X"),
    "three of a duel": (duels(0, 1, 1), r"m x 2 integers, winner first; got shape \(3, 1, 3\)"),
    "points of NaN": (given(BATCH * math.nan, numbers()), r"NaN or infinite.*rows \["),
    "negative noise": (lambda model: model.posterior(PLANE, observation_noise=NEGATIVE), "must hold finite variances"),
    "noise of NaN": (lambda model: model.posterior(PLANE).add_noise(math.nan * NEGATIVE), "must hold finite variances"),
    "a map of other values": (
        lambda model: model.posterior(PLANE).affine(torch.ones(1, 2)),
        r"weight must be e' x 6; got shape \(1, 2\)",
    ),
    "no points to draw at": (lambda model: model.condition_on_draws(PLANE[:0]), "X must hold at least one point"),
    "no draws": (lambda model: model.condition_on_draws(PLANE, samples_per_draw=0), "an integer of at least 1; got 0"),
    "an argument of another name": (
        given(PLANE[:1], numbers(1.0, (1, 1)), nosie=0.1),
        "no argument nosie; leave it out",
    ),
    "data of other columns": (
        lambda model: model.set_train_data(PLANE[:, :1], Preference([[0, 1]]), strict=False),
        "must have 2 columns like the old ones; got 1",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_what_cannot_be_asked_is_refused_in_words(name, model):
    ask, message = REQUESTS[name]
    before = model.posterior(PLANE).mean
    error = BotorchTensorDimensionError if name == "a map of other values" else InputDataError
    with pytest.raises(error, match=message):
        ask(model)
    assert torch.equal(model.posterior(PLANE).mean, before)


@torch.no_grad()
def test_noise_of_a_batch_is_broadcast(model):
    noises = numbers(0.3), torch.tensor([0.3], dtype=torch.float64)
    full, short = (given(BATCH, numbers(), noise=noise)(model).posterior(PLANE).mean for noise in noises)
    assert torch.equal(full, short)


def test_points_that_a_transform_makes_NaN_are_refused():
    model = SkewGP(-PLANE, Preference([[0, 1]]), input_transform=Log10(indices=[0]))
    with pytest.raises(InputDataError, match="train_X, after input transforms, contains NaN"):
        model.posterior(PLANE)


def test_columns_that_a_transform_appends_are_left_out_of_queries():
    model = SkewGP(PLANE, Preference([[0, 1]]), input_transform=AppendFeatures(torch.ones(1, 1, dtype=torch.float64)))
    with pytest.raises(BotorchTensorDimensionError, match="must have 1 columns like train_X, without the 1 that"):
        model.posterior(PLANE)


def test_base_samples_of_another_dtype_are_taken(model):
    posterior, normal = model.posterior(PLANE[:2]), torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    samples = posterior.rsample_from_base_samples(torch.Size([4]), normal)
    assert torch.equal(samples, posterior.rsample_from_base_samples(torch.Size([4]), normal.double()))


@torch.no_grad()
def test_a_model_without_points_is_the_prior():
    model = SkewGP(PLANE[:0], [])
    posterior = model.posterior(PLANE)
    assert (posterior.mean == 0).all()
    model.train()
    torch.testing.assert_close(posterior.covariance_matrix, model.covar_module(PLANE).to_dense())
    assert float(model.log_marginal_likelihood().value) == 0.0


def test_an_ensemble_is_of_models_of_the_same_data(model):
    with pytest.raises(InputDataError, match=r"list of SkewGP models; write \[model\]"):
        FullyBayesianSkewGP(model)
    with pytest.raises(InputDataError, match="number 1 is a SingleTaskGP"):
        FullyBayesianSkewGP([model, SingleTaskGP(PLANE, PLANE[:, :1])])
    for points in (PLANE[:5], PLANE.flip(0), PLANE[:, :1]):
        with pytest.raises(InputDataError, match="must have the same data; number 1"):
            FullyBayesianSkewGP([model, SkewGP(points, Preference([[0, 1], [2, 3]]))])

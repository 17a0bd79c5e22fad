"""Models in single precision say what those in double do, also where representer weights are large and cancel."""

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.sampling import SkewGPSamplePath
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.tensor([[0.245], [0.2451], [0.133], [0.833]], dtype=torch.float32)
QUERIES = torch.tensor([[0.245], [0.43], [-0.174]], dtype=torch.float32)
pytestmark = [pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32"), pytest.mark.rounding]


def model_of(dtype):
    """Pseudo-points a thousandth apart that are asked to differ, beside numbers that contradict each other."""
    observations = [Numeric([-0.73, 2.16, 4.02], index=[0, 1, 0]), Preference([[3, 2]])]
    likelihood = MixedLikelihood(NumericLikelihood(noise=0.0625, learn_noise=False), PreferenceLikelihood())
    prior = SkewPrior([[0.244], [0.245]], [1, -1], truncation=[-1.132, 0.067])
    modules = likelihood, rbf_kernel(1.0, 0.2).to(dtype), gpytorch.means.ZeroMean(), prior
    return SkewGP(X.to(dtype), observations, *modules, draw_settings=DrawSettings(num_draws=128)).eval()


@pytest.fixture(scope="module")
def models():
    double = model_of(torch.float64)
    with torch.no_grad():  # the case is one: the function far outside of the data hangs on weights that cancel
        assert double.posterior(QUERIES.double()).mixture.weights.abs().max() > 1e4
    return model_of(torch.float32), double


def agree(single, double):
    assert single.dtype == torch.float32
    error = (single.double() - double).abs().max() / double.abs().max()
    assert error < 1e-4


@torch.no_grad()
def test_moments_and_samples(models):
    single, double = (model.posterior(QUERIES.to(model.datapoints)) for model in models)
    for name in ("mean", "variance", "covariance_matrix"):
        agree(getattr(single, name), getattr(double, name))
    agree(single.quantile(0.9), double.quantile(0.9))
    base_samples = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    one = single.rsample_from_base_samples(torch.Size([8]), base_samples)
    agree(one, double.rsample_from_base_samples(torch.Size([8]), base_samples.double()))
    weight = torch.tensor([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0]])
    agree(single.affine(weight).mean, double.affine(weight.double()).mean)


@torch.no_grad()
@pytest.mark.parametrize(
    "condition",
    [
        lambda model, x: model.condition_on_observations(x.unsqueeze(0), x.new_tensor([[[0.5]]])),
        lambda model, x: model.condition_on_draws(x)[0],
    ],
)
def test_what_is_conditioned(models, condition):
    given = [condition(model, QUERIES[1:2].to(model.datapoints)) for model in models]
    agree(*(model.posterior(QUERIES.to(old.datapoints)).mean for model, old in zip(given, models, strict=True)))


@torch.no_grad()
def test_a_model_of_draws_keeps_its_digits_in_single_precision():
    model = model_of(torch.float64)
    given, _ = model.condition_on_draws(QUERIES[1:2].double())
    before = given.posterior(QUERIES.double()).mean
    agree(given.float().posterior(QUERIES).mean, before)


@torch.no_grad()
def test_paths_hold_what_the_skew_prior_asks(models):
    generator = torch.Generator().manual_seed(0)
    path = SkewGPSamplePath.draw(models[0], torch.Size([32]), num_features=64, generator=generator)
    high, low = path(torch.tensor([[0.244], [0.245]], dtype=torch.float32)).unbind(-1)
    assert high.dtype == torch.float32
    assert (high > 1.132 - 1e-3).all()
    assert (low < 0.067 + 1e-3).all()


@pytest.mark.parametrize(
    "modules", [{"mean_module": gpytorch.means.LinearMean(1)}, {"covar_module": gpytorch.kernels.PolynomialKernel(2)}]
)
def test_modules_that_take_no_double_precision_are_refused_in_words(modules):
    model = SkewGP(X, Preference([[0, 2]]), **{name: module.float() for name, module in modules.items()})
    with pytest.raises(UnsupportedError, match=r"Build the model from train_X\.double\(\)"):
        model.posterior(QUERIES)

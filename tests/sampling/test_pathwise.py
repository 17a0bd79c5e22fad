"""Sample paths: over many of them, the distribution of the posterior."""

import math
from functools import partial

import pytest
import torch
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.acquisition.utils import get_optimal_samples
from botorch.exceptions.errors import UnsupportedError
from botorch.models.deterministic import MatheronPathModel
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise import SamplePath, draw_matheron_paths
from botorch.sampling.pathwise.posterior_samplers import MatheronPath
from gpytorch.kernels import MaternKernel, PeriodicKernel, PolynomialKernel, ScaleKernel
from gpytorch.means import ConstantMean

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood, SlopeLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Numeric, Preference, Slope
from botorch_skewgp.sampling import SkewGPSamplePath
from botorch_skewgp.truncated.draws import DrawSettings

PAIRS = torch.tensor([[0, 1], [2, 1], [3, 4], [5, 2], [0, 6], [3, 6]])
SETTINGS = DrawSettings(num_draws=256)


def training_points() -> torch.Tensor:
    return torch.rand(7, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def make_model(noise=0.5, observations=None, **options) -> SkewGP:
    if observations is None:
        observations, options["likelihood"] = Preference(PAIRS), PreferenceLikelihood(noise=noise)
    mean = ConstantMean()
    model = SkewGP(training_points(), observations, mean_module=mean, draw_settings=SETTINGS, **options)
    mean.constant.data.fill_(0.7)
    if "covar_module" not in options:
        model.covar_module.outputscale = 4.0
        model.covar_module.base_kernel.lengthscale = 0.4
    return model.eval()


def overfull_model() -> SkewGP:
    """More duels than points: the information of the rows comes from the values at the points."""
    value = training_points().sum(-1)
    pairs = [(i, j) for i in range(7) for j in range(7) if value[i] > value[j]]
    return make_model(observations=Preference(torch.tensor(pairs)), likelihood=PreferenceLikelihood(noise=0.5))


NUMBERS = Numeric(torch.tensor([1.0, -1.0]), index=[4, 5])
MODELS = {
    "duels": make_model,
    "duels and numbers": lambda: make_model(
        observations=[Preference(PAIRS), NUMBERS],
        likelihood=MixedLikelihood(PreferenceLikelihood(noise=0.5), NumericLikelihood(noise=0.1)),
    ),
    "more duels than points": overfull_model,
    "skew prior": lambda: make_model(
        skew_prior=SkewPrior(torch.tensor([[0.2, 0.2], [0.8, 0.4]], dtype=torch.float64), torch.tensor([1.0, -1.0]))
    ),
}


class OwnPath(SamplePath):
    """Paths of the prior without the error of random features."""

    input_transform = None
    output_transform = None

    def set_ensemble_as_batch(self, ensemble_as_batch):
        raise NotImplementedError


class ExactPriorPath(OwnPath):
    """Paths known at finitely many points."""

    def __init__(self, model, sample_shape, points):
        super().__init__()
        self.points = points
        with torch.no_grad():
            K = model.covar_module(points).to_dense()
            values, vectors = torch.linalg.eigh(K)
            root = vectors * values.clamp(min=0).sqrt()
            normal = torch.randn(*sample_shape, len(points), dtype=torch.float64)
            self.values = model.mean_module(points) + normal @ root.mT

    def forward(self, x):
        where = (x.unsqueeze(-2) == self.points).all(-1).double().argmax(-1)
        return self.values[..., where]


def check_law(samples, posterior):
    """Mean, covariance and third moments of `N x q` samples, in standard errors."""
    samples, N = samples.detach(), len(samples)
    mean, covariance = posterior.mean.squeeze(-1).detach(), posterior.covariance_matrix.detach()
    centred = samples - mean
    third = (posterior.skewness * posterior.variance**1.5).squeeze(-1).detach()
    for draws, expected in (
        (samples, mean),
        (centred.unsqueeze(-1) * centred.unsqueeze(-2), covariance),
        (centred**3, third),
    ):
        error = (draws.mean(0) - expected) / (draws.std(0) / math.sqrt(N))
        assert error.abs().max() < 4.5, "standard errors"


@pytest.mark.parametrize("name", MODELS)
def test_law_over_exact_prior_paths(name, generator):
    model = MODELS[name]()
    X = torch.rand(3, 2, generator=generator, dtype=torch.float64)
    Z = model.latent_prior().value_points
    sampler = partial(ExactPriorPath, points=torch.cat([X, Z]))
    paths = draw_matheron_paths(model, torch.Size([40_000]), prior_sampler=sampler)
    check_law(paths(X), model.posterior(X))


class QuadraticPath(OwnPath):
    """Paths of the prior of a quadratic kernel `(x z + c)^2`, which has three features."""

    def __init__(self, model, sample_shape, offset):
        super().__init__()
        self.offset, self.mean = offset, model.mean_module.constant.item()
        self.weight = torch.randn(*sample_shape, 3, dtype=torch.float64)

    def forward(self, x):
        a, b, c = self.weight.unsqueeze(-1).unbind(-2)
        x = x.squeeze(-1)
        return self.mean + a * x.square() + b * (2 * self.offset) ** 0.5 * x + c * self.offset


def test_law_with_slopes(generator):
    """Values and slopes of paths, both against the posterior."""
    X = torch.tensor([[-1.0], [0.2], [0.9]], dtype=torch.float64)
    kernel = PolynomialKernel(power=2, offset=torch.tensor([0.7])).double()
    observations = [Slope(0, [-1, 1], index=[1, 2]), Preference([[2, 1]]), Numeric([0.5], index=[0])]
    likelihood = MixedLikelihood(SlopeLikelihood(), PreferenceLikelihood(noise=0.5), NumericLikelihood(noise=0.1))
    model = SkewGP(X, observations, likelihood, kernel, ConstantMean(), draw_settings=SETTINGS).eval()
    sampler = partial(QuadraticPath, offset=0.7)
    paths = draw_matheron_paths(model, torch.Size([40_000]), prior_sampler=sampler)
    test_X = torch.tensor([[-0.5], [0.9], [1.4]], dtype=torch.float64)
    check_law(paths(test_X), model.posterior(test_X))
    slopes = (paths(X[1:] + 1e-5) - paths(X[1:] - 1e-5)) / 2e-5
    assert (slopes[:, 0] < 1e-4).all()
    assert (slopes[:, 1] > -1e-4).all()


def test_feature_paths_rise_where_they_must():
    """Random features and automatic derivatives in several inputs, in the units of inputs and outcomes given."""
    X = training_points() * torch.tensor([2.0, 0.5], dtype=torch.float64)
    signs = torch.tensor([1, 1, -1, -1])
    index, dims = torch.tensor([0, 3, 3, 5]), torch.tensor([0, 0, 1, 1])
    observations = [Slope(dims, signs, index=index), Numeric(100 + 30 * training_points().sin().sum(-1))]
    likelihood = MixedLikelihood(SlopeLikelihood(), NumericLikelihood(noise=0.1))
    scale = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [2.0, 0.5]], dtype=torch.float64))
    transforms = {"input_transform": scale, "outcome_transform": Standardize(m=1)}
    model = SkewGP(X, observations, likelihood, draw_settings=SETTINGS, **transforms).eval()
    paths = SkewGPSamplePath.draw(model, torch.Size([50]), num_features=512)
    step = 1e-5 * torch.nn.functional.one_hot(dims, 2)
    values, slopes = paths(X[index]), paths(X[index] + step) - paths(X[index] - step)
    assert ((slopes * signs) > -1e-3 * slopes.abs().amax()).all()
    posterior = model.posterior(X[index])
    error = (values.mean(0) - posterior.mean.squeeze(-1)) / posterior.variance.squeeze(-1).sqrt()
    assert error.abs().max() < 4.5 / math.sqrt(50)


@pytest.mark.parametrize("kernel", ["rbf", "matern"])
def test_law_over_feature_paths(kernel, generator):
    """With random features, up to their error, which the tolerance allows for."""
    matern = {"covar_module": ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)).double()}
    model = make_model(**matern if kernel == "matern" else {})
    X = torch.rand(4, 2, generator=generator, dtype=torch.float64)
    paths = SkewGPSamplePath.draw(model, torch.Size([2000]), num_features=4096, generator=generator)
    samples, posterior = paths(X).detach(), model.posterior(X)
    sd = posterior.variance.detach().sqrt().squeeze(-1)
    assert samples.shape == (2000, 4)
    assert ((samples.mean(0) - posterior.mean.detach().squeeze(-1)) / sd).abs().max() < 0.1
    scale = sd.unsqueeze(-1) * sd
    assert ((samples.mT.cov() - posterior.covariance_matrix.detach()) / scale).abs().max() < 0.15


class Clipped(MaternKernel):
    """A Matern kernel of inputs that are equal below zero, which has other features than its parent."""

    def forward(self, x1, x2, **params):
        return super().forward(x1.clamp(min=0), x2.clamp(min=0), **params)


def test_shapes_and_types(generator):
    model = make_model()
    X = torch.rand(3, 5, 2, generator=generator, dtype=torch.float64)
    single = draw_matheron_paths(model, torch.Size())
    assert isinstance(single, SkewGPSamplePath)
    assert isinstance(single, MatheronPath)
    assert single(X).shape == (3, 5)
    several = SkewGPSamplePath.draw(model, torch.Size([2, 4]), num_features=64)
    assert several(X[0]).shape == (2, 4, 5)
    torch.testing.assert_close(single(X)[1], single(X[1]))
    X = X.requires_grad_()
    assert torch.autograd.grad(single(X).sum(), X)[0].abs().max() > 0


def test_in_single_precision(generator):
    model = make_model().float()
    path = SkewGPSamplePath.draw(model, torch.Size(), generator=generator)
    assert path(torch.rand(3, 2, dtype=torch.float32)).dtype == torch.float32


def test_generator(generator):
    model = make_model(covar_module=ScaleKernel(MaternKernel(nu=1.5)).double())
    X = torch.rand(3, 2, generator=generator, dtype=torch.float64)
    state = torch.get_rng_state()
    own, *others = (torch.Generator().manual_seed(seed) for seed in (0, 0, 1))
    draws = [SkewGPSamplePath.draw(model, torch.Size(), generator=g)(X) for g in (own, *others, own)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(draws[0], draws[1])
    assert not torch.allclose(draws[0], draws[2])
    assert not torch.allclose(draws[0], draws[3])


def test_within_botorch():
    model = make_model()
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    X = torch.rand(4, 1, 2, dtype=torch.float64)
    path_model = MatheronPathModel(model, seed=1)
    assert path_model(X).shape == (4, 1, 1)
    torch.testing.assert_close(path_model(X), MatheronPathModel(model, seed=1)(X))
    assert PathwiseThompsonSampling(model)(X).shape == (4,)
    inputs, outputs = get_optimal_samples(model, bounds, num_optima=3, raw_samples=32, num_restarts=2)
    assert inputs.shape == (3, 2)
    assert outputs.shape == (3, 1)


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="update_strategy"):
        draw_matheron_paths(make_model(), torch.Size(), update_strategy=lambda **kwargs: None)
    with pytest.raises(UnsupportedError, match="random features"):
        draw_matheron_paths(make_model(covar_module=PeriodicKernel().double()), torch.Size())
    inherited = make_model(covar_module=ScaleKernel(Clipped()).double())
    with pytest.raises(UnsupportedError, match="Clipped has no random features of its own"):
        draw_matheron_paths(inherited, torch.Size())
    judged = make_model(observations=Preference(PAIRS, judge=[0, 0, 1, 1, 0, 1]))
    with pytest.raises(UnsupportedError, match=r"draw at points, model.for_judge\(j\)"):
        SkewGPSamplePath.draw(judged.for_judge(0), torch.Size([]))

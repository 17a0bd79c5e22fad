"""On a GPU: what a model answers on the CPU, it answers there, and whatever users give it may be in either place."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from kind_cases import KINDS

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp, fit_skew_gp
from botorch_skewgp.likelihoods import OrdinalLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary, Preference, Slope
from botorch_skewgp.papers import LinearEllipticalSliceSampler, corrected_log_normalizer
from botorch_skewgp.posteriors.mixture_marginals import NormalMixtureMarginals
from botorch_skewgp.sampling import SkewGPSamplePath
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import Affine, SinhArcsinh

pytestmark = pytest.mark.gpu

CUDA = torch.device("cuda")
X = torch.tensor([[0.0, 0.3], [0.5, 0.9], [0.2, 0.1], [0.9, 0.6], [0.6, 0.2], [0.3, 0.7]], dtype=torch.float64)
TEST_X = torch.tensor([[0.5, 0.5], [0.1, 0.2], [0.8, 0.9]], dtype=torch.float64)
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [1, 4]])


def duels() -> SkewGP:
    return SkewGP(X.to(CUDA), Preference(PAIRS))


def assert_near(posterior, expected, draws=2048):
    """Means within five standard errors of draws, variances within a tenth."""
    error = (expected.variance / draws).sqrt()
    assert posterior.mean.device.type == posterior.variance.device.type == CUDA.type
    assert ((posterior.mean.cpu() - expected.mean).abs() <= 5 * error + 1e-8).all()
    torch.testing.assert_close(posterior.variance.cpu(), expected.variance, rtol=0.1, atol=1e-8)


@pytest.mark.parametrize("kind", list(KINDS))
def test_posteriors_of_every_kind(kind):
    expected = SkewGP(X, KINDS[kind]).posterior(TEST_X)
    model = SkewGP(X.to(CUDA), KINDS[kind])
    points = TEST_X.to(CUDA).requires_grad_()
    posterior = model.posterior(points)
    assert_near(posterior, expected)
    (gradient,) = torch.autograd.grad(posterior.mean.sum() + posterior.variance.sum(), points)
    assert gradient.isfinite().all()
    level = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64, device=CUDA)
    posterior = model.posterior(points.detach())
    quantile = posterior.quantile(level)
    torch.testing.assert_close(posterior.cdf(quantile), level.reshape(3, 1, 1).expand(quantile.shape))
    assert posterior.density(quantile).min() > 0
    assert posterior.skewness.isfinite().all()
    samples = posterior.rsample(torch.Size([2048]))
    assert samples.device.type == CUDA.type
    assert ((samples.mean(0) - posterior.mean).abs() < 6 * (posterior.variance / 2048).sqrt()).all()


def test_all_kinds_at_once_whose_tensors_are_there_already():
    chosen = [KINDS[name] for name in KINDS if name not in ("numeric with given noise", "sums", "affine")]
    expected = SkewGP(X, chosen)
    model = SkewGP(X.to(CUDA), [entry.apply(lambda t: t.to(CUDA)) for entry in chosen])
    assert_near(model.posterior(TEST_X.to(CUDA)), expected.posterior(TEST_X))
    for method in ("ep", corrected_log_normalizer, "exact"):
        torch.manual_seed(0)
        value, reference = model.log_marginal_likelihood(method), expected.log_marginal_likelihood(method)
        assert abs(float(value.value) - float(reference.value)) < (0.5 if method == "exact" else 1e-4)


def test_a_fit_finds_the_same_hyperparameters():
    here, there = SkewGP(X, Preference(PAIRS)), duels()
    for model in (here, there):
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    for (name, one), other in zip(here.named_parameters(), there.parameters(), strict=True):
        assert other.device.type == CUDA.type
        torch.testing.assert_close(other.cpu(), one, rtol=1e-2, atol=1e-2, msg=name)


@pytest.mark.parametrize("kernel", ["default", "gpytorch"])
def test_a_fit_from_several_starts(kernel):
    """Whose parameters are samples of priors."""
    base = RBFKernel(ard_num_dims=2, lengthscale_prior=LogNormalPrior(0.0, 1.0))
    covar_module = ScaleKernel(base, outputscale_prior=LogNormalPrior(0.0, 1.0)) if kernel == "gpytorch" else None
    model = SkewGP(X.to(CUDA), Preference(PAIRS), covar_module=covar_module)
    fitted = fit_skew_gp(model, num_restarts=3)
    assert all(parameter.device.type == CUDA.type for parameter in fitted.model.parameters())


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_sampled_hyperparameters(device):
    """With a generator on either device."""
    model = duels()
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    generator = torch.Generator(device).manual_seed(0)
    ensemble = fit_fully_bayesian_skew_gp(mll, num_draws=4, generator=generator)
    assert ensemble.posterior(TEST_X.to(CUDA)).mean.isfinite().all()


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.PoorDrawsWarning")  # few, of slow samplers
@pytest.mark.parametrize("sampler", ["reflective", "hamiltonian", LinearEllipticalSliceSampler])
def test_every_sampler(sampler):
    settings = DrawSettings(num_draws=1024, sampler=sampler, min_effective_size=1.0, max_thinning=1, warmup=256)
    model = SkewGP(X.to(CUDA), Preference(PAIRS), draw_settings=settings)
    assert model.posterior(TEST_X.to(CUDA)).mean.isfinite().all()


def condition(at):
    rising = Slope(0, [1], index=[3])
    model = SkewGP(X.to(at), [Preference(PAIRS), rising])
    model.posterior(X.to(at))
    return model.condition_on_observations(TEST_X.to(at), [Preference([[0, 1]]), Slope(1, [1], index=[2])])


def many_duels(at):
    generator = torch.Generator().manual_seed(0)
    pairs = torch.randint(5, (3000, 1), generator=generator) + torch.tensor([0, 1])
    is_slip = torch.rand(3000, 1, generator=generator) < 0.3
    return SkewGP(X.to(at), Preference(torch.where(is_slip ^ (pairs[:, :1] % 2 == 0), pairs, pairs.flip(-1))))


MANY = torch.rand(80, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
CUTPOINTS = torch.tensor([-0.5, 0.7], dtype=torch.float64)
SLOPES = torch.tensor([1.0, -1.0], dtype=torch.float64)


@pytest.mark.parametrize(
    "make",
    [
        lambda at: SkewGP(X.to(at), Preference(PAIRS), skew_prior=SkewPrior(X[[2, 4]], SLOPES, 0.0)),
        lambda at: SkewGP(MANY.to(at), Binary(MANY.sum(-1) > 1), inducing_points=MANY[:20]),
        lambda at: SkewGP(X.to(at), KINDS["ordinal"], OrdinalLikelihood(3, CUTPOINTS.to(at))),
        many_duels,
        condition,
    ],
    ids=["skew prior", "inducing points", "given cut-points", "many duels", "more data"],
)
def test_posteriors_are_those_of_the_cpu(make):
    assert_near(make(CUDA).posterior(TEST_X.to(CUDA)), make("cpu").posterior(TEST_X))


@pytest.mark.parametrize("chosen", [["preference"], ["numeric", "preference", "validity"]])
def test_transforms_and_acquisition_functions(chosen):
    transforms = {"input_transform": Normalize(2, bounds=BOUNDS.to(CUDA))}
    transforms["outcome_transform"] = Standardize(1) if "numeric" in chosen else None
    model = SkewGP(X.to(CUDA), [KINDS[name] for name in chosen], **transforms)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    if chosen == ["preference"]:
        acquisition = qExpectedUtilityOfBestOption(pref_model=model)
    else:
        acquisition = qLogNoisyExpectedImprovement(model, X.to(CUDA))
    candidates, value = optimize_acqf(acquisition, BOUNDS.to(CUDA), q=2, num_restarts=2, raw_samples=16)
    assert candidates.device.type == CUDA.type
    assert value.isfinite().all()


@pytest.mark.parametrize("where", ["cpu", CUDA.type])
def test_the_next_pair(where):
    """Bounds may be anywhere."""
    pair, _ = next_pair(duels(), BOUNDS.to(where))
    assert pair.shape == (2, 2)
    assert pair.device.type == CUDA.type
    assert ((pair >= 0) & (pair <= 1)).all()
    best, _ = recommend(duels(), BOUNDS.to(where))
    assert best.device.type == CUDA.type


def test_inducing_points_are_chosen():
    model = SkewGP(MANY.to(CUDA), Binary(MANY.sum(-1) > 1), inducing_points=20)
    assert model.posterior(TEST_X.to(CUDA)).mean.isfinite().all()


def test_paths_and_leave_one_out():
    model = duels()
    generator = torch.Generator(CUDA).manual_seed(0)
    path = SkewGPSamplePath.draw(model, torch.Size([3]), generator=generator)
    assert path(TEST_X.to(CUDA)).device.type == CUDA.type
    assert leave_one_out(model).log_predictive.isfinite().all()


def test_copies_and_state():
    model = duels()
    mean = model.posterior(TEST_X.to(CUDA)).mean
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(copied.posterior(TEST_X.to(CUDA)).mean, mean)
    here = SkewGP(X, Preference(PAIRS))
    here.load_state_dict(model.state_dict())
    there = model.cpu()
    torch.testing.assert_close(there.posterior(TEST_X).mean, here.posterior(TEST_X).mean)


@pytest.mark.parametrize("warping", [Affine, SinhArcsinh])
def test_transformed_gaussian_process(warping):
    Y = X.sum(-1, keepdim=True).exp()
    expected = BayesianTransformedGP(X, Y, warping=warping()).posterior(TEST_X)
    posterior = BayesianTransformedGP(X.to(CUDA), Y.to(CUDA), warping=warping()).posterior(TEST_X.to(CUDA))
    torch.testing.assert_close(posterior.median.cpu(), expected.median, rtol=1e-4, atol=1e-4)
    assert posterior.rsample(torch.Size([4])).device.type == CUDA.type


def test_quantiles_of_many_points_with_a_point_mass_among_them():
    means = torch.randn(100, 512, dtype=torch.float64, device=CUDA)
    deviation = torch.full((100, 1), 0.3, dtype=torch.float64, device=CUDA)
    means[3], deviation[3] = 2.0, 0.0
    probabilities = torch.full((512,), 1 / 512, dtype=torch.float64, device=CUDA)
    level = torch.full((100,), 0.2, dtype=torch.float64, device=CUDA)
    mixture = NormalMixtureMarginals(means, deviation, probabilities)
    quantile = mixture.quantile(level)
    assert quantile[3] == 2.0
    others = torch.arange(100, device=CUDA) != 3
    torch.testing.assert_close(mixture.cdf(quantile)[others], level[others])

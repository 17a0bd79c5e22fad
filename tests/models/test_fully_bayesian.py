"""Hyperparameter draws against quadrature; the ensemble within BoTorch."""

import math

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qSimpleRegret, qUpperConfidenceBound
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.optim import optimize_acqf
from botorch.sampling.pathwise import draw_matheron_paths
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.priors import LogNormalPrior, NormalPrior

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP, _laplace_root, sample_hyperparameters
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings

LABELS = [0, 0, 1, 0, 1, 1, 1, 0]
NUMBERS = Numeric(torch.tensor([0.9, 1.1, 0.2, -0.8, -0.9, 0.1, 0.8, 1.2]), noise=0.2)
PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [5, 6]])
SMALL = DrawSettings(num_draws=64, min_effective_size=1)


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


X = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)


def objective(model):
    return SkewGPMarginalLogLikelihood(model.likelihood, model)


def model_with(constraint, prior, observations=None):
    """A model of whose hyperparameters only the output scale is free; of labels if nothing else is said."""
    covar_module = ScaleKernel(RBFKernel(), outputscale_constraint=constraint, outputscale_prior=prior)
    covar_module.base_kernel.lengthscale = 0.3
    model = SkewGP(X, observations or Binary(LABELS), covar_module=covar_module, mean_module=ConstantMean())
    covar_module.base_kernel.requires_grad_(False)
    return model


def moments_by_quadrature(mll, grid):
    """Mean and standard deviation of the output scale's logarithm, on a grid of it."""
    mll.train()
    values = []
    for log_scale in grid:
        mll.model.covar_module.outputscale = log_scale.exp()
        with torch.no_grad():
            values.append(mll(mll.model(*mll.model.train_inputs), mll.model.train_targets) + log_scale)
    weight = torch.softmax(torch.stack(values), 0)
    mean = (weight * grid).sum()
    return mean.item(), (weight * (grid - mean).square()).sum().sqrt().item()


@pytest.mark.parametrize(
    ("constraint", "grid", "observations", "num_draws"),
    [
        (GreaterThan(1e-4), torch.linspace(-4, 6, 41, dtype=torch.float64), Binary(LABELS), 80),
        (GreaterThan(0.5, transform=None, initial_value=1.0), torch.linspace(math.log(0.5001), 6, 121), NUMBERS, 200),
        (Interval(0.2, 5.0), torch.linspace(math.log(0.2001), math.log(4.999), 81), NUMBERS, 200),
    ],
)
def test_moments_against_quadrature(constraint, grid, observations, num_draws):
    """Positive, bounded without a transform, and between two bounds."""
    mll = objective(model_with(constraint, LogNormalPrior(0.5, 0.8), observations))
    grid = grid.double()
    draws = sample_hyperparameters(mll, num_draws, warmup=50, thinning=2)
    mean, sd = moments_by_quadrature(mll, grid)
    logs = draws.values["covar_module.raw_outputscale"].log()
    assert draws.effective_size > 30
    error = sd / math.sqrt(draws.effective_size)
    assert logs.mean().item() == pytest.approx(mean, abs=4 * error)
    assert logs.std().item() == pytest.approx(sd, rel=4 / math.sqrt(draws.effective_size))
    assert 0.5 < draws.acceptance < 1


def test_leaves_the_model_and_repeats():
    model = SkewGP(X, Binary(LABELS))
    mll = objective(model).eval()
    before = {name: p.clone() for name, p in model.named_parameters()}
    runs = [sample_hyperparameters(mll, 6, 20, 1, torch.Generator().manual_seed(7)) for _ in range(2)]
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert not mll.training
    names = {"covar_module.raw_outputscale", "covar_module.base_kernel.raw_lengthscale", "mean_module.raw_constant"}
    assert set(runs[0].values) == names
    for name in names:
        assert torch.equal(runs[0].values[name], runs[1].values[name])
        assert runs[0].values[name].std() > 0


def test_mean_with_a_prior_is_drawn():
    model = model_with(GreaterThan(1e-4), None)
    model.mean_module.register_prior("mean_prior", NormalPrior(1.0, 0.1), "constant")
    draws = sample_hyperparameters(objective(model), 50, 30, 1)
    assert set(draws.values) == {"mean_module.raw_constant"}
    assert draws.values["mean_module.raw_constant"].mean().item() == pytest.approx(0.98, abs=0.08)


def test_steps_are_scaled_by_the_inverse_hessian(generator):
    """Of a normal density; a direction in which it is flat is limited."""
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    precision = root @ root.mT + torch.eye(3, dtype=torch.float64)

    def density(x):
        return -0.5 * x @ precision @ x, -precision @ x

    x = tensor(0.3, -0.2, 0.5)
    scale = _laplace_root(density, x, density(x)[1])
    assert torch.allclose(scale @ scale.mT @ precision, torch.eye(3, dtype=torch.float64), atol=1e-8)
    precision = torch.diag(tensor(1.0, 1e-6, -4.0))
    assert torch.allclose(_laplace_root(density, x, density(x)[1]), torch.diag(tensor(1.0, 2.0, 0.5)), atol=1e-8)


def test_needs_a_prior():
    with pytest.raises(UnsupportedError, match="has a prior"):
        sample_hyperparameters(objective(model_with(GreaterThan(1e-4), None)))
    with pytest.raises(InputDataError, match="at least one"):
        FullyBayesianSkewGP([])


@pytest.fixture(scope="module")
def ensemble():
    generator = torch.Generator().manual_seed(2)
    train_X = torch.rand(7, 2, dtype=torch.float64, generator=generator)
    model = SkewGP(train_X, Preference(PAIRS))
    return FullyBayesianSkewGP.sample(objective(model), 4, 20, 2, SMALL, generator)


def test_posterior_is_that_of_the_members(ensemble, generator):
    test_X = torch.rand(3, 2, 2, dtype=torch.float64, generator=generator)
    posterior = ensemble.posterior(test_X)
    assert posterior.mean.shape == (3, 4, 2, 1)
    for i, member in enumerate(ensemble.models):
        own = member.posterior(test_X)
        assert torch.allclose(posterior.mean[:, i], own.mean, atol=1e-10)
        assert torch.allclose(posterior.variance[:, i], own.variance, atol=1e-10)
        assert torch.allclose(posterior.quantile(0.2)[:, i], own.quantile(0.2), atol=1e-7)
        assert torch.allclose(posterior.covariance_matrix[:, i], own.covariance_matrix, atol=1e-10)
    assert len({round(m.covar_module.outputscale.item(), 6) for m in ensemble.models}) > 1
    samples = posterior.rsample(torch.Size([4000]))
    assert samples.shape == (4000, 3, 4, 2, 1)
    scores = (samples.mean(0) - posterior.mean) / (posterior.variance / 4000).sqrt()
    assert scores.abs().max() < 4.5
    mixed = samples.movedim(2, 1).flatten(0, 1)
    assert torch.allclose(posterior.mixture_mean, mixed.mean(0), atol=0.1)
    assert torch.allclose(posterior.mixture_variance, mixed.var(0), rtol=0.15)
    assert torch.allclose(posterior.mixture_cdf(0.3), (mixed <= 0.3).double().mean(0), atol=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: qLogNoisyExpectedImprovement(
            m, X_baseline=m.train_inputs[0], cache_root=False, prune_baseline=True
        ),
        lambda m: qUpperConfidenceBound(m, beta=2.0),
        lambda m: qSimpleRegret(m),
        lambda m: UpperConfidenceBound(m, beta=2.0),
    ],
)  # fmt: skip
def test_acquisition_functions_average_over_members(ensemble, make):
    acquisition = make(ensemble)
    candidate, value = optimize_acqf(
        acquisition,
        bounds=torch.stack([torch.zeros(2), torch.ones(2)]).double(),
        q=1,
        num_restarts=2,
        raw_samples=8,
        options={"maxiter": 5},
    )
    assert candidate.shape == (1, 2)
    assert value.isfinite()


def test_value_is_the_average_of_the_members_values(ensemble, generator):
    points = torch.rand(5, 1, 2, dtype=torch.float64, generator=generator)
    own = torch.stack([UpperConfidenceBound(member, beta=2.0)(points) for member in ensemble.models])
    assert torch.allclose(UpperConfidenceBound(ensemble, beta=2.0)(points), own.mean(0), atol=1e-10)


def test_predictions_conditioning_and_transforms(ensemble, generator):
    points = torch.rand(2, 2, dtype=torch.float64, generator=generator)
    own = torch.stack([member.predictive(points).probs for member in ensemble.models])
    assert torch.allclose(ensemble.predictive(points).probs, own.mean(0))
    transform = ScalarizedPosteriorTransform(tensor(-2.0), offset=1.0)
    transformed = ensemble.posterior(points, posterior_transform=transform)
    assert torch.allclose(transformed.mean, 1 - 2 * ensemble.posterior(points).mean)
    larger = ensemble.condition_on_observations(points, Preference(torch.tensor([[0, 1]])))
    assert larger.batch_shape == ensemble.batch_shape
    assert larger.train_inputs[0].shape == (9, 2)
    better = larger.posterior(points).mean
    assert (better[:, 0] - better[:, 1] > ensemble.posterior(points).mean.diff(dim=1).neg().squeeze(1)).all()


def test_predictions_of_numbers_are_not_averaged():
    model = SkewGP(X, Numeric(X.squeeze(-1)))
    with pytest.raises(UnsupportedError, match="probabilities only"):
        FullyBayesianSkewGP([model]).predictive(X)


def test_paths_are_those_of_the_members(ensemble, generator):
    inputs = torch.rand(3, 2, generator=generator, dtype=torch.float64)
    torch.manual_seed(0)  # BoTorch draws prior paths from the global generator
    with torch.no_grad():
        paths = draw_matheron_paths(ensemble, torch.Size([1500]))
        values = paths(inputs)
        members = len(ensemble.members)
        assert values.shape == (1500, members, 3)
        posterior = [member.posterior(inputs) for member in ensemble.members]
        mean = torch.stack([p.mean.squeeze(-1) for p in posterior])
        sd = torch.stack([p.variance.squeeze(-1) for p in posterior]).sqrt()
        # four and a half standard errors, and the draws' own error
        assert ((values.mean(0) - mean).abs() < 4.5 * sd * (1 / 1500 + 1 / 200) ** 0.5).all()
        paths.set_ensemble_as_batch(True)
        torch.testing.assert_close(paths(inputs.expand(members, 3, 2)), values)

"""Hyperparameter draws against quadrature."""

import math

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.priors import LogNormalPrior, NormalPrior

from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import sample_hyperparameters
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric

LABELS = [0, 0, 1, 0, 1, 1, 1, 0]
NUMBERS = Numeric(torch.tensor([0.9, 1.1, 0.2, -0.8, -0.9, 0.1, 0.8, 1.2]), noise=0.2)


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


@pytest.mark.slow
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
    names = {"covar_module.raw_outputscale", "covar_module.base_kernel.raw_lengthscale"}
    assert set(runs[0].values) == names
    for name in names:
        assert torch.equal(runs[0].values[name], runs[1].values[name])
        assert runs[0].values[name].std() > 0


@pytest.mark.slow
def test_mean_with_a_prior_is_drawn():
    model = model_with(GreaterThan(1e-4), None)
    model.mean_module.register_prior("mean_prior", NormalPrior(1.0, 0.1), "constant")
    draws = sample_hyperparameters(objective(model), 50, 30, 1)
    assert set(draws.values) == {"mean_module.raw_constant"}
    assert draws.values["mean_module.raw_constant"].mean().item() == pytest.approx(0.98, abs=0.08)


def test_needs_a_prior():
    with pytest.raises(UnsupportedError, match="has a prior"):
        sample_hyperparameters(objective(model_with(GreaterThan(1e-4), None)))

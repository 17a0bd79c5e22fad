"""Hyperparameter draws against quadrature."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gpytorch.constraints import GreaterThan, Interval, Positive
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.priors import LogNormalPrior, NormalPrior
from gradients import evaluate
from scipy.stats import halfcauchy

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import PoorDrawsWarning, SamplingError
from botorch_skewgp.fitting import fit_skew_gp, sample_hyperparameters
from botorch_skewgp.fitting.unbounded_density import UnboundedDensity
from botorch_skewgp.likelihoods import ProbitLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric
from botorch_skewgp.parameters import LogarithmPrior

LABELS = [0, 0, 1, 0, 1, 1, 1, 0]
NUMBERS = Numeric(torch.tensor([0.9, 1.1, 0.2, -0.8, -0.9, 0.1, 0.8, 1.2]), noise=0.2)


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
    values = []
    for log_scale in grid:
        mll.model.covar_module.outputscale = log_scale.exp()
        values.append(evaluate(mll.train()).detach() + log_scale)
    weight = torch.softmax(torch.stack(values), 0)
    mean = (weight * grid).sum()
    return mean.item(), (weight * (grid - mean).square()).sum().sqrt().item()


@pytest.mark.parametrize(
    ("constraint", "grid", "observations"),
    [
        (GreaterThan(1e-4), torch.linspace(-4, 6, 31, dtype=torch.float64), Binary(LABELS)),
        (GreaterThan(0.5, transform=None, initial_value=1.0), torch.linspace(math.log(0.5001), 6, 61), NUMBERS),
        (Interval(0.2, 5.0), torch.linspace(math.log(0.2001), math.log(4.999), 41), NUMBERS),
    ],
)
def test_moments_against_quadrature(constraint, grid, observations):
    """Positive, bounded without a transform, and between two bounds."""
    mll = objective(model_with(constraint, LogNormalPrior(0.5, 0.8), observations))
    grid = grid.double()
    draws = sample_hyperparameters(mll, 120)
    mean, sd = moments_by_quadrature(mll, grid)
    logs = draws.values["covar_module.raw_outputscale"].log()
    assert 80 < draws.effective_size < 120
    assert draws.pareto_shape < 0.7
    error = sd / math.sqrt(draws.effective_size)
    assert logs.mean().item() == pytest.approx(mean, abs=4 * error)
    assert logs.std().item() == pytest.approx(sd, rel=4 / math.sqrt(2 * draws.effective_size))


def test_fits_and_draws_agree_on_a_prior_of_the_logarithm():
    """A fit has the mode of a normal prior of the logarithm, and draws its distribution."""
    of_logarithm, of_value, shifted = LogarithmPrior(0.5, 0.8), LogNormalPrior(0.5, 0.8), LogNormalPrior(1.14, 0.8)
    draws = [sample_hyperparameters(objective(model_with(Positive(), prior)), 6) for prior in (of_logarithm, of_value)]
    found, wanted = (d.values["covar_module.raw_outputscale"] for d in draws)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0)
    fits = [fit_skew_gp(model_with(Positive(), prior)).model for prior in (of_logarithm, shifted, of_value)]
    scales = [model.covar_module.outputscale.item() for model in fits]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)
    assert scales[0] > 1.1 * scales[2]
    assert float(of_logarithm.mode) == pytest.approx(math.exp(0.5))


def test_rates_of_slips_against_quadrature():
    """Answers that need no slips: the rate has the posterior of half-Cauchy odds, also if it was fitted to a bound."""
    covar_module = ScaleKernel(RBFKernel()).requires_grad_(False)
    covar_module.outputscale, covar_module.base_kernel.lengthscale = 4.0, 0.3
    model = SkewGP(X, Binary(LABELS), ProbitLikelihood(learn_slip=True), covar_module, ConstantMean())
    model.likelihood.raw_slip.data.fill_(-50.0)
    draws = sample_hyperparameters(objective(model), 120)
    log_rates = draws.values["likelihood.raw_slip"].log().flatten()
    grid, evidence = torch.linspace(-16, 8, 49, dtype=torch.float64), []  # logarithms of odds
    for odds in grid.exp():
        model.likelihood.slip = float(odds / (1 + odds))
        evidence.append(model.log_marginal_likelihood("ep").value)
    log_prior = torch.as_tensor(halfcauchy.logpdf(grid.exp().numpy(), scale=0.05)) + grid
    weight = torch.softmax(torch.stack(evidence).detach() + log_prior, 0)
    log_rate = torch.nn.functional.logsigmoid(grid)
    mean = (weight * log_rate).sum()
    sd = (weight * (log_rate - mean).square()).sum().sqrt()
    assert log_rates.mean().item() == pytest.approx(mean.item(), abs=4 * sd.item() / math.sqrt(draws.effective_size))
    assert log_rates.std().item() == pytest.approx(sd.item(), rel=0.25)


def test_log_densities_of_many_points_are_those_of_single_ones():
    model = SkewGP(X, Binary(LABELS))
    mll = objective(model).train()
    density = UnboundedDensity(mll)
    density(density.start)
    x = density.start + torch.linspace(-1.5, 2.0, 6, dtype=torch.float64).unsqueeze(-1)
    values = density.log_densities(x)
    torch.testing.assert_close(values, torch.stack([density(point)[0] for point in x]), atol=1e-6, rtol=0)
    assert all(p.requires_grad for p in density.parameters)
    states = density.state_dict(x[-1]).values()  # the last one that was evaluated
    assert all(map(torch.equal, states, density.parameters))


def test_density_of_the_priors_and_its_gradient():
    density = UnboundedDensity(objective(SkewGP(X, Binary(LABELS))).train())
    x = density.start + 0.3
    value, gradient = density.prior(x)
    for i, step in enumerate(1e-5 * torch.eye(len(x), dtype=torch.float64)):
        slope = (density.prior(x + step)[0] - density.prior(x - step)[0]) / 2e-5
        assert gradient[i].item() == pytest.approx(slope.item(), abs=1e-6)
    assert value.isfinite()


def test_leaves_the_model_and_repeats():
    model = SkewGP(X, Binary(LABELS))
    mll = objective(model).eval()
    before = {name: p.clone() for name, p in model.named_parameters()}
    runs = [sample_hyperparameters(mll, 6, generator=torch.Generator().manual_seed(7)) for _ in range(2)]
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert not mll.training
    names = {"covar_module.raw_outputscale", "covar_module.base_kernel.raw_lengthscale"}
    assert set(runs[0].values) == names
    for name in names:
        assert torch.equal(runs[0].values[name], runs[1].values[name])
        assert runs[0].values[name].std() > 0
    other = sample_hyperparameters(mll, 6, generator=torch.Generator().manual_seed(8))
    assert not torch.equal(other.values[name], runs[0].values[name])


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_states_are_the_values_drawn():
    model = SkewGP(X.float(), Binary(LABELS))
    draws = sample_hyperparameters(objective(model), 4)
    for i, state in enumerate(draws.states):
        assert all(entry.dtype == torch.float32 for entry in state.values())
        assert not model.load_state_dict(state, strict=False).unexpected_keys
        wanted = draws.values["covar_module.raw_outputscale"][i].item()
        assert model.covar_module.outputscale.item() == pytest.approx(wanted, rel=1e-5)


def test_mean_with_a_prior_is_drawn():
    model = model_with(GreaterThan(1e-4), None)
    model.mean_module.register_prior("mean_prior", NormalPrior(1.0, 0.1), "constant")
    draws = sample_hyperparameters(objective(model), 50)
    assert set(draws.values) == {"mean_module.raw_constant"}
    assert draws.values["mean_module.raw_constant"].mean().item() == pytest.approx(0.98, abs=0.08)


def test_too_few_points_are_told():
    model = SkewGP(X, Binary(LABELS))
    with pytest.warns(PoorDrawsWarning, match="a few points have nearly all weight"):
        draws = sample_hyperparameters(objective(model), 64, max_evaluations=64)
    assert draws.num_evaluations == 64
    assert draws.effective_size < 32


def test_infinite_objective(monkeypatch):
    monkeypatch.setattr(UnboundedDensity, "log_densities", lambda self, x: torch.full_like(x[:, 0], -torch.inf))
    with pytest.raises(SamplingError, match="infinite"):
        sample_hyperparameters(objective(SkewGP(X, Binary(LABELS))))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((objective(SkewGP(X, Binary(LABELS))), 0), InputDataError, "num_draws must be an integer of at least 1"),
        ((objective(SkewGP(X, Binary(LABELS))), 1, 0), InputDataError, "max_evaluations must be an integer"),
        ((SkewGP(X, Binary(LABELS)),), UnsupportedError, r"which `fit_skew_gp\(model\)` returns; got .* SkewGP"),
        ((objective(model_with(GreaterThan(1e-4), None)),), UnsupportedError, "has a prior"),
    ],
)
def test_refusals(given, error, message):
    with pytest.raises(error, match=message):
        sample_hyperparameters(*given)

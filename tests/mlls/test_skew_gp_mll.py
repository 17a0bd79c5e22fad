"""The objective for hyperparameters: its value, its gradient, its warm start."""

import math

import gpytorch
import pytest
import small_cases
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import LinearKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior, LogNormalPrior, NormalPrior, UniformPrior
from gradients import assert_parameter_gradient, evaluate
from linear_operator.utils.errors import NotPSDError
from scipy import stats
from small_cases import TRAIN_X, skew_prior, tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    MixedLikelihood,
    NumericLikelihood,
    PreferenceLikelihood,
    SlopeLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood, base
from botorch_skewgp.mlls.skew_gp_mll import WarmExpectationPropagation
from botorch_skewgp.observations import Censored, Choice, LabelPreference, Numeric, Preference, Ranking, Slope, Validity
from botorch_skewgp.papers import BatchedMarginalLogLikelihood, StochasticMarginalLogLikelihood

PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [1, 2]])

CASES = small_cases.CASES | {
    "numbers": (lambda: Numeric(tensor(0.9, -0.6, 0.2)), lambda: NumericLikelihood(0.2)),
    "censored": (
        lambda: [Numeric(tensor(0.9, -0.6)), Censored([-math.inf, 0.1], [0.3, 0.8], index=torch.tensor([2, 4]))],
        lambda: NumericLikelihood(0.2),
    ),
    "duels": (lambda: Preference(PAIRS), lambda: PreferenceLikelihood(0.4, learn_noise=True)),
    # more duels than points: the low-rank path
    "many duels": (lambda: Preference(torch.cat([PAIRS, PAIRS])), lambda: PreferenceLikelihood(0.4, learn_noise=True)),
    "rankings": (
        lambda: [Choice([[1, 0, 2]]), Ranking([[3, 4, 5]])],
        lambda: PreferenceLikelihood(0.4, learn_noise=True, noise_prior=GammaPrior(2.0, 3.0)),
    ),
    "failures": (
        lambda: Validity([1, 0, 1]),
        lambda: ValidityLikelihood(0.3, learn_threshold=True, threshold_prior=NormalPrior(0.0, 1.0)),
    ),
    "classes": (
        lambda: LabelPreference.from_classes(torch.tensor([0, 2, 1, 2]), 3),
        lambda: LabelPreferenceLikelihood(3, noise=0.6, learn_noise=True),
    ),
    "slopes": (
        lambda: [Numeric(tensor(0.3, -0.2), index=[1, 2]), Slope(0, [1, -1], index=[0, 3])],
        lambda: MixedLikelihood(NumericLikelihood(0.1), SlopeLikelihood()),
    ),
}


def objective(name, skew_prior=None, priors=True):
    observations, likelihood = CASES[name]
    covar_module = ScaleKernel(
        RBFKernel(lengthscale_prior=LogNormalPrior(0.0, 1.0) if priors else None),
        outputscale_prior=GammaPrior(2.0, 1.0) if priors else None,
    )
    covar_module.base_kernel.lengthscale, covar_module.outputscale = 0.7, 1.5
    mean_module = gpytorch.means.ConstantMean(constant_prior=NormalPrior(0.0, 1.0) if priors else None)
    mean_module.initialize(constant=0.2)
    model = SkewGP(TRAIN_X, observations(), likelihood(), covar_module, mean_module, skew_prior)
    return SkewGPMarginalLogLikelihood(model.likelihood, model).train()


@torch.no_grad()
def value_of(mll):
    return evaluate(mll.train())


@pytest.mark.parametrize(("name", "prior"), [*((name, None) for name in CASES), ("labels", skew_prior())])
def test_gradient_in_every_hyperparameter(name, prior):
    assert_parameter_gradient(objective(name, prior))


# Values


def rbf():
    return 1.5 * torch.exp(-0.5 * ((TRAIN_X - TRAIN_X.T) / 0.7).square())


def noise_log_prior(noise):
    """`NumericLikelihood` learns its noise, with a N(-4, 1) prior of the logarithm."""
    return stats.norm.logpdf(math.log(noise), -4.0)


def test_numbers_have_the_density_of_a_normal_vector():
    """The likelihood, which objective and model both hold, adds the prior of its noise once."""
    distribution = stats.multivariate_normal(torch.full((3,), 0.2), rbf()[:3, :3] + 0.2 * torch.eye(3))
    expected = distribution.logpdf([0.9, -0.6, 0.2]) + noise_log_prior(0.2)
    assert float(value_of(objective("numbers", priors=False))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_duels_have_the_probability_of_an_orthant():
    """The difference's noise is twice an item's."""
    A = torch.zeros(5, 6, dtype=torch.float64)
    A[range(5), PAIRS[:, 0]], A[range(5), PAIRS[:, 1]] = 1.0, -1.0
    Gamma = A @ rbf() @ A.T + 0.8 * torch.eye(5)
    distribution = stats.multivariate_normal(cov=Gamma.numpy(), seed=1, abseps=1e-9, releps=1e-5)
    expected = math.log(distribution.cdf([0.0] * 5))
    assert float(value_of(objective("duels", priors=False))) == pytest.approx(expected, abs=0.02)


def test_priors_are_added():
    difference = value_of(objective("duels")) - value_of(objective("duels", priors=False))
    expected = stats.lognorm.logpdf(0.7, 1.0) + stats.gamma.logpdf(1.5, 2.0) + stats.norm.logpdf(0.2)
    assert float(difference) == pytest.approx(expected, rel=1e-6)


def test_the_priors_of_a_module_at_two_places_count_once():
    shared = PeriodicKernel(lengthscale_prior=LogNormalPrior(0.0, 1.0), period_length_prior=NormalPrior(0.0, 2.0))
    kernel = ScaleKernel(shared) + ScaleKernel(shared)
    model = SkewGP(TRAIN_X, Preference(PAIRS), PreferenceLikelihood(0.4), covar_module=kernel)
    length, period = shared.lengthscale.item(), shared.period_length.item()
    expected = stats.lognorm.logpdf(length, 1.0) + stats.norm.logpdf(period, scale=2.0)
    assert base.log_prior(model).item() == pytest.approx(expected)


def test_a_value_outside_of_its_prior_has_no_density():
    kernel = ScaleKernel(RBFKernel(lengthscale_prior=UniformPrior(0.1, 1.0)))
    kernel.base_kernel.lengthscale = 3.0
    assert base.log_prior(SkewGP(TRAIN_X, Preference(PAIRS), covar_module=kernel)).item() == -math.inf


def test_no_observations_leave_the_priors():
    model = SkewGP(TRAIN_X / 3)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    kernel = model.covar_module
    expected = kernel.outputscale_prior.log_prob(kernel.outputscale) + noise_log_prior(0.1)
    expected = expected + kernel.base_kernel.lengthscale_prior.log_prob(kernel.base_kernel.lengthscale).sum()
    assert float(value_of(mll)) == pytest.approx(float(expected.detach()), rel=1e-6)


# Hyperparameters at which the objective cannot be evaluated: steps back, and errors where there is no way back


def runaway(seed):
    """Three choices of four beside a constant that is never chosen; nothing holds the kernel's parameters."""
    options = torch.rand(12, 3, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    never = torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=torch.double)
    points = torch.cat([torch.cat([options, torch.zeros(12, 1, dtype=torch.double)], dim=-1), never])
    kernel = ScaleKernel(RBFKernel(ard_num_dims=3, active_dims=(0, 1, 2))) + LinearKernel(active_dims=(3,))
    return SkewGP(points, Choice([[0, 1, 2, 3, 12], [4, 5, 6, 7, 12], [8, 9, 10, 11, 12]]), covar_module=kernel)


SLOW_FITS = [pytest.param(seed, fit_gpytorch_mll, marks=pytest.mark.slow) for seed in (1, 2)]


@pytest.mark.parametrize(("seed", "fit"), [(0, fit_gpytorch_mll), (3, fit_skew_gp), *SLOW_FITS])
def test_a_fit_survives_steps_that_cannot_be_evaluated(seed, fit):
    model = runaway(seed)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    before = value_of(mll)
    fit(mll)
    assert value_of(mll) > before + 0.3
    assert all(bool(parameter.isfinite().all()) for parameter in mll.parameters())
    assert bool((model.covar_module.kernels[1].variance > 0).all())


@pytest.mark.parametrize("value", [-1e4, torch.inf, torch.nan])
@pytest.mark.parametrize("objective", [SkewGPMarginalLogLikelihood, BatchedMarginalLogLikelihood])
def test_an_infeasible_step_is_below_all_and_leads_back(objective, value):
    model = runaway(0)
    mll = objective(model.likelihood, model).train()
    raw = model.covar_module.kernels[1].raw_variance
    lowest = min(value_of(mll), evaluate(mll).item())
    good = raw.item()
    raw.data.fill_(value)
    if not raw.isfinite():
        with pytest.raises(NotPSDError, match="finite"):
            evaluate(mll)
        return
    found = evaluate(mll)
    assert found.item() < lowest
    found.backward()
    assert float(raw.grad * (good - value)) > 0
    next(p for p in model.parameters() if p is not raw and p.requires_grad).requires_grad_(False)
    with pytest.raises(NotPSDError, match="raw_variance"):  # nothing is known of fewer free parameters
        evaluate(mll)
    with pytest.raises(NotPSDError, match="raw_variance"):  # a fit that starts there
        value_of(mll)
    with pytest.raises(NotPSDError):  # the objective itself
        mll.evaluate(model(*model.train_inputs), model.train_targets)


def test_a_start_that_cannot_be_evaluated_is_said():
    model = SkewGP(torch.rand(4, 1, dtype=torch.double), Preference([[0, 1]]), covar_module=ScaleKernel(RBFKernel()))
    model.covar_module.raw_outputscale.data.fill_(-1e4)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    with pytest.raises(ModelFittingError):
        fit_gpytorch_mll(mll)


# What objectives keep between evaluations changes no value, belongs to them, and can be dropped

OBJECTIVES = {
    "whole": SkewGPMarginalLogLikelihood,
    "batches": lambda likelihood, model: BatchedMarginalLogLikelihood(likelihood, model, batch_size=2),
}


def test_goes_on_from_the_last_fixed_point():
    propagation = WarmExpectationPropagation()
    of = [small_cases.model_of(name) for name in ("labels", "labels", "many duels")]  # the last one has other rows
    first, again, fewer = (propagation(model.evidence(model(*model.train_inputs)).rows) for model in of)
    assert first.num_iterations > 3
    assert again.num_iterations == 1
    assert fewer.num_iterations > 3


@pytest.mark.parametrize("name", OBJECTIVES)
def test_value_is_that_of_a_cold_start(name):
    model = small_cases.model_of("labels", skew_prior())
    mll = OBJECTIVES[name](model.likelihood, model).train()
    first = evaluate(mll).item()
    assert evaluate(mll).item() == pytest.approx(first, abs=1e-9)
    model.covar_module.outputscale = 0.5
    warm = evaluate(mll).item()
    mll.reset()
    cold = evaluate(mll).item()
    assert warm == pytest.approx(cold, abs=1e-8)
    mll.reset()
    assert evaluate(mll).item() == cold


def duels_of_few_items(m):
    """More duels than points, whose covariance has a root of low rank; equal ones are merged where they are many."""
    pairs = torch.combinations(torch.arange(6)).repeat(m // 15 + 1, 1)[:m]
    points = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    return SkewGP(points, Preference(pairs))


def test_reset_starts_the_chains_anew():
    model = small_cases.model_of("labels")
    mll = StochasticMarginalLogLikelihood(model.likelihood, model).train()

    def gradient():
        return torch.autograd.grad(evaluate(mll), model.covar_module.raw_outputscale)[0]

    first, second = gradient(), gradient()
    assert not torch.equal(first, second)
    mll.reset()
    assert torch.equal(gradient(), first)


def test_objectives_do_not_share_what_they_keep():
    """Two objectives of one model: evaluating one leaves the other's values the same to the last bit."""
    values = []
    for disturbed in (False, True):
        model = small_cases.model_of("labels")
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        evaluate(mll)
        model.covar_module.outputscale = 0.5
        if disturbed:
            evaluate(SkewGPMarginalLogLikelihood(model.likelihood, model).train())
        values.append(evaluate(mll).item())
    assert values[0] == values[1]


def test_gradients_from_sites_nearby_are_those_of_a_cold_start():
    model = small_cases.model_of("many duels")
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    parameter, gradients = model.covar_module.raw_outputscale, []
    for step in (0.0, 0.1, 0.0):
        with torch.no_grad():
            parameter += step
        mll.reset() if len(gradients) == 2 else None
        gradients.append(torch.autograd.grad(evaluate(mll), parameter)[0])
    before, warm, cold = gradients
    assert (warm - cold).abs() < 1e-3 * (before - cold).abs()

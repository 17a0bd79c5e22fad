"""Hyperparameters at which the objective cannot be evaluated: steps back, and errors where there is no way back."""

import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import LinearKernel, RBFKernel, ScaleKernel
from linear_operator.utils.errors import NotPSDError

from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Choice, Preference
from botorch_skewgp.papers import BatchedMarginalLogLikelihood


def value_of(mll):
    mll.train()
    return mll(mll.model(*mll.model.train_inputs), mll.model.train_targets).item()


def runaway(seed):
    """Three choices of four beside a constant that is never chosen; nothing holds the kernel's parameters."""
    options = torch.rand(12, 3, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    never = torch.tensor([[0.0, 0.0, 0.0, 1.0]], dtype=torch.double)
    points = torch.cat([torch.cat([options, torch.zeros(12, 1, dtype=torch.double)], dim=-1), never])
    kernel = ScaleKernel(RBFKernel(ard_num_dims=3, active_dims=(0, 1, 2))) + LinearKernel(active_dims=(3,))
    return SkewGP(points, Choice([[0, 1, 2, 3, 12], [4, 5, 6, 7, 12], [8, 9, 10, 11, 12]]), covar_module=kernel)


@pytest.mark.parametrize("fit", [fit_gpytorch_mll, fit_skew_gp])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2)), 3])
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
    lowest = min(value_of(mll), mll(model(*model.train_inputs), model.train_targets).item())
    good = raw.item()
    raw.data.fill_(value)
    if not raw.isfinite():
        with pytest.raises(NotPSDError, match="finite"):
            mll(model(*model.train_inputs), model.train_targets)
        return
    found = mll(model(*model.train_inputs), model.train_targets)
    assert found.item() < lowest
    found.backward()
    assert float(raw.grad * (good - value)) > 0
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

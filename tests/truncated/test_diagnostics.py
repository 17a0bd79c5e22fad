"""Diagnostics of chains and tails of weights, against ArviZ and closed forms for AR(1) chains."""

import math
import warnings

import numpy as np
import pytest
import torch

from botorch_skewgp.truncated.diagnostics import diagnose, effective_sample_size, pareto_shape

pytestmark = pytest.mark.rounding

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # arviz announces its own refactoring
    arviz = pytest.importorskip("arviz")


def autoregressive(num_steps, num_chains, coefficients, seed=0, burn_in=300):
    generator = torch.Generator().manual_seed(seed)
    coefficients = torch.as_tensor(coefficients, dtype=torch.float64)
    shape = (burn_in + num_steps, num_chains, len(coefficients))
    steps = torch.sqrt(1 - coefficients.square()) * torch.randn(shape, generator=generator, dtype=torch.float64)
    for i in range(1, len(steps)):
        steps[i] += coefficients * steps[i - 1]
    return steps[burn_in:]


def reference(draws, what):
    """One functional at a time, `num_steps x num_chains x k`."""
    values = []
    for k in range(draws.shape[-1]):
        chains = np.ascontiguousarray(draws[..., k].double().numpy().T)
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = arviz.rhat(chains, method="rank") if what == "r_hat" else arviz.ess(chains, method=what)
        values.append(float(estimate))
    return torch.tensor(values, dtype=torch.float64)


def awkward(num_steps, num_chains, seed):
    """Functionals with heavy tails, ties, trends, disagreement between chains and few distinct values."""
    draws = autoregressive(num_steps, num_chains, [0.0, 0.5, 0.9, 0.99, -0.5, -0.95, 0.7, 0.7, 0.6, 0.6, 0.6], seed)
    draws[..., 6] = torch.tan(1.4 * torch.erf(draws[..., 6]))
    draws[..., 7] = draws[..., 7].round()
    draws[..., 8] = (draws[..., 8] > 1.0).double()
    draws[..., 9] += torch.arange(num_chains)
    draws[..., 10] *= torch.linspace(0.2, 2.0, num_steps, dtype=torch.float64)[:, None]
    return draws


@pytest.mark.parametrize(("num_steps", "num_chains"), [(400, 4), (401, 3), (37, 16), (10, 2), (5, 2), (4, 2)])
@pytest.mark.parametrize("seed", [0, 1])
def test_equal_to_arviz(num_steps, num_chains, seed):
    draws = awkward(num_steps, num_chains, seed)
    found = dict(zip(("r_hat", "bulk", "mean"), (*diagnose(draws), effective_sample_size(draws)), strict=True))
    for what, ours in found.items():
        torch.testing.assert_close(ours, reference(draws, what), rtol=1e-8, atol=0, equal_nan=True, msg=what)


def test_constant_functional():
    draws = autoregressive(51, 3, [0.0, 0.0, 0.0])
    draws[..., 1] = 0.1
    draws[..., 2] = torch.arange(3)
    r_hat = diagnose(draws).r_hat
    assert r_hat[0].isfinite()
    assert r_hat[1].isnan()
    assert r_hat[2] > 100
    for size in (diagnose(draws).bulk_effective_size, effective_sample_size(draws)):
        assert size[1] == 150
    assert effective_sample_size(draws)[2] < 4


def test_nan_is_reported_where_it_is():
    draws = autoregressive(20, 2, [0.0, 0.0])
    draws[3, 1, 1] = math.nan
    for result in (*diagnose(draws), effective_sample_size(draws)):
        assert result[0].isfinite()
        assert result[1].isnan()


def test_float32_is_computed_in_float64():
    draws = (1e4 + autoregressive(300, 4, [0.5, 0.9])).float()
    for function in (lambda x: diagnose(x).r_hat, effective_sample_size):
        result = function(draws)
        assert result.dtype == torch.float32
        torch.testing.assert_close(result, function(draws.double()).float(), rtol=1e-7, atol=0)


def test_invalid_arguments():
    with pytest.raises(ValueError, match="at least four steps"):
        diagnose(torch.zeros(3, 2, 1))
    with pytest.raises(ValueError, match="num_steps x num_chains x k"):
        diagnose(torch.zeros(30, 2))


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.9, 1.5])
def test_shape_is_arvizs(shape):
    log_weights = np.log(np.random.default_rng(0).pareto(1 / shape, (2, 400)))
    found = pareto_shape(torch.tensor(log_weights) + 700)
    for i in range(2):
        assert found[i].item() == pytest.approx(float(arviz.psislw(log_weights[i])[1]), abs=1e-9)


def test_weights_without_a_tail():
    assert pareto_shape(torch.zeros(30)).item() == -torch.inf
    bounded = torch.rand(2000, dtype=torch.float64).log()
    assert pareto_shape(bounded) < 0
    with pytest.raises(ValueError, match="25"):
        pareto_shape(torch.zeros(24))

"""Diagnostics against an independent implementation (arviz) and against closed forms for AR(1) chains."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata

from botorch_skewgp.truncated import diagnostics
from botorch_skewgp.truncated.diagnostics import diagnose, effective_sample_size, split_r_hat

pytestmark = pytest.mark.rounding

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # arviz announces its own refactoring
    arviz = pytest.importorskip("arviz")


def autoregressive(num_steps, num_chains, coefficients, seed=0, burn_in=300):
    generator = torch.Generator().manual_seed(seed)
    coefficients = torch.as_tensor(coefficients, dtype=torch.float64)
    shape = (num_chains, len(coefficients))
    x = torch.zeros(shape, dtype=torch.float64)
    steps = []
    for i in range(burn_in + num_steps):
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        x = coefficients * x + torch.sqrt(1 - coefficients.square()) * noise
        if i >= burn_in:
            steps.append(x)
    return torch.stack(steps)


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
    torch.testing.assert_close(split_r_hat(draws), reference(draws, "r_hat"), rtol=1e-8, atol=0, equal_nan=True)
    for kind in ("bulk", "mean"):
        ours = effective_sample_size(draws, kind=kind)
        torch.testing.assert_close(ours, reference(draws, kind), rtol=1e-8, atol=0, equal_nan=True, msg=kind)


@pytest.mark.parametrize("shape", [(5, 400), (2, 3, 101), (3, 8)])
@pytest.mark.parametrize("parts", [2**30, 8, 1], ids=["distinct", "some ties", "many ties"])
def test_scores_are_those_of_average_ranks(shape, parts):
    def by_scipy(values):
        return torch.from_numpy(norm.ppf((rankdata(values.numpy(), axis=-1) - 0.375) / (values.shape[-1] + 0.25)))

    values = 3 + torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = (values * parts).round() / parts  # binary fractions, whose medians and distances have no rounding
    distances = (values - values.quantile(0.5, dim=-1, keepdim=True)).abs()
    bulk, folded = diagnostics._normal_scores(values.unsqueeze(-2))
    torch.testing.assert_close(bulk.squeeze(-2), by_scipy(values), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(folded.squeeze(-2), by_scipy(distances), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9, -0.5])
def test_effective_size_of_autoregression(coefficient):
    # The integrated autocorrelation time of an AR(1) chain is (1 + a) / (1 - a).
    draws = autoregressive(4000, 4, [coefficient] * 50, seed=5)
    truth = 16000 * (1 - coefficient) / (1 + coefficient)
    estimates = effective_sample_size(draws, kind="mean")
    assert abs(estimates.mean() / truth - 1) < 4 * estimates.std() / truth / math.sqrt(50) + 0.02
    assert (split_r_hat(draws) < 1.02).all()


def test_r_hat_sees_chains_that_differ_in_place_or_in_spread():
    draws = autoregressive(500, 4, [0.0, 0.0, 0.0])
    draws[:, 0, 1] += 1.0
    draws[:, 0, 2] *= 4.0
    r_hat = split_r_hat(draws)
    assert r_hat[0] < 1.01
    assert r_hat[1] > 1.05
    assert r_hat[2] > 1.05


def test_constant_functional():
    draws = autoregressive(51, 3, [0.0, 0.0, 0.0])
    draws[..., 1] = 0.1
    draws[..., 2] = torch.arange(3)
    r_hat = split_r_hat(draws)
    assert r_hat[0].isfinite()
    assert r_hat[1].isnan()
    assert r_hat[2] > 100
    for kind in ("bulk", "mean"):
        assert effective_sample_size(draws, kind=kind)[1] == 150
    assert effective_sample_size(draws, kind="mean")[2] < 4


def test_nan_is_reported_where_it_is():
    draws = autoregressive(20, 2, [0.0, 0.0])
    draws[3, 1, 1] = math.nan
    for result in (split_r_hat(draws), *(effective_sample_size(draws, kind=k) for k in ("bulk", "mean"))):
        assert result[0].isfinite()
        assert result[1].isnan()


@pytest.mark.parametrize("num_steps", [300, 301])
def test_diagnose_is_both_of_them(num_steps):
    draws = autoregressive(num_steps, 3, [0.5, 0.9, 0.0])
    draws[..., 2] = draws[..., 2].round()  # ties
    result = diagnose(draws)
    torch.testing.assert_close(result.r_hat, split_r_hat(draws), rtol=1e-12, atol=0)
    torch.testing.assert_close(result.bulk_effective_size, effective_sample_size(draws), rtol=1e-12, atol=0)


def test_float32_is_computed_in_float64():
    draws = (1e4 + autoregressive(300, 4, [0.5, 0.9])).float()
    for function in (split_r_hat, lambda x: effective_sample_size(x, kind="mean")):
        result = function(draws)
        assert result.dtype == torch.float32
        torch.testing.assert_close(result, function(draws.double()).float(), rtol=1e-7, atol=0)


def test_invalid_arguments():
    with pytest.raises(ValueError, match="at least four steps"):
        split_r_hat(torch.zeros(3, 2, 1))
    with pytest.raises(ValueError, match="num_steps x num_chains x k"):
        split_r_hat(torch.zeros(30, 2))
    with pytest.raises(ValueError, match="kind must be"):
        effective_sample_size(torch.zeros(30, 2, 1), kind="median")

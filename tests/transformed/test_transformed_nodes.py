"""Modes and nodes of the parameters of a transformed process."""

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from torch.distributions import MultivariateNormal
from transformed_cases import DOUBLE, data, model, shared

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.transformed.nodes import Mode, find_modes, sobol_nodes
from botorch_skewgp.transformed.quadrature import effective_number

TEST_X = torch.tensor([[0.2, 0.3], [0.9, 0.1], [0.5, 0.5]], dtype=DOUBLE)
LOG_TOTAL = 3.0  # of the integral over the two hills
HILLS = [
    (0.7, MultivariateNormal(torch.tensor([2.0, 0.0], dtype=DOUBLE), 0.04 * torch.eye(2, dtype=DOUBLE))),
    (0.3, MultivariateNormal(torch.tensor([-2.0, 1.0], dtype=DOUBLE), torch.diag(torch.tensor([0.25, 0.09])).double())),
]


def two_hills(u):
    return LOG_TOTAL + torch.stack([math.log(share) + law.log_prob(u) for share, law in HILLS]).logsumexp(0)


def test_both_modes_are_found():
    modes = find_modes(two_hills, torch.zeros(2, dtype=DOUBLE), num_restarts=4, seed=0)
    assert len(modes) == 2
    for mode, (share, law) in zip(modes, HILLS, strict=True):
        torch.testing.assert_close(mode.center, law.mean, rtol=0, atol=1e-3)
        torch.testing.assert_close(mode.root @ mode.root.mT, law.covariance_matrix, rtol=1e-3, atol=1e-6)
        assert mode.log_mass == pytest.approx(LOG_TOTAL + math.log(share), abs=1e-2)


def test_one_start_gives_one_mode():
    modes = find_modes(two_hills, torch.tensor([-1.5, 1.0], dtype=DOUBLE), num_restarts=1, seed=0)
    assert [mode.center[0].item() for mode in modes] == pytest.approx([-2.0], abs=1e-3)


@pytest.mark.parametrize("shared_coordinates", [1, 2])
def test_nodes_of_two_modes_integrate(shared_coordinates):
    modes = find_modes(two_hills, torch.zeros(2, dtype=DOUBLE), num_restarts=4, seed=0)
    evidences, shares, means = [], [], []
    for seed in range(8):
        nodes = sobol_nodes(two_hills, modes, shared_coordinates, 128, 32.0, seed=50 * seed)
        assert len(nodes.u) == 128
        log_weight = nodes.log_weight + two_hills(nodes.u)
        weight = torch.softmax(log_weight, dim=0)
        evidences.append(log_weight.logsumexp(0).exp())
        shares.append(weight[nodes.u[:, 0] > 0].sum())
        means.append(weight @ nodes.u[:, 1])
    for found, exact in ((evidences, math.exp(LOG_TOTAL)), (shares, 0.7), (means, 0.3)):
        found = torch.stack(found)
        assert abs(found.mean() - exact) < 4 * found.std() / math.sqrt(len(found)) + 1e-3
        assert found.std() < 0.1 * exact + 0.01


def test_rounds_find_the_shape_that_a_mode_does_not_tell():
    # the Gaussian at the mode is far too narrow and its center is off: nodes move until enough of them count
    narrow = Mode(torch.tensor([1.0, -1.0], dtype=DOUBLE), 0.1 * torch.eye(2, dtype=DOUBLE), 0.0)
    law = MultivariateNormal(torch.zeros(2, dtype=DOUBLE), torch.tensor([[1.0, 0.6], [0.6, 1.0]], dtype=DOUBLE))
    nodes = sobol_nodes(law.log_prob, [narrow], 2, 128, 60.0, seed=0)
    log_weight = nodes.log_weight + law.log_prob(nodes.u)
    assert len(nodes.u) > 128
    assert effective_number(torch.softmax(log_weight, 0)) >= 60
    assert log_weight.logsumexp(0).item() == pytest.approx(0.0, abs=0.15)


def test_a_mode_of_no_weight_gets_no_nodes():
    modes = [Mode(law.mean, torch.linalg.cholesky(law.covariance_matrix), 0.0) for _, law in HILLS]
    nodes = sobol_nodes(HILLS[0][1].log_prob, [modes[0], modes[1]._replace(log_density=-20.0)], 2, 64, 8.0, seed=0)
    assert (nodes.u[:, 0] > 0).double().mean() > 0.98
    both = sobol_nodes(HILLS[0][1].log_prob, modes, 2, 64, 8.0, seed=0)
    assert (both.u[:, 0] < 0).sum() > 20


def test_too_few_effective_nodes_are_warned_of():
    law = MultivariateNormal(torch.zeros(7, dtype=DOUBLE), torch.eye(7, dtype=DOUBLE))
    mode = Mode(torch.full((7,), 4.0, dtype=DOUBLE), 0.1 * torch.eye(7, dtype=DOUBLE), 0.0)
    with pytest.warns(QuadratureWarning, match="effective number"):
        sobol_nodes(law.log_prob, [mode], 7, 8, 1e3, seed=0)


@pytest.mark.slow
def test_quadratures_agree():
    X, Y = data()
    quantiles, evidences = [], []
    for seed in range(4):
        sobol = model("sinh-arcsinh", X, Y, num_nodes=512, least_effective=100.0, seed=seed)
        quantiles.append(sobol.posterior(TEST_X).quantile(torch.tensor([0.1, 0.5, 0.9])))
        evidences.append(sobol.log_evidence)
    quantiles, error = torch.stack(quantiles), torch.stack(quantiles).std(0) / 2
    assert np.std(evidences) < 0.1
    grid = model("sinh-arcsinh", X, Y, quadrature="smolyak", level=5)
    with pytest.warns(QuadratureWarning, match="decrease"):
        grid.posterior(TEST_X)
    median = grid.posterior(TEST_X).median
    assert (grid.weighted_nodes.sign < 0).any()
    spread = quantiles[:, 2].mean(0) - quantiles[:, 0].mean(0)
    assert ((median - quantiles[:, 1].mean(0)).abs() < 0.25 * spread + 4 * error[1]).all()
    with pytest.raises(UnsupportedError, match="sobol"):
        grid.posterior(TEST_X).rsample(torch.Size([2]))


@pytest.mark.slow
def test_steps_have_two_modes():
    # short lengthscales, or long ones with more noise: against a dense grid over both parameters
    X = torch.linspace(0, 1, 51, dtype=DOUBLE).unsqueeze(-1)
    noise = 0.05 * torch.randn(X.shape, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    Y = torch.sin(2 * math.pi * X - math.pi).round() + noise
    transformed = model("identity", X, Y, num_restarts=4, num_nodes=128, tolerance=0.0)
    grid = torch.cartesian_prod(*(torch.linspace(*ends, 120, dtype=DOUBLE) for ends in ((-7.0, 3.0), (-12.0, 2.0))))
    with torch.no_grad():
        exact = float(transformed.log_posterior(grid).logsumexp(0)) + math.log(10 * 14 / 119**2)
    assert transformed.log_evidence == pytest.approx(exact, abs=0.15)
    nodes = transformed.weighted_nodes
    share = nodes.probabilities[nodes.u[:, 0] < -2].sum()
    assert 0.2 < share < 0.8


def test_more_nodes_are_effective_where_they_are_asked_for():
    transformed = shared("L-SA", num_nodes=32, least_effective=15.9, num_restarts=1)
    assert transformed.effective_number_of_nodes >= 15.9

"""Nodes: counts and exactness of sparse grids, weights of quasi-random nodes, the bound of sparsification."""

import math

import pytest
import torch

from botorch_skewgp.transformed.quadrature import Proposal, effective_number, keep_largest, smolyak_grid

DOUBLE = torch.float64


@pytest.mark.parametrize(
    ("dim", "level", "num_nodes", "num_negative"),
    [
        (3, 6, 351, 115),
        (4, 5, 385, 104),
        (5, 5, 781, 190),
        (6, 4, 389, 73),
        (7, 4, 589, 99),
        (8, 4, 849, 129),
        pytest.param(10, 4, 1581, 201, marks=pytest.mark.slow),
    ],
)
def test_number_of_nodes_of_sparse_grids(dim, level, num_nodes, num_negative):
    nodes, weights = smolyak_grid(dim, level)
    assert (len(nodes), int((weights < -1e-14).sum())) == (num_nodes, num_negative)
    assert weights.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("powers", [(0, 0, 0), (2, 0, 0), (2, 2, 0), (4, 0, 0), (0, 1, 4), (1, 1, 1)])
def test_sparse_grids_are_exact_for_polynomials(powers):
    nodes, weights = smolyak_grid(3, 3)  # total degrees up to 5
    value = (weights * nodes.pow(torch.tensor(powers)).prod(-1)).sum()
    exact = math.prod(0.0 if k % 2 else 1 / (k + 1) for k in powers)
    assert value.item() == pytest.approx(exact, abs=1e-13)


def test_one_node_is_the_center():
    nodes, weights = smolyak_grid(4, 1)
    assert nodes.tolist() == [[0.0] * 4]
    assert weights.tolist() == pytest.approx([1.0])


@pytest.mark.parametrize("inner", [1, 4])
def test_weights_of_shared_nodes(inner):
    root = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.8, 0.0], [-0.3, 0.4, 1.2]], dtype=DOUBLE)
    proposal = Proposal(torch.tensor([1.0, -1.0, 0.5], dtype=DOUBLE), root)
    target = torch.distributions.MultivariateNormal(proposal.center + 0.3, root @ root.mT)
    outer_dim = 2
    estimates = []
    for seed in range(8):
        u = proposal.nodes(1024 // inner, inner, outer_dim, seed=10 * seed)
        assert u.shape == (1024, 3)
        assert len(torch.unique(u[:, :outer_dim], dim=0)) == 1024 // inner
        weights = (target.log_prob(u) - proposal.log_density(u)).exp()
        estimates.append(
            torch.cat(
                [weights.mean().view(1), (weights.unsqueeze(-1) * u).mean(0), (weights * u[:, 2] ** 2).mean()[None]]
            )
        )
    estimates = torch.stack(estimates)
    mean = target.mean
    exact = torch.cat([torch.ones(1).to(mean), mean, (mean[2] ** 2 + target.variance[2])[None]])
    error = estimates.std(0) / math.sqrt(len(estimates))
    assert ((estimates.mean(0) - exact).abs() < 4 * error + 1e-4).all()


def test_sparsification_bounds_the_error_of_cdfs(generator):
    weights = torch.rand(300, generator=generator, dtype=DOUBLE).pow(8)
    weights = weights / weights.sum()
    for tolerance in (0.3, 0.05, 1e-3):
        kept = keep_largest(weights, tolerance)
        assert len(kept) < len(weights)
        assert weights[kept].sum() >= 1 - tolerance
        assert weights[kept].sum() - weights[kept].min() < 1 - tolerance  # no node more than needed
        cdfs = (
            torch.randn(300, 1, generator=generator, dtype=DOUBLE) + torch.linspace(-4, 4, 50, dtype=DOUBLE)
        ).sigmoid()
        error = weights @ cdfs - weights[kept] @ cdfs[kept] / weights[kept].sum()
        assert error.abs().max() <= tolerance


def test_sparsification_counts_absolute_weights():
    assert keep_largest(torch.tensor([0.5, -0.4, 0.9, 1e-9]), 0.01).tolist() == [0, 1, 2]
    assert keep_largest(torch.tensor([0.5, 0.5]), 0.0).tolist() == [0, 1]


def test_effective_number():
    assert effective_number(torch.ones(7)) == pytest.approx(7.0)
    assert effective_number(torch.tensor([1.0, 0.0, 0.0])) == pytest.approx(1.0)

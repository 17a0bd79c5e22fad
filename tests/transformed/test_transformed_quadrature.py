"""Nodes: counts and exactness of sparse grids, weights of quasi-random nodes, the bound of sparsification."""

import math

import pytest
import torch

from botorch_skewgp.transformed.nodes import Proposal, ProposalMixture
from botorch_skewgp.transformed.regression import effective_number, keep_largest
from botorch_skewgp.transformed.sparse_grid import normal_rule, sparse_grid
from botorch_skewgp.truncated.univariate import gauss_rule

DOUBLE = torch.float64


@pytest.mark.parametrize(
    ("dim", "level", "num_nodes"), [(4, 1, 1), (7, 2, 15), (7, 3, 99), (7, 4, 421), (7, 5, 1485), (3, 4, 45)]
)
def test_number_of_nodes_of_sparse_grids(dim, level, num_nodes):
    nodes, weights = sparse_grid(dim, level)
    assert len(nodes) == num_nodes
    assert weights.sum().item() == pytest.approx(1.0)
    assert [0.0] * dim in nodes.tolist()


@pytest.mark.parametrize("level", range(1, 9))
def test_rules_are_exact_and_nested(level):
    x, w = normal_rule(level)
    for power in range(2 * level):
        exact = 0.0 if power % 2 else math.prod(range(1, power, 2))
        assert (w * x**power).sum().item() == pytest.approx(exact, abs=1e-13 * (1 + x.abs().max().item() ** power))
    assert (w > 0).all()
    assert set(x.tolist()) <= set(normal_rule(8)[0].tolist())


@pytest.mark.parametrize("powers", [(0, 0, 0), (2, 0, 0), (2, 2, 0), (4, 0, 0), (0, 1, 4), (1, 1, 1)])
@pytest.mark.parametrize(
    ("rule", "moment"),
    [
        (normal_rule, lambda k: math.prod(range(1, k, 2))),
        (lambda level: gauss_rule("legendre", level), lambda k: 1 / (k + 1)),  # of a uniform variable on [-1, 1]
    ],
)
def test_sparse_grids_are_exact_for_polynomials(powers, rule, moment):
    nodes, weights = sparse_grid(3, 3, rule)  # total degrees up to 5
    value = (weights * nodes.pow(torch.tensor(powers)).prod(-1)).sum()
    exact = math.prod(0.0 if k % 2 else moment(k) for k in powers)
    assert value.item() == pytest.approx(exact, abs=1e-12)


def test_weights_of_nodes():
    root = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.8, 0.0], [-0.3, 0.4, 1.2]], dtype=DOUBLE)
    proposal = Proposal(torch.tensor([1.0, -1.0, 0.5], dtype=DOUBLE), root)
    target = torch.distributions.MultivariateNormal(proposal.center + 0.3, root @ root.mT)
    estimates = []
    for seed in range(8):
        u = proposal.nodes(1024, seed=10 * seed)
        assert u.shape == (1024, 3)
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


@pytest.mark.parametrize("num_nodes", [1, 4, 100])
def test_every_proposal_of_a_mixture_has_nodes_and_the_wide_one_stays(num_nodes):
    wide = Proposal(torch.zeros(2, dtype=DOUBLE), 5 * torch.eye(2, dtype=DOUBLE))
    near = [Proposal(torch.full((2,), float(k), dtype=DOUBLE), torch.eye(2, dtype=DOUBLE)) for k in (1, 2, 3)]
    mixture = ProposalMixture.of(near, torch.tensor([1.0, 1e-6, 0.0], dtype=DOUBLE), wide, num_nodes)
    assert min(mixture.counts) >= 1
    assert num_nodes <= sum(mixture.counts) <= num_nodes + 3
    if num_nodes == 100:
        assert mixture.counts[-1] == 15
    u = mixture.nodes(seed=0)
    adapted = mixture.adapted(u, torch.softmax(-u.square().sum(-1), 0))
    assert adapted.components[-1] is wide
    far = mixture.adapted(u, torch.nn.functional.one_hot(u.norm(dim=-1).argmax(), len(u)).to(u))
    assert len(far.components) >= 2  # also where the wide proposal has all the weight


def test_sparsification_leaves_out_no_more_than_the_tolerance(generator):
    weights = torch.rand(300, generator=generator, dtype=DOUBLE).pow(8)
    weights = weights / weights.sum()
    for tolerance in (0.3, 0.05, 1e-3):
        kept = keep_largest(weights, tolerance)
        assert weights[kept].sum() >= 1 - tolerance
        assert weights[kept].sum() - weights[kept].min() < 1 - tolerance  # no node more than needed
    assert keep_largest(torch.tensor([0.5, -0.4, 0.9, 1e-9]), 0.01).tolist() == [0, 1, 2]  # absolute weights count
    assert keep_largest(torch.tensor([0.5, 0.5]), 0.0).tolist() == [0, 1]


def test_nodes_of_no_weight_are_left_out():
    assert keep_largest(torch.tensor([0.5, 0.0, 0.5, 0.0], dtype=DOUBLE), 0.0).tolist() == [0, 2]
    assert keep_largest(torch.tensor([0.0, -1.0, 1.5], dtype=DOUBLE), 0.0).tolist() == [1, 2]
    # a sum of rounded shares may fall short of one
    weights = torch.cat([torch.full((999,), 1 / 999, dtype=DOUBLE), torch.zeros(5, dtype=DOUBLE)])
    assert len(keep_largest(weights, 0.0)) == 999
    assert len(keep_largest(torch.tensor([1.0, 1e-300], dtype=DOUBLE), 0.0)) == 2


def test_effective_number():
    assert effective_number(torch.ones(7)) == pytest.approx(7.0)
    assert effective_number(torch.tensor([1.0, 0.0, 0.0])) == pytest.approx(1.0)

"""Sparse grids of the benchmark of quadratures."""

import math

import pytest
import torch

from benchmarks.transformed.sparse_grids import normal_rule, sparse_grid
from botorch_skewgp.truncated.univariate import gauss_rule


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

"""Feasible starts: inside the bounds whatever the bounds are, and an error that names contradictions."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from row_cases import INF, low_rank, make
from sampler_cases import DENSE, LOW_RANK, poor_sites, slab
from scipy.optimize import nnls

from botorch_skewgp.truncated.samplers.feasibility import feasible_point, feasible_start
from botorch_skewgp.truncated.step_factor import Heights

pytestmark = pytest.mark.rounding


def check_feasible(distribution, rows, num_chains):
    """Inside the bounds, and possible: some latent coordinates give the rows that have no noise."""
    assert rows.shape == (num_chains, distribution.num_rows)
    assert rows.isfinite().all()
    assert (rows >= distribution.lower.unsqueeze(-2)).all()
    assert (rows <= distribution.upper.unsqueeze(-2)).all()
    if distribution.prior.is_low_rank:
        exact = distribution.noise == 0
        F, h = distribution.prior.root[exact], (rows - distribution.mean)[:, exact]
        torch.testing.assert_close(h @ torch.linalg.pinv(F).mT @ F.mT, h, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", DENSE + LOW_RANK)
def test_all_rows_noisy(case, generator):
    distribution = case().distribution
    for approximation in (poor_sites(distribution).product, None):
        rows = feasible_start(distribution, 50, generator, approximation)
        check_feasible(distribution, rows, 50)
        assert (rows[1:] != rows[:-1]).any(-1).all()


def test_approximation_is_drawn_from(generator):
    distribution = slab().distribution
    mean, root = torch.tensor([7.0]).double(), torch.tensor([[1e-3]]).double()
    approximation = SimpleNamespace(latent_mean=mean, latent_root=root)
    free = make(distribution.mean, distribution.prior, [-INF] * 5, [INF] * 5, [1e-9] * 5)
    rows = feasible_start(free, 50, generator, approximation)
    assert ((rows - free.mean) / free.prior.root.squeeze(-1) - 7).abs().max() < 0.01


@pytest.mark.parametrize("with_approximation", [False, True])
def test_dense_rows_without_noise(with_approximation, generator):
    covariance = torch.tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]])
    distribution = make([0.0, 0.0, 1.0], covariance, [3.0, -INF, 20.0], [3.1, -2.0, INF], [0.0, 0.0, 0.5])
    approximation = poor_sites(distribution).product if with_approximation else None
    rows = feasible_start(distribution, 30, generator, approximation)
    check_feasible(distribution, rows, 30)
    assert (rows[1:, 2] != rows[:-1, 2]).all()


def in_cone(m, r, noise, generator, share_of_noise=0.0):
    """`m` random half-spaces of `r` dimensions that share a point; some rows with noise pay no heed to it."""
    root = torch.randn(m, r, generator=generator, dtype=torch.float64)
    point = torch.randn(r, 1, generator=generator, dtype=torch.float64)
    noisy = torch.rand(m, 1, generator=generator, dtype=torch.float64) < share_of_noise
    signs = torch.where(noisy & (torch.rand(m, 1, generator=generator) < 0.3), -1.0, 1.0) * torch.sign(root @ point)
    noises = torch.where(noisy, noise, 0.0).squeeze(-1)
    return make([0.0] * m, low_rank(signs * root), [0.0] * m, [INF] * m, noises)


@pytest.mark.parametrize("share_of_noise", [0.0, 0.5])
@pytest.mark.parametrize(("m", "r"), [(30, 3), (2000, 20)])
def test_low_rank_rows_without_noise(m, r, share_of_noise, generator):
    distribution = in_cone(m, r, 0.1, generator, share_of_noise)
    rows = feasible_start(distribution, 8, generator)
    check_feasible(distribution, rows, 8)
    assert "covariance" not in distribution.prior.__dict__


@pytest.mark.parametrize("width", [1e-6, 1e-2])
def test_thin_slabs_far_out(width, generator):
    """Bounds that nearly touch, at twenty standard deviations, in three directions of a three-dimensional space."""
    root = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    point = torch.linalg.solve(root[:3], torch.tensor([20.0, -20.0, 5.0], dtype=torch.float64))
    middle = root @ point
    distribution = make([0.0] * 4, low_rank(root), middle - width / 2, middle + width / 2, [0.0] * 4)
    rows = feasible_start(distribution, 8, generator)
    check_feasible(distribution, rows, 8)


def test_rank_deficient_dense_covariance(generator):
    """Three rows that are one variable and its negative: independent draws would not be possible values."""
    root = torch.tensor([[1.0], [1.0], [-2.0]])
    distribution = make([0.0] * 3, root @ root.mT, [0.5, -INF, -INF], [INF, 0.7, INF], [0.0] * 3)
    rows = feasible_start(distribution, 20, generator)
    check_feasible(distribution, rows, 20)
    torch.testing.assert_close(rows[:, 0], rows[:, 1])
    torch.testing.assert_close(rows[:, 2], -2 * rows[:, 0])


def test_approximate_mean_is_used_where_it_is_feasible(generator):
    distribution = make([0.0] * 2, low_rank([[1.0], [2.0]]), [0.0, 5.9], [INF, 6.1], [0.0, 0.0])
    approximation = SimpleNamespace(latent_mean=torch.tensor([3.0]).double(), latent_root=None)
    rows = feasible_start(distribution, 20, generator, approximation)
    check_feasible(distribution, rows, 20)
    dense = make([0.0] * 2, [[1.0, 2.0], [2.0, 4.0]], [0.0, 5.9], [INF, 6.1], [0.0, 0.0])
    approximation = SimpleNamespace(latent_mean=torch.tensor([3.0, 6.0]).double(), latent_root=None)
    check_feasible(dense, feasible_start(dense, 20, generator, approximation), 20)


@pytest.mark.parametrize("dense", [False, True])
def test_contradictory_rows_are_named(dense, generator):
    # Rows 1, 3 and 4 say a > b, b > c and c > a; the others are harmless.
    root = torch.tensor([[1.0, 0, 0], [1, -1, 0], [1, 1, 1], [0, 1, -1], [-1, 0, 1], [0.3, 0, 0]])
    covariance = root @ root.mT if dense else low_rank(root)
    distribution = make([0.0] * 6, covariance, [0.0] * 6, [INF] * 6, [0.0] * 6)
    last = torch.eye(6, dtype=torch.float64)[5]  # an answer with noise and of a weight
    for contradictory in (distribution, replace(distribution, noise=0.1 * last, count=1 + 0.5 * last)):
        with pytest.raises(ValueError, match=r"indices \[1, 3, 4\] cannot hold together"):
            feasible_start(contradictory, 4, generator)
    # With noise in one of them they can.
    noise = [0.0, 0.1, 0.0, 0.0, 0.0, 0.0]
    noisy = make([0.0] * 6, covariance, [0.0] * 6, [INF] * 6, noise)
    check_feasible(noisy, feasible_start(noisy, 4, generator), 4)
    # Or if one of them may be a slip.
    slip = torch.tensor([0.0, 0.1, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    rows = feasible_start(replace(distribution, heights=Heights(slip, 1 - slip)), 4, generator)
    assert (rows[:, slip == 0] > 0).all()


def test_a_contradiction_is_found_among_a_hundred_rows(generator):
    root = torch.randn(100, 5, generator=generator, dtype=torch.float64)
    root = torch.sign(root @ torch.randn(5, 1, generator=generator, dtype=torch.float64)) * root
    root[75] = -2 * root[7]
    distribution = make([0.0] * 100, low_rank(root), [0.0] * 100, [INF] * 100, [0.0] * 100)
    with pytest.raises(ValueError, match=r"indices \[(.*)\] cannot hold together") as raised:
        feasible_start(distribution, 4, generator)
    names = [int(x) for x in str(raised.value).split("[")[1].split("]")[0].split(",")]
    assert 75 in names
    # Independently: positive weights cancel the named rows, so not all of them can be positive.
    weights, residual = nnls(np.vstack([root[names].T.numpy(), np.ones(len(names))]), np.array([0.0] * 5 + [1.0]))
    assert residual < 1e-9
    assert (weights > 1e-9).all()  # and none of them is superfluous


def test_a_row_that_nothing_moves(generator):
    root = torch.tensor([[1.0], [0.0], [2.0]])
    good = make([0.0, 0.5, 0.0], low_rank(root), [1.0, 0.0, 0.0], [INF] * 3, [0.0] * 3)
    check_feasible(good, feasible_start(good, 4, generator), 4)
    bad = make([0.0, -0.5, 0.0], low_rank(root), [1.0, 0.0, 0.0], [INF] * 3, [0.0] * 3)
    with pytest.raises(ValueError, match=r"\[1\] cannot hold"):
        feasible_start(bad, 4, generator)


def test_a_feasible_point_is_inside_by_more_than_rounding(generator):
    """A point inside its bounds in one order of its sums alone."""
    root, point = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((200, 8), (8,)))
    other = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    bound = root[:, other] @ point[other]
    seen = (root @ point > bound).nonzero().squeeze(-1)[:4]
    distribution = make([0.0] * 4, low_rank(root[seen]), bound[seen], [INF] * 4, [0.0] * 4)
    assert (root[seen] @ point > distribution.lower).all()
    found = feasible_point(distribution, distribution.prior.root, point)
    for order in (torch.arange(8), other):
        assert (distribution.prior.root[:, order] @ found[order] > distribution.lower).all()

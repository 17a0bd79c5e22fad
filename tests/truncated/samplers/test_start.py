"""Feasible starts: inside the bounds whatever the bounds are, and an error that names contradictions."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sampler_cases import DENSE, INF, LOW_RANK, gaussian_sites, independent, low_rank, make, slab
from scipy.optimize import nnls

from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.samplers.start import feasible_start


def check_feasible(distribution, rows, latent, num_chains):
    """Inside the bounds, and in agreement with the latent coordinates where a row has no noise."""
    assert rows.shape == (*distribution.batch_shape, num_chains, distribution.num_rows)
    assert rows.dtype == distribution.mean.dtype
    assert rows.isfinite().all()
    assert (rows >= distribution.lower.unsqueeze(-2)).all()
    assert (rows <= distribution.upper.unsqueeze(-2)).all()
    if not distribution.prior.is_low_rank:
        assert latent is None
    else:
        assert latent.shape == (*distribution.batch_shape, num_chains, distribution.prior.root.shape[-1])
        residual = rows - distribution.noiseless(latent)
        exact = (distribution.noise == 0).unsqueeze(-2).expand_as(residual)
        assert residual[exact].abs().sum() == 0


@pytest.mark.parametrize("case", DENSE + LOW_RANK)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("with_approximation", [False, True])
def test_all_rows_noisy(case, dtype, with_approximation, generator):
    distribution = case(dtype).distribution
    approximation = gaussian_sites(distribution) if with_approximation else None
    rows, latent = feasible_start(distribution, 50, generator, approximation)
    check_feasible(distribution, rows, latent, 50)
    assert (rows[1:] != rows[:-1]).any(-1).all()


def test_approximation_is_drawn_from(generator):
    distribution = slab().distribution
    approximation = SimpleNamespace(latent_mean=torch.tensor([7.0]), latent_root=torch.tensor([[1e-3]]))
    _, latent = feasible_start(distribution, 50, generator, approximation)
    assert (latent - 7).abs().max() < 0.01


@pytest.mark.parametrize("with_approximation", [False, True])
def test_dense_rows_without_noise(with_approximation, generator):
    covariance = torch.tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 2.0]])
    distribution = make([0.0, 0.0, 1.0], covariance, [3.0, -INF, 20.0], [3.1, -2.0, INF], [0.0, 0.0, 0.5])
    approximation = gaussian_sites(distribution) if with_approximation else None
    rows, latent = feasible_start(distribution, 30, generator, approximation)
    check_feasible(distribution, rows, latent, 30)
    assert (rows[1:] != rows[:-1]).all()


def in_cone(m, r, noise, generator, share_of_noise=0.0, dtype=torch.float64):
    """`m` random half-spaces of `r` dimensions that share a point; some rows with noise pay no heed to it."""
    root = torch.randn(m, r, generator=generator, dtype=torch.float64)
    point = torch.randn(r, 1, generator=generator, dtype=torch.float64)
    noisy = torch.rand(m, 1, generator=generator, dtype=torch.float64) < share_of_noise
    signs = torch.where(noisy & (torch.rand(m, 1, generator=generator) < 0.3), -1.0, 1.0) * torch.sign(root @ point)
    noises = torch.where(noisy, noise, 0.0).squeeze(-1)
    return make([0.0] * m, low_rank(signs * root, dtype), [0.0] * m, [INF] * m, noises, dtype)


@pytest.mark.parametrize("share_of_noise", [0.0, 0.5])
@pytest.mark.parametrize(("m", "r"), [(30, 3), (2000, 20)])
def test_low_rank_rows_without_noise(m, r, share_of_noise, generator):
    distribution = in_cone(m, r, 0.1, generator, share_of_noise)
    rows, latent = feasible_start(distribution, 8, generator)
    check_feasible(distribution, rows, latent, 8)
    assert (latent[1:] != latent[:-1]).any(-1).all()
    assert "covariance" not in distribution.prior.__dict__


def test_low_rank_in_float32(generator):
    distribution = in_cone(60, 5, 0.1, generator, 0.3, torch.float32)
    rows, latent = feasible_start(distribution, 8, generator)
    check_feasible(distribution, rows, latent, 8)


@pytest.mark.parametrize("width", [1e-6, 1e-2])
def test_thin_slabs_far_out(width, generator):
    """Bounds that nearly touch, at twenty standard deviations, in three directions of a three-dimensional space."""
    root = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    point = torch.linalg.solve(root[:3], torch.tensor([20.0, -20.0, 5.0], dtype=torch.float64))
    middle = root @ point
    distribution = make([0.0] * 4, low_rank(root), middle - width / 2, middle + width / 2, [0.0] * 4)
    rows, latent = feasible_start(distribution, 8, generator)
    check_feasible(distribution, rows, latent, 8)


def test_rank_deficient_dense_covariance(generator):
    """Three rows that are one variable and its negative: independent draws would not be possible values."""
    root = torch.tensor([[1.0], [1.0], [-2.0]])
    distribution = make([0.0] * 3, root @ root.mT, [0.5, -INF, -INF], [INF, 0.7, INF], [0.0] * 3)
    rows, latent = feasible_start(distribution, 20, generator)
    check_feasible(distribution, rows, latent, 20)
    torch.testing.assert_close(rows[:, 0], rows[:, 1])
    torch.testing.assert_close(rows[:, 2], -2 * rows[:, 0])
    assert rows[:, 0].std() > 0.01


def test_approximate_mean_is_used_where_it_is_feasible(generator):
    distribution = make([0.0] * 2, low_rank([[1.0], [2.0]]), [0.0, 5.9], [INF, 6.1], [0.0, 0.0])
    approximation = SimpleNamespace(latent_mean=torch.tensor([3.0]), latent_root=torch.tensor([[0.1]]))
    rows, latent = feasible_start(distribution, 20, generator, approximation)
    check_feasible(distribution, rows, latent, 20)
    dense = make([0.0] * 2, [[1.0, 2.0], [2.0, 4.0]], [0.0, 5.9], [INF, 6.1], [0.0, 0.0])
    approximation = SimpleNamespace(latent_mean=torch.tensor([3.0, 6.0]), latent_root=0.1 * torch.eye(2))
    check_feasible(dense, *feasible_start(dense, 20, generator, approximation), 20)


@pytest.mark.parametrize("dense", [False, True])
def test_contradictory_rows_are_named(dense, generator):
    # Rows 1, 3 and 4 say a > b, b > c and c > a; the others are harmless.
    root = torch.tensor([[1.0, 0, 0], [1, -1, 0], [1, 1, 1], [0, 1, -1], [-1, 0, 1], [0.3, 0, 0]])
    covariance = root @ root.mT if dense else low_rank(root)
    distribution = make([0.0] * 6, covariance, [0.0] * 6, [INF] * 6, [0.0] * 6)
    with pytest.raises(ValueError, match=r"indices \[1, 3, 4\] cannot hold together"):
        feasible_start(distribution, 4, generator)
    # With noise in one of them they can.
    noise = [0.0, 0.1, 0.0, 0.0, 0.0, 0.0]
    distribution = make([0.0] * 6, covariance, [0.0] * 6, [INF] * 6, noise)
    check_feasible(distribution, *feasible_start(distribution, 4, generator), 4)


def test_a_contradiction_is_found_among_hundreds_of_rows(generator):
    root = torch.randn(400, 5, generator=generator, dtype=torch.float64)
    root = torch.sign(root @ torch.randn(5, 1, generator=generator, dtype=torch.float64)) * root
    root[300] = -2 * root[7]
    distribution = make([0.0] * 400, low_rank(root), [0.0] * 400, [INF] * 400, [0.0] * 400)
    with pytest.raises(ValueError, match=r"indices \[(.*)\] cannot hold together") as raised:
        feasible_start(distribution, 4, generator)
    names = [int(x) for x in str(raised.value).split("[")[1].split("]")[0].split(",")]
    assert 300 in names
    # Independently: positive weights cancel the named rows, so not all of them can be positive.
    weights, residual = nnls(np.vstack([root[names].T.numpy(), np.ones(len(names))]), np.array([0.0] * 5 + [1.0]))
    assert residual < 1e-9
    assert (weights > 1e-9).all()  # and none of them is superfluous


def test_contradiction_names_its_batch_element(generator):
    root = torch.tensor([[[1.0], [1.0]], [[1.0], [-1.0]]])
    distribution = make([[0.0] * 2] * 2, low_rank(root), [[1.0] * 2] * 2, [[INF] * 2] * 2, [[0.0] * 2] * 2)
    with pytest.raises(ValueError, match=r"of batch element 1 .* indices \[0, 1\]"):
        feasible_start(distribution, 4, generator)


def test_a_row_that_nothing_moves(generator):
    root = torch.tensor([[1.0], [0.0], [2.0]])
    good = make([0.0, 0.5, 0.0], low_rank(root), [1.0, 0.0, 0.0], [INF] * 3, [0.0] * 3)
    check_feasible(good, *feasible_start(good, 4, generator), 4)
    bad = make([0.0, -0.5, 0.0], low_rank(root), [1.0, 0.0, 0.0], [INF] * 3, [0.0] * 3)
    with pytest.raises(ValueError, match=r"\[1\] cannot hold"):
        feasible_start(bad, 4, generator)


def test_batches(generator):
    root = torch.randn(3, 2, 8, 2, generator=generator, dtype=torch.float64)
    signs = torch.sign(root @ torch.randn(2, 1, generator=generator, dtype=torch.float64))
    shape = (3, 2, 8)
    zero, infinite = torch.zeros(shape, dtype=torch.float64), torch.full(shape, INF, dtype=torch.float64)
    for noise in (zero, zero + 0.1):
        distribution = make(zero, LowRankPrior(signs * root), zero, infinite, noise)
        check_feasible(distribution, *feasible_start(distribution, 5, generator), 5)


@pytest.mark.parametrize("dense", [True, False])
def test_warm_start_keeps_what_is_feasible_and_draws_the_rest(dense, generator):
    m_old, m, chains = 6, 9, 40_000
    root = torch.randn(m, 2, generator=generator, dtype=torch.float64)
    covariance = root @ root.mT if dense else low_rank(root)
    lower = torch.where(torch.arange(m) == 2, 0.1, -INF)
    distribution = make([0.3] * m, covariance, lower, [INF] * m, [0.5] * m)
    old = torch.tensor([0.5, 1.0, 0.0, -1.0, 0.2, 0.8], dtype=torch.float64).expand(1, -1)
    rows, latent = feasible_start(distribution, chains, generator, previous=(old, torch.zeros(1, 2)))
    check_feasible(distribution, rows, latent, chains)
    kept = [0, 1, 3, 4, 5]
    assert (rows[:, kept] == old[:, kept]).all()
    assert (rows[:, 2] > 0.1).all()
    # New rows, which have no bounds, follow the Gaussian given all old values.
    gamma = distribution.prior.covariance + 0.5 * torch.eye(m)
    gain = torch.linalg.solve(gamma[:m_old, :m_old], gamma[:m_old, m_old:]).mT
    mean = 0.3 + gain @ (old[0] - 0.3)
    variance = (gamma[m_old:, m_old:] - gain @ gamma[:m_old, m_old:]).diagonal()
    off = (rows[:, m_old:].mean(0) - mean) / (variance / chains).sqrt()
    assert (off.abs() < 4).all()
    torch.testing.assert_close(rows[:, m_old:].var(0), variance, rtol=0.04, atol=0)


def test_warm_start_of_coordinates_without_noise(generator):
    root = torch.tensor([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.2, 0.3, 1.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    distribution = make([0.0] * 4, low_rank(root), [0.0] * 4, [INF] * 4, [0.0] * 4)
    old_latent = torch.tensor([[2.0, 1.0], [1.0, 2.0], [-5.0, 1.0]], dtype=torch.float64)
    old_rows = (old_latent @ root[:2, :2].mT).clamp(min=0.1)
    rows, latent = feasible_start(distribution, 300, generator, previous=(old_rows, old_latent))
    check_feasible(distribution, rows, latent, 300)
    kept = (latent[:, :2] == old_latent.repeat(100, 1)).all(-1).view(100, 3)
    assert kept[:, :2].double().mean() > 0.5  # those whose new coordinate turned out feasible
    assert not kept[:, 2].any()
    assert len(latent[:, 2].unique()) == 300  # the new coordinate is drawn for every chain


def test_warm_start_of_a_rank_deficient_covariance(generator):
    root = torch.tensor([[1.0], [1.0], [-2.0]])
    distribution = make([0.0] * 3, root @ root.mT, [0.5, -INF, -INF], [INF, 0.7, INF], [0.0] * 3)
    old = torch.tensor([[0.6], [0.65], [0.9]], dtype=torch.float64)
    rows, latent = feasible_start(distribution, 3, generator, previous=(old, None))
    check_feasible(distribution, rows, latent, 3)
    torch.testing.assert_close(rows[:2, 0], old[:2, 0])
    torch.testing.assert_close(rows[:, 2], -2 * rows[:, 0])


def test_warm_start_of_dense_rows_without_noise(generator):
    distribution = make([0.0] * 3, torch.eye(3) + 0.5, [0.0, 0.0, 2.0], [INF] * 3, [0.0] * 3)
    old = torch.tensor([[0.6, 1.2], [0.3, -0.1]], dtype=torch.float64)
    rows, latent = feasible_start(distribution, 2, generator, previous=(old, None))
    check_feasible(distribution, rows, latent, 2)
    assert (rows[0, :2] == old[0]).all()
    assert rows[1, 0] == old[1, 0]


def test_same_generator_same_start():
    distribution = independent().distribution
    first, second = (feasible_start(distribution, 5, torch.Generator().manual_seed(3))[0] for _ in range(2))
    assert (first == second).all()


def test_invalid_previous_draws(generator):
    distribution = slab().distribution
    with pytest.raises(ValueError, match="m_old at most 5"):
        feasible_start(distribution, 2, generator, previous=(torch.zeros(2, 6), None))
    with pytest.raises(ValueError, match="r_old at most 1"):
        feasible_start(distribution, 2, generator, previous=(torch.zeros(2, 5), torch.zeros(2, 2)))

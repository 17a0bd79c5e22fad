"""Priors of all kinds are what the matrices are that they stand for: maps, products with sites, rows with noise."""

import pytest
import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import with_slopes
from botorch_skewgp.truncated.priors import (
    BorderedPrior,
    DensePrior,
    LowRankPrior,
    NoisyPrior,
    Sites,
    WeightedPrior,
    weighted,
)
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

M, N = 40, 7


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def wide_form(root: Tensor, within: Tensor, block: Tensor) -> Tensor:
    """The root with a column for whatever a block's rows share, block by block."""
    columns = list(root.mT)
    for b in block.unique():
        for column in (within * (block == b).unsqueeze(-1)).mT:
            if bool(column.any()):
                columns.append(column)
    return torch.stack(columns, dim=-1)


def bordered(num_columns: int, seed: int) -> tuple[LowRankPrior, Tensor, list[Tensor]]:
    block = torch.randint(6, (M,), generator=torch.Generator().manual_seed(seed))
    within = randn(M, num_columns, seed=seed + 2)
    within[::5] = 0  # rows that share nothing
    within[block == 2, 1] = 0  # and a block that shares less
    root = randn(M, N, seed=seed + 1).requires_grad_()
    within.requires_grad_()
    return BorderedPrior(root, within, block), wide_form(root, within, block), [root, within]


def make(kind: str) -> tuple[LowRankPrior, Tensor, list[Tensor]]:
    """A prior, its root, and the tensors with derivatives."""
    if kind == "dense":
        F = randn(M, M, seed=3) + 3 * torch.eye(M, dtype=torch.float64)
        C = (F @ F.mT).requires_grad_()
        return DensePrior(C), DensePrior(C).root, [C]
    if kind.startswith("weighted"):
        width = int(kind[-1])
        index = torch.randint(N, (M, width), generator=torch.Generator().manual_seed(0))  # some name a point twice
        weight, matrix = randn(M, width, seed=1), randn(N, N, seed=2).triu().requires_grad_()
        W = torch.zeros(M, N, dtype=torch.float64).scatter_add(-1, index, weight)
        return WeightedPrior(index, weight, matrix), W @ matrix, [matrix]
    if kind.startswith("bordered"):
        return bordered(3 if kind == "bordered" else 9, seed=10)
    F = randn(M, {"low rank": N, "square": M, "wide": M + 5}[kind], seed=3).requires_grad_()
    return LowRankPrior(F), F, [F]


KINDS = ["dense", "low rank", "square", "wide", "weighted 1", "weighted 2", "weighted 3", "bordered", "bordered, wide"]


def precisions(kind: str, which: str) -> Tensor:
    """Of sites: all positive, some zero, some huge, or some negative by as much as the prior admits."""
    tau = 0.1 + torch.rand(M, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    if which == "some are zero":
        tau[::3] = 0
    if which == "some are huge":
        tau[::9] = 1e4
    if which == "some are negative":
        F = make(kind)[1].detach()
        tau[::3] = -0.3 / (F @ F.mT).diagonal().max() / 14
    return tau


@pytest.mark.parametrize("kind", KINDS)
def test_maps_are_those_of_the_matrix(kind, monkeypatch):
    monkeypatch.setattr(weighted, "MAX_ENTRIES", 7 * N)  # vectors in parts of seven rows
    prior, F, leaves = make(kind)
    assert (prior.num_rows, prior.rank) == F.shape
    latent, rows = randn(3, F.shape[-1], seed=4), randn(3, M, seed=5)
    torch.testing.assert_close(prior.times(latent), latent @ F.mT)
    torch.testing.assert_close(prior.transposed_times(rows), rows @ F)
    torch.testing.assert_close(prior.times(latent[0]), F @ latent[0])
    torch.testing.assert_close(prior.transposed_times(rows[0]), rows[0] @ F)
    torch.testing.assert_close(prior.covariance, F @ F.mT)
    torch.testing.assert_close(prior.variances, F.square().sum(-1))
    if kind != "dense":
        both = (prior.variances, F.square().sum(-1))
        torch.testing.assert_close(*(torch.autograd.grad((part * rows[0]).sum(), leaves) for part in both))
    index = torch.arange(M) % 2 == 0
    torch.testing.assert_close(prior.select(index).covariance, F[index] @ F[index].mT)


@pytest.mark.parametrize("which", ["all are positive", "some are zero", "some are huge", "some are negative"])
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_sites(kind, which):
    prior, F, leaves = make(kind)
    tau, mean, shift, g = precisions(kind, which), randn(M, seed=11), randn(M, seed=12), randn(M, seed=13)
    sites = Sites(tau, shift)
    with torch.no_grad():
        factor = prior.given(mean, sites, sites)
        assert factor is not None
        A = torch.eye(F.shape[-1], dtype=torch.float64) + F.mT @ (tau.unsqueeze(-1) * F)
        of_latent = torch.linalg.inv(A)
        V, offset, close = F @ of_latent @ F.mT, shift - tau * mean, {"rtol": 1e-6, "atol": 1e-7}
        torch.testing.assert_close(factor.moments.mean, mean + V @ offset, **close)
        torch.testing.assert_close(factor.moments.variance, V.diagonal(), **close)
        left = 1 - tau * V.diagonal()
        torch.testing.assert_close(factor.moments.cavity_variance, V.diagonal() / left, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(factor.log_det, 0.5 * torch.logdet(A), **close)
        vectors = randn(3, M, seed=14)
        torch.testing.assert_close(factor.times(vectors), vectors @ V, **close)
        torch.testing.assert_close(factor.covariance_rows(torch.tensor([3, 0])), V[[3, 0]], **close)
        latent = vectors @ F @ of_latent
        torch.testing.assert_close(factor.latent_given(vectors), latent, **close)
        torch.testing.assert_close(factor.latent_mean, of_latent @ F.mT @ offset, **close)
        torch.testing.assert_close(factor.latent_root @ factor.latent_root.mT, of_latent, **close)
        k = prior.num_shared
        torch.testing.assert_close(factor.shared_given(vectors), latent[:, :k], **close)
        torch.testing.assert_close(factor.shared_root @ factor.shared_root.mT, of_latent[:k, :k], **close)
        torch.testing.assert_close(factor.shared_coordinates[0], factor.latent_mean[:k], **close)
        slope = g.outer(g) - tau.unsqueeze(-1) * torch.linalg.inv(torch.eye(M).double() + F @ F.mT * tau)
    C = leaves[0] if kind == "dense" else F @ F.mT
    wanted = torch.autograd.grad((0.5 * slope * C).sum(), leaves, retain_graph=True)
    found = torch.autograd.grad(with_slopes(torch.zeros((), dtype=torch.float64), factor.slopes(g)), leaves)
    for ours, theirs in zip(found, wanted, strict=True):
        if kind.startswith("bordered"):  # rows that share nothing never do
            ours, theirs = ours[ours.any(-1)], theirs[ours.any(-1)]
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9 * float(theirs.abs().max()) + 1e-7)


@pytest.mark.parametrize("noise_free", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_noise(kind, noise_free):
    prior, F, _ = make(kind)
    F, C = F.detach(), prior.covariance.detach()
    noise = 0.2 + torch.rand(M, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    if noise_free:
        noise[:3] = 0
    with torch.no_grad():
        noisy, gamma = NoisyPrior(prior, noise), C + noise.diag()
        inverse, residual, close = torch.linalg.inv(gamma), randn(5, M, seed=4), {"rtol": 1e-5, "atol": 1e-5}
        torch.testing.assert_close(noisy.covariance, gamma)
        diagonal, product = noisy.precision(residual)
        torch.testing.assert_close(diagonal, inverse.diagonal(), **close)
        torch.testing.assert_close(product, residual @ inverse, **close)
        if noise_free:  # whose pulls are large; those of the others must not lose digits beside them
            close = {"rtol": 1e-7, "atol": 1e-7}
        torch.testing.assert_close(noisy.expected_latent(residual), residual @ inverse @ F, **close)
        own = noise if prior.is_low_rank else 1 / inverse.diagonal()  # latent coordinates are drawn too, or not
        torch.testing.assert_close(noisy.own_variances, own, rtol=1e-5, atol=1e-9)
        watched, few = noisy.expectations()(residual), prior.num_shared < M
        of_values = residual @ inverse @ (F[:, : prior.num_shared] if few else C)
        few_digits = {"rtol": 1e-3, "atol": 1e-3} if noise_free else close  # a jitter is in what is watched
        torch.testing.assert_close(watched[:, :-1], of_values, **few_digits)
        torch.testing.assert_close(watched[:, -1], watched[:, :-1].square().sum(-1))
        colour = noisy.colour(torch.eye(noisy.num_normals, dtype=torch.float64))  # the root, row by row
        torch.testing.assert_close(colour.mT @ colour, noisy.coloured_covariance)
        torch.testing.assert_close(noisy.coloured_covariance, gamma)
        generator = torch.Generator().manual_seed(0)
        latent = noisy.draw_latent(residual[0].expand(4000, -1), generator)
        expected, spread = residual[0] @ inverse @ F, torch.eye(prior.rank).double() - F.mT @ inverse @ F
        error = spread.diagonal().clamp(min=0).sqrt() / 4000**0.5
        assert ((latent.mean(0) - expected).abs() <= 5 * error + close["atol"]).all()
        assert ((latent.var(0) - spread.diagonal()).abs() <= 0.12 * spread.diagonal() + 1e-6).all()
        rows = prior.times(latent)[:, noise == 0]
        torch.testing.assert_close(rows, residual[0, noise == 0].expand_as(rows), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("seed", "m", "p"), [(0, 50, 4), (1, 260, 9), (2, 40, 45)])
def test_propagation_over_blocks_and_its_gradient_are_those_of_the_dense_matrix(seed, m, p):
    U, N, mean = 1.5 * randn(m, 3, seed=seed), randn(m, p, seed=seed + 10), 0.3 * randn(m, seed=seed + 20)
    block = torch.randint(12, (m,), generator=torch.Generator().manual_seed(seed))  # of one to about ten rows
    upper = torch.where(torch.arange(m) % 3 == 0, 1.5, torch.inf).to(mean)
    results = []
    for dense in (False, True):
        leaves = [x.clone().requires_grad_() for x in (U, N, mean)]
        prior = BorderedPrior(*leaves[:2], block)
        rows = TruncatedNormal(
            leaves[2], prior.covariance if dense else prior, torch.full_like(mean, -0.2), upper, torch.ones_like(mean)
        )
        approximation = expectation_propagation(rows, tolerance=1e-11)
        value = approximation.log_normalizer
        results.append([value.detach(), approximation.variance, *torch.autograd.grad(value, leaves)])
    for bordered, dense in zip(*results, strict=True):
        assert torch.allclose(bordered, dense, rtol=1e-7, atol=1e-8)

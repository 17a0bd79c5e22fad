"""Linear elliptical slice sampling against closed forms, exact draws and brute force over angles."""

import math

import pytest
import torch

from botorch_skewgp.papers.linear_ess import free_angle

INF = math.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_free_angles_cover_what_a_fine_grid_finds(dtype, generator):
    m, trials = 6, 20_000
    x, v = torch.randn(2, 7, m, generator=generator, dtype=torch.float64).to(dtype)
    lower = torch.where(
        torch.rand(x.shape, generator=generator) < 0.4, -INF, x - 0.8 * torch.rand(x.shape, generator=generator)
    )
    upper = torch.where(
        torch.rand(x.shape, generator=generator) < 0.4, INF, x + 0.8 * torch.rand(x.shape, generator=generator)
    )
    lower, upper = lower.to(dtype), upper.to(dtype)
    grid = torch.linspace(0, 2 * math.pi, 100_001, dtype=torch.float64)[:, None]
    slack = 1e-5 if dtype is torch.float32 else 1e-12
    for j in range(7):
        expanded = x[j].expand(trials, m), v[j].expand(trials, m)
        theta = free_angle(*expanded, lower[j], upper[j], generator=generator).double()
        on_grid = x[j].double() * grid.cos() + v[j].double() * grid.sin()
        free = ((on_grid >= lower[j]) & (on_grid <= upper[j])).all(-1)
        at = theta[:, None]
        drawn = x[j].double() * at.cos() + v[j].double() * at.sin()
        assert ((drawn >= lower[j] - slack) & (drawn <= upper[j] + slack)).all()
        # Uniform on the free set: Kolmogorov's distance between its cdf and that of the draws.
        cdf = free.double().cumsum(0) / free.sum()
        place = (at.squeeze(-1) / (2 * math.pi) * 100_000).long()
        empirical = torch.sort(cdf[place]).values
        distance = (empirical - torch.arange(1, trials + 1) / trials).abs().max()
        assert distance < 2.2 / math.sqrt(trials) + 1e-3

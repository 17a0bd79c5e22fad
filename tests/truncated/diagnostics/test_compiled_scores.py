"""Compiled normal scores against ranks by SciPy."""

import math

import pytest
import torch
from scipy.stats import norm, rankdata

pytest.importorskip("numba")
from botorch_skewgp.truncated.diagnostics.compiled_scores import normal_scores


def table(n):
    """Blom's scores of ranks in steps of a half, from the first one on."""
    return torch.from_numpy(norm.ppf((0.5 * torch.arange(2, 2 * n + 1).numpy() - 0.375) / (n + 0.25)))


def by_scipy(values):
    return torch.from_numpy(norm.ppf((rankdata(values.numpy(), axis=-1) - 0.375) / (values.shape[-1] + 0.25)))


@pytest.mark.parametrize("shape", [(5, 400), (2, 3, 101), (1,), (3, 2), (0, 4)])
@pytest.mark.parametrize("parts", [2**30, 8, 1], ids=["distinct", "some ties", "many ties"])
def test_scores_are_those_of_average_ranks(shape, parts):
    values = 3 + torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = (values * parts).round() / parts  # binary fractions, whose medians and distances have no rounding
    bulk, folded = normal_scores(values, table(shape[-1]))
    distances = (values - values.quantile(0.5, dim=-1, keepdim=True)).abs() if values.numel() else values
    torch.testing.assert_close(bulk, by_scipy(values), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(folded, by_scipy(distances), rtol=1e-12, atol=1e-12)


def test_infinite_values():
    values = torch.tensor([[math.inf, 0.0, 1.0, -math.inf, 2.0]], dtype=torch.float64)
    bulk, folded = normal_scores(values, table(5))
    torch.testing.assert_close(bulk, by_scipy(values))
    torch.testing.assert_close(folded, by_scipy((values - 1).abs()))

"""Products with a root whose rows weigh few rows of a matrix, against those with the matrix of all rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import row_model
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.priors import LowRankPrior, WeightedPrior, keeps_digits, weighted

pytestmark = pytest.mark.rounding

N, M = 9, 60


def terms(width: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(N, (M, width), generator=generator)  # some name one point twice
    weight = torch.randn(M, width, generator=generator, dtype=torch.float64)
    return index, weight, torch.randn(N, N, generator=generator, dtype=torch.float64).triu()


def dense(index: Tensor, weight: Tensor, matrix: Tensor) -> Tensor:
    return torch.zeros(len(index), len(matrix), dtype=matrix.dtype).scatter_add(-1, index, weight) @ matrix


@pytest.mark.parametrize("width", [1, 2, 3])
def test_lengths_are_differentiated(width, monkeypatch):
    """In parts of seven rows."""
    monkeypatch.setattr(weighted, "MAX_ENTRIES", 7 * N)
    index, weight, matrix = terms(width)
    matrix.requires_grad_()
    found = WeightedPrior(index, weight, matrix).variances
    torch.testing.assert_close(found, dense(index, weight, matrix).square().sum(-1))
    pull = torch.linspace(-1, 1, M, dtype=torch.float64)
    (wanted,) = torch.autograd.grad((dense(index, weight, matrix).square().sum(-1) * pull).sum(), matrix)
    torch.testing.assert_close(torch.autograd.grad((found * pull).sum(), matrix)[0], wanted)


def test_differences_of_nearly_equal_values_keep_their_digits():
    matrix = torch.ones(2, 2, dtype=torch.float64).triu()
    matrix[1, 1] += 1e-7
    matrix[0, 0] = 0
    root = WeightedPrior(torch.tensor([[0, 1]]), torch.tensor([[1.0, -1.0]], dtype=torch.float64), matrix)
    exact = (matrix[1, 1] - matrix[0, 1]).square()
    torch.testing.assert_close(root.variances[0], exact, rtol=1e-12, atol=0)


def test_where_sums_by_pairs_keep_digits():
    K = torch.tensor([[1.0, 0.5, 1 - 1e-6], [0.5, 1.0, 0.5], [1 - 1e-6, 0.5, 1.0]], dtype=torch.float64)
    weight, precision = torch.tensor([[1.0, -1.0]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    apart, near = torch.tensor([[0, 1]]), torch.tensor([[0, 2]])
    assert keeps_digits(apart, weight, K, precision)
    assert not keeps_digits(near, weight, K, precision)
    assert keeps_digits(near, weight.abs(), K, precision)  # a sum of nearly equal values does
    assert not keeps_digits(apart, weight, K, 1e10 * precision)


def duels(n: int, m: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    first = torch.randint(n, (m,), generator=generator)
    second = (first + torch.randint(1, n, (m,), generator=generator)) % n
    utility = X.sin().sum(-1)
    wins = utility[first] + torch.randn(m, generator=generator, dtype=torch.float64) > utility[second]
    pairs = torch.stack([first, second], dim=-1)
    return X, torch.where(wins.unsqueeze(-1), pairs, pairs.flip(-1))


@pytest.mark.parametrize("beside", ["alone", "numbers", "labels"])
def test_a_model_of_many_duels_is_the_same(monkeypatch, beside):
    X, pairs = duels(12, 90, seed=4)
    observations: list = [Preference(pairs)]
    if beside == "numbers":
        observations.append(Numeric(torch.linspace(-1.5, 1.5, len(X), dtype=torch.float64)))
    if beside == "labels":
        observations.append(Binary(X[:, 0] > 0.5))
    settings = DrawSettings(num_draws=64, warmup=4, min_effective_size=1.0)
    found, draws = [], None
    for least in (2, 10**6):
        monkeypatch.setattr(row_model, "MANY_POINTS", least)
        model = SkewGP(X, observations, draw_settings=settings)
        model.covar_module.base_kernel.lengthscale = 0.2  # no two points are nearly equal
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        mll.train()
        value = mll(model(*model.train_inputs), model.train_targets)
        value.sum().backward()
        gradient = torch.cat([p.grad.flatten() for p in mll.parameters() if p.grad is not None])
        mll.eval()
        rows = model.row_model(model.forward(X), merge_equal=True)
        draws = draw(rows.truncated_normal, settings) if draws is None else draws  # reflections hang on rounding
        mixture = rows.representer_mixture(draws)
        kind = type(rows.truncated_normal.prior)
        found.append((kind, value.detach(), gradient, mixture.weights, mixture.root @ mixture.root.mT))
    assert found[0][0] is WeightedPrior
    assert found[1][0] is LowRankPrior
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)

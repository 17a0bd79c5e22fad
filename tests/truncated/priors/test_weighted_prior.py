"""Digits of priors whose rows weigh few rows of a matrix, and models with them against models without."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import row_model
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.priors import LowRankPrior, WeightedPrior, keeps_digits

pytestmark = pytest.mark.rounding


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
        rows = model.row_model(model.forward(X), model.row_plan(merge_equal=True))
        draws = draw(rows.truncated_normal, settings) if draws is None else draws  # reflections hang on rounding
        mixture = rows.representer_mixture(draws)
        kind = type(rows.truncated_normal.prior)
        found.append((kind, value.detach(), gradient, mixture.weights, mixture.root @ mixture.root.mT))
    assert found[0][0] is WeightedPrior
    assert found[1][0] is LowRankPrior
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)

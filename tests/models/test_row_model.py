"""Rows under a Gaussian prior: conditioning written out with dense matrices, by rows and by points."""

import math
from dataclasses import replace

import pytest
import torch

from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.draws import DrawSettings, draw

pytestmark = pytest.mark.rounding

N = 4
INF = math.inf


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    """Work goes by points as soon as there are more rows than these."""
    monkeypatch.setattr("botorch_skewgp.models.row_model.FEW_ROWS", 0)


def normal(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def make(generator, m, num_numbers, noise=0.3, shared=False):
    """A model of `m` rows over four points, the first ones (in mixed order) seen as numbers."""
    root = normal(generator, N, N)
    covariance = root @ root.T / N + 0.2 * torch.eye(N, dtype=torch.float64)
    index = torch.stack([torch.randperm(N, generator=generator)[:2] for _ in range(m)])
    lower = normal(generator, m) - 1
    upper = lower + 1 + torch.rand(m, dtype=torch.float64, generator=generator)
    upper[::2] = INF
    numbers = torch.randperm(m, generator=generator)[:num_numbers]
    upper[numbers] = lower[numbers]
    noise_root = None
    if shared:
        noise_root = 0.5 * normal(generator, m, 2)
        noise_root[numbers] = 0.0
    coefficient, bias = normal(generator, m, 2), normal(generator, m)
    own = noise * (0.5 + torch.rand(m, dtype=torch.float64, generator=generator))
    rows = Rows(index, coefficient, bias, lower, upper, own, noise_root=noise_root)
    return RowModel(mean=normal(generator, N), covariance=covariance, rows=rows)


def dense(model):
    """Weights, mean and covariance of all rows, from loops over entries."""
    rows, m = model.rows, model.rows.num_rows
    A = torch.zeros(m, N, dtype=torch.float64)
    for i in range(m):
        for j, c in zip(rows.index[i].tolist(), rows.coefficient[i].tolist(), strict=True):
            A[i, j] += c
    Gamma = A @ model.covariance @ A.T + torch.diag(rows.noise)
    if rows.noise_root is not None:
        Gamma = Gamma + rows.noise_root @ rows.noise_root.T
    return A, A @ model.mean + rows.bias, Gamma


def given(mean, covariance, which, values):
    """A normal vector's mean and covariance given some of its entries."""
    gain = covariance[:, which] @ torch.linalg.inv(covariance[which][:, which])
    return mean + gain @ (values - mean[which]), covariance - gain @ covariance[which]


def joint(model):
    """Mean and covariance of latent values and rows together."""
    A, mean, Gamma = dense(model)
    cross = model.covariance @ A.T
    covariance = torch.cat([torch.cat([model.covariance, cross], -1), torch.cat([cross.T, Gamma], -1)])
    return torch.cat([model.mean, mean]), covariance


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("m", "num_numbers"), [(3, 0), (4, 1), (12, 0), (12, 3)])
def test_truncated_normal_of_the_interval_rows(m, num_numbers, shared, generator):
    """Dense for few rows and by a root for many; given the numbers in either case."""
    model = make(generator, m, num_numbers, shared=shared)
    distribution = model.truncated_normal
    assert (distribution.prior.is_low_rank) == (m == 12)
    which = torch.cat([torch.zeros(N, dtype=torch.bool), model.rows.is_equality])
    mean, covariance = given(*joint(model), which, model.rows.lower[model.rows.is_equality])
    left = torch.cat([torch.zeros(N, dtype=torch.bool), ~model.rows.is_equality])
    assert torch.allclose(distribution.mean, mean[left], rtol=1e-9)
    assert torch.allclose(distribution.gamma, covariance[left][:, left], rtol=1e-8, atol=1e-9)
    assert torch.equal(distribution.upper, model.rows.upper[~model.rows.is_equality])


def values_of(model, mixture):
    """Means of the latent values under every draw, and the covariance they share."""
    means = model.mean.unsqueeze(-1) + model.covariance @ mixture.weights
    gain = model.covariance @ mixture.root
    return means, model.covariance - gain @ gain.T


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("m", "num_numbers"), [(3, 0), (4, 1), (12, 0), (12, 3), (2, 2), (6, 6), (9, 6)])
def test_representer_mixture_conditions_on_numbers_and_draws(m, num_numbers, shared, generator):
    model = make(generator, m, num_numbers, shared=shared)
    draws = draw(model.truncated_normal, DrawSettings(num_draws=64, min_effective_size=1))
    means, covariance = values_of(model, model.representer_mixture(draws))
    rows = torch.arange(N, N + m)
    assert means.shape[-1] == (1 if num_numbers == m else 64)
    for s in range(0, means.shape[-1], 13):
        seen = model.rows.lower.clone()
        seen[~model.rows.is_equality] = draws.rows[s]
        mean, expected = given(*joint(model), rows, seen)
        assert torch.allclose(means[:, s], mean[:N], rtol=1e-7, atol=1e-8)
        assert torch.allclose(covariance, expected[:N, :N], rtol=1e-6, atol=1e-8)


def test_noise_free_rows_over_few_points_fix_the_values(generator):
    """Many noise-free rows: a draw determines the latent values."""
    model = make(generator, 12, 0, noise=0.0)
    truth = normal(generator, N)
    A = dense(model)[0]
    h = A @ truth + model.rows.bias
    rows = Rows(model.rows.index, model.rows.coefficient, model.rows.bias, h - 0.3, h + 0.4, model.rows.noise)
    model = RowModel(model.mean, model.covariance, rows)
    draws = draw(model.truncated_normal, DrawSettings(num_draws=64, min_effective_size=1))
    means, covariance = values_of(model, model.representer_mixture(draws))
    assert covariance.abs().max() < 1e-8
    assert torch.allclose((A @ means).T + rows.bias, draws.rows, atol=1e-8)


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-8])
def test_equal_points_by_points_and_by_rows(noise, generator):
    """Conditioning on the same rows through the values at equal points and through the rows themselves."""
    root = normal(generator, 2, 2)
    group = torch.tensor([0, 1, 0, 1])
    covariance = (root @ root.T)[group][:, group]
    index = torch.arange(12).remainder(N).unsqueeze(-1)
    one = torch.ones(12, dtype=torch.float64)
    values = normal(generator, 2)[group][index.squeeze(-1)]
    rows = Rows(index, one.unsqueeze(-1), 0 * one, values - 0.1, values + 0.1, noise * one)
    model = RowModel(torch.zeros(N, dtype=torch.float64), covariance, rows)
    draws = draw(model.truncated_normal, DrawSettings(num_draws=64, min_effective_size=1))
    assert model.truncated_normal.prior.is_low_rank
    A, _, Gamma = dense(model)
    gain = torch.linalg.solve(Gamma, A @ covariance).T
    means, found = values_of(model, model.representer_mixture(draws))
    assert torch.allclose(means, gain @ draws.rows.T, atol=1e-13 / noise + 1e-6)
    expected = covariance - gain @ A @ covariance
    assert torch.allclose(found, expected, atol=1e-6 * float(expected.amax()) + 1e-11)


@pytest.mark.parametrize("noise", [0.0, 1e-20])  # the second is no more than rounding of the rows
def test_noise_less_than_rounding_is_none(noise, generator):
    """Two rows that share noise and have next to none of their own, beside more rows with noise than points."""
    model = make(generator, 8, 0)
    own = model.rows.noise.clone()
    own[:2] = noise
    shared = torch.zeros(8, 1, dtype=torch.float64)
    shared[:2, 0] = torch.tensor([0.1, 0.9])
    model = RowModel(model.mean, model.covariance, replace(model.rows, noise=own, noise_root=shared))
    assert model.works_by_points
    draws = draw(model.truncated_normal, DrawSettings(num_draws=64, min_effective_size=1))
    means, found = values_of(model, model.representer_mixture(draws))
    A, mean, Gamma = dense(model)
    gain = torch.linalg.solve(Gamma, A @ model.covariance).T
    assert torch.allclose(means, model.mean.unsqueeze(-1) + gain @ (draws.rows - mean).T, atol=1e-6)
    assert torch.allclose(found, model.covariance - gain @ A @ model.covariance, atol=1e-6)


def test_no_rows():
    mean, covariance = torch.zeros(N, dtype=torch.float64), torch.eye(N, dtype=torch.float64)
    model = RowModel(mean, covariance, Rows.empty(mean))
    assert float(model.number_log_density) == 0
    assert model.truncated_normal.num_rows == 0
    mixture = model.representer_mixture(draw(model.truncated_normal, DrawSettings(num_draws=64)))
    assert mixture.weights.shape == (N, 1)
    assert torch.equal(values_of(model, mixture)[1], covariance)


def test_weights_of_numbers_that_pull_apart_points_that_nearly_coincide():
    """The mean elsewhere follows the slope that they ask for, though it is told by less than the jitter."""
    x = torch.tensor([0.1, 0.1 + 3e-9, 0.9, 0.4], dtype=torch.float64)
    covariance = 100 * torch.exp(-0.5 * ((x.unsqueeze(-1) - x) / 0.25) ** 2)
    one = torch.ones(7, dtype=torch.float64)
    numbers = torch.tensor([0.0, 30.0], dtype=torch.float64)
    index = torch.tensor([0, 1, 2, 2, 2, 2, 2]).unsqueeze(-1)
    lower, upper = torch.cat([numbers, 0 * one[:5]]), torch.cat([numbers, INF * one[:5]])
    rows = Rows(index, one.unsqueeze(-1), 0 * one, lower, upper, torch.cat([4e-6 * one[:2], one[:5]]))
    model = RowModel(torch.zeros(4, dtype=torch.float64), covariance, rows)
    assert model.works_by_points
    mixture = model.representer_mixture(draw(model.truncated_normal, DrawSettings(num_draws=64)))
    # given the numbers, of mean 15: what is left of their difference, over noise, times the slope's covariance
    pull = 15 / 4e-6 * 3e-9 * 100 * math.exp(-0.5 * (0.3 / 0.25) ** 2) * 0.3 / 0.25**2
    level = 15 * math.exp(-0.5 * (0.3 / 0.25) ** 2)
    far = (covariance[3, :2] @ mixture.weights[:2]).mean()
    assert float(far) == pytest.approx(level + pull, rel=0.01)


def test_covariance_of_rows_is_symmetric_to_the_last_digit(generator):
    model = make(generator, N + 2, 2)
    found = model.truncated_normal.prior.covariance
    given = model.intervals.covariance(model._points_given_numbers[1])
    assert not torch.equal(given, given.mT)
    assert torch.equal(found, found.mT)


def test_a_few_rows_and_numbers_that_pull_apart_points_that_nearly_coincide(monkeypatch):
    """Beside a pseudo-point at one of them: nothing of the slope that they ask for is lost in a jitter."""
    x = torch.tensor([0.1, 0.1 + 1e-6, 0.1], dtype=torch.float64)
    covariance = torch.exp(-0.5 * ((x.unsqueeze(-1) - x) / 0.25) ** 2)
    one = torch.ones(6, dtype=torch.float64)
    lower = torch.tensor([-30.0, -20.0, -31.0, -21.0, -20.5, 2.0], dtype=torch.float64)
    upper = torch.tensor([-30.0, -20.0, -30.0, -20.0, -19.5, INF], dtype=torch.float64)
    noise = torch.tensor([0.01, 0.01, 0.01, 0.01, 0.01, 0.0], dtype=torch.float64)
    rows = Rows(torch.tensor([0, 1, 0, 1, 1, 2]).unsqueeze(-1), one.unsqueeze(-1), 0 * one, lower, upper, noise)
    monkeypatch.setattr("botorch_skewgp.models.row_model.FEW_ROWS", 4)
    model = RowModel(torch.zeros(3, dtype=torch.float64), covariance, rows)
    draws = draw(model.truncated_normal, DrawSettings(num_draws=64))
    weights = model.representer_mixture(draws).weights
    # the function is the pseudo-point's value all but exactly: what a row asks for is its distance, over the noise
    seen = torch.cat([rows.lower[1:2].expand(64, 1), draws.rows[:, 1:3]], dim=-1)
    expected = ((seen - draws.rows[:, 3:]) / 0.01).sum(-1)
    assert float(weights[1].mean()) == pytest.approx(float(expected.mean()), rel=1e-3)

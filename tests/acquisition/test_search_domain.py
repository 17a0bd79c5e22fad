"""The domain that pairs and recommendations come from."""

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.models import SingleTaskGP

from botorch_skewgp.acquisition.search_domain import SearchDomain

X = torch.tensor([[0.1, 0.0], [0.4, 1.0], [0.9, 0.5]])
BOUNDS = [[0.1, 0.0], [0.9, 1.0]]


def make(like: torch.Tensor) -> SearchDomain:
    model = SingleTaskGP(X.double(), X.double().sum(-1, keepdim=True))
    return SearchDomain.build(model, BOUNDS, {0: (0.9, 0.1, 0.4, 0.4)}, {1: range(2)}, like)


def test_values_and_bounds_are_those_of_the_points_dtype():
    """0.1 is another number in single precision, and BoTorch asks for equality with the bounds."""
    for like in (X, X.double()):
        domain = make(like)
        assert domain.bounds.dtype == like.dtype
        assert domain.discrete_dims == {0: like.new_tensor([0.1, 0.4, 0.9]).tolist()}
        assert domain.cat_dims == {1: [0.0, 1.0]}


def test_contains_what_it_may():
    domain = make(X.double())
    points = torch.tensor(
        [[0.1, 0.0], [0.4 + 1e-9, 1.0], [0.4, 0.5], [0.5, 1.0], [0.1 - 1e-9, 1.0], [0.0, 1.0]], dtype=torch.double
    )
    assert domain.contains(points).tolist() == [True, True, False, False, True, False]


def test_optimum_among_few_values_is_that_of_all_of_them():
    domain = make(X.double())
    mean = PosteriorMean(domain.model)
    point, value = domain.optimize(mean, 1, num_restarts=2, raw_samples=8)
    every = torch.cartesian_prod(*(torch.tensor(v, dtype=torch.double) for v in ([0.1, 0.4, 0.9], [0.0, 1.0])))
    with torch.no_grad():
        means = mean(every.unsqueeze(-2))
    assert torch.equal(point[0], every[means.argmax()])
    torch.testing.assert_close(value, means.max())


class FlatBelow(AcquisitionFunction):
    """A bowl, beside a plain far below it."""

    def forward(self, X):
        x = X[..., 0, 0]
        return torch.where(x < 0.2, x.new_tensor(-1e12), -(x - 0.7).square())


def test_a_hopeless_start_does_not_end_the_search_from_the_others(monkeypatch):
    monkeypatch.setattr("botorch.generation.gen.check_scipy_version_at_least", lambda minor: True)  # one not yet tested
    X_seen = torch.rand(3, 1, dtype=torch.double)
    model = SingleTaskGP(X_seen, X_seen)
    domain = SearchDomain.build(model, [[0.0], [1.0]], None, None, X_seen)
    starts = torch.tensor([0.1, 0.3, 0.9], dtype=torch.double).reshape(3, 1, 1)
    point, _ = domain.optimize(FlatBelow(model), 1, num_restarts=3, batch_initial_conditions=starts)
    assert float(point) == pytest.approx(0.7, abs=1e-3)

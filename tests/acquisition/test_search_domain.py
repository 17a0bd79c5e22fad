"""The domain that pairs and recommendations come from."""

import torch
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

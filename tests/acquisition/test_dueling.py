"""Challengers of a reference point."""

import pytest
import torch
from acquisition_checks import BOUNDS, POINTS, make_model, points, samples
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.acquisition import DuelingLogExpectedImprovement


def test_expected_improvement_is_that_of_the_skewed_posterior(generator):
    model, X, N = make_model(), points(generator, 3), 50_000
    value = DuelingLogExpectedImprovement(model, POINTS[:1])(X).exp()
    drawn = samples(model.posterior(torch.cat([X, POINTS[:1].expand(3, 1, 2)], dim=-2)), N, generator)
    improvement = (drawn[..., 0] - drawn[..., 1]).clamp(min=0)
    assert ((improvement.mean(0) - value).abs() < 4 * improvement.std(0) / N**0.5).all()


def test_finite_with_gradient_beside_the_reference():
    X = (POINTS[:1] + 1e-4).clone().requires_grad_()
    value = DuelingLogExpectedImprovement(make_model(), POINTS[0])(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("reference", [BOUNDS, POINTS[0, :1], POINTS[0] * torch.nan])
def test_reference_is_checked(reference):
    with pytest.raises(InputDataError, match="X_reference must be"):
        DuelingLogExpectedImprovement(make_model(), reference)

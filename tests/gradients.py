"""Gradients against central differences, in points and in the parameters of an objective."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def assert_gradient(
    function: Callable[[Tensor], Tensor], X: Tensor, step: float = 1e-5, rtol: float = 1e-5, atol: float = 1e-7
) -> Tensor:
    """Compare a function's derivatives in `batch_shape x q x d` points, value by value, with central differences.

    Each value, of shape `batch_shape`, depends on its own points alone. The gradient, to look at further.
    """
    X = X.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(X).sum(), X)
    differences = torch.empty_like(gradient)
    with torch.no_grad():
        for i in range(X.shape[-2]):
            for k in range(X.shape[-1]):
                shift = torch.zeros_like(X)
                shift[..., i, k] = step
                differences[..., i, k] = (function(X + shift) - function(X - shift)) / (2 * step)
    torch.testing.assert_close(gradient, differences, rtol=rtol, atol=atol)
    return gradient


def evaluate(mll):
    return mll(mll.model(*mll.model.train_inputs), mll.model.train_targets)


def free_parameters(model):
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def gradients(mll):
    """The gradient in every free parameter, as one vector; parameters that have no influence count as zero."""
    parameters = list(free_parameters(mll.model).values())
    found = torch.autograd.grad(evaluate(mll), parameters, allow_unused=True)
    pairs = zip(found, parameters, strict=True)
    return torch.cat([torch.zeros_like(p).flatten() if g is None else g.flatten() for g, p in pairs])


@torch.no_grad()
def differences(function, model, step):
    """Central differences of a function of the model in every free parameter."""
    slopes = []
    for parameter in free_parameters(model).values():
        flat = parameter.view(-1)
        for i in range(flat.numel()):
            centre, values = float(flat[i]), []
            for sign in (1, -1):
                flat[i] = centre + sign * step
                values.append(float(function(model)))
            flat[i] = centre
            slopes.append((values[0] - values[1]) / (2 * step))
    return torch.tensor(slopes, dtype=torch.float64)


def assert_parameter_gradient(mll, step: float = 1e-5, rtol: float = 1e-4, atol: float = 2e-6) -> None:
    """Compare an objective's derivatives in all its free parameters with central differences."""
    slopes = differences(lambda _: evaluate(mll), mll.model, step)
    torch.testing.assert_close(gradients(mll), slopes, rtol=rtol, atol=atol)

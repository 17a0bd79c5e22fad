"""The Markov chain of hyperparameters."""

import torch

from botorch_skewgp.fitting.hamiltonian import laplace_root


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_steps_are_scaled_by_the_inverse_hessian(generator):
    """Of a normal density; a direction in which it is flat is limited."""
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    precision = root @ root.mT + torch.eye(3, dtype=torch.float64)

    def density(x):
        return -0.5 * x @ precision @ x, -precision @ x

    x = tensor(0.3, -0.2, 0.5)
    scale = laplace_root(density, x, density(x)[1])
    assert torch.allclose(scale @ scale.mT @ precision, torch.eye(3, dtype=torch.float64), atol=1e-8)
    precision = torch.diag(tensor(1.0, 1e-6, -4.0))
    assert torch.allclose(laplace_root(density, x, density(x)[1]), torch.diag(tensor(1.0, 2.0, 0.5)), atol=1e-8)

"""The Markov chain of hyperparameters on normal densities, where all is known in closed form."""

import math

import pytest
import torch

from botorch_skewgp.fitting.hamiltonian import (
    TARGET_ACCEPTANCE,
    HamiltonianSampler,
    HamiltonianState,
    StepSize,
    laplace_root,
)


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def normal(precision):
    def density(x):
        return -0.5 * x @ precision @ x, -precision @ x

    return density


def standard(k):
    eye = torch.eye(k, dtype=torch.float64)
    return HamiltonianSampler(normal(eye), eye)


@pytest.mark.parametrize("num_steps", [1, 2, 7])
def test_leapfrog_of_a_standard_normal_is_a_known_linear_map(num_steps):
    """A step maps (x, v) by [[1 - h^2 / 2, h], [-h (1 - h^2 / 4), 1 - h^2 / 2]]."""
    h, sampler = 0.6, standard(2)
    x, v = tensor(0.7, -1.1), tensor(0.2, 0.9)
    end, velocity, num_evaluations = sampler.leapfrog(sampler.init(x), v, h, num_steps)
    one = tensor(1 - h**2 / 2, h, -h * (1 - h**2 / 4), 1 - h**2 / 2).view(2, 2)
    wanted = torch.linalg.matrix_power(one, num_steps) @ torch.stack([x, v])
    torch.testing.assert_close(torch.stack([end.position, velocity]), wanted, rtol=0, atol=1e-13)
    torch.testing.assert_close(end.gradient, -end.position)
    assert num_evaluations == num_steps


def test_leapfrog_can_be_followed_back(generator):
    """Of a density that is not normal, in a basis that is not the standard one."""
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)

    def density(x):
        return -x.pow(4).sum() - x.cosh().log().sum(), -4 * x.pow(3) - x.tanh()

    sampler = HamiltonianSampler(density, root)
    start, velocity = sampler.init(tensor(0.3, -0.2, 0.5)), tensor(0.5, 1.0, -0.3)
    there, last, _ = sampler.leapfrog(start, velocity, 0.05, 6)
    back, first, _ = sampler.leapfrog(there, -last, 0.05, 6)
    torch.testing.assert_close(back.position, start.position, rtol=0, atol=1e-12)
    torch.testing.assert_close(-first, velocity, rtol=0, atol=1e-12)
    assert not torch.allclose(there.position, start.position, atol=0.01)


def test_moments_of_a_normal_density(generator):
    """With a step so long that a twentieth is rejected, and a root that is only roughly right."""
    covariance = tensor(1.0, 0.6, 0.6, 2.0).view(2, 2)
    sampler = HamiltonianSampler(normal(torch.linalg.inv(covariance)), torch.diag(tensor(1.0, 1.4)))
    state, draws, acceptance, num_draws = sampler.init(tensor(0.0, 0.0)), [], 0.0, 2500
    for _ in range(num_draws):
        state, info = sampler.step(state, 0.9, generator)
        draws.append(state.position)
        acceptance += info.acceptance / num_draws
    x = torch.stack(draws)
    error = math.sqrt(2 / num_draws)  # of a mean in standard deviations, if two draws are worth one
    assert 0.7 < acceptance < 0.97
    assert ((x.mean(0) / covariance.diagonal().sqrt()).abs() < 4 * error).all()
    assert ((x.var(0) / covariance.diagonal() - 1).abs() < 4 * 2**0.5 * error).all()
    assert x.mT.corrcoef()[0, 1].item() == pytest.approx(0.6 / 2**0.5, abs=4 * error)


def test_step_is_a_function_of_its_arguments():
    sampler = standard(3)
    state = sampler.init(tensor(0.1, 0.2, 0.3))
    first, second = (sampler.step(state, 0.5, torch.Generator().manual_seed(4))[0] for _ in range(2))
    assert torch.equal(first.position, second.position)
    assert torch.equal(state.position, tensor(0.1, 0.2, 0.3))


def test_places_without_density_are_rejected():
    def density(x):
        inside = bool(x.abs() < 1)
        return (torch.zeros(()) if inside else torch.tensor(-torch.inf)), torch.zeros_like(x)

    sampler = HamiltonianSampler(density, torch.eye(1, dtype=torch.float64))
    state, info = sampler.step(sampler.init(tensor(0.9)), 50.0, torch.Generator().manual_seed(0))
    assert info.acceptance == 0
    assert state.position == 0.9


def test_step_size_finds_the_acceptance_wanted():
    """Of a trajectory whose acceptance falls as `exp(-step^2)`."""
    step_size = StepSize()
    for _ in range(400):
        step_size = step_size.adapt(math.exp(-math.exp(2 * step_size.log_step)))
    assert math.exp(-math.exp(2 * step_size.log_average)) == pytest.approx(TARGET_ACCEPTANCE, abs=0.02)


def test_steps_are_scaled_by_the_inverse_hessian(generator):
    """Of a normal density; a direction in which it is flat is limited."""
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    precision = root @ root.mT + torch.eye(3, dtype=torch.float64)

    def root_at(precision):
        density, x = normal(precision), tensor(0.3, -0.2, 0.5)
        return laplace_root(density, HamiltonianState(x, *density(x)))

    scale = root_at(precision)
    assert torch.allclose(scale @ scale.mT @ precision, torch.eye(3, dtype=torch.float64), atol=1e-8)
    assert torch.allclose(root_at(torch.diag(tensor(1.0, 1e-6, -4.0))), torch.diag(tensor(1.0, 2.0, 0.5)), atol=1e-8)

"""Steps of expectation propagation on maps of the sites whose fixed points are known."""

import pytest
import torch
from row_cases import make, zeros

from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.propagation.steps import Steps


def rows(*shape):
    return make(zeros(*shape), torch.eye(shape[-1]).expand(*shape, shape[-1]), noise=1.0)


def walk(distribution, target, start, num_steps, is_near=True):
    """Sites after some steps of a map, which is near its fixed point or far from it, and the residuals."""
    steps, sites, residuals = Steps(distribution), Sites(*start), []
    for _ in range(num_steps):
        new = target(torch.stack(sites))
        residual = (new - torch.stack(sites)).abs().amax((0, -1)) if is_near else torch.ones(distribution.batch_shape)
        residuals.append(residual)
        sites = steps(sites, Sites(*new), residual.double(), torch.ones_like(distribution.mean))
    return torch.stack(sites), torch.stack(residuals)


@pytest.mark.parametrize("batch_shape", [(), (3,)])
def test_a_linear_map_of_two_directions_ends_after_two_extrapolations(batch_shape, generator):
    """With as many past sweeps as there are directions the affine combination is the fixed point itself."""
    fixed = 1 + torch.rand(2, *batch_shape, 4, dtype=torch.float64, generator=generator)
    start = fixed + 0.02 * torch.rand(2, *batch_shape, 4, dtype=torch.float64, generator=generator)
    start[:, ..., 2:] = fixed[:, ..., 2:]
    start[1] = fixed[1]
    factors = torch.tensor([0.9, -0.7, 0.0, 0.0], dtype=torch.float64)

    def target(x):
        return fixed + factors * (x - fixed)

    ended, _ = walk(rows(*batch_shape, 4), target, start, 3)
    torch.testing.assert_close(ended, fixed, rtol=0, atol=1e-6)
    plain, _ = walk(rows(*batch_shape, 4), target, start, 3, is_near=False)
    assert float((plain - fixed).abs().max()) > 1e-4


def test_precisions_do_not_become_negative():
    """The fixed point has a negative precision; the map itself keeps its steps positive."""
    start = torch.tensor([[0.2], [0.0]], dtype=torch.float64)

    def target(x):
        return torch.stack([0.9 * x[0] - 0.01, x[1]])

    steps = Steps(rows(1))
    first = Sites(*start)
    second = steps(first, Sites(*target(start)), torch.tensor(0.03).double(), torch.ones(1).double())
    third = steps(second, Sites(*target(torch.stack(second))), torch.tensor(0.027).double(), torch.ones(1).double())
    torch.testing.assert_close(torch.stack(third), target(torch.stack(second)))


def test_steps_are_shorter_where_the_residual_grows():
    distribution = rows(2)
    steps, one = Steps(distribution), torch.ones(2, dtype=torch.float64)
    none, far = Sites(0 * one, 0 * one), Sites(one, one)
    shares = [float(steps(none, far, torch.tensor(r).double(), one).shift[0]) for r in (1.0, 2.0, 3.0, 1.0)]
    assert shares == pytest.approx([1.0, 0.5, 0.25, 0.3])
    assert torch.equal(none.shift, 0 * one)
    assert torch.equal(far.shift, one)

"""Steps of expectation propagation on maps of the sites whose fixed points are known."""

import pytest
import torch

from botorch_skewgp.truncated.propagation.steps import Steps, Sweep


def sweep_of(x, target, residual):
    return Sweep(target, target - x, torch.ones_like(x), residual)


def walk(target, start, num_steps, is_near=True):
    """Sites after some steps of a map, which is near its fixed point or far from it."""
    steps, x = Steps(may_slip=False), start
    for _ in range(num_steps):
        new = target(x)
        x = steps(x, sweep_of(x, new, float((new - x).abs().amax()) if is_near else 1.0))
    return x


def test_a_linear_map_of_two_directions_ends_after_two_extrapolations(generator):
    """With as many past sweeps as there are directions the affine combination is the fixed point itself."""
    fixed = 1 + torch.rand(2, 4, dtype=torch.float64, generator=generator)
    start = fixed + 0.02 * torch.rand(2, 4, dtype=torch.float64, generator=generator)
    start[:, 2:] = fixed[:, 2:]
    start[1] = fixed[1]
    factors = torch.tensor([0.9, -0.7, 0.0, 0.0], dtype=torch.float64)

    def target(x):
        return fixed + factors * (x - fixed)

    torch.testing.assert_close(walk(target, start, 3), fixed, rtol=0, atol=1e-6)
    assert float((walk(target, start, 3, is_near=False) - fixed).abs().max()) > 1e-4


def test_precisions_do_not_become_negative():
    """The fixed point has a negative precision; the map itself keeps its steps positive."""
    start = torch.tensor([[0.2], [0.0]], dtype=torch.float64)

    def target(x):
        return torch.stack([0.9 * x[0] - 0.01, x[1]])

    steps = Steps(may_slip=False)
    second = steps(start, sweep_of(start, target(start), 0.03))
    third = steps(second, sweep_of(second, target(second), 0.027))
    torch.testing.assert_close(third, target(second))


def test_steps_are_shorter_where_the_residual_grows():
    steps, none = Steps(may_slip=False), torch.zeros(2, 2, dtype=torch.float64)
    far = none + 1
    shares = [float(steps(none, sweep_of(none, far, r))[1, 0]) for r in (1.0, 2.0, 3.0, 1.0)]
    assert shares == pytest.approx([1.0, 0.5, 0.25, 0.3])
    assert torch.equal(none, 0 * far)
    assert torch.equal(far, none + 1)

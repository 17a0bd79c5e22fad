"""Climbs in a box, beside known tops and BoTorch's search."""

import pytest
import torch
from botorch.exceptions.errors import OptimizationGradientError
from botorch.generation.gen import gen_candidates_scipy

from botorch_skewgp.acquisition.climbing import climb

DOUBLE = torch.double
LOW, HIGH = torch.tensor([-1.0, 0.0, 2.0], dtype=DOUBLE), torch.tensor([1.0, 10.0, 2.5], dtype=DOUBLE)


def starts_of(num: int, q: int = 1, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return LOW + (HIGH - LOW) * torch.rand(num, q, 3, generator=generator, dtype=DOUBLE)


def bowl(X):
    """Stretched, with its top beyond a bound."""
    scale, top = X.new_tensor([1.0, 0.1, 30.0]), X.new_tensor([0.25, 12.0, 2.2])
    return -((X - top) * scale).square().sum((-1, -2))


def valley(X):
    """Rosenbrock's, upside down, with its top at 1 in the first two columns."""
    x, y = X[..., 0, 0], X[..., 0, 1]
    return -((1 - x).square() + 100 * (y - x.square()).square())


def waves(X):
    return (torch.sin(3 * X).prod(-1) - (0.3 * X).square().sum(-1)).sum(-1)


def test_a_top_at_a_bound_is_reached_exactly():
    ends, values = climb(starts_of(5, q=2), bowl, LOW, HIGH)
    best = ends[values.argmax()]
    torch.testing.assert_close(best, best.new_tensor([0.25, 10.0, 2.2]).expand(2, 3), atol=1e-5, rtol=0)
    assert (best[:, 1] == 10).all()
    torch.testing.assert_close(values, bowl(ends))
    assert ((ends >= LOW) & (ends <= HIGH)).all()


def test_a_curved_valley_is_climbed_to_its_end():
    _, values = climb(starts_of(4)[..., :2], valley, LOW[:2], HIGH[:2])
    assert values.max() > -1e-8


@pytest.mark.parametrize("seed", range(4))
def test_the_best_end_is_no_lower_than_that_of_separate_searches(seed):
    starts = starts_of(12, q=2, seed=seed)
    _, values = climb(starts, waves, LOW, HIGH)
    _, others = gen_candidates_scipy(starts, waves, LOW, HIGH, options={"max_optimization_problem_aggregation_size": 1})
    assert values.max() > others.max() - 1e-6


def test_fixed_columns_keep_the_values_of_each_start():
    starts = starts_of(4)
    ends, _ = climb(starts, bowl, LOW, HIGH, fixed_features=[0])
    assert torch.equal(ends[..., 0], starts[..., 0])
    torch.testing.assert_close(ends[..., 1].max(), ends.new_tensor(10.0))
    same, values = climb(starts, bowl, LOW, HIGH, fixed_features=range(3))
    assert torch.equal(same, starts)
    assert torch.equal(values, bowl(starts))


def test_all_starts_share_an_evaluation_and_few_are_left_at_the_end():
    sizes = []

    def counted(X):
        sizes.append(len(X))
        return waves(X)

    climb(starts_of(12), counted, LOW, HIGH)
    assert sizes[0] == 12
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) < 40


@pytest.mark.parametrize("unit", [1e-12, 1e9])
def test_units_of_values_do_not_matter(unit):
    ends, values = climb(starts_of(5), lambda X: unit * bowl(X), LOW, HIGH)
    torch.testing.assert_close(ends[values.argmax(), 0, 0], ends.new_tensor(0.25), atol=1e-5, rtol=0)


def test_steps_to_values_that_are_not_numbers_are_shortened():
    def edged(X):
        return bowl(X) + (0.2 - X[..., 0, 0]).sqrt()  # not a number beyond

    starts = starts_of(3)
    starts[..., 0] = starts[..., 0].clamp(max=0.1)
    _, values = climb(starts, edged, LOW, HIGH)
    line = torch.linspace(-1, 0.2, 1201, dtype=DOUBLE)
    top = edged(torch.stack([line, 0 * line + 10, 0 * line + 2.2], dim=-1).unsqueeze(1)).max()
    assert values.max() >= top


def test_a_slope_that_is_not_a_number_is_an_error():
    with pytest.raises(OptimizationGradientError, match="NaN"):
        climb(starts_of(2), lambda X: bowl(X) + 0 * (X - X.detach()).square().sum((-1, -2)).sqrt(), LOW, HIGH)

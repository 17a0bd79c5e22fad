"""The power transform of numbers: its map, its inverse, its fit, and what it leaves as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from botorch_skewgp.hosts.outcomes import PowerTransform, fit_power_transform

NUMBERS = np.random.default_rng(0).normal(size=200)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0, 1.7, 2.0])
def test_is_the_formula_of_the_paper_on_standardised_numbers(power):
    transform = PowerTransform(mean=5.0, scale=2.0, power=power)
    high, low = NUMBERS[NUMBERS >= 0], NUMBERS[NUMBERS < 0]
    above = np.log(high + 1) if power == 0 else ((high + 1) ** power - 1) / power
    below = -np.log(1 - low) if power == 2 else -((1 - low) ** (2 - power) - 1) / (2 - power)
    np.testing.assert_allclose(transform(5 + 2 * high), above, atol=1e-13)
    np.testing.assert_allclose(transform(5 + 2 * low), below, atol=1e-13)


@given(
    st.sampled_from([0.0, 2.0]) | st.floats(1e-6, 2 - 1e-6),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9),
    st.floats(1e-3, 1e3),
)
def test_inverse_and_order(power, numbers, scale):
    transform, numbers = PowerTransform(mean=1.0, scale=scale, power=power), np.sort(numbers)
    values = transform(numbers)
    assert np.all(np.diff(values) >= 0)
    tails = 1e-13 * np.maximum(np.abs(numbers) + scale, 1) * (1 + np.abs(values))  # by which a rounded value moves them
    assert np.all(np.abs(transform.inverse_transform(values) - numbers) <= 100 * tails)


def test_finds_the_map_that_made_normal_numbers_skew():
    """An exponential of normal numbers has a long upper tail, its negative a long lower one."""
    for sign in (1, -1):
        transform = fit_power_transform(sign * np.exp(NUMBERS))
        assert sign * (transform.power - 1) < -0.5
        skewness = stats.skew(transform(sign * np.exp(NUMBERS)))
        assert abs(skewness) < 0.5 * abs(stats.skew(np.exp(NUMBERS)))
    assert fit_power_transform(NUMBERS).power == pytest.approx(1, abs=0.15)


def test_does_not_depend_on_units():
    expected = fit_power_transform(NUMBERS)(NUMBERS)
    for scale, shift in [(1e150, 0.0), (1e-150, 0.0), (1e-3, 1e3)]:
        numbers = shift + scale * NUMBERS
        np.testing.assert_allclose(fit_power_transform(numbers)(numbers), expected, atol=1e-5)


def test_a_few_diverged_numbers_leave_the_others_apart():
    numbers = np.concatenate([NUMBERS[:20], [-1e6, -1e100]])
    values = fit_power_transform(numbers)(numbers)
    assert values[:20].std() > 0.5
    assert values[20] == values[21] == values.min()


@pytest.mark.rounding
def test_rounding_among_the_best_numbers_cuts_no_others():
    best = 1 + 1e-13 * NUMBERS[:12]
    numbers = np.concatenate([best, [0.5, 0.0, -1.0]])
    values = fit_power_transform(numbers)(numbers)
    assert values[:12].std() < 1e-9
    assert np.all(np.diff(values[11:]) < -0.1)


@pytest.mark.parametrize("numbers", [[], [np.nan], [1.0], [2.0, 2.0], [0.0, 0.0, 1.0], [1e-310, 2e-310, 4e-310]])
def test_numbers_without_a_shape_stay(numbers):
    assert fit_power_transform(np.array(numbers)) == PowerTransform()


def test_rise_is_the_difference_of_numbers():
    transform = PowerTransform(mean=3.0, scale=2.0, power=0.0)
    assert transform.rise(1.0, 0.5) == pytest.approx(2 * (np.exp(1.5) - np.exp(1.0)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_beyond_the_worst_number_kept(sign):
    """A number is at best its bound on the good side, cut like a number; the other side says nothing more."""
    transform = PowerTransform(floor=-10.0, mean=0.0, scale=2.0, power=0.7, sign=sign)
    worst, beyond, good = (np.array(sign * value) for value in (-10.0, -100.0, 3.0))
    image_of_worst, image_of_good = transform.transform(worst), transform.transform(good)
    assert sign * transform.transform(beyond) < sign * image_of_worst
    ends = (beyond, good) if sign > 0 else (good, beyond)
    lower, upper = transform.bounds(*ends)
    bad, best = (lower, upper) if sign > 0 else (upper, lower)
    assert (bad, best) == (transform.transform(beyond), image_of_good)
    ends = (np.array(-np.inf), beyond) if sign > 0 else (beyond, np.array(np.inf))
    assert transform.bounds(*ends)[1 if sign > 0 else 0] == image_of_worst

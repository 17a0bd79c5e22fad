"""The skew prior: its distribution against rejection, its limits, its normaliser, and learning it."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from kind_cases import kernel, log_evidence
from tensors import tensor as t

from benchmarks._observations import constant_mean
from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary, Censored, Numeric, Slope
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.rounding

X = t(0.0, 0.8, 1.7, 2.4).unsqueeze(-1)
NEW_X = t(0.3, 1.0, 2.0, 4.0).unsqueeze(-1)
POINTS = t(0.5, 1.9).unsqueeze(-1)
LIMIT = 4.5


def build(observations=None, prior: SkewPrior | None = None, num_draws: int = 2048, train_X=X) -> SkewGP:
    modules = {"covar_module": kernel(), "mean_module": constant_mean(0.4), "skew_prior": prior}
    return SkewGP(train_X, observations, draw_settings=DrawSettings(num_draws=num_draws, seed=1), **modules)


def test_a_truncation_far_away_leaves_numbers_and_slopes_as_they_are():
    told = [Numeric([0.3, -0.2], index=[0, 3]), Slope(dims=[0, 0], signs=[1, -1], index=[1, 2])]
    alone, beside = (build(told, prior) for prior in (None, SkewPrior(POINTS, [1, -1], 30.0)))
    assert log_evidence(beside) == pytest.approx(log_evidence(alone), abs=1e-8)
    error = LIMIT * (2 * alone.posterior(NEW_X).variance / 1500).sqrt()
    assert ((beside.posterior(NEW_X).mean - alone.posterior(NEW_X).mean).abs() < error).all()


def test_one_pseudo_point_has_the_closed_form_of_the_extended_skew_normal():
    """f(u) given f(u) above its mean: a half-normal; elsewhere the regression on it."""
    model = build(prior=SkewPrior(POINTS[:1], t(1.0), 0.0), num_draws=4096)
    posterior = model.posterior(torch.cat([POINTS[:1], NEW_X]))
    rho = torch.exp(-0.5 * (torch.cat([POINTS[:1], NEW_X]) - POINTS[0]).square() / 0.49).squeeze(-1)
    half = math.sqrt(2 / math.pi)
    exact_mean = 0.4 + 1.5**0.5 * rho * half
    exact_variance = 1.5 * (1 - rho.square() * half**2)
    size = float(model.draws.effective_size.min())
    assert ((posterior.mean.squeeze(-1) - exact_mean).abs() < LIMIT * (1.5 / size) ** 0.5 * rho + 1e-9).all()
    error = LIMIT * 1.5 * rho.square() / size**0.5
    assert ((posterior.variance.squeeze(-1) - exact_variance).abs() < error + 1e-9).all()
    assert log_evidence(model) == pytest.approx(0, abs=1e-9)


def test_without_pseudo_points_it_is_the_gaussian_process():
    none = SkewPrior(torch.zeros(0, 1, dtype=torch.float64), t())
    for observations in (None, Numeric(t(0.1, 0.5)), Binary([1, 0, 1])):
        skewed, plain = build(observations, none), build(observations)
        assert torch.allclose(skewed.posterior(NEW_X).mean, plain.posterior(NEW_X).mean, rtol=0, atol=1e-9)
        assert torch.allclose(skewed.posterior(NEW_X).variance, plain.posterior(NEW_X).variance, rtol=0, atol=1e-9)
        assert log_evidence(skewed) == pytest.approx(log_evidence(plain), abs=1e-9)


def test_lists_will_do_and_the_callers_tensors_are_copied():
    points, truncation = POINTS.clone(), t(0.1, 0.2)
    prior, same = SkewPrior(points, t(1.0, -1.0), truncation), SkewPrior(POINTS.tolist(), [1, -1], [0.1, 0.2])
    points += 1
    truncation += 1
    for name, value in same.state_dict().items():
        assert torch.equal(prior.state_dict()[name], value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((POINTS.squeeze(-1), t(1.0, 1.0)), "pseudo_points must be a finite floating point s x d tensor"),
        ((POINTS.long(), t(1.0, 1.0)), "pseudo_points must be a finite floating point"),
        ((POINTS * math.nan, t(1.0, 1.0)), "pseudo_points must be a finite"),
        ((POINTS, t(1.0)), "phases must hold -1 or 1 for each of the 2 pseudo-points"),
        ((POINTS, t(1.0, 0.5)), "phases must hold -1 or 1"),
        ((POINTS, t(1.0, 1.0), t(0.1)), "truncation must hold a finite number for each of the 2 pseudo-points"),
        ((POINTS, t(1.0, 1.0), math.inf), "truncation must hold a finite number"),
        ((torch.rand(2, 3, dtype=torch.float64), t(1.0, 1.0)), "pseudo_points have 3 columns"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputDataError, match=message):
        build(prior=SkewPrior(*arguments))


def test_a_prior_that_contradicts_itself_is_named_whatever_is_beside_it():
    """Opposite phases at one point; the row far in a tail is replaced by a site before any start is looked for."""
    prior = SkewPrior(POINTS[[0, 0]], t(-1.0, 1.0), t(0.697, -0.969))
    far = Censored(lower=t(60.0), upper=t(80.0), index=[1])
    for observations in (far, Binary([1, 0, 1, 1])):
        with pytest.raises(ContradictionError, match="Rows 0 to 1 are the pseudo-"):
            build(observations, prior).posterior(NEW_X)


def test_pseudo_points_that_nearly_coincide_beside_numbers():
    """Signs that are certain say nothing, however close their points are and whatever numbers stand beside them."""
    near = POINTS[:1] + t(0.0, 3e-6).unsqueeze(-1)
    numbers = Numeric([1.0, 1.2, 0.9], noise=[0.001] * 3, index=[0, 0, 1])
    priors, at = (None, SkewPrior(near, t(1.0, 1.0), 50.0)), torch.cat([near[:1], NEW_X[:1]])
    plain, certain = (build(numbers, prior, 4096, at).posterior(NEW_X) for prior in priors)
    assert torch.allclose(certain.variance, plain.variance, rtol=4.5 * math.sqrt(2 / 4096), atol=1e-9)

"""Numbers through a warping: against models of warped numbers, finite differences, and what shares the function."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.outcome import Standardize
from gradients import assert_parameter_gradient

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood, ValidityLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Censored, Numeric, Preference, Validity
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh

DOUBLE = torch.float64
X = torch.rand(9, 1, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
LATENT = torch.sin(6 * X[:, 0])
VALUES = (1.5 * LATENT + 1).exp()
SEEN = torch.tensor([0, 2, 3, 5, 6, 8])
DUELS = Preference(torch.tensor([[1, 4], [7, 0], [5, 3]]))
WORKED = Validity(torch.tensor([True, False]), index=torch.tensor([4, 7]))
NEW = torch.linspace(0.05, 0.95, 4, dtype=DOUBLE).unsqueeze(-1)


def warping():
    result = SinhArcsinh()
    result.skewness, result.tail_weight = 0.4, 0.8
    return result


def build(values, warping=None, others=True, **kwargs):
    parts = [NumericLikelihood(noise=0.05, warping=warping)]
    observations = [Numeric(values[SEEN], index=SEEN)]
    if others:
        parts += [PreferenceLikelihood(noise=0.2), ValidityLikelihood(threshold=0.3)]
        observations += [DUELS, WORKED]
    return SkewGP(
        X,
        observations,
        likelihood=MixedLikelihood(*parts),
        covar_module=default_covar_module(1),
        draw_settings=DrawSettings(num_draws=128, seed=0),
        **kwargs,
    )


@pytest.fixture(scope="module")
def pair():
    """A model with a warping, and one of the warped numbers."""
    with torch.no_grad():
        return build(VALUES, warping()), build(warping()(VALUES))


def test_a_model_of_warped_numbers_is_the_same_but_for_the_derivative(pair):
    warped, plain = pair
    jacobian = warping().log_derivative(VALUES[SEEN]).sum()
    difference = (
        warped.log_marginal_likelihood(corrected_log_normalizer).value
        - plain.log_marginal_likelihood(corrected_log_normalizer).value
    )
    assert difference.item() == pytest.approx(jacobian.item(), rel=1e-9)
    torch.testing.assert_close(warped.posterior(NEW).mean, plain.posterior(NEW).mean, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(warped.draws.rows, plain.draws.rows, rtol=1e-9, atol=1e-9)


def test_predictions_go_back_through_the_inverse(pair):
    warped, plain = pair
    (of_numbers, *others), (of_warped, *same) = (model.predictive(NEW).values() for model in (warped, plain))
    levels = torch.tensor([0.1, 0.5, 0.9], dtype=DOUBLE)
    torch.testing.assert_close(of_numbers.quantile(levels), warping().inverse(of_warped.quantile(levels)).detach())
    for one, other in zip(others, same, strict=True):
        torch.testing.assert_close(one.probs, other.probs)
    latent = warped.likelihood.for_kind(Numeric).outcome_posterior(warped.latent_posterior(NEW))
    torch.testing.assert_close(
        latent.quantile(0.9), warping().inverse(plain.latent_posterior(NEW).quantile(0.9)).detach()
    )


def test_gradient_of_the_objective_in_the_warping():
    model = build(VALUES, warping())
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(model.likelihood, model).train())


def test_standardised_outcomes_are_warped():
    transform = Standardize(m=1)
    model = build(VALUES, warping(), others=False, outcome_transform=transform)
    y = VALUES[SEEN]
    standard = (VALUES - y.mean()) / y.std()
    with torch.no_grad():
        plain = build(warping()(standard), others=False)
        expected = y.mean() + y.std() * warping().inverse(plain.predictive(NEW)[Numeric].quantile(0.3))
        torch.testing.assert_close(model.predictive(NEW)[Numeric].quantile(0.3), expected)
        jacobian = warping().log_derivative(standard[SEEN])
        densities = leave_one_out(plain).log_predictive + jacobian - y.std().log()
        torch.testing.assert_close(leave_one_out(model).log_predictive, densities)


def test_leave_one_out_counts_the_derivative_of_numbers_only(pair):
    warped, plain = pair
    difference = leave_one_out(warped).log_predictive - leave_one_out(plain).log_predictive
    jacobian = warping().log_derivative(VALUES[SEEN]).detach()
    torch.testing.assert_close(difference[: len(SEEN)], jacobian, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(difference[len(SEEN) :], 0 * difference[len(SEEN) :], rtol=0, atol=1e-6)


def test_bounds_are_warped():
    inf = math.inf
    censored = Censored(torch.tensor([-inf, 2.0]), torch.tensor([1.0, inf]), index=torch.tensor([0, 1]))
    rows = NumericLikelihood(warping=BoxCox()).rows(censored, X)
    assert rows.lower.tolist() == pytest.approx([-inf, 2 * (2**0.5 - 1)])
    assert rows.upper.tolist() == pytest.approx([0.0, inf])
    with pytest.raises(InputDataError, match=r"above 0; those at positions \[0\]"):
        NumericLikelihood(warping=BoxCox()).rows(Censored(torch.tensor([-inf]), torch.tensor([-1.0])), X)


def test_what_cannot_be_warped_is_refused():
    with pytest.raises(InputDataError, match=r"above 0; those at positions \[0, 2\]"):
        SkewGP(X[:3], Numeric([-1.0, 2.0, 0.0]), likelihood=NumericLikelihood(warping=BoxCox()))
    with pytest.raises(UnsupportedError, match="Known variances"):
        SkewGP(X[:2], Numeric([1.0, 2.0], noise=0.1), likelihood=NumericLikelihood(warping=Arcsinh()))


def test_redundant_parameters_are_not_fitted():
    likelihood = NumericLikelihood(warping=Composition([Affine(), Arcsinh()]))
    free = {name for name, parameter in likelihood.warping.named_parameters() if parameter.requires_grad}
    assert "warpings.1.raw_width" in free
    assert not {"warpings.1.raw_offset", "warpings.1.raw_scale"} & free

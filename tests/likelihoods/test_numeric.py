"""Numbers: laws of new readings, noise and bounds; through a warping, against models of warped numbers."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms import Standardize
from gradients import assert_parameter_gradient

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OutcomeScale,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Binary, Censored, Numeric, Preference, Validity
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh

INF = math.inf
X = torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1)
NUMERIC = Numeric(torch.tensor([0.3, -0.5, 1.0], dtype=torch.float64), index=torch.tensor([0, 2, 4]))
CENSORED = Censored(torch.tensor([-INF, 0.2]).double(), torch.tensor([0.1, INF]).double(), index=torch.tensor([1, 3]))


def test_laws_of_new_readings():
    likelihood, f = NumericLikelihood(noise=0.25), torch.tensor([[0.1, -2.0]], dtype=torch.float64)
    assert torch.equal(likelihood(f).mean, f)
    assert torch.allclose(likelihood(f).variance, torch.full_like(f, 0.25), rtol=1e-7)
    model = SkewGP(X, [NUMERIC, CENSORED], likelihood)
    predictive, posterior = model.predictive(X), model.posterior(X)
    assert torch.allclose(predictive.mean, posterior.mean)
    assert torch.allclose(predictive.variance, posterior.variance + likelihood.noise)


def test_censored_readings_use_the_learned_noise_and_numbers_their_own():
    likelihood = NumericLikelihood(noise=0.2)
    given = Numeric(torch.zeros(2, dtype=torch.float64), noise=0.5)
    scale = OutcomeScale(location=1.0, scale=2.0)
    assert torch.allclose(likelihood.rows(given, X).noise, torch.full((2,), 0.5).double())
    assert torch.allclose(likelihood.rows(given, X, scale).noise, torch.full((2,), 0.125).double())
    assert torch.allclose(likelihood.rows(CENSORED, X, scale).noise, likelihood.noise.expand(2))
    assert torch.allclose(likelihood.rows(CENSORED, X, scale).upper, torch.tensor([-0.45, INF]).double())


def test_bounds_without_noise_are_bounds_of_the_function(generator):
    """In units of the outcome: quantiles at the stated points end at the bound, and draws of the prior there agree."""
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    numbers = Numeric(torch.tensor([3.2, 4.1, 3.4], dtype=torch.float64), noise=0.04, index=[0, 2, 4])
    bound = Censored(3.0, [torch.inf] * 3, index=[1, 3, 5], noise=0.0)

    def build(*observations):
        model = SkewGP(X, [numbers, *observations], outcome_transform=Standardize(m=1))
        model.covar_module.base_kernel.lengthscale = 0.3
        return model

    plain, bounded = build(), build(bound)
    stated = X[[1, 3, 5]]
    assert float(plain.posterior(stated).quantile(torch.tensor([0.01]).double()).min()) < 3.0
    assert float(bounded.posterior(stated).quantile(torch.tensor([1e-4]).double()).min()) > 3.0 - 1e-6
    samples = plain.posterior(X).rsample(torch.Size([200_000])).squeeze(-1)
    kept = samples[(samples[:, [1, 3, 5]] > 3.0).all(-1)]
    found = bounded.posterior(X)
    error = kept.std(0) / math.sqrt(len(kept)) + found.variance.squeeze(-1).sqrt() / math.sqrt(500)
    assert ((found.mean.squeeze(-1) - kept.mean(0)).abs() / error).max() < 4


def test_known_variances_of_bounds():
    """Those of the noisy reading; a likelihood's noise of the same size has the same evidence."""
    X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
    values = []
    for noise, likelihood in ((None, NumericLikelihood(noise=0.3)), (0.3, NumericLikelihood(noise=0.05))):
        observed = Censored([0.1, -torch.inf], [torch.inf, 0.4], index=[0, 3], noise=noise)
        values.append(float(SkewGP(X, observed, likelihood).log_marginal_likelihood("ep").value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert Censored([0.0], [1.0], noise=0.1, count=[3]).noise.tolist() == pytest.approx([0.1] * 3)
    for noise in (-1.0, [0.1, 0.2], torch.inf):
        with pytest.raises(InputDataError, match="noise must hold one finite non-negative variance"):
            Censored([0.0], [1.0], noise=noise)
    with pytest.raises(UnsupportedError, match="Leave the observations' noise out"):
        SkewGP(X, Censored([0.5], [1.0], noise=0.1), NumericLikelihood(warping=BoxCox()))
    SkewGP(X, Censored([0.5], [1.0], noise=0.0), NumericLikelihood(warping=BoxCox())).posterior(X)


def test_presence_at_a_known_limit_is_a_label_of_that_threshold_with_the_noise_of_numbers():
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    numbers = Numeric([0.4, 1.3, -0.2], index=[0, 2, 4])
    limit, present = 0.7, torch.tensor([True, False, True])
    lower, upper = torch.where(present, limit, -INF), torch.where(present, INF, limit)
    values = []
    for observed, likelihood in (
        (Censored(lower, upper, index=[1, 3, 5]), NumericLikelihood(noise=0.21)),
        (
            Binary(present, index=[1, 3, 5]),
            MixedLikelihood(NumericLikelihood(noise=0.21), ProbitLikelihood(threshold=limit, noise=0.21)),
        ),
    ):
        values.append(float(SkewGP(X, [numbers, observed], likelihood).log_marginal_likelihood("ep").value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)


Z = torch.rand(9, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
LATENT = torch.sin(6 * Z[:, 0])
VALUES = (1.5 * LATENT + 1).exp()
SEEN = torch.tensor([0, 2, 3, 5, 6, 8])
DUELS = Preference(torch.tensor([[1, 4], [7, 0], [5, 3]]))
WORKED = Validity(torch.tensor([True, False]), index=torch.tensor([4, 7]))
NEW = torch.linspace(0.05, 0.95, 4, dtype=torch.float64).unsqueeze(-1)


def warping():
    result = SinhArcsinh()
    result.skewness, result.tail_weight = 0.4, 0.8
    return result


def warped_model(values, warping=None, others=True, **kwargs):
    parts = [NumericLikelihood(noise=0.05, warping=warping)]
    observations = [Numeric(values[SEEN], index=SEEN)]
    if others:
        parts += [PreferenceLikelihood(noise=0.2), ValidityLikelihood(threshold=0.3)]
        observations += [DUELS, WORKED]
    return SkewGP(
        Z,
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
        return warped_model(VALUES, warping()), warped_model(warping()(VALUES))


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
    levels = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    torch.testing.assert_close(of_numbers.quantile(levels), warping().inverse(of_warped.quantile(levels)).detach())
    for one, other in zip(others, same, strict=True):
        torch.testing.assert_close(one.probs, other.probs)
    latent = warped.likelihood.for_kind(Numeric).outcome_posterior(warped.latent_posterior(NEW))
    torch.testing.assert_close(
        latent.quantile(0.9), warping().inverse(plain.latent_posterior(NEW).quantile(0.9)).detach()
    )


def test_gradient_of_the_objective_in_the_warping():
    model = warped_model(VALUES, warping())
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(model.likelihood, model).train())


def test_standardised_outcomes_are_warped():
    transform = Standardize(m=1)
    model = warped_model(VALUES, warping(), others=False, outcome_transform=transform)
    y = VALUES[SEEN]
    standard = (VALUES - y.mean()) / y.std()
    with torch.no_grad():
        plain = warped_model(warping()(standard), others=False)
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
    rows = NumericLikelihood(warping=BoxCox()).rows(censored, Z)
    assert rows.lower.tolist() == pytest.approx([-inf, 2 * (2**0.5 - 1)])
    assert rows.upper.tolist() == pytest.approx([0.0, inf])
    with pytest.raises(InputDataError, match=r"above 0; those at positions \[0\]"):
        NumericLikelihood(warping=BoxCox()).rows(Censored(torch.tensor([-inf]), torch.tensor([-1.0])), Z)


def test_what_cannot_be_warped_is_refused():
    with pytest.raises(InputDataError, match=r"above 0; those at positions \[0, 2\]"):
        SkewGP(Z[:3], Numeric([-1.0, 2.0, 0.0]), likelihood=NumericLikelihood(warping=BoxCox()))
    with pytest.raises(UnsupportedError, match="Known variances"):
        SkewGP(Z[:2], Numeric([1.0, 2.0], noise=0.1), likelihood=NumericLikelihood(warping=Arcsinh()))


def test_redundant_parameters_are_not_fitted():
    likelihood = NumericLikelihood(warping=Composition([Affine(), Arcsinh()]))
    free = {name for name, parameter in likelihood.warping.named_parameters() if parameter.requires_grad}
    assert "warpings.1.raw_width" in free
    assert not {"warpings.1.raw_offset", "warpings.1.raw_scale"} & free

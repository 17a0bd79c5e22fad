"""Conjugacy to the letter: the papers' parameters of the posterior, against their formulas, densities and evidences."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from scipy.stats import multivariate_normal

from benchmarks._observations import constant_mean, rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, ProbitAffineLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import AffineProbit, Binary, Censored, Numeric, Preference
from botorch_skewgp.papers import corrected_log_normalizer, sun_parameters, unified_skew_normal
from botorch_skewgp.truncated.draws import DrawSettings

DOUBLE = {"dtype": torch.float64}
X = torch.tensor([[0.0], [0.4], [0.9], [1.6]], **DOUBLE)
NEW_X = torch.tensor([[0.2], [1.3], [2.0]], **DOUBLE)
W = torch.tensor([[1.0, -0.5, 0.0, 0.2], [0.3, 0.0, 1.1, -0.7]], **DOUBLE)
Z = torch.tensor([0.2, -0.4], **DOUBLE)
SIGMA = torch.tensor([[0.6, 0.25], [0.25, 0.9]], **DOUBLE)
C = torch.tensor([0, 2])
Y = torch.tensor([0.7, -0.3], **DOUBLE)
R = 0.3


kernel, mean = partial(rbf_kernel, 1.8, 0.7), partial(constant_mean, 0.3)


def prior():
    return SkewPrior(
        torch.tensor([[0.1], [1.2]], **DOUBLE), torch.tensor([1.0, -1.0]), torch.tensor([0.3, -0.2], **DOUBLE)
    )


def model(observations, skew_prior=None, num_draws=8192):
    return SkewGP(
        X,
        observations,
        likelihood=MixedLikelihood(NumericLikelihood(noise=R), ProbitAffineLikelihood()),
        covar_module=kernel(),
        mean_module=mean(),
        skew_prior=skew_prior,
        draw_settings=DrawSettings(num_draws=num_draws),
    )


def orthant(truncation, covariance):
    """`Phi(truncation; covariance)` by scipy."""
    distribution = multivariate_normal(
        cov=covariance.numpy(), maxpts=2_000_000, abseps=1e-10, releps=1e-10, allow_singular=True
    )
    return float(distribution.cdf(truncation.numpy()))


@torch.no_grad()
def of_prior(points, skew=True):
    """The papers' `xi`, `Omega`, `Delta`, `gamma` and `Gamma` of the prior (classification, equation (14))."""
    xi, omega = mean()(points).detach(), kernel()(points).to_dense()
    if not skew:
        return xi, omega, torch.zeros(len(points), 0, **DOUBLE), torch.zeros(0, **DOUBLE), torch.zeros(0, 0, **DOUBLE)
    skew_prior, scale = prior(), float(kernel().outputscale)
    phases, pseudo_points = skew_prior.phases, skew_prior.pseudo_points
    delta = kernel()(points, pseudo_points).to_dense() / scale * phases
    gamma = phases.unsqueeze(-1) * kernel()(pseudo_points).to_dense() / scale * phases
    return xi, omega, delta, skew_prior.truncation.detach(), gamma


def given_probit(xi, omega, delta, gamma, Gamma):
    """Lemma 2 and Theorem 3.2 at the training points, as printed; after numbers Theorem 3.3."""
    D = torch.diag(omega.diagonal().sqrt())
    omega_bar = torch.linalg.solve(D, torch.linalg.solve(D, omega).mT).mT
    cross = delta.mT @ D @ W.mT
    new_Gamma = torch.cat([torch.cat([Gamma, cross], -1), torch.cat([cross.mT, W @ omega @ W.mT + SIGMA], -1)])
    return xi, omega, torch.cat([delta, omega_bar @ D @ W.mT], -1), torch.cat([gamma, Z + W @ xi]), new_Gamma


def given_numbers(xi, omega, delta, gamma, Gamma):
    """Lemma 1 and Theorem 3.1 at the training points, as printed."""
    D = torch.diag(omega.diagonal().sqrt())
    selection = torch.eye(4, **DOUBLE)[C]
    S = selection @ omega @ selection.mT + R * torch.eye(2, **DOUBLE)
    gain = torch.linalg.solve(S, selection @ omega).mT
    cross = selection @ D @ delta
    new_omega = omega - gain @ selection @ omega
    scale = torch.diag(new_omega.diagonal().rsqrt())
    return (
        xi + gain @ (Y - selection @ xi),
        new_omega,
        scale @ (D @ delta - gain @ cross),
        gamma + cross.mT @ torch.linalg.solve(S, Y - selection @ xi),
        Gamma - cross.mT @ torch.linalg.solve(S, cross),
    )


PROBIT, NUMBERS = AffineProbit(W, Z, SIGMA), Numeric(Y, index=C)


@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize(
    ("observations", "steps"),
    [
        ([], []),
        ([PROBIT], [given_probit]),
        ([NUMBERS], [given_numbers]),
        ([NUMBERS, PROBIT], [given_numbers, given_probit]),
        ([PROBIT, NUMBERS], [given_numbers, given_probit]),  # numbers first, whatever the order of observations
    ],
)
def test_parameters(observations, steps, skew):
    expected = of_prior(X, skew)
    for step in steps:
        expected = step(*expected)
    found = sun_parameters(model(observations or None, prior() if skew else None), X)
    for got, want in zip(found, expected, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize("kind", ["numbers", "probit", "mixed"])
def test_evidence(kind, skew):
    """Corollaries 1-3: a normal density times a ratio of two orthant probabilities."""
    observations = {"numbers": [NUMBERS], "probit": [PROBIT], "mixed": [NUMBERS, PROBIT]}[kind]
    found = model(observations, prior() if skew else None)
    truth = 0.0
    if kind != "probit":
        xi, omega, *_ = of_prior(X)
        S = omega[C][:, C] + R * torch.eye(2, **DOUBLE)
        truth += float(multivariate_normal(xi[C].numpy(), S.numpy()).logpdf(Y.numpy()))
    parameters = sun_parameters(found, X)
    if len(parameters.truncation):
        truth += math.log(orthant(parameters.truncation, parameters.latent_covariance))
    if skew:
        *_, gamma, Gamma = of_prior(X)
        truth -= math.log(orthant(gamma, Gamma))
    exact = found.log_marginal_likelihood("exact")
    assert abs(float(exact.value) - truth) < 1e-6 + 4 * float(exact.standard_error)
    assert abs(float(found.log_marginal_likelihood("ep").value) - truth) < 0.03
    assert abs(float(found.log_marginal_likelihood(corrected_log_normalizer).value) - truth) < 0.005


def density(parameters, value):
    """The papers' density of a unified skew-normal scalar."""
    xi, omega, delta, gamma, Gamma = (p.squeeze() if p.numel() == 1 else p for p in parameters)
    delta = delta.reshape(-1)
    z = (value - float(xi)) / math.sqrt(float(omega))
    normal = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi * float(omega))
    shifted = gamma + delta * z
    return normal * orthant(shifted, Gamma - torch.outer(delta, delta)) / orthant(gamma, Gamma)


def test_marginals_and_affine_maps():
    """Closure: a marginal drops rows; an affine map acts on location, scale and the covariance with the rows."""
    found = model(PROBIT, prior())
    joint, single = sun_parameters(found, NEW_X), sun_parameters(found, NEW_X[1:2])
    torch.testing.assert_close(single.location, joint.location[1:2])
    torch.testing.assert_close(single.skewness, joint.skewness[1:2])
    torch.testing.assert_close(single.latent_covariance, joint.latent_covariance)
    weight = torch.tensor([[1.0, -2.0, 0.5]], **DOUBLE)
    mapped = found.posterior(NEW_X).affine(weight)
    truncated = found.draws.rows - found.row_model(found.forward(found.train_inputs[0])).truncated_normal.mean
    D = torch.diag(joint.scale.diagonal().sqrt())
    gain = torch.linalg.solve(joint.latent_covariance, (D @ joint.skewness).mT).mT
    expected = weight @ (joint.location + gain @ truncated.mean(0))
    torch.testing.assert_close(mapped.mean.flatten(), expected)


def test_two_sided_and_upper_rows():
    """An interval is two rows of a singular latent covariance, an upper bound a row of the other sign."""
    likelihood = NumericLikelihood(noise=R)
    inf = torch.inf
    found = SkewGP(X, Censored([-0.5, -inf], [0.8, 0.1]), likelihood, kernel(), mean())
    parameters = sun_parameters(found, NEW_X)
    assert parameters.skewness.shape == (3, 3)
    torch.testing.assert_close(parameters.skewness[:, 0], -parameters.skewness[:, 1])
    assert torch.linalg.matrix_rank(parameters.latent_covariance) == 2
    generator = np.random.default_rng(0)
    G = found.row_model(found.forward(X)).truncated_normal.gamma.detach().numpy()
    u = generator.multivariate_normal([0.3, 0.3], G, 200_000)
    share = ((u[:, 0] > -0.5) & (u[:, 0] <= 0.8) & (u[:, 1] <= 0.1)).mean()
    value = orthant(parameters.truncation, parameters.latent_covariance)
    assert abs(value - share) < 4 * math.sqrt(share / 200_000)


def test_botorch_class():
    """BoTorch's density of the same distribution; it takes no latent part of dimension zero."""
    found = SkewGP(X, Preference(torch.tensor([[0, 1], [3, 2]])), covar_module=kernel())
    distribution, parameters = unified_skew_normal(found, NEW_X[:1]), sun_parameters(found, NEW_X[:1])
    for value in (-1.0, 0.2, 1.5):
        got = float(distribution.log_prob(torch.tensor([value], **DOUBLE)).detach().exp())
        assert abs(got - density(parameters, value)) < 1e-3
    with pytest.raises(UnsupportedError, match="moment_matched"):
        unified_skew_normal(SkewGP(X, None, covar_module=kernel()), NEW_X)


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_parameters_in_single_precision_are_those_in_double():
    """Sixty points on a line have a covariance that is positive definite in double precision only."""
    points = torch.linspace(0, 1, 60).unsqueeze(-1)
    labels = Binary((points.squeeze(-1) > 0.4).repeat(2), index=torch.arange(60).repeat(2))
    found = sun_parameters(SkewGP(points, labels), points[:2])
    expected = sun_parameters(SkewGP(points.double(), labels), points[:2].double())
    for got, want in zip(found, expected, strict=True):
        assert got.dtype == torch.float64
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)

"""The evidence of parts: what divides it, and the error of what divides it."""

import math

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from scipy import stats
from tensors import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.models.row_model import log_normalizer
from botorch_skewgp.observations import Binary, Numeric
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

METHODS = ("exact", "ep", corrected_log_normalizer)


X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)


def skewed(observations):
    prior = SkewPrior(tensor(0.1, 0.4, 0.9).unsqueeze(-1), tensor(1.0, -1.0, 1.0), tensor(-1.0, 0.0, -0.5))
    model = SkewGP(X, observations, skew_prior=prior)
    model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = 3.0, 0.3
    return model


def test_error_counts_the_normaliser_of_the_skew_prior():
    """The two normalisers are estimated apart, so that their variances add up."""
    model = skewed(Binary([1, 0], index=[0, 3]))
    evidence = model.evidence(model.eval().forward(X))
    of_rows, of_prior = bridge_log_normalizer(evidence.rows, model.draws), bridge_log_normalizer(evidence.prior_rows)
    value, error = model.log_marginal_likelihood("exact")
    assert of_prior.standard_error > 0.5 * of_rows.standard_error > 0  # or the test says nothing
    assert float(error) ** 2 == pytest.approx(float(of_rows.standard_error**2 + of_prior.standard_error**2))
    assert float(value) == pytest.approx(float(of_rows.value - of_prior.value))


@pytest.mark.parametrize("method", METHODS)
def test_a_skew_prior_without_data_has_evidence_one(method):
    value, error = skewed(None).log_marginal_likelihood(method)
    assert abs(float(value)) <= (4 * float(error) if method == "exact" else 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_alone_have_the_density_of_a_normal_vector(method):
    model = SkewGP(X, Numeric([0.3, -0.2], noise=0.1, index=[1, 4]))
    with torch.no_grad():
        covariance = model.covar_module(X[[1, 4]]).to_dense() + 0.1 * torch.eye(2)
    value, error = model.log_marginal_likelihood(method)
    assert float(value) == pytest.approx(stats.multivariate_normal([0, 0], covariance.numpy()).logpdf([0.3, -0.2]))
    assert error == 0


@pytest.mark.parametrize("method", METHODS)
def test_one_row_has_the_probability_of_an_interval(method):
    rows = TruncatedNormal(tensor(0.3), tensor(1.5).unsqueeze(-1), tensor(-0.2), tensor(0.9), tensor(0.5))
    value, error = log_normalizer(rows, method)
    wanted = math.log(stats.norm.cdf(0.6 / 2**0.5) - stats.norm.cdf(-0.5 / 2**0.5))
    assert abs(float(value) - wanted) < (4 * float(error) if method == "exact" else 1e-8)
    assert (error is None) == (method != "exact")


def test_unknown_method_is_refused_with_and_without_rows():
    for model in (SkewGP(X), skewed(None)):
        with pytest.raises(UnsupportedError, match="got 'laplace'"):
            model.log_marginal_likelihood("laplace")

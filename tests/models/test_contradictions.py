"""Rows without noise that the kernel all but excludes are named; likely ones are not."""

import math
import warnings

import pytest
import torch

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import ContradictionError, ContradictionWarning
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary, Numeric, Preference, Slope
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.rounding

POINTS = [[0.3], [0.3001], [0.7]]


def model_of(observations, points=POINTS, lengthscale=0.5, **kwargs):
    covar_module = rbf_kernel(1.0, lengthscale)
    X = torch.tensor(points, dtype=torch.float64)
    settings = DrawSettings(num_draws=64)
    return SkewGP(X, observations, covar_module=covar_module, draw_settings=settings, **kwargs).eval()


def numbers(values, **kwargs):
    return Numeric(values, noise=[0.0] * len(values), **kwargs)


def query(model):
    return model.posterior(torch.tensor([[0.5]], dtype=torch.float64)).mean


NEAR = [0.0, 2.0] * 4
STEEP = numbers([0.0, 1.0, 0.2])  # a slope of 10,000, where 2 is ordinary


@pytest.mark.parametrize(
    ("observations", "where"),
    [
        (STEEP, r"rows \[0, 1\] of train_X"),
        ([STEEP, Binary([1], index=[2])], r"rows \[0, 1\] of train_X"),
        # more rows than columns
        ([STEEP, Binary([1, 0, 1, 1, 1], index=[2, 2, 2, 0, 1])], r"rows \[0, 1\] of train_X"),
        # some noise, but work goes by the columns, whose jitter is more than what tells these points apart
        ([Numeric(NEAR, noise=[1e-6] * 8, index=[0, 1] * 4)], r"rows \[0, 1\] of train_X"),
        ([Numeric(NEAR[:2], noise=[1e-6] * 2, index=[0, 1]), Binary([1] * 40, index=[2] * 40)], r"rows \[0, 1\] of"),
    ],
)
def test_what_the_kernel_excludes_is_named(observations, where):
    model = model_of(observations)
    with pytest.warns(ContradictionWarning, match=where):
        query(model)
    with warnings.catch_warnings():  # once
        warnings.simplefilter("error")
        query(model)
        model.log_marginal_likelihood("ep")


def test_evidence_without_a_posterior_warns_too():
    with pytest.warns(ContradictionWarning, match="jitter of 1e-12"):
        model_of(STEEP).log_marginal_likelihood("ep")


def test_what_answers_may_be_mistakes_is_said():
    duels = [Preference([[0, 2], [2, 0], [0, 2], [0, 2], [0, 2]])]
    with pytest.warns(ContradictionWarning, match="a rate of slips, slip="):
        query(model_of([STEEP, *duels]))
    likelihood = MixedLikelihood(NumericLikelihood(), PreferenceLikelihood(noise=1e-4, slip=0.1))
    model = model_of([numbers([0.5, 1.5, -0.5]), *duels], likelihood=likelihood)
    with pytest.warns(ContradictionWarning, match=r"Answers \[4\] are probably slips"):
        query(model)
    with pytest.warns(ContradictionWarning, match="shorter lengthscale.$"):
        query(model_of(STEEP))


def skew_prior(distance):
    points = torch.tensor([[0.3], [0.3 + distance]], dtype=torch.float64)
    return SkewPrior(points, torch.tensor([-1.0, 1.0]), torch.tensor([-2.0, -2.0]))


def test_pseudo_points_are_named():
    with pytest.warns(ContradictionWarning, match=r"pseudo-points \[0, 1\] of the skew prior"):
        query(model_of(Binary([1, 0, 1]), skew_prior=skew_prior(1e-3)))


def test_normalisers_of_the_skew_prior_have_the_same_jitter():
    # steep, so that either normaliser is e^-2,000,000 , moved by one nat by the jitter; far off, a number as if alone
    number = Numeric([0.4], noise=[1.0], index=[2])
    model = model_of([Binary([1], index=[1]), number], skew_prior=skew_prior(1e-3), points=[[0.3], [20.0], [30.0]])
    with pytest.warns(ContradictionWarning):
        evidence = float(model.log_marginal_likelihood("ep").value)
    assert evidence == pytest.approx(math.log(0.5) - 0.25 * 0.4**2 - 0.5 * math.log(2 * math.pi * 2), abs=1e-3)


@pytest.mark.parametrize("lengthscale", [0.05, 0.5])
def test_smooth_numbers_without_noise_are_no_contradiction(lengthscale):
    points = torch.linspace(0, 1, 30, dtype=torch.float64)
    points = torch.cat([points, points[:3] + 1e-6])
    covar_module = rbf_kernel(1.0, lengthscale)
    with torch.no_grad():
        eigenvalues, vectors = torch.linalg.eigh(covar_module(points.unsqueeze(-1)).to_dense())
    noise = torch.randn(len(points), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = vectors @ (eigenvalues.clamp(min=0).sqrt() * noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        query(model_of(numbers(values.tolist()), points.unsqueeze(-1).tolist(), lengthscale))
        query(model_of(numbers([1.0, 1.0, 0.2]), [[0.3], [0.3], [0.7]]))  # the same stated twice
        query(model_of([Preference([[0, 1]]), Slope([0, 0], [1, 1], index=[0, 1])]))


@pytest.mark.parametrize("others", [[], [Binary([1], index=[2])]])
def test_two_numbers_for_one_value(others):
    points = [[0.3], [0.3], [0.7]]
    with pytest.raises(ContradictionError, match=r"rows \[0\] of train_X\) contradict each other.* 0 and 1 "):
        query(model_of([numbers([0.0, 1.0, 0.2]), *others], points))
    # with noise anyone may say so
    query(model_of([Numeric([0.0, 1.0, 0.2], noise=[0.0, 0.1, 0.0]), *others], points))

"""Numbers of weighted sums: Gaussian conditioning written out, what sums determine, and what is refused."""

import math
import warnings

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import ConstantKernel
from kind_cases import TEST_X, TRAIN_X, kernel, log_evidence, mean, tensor
from torch.distributions import MultivariateNormal

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.likelihoods import NumericLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import AffineProbit, Censored, Numeric, Observation, Preference
from botorch_skewgp.warpings import SinhArcsinh

EYE = torch.eye(6, dtype=torch.float64)
NOISE = 0.15  # of the likelihood
PLAIN = tensor(103.0, 97.2, 99.1, 105.5)  # at the first four points
SUMS = {  # weights of all points, values and known variances of the sums
    "parts of a whole": (torch.ones(1, 6, dtype=torch.float64), tensor(604.0), tensor(0.0)),
    "averages of cells": ([[0.5, 0.5, 0, 0, 0, 0], [0, 0, 1 / 3, 1 / 3, 1 / 3, 0]], tensor(99.0, 101.0), tensor(1, 2)),
    "differences": ([[1.0, -1, 0, 0, 0, 0], [0, 0, 0, -1, 0, 1]], tensor(6.0, -3.5), None),
    "weights of a quadrature": ([[0.1, 0.4, 0.6, 0.6, 0.4, 0.1]], tensor(220.0), tensor(0.5)),
}


def model_of(observations: Observation | list[Observation], **settings) -> SkewGP:
    likelihood = settings.pop("likelihood", None)
    return SkewGP(TRAIN_X, observations, likelihood, kernel(), mean(), **settings).eval()


def sums_of(name: str) -> Numeric:
    weights, values, noise = SUMS[name]
    return Numeric(values, noise, weights=weights)


@pytest.mark.parametrize("standardises", [False, True])
@pytest.mark.parametrize("name", SUMS)
def test_posterior_and_evidence_are_those_of_gaussian_conditioning(name, standardises):
    """With `y = W f + v` the mean is `m + K W^T S^-1 (y - W m)` and `S = W K W^T + R`, in units of the outcome."""
    plain, sums = Numeric(PLAIN, index=range(4)), sums_of(name)
    transform = Standardize(m=1) if standardises else None
    model = model_of([plain, sums], likelihood=NumericLikelihood(tensor(NOISE)), outcome_transform=transform)
    location, scale = (PLAIN.mean(), PLAIN.std()) if standardises else (0.0, 1.0)
    Z = torch.cat([TRAIN_X, TEST_X])
    K = scale**2 * model.covar_module(Z).to_dense().detach()
    m = location + scale * model.mean_module(Z).detach()
    W = torch.zeros(4 + len(sums.values), len(Z), dtype=torch.float64)
    W[:4, :4], W[4:, :6] = EYE[:4, :4], sums.weights
    learned = scale**2 * torch.full_like(W[:, 0], NOISE)
    R = torch.diag(learned if sums.noise is None else torch.cat([learned[:4], sums.noise]))
    S, y = W @ K @ W.mT + R, torch.cat([PLAIN, sums.values])
    gain = torch.linalg.solve(S, W @ K).mT
    posterior = model.posterior(Z)
    torch.testing.assert_close(posterior.mean.squeeze(-1), m + gain @ (y - W @ m), rtol=1e-9, atol=1e-7)
    torch.testing.assert_close(posterior.covariance_matrix, K - gain @ W @ K, rtol=0, atol=1e-8 * scale**2)
    law = MultivariateNormal(W @ m, S)
    assert float(law.log_prob(y)) == pytest.approx(log_evidence(model), abs=1e-6, rel=1e-9)
    left = leave_one_out(model).log_predictive
    without = [i for i in range(len(y)) if i != 4]
    of_others = MultivariateNormal((W @ m)[without], S[without][:, without])
    assert float(left[4]) == pytest.approx(float(law.log_prob(y) - of_others.log_prob(y[without])), abs=1e-5, rel=1e-7)


@pytest.mark.parametrize("noise", [None, 0.3])
@pytest.mark.parametrize("transform", [None, Standardize])
def test_weights_of_the_identity_are_plain_numbers(transform, noise):
    y = torch.cat([PLAIN, tensor(99.0, 98.5)])
    duels = Preference([[0, 1], [4, 2]])
    found = []
    for numbers in (Numeric(y, noise), Numeric(y, noise, weights=EYE), Numeric(y.flip(0), noise, weights=EYE.flip(0))):
        model = model_of(numbers, outcome_transform=transform and transform(m=1))
        posterior = model.posterior(TEST_X, observation_noise=True)
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model.train())
        values = [posterior.mean.flatten(), posterior.covariance_matrix.flatten(), mll(model(*model.train_inputs), ())]
        beside = model_of([numbers, duels], approximation="ep").posterior(TEST_X)
        found.append(torch.cat([*(value.detach().flatten() for value in values), beside.mean.detach().flatten()]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[2], found[0], rtol=1e-8, atol=1e-8)


def test_points_of_each_number_and_points_in_rows_of_all_say_the_same():
    weights, values, noise = SUMS["averages of cells"]
    of_all = Numeric(values, noise, index=[0, 1, 2, 3, 4, 5], weights=weights)
    own = [[0, 1, 5], [2, 3, 4]], [[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
    repeated = [[0, 1, 0, 3], [4, 3, 2, 3]], [[0.2, 0.5, 0.3, 0.0], [1 / 3, 0.5, 1 / 3, 1 / 3 - 0.5]]
    expected = model_of(of_all).posterior(TEST_X)
    for index, some in (own, repeated):
        posterior = model_of(Numeric(values, noise, index, some)).posterior(TEST_X)
        torch.testing.assert_close(posterior.mean, expected.mean, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(posterior.covariance_matrix, expected.covariance_matrix, rtol=1e-9, atol=1e-9)


def test_parts_add_up_to_a_whole_that_is_known():
    """With a sum of two parts and one of them, both without noise, the other is known; what is left is the jitter."""
    numbers = [Numeric([1.4], 0.0, weights=[[1.0, 1.0]], index=[1, 4]), Numeric([0.3], 0.0, index=[1])]
    posterior = model_of(numbers).posterior(TRAIN_X[[1, 4, 2]])
    torch.testing.assert_close(posterior.mean[:2].flatten(), tensor(0.3, 1.1), rtol=0, atol=1e-6)
    assert float(posterior.variance[:2].max()) < 1e-6 < float(posterior.variance[2])
    both = [*numbers, Numeric([1.5], 0.0, index=[4])]
    with pytest.warns(match="contradict each other"):
        model_of(both).posterior(TEST_X).mean  # noqa: B018
    twice = Numeric([1.4, 1.5], 0.0, weights=[[1.0, 1.0]] * 2, index=[[1, 4], [4, 1]])
    with pytest.raises(ContradictionError, match=r"\(rows \[1, 4\] of train_X\) contradict"):
        model_of(twice).posterior(TEST_X).mean  # noqa: B018


def test_differences_say_nothing_of_the_level():
    """Mean and variance of a part that is orthogonal to all differences are the prior's."""
    differences = Numeric([5.0, -2.0, 1.0], 0.1, weights=[[1.0, -1, 0], [0, 1, -1], [1, 0, -1]])
    with_level = [(kernel() + ConstantKernel()).double() for _ in range(2)]
    given = SkewGP(TRAIN_X[:3], differences, covar_module=with_level[0], mean_module=mean()).eval()
    before = SkewGP(TRAIN_X[:3], None, covar_module=with_level[1], mean_module=mean()).eval()
    far = TRAIN_X[:1] + 1e4
    one, other = given.posterior(far), before.posterior(far)
    torch.testing.assert_close(one.mean, other.mean, rtol=0, atol=1e-6)
    torch.testing.assert_close(one.variance, other.variance, rtol=1e-6, atol=1e-6)


def test_narrow_intervals_of_affine_probits_are_sums():
    weights, values, noise = SUMS["averages of cells"]
    values, width = values - 100, 1e-4
    probits = AffineProbit(weights, 0.0, torch.diag(noise), values - width / 2, values + width / 2)
    one, other = model_of(Numeric(values, noise, weights=weights)), model_of(probits, approximation="ep")
    for name in ("mean", "covariance_matrix"):
        found, expected = (getattr(model.posterior(TEST_X), name) for model in (one, other))
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert log_evidence(one) + 2 * math.log(width) == pytest.approx(log_evidence(other), abs=1e-5)


@pytest.mark.parametrize("transform", [None, Standardize])
def test_density_of_a_new_sum_is_that_of_the_posterior(transform):
    """The density of a sum is normal around that of the posterior's mean, with its variance and the noise."""
    model = model_of(Numeric(PLAIN, 0.5, index=range(4)), outcome_transform=transform and transform(m=1))
    new = Numeric([35.0], 0.7, weights=[[0.7, -0.4, 0.05]])
    posterior = model.posterior(TEST_X[:3]).affine(new.weights)
    expected = torch.distributions.Normal(posterior.mean, (posterior.variance + 0.7).sqrt()).log_prob(new.values)
    found = model.log_predictive_probability(TEST_X[:3], new)
    torch.testing.assert_close(found, expected.squeeze(), rtol=1e-6, atol=1e-6)


def test_inducing_points_at_all_points_lose_nothing_of_wide_sums_and_numbers():
    X = torch.linspace(0, 3, 12, dtype=torch.float64).unsqueeze(-1)
    observations = [
        Numeric([1.4, -0.3], 0.2, weights=torch.linspace(-1, 2, 24).view(2, 12).double()),
        Numeric([0.2, 0.7], 0.1, index=[3, 7]),
        Preference([[0, 11]]),
    ]
    models = [SkewGP(X, observations, covar_module=kernel(), approximation="ep", inducing_points=Z) for Z in (None, X)]
    one, other = (model.posterior(TEST_X) for model in models)
    torch.testing.assert_close(other.mean, one.mean, rtol=0, atol=1e-5)
    torch.testing.assert_close(other.covariance_matrix, one.covariance_matrix, rtol=0, atol=1e-5)


def test_new_numbers_have_the_noise_of_numbers_of_points():
    weights = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 2.0]]
    mixed = Numeric([1.0, 2.0, 0.4, 1.7], [0.2, 0.4, 7.0, 5.0], weights=weights, index=[2, 3])
    for numbers in (mixed, [mixed, Numeric([0.1], weights=[[1.0, 1.0]])]):
        model = model_of(numbers)
        noisy, plain = (model.posterior(TEST_X, observation_noise=noise) for noise in (True, False))
        torch.testing.assert_close(noisy.variance - plain.variance, torch.full_like(plain.variance, 0.3))
    assert [mark.points.tolist() for mark in mixed.marks()] == [[2, 3]]
    assert [mark.values.tolist() for mark in mixed.marks()] == [[1.0, 2.0]]


def test_scales_are_learned_from_numbers_of_points_or_from_censored_readings():
    sums = Numeric([200.0, 103.0], weights=[[1.0, 1.0], [0.0, 1.0]])
    beside = {
        "numbers": ([Numeric([97.0, 99.0])], tensor(103.0, 97.0, 99.0)),
        "readings": ([Censored([90.0, 100.0], [98.0, 104.0])], tensor(103.0)),
    }
    for others, numbers in beside.values():
        model = model_of([sums, *others], outcome_transform=Standardize(m=1))
        assert model.outcome_scale.location == pytest.approx(float(numbers.mean()))
    bounds = model_of([sums_of("differences"), *beside["readings"][0]], outcome_transform=Standardize(m=1))
    assert bounds.outcome_scale.location == pytest.approx(98.0)


REFUSED = {
    "scales of sums alone": (
        lambda: model_of(sums_of("averages of cells"), outcome_transform=Standardize(m=1)),
        InputDataError, "Standardize learns from numbers of single points"),
    "a warping": (
        lambda: model_of(sums_of("differences"), likelihood=NumericLikelihood(warping=SinhArcsinh())),
        UnsupportedError, "linear in the outcome, which a warping is not"),
    "equal points": (
        lambda: SkewGP(TRAIN_X[[0, 0]], Numeric([1.0], 0.0, weights=[[1.0, -1.0]])).posterior(TEST_X),
        InputDataError, r"Weights of numbers \[0\] add up to zero at equal points"),
    "a row of zeros": (
        lambda: Numeric([1.0, 2.0], weights=[[1, 1], [0, 0]]), InputDataError, r"zero in all of rows \[1\]"),
    "weights that cancel": (
        lambda: Numeric([1.0], weights=[[1, -1, 0]], index=[[2, 2, 3]]), InputDataError, "weights is zero"),
    "a single row": (lambda: Numeric([1.0], weights=[1.0, 1.0]), InputDataError, r"Write weights=\[\[...\]\]"),
    "truth values": (lambda: Numeric([1.0], weights=[[True, False]]), InputDataError, "m x k tensor of real numbers"),
    "not finite": (lambda: Numeric([1.0], weights=[[1.0, math.inf]]), InputDataError, r"not in rows \[0\]"),
    "another number of rows": (
        lambda: Numeric([1.0, 2.0], weights=[[1.0, 1.0]]), InputDataError, "each of the 2 entries of values; got 1"),
    "another number of points": (
        lambda: Numeric([1.0], weights=[[1.0, 1.0]], index=[0, 1, 2]), InputDataError, r"got shape \(3,\)"),
    "points beyond the data": (
        lambda: model_of(Numeric([1.0], weights=[[1.0, 1.0]], index=[0, 6])), InputDataError, "refers to row 6"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    act, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        act()


def test_sums_of_a_function_beyond_the_unit_variance_are_warned_of():
    """A sum bounds the function from below: it is at least `|y| / sum |w|` somewhere."""
    with pytest.warns(InputDataWarning, match=r"must be large somewhere, but default noise and kernel"):
        SkewGP(TRAIN_X / 3, Numeric([12.0, -0.5], weights=[[1.0, -2.0], [0.5, 0.5]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SkewGP(TRAIN_X / 3, Numeric([8.0, -0.5], weights=[[1.0, -2.0], [0.5, 0.5]]))
        SkewGP(TRAIN_X / 3, [Numeric([12.0], weights=[[1.0, -2.0]]), Numeric(PLAIN)], outcome_transform=Standardize(1))

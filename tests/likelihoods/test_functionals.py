"""Slopes in a model: several inputs against simulation, transforms, conditioning, refusals; rows of affine probits."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import Log10, Normalize
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.means import ConstantMean, LinearMean

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    PreferenceLikelihood,
    ProbitAffineLikelihood,
    SlopeLikelihood,
)
from botorch_skewgp.observations import AffineProbit, LabelPreference, Numeric, Preference, Slope
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings

SETTINGS = DrawSettings(num_draws=2048)
FEW = DrawSettings(num_draws=64, num_chains=2, min_effective_size=1)
X = torch.tensor([[0.1, 0.2], [0.4, 0.9], [0.8, 0.3], [0.6, 0.6]], dtype=torch.float64)
TEST_X = torch.tensor([[0.1, 0.2], [0.5, 0.5], [0.9, 0.9]], dtype=torch.float64)
LENGTHSCALE = torch.tensor([0.5, 0.8], dtype=torch.float64)
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def kernel() -> RBFKernel:
    covar_module = RBFKernel(ard_num_dims=2).double()
    covar_module.lengthscale = LENGTHSCALE
    return covar_module


def model_of(*observations, noise=0.0, settings=SETTINGS, **options) -> SkewGP:
    likelihood = MixedLikelihood(NumericLikelihood(noise=0.1), PreferenceLikelihood(noise=0.3), SlopeLikelihood(noise))
    return SkewGP(
        options.pop("train_X", X),
        list(observations),
        likelihood=options.pop("likelihood", likelihood),
        covar_module=options.pop("covar_module", kernel()),
        mean_module=options.pop("mean_module", ConstantMean().double()),
        draw_settings=settings,
        **options,
    ).eval()


def finite_difference_covariance(points, at, dims, h=1e-4):
    """Of values at `points` and slopes at `at`, by differences of the kernel's values."""
    step = h * torch.eye(2, dtype=torch.float64)[dims]
    Z = torch.cat([points, at + step, at - step])
    n, c = len(points), len(at)
    eye = torch.eye(c, dtype=torch.float64) / (2 * h)
    A = torch.block_diag(torch.eye(n, dtype=torch.float64), torch.cat([eye, -eye], dim=-1))
    scaled = (Z.unsqueeze(-2) - Z.unsqueeze(-3)) / LENGTHSCALE
    return A @ torch.exp(-0.5 * scaled.square().sum(-1)) @ A.mT


DIMS, SIGNS, INDEX = torch.tensor([0, 1, 1, 0]), torch.tensor([1, -1, 1, 1]), torch.tensor([0, 0, 3, 2])


def test_several_inputs_and_signs_against_rejection(generator):
    noise = 0.5
    model = model_of(Slope(DIMS, SIGNS, index=INDEX), noise=noise)
    covariance = finite_difference_covariance(TEST_X, X[INDEX], DIMS)
    covariance += 1e-9 * torch.eye(len(covariance), dtype=torch.float64)
    f = torch.randn(400_000, len(covariance), generator=generator, dtype=torch.float64)
    f = f @ torch.linalg.cholesky(covariance).mT
    slopes = f[:, 3:] + math.sqrt(noise) * torch.randn(len(f), 4, generator=generator, dtype=torch.float64)
    kept = f[(slopes * SIGNS > 0).all(-1), :3]
    posterior = model.posterior(TEST_X)
    mean, sd = posterior.mean.detach().squeeze(-1), posterior.variance.detach().squeeze(-1).sqrt()
    error = (1 / len(kept) + 1 / float(model.draws.effective_size.min())) ** 0.5
    assert ((kept.mean(0) - mean) / sd).abs().max() < 4.5 * error
    assert ((kept.std(0) - sd) / sd).abs().max() < 4.5 * error
    third = ((kept - kept.mean(0)) / kept.std(0)).pow(3)
    assert (third.mean(0) - posterior.skewness.detach().squeeze(-1)).abs().max() < 4.5 * float(
        third.std(0).max()
    ) * error
    share = len(kept) / len(f)
    counted = math.sqrt((1 - share) / len(kept))
    exact = model.log_marginal_likelihood("exact")
    assert abs(math.log(share) - exact.value) < 4.5 * math.hypot(counted, exact.standard_error)
    assert abs(math.log(share) - model.log_marginal_likelihood("ep").value) < 0.05 + 4.5 * counted


def test_a_mean_that_rises_counts():
    mean = LinearMean(2).double()
    mean.weights.data = torch.tensor([[3.0], [0.0]], dtype=torch.float64)
    rises = model_of(Slope(0, 1, index=[1]), mean_module=mean)
    # the slope has mean 3 and standard deviation 1 / 0.5
    expected = torch.special.log_ndtr(torch.tensor(3 / 2.0, dtype=torch.float64)).item()
    torch.testing.assert_close(rises.log_marginal_likelihood("ep").value.item(), expected)


@pytest.mark.parametrize("transform", ["normalize", "log"])
def test_signs_are_those_in_the_inputs_as_given(transform):
    scale = torch.tensor([10.0, 500.0], dtype=torch.float64)
    if transform == "normalize":
        own = {"train_X": X * scale, "input_transform": Normalize(2, bounds=BOUNDS * scale)}
        points = TEST_X * scale
    else:
        own = {"train_X": 10**X, "input_transform": Log10(indices=[0, 1])}
        points = 10**TEST_X
    slope = Slope(DIMS, SIGNS, index=INDEX)
    transformed, plain = model_of(slope, **own), model_of(slope)
    torch.testing.assert_close(transformed.posterior(points).mean, plain.posterior(TEST_X).mean, atol=1e-6, rtol=1e-6)


def test_duplicates_say_nothing_new():
    once, twice = (model_of(Slope(0, 1, index=[1] * k), Slope(1, 1, index=[0])) for k in (1, 2))
    first, second = (m.posterior(TEST_X) for m in (once, twice))
    error = math.sqrt(2 / float(twice.draws.effective_size.min()))
    assert ((first.mean - second.mean).abs() < 4.5 * error * first.variance.sqrt()).all()
    for method in ("exact", "ep", corrected_log_normalizer):
        values = [float(m.log_marginal_likelihood(method).value) for m in (once, twice)]
        assert values[0] == pytest.approx(values[1], abs=1e-9)
    alone = model_of(Slope(0, 1, index=[1] * 3)).log_marginal_likelihood("ep").value
    assert float(alone) == pytest.approx(math.log(0.5), abs=1e-6)
    noisy = model_of(Slope(0, 1, index=[1] * 2), noise=0.3).log_marginal_likelihood("ep").value
    assert float(noisy) < math.log(0.5) - 0.05  # two readings, each with noise of its own


def test_contradictions_are_refused_and_noise_reconciles_them():
    both = Slope([1, 0, 0], [1, 1, -1], index=[0, 1, 1])
    with pytest.raises(InputDataError, match=r"Slopes \[1, 2\] contradict each other: .* in input 0 at one point"):
        model_of(both)
    assert model_of(Slope(0, [1, -1], index=[1, 1]), noise=0.1).posterior(TEST_X).mean.abs().max() < 0.2
    assert model_of(Slope([0, 1], [1, -1], index=[1, 1]), settings=FEW).posterior(TEST_X).mean.isfinite().all()


def test_what_is_refused():
    slope = Slope(0, 1, index=[0])
    with pytest.raises(InputDataError, match="cannot share a model with other kinds"):
        SkewGP(X, [slope, LabelPreference([[0, 1]], 2, index=[0])])
    with pytest.raises(UnsupportedError, match="no slopes"):
        model_of(slope, covar_module=MaternKernel(nu=0.5).double()).posterior(X)
    with pytest.raises(InputDataError, match="noise must be a finite number of at least 0"):
        SlopeLikelihood(-1.0)
    alone = SkewGP(X, slope, draw_settings=FEW)
    with pytest.raises(UnsupportedError, match="cannot be predicted or drawn"):
        alone.predictive(X)
    with pytest.raises(UnsupportedError, match="no single noise level"):
        alone.posterior(X, observation_noise=True)
    with pytest.raises(UnsupportedError, match="no single noise level"):
        alone.fantasize(X, SobolQMCNormalSampler(torch.Size([2])))


@pytest.mark.parametrize("kind", ["numbers", "duels"])
def test_fantasies_beside_slopes_are_conditioning(kind):
    """In closed form on the old draws as by drawing anew."""
    model = model_of(Slope(DIMS, SIGNS, index=INDEX), Numeric([0.3], index=[1]), settings=DrawSettings(num_draws=8192))
    new_X = torch.tensor([[0.3, 0.4], [0.7, 0.8]], dtype=torch.float64)
    if kind == "numbers":
        fantasy = model.condition_on_observations(new_X.unsqueeze(0), torch.tensor([[[0.8], [0.2]]]).double())
        anew = model.condition_on_observations(new_X, Numeric([0.8, 0.2]))
    else:
        fantasy = model.condition_on_observations(new_X.unsqueeze(0), torch.tensor([[[0, 1]]]))
        anew = model.condition_on_observations(new_X, Preference([[0, 1]]))
    first, second = fantasy.posterior(TEST_X), anew.posterior(TEST_X)
    error = (first.mean.squeeze(0) - second.mean) / second.variance.sqrt()
    assert error.abs().max() < 0.1
    assert (first.variance.squeeze(0) / second.variance - 1).abs().max() < 0.1


def test_predictions_are_by_kind_of_what_can_be_predicted_also_if_it_is_one_kind():
    model = SkewGP(X, [Slope(DIMS, SIGNS, index=INDEX), Preference([[0, 1]])], draw_settings=FEW)
    predicted = model.predictive(TEST_X[:2])
    duel = predicted[Preference]
    assert len(predicted) == 1
    alone = model.likelihood.for_kind(Preference)(model.latent_posterior(TEST_X[:2])).probs
    assert torch.equal(duel.probs, alone)


WEIGHT = torch.tensor([[1.0, -0.5, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    "covariance",
    [
        torch.zeros(3, 3),
        0.7 * torch.eye(3),
        torch.ones(3, 3),  # one noise for all
        torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.5]]),
        torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        torch.diag(torch.tensor([0.0, 1.0, 2.0])),
    ],
)
def test_rows_have_the_covariance_given(covariance):
    rows = ProbitAffineLikelihood().rows(AffineProbit(WEIGHT, 0.0, covariance), X)
    found = torch.diag(rows.noise) + rows.noise_covariance
    assert torch.allclose(found, covariance.double(), rtol=0, atol=1e-12)
    assert (rows.noise >= 0).all()


def test_rows_refer_to_the_points_named():
    observation = AffineProbit(WEIGHT, 0.0, torch.eye(3), index=torch.tensor([4, 0, 2]))
    f = torch.tensor([1.0, 10.0, 100.0, 1e3, 1e4], dtype=torch.float64)
    rows = ProbitAffineLikelihood().rows(observation, X)
    assert torch.allclose(rows.mean(f), WEIGHT @ f[[4, 0, 2]])
    assert torch.allclose(rows.weight(5) @ f, WEIGHT @ f[[4, 0, 2]])

"""The skew prior: its distribution against rejection, its limits, its normaliser, and learning it."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import ScaleKernel
from gpytorch.means import ConstantMean

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary, Censored, Numeric, Slope
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.rounding

X = torch.tensor([[0.0], [0.8], [1.7], [2.4]], dtype=torch.float64)
NEW_X = torch.tensor([[0.3], [1.0], [2.0], [4.0]], dtype=torch.float64)
POINTS = torch.tensor([[0.5], [1.9]], dtype=torch.float64)
LIMIT = 4.5


def t(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def kernel() -> ScaleKernel:
    return rbf_kernel(1.5, 0.7)


def mean() -> ConstantMean:
    mean_module = ConstantMean().double()
    mean_module.initialize(constant=t(0.4)[0])
    return mean_module


def build(observations=None, prior: SkewPrior | None = None, num_draws: int = 2048, **kwargs) -> SkewGP:
    return SkewGP(
        X,
        observations,
        covar_module=kernel(),
        mean_module=mean(),
        skew_prior=prior,
        draw_settings=DrawSettings(num_draws=num_draws, seed=1),
        **kwargs,
    )


def log_evidence(model: SkewGP) -> torch.Tensor:
    return model.log_marginal_likelihood("ep").value


def by_rejection(phases: torch.Tensor, truncation: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draws of the prior at the new points: Gaussian draws whose values at the pseudo-points have the right signs."""
    s = len(phases)
    Z = torch.cat([NEW_X, POINTS[:s]])
    K = 1.5 * torch.exp(-0.5 * (Z - Z.mT).square() / 0.49)
    f = 0.4 + torch.randn(400_000, len(Z), dtype=Z.dtype, generator=generator) @ torch.linalg.cholesky(K).mT
    standardised = (f[:, 4:] - 0.4) / 1.5**0.5
    return f[(phases * standardised + truncation > 0).all(-1), :4]


@pytest.mark.parametrize(
    ("phases", "truncation"),
    [
        ([1.0], [0.0]),
        ([-1.0], [-0.8]),
        ([1.0, -1.0], [0.3, -0.5]),
        ([-1.0, -1.0], [0.0, 1.0]),
    ],
)
def test_prior_against_rejection(phases, truncation, generator):
    phases, truncation = t(*phases), t(*truncation)
    model = build(prior=SkewPrior(POINTS[: len(phases)], phases, truncation), num_draws=4096)
    f = by_rejection(phases, truncation, generator)
    posterior = model.posterior(NEW_X)
    means = posterior.component_means.detach()
    size, sd = float(model.draws.effective_size.min()), f.std(0)
    error = (means.var(-1) / size + sd.square() / len(f)).sqrt()
    assert ((posterior.mean.squeeze(-1) - f.mean(0)).abs() < LIMIT * error + 1e-9).all()
    # moments beyond the second: errors of a normal sample's, which these nearly are, at the least effective size
    least = 1 / size + 1 / len(f)
    assert ((posterior.variance.squeeze(-1).sqrt() / sd - 1).abs() < LIMIT * (0.5 * least) ** 0.5).all()
    skewness = ((f - f.mean(0)) / sd).pow(3).mean(0)
    assert ((posterior.skewness.squeeze(-1) - skewness).abs() < LIMIT * (10 * least) ** 0.5).all()
    cdf = (f <= 0.9).double().mean(0)
    assert ((posterior.cdf(0.9).squeeze(-1) - cdf).abs() < LIMIT * (0.25 * least) ** 0.5).all()


def test_a_truncation_far_away_leaves_numbers_and_slopes_as_they_are():
    told = [Numeric([0.3, -0.2], index=[0, 3]), Slope(dims=[0, 0], signs=[1, -1], index=[1, 2])]
    alone, beside = (build(told, prior) for prior in (None, SkewPrior(POINTS, [1, -1], 30.0)))
    torch.testing.assert_close(log_evidence(beside), log_evidence(alone), rtol=0, atol=1e-8)
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
    assert (
        (posterior.variance.squeeze(-1) - exact_variance).abs() < LIMIT * 1.5 * rho.square() / size**0.5 + 1e-9
    ).all()
    assert log_evidence(model).item() == pytest.approx(0, abs=1e-9)


def test_without_pseudo_points_it_is_the_gaussian_process():
    none = SkewPrior(torch.zeros(0, 1, dtype=torch.float64), t())
    for observations in (None, Numeric(t(0.1, 0.5)), Binary([1, 0, 1])):
        skewed, plain = build(observations, none), build(observations)
        assert torch.allclose(skewed.posterior(NEW_X).mean, plain.posterior(NEW_X).mean, rtol=0, atol=1e-9)
        assert torch.allclose(skewed.posterior(NEW_X).variance, plain.posterior(NEW_X).variance, rtol=0, atol=1e-9)
        assert log_evidence(skewed).item() == pytest.approx(log_evidence(plain).item(), abs=1e-9)


def test_evidence_is_divided_by_the_normaliser_of_the_prior(generator):
    """The evidence of labels is a ratio of two orthant probabilities, here counted."""
    phases, truncation = t(1.0, -1.0), t(0.3, -0.5)
    model = build(Binary([1, 0, 1, 1]), SkewPrior(POINTS, phases, truncation))
    Z = torch.cat([X, POINTS])
    K = 1.5 * torch.exp(-0.5 * (Z - Z.mT).square() / 0.49)
    root = torch.linalg.cholesky(K)
    f = 0.4 + torch.randn(1_000_000, 6, dtype=Z.dtype, generator=generator) @ root.mT
    allowed = (phases * (f[:, 4:] - 0.4) / 1.5**0.5 + truncation > 0).all(-1)
    sign = t(1.0, -1.0, 1.0, 1.0)
    likelihood = torch.special.ndtr(sign * f[allowed, :4]).prod(-1)
    expected = likelihood.mean().log()
    error = likelihood.std() / likelihood.mean() / len(likelihood) ** 0.5
    assert abs(log_evidence(model).item() - expected) < 0.05 + 4 * error


def test_the_callers_tensors_are_copied():
    points, truncation = POINTS.clone(), t(0.1, 0.2)
    prior = SkewPrior(points, t(1.0, -1.0), truncation)
    points += 1
    truncation += 1
    assert torch.equal(prior.pseudo_points, POINTS)
    assert torch.equal(prior.truncation, t(0.1, 0.2))


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
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputDataError, match=message):
        SkewPrior(*arguments)


def test_lists_will_do():
    prior = SkewPrior(POINTS.tolist(), [1, -1], [0.1, 0.2])
    same = SkewPrior(POINTS, t(1.0, -1.0), t(0.1, 0.2))
    for name, value in same.state_dict().items():
        assert torch.equal(prior.state_dict()[name], value)


def test_pseudo_points_of_another_dimension():
    with pytest.raises(InputDataError, match="pseudo_points"):
        build(prior=SkewPrior(torch.rand(2, 3, dtype=torch.float64), t(1.0, 1.0))).posterior(NEW_X)


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
    models = [
        SkewGP(
            torch.cat([near[:1], NEW_X[:1]]),
            numbers,
            covar_module=kernel(),
            mean_module=mean(),
            skew_prior=prior,
            draw_settings=DrawSettings(num_draws=4096),
        )
        for prior in (None, SkewPrior(near, t(1.0, 1.0), 50.0))
    ]
    plain, certain = (model.posterior(NEW_X) for model in models)
    assert torch.allclose(certain.variance, plain.variance, rtol=4.5 * math.sqrt(2 / 4096), atol=1e-9)

"""Challengers of the founding papers against brute force over joint samples and against closed forms."""

import math

import pytest
import torch
from acquisition_checks import BOUNDS, PAIRS, make_model, points, samples
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import InputPerturbation
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.normal import IIDNormalSampler, SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.papers.dueling import (
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)
from botorch_skewgp.truncated.draws import DrawSettings


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return make_model()


REFERENCE = torch.tensor([0.3, 0.6], dtype=torch.float64)
ACQUISITIONS = {
    "credible bound": lambda model, x: DuelingUpperCredibleBound(
        model, x, sampler=SobolQMCNormalSampler(torch.Size([128]), seed=0)
    ),
    "information gain": lambda model, x: ExpectedImprovementInformationGain(model, x),
    "thompson": lambda model, x: DuelingThompsonSampling(model, x),
}
every = pytest.mark.parametrize("name", ACQUISITIONS)


def joint_differences(model, X, N, generator):
    """Draws of `f(x) - f(x_r)` from the joint posterior at each of `b x 1 x 2` points; `N x b`."""
    posterior = model.posterior(torch.cat([X, REFERENCE.expand_as(X)], dim=-2))
    drawn = samples(posterior, N, generator)
    return drawn[..., 0] - drawn[..., 1]


# What all have in common


LABELS = SkewGP(torch.rand(3, 2).double(), Binary([1, 0, 1]), draw_settings=DrawSettings(num_draws=64))
REFUSED = [
    *((acquisition, torch.zeros(shape), "must be one point") for acquisition in ACQUISITIONS.values()
      for shape in (3, (2, 2), (1, 1, 2))),
    *((acquisition, torch.tensor([0.0, math.nan]), "finite") for acquisition in ACQUISITIONS.values()),
    *((lambda model, x, p=p: DuelingUpperCredibleBound(model, x, p), REFERENCE, r"strictly between|a finite number")
      for p in (0.0, 1.0, -1.0, math.nan)),
    *((lambda model, x, k=k: ExpectedImprovementInformationGain(model, x, k), REFERENCE, "k must be a finite number")
      for k in (-0.1, math.nan)),
    (lambda model, x: ExpectedImprovementInformationGain(LABELS, x), REFERENCE, "Preference"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "reference", "message"), REFUSED)
def test_bad_arguments_are_refused(model, make, reference, message):
    with pytest.raises(InputDataError, match=message):
        make(model, reference)


@every
def test_shapes_of_the_reference_and_one_point_at_a_time(model, name, generator):
    X, values = points(generator, 2), []
    for reference in (REFERENCE, REFERENCE.unsqueeze(0)):
        torch.manual_seed(0)
        acquisition = ACQUISITIONS[name](model, reference)
        values.append(acquisition(X))
    torch.testing.assert_close(*values)
    with pytest.raises(AssertionError, match="q=1"):
        acquisition(torch.rand(3, 2, 2, dtype=torch.float64))
    acquisition.set_X_pending(None)
    with pytest.raises(UnsupportedError, match="pending"):
        acquisition.set_X_pending(torch.rand(1, 2))


@every
def test_at_the_reference(model, name):
    """A draw of zero for sure: no failure, and the known value."""
    acquisition = ACQUISITIONS[name](model, REFERENCE)
    value = acquisition(REFERENCE.reshape(1, 1, 2))
    expected = {"information gain": 0.1 * math.log(0.5)}.get(name, 0.0)
    torch.testing.assert_close(value, torch.tensor([expected], dtype=torch.float64), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", [name for name in ACQUISITIONS if name != "thompson"])  # BoTorch's paths do not move
def test_moves_with_its_model(name, generator):
    acquisition = ACQUISITIONS[name](make_model(num_draws=64), REFERENCE)
    assert "X_reference" in acquisition.state_dict()
    single = acquisition.to(torch.float32)
    assert single.X_reference.dtype == torch.float32
    assert single(points(generator, 2).float()).dtype == torch.float32


@pytest.mark.parametrize("name", ["credible bound", "information gain"])
def test_models_that_turn_one_point_into_many_are_refused(name):
    transform = InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=torch.float64))
    model = make_model(num_draws=64, input_transform=transform)
    acquisition = ACQUISITIONS[name](model, REFERENCE)
    with pytest.raises(UnsupportedError, match="two points"):
        acquisition(torch.rand(2, 1, 2, dtype=torch.float64))


@every
def test_next_pair_takes_it_with_its_reference(model, name):
    few = {"num_restarts": 2, "raw_samples": 16}
    pair, value = next_pair(model, BOUNDS, ACQUISITIONS[name](model, REFERENCE), **few)
    assert torch.equal(pair[1], REFERENCE)
    assert not torch.equal(pair[0], REFERENCE)
    assert value.isfinite()


# Upper credible bound


def test_credible_bound_spelled_out_on_draws(model, generator):
    sampler = IIDNormalSampler(torch.Size([200]), seed=2)
    acquisition = DuelingUpperCredibleBound(model, REFERENCE, probability=0.9, sampler=sampler)
    X = points(generator, 5)
    values = acquisition(X).detach()
    posterior = model.posterior(torch.cat([X, REFERENCE.expand_as(X)], dim=-2))
    differences = sampler(posterior.affine(torch.tensor([[1.0, -1.0]]))).reshape(200, 5).detach()
    for j in range(5):
        ordered = sorted(differences[:, j].tolist())
        windows = [(ordered[i + 180] - ordered[i], ordered[i + 180]) for i in range(20)]
        assert math.isclose(float(values[j]), min(windows)[1], rel_tol=1e-12)


# Expected improvement and information gain


@pytest.mark.parametrize(
    "options", [{"noise": 1.0}, {"noise": 0.05}, {"noise": 0.3, "tie_width": 0.8, "ties_allowed": True}]
)
def test_information_gain_by_brute_force(options, generator):
    model = make_model(likelihood=PreferenceLikelihood(**options))
    X, N = points(generator, 4), 60_000
    sampler = SobolQMCNormalSampler(torch.Size([8192]), seed=0)
    value = ExpectedImprovementInformationGain(model, REFERENCE, k=0.3, sampler=sampler)(X)
    differences = joint_differences(model, X, N, generator)
    p = model.likelihood(torch.stack([differences, torch.zeros_like(differences)], dim=-1)).probs.detach()
    if "ties_allowed" not in options:
        p = torch.stack([p, 1 - p], dim=-1)
    entropy, mean = torch.special.entr(p).sum(-1), p.mean(0)
    expected = 0.3 * mean[..., 0].log() + torch.special.entr(mean).sum(-1) - entropy.mean(0)
    error = (p[..., 0] * 0.3 / mean[..., 0] - (mean.log() * p).sum(-1) - entropy).std(0) / math.sqrt(N)
    assert ((value - expected).abs() < 4.5 * error + 1e-3).all()


def test_stable_where_the_winner_is_certain(generator):
    """Noise so small that every draw's probability is 0 or 1 in floating point, on both sides."""
    model = make_model(likelihood=PreferenceLikelihood(noise=1e-5))
    acquisition = ExpectedImprovementInformationGain(model, REFERENCE)
    X = points(generator, 20).requires_grad_()
    values = acquisition(X)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    assert values.isfinite().all()
    assert gradient.isfinite().all()


def test_noise_is_that_of_the_likelihood_in_units_of_the_latent_function(generator):
    """An outcome transform rescales the posterior; probabilities must not notice."""
    g = torch.Generator().manual_seed(3)
    X = torch.rand(7, 2, generator=g, dtype=torch.float64)
    values = 5 + 10 * torch.randn(7, generator=g, dtype=torch.float64)
    standard = (values - values.mean()) / values.std()
    settings = DrawSettings(num_draws=64)

    def likelihood():
        return MixedLikelihood(PreferenceLikelihood(), NumericLikelihood())

    def build(y, **options):
        return SkewGP(X, [Preference(PAIRS), Numeric(y)], likelihood(), draw_settings=settings, **options)

    plain, scaled = build(standard), build(values, outcome_transform=Standardize(m=1))
    candidates = points(generator, 3)
    sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
    expected = ExpectedImprovementInformationGain(plain, REFERENCE, sampler=sampler)(candidates)
    value = ExpectedImprovementInformationGain(scaled, REFERENCE, sampler=sampler)(candidates)
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)
    bound = DuelingUpperCredibleBound(plain, REFERENCE, sampler=sampler)(candidates) * values.std()
    rescaled = DuelingUpperCredibleBound(scaled, REFERENCE, sampler=sampler)(candidates)
    torch.testing.assert_close(rescaled, bound, rtol=1e-5, atol=1e-5)


# Thompson sampling


def test_generators_make_paths_repeatable(model, generator):
    X = points(generator, 4)
    state = torch.get_rng_state()
    first, second, other = (
        DuelingThompsonSampling(model, REFERENCE, generator=torch.Generator().manual_seed(s))(X) for s in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, second)
    assert not torch.allclose(first, other)

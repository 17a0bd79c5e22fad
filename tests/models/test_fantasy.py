"""Fantasies: closed-form conditioning against fresh models, gradients, the tower property."""

import math
from dataclasses import replace

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.outcome import Standardize
from botorch.sampling import SobolQMCNormalSampler

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.models.conditioning import _draw, condition_mixture, open_uniforms
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Preference, Tie, Validity
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.rows import FantasyRows
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.truncated.univariate import log_interval_probability, sample_interval

TRAIN_X = torch.tensor([[0.1], [0.5], [1.1], [1.5], [2.2], [2.9]], dtype=torch.float64)
TEST_X = torch.tensor([[0.2], [1.7], [2.6]], dtype=torch.float64)
UNIT_X = TEST_X / 3
PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5]])
NUM_DRAWS = 4096
LIMIT = 4.0


def kernel():
    return rbf_kernel(1.5, 0.6)


def mixed(num_draws=NUM_DRAWS, extra=(), seed=0, train_X=TRAIN_X, **kwargs):
    """Numbers, duels and a tie; both kinds of data for conditioning are taken."""
    observations = [Preference(PAIRS), Numeric([0.3, -0.2], index=torch.tensor([0, 1])), Tie([[0, 4]]), *extra]
    likelihood = MixedLikelihood(NumericLikelihood(0.1), PreferenceLikelihood(0.5))
    settings = DrawSettings(num_draws=num_draws, seed=seed)
    return SkewGP(train_X, observations, likelihood, kernel(), draw_settings=settings, **kwargs).eval()


def normal_sampler(*shape, seed=0):
    return SobolQMCNormalSampler(torch.Size(shape), seed=seed)


@torch.no_grad()
def size_of(model):
    """Effective number of equally likely draws behind a posterior."""
    size = min(float(model.draws.effective_size.min()), model.draws.num_draws)
    probabilities = model.posterior(TEST_X).mixture.probabilities
    share = 1 / probabilities.square().sum(-1).max() / probabilities.shape[-1]
    return size * float(share)


@torch.no_grad()
def assert_same_posterior(model, fresh):
    """Mean, variance and skewness of a batch of one and of a model without batch, within Monte Carlo error."""
    a, b = model.posterior(TEST_X), fresh.posterior(TEST_X)
    assert a.mean.shape == (1, 3, 1)
    one_over_size = 1 / size_of(model) + 1 / size_of(fresh)
    deviation = (a.mean[0] - b.mean) / (b.variance * one_over_size).sqrt()
    assert deviation.abs().max() < LIMIT, deviation
    log_ratio = (a.variance[0] / b.variance).log() / math.sqrt(2 * one_over_size)
    assert log_ratio.abs().max() < LIMIT, log_ratio
    skewness = (a.skewness[0] - b.skewness) / math.sqrt(6 * one_over_size)
    assert skewness.abs().max() < LIMIT, skewness
    for level in (0.05, 0.9):
        x = b.quantile(level)
        error = math.sqrt(level * (1 - level) * one_over_size)
        assert ((a.cdf(x.unsqueeze(0))[0] - level).abs() < LIMIT * error).all()


# Conditioning one posterior on rows, against importance weights and conditional normals computed another way

DISTINCT = 3  # draws that differ
LOWER, UPPER = [0.4, -0.3], [torch.inf, 0.8]


def posterior_of_copies(num_copies):
    """A posterior at three points, whose draws are a few distinct ones, many times each."""
    Z = torch.tensor([[0.3], [1.4]], dtype=torch.float64)
    with torch.no_grad():
        K, cross, prior = (kernel()(*x).to_dense() for x in ((Z, Z), (TEST_X, Z), (TEST_X, TEST_X)))
    root = torch.linalg.inv(torch.linalg.cholesky(K + 0.2 * torch.eye(2, dtype=torch.float64))).mT
    weights = torch.tensor([[0.4, -1.0, 0.1], [0.6, 0.2, -0.9]], dtype=torch.float64)
    mixture = RepresenterMixture(weights.repeat(1, num_copies), root)
    return SkewGPPosterior(torch.full((3,), 0.2, dtype=torch.float64), cross, prior, mixture)


def two_rows(lower, upper):
    """Two functionals of three points with dependent noise."""
    weight = torch.tensor([[1.0, -1.0, 0.0], [0.5, 0.0, 1.0]], dtype=torch.float64)
    noise = torch.tensor([[0.3, 0.1], [0.1, 0.2]], dtype=torch.float64)
    bounds = (torch.tensor(bound, dtype=torch.float64) for bound in (lower, upper))
    return FantasyRows(weight, *bounds, noise)


def law_of_rows(posterior, rows):
    """For every distinct draw, the normal distribution of the values and the rows."""
    weight = torch.cat([torch.eye(3, dtype=torch.float64), rows.weight])
    covariance = weight @ posterior.gaussian_covariance @ weight.T
    covariance[3:, 3:] += rows.noise_covariance
    return (weight @ posterior.component_means[:, :DISTINCT]).T, covariance


def conditioned(posterior, rows, num_copies, generator=None):
    generator = torch.Generator().manual_seed(3) if generator is None else generator
    uniforms = torch.rand(4, DISTINCT * num_copies, dtype=torch.float64, generator=generator)
    mixture = condition_mixture(posterior, rows, uniforms)
    assert mixture.parent is posterior.mixture
    crosses = [posterior._crosses[0], posterior.gaussian_covariance]
    return SkewGPPosterior(posterior._location, crosses, posterior._prior, mixture)


def test_numbers_reweight_and_move_every_draw():
    posterior, rows = posterior_of_copies(1), two_rows([0.4, -0.3], [0.4, -0.3])
    means, covariance = law_of_rows(posterior, rows)
    after = conditioned(posterior, rows, 1)
    density = torch.distributions.MultivariateNormal(means[:, 3:], covariance[3:, 3:]).log_prob(rows.lower)
    assert torch.allclose(after.mixture.log_weights, density - density.logsumexp(0))
    gain = covariance[:3, 3:] @ torch.linalg.inv(covariance[3:, 3:])
    assert torch.allclose(after.component_means.T, means[:, :3] + (rows.lower - means[:, 3:]) @ gain.T)
    assert torch.allclose(after.gaussian_covariance, covariance[:3, :3] - gain @ covariance[3:, :3])


@torch.no_grad()
@pytest.mark.parametrize("num_answers", [None, 2, 1])
def test_intervals_and_slips_move_draws_as_rejection_does(num_answers):
    """An answer is attentive with probability 0.5, and the same as a slip with 0.3, whatever the values are."""
    num_copies, n = 20_000, 400_000
    attention, slip = (1.0, 0.0) if num_answers is None else (0.5, 0.3)
    posterior, rows = posterior_of_copies(num_copies), two_rows(LOWER, UPPER)
    means, covariance = law_of_rows(posterior, rows)
    generator = torch.Generator().manual_seed(4)
    normal = torch.randn(n, 5, dtype=torch.float64, generator=generator)
    values = means[torch.arange(n) % DISTINCT] + normal @ torch.linalg.cholesky(covariance).T
    inside = (values[:, 3:] > rows.lower) & (values[:, 3:] <= rows.upper)
    inside = inside.all(-1, keepdim=True) if num_answers == 1 else inside
    coin = torch.rand(n, inside.shape[-1], dtype=torch.float64, generator=generator)
    as_slip = (coin > attention) & (coin < attention + slip)
    kept = values[(as_slip | (inside & (coin < attention))).all(-1), :3]
    if num_answers is not None:
        rows = replace(rows, slip=torch.full((num_answers,), slip, dtype=torch.float64), attention=attention)
    after = conditioned(posterior, rows, num_copies, generator)
    size = 1 / after.mixture.probabilities.square().sum() * len(kept) / (len(kept) + DISTINCT * num_copies)
    error = kept.std(0) * (1 / len(kept) + 1 / size).sqrt()
    assert ((after.mean.squeeze(-1) - kept.mean(0)).abs() < LIMIT * error).all()
    products = (kept - kept.mean(0)).unsqueeze(-1) * (kept - kept.mean(0)).unsqueeze(-2)
    error = products.std(0) * (1 / len(kept) + 1 / size).sqrt()
    assert ((after.covariance_matrix - products.mean(0)).abs() < LIMIT * error).all()
    assert num_answers or (after.mean.squeeze(-1) - posterior.mean.squeeze(-1)).abs().max() > 0.1


# Draws in intervals that move with the bounds

BOUNDS = {
    "two-sided": (-0.4, 1.3),
    "lower": (0.3, torch.inf),
    "upper": (-torch.inf, -0.2),
    "free": (-torch.inf, torch.inf),
    "right tail": (9.0, torch.inf),
    "left tail": (-torch.inf, -30.0),
    "tail and narrow": (12.0, 12.01),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_draws_are_quantiles_and_move_with_the_bounds(name):
    lower, upper = (torch.full((5,), x, dtype=torch.float64) for x in BOUNDS[name])
    uniform = torch.tensor([1e-3, 0.2, 0.5, 0.9, 0.999], dtype=torch.float64)
    draw = _draw(lower, upper, uniform)
    levels = log_interval_probability(lower, draw).exp() / log_interval_probability(lower, upper).exp()
    if name not in ("left tail", "right tail", "tail and narrow"):  # where probabilities are no denormal numbers
        from_above = torch.minimum((levels - uniform).abs(), (levels - 1 + uniform).abs())
        assert torch.allclose(from_above, torch.zeros_like(levels), atol=1e-10)
    assert ((draw > lower) & (draw <= upper)).all()
    for i, bound in enumerate((lower, upper)):
        if not bound.isfinite().all():
            continue
        bound.requires_grad_()
        (slope,) = torch.autograd.grad(_draw(lower, upper, uniform).sum(), bound)
        bound.requires_grad_(False)
        step = torch.zeros(2, 5, dtype=torch.float64)
        step[i] = 1e-6
        shifted = [sample_interval(lower + sign * step[0], upper + sign * step[1], uniform) for sign in (1, -1)]
        assert torch.allclose(slope, (shifted[0] - shifted[1]) / 2e-6, rtol=1e-4, atol=1e-7)


# Conditioning a batch in closed form equals a new model


def surprised(extra=(), seed=0):
    """Draws are far apart in what they say about further data: their probabilities matter."""
    likelihood = MixedLikelihood(PreferenceLikelihood(0.02), NumericLikelihood(0.02))
    observations = [Preference([[0, 1], [1, 2], [2, 3]]), *extra]
    settings = DrawSettings(num_draws=8192, seed=seed)
    return SkewGP(TRAIN_X, observations, likelihood, kernel(), draw_settings=settings).eval()


# a model, points, and rounds of numbers at them or of duels between them
FURTHER = {
    "a number": (mixed, [4], [[0.7]]),
    "two numbers": (mixed, [2, 5], [[0.7, -0.9]]),
    "a duel": (mixed, [1, 5], [[[0, 1]]]),
    "a duel twice": (mixed, [1, 5], [[[0, 1], [0, 1]]]),
    "duels against each other": (mixed, [1, 5], [[[0, 1], [1, 0]]]),
    "three rounds": (mixed, [1, 5], [[[0, 1]], [[0, 1]], [[0, 1]]]),  # each with draws of its own
    "a low number": (surprised, [1], [[-1.0]]),
    "a high number": (surprised, [1], [[2.5]]),
    "an unlikely duel": (surprised, [2, 1], [[[0, 1]]]),
    "unlikely duels": (surprised, [2, 1, 5], [[[0, 1], [0, 2]]]),
}


@pytest.mark.parametrize("name", FURTHER)
def test_data_conditioned_on_in_closed_form_are_data(name):
    make, index, rounds = FURTHER[name]
    model, extra = make(), []
    for data in torch.tensor(rounds):
        numbers = data.is_floating_point()
        Y = data.double().unsqueeze(-1) if numbers else data
        model = model.condition_on_observations(TRAIN_X[index].unsqueeze(0), Y.unsqueeze(0))
        extra.append(Numeric(data, index=index) if numbers else Preference(torch.tensor(index)[data]))
    assert model.batch_shape == (1,)
    assert size_of(model) > 200
    assert_same_posterior(model, make(extra=extra, seed=1))


def test_known_variances_are_in_squared_units_of_the_outcome():
    """One number with a variance, as a batch in closed form and as data, under a transform that scales by a half."""
    model = mixed(outcome_transform=Standardize(m=1))
    assert model.outcome_scale.scale < 0.5  # so that the other unit would be seen
    X, Y, noise = (torch.tensor([[v]], dtype=torch.float64) for v in (0.8, 0.9, 0.2))
    in_closed_form = model.condition_on_observations(X.unsqueeze(0), Y.unsqueeze(0), noise=noise.unsqueeze(0))
    assert_same_posterior(in_closed_form, model.condition_on_observations(X, Y, noise=noise))
    added = model.posterior(TEST_X, observation_noise=noise).variance - model.posterior(TEST_X).variance
    torch.testing.assert_close(added, torch.full_like(added, 0.2))


def test_batch_equals_its_members():
    model = mixed(num_draws=256)
    X = TEST_X[:2].expand(4, 2, 1) + 0.1 * torch.arange(4.0, dtype=torch.float64).view(4, 1, 1)
    pairs = torch.tensor([[[0, 1]], [[1, 0]], [[0, 1]], [[1, 0]]])
    Y = torch.linspace(-1, 1, 8, dtype=torch.float64).view(4, 2, 1)
    for data in (pairs, Y):
        together = model.condition_on_observations(X, data).posterior(TEST_X)
        assert together.mean.shape == (4, 3, 1)
        for i in range(4):
            alone = model.condition_on_observations(X[i : i + 1], data[i : i + 1]).posterior(TEST_X)
            assert torch.allclose(together.mean[i], alone.mean[0])
            assert torch.allclose(together.covariance_matrix[i], alone.covariance_matrix[0])


# Nested fantasies


def test_slips_of_two_rounds_are_independent():
    """Points that say nothing of each other: what the rounds say is then uncorrelated."""
    far = torch.tensor([[0.0], [50.0]], dtype=torch.float64)
    settings = {"mean_module": gpytorch.means.ZeroMean(), "draw_settings": DrawSettings(1024)}
    model = SkewGP(far, Binary([1, 0]), ProbitLikelihood(slip=0.9), kernel(), **settings).eval()
    first = model.fantasize(far[:1], normal_sampler(256))
    second = first.fantasize(far[1:].expand(256, 1, 1), normal_sampler(1, seed=1))
    means = second.posterior(far).mean.reshape(256, 2)
    assert (means.std(0) > 1e-3).all()
    assert float(torch.corrcoef(means.mT)[0, 1].abs()) < LIMIT / 256**0.5


def test_two_rounds_of_numbers_equal_one_round_exactly():
    model = mixed(num_draws=256)
    X, Y = TEST_X[:2].unsqueeze(0), torch.tensor([[[0.4], [-0.3]]], dtype=torch.float64)
    once = model.condition_on_observations(X, Y).posterior(TEST_X)
    twice = model.condition_on_observations(X[:, :1], Y[:, :1]).condition_on_observations(X[:, 1:], Y[:, 1:])
    twice = twice.posterior(TEST_X)
    assert torch.allclose(once.mean, twice.mean)
    assert torch.allclose(once.covariance_matrix, twice.covariance_matrix)
    assert torch.allclose(once.skewness, twice.skewness)


# Fantasies of every kind

LIKELIHOODS = {
    "numbers": (Numeric([0.3, -0.2, 0.8]), NumericLikelihood(0.2)),
    "preference": (Preference(PAIRS), PreferenceLikelihood(0.5)),
    "binary": (Binary([1, 0, 1, 1]), ProbitLikelihood(0.5)),
    "ordinal": (Ordinal([0, 2, 1, 1], 3), OrdinalLikelihood(3, cutpoints=[-0.6, 0.9], noise=0.5)),
    "validity": (Validity([1, 0, 1]), ValidityLikelihood(0.4, noise=0.5)),
    "mixed": (
        [Numeric([0.3, -0.2]), Preference(PAIRS)],
        MixedLikelihood(NumericLikelihood(0.1), PreferenceLikelihood(0.5)),
    ),
}


def model_of(name, num_draws=1024, extra=(), seed=0):
    observations, likelihood = LIKELIHOODS[name]
    settings = DrawSettings(num_draws=num_draws, seed=seed)
    given = observations if not extra else [observations, *extra]
    return SkewGP(TRAIN_X, given, likelihood.double(), kernel(), draw_settings=settings).eval()


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_batches_and_rounds_have_the_shapes_of_all(name):
    first = model_of(name, 64).fantasize(TEST_X[:2].expand(3, 2, 1), normal_sampler(4))
    second = first.fantasize(TEST_X[:2].expand(4, 3, 2, 1), normal_sampler(2))
    for model, shape in ((first, (4, 3)), (second, (2, 4, 3))):
        assert model.batch_shape == shape
        assert model.posterior(TEST_X.expand(3, 3, 1)).mean.shape == (*shape, 3, 1)
        assert model.posterior(TEST_X).rsample(torch.Size([5])).shape == (5, *shape, 3, 1)
    # more data never widen the Gaussian part
    a, b = (model.posterior(TEST_X).gaussian_variance for model in (first, second))
    assert (b <= a + 1e-12).all()


FAST = ("binary", "preference", "ordinal")


@torch.no_grad()
@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(n, marks=pytest.mark.slow) for n in LIKELIHOODS if n not in FAST)]
)
def test_mean_over_fantasies_is_the_mean(name):
    """The tower property, for the mean and for the probability of a half-line; fantasies are drawn at random."""
    model = model_of(name)
    before = model.posterior(TEST_X)
    num_fantasies = 256
    fantasies = model.fantasize(torch.tensor([[0.3], [1.9]], dtype=torch.float64), normal_sampler(num_fantasies))
    after = fantasies.posterior(TEST_X)
    # fantasies, and values of interval rows that every one of them draws anew for the same 1024 draws
    for found, expected, spread in [
        (after.mean, before.mean, before.variance.sqrt()),
        (after.probability_above(0.2), before.probability_above(0.2), 0.5),
    ]:
        error = found.std(0) / math.sqrt(num_fantasies) + 0.25 * spread / math.sqrt(1024)
        assert ((found.mean(0) - expected).abs() < 3.5 * error).all(), (found.mean(0) - expected) / error
    assert (after.mean.std(0) > 0.05 * before.variance.sqrt()).any()
    # the law of total variance
    total = after.variance.mean(0) + after.mean.var(0)
    assert ((total / before.variance).log().abs() < 0.15).all(), total / before.variance


OUTCOMES = {
    "binary": [Binary([y], index=[5]) for y in (0, 1)],
    "ordinal": [Ordinal([y], 3, index=[5]) for y in (0, 1, 2)],
    "validity": [Validity([y], index=[5]) for y in (0, 1)],
}


@torch.no_grad()
@pytest.mark.parametrize("name", OUTCOMES)
def test_fantasies_of_labels_equal_fresh_models(name):
    """Every fantasy at one point is one of few; each is the model with that label."""
    means = model_of(name, NUM_DRAWS).fantasize(TRAIN_X[[5]], normal_sampler(8)).posterior(TEST_X).mean
    possible = [model_of(name, NUM_DRAWS, [extra], seed=1).posterior(TEST_X) for extra in OUTCOMES[name]]
    off = torch.stack([((means - one.mean).abs() / one.variance.sqrt()).amax((-2, -1)) for one in possible])
    assert off.amin(0).max() < 5 * math.sqrt(3 / NUM_DRAWS), off
    assert len(off.argmin(0).unique()) == len(possible)


def test_modules_are_shared_and_the_model_is_untouched():
    model = mixed(num_draws=64)
    before = model.posterior(TEST_X).mean
    fantasies = model.fantasize(TEST_X[:1], normal_sampler(4))
    assert fantasies.covar_module is model.covar_module
    assert model.batch_shape == ()
    assert torch.equal(model.posterior(TEST_X).mean, before)


# Gradients


@pytest.mark.parametrize("kind", ["numbers", "duels"])
def test_gradient_in_points_and_values(kind):
    model = mixed(num_draws=64)
    Y = torch.tensor([[[0.4], [-0.3]]], dtype=torch.float64, requires_grad=kind == "numbers")

    def statistics(X, Y):
        data = Y if kind == "numbers" else torch.tensor([[[0, 1], [1, 0]]])
        posterior = model.condition_on_observations(X, data).posterior(TEST_X)
        return posterior.mean, posterior.variance, posterior.cdf(0.1)

    X = TEST_X[:2].unsqueeze(0).clone().requires_grad_()
    assert torch.autograd.gradcheck(statistics, (X, Y), eps=1e-6, atol=1e-5, rtol=1e-3)


# Refusals


def test_refusals():
    fantasies = mixed(num_draws=64).fantasize(TEST_X[:1], normal_sampler(4))
    with pytest.raises(UnsupportedError, match="can only be conditioned on batches of numbers or duels"):
        fantasies.condition_on_observations(TEST_X[:1], Numeric([0.1]))
    labels = model_of("binary", 64)
    with pytest.raises(InputDataError, match=r"ProbitLikelihood takes Binary.* and no duels"):
        labels.condition_on_observations(TEST_X[:2].unsqueeze(0), torch.tensor([[[0, 1]]]))
    with pytest.raises(InputDataError, match=r"ProbitLikelihood takes Binary.* and no numbers"):
        labels.condition_on_observations(TEST_X[:1].unsqueeze(0), torch.zeros(1, 1, 1, dtype=torch.float64))
    with pytest.raises(UnsupportedError, match="needs two or more points in X"):
        model_of("preference", 64).fantasize(TEST_X[:1], normal_sampler(4))


@torch.no_grad()
def test_draws_may_be_conditioned_twice():
    """Every draw knows both values, what is left is that given both, and the distribution stays the same."""
    model, new = mixed(), torch.tensor([[0.7], [2.4]], dtype=torch.float64)
    once, first = model.condition_on_draws(TEST_X[:1], samples_per_draw=2)
    twice, second = once.condition_on_draws(TEST_X[1:2], samples_per_draw=3, seed=1)
    again, other = (model.condition_on_draws(TEST_X[:1], samples_per_draw=2, seed=seed)[1] for seed in (0, 2))
    assert torch.equal(again, first)
    assert (other - first).abs().max() > 1e-3
    values = torch.cat([first.repeat_interleave(3, dim=-1), second])
    torch.testing.assert_close(twice.posterior(TEST_X[:2]).component_means, values, rtol=0, atol=1e-5)
    at_once, _ = model.condition_on_draws(TEST_X[:2])
    left, wanted = (known.posterior(new).gaussian_covariance for known in (twice, at_once))
    torch.testing.assert_close(left, wanted, rtol=1e-5, atol=1e-7)
    before, after = model.posterior(new), twice.posterior(new)
    assert after.mixture.num_draws == 6 * before.mixture.num_draws
    error = (before.variance / before.mixture.num_draws).sqrt()
    assert bool(((after.mean - before.mean).abs() < LIMIT * error).all())
    torch.testing.assert_close(after.variance, before.variance, rtol=0.1, atol=0)
    ahead = twice.condition_on_observations(new[:1].expand(4, 1, 1), torch.full((4, 1, 1), 0.7, dtype=torch.float64))
    told = model.condition_on_observations(new[:1].expand(4, 1, 1), torch.full((4, 1, 1), 0.7, dtype=torch.float64))
    assert bool(((ahead.posterior(new).mean - told.posterior(new).mean).abs() < 2 * LIMIT * error).all())


@torch.no_grad()
@pytest.mark.parametrize("samples_per_draw", [1, 2])
def test_values_drawn_twice_are_independent_given_the_draws(samples_per_draw):
    """Whatever the seeds are, the law of the function stays the same: spread and correlation, of twelve runs."""
    duels = Preference([[0, 1], [2, 3], [4, 1], [5, 0]])
    model = SkewGP(torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1), duels)
    at = torch.tensor([[0.3], [0.75], [0.1], [0.6]], dtype=torch.float64)
    before, joint = model.posterior(at), model.posterior(at[:2]).covariance_matrix
    num_values = samples_per_draw**2 * before.mixture.num_draws
    for seed in range(12):
        once, first = model.condition_on_draws(at[:1], samples_per_draw, seed=seed)
        twice, second = once.condition_on_draws(at[1:2], samples_per_draw, seed=seed % 3)
        ratio = (twice.posterior(at).variance / before.variance).sqrt() - 1
        assert ratio.abs().max() < LIMIT / math.sqrt(2 * num_values)
        values = torch.cat([first.repeat_interleave(samples_per_draw, dim=-1), second])
        error = values.corrcoef()[0, 1] - joint[0, 1] / (joint[0, 0] * joint[1, 1]).sqrt()
        assert error.abs() < LIMIT / math.sqrt(num_values)


def test_uniform_draws_stay_below_one_in_single_precision():
    """One of 3e7 rounds to 1, whose normal quantile is infinite."""
    shape, like = (2, 2048), torch.zeros((), dtype=torch.float32)
    rounded = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7601)).float()
    found = open_uniforms(shape, like, torch.Generator().manual_seed(7601))
    assert bool((rounded == 1).any())
    assert bool(torch.special.ndtri(found).isfinite().all())
    assert torch.equal(found[rounded < 1], rounded[rounded < 1])


GRADIENTS = {
    "train_X": lambda model, X, Y: SkewGP(X.requires_grad_(), Numeric(Y.squeeze(-1))),
    "inputs": lambda model, X, Y: model.set_train_data(X.requires_grad_(), strict=False),
    "X": lambda model, X, Y: model.condition_on_observations(X.requires_grad_(), Y),
    "Y": lambda model, X, Y: model.condition_on_observations(X, Y.requires_grad_()),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_in_a_models_own_data_are_refused(name):
    """Draws and weights are made without a graph: a gradient in these data would leave them out."""
    X = TRAIN_X / 3
    model = SkewGP(X, Numeric(X[:, 0]))
    with pytest.raises(UnsupportedError, match=f"{name} requires gradients"):
        GRADIENTS[name](model, X.clone(), X.clone())
    with torch.no_grad():  # where none are expected
        assert not SkewGP(X.clone().requires_grad_(), Numeric(X[:, 0])).datapoints.requires_grad


@pytest.mark.rounding
def test_values_that_smooth_numbers_tell_almost_exactly_can_be_drawn(generator):
    """What is left of the covariance is as small as the rounding of the prior's."""
    X = torch.rand(12, 1, dtype=torch.double, generator=generator)
    Y = 4 * X - 1.5
    model = SkewGP(X, Numeric(Y.squeeze(-1)), likelihood=NumericLikelihood(noise=1e-4)).eval()
    model.covar_module.base_kernel.lengthscale, model.covar_module.outputscale = 3.0, 100.0
    _, values = model.condition_on_draws(X, samples_per_draw=16)
    deviation = model.posterior(X).variance.sqrt()
    assert bool(((values - Y).abs() < 5 * deviation + 1e-4).all())

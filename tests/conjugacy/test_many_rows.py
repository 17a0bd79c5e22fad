"""More rows than points: the low-rank path, noise-free rows, and that nothing of size m x m is built."""

import math

import pytest
import torch
from gpytorch.means import ConstantMean
from gradients import gradients
from kind_cases import (
    KINDS,
    TEST_X,
    TRAIN_X,
    assert_right,
    assert_same_law,
    kernel,
    log_evidence,
    mean,
    model_of,
    own_effective_size,
    own_statistics,
    tensor,
)

from benchmarks.fuzz.cases import Anchors
from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    SlopeLikelihood,
    VoteLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewPrior, prior_model
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.observations import AffineProbit, Binary, Censored, Choice, Ordinal, Preference, Ranking, Vote
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.truncated.priors import LowRankPrior, NoisyPrior
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.warpings import SinhArcsinh

LIMIT = 4.5


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    """Work goes by points as soon as there are more rows than these."""
    monkeypatch.setattr("botorch_skewgp.models.row_model.FEW_ROWS", 0)


@pytest.fixture
def no_square_matrices(monkeypatch):
    """Fail on anything of size m x m."""

    def forbidden(self):
        raise AssertionError("A matrix of the size of the rows was built.")

    for name in ("gamma", "gamma_cholesky"):
        monkeypatch.setattr(TruncatedNormal, name, property(forbidden))
    monkeypatch.setattr(LowRankPrior, "covariance", property(forbidden))
    of_reflections = property(lambda self: self.prior.wide.root @ self.prior.wide.root.mT + self.noise.diag())
    monkeypatch.setattr(NoisyPrior, "coloured_covariance", of_reflections)


def sine(X: torch.Tensor) -> torch.Tensor:
    return 2 * torch.sin(2 * X[:, 0])


def duels(utility: torch.Tensor, m: int, generator: torch.Generator, noise: float = 0.5) -> Preference:
    """Duels between random items."""
    pairs = torch.stack([torch.randperm(len(utility), generator=generator)[:2] for _ in range(m)])
    noisy = utility[pairs] + noise**0.5 * torch.randn(m, 2, dtype=utility.dtype, generator=generator)
    return Preference(pairs.gather(-1, noisy.argsort(-1, descending=True)))


def labels(generator: torch.Generator) -> Binary:
    index = torch.arange(6).repeat(8)
    return Binary(torch.rand(48, generator=generator) < torch.sigmoid(TRAIN_X[index, 0] - 1), index=index)


# rows over six points, sixty or so beside duels
MANY = {
    "duels": lambda g: [duels(sine(TRAIN_X), 60, g)],
    "duels and numbers": lambda g: [KINDS["numeric"], duels(sine(TRAIN_X), 60, g)],
    "labels": lambda g: [labels(g)],
    "duels and choices": lambda g: [duels(sine(TRAIN_X), 60, g), KINDS["choice"]],
    "duels and rankings": lambda g: [duels(sine(TRAIN_X), 60, g), KINDS["ranking"]],
    "choices": lambda g: [Choice(torch.tensor([[1, 0, 2, 3, 4, 5]] * 3))],
    "nine rows": lambda g: [KINDS["preference"], KINDS["binary"]],
}


@pytest.mark.parametrize("kind", MANY)
def test_low_rank_path_agrees_with_the_dense_one(kind, generator, monkeypatch):
    observations = MANY[kind](generator)
    low, dense = model_of(observations, seed=1), model_of(observations, seed=2)
    low.posterior(TEST_X)
    assert low.row_model(low.forward(TRAIN_X)).works_by_points
    log_evidence(low)
    monkeypatch.setattr(RowModel, "works_by_points", property(lambda self: False))
    dense.posterior(TEST_X)
    assert_same_law(low, dense, 1e-6)


@pytest.mark.parametrize("kind", ["duels", "duels and choices"])
def test_objective_and_its_gradient_agree_with_the_dense_path(kind, generator, monkeypatch):
    observations = MANY[kind](generator)

    def objective() -> tuple[float, list[torch.Tensor]]:
        model = model_of(observations)
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        mll.train()
        parameters = [model.covar_module.raw_outputscale, model.covar_module.base_kernel.raw_lengthscale]
        noise = model.likelihood.likelihoods[3].raw_noise.requires_grad_()
        value = mll(model(*model.train_inputs), model.train_targets)
        return value.item(), [*torch.autograd.grad(value, [*parameters, noise])]

    value, gradients = objective()
    monkeypatch.setattr(RowModel, "works_by_points", property(lambda self: False))
    dense_value, dense_gradients = objective()
    assert value == pytest.approx(dense_value, abs=1e-6)
    for ours, theirs in zip(gradients, dense_gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("no_square_matrices")
@pytest.mark.parametrize("with_choices", [False, True])
def test_nothing_of_the_size_of_the_rows_squared_is_built(with_choices, generator):
    X = 3 * torch.rand(12, 1, dtype=torch.float64, generator=generator)
    observations = [duels(sine(X), 150, generator)]
    if with_choices:
        observations.append(Choice(torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])))
    # inputs that are this near make a singular kernel matrix: not what this test is about
    model = model_of(observations, train_X=10 * X, num_draws=512)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    mll.train()
    mll(model(*model.train_inputs), model.train_targets).backward()
    posterior = model.posterior(10 * X[:3])
    assert posterior.mean.isfinite().all()
    assert model.row_model(model.forward(10 * X)).truncated_normal.prior.is_low_rank


def noise_free(*pairs: str) -> AffineProbit:
    eye = torch.eye(6, dtype=torch.float64)
    weight = torch.stack([eye[int(a)] - eye[int(b)] for a, b in pairs])
    return AffineProbit(weight, 0.0, torch.zeros(len(pairs), len(pairs), dtype=torch.float64))


# differences of fewer values than there are rows are linearly dependent
NOISE_FREE = {
    "fewer rows than points": noise_free("01", "23", "41"),
    "as many as there are": noise_free("01", "02", "03", "04", "45", "25"),
    "more rows than points": noise_free("01", "02", "03", "04", "05", "45", "25", "23", "43"),
}


def by_rejection(weight: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draws of the values at training and test points that meet noise-free rows."""
    Z = torch.cat([TRAIN_X, TEST_X])
    K, center = kernel()(Z).to_dense().detach(), mean()(Z).detach()
    eigenvalues, vectors = torch.linalg.eigh(K)
    root = vectors * eigenvalues.clamp(min=0).sqrt()
    f = center + torch.randn(400_000, len(Z), dtype=Z.dtype, generator=generator) @ root.mT
    return f[(f[:, :6] @ weight.mT > 0).all(-1)]


@pytest.mark.parametrize("name", NOISE_FREE)
def test_noise_free_rows(name, generator):
    model = model_of(NOISE_FREE[name])
    f = by_rejection(NOISE_FREE[name].weight, generator)
    assert len(f) > 1000
    posterior = model.posterior(TEST_X)
    own, sd = own_statistics(posterior, own_effective_size(model)), f[:, 6:].std(0)
    for statistic, theirs, error in (("mean", f[:, 6:].mean(0), len(f)), ("sd", sd, 2 * len(f))):
        total = (own[statistic].error.square() + sd.square() / error).sqrt()
        assert ((own[statistic].value - theirs).abs() / total).max() < LIMIT
    p = len(f) / 400_000
    assert log_evidence(model) == pytest.approx(torch.tensor(p).log().item(), abs=0.3)  # EP on hard, dependent rows
    assert posterior.quantile(tensor(0.025, 0.5, 0.975)).isfinite().all()


@pytest.mark.parametrize("name", ["numeric", "preference"])
def test_noise_free_rows_beside_noisy_ones(name):
    observations = [NOISE_FREE["fewer rows than points"], KINDS[name], KINDS["binary"]]
    assert_right(model_of(observations), observations, ep_error=0.3)  # hard rows


def test_equal_labels_of_little_noise_are_one_each(monkeypatch):
    """Three signs of independent values: 1/8. An absolute jitter had taken .4 nats from it."""
    X = torch.tensor([[0.0], [50.0], [100.0]], dtype=torch.float64)
    labels = Binary(torch.tensor([1, 0, 1] * 7), index=torch.tensor([0, 1, 2] * 7))
    model = SkewGP(X, labels, likelihood=ProbitLikelihood(noise=1e-8), covar_module=kernel())
    model.mean_module = ConstantMean().double()
    assert model.row_model(model.forward(X)).works_by_points
    value, error = model.log_marginal_likelihood("exact")
    assert error < 0.05
    assert abs(value - math.log(1 / 8)) < 5 * error
    approximate = model.log_marginal_likelihood("ep").value
    monkeypatch.setattr("botorch_skewgp.models.row_model.FEW_ROWS", 100)
    assert not model.row_model(model.forward(X)).works_by_points
    torch.testing.assert_close(approximate, model.log_marginal_likelihood("ep").value, rtol=0, atol=1e-8)


def test_long_ranking_beside_many_duels(generator):
    """A ranking's middle rows have no noise of their own; the others' is averaged over all the same."""
    observations = [duels(sine(TRAIN_X), 12, generator), Ranking(torch.tensor([[3, 1, 4, 0, 2, 5]]))]
    model = model_of(observations)
    assert model.row_model(model.forward(TRAIN_X)).works_by_points
    posterior = model.posterior(TEST_X)
    assert (posterior.gaussian_variance > 0.01 * posterior.variance.squeeze(-1)).all()
    assert_right(model, observations)


def test_duels_under_a_skew_prior_with_more_rows_than_points(generator):
    """Noise-free rows of the prior beside many noisy ones."""
    anchors = Anchors([[0.4], [1.8]], [1.0, -1.0], [0.1, -0.4])
    observation = duels(sine(TRAIN_X), 15, generator)
    prior = SkewPrior(anchors.points, anchors.phases, anchors.truncation)
    assert_right(model_of(observation, skew_prior=prior), observation, anchors)


def repeated_duels(generator, m: int = 1300) -> list:
    """Duels that repeat each other, as everybody asks for the same items; and grades and numbers of some of them."""
    return [duels(sine(TRAIN_X), m, generator), KINDS["ordinal"], KINDS["numeric"]]


@pytest.mark.slow
@pytest.mark.parametrize("inducing_points", [3, pytest.param(None, marks=pytest.mark.slow)])
def test_equal_rows_count_once(inducing_points, generator, monkeypatch):
    observations = repeated_duels(generator)
    merged, single = (model_of(observations, 512, seed, inducing_points=inducing_points) for seed in (1, 2))
    rows = merged.row_model(merged.forward(TRAIN_X), merged.row_plan(merge_equal=True)).intervals
    assert rows.num_rows <= 34
    assert rows.count.sum() == 1304

    def objective(model):
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        noise = model.likelihood.likelihoods[3].raw_noise.requires_grad_()
        value = mll(model(*model.train_inputs), model.train_targets)
        gradient = torch.autograd.grad(value, [model.covar_module.raw_outputscale, noise])
        model.eval()
        return value, torch.stack([entry.squeeze() for entry in gradient])

    assert merged.posterior(TEST_X).mixture is merged.posterior(TEST_X).mixture
    found, first = objective(merged), log_evidence_and_loo(merged)
    monkeypatch.setattr(prior_model, "MAX_SINGLE_ROWS", 10_000)
    expected, second = objective(single), log_evidence_and_loo(single)
    assert single.draws.rows.shape[-1] == 1304
    assert merged.draws.rows.shape[-1] == rows.num_rows
    assert torch.allclose(found[0], expected[0], atol=1e-6)
    assert torch.allclose(found[1], expected[1], atol=1e-5)
    assert first == pytest.approx(second, abs=0.05)
    assert_same_law(merged, single, 1e-6)


def log_evidence_and_loo(model: SkewGP) -> tuple[float, float]:
    return model.log_marginal_likelihood("exact").value.item(), leave_one_out(model).log_predictive.mean().item()


def merged_rows(model):
    return model.row_model(model.forward(TRAIN_X), model.row_plan(merge_equal=True)).intervals


def test_equal_rows_merge_alike_at_all_hyperparameters(generator, monkeypatch):
    """As structure says: not by a sampler of single rows, nor where slips meet rows without noise, as slopes."""
    model = model_of([*repeated_duels(generator), KINDS["slope"]])
    numbers = []
    for scale in (1e-4, 1.0, 1e6):
        model.covar_module.outputscale = scale
        numbers.append(merged_rows(model).num_rows)
    assert numbers[0] == numbers[1] == numbers[2] < 40
    reflective = model_of(repeated_duels(generator))
    reflective.draw_settings = DrawSettings(sampler="reflective")
    assert merged_rows(reflective).count is None
    monkeypatch.setattr(prior_model, "MAX_SINGLE_ROWS", 0)
    likelihood = MixedLikelihood(PreferenceLikelihood(slip=0.1), SlopeLikelihood(0.0))
    observations = [duels(sine(TRAIN_X), 30, generator), KINDS["slope"]]
    slips = SkewGP(TRAIN_X, observations, likelihood, covar_module=kernel(), draw_settings=DrawSettings(64))
    assert merged_rows(slips).count is None
    assert slips.posterior(TEST_X[:1]).mean.isfinite().all()


PAIRS, EACH = [[0, 1], [1, 2], [0, 2], [0, 1]] * 3, torch.tensor([1.0, 1.0], dtype=torch.float64)
JUDGE, BOTH = torch.tensor([0, 1] * 6), ("first", "tie", "second", "both bad") * 3
OWN_PARAMETERS = {
    "cut-points of items": (
        Ordinal([0, 1, 2, 1] * 3, 3, index=[0, 1] * 6, item=[0, 0, 1, 1] * 3),
        OrdinalLikelihood(3, num_items=2),
    ),
    "stretches": (
        Ordinal([0, 1, 2, 1] * 3, 3, index=[0, 1] * 6, judge=JUDGE),
        OrdinalLikelihood(3, stretch=EACH, learn_stretch=True),
    ),
    "slips": (Binary([0, 1, 1] * 4, index=[0, 1] * 6, judge=JUDGE), ProbitLikelihood(slip=0.1 * EACH, learn_slip=True)),
    "widths of ties": (
        Preference(PAIRS, judge=JUDGE, strength=[0, 1] * 6),
        PreferenceLikelihood(num_strengths=2, tie_width=EACH, learn_tie_width=True, ties_allowed=True),
    ),
    "widths of votes": (Vote(PAIRS, BOTH, judge=JUDGE), VoteLikelihood(tie_width=EACH)),
    "warped bounds": (
        Censored([-math.inf, 1.0, 1.0, -math.inf] * 3, [0.5, math.inf, 2.0, 0.5] * 3, index=[0, 1] * 6),
        NumericLikelihood(warping=SinhArcsinh()),
    ),
}


@pytest.mark.parametrize("name", OWN_PARAMETERS)
def test_rows_of_equal_parameters_that_are_not_the_same_are_told_apart(name, monkeypatch):
    """As at the start of every fit: merged or not, the objective has the same gradient in each parameter."""
    observation, likelihood = OWN_PARAMETERS[name]
    values, sizes = [], []
    for limit in (0, 10_000):
        monkeypatch.setattr(prior_model, "MAX_SINGLE_ROWS", limit)
        model = SkewGP(TRAIN_X[:3], observation, likelihood, covar_module=kernel())
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        values.append(torch.cat([mll(model(TRAIN_X[:3]), model.train_targets).reshape(1), gradients(mll)]))
        sizes.append(
            len(model.row_model(model.forward(model.train_inputs[0]), model.row_plan(merge_equal=True)).intervals.lower)
        )
    assert sizes[0] < sizes[1]
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-6)
    parameters = likelihood.rows(observation, torch.zeros(1, dtype=torch.float64)).merged()[0].origin
    assert parameters is not None


def test_equal_rows_go_on_from_draws_made_before(generator):
    model = model_of(repeated_duels(generator), num_draws=256)
    model.posterior(TEST_X)
    more = model.condition_on_observations(TRAIN_X[:2] + 0.1, Preference(torch.tensor([[0, 1]])))
    assert more.posterior(TEST_X).mean.isfinite().all()
    few = model_of([KINDS["preference"]], num_draws=256)
    few.posterior(TEST_X)
    many = few.condition_on_observations(TRAIN_X, repeated_duels(generator)[0])
    assert many.posterior(TEST_X).mean.isfinite().all()

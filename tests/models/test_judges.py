"""Several judges: what all share, each one's own part, and inducing points that stand for what is shared alone."""

import numpy as np
import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qLogExpectedImprovement
from botorch.acquisition.objective import LinearMCObjective, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.transforms import normalize
from gpytorch.kernels import LinearKernel, RBFKernel, ScaleKernel
from gpytorch.means import LinearMean
from gradients import assert_parameter_gradient
from judge_cases import X as FEW
from judge_cases import model_of, own_kernel, wants
from torch.distributions import Bernoulli

from benchmarks._observations import constant_mean, duel, random_pairs
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_choice, next_pair, recommend
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import MixedLikelihood, PreferenceLikelihood, ProbitLikelihood, SlopeLikelihood
from botorch_skewgp.likelihoods.predictions import averaged
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import Committee, prior_model
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Choice,
    ChoiceOrNone,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    number_judges,
)
from botorch_skewgp.papers import sun_parameters

double = torch.double
X = torch.rand(10, 2, dtype=double, generator=torch.Generator().manual_seed(0))
Q = torch.rand(3, 2, dtype=double, generator=torch.Generator().manual_seed(1))


def duels(num_judges, each=12, seed=0):
    """Duels by judges whose utilities are linear with weights of their own."""
    generator = torch.Generator().manual_seed(seed)
    utilities = X @ (4 * torch.randn(2, num_judges, dtype=double, generator=generator))
    pairs = [duel(utility, random_pairs(len(X), each, generator), 1.0, generator) for utility in utilities.mT]
    return Preference(torch.cat(pairs), judge=torch.arange(num_judges).repeat_interleave(each))


def over_points_and_judges(pairs, judge, num_judges):
    """The same duels as of a model whose training points are every point once for each judge."""
    points = torch.cat([X] * num_judges)
    code = torch.arange(num_judges).repeat_interleave(len(X)).to(double)
    return torch.cat([points, code.unsqueeze(-1)], dim=-1), Preference(pairs + len(X) * judge.unsqueeze(-1))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of IndexKernel
def test_posterior_is_that_of_a_kernel_over_points_and_judges():
    """By hand: a product with an index kernel, on today's engine without judges."""
    from gpytorch.kernels import IndexKernel

    observation, own = duels(3), own_kernel()
    model = SkewGP(X, observation, judge_covar_module=own, approximation="ep")
    shared = RBFKernel(active_dims=(0, 1))
    model.covar_module.base_kernel.lengthscale, model.covar_module.outputscale = 0.7, 2.0
    shared.lengthscale = 0.7
    index = IndexKernel(num_tasks=3, rank=1, active_dims=(2,))
    index.covar_factor.data.zero_()
    index.raw_var.data.fill_(torch.tensor(1.0).expm1().log())
    personal = RBFKernel(active_dims=(0, 1))
    personal.lengthscale = 0.4
    by_hand = ScaleKernel(shared) + ScaleKernel(personal * index)
    by_hand.kernels[0].outputscale, by_hand.kernels[1].outputscale = 2.0, 3.0
    points, plain = over_points_and_judges(observation.pairs, observation.judge, 3)
    reference = SkewGP(points, plain, covar_module=by_hand.double(), approximation="ep")
    values = [m.log_marginal_likelihood("ep").value for m in (model, reference)]
    assert torch.allclose(*values, rtol=1e-8)
    for judge in range(3):
        at = torch.cat([Q, torch.full((3, 1), float(judge), dtype=double)], dim=-1)
        posterior, other = model.posterior(Q, judge=judge), reference.posterior(at)
        assert torch.allclose(posterior.mean, other.mean, atol=1e-6)
        assert torch.allclose(posterior.variance, other.variance, atol=1e-6)
        for one, two in zip(sun_parameters(model.for_judge(judge), Q), sun_parameters(reference, at), strict=True):
            assert torch.allclose(one, two, atol=1e-8)


def value_and_gradients(model):
    """The objective and its derivatives, but for inducing points."""
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    value = mll(model.train()(*model.train_inputs), model.train_targets)
    parameters = [p for name, p in model.named_parameters() if p.requires_grad and "inducing" not in name]
    model.eval()
    return [value, *torch.autograd.grad(value, parameters, allow_unused=True)]


def assert_equal_models(one, other, judges=(None, 0, 1, "new")):
    for a, b in zip(value_and_gradients(one), value_and_gradients(other), strict=True):
        assert (a is None and b is None) or torch.allclose(a, b, rtol=1e-4, atol=1e-6)
    for judge in judges:
        a, b = (model.posterior(Q, judge=judge) for model in (one, other))
        assert torch.allclose(a.mean, b.mean, atol=1e-5)
        assert torch.allclose(a.variance, b.variance, rtol=1e-5)
    a, b = (model.posterior(Q, judge=judges) for model in (one, other))
    assert torch.allclose(a.mean, b.mean, atol=1e-5)
    assert torch.allclose(a.covariance_matrix, b.covariance_matrix, rtol=1e-5, atol=1e-5)


ORDERS = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(i))[:4] for i in range(8)])
JUDGED = {
    "choices": [Choice([[0, 1, 2], [2, 3, -1], [4, 0, 1], [5, 6, 7], [8, 2, 9]], judge=[0, 1, 0, 2, 2])],
    "grades": [Ordinal([0, 2, 1, 1, 2, 0], num_grades=3, index=[0, 1, 0, 2, 5, 6], judge=[0, 0, 1, 1, 2, 2])],
    "rankings": [Ranking([[0, 1, 2], [2, 1, 0], [4, 3, 7]], judge=[0, 0, 1])],
    "none of these": [
        ChoiceOrNone([[0, 1, 2], [2, 3, 5], [4, 0, 1], [5, 6, 7], [8, 2, 9]], [0, 1, 0, 0, 1], judge=[0, 1, 0, 2, 2])
    ],
    "stated signs": [
        Preference([[0, 1], [1, 2], [2, 0], [5, 6], [7, 8]], judge=[0, 1, 0, 2, 2]),
        Slope(dims=[0, 1, 0, 1, 0], signs=[1, -1, -1, 1, 1], index=[3, 3, 3, 4, 5], judge=[0, 1, 1, 2, 2]),
        Slope(dims=[0], signs=[1], index=[6]),
    ],
    "noise of several judges": [  # a chain, and one apart
        AffineProbit(
            torch.eye(8, 10, dtype=double) - torch.eye(8, 10, dtype=double).roll(3, dims=1),
            0.1,
            torch.block_diag(*[torch.full((2, 2), 0.7, dtype=double)] * 4) + 0.3 * torch.eye(8, dtype=double),
            judge=[0, 1, 1, 2, 3, 3, 4, 0],
        ),
        AffineProbit(torch.eye(2, 10, dtype=double), 0.2, [[1.0, 0.9], [0.9, 1.0]], judge=[2, 5]),
        duels(4),
    ],
    "some without a judge": [
        Choice([[0, 1, 2], [2, 3, 4], [9, 0, 1]], judge=[0, 0, 1]),
        Choice([[4, 5, 6], [7, 8, 9]]),
        Preference([[0, 1], [3, 2], [0, 1]], judge=[0, 2, 2]),
    ],
}
EXACT = JUDGED | {
    "duels": [duels(4)],
    "rankings in turn": [Ranking(ORDERS, judge=torch.arange(8) % 2)],  # one block, but of separate noise
    "rankings one by one": [Ranking(ORDERS, judge=torch.arange(8) // 3)],
}


@pytest.mark.parametrize("kind", EXACT)
def test_inducing_points_at_all_points_leave_everything_exact(kind):
    exact, sparse = (SkewGP(X, EXACT[kind], approximation="ep", inducing_points=Z) for Z in (None, X))
    assert_equal_models(exact, sparse)


@pytest.mark.parametrize("reliable", [False, True])
@pytest.mark.parametrize("kind", JUDGED)
def test_linear_kernels_are_exact_from_as_many_points_as_they_have_features(kind, reliable):
    """Evidence, gradient and posterior of the model without inducing points; judges' blocks are of their tastes."""
    models = []
    for points in (None, torch.cat([torch.zeros(1, 2), torch.eye(2)]).to(X)):
        tastes = LinearTastesKernel(2, scale=3.0)
        options = {"learn_judge_reliability": reliable, "approximation": "ep", "inducing_points": points}
        model = SkewGP(X, JUDGED[kind], covar_module=LinearKernel(), judge_covar_module=tastes, **options)
        with torch.no_grad():
            model.judge_covar_module.raw_root[1, 0] = 0.7
            if reliable:
                model.judge_reliability.logarithm[1] = -0.5
        models.append(model)
    assert_equal_models(*models, judges=(None, 0, 2 if kind != "rankings" else 1, "new"))
    width = models[1].row_model(models[1].forward(X)).rows.noise_root.shape[-1]
    assert width < 10 or kind == "noise of several judges"  # whose judges' features stand side by side


@pytest.mark.parametrize("num_inducing", [3, 10])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_equal_answers_of_a_judge_count_once_beside_inducing_points(noise, num_inducing, monkeypatch):
    """Each of them has noise of its own, whether they are merged to a row of many or not."""
    pairs = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 4], [5, 4], [6, 9], [8, 7]])
    observation = [Preference(pairs, judge=j, count=torch.arange(3, 10).roll(j)) for j in (0, 1)]
    points, found = X[:num_inducing], []
    for limit in (0, 10_000):
        monkeypatch.setattr(prior_model, "MAX_SINGLE_ROWS", limit)
        model = SkewGP(X, observation, PreferenceLikelihood(noise), approximation="ep", inducing_points=points)
        terms = [term.flatten() for term in value_and_gradients(model) if term is not None]
        rows = model.row_model(model.forward(X), model.row_plan(merge_equal=True)).intervals
        assert (rows.count is not None) == (limit == 0)
        posteriors = [model.posterior(Q, judge=judge) for judge in (None, 0, "new")]
        moments = [moment.flatten() for entry in posteriors for moment in (entry.mean, entry.variance)]
        found.append(torch.cat([*terms, *moments]).detach())
    assert torch.allclose(*found, rtol=1e-5, atol=5e-6)  # the jitter of seven equal rows is not that of one


def test_few_inducing_points_keep_a_judges_answers_exact_beside_them():
    """One judge's rows are one block, whose covariance is exact whatever the inducing points: with one shared point."""
    observation = duels(2, each=6)
    sparse = SkewGP(X, observation, approximation="ep", inducing_points=X[:1])
    prior = sparse.forward(X)
    rows = sparse.row_model(prior)
    covariance = rows.truncated_normal.prior.covariance + torch.diag(rows.truncated_normal.noise)
    exact = SkewGP(X, observation, approximation="ep")
    other = exact.row_model(exact.forward(X)).truncated_normal
    gamma = other.prior.covariance + torch.diag(other.noise)
    for block in (slice(0, 6), slice(6, 12)):
        assert torch.allclose(covariance[block, block], gamma[block, block], atol=1e-9)


def test_signs_of_linear_tastes_hold_wherever_they_are_stated():
    means = []
    for index in ([0, 0, 0, 0], [3, 5, 8, 1]):
        signs = Slope(dims=[0, 1, 0, 1], signs=[-1, 1, -1, 1], index=index, judge=[0, 0, 1, 1])
        answers = [Preference([[0, 1], [2, 1], [1, 0]], judge=[0, 0, 1]), signs]
        kernels = {"covar_module": LinearKernel(), "judge_covar_module": LinearTastesKernel(2)}
        model = SkewGP(X, answers, approximation="ep", **kernels)
        means.append(torch.stack([model.posterior(Q, judge=judge).mean for judge in (0, 1, "new")]))
    torch.testing.assert_close(means[0], means[1], rtol=1e-4, atol=1e-4)


def test_prior_slopes_of_a_judge_are_those_of_his_mean():
    """By finite differences of the values' means, which a reliability multiplies."""
    mean = LinearMean(2).to(X)
    mean.weights.data.fill_(2.0)
    answers = [
        Preference([[0, 1], [2, 3], [4, 1]], judge=[0, 1, 0]),
        Slope([0, 1, 0], 1, index=[0, 1, 2], judge=[0, 1, 1]),
    ]
    model = SkewGP(X, answers, mean_module=mean, learn_judge_reliability=True)
    model.judge_reliability.logarithm.data.copy_(torch.tensor([0.0, -1.5]))
    prior, steps = model.latent_prior(), 1e-5 * torch.eye(3, dtype=double)[:2]
    ends = [prior.mean_at(prior.slope_points + side * steps[prior.layout.slope_dims]) for side in (1, -1)]
    torch.testing.assert_close(prior.columns().mean[-3:], (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-6)


def test_slopes_of_judges_who_differ_may_come_later():
    """Opposite ones at one point, as those of one judge contradict each other."""
    duels, likelihood = Preference([[0, 1], [2, 3]], judge=[0, 1]), [PreferenceLikelihood(), SlopeLikelihood()]
    opposite = Slope(dims=0, signs=[1, -1], index=[0, 0], judge=[0, 1])
    before = SkewGP(X, duels, MixedLikelihood(*likelihood), approximation="ep")
    later = before.condition_on_observations(Q[:1], opposite)
    whole = SkewGP(torch.cat([X, Q[:1]]), [duels, opposite.shift(len(X))], approximation="ep")
    for judge in (0, 1):
        torch.testing.assert_close(later.posterior(Q, judge=judge).mean, whole.posterior(Q, judge=judge).mean)
    with pytest.raises(InputDataError, match=r"Slopes \[0, 1\] contradict"):
        before.condition_on_observations(Q[:1], Slope(dims=0, signs=[1, -1], index=[0, 0], judge=1))


def test_one_judge_or_none_is_the_model_without():
    pairs = duels(1).pairs
    plain, named = SkewGP(X, Preference(pairs)), SkewGP(X, Preference(pairs, judge=3))
    assert len(list(plain.parameters())) == len(list(named.parameters()))
    assert torch.equal(plain.posterior(Q).mean, named.posterior(Q).mean)
    assert torch.equal(plain.posterior(Q).mean, named.posterior(Q, judge=3).mean)
    assert named.judges == {3}


@pytest.mark.parametrize("settings", [{}, {"inducing_points": X}], ids=["exact", "inducing points"])
def test_fantasies_of_a_judge_are_more_answers_of_his(settings):
    """A fantasy duel, by importance weights, and the same duel among the data."""
    model = SkewGP(X, duels(2), judge_covar_module=own_kernel(), **settings)
    view = model.for_judge(1)
    fantasy = view.condition_on_observations(X[:2].unsqueeze(0), torch.tensor([[[0, 1]]]))
    more = view.condition_on_observations(X[:2], Preference([[0, 1]]))
    assert more.observations[-1].judge.tolist() == [1]
    expected = more.posterior(Q)
    assert torch.allclose(fantasy.posterior(Q).mean.squeeze(0), expected.mean, atol=0.15)


def test_judges_may_be_others_in_new_data():
    model = SkewGP(X, Preference([[0, 1], [2, 1]]), learn_judge_reliability=True)
    for judge in ([0, 1], [0, 5]):
        panel = Preference([[0, 1], [2, 1]], judge=judge)
        model.set_train_data(X, panel)
        expected = SkewGP(X, panel).posterior(Q, judge=judge[1]).mean
        torch.testing.assert_close(model.posterior(Q, judge=judge[1]).mean, expected)


def test_judges_with_an_input_transform():
    X_in_units, observations = 20 * X + 5, duels(2)
    model = SkewGP(X_in_units, observations, input_transform=Normalize(2))
    bounds = torch.stack([X_in_units.amin(0), X_in_units.amax(0)])
    scaled = SkewGP(normalize(X_in_units, bounds), observations)
    expected = scaled.posterior(normalize(20 * Q + 5, bounds), judge=1).mean
    torch.testing.assert_close(model.posterior(20 * Q + 5, judge=1).mean, expected)


def test_tastes_kernel_is_a_quadratic_form():
    kernel = LinearTastesKernel(2).double()
    kernel.raw_root.data = torch.randn(3, 3, dtype=double, generator=torch.Generator().manual_seed(0))
    phi = torch.cat([torch.ones(len(X), 1, dtype=double), X], dim=-1)
    expected = phi @ kernel.root @ kernel.root.mT @ phi.mT
    assert torch.allclose(kernel(X).to_dense(), expected)
    assert torch.allclose(kernel(X, diag=True), expected.diagonal())
    assert torch.equal(kernel.root, kernel.root.tril())
    assert LinearTastesKernel(3, rank=2).root.shape == (4, 2)
    diagonal = LinearTastesKernel(3, diagonal=True).root
    assert torch.equal(diagonal, diagonal.diagonal().diag())


def with_reliability(model, *values):
    model.judge_reliability.logarithm.data = torch.tensor(values, dtype=double).log()
    return model


def test_reliability_scales_a_judges_utility():
    observation, own = duels(2), own_kernel()
    model = SkewGP(X, observation, judge_covar_module=own, learn_judge_reliability=True)
    model = with_reliability(model, 0.5, 2.0)
    model.mean_module.constant = 0.7
    first = (2 / (1 + 4**4)) ** 0.25  # the other is four times as reliable, and the mean of fourth powers is 1
    r = torch.tensor([1.0, first, 4 * first, 1.0], dtype=double)  # of what all share, of both judges, of a new one
    code = torch.tensor([0.0, 1.0, 2.0, -1.0], dtype=double)
    points = torch.cat([X[:4], code.unsqueeze(-1)], dim=-1)
    shared, each = model.covar_module(X[:4]).to_dense(), own(X[:4]).to_dense()
    same = torch.diag(torch.tensor([0.0, 1.0, 1.0, 1.0], dtype=double))
    expected = (shared + each * same) * r.unsqueeze(-1) * r
    assert torch.allclose(model.prior_kernel(points).to_dense(), expected)
    assert torch.allclose(model.prior_kernel(points, diag=True), expected.diagonal())
    assert torch.allclose(model.latent_prior().mean_at(points), 0.7 * r)
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(model.likelihood, model).train())


def test_a_new_judges_answers_are_an_average_over_reliabilities():
    """By quadrature over their prior; also among some options, and of two kinds."""
    model = with_reliability(SkewGP(X, duels(2), approximation="ep", learn_judge_reliability=True), 0.5, 2.0)
    model.judge_reliability.logarithm_prior.scale.fill_(0.8)
    unit = ((0.5**4 + 2.0**4) / 2) ** 0.25
    latent = model.for_judge("new").latent_posterior(Q[:2])
    mean, covariance = latent.mean.squeeze(-1), latent.covariance_matrix
    difference, variance = mean[0] - mean[1], covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    deviation = torch.linspace(-7.0, 7.0, 1001, dtype=double)
    r = (0.8 * deviation).exp() / unit
    chance = torch.special.ndtr(r * difference / (2 + r.square() * variance).sqrt())
    expected = (chance * (-0.5 * deviation.square()).softmax(-1)).sum()
    found = model.predictive(Q[:2], judge="new").probs
    assert torch.allclose(found, expected, atol=1e-3)
    assert not torch.allclose(found, model.likelihood(latent).probs, atol=5e-3)
    options = model.predictive(Q[:3], judge="new", available=torch.tensor([True, True, False]))
    assert torch.allclose(options.probs[:2], torch.stack([expected, 1 - expected]), atol=5e-3)
    parts = MixedLikelihood(PreferenceLikelihood(), ProbitLikelihood())
    both = SkewGP(X, [duels(2), Binary([True], judge=[1])], parts, approximation="ep", learn_judge_reliability=True)
    predicted = both.predictive(Q[:2], judge="new")
    assert [part.probs.shape for part in predicted.values()] == [torch.Size([]), torch.Size([2, 1])]
    assert predicted[Tie] is predicted[Preference]


def test_reliabilities_scale_every_label_and_their_means():
    labels = LabelPreference([[0, 1], [1, 0], [1, 2]], num_labels=3, index=[0, 1, 2], judge=[0, 1, 1])
    model = SkewGP(X, labels, mean_module=constant_mean(0.7), approximation="ep", learn_judge_reliability=True)
    model = with_reliability(model, 1.0, 0.3)
    points = torch.cat([X[:3], torch.tensor([[0.0], [1.0], [2.0]]).double()], dim=-1)
    r = torch.cat([torch.ones(1, dtype=double), model.judge_reliability.values]).repeat_interleave(3)
    torch.testing.assert_close(model.latent_prior().mean_at(points), 0.7 * r)
    new = model.for_judge("new")
    values, weights = model.judge_reliability.around_judge("new")
    latent = new.latent_posterior(X[:2])
    each = [model.likelihood(latent.affine(r * torch.eye(6, dtype=double), num_outputs=3)).probs for r in values]
    expected = sum(w * p for w, p in zip(weights, each, strict=True))
    torch.testing.assert_close(model.predictive(X[:2], judge="new").probs, expected)


@pytest.mark.parametrize("dtype", [torch.float32, double])
@pytest.mark.rounding
def test_averages_of_sure_answers_are_probabilities(dtype):
    """Weights that add up to more than one by rounding make no probability above one."""
    weights = torch.full((7,), 1 / 7, dtype=dtype) * (1 + 4 * torch.finfo(dtype).eps)
    assert float(weights.sum()) > 1
    assert averaged([Bernoulli(probs=torch.ones(2, dtype=dtype))] * 7, weights).probs.tolist() == [1.0, 1.0]


def test_numbers_tell_the_scale_of_a_utility_and_later_judges_get_a_reliability():
    with pytest.raises(UnsupportedError, match="scale of utilities"):
        SkewGP(X, Numeric([0.1, 0.3], index=[0, 1], judge=[0, 1]), learn_judge_reliability=True)
    assert SkewGP(X, duels(2)).judge_reliability is None
    model = with_reliability(SkewGP(X, duels(2), learn_judge_reliability=True), 0.5, 2.0)
    more = model.condition_on_observations(X[:2], Preference([[0, 1]], judge=3))
    expected = torch.cat([model.judge_reliability.values, torch.ones(2, dtype=double)])
    assert torch.allclose(more.judge_reliability.values, expected)
    assert len(model.judge_reliability.logarithm) == 2
    assert more.judge_reliability.logarithm.requires_grad
    model.judge_reliability.requires_grad_(False)
    model.set_train_data(targets=(*model.observations, Preference([[0, 1]], judge=3)))
    assert torch.allclose(model.judge_reliability.values, expected)
    assert not model.judge_reliability.logarithm.requires_grad
    model.posterior(Q, judge=3)
    with pytest.raises(UnsupportedError, match="scale of utilities"):
        model.set_train_data(targets=(*model.observations, Numeric([0.1], index=[0], judge=4)))
    assert model.judges == {0, 1, 3}


@pytest.mark.parametrize(
    ("given", "wanted"), [(["bob", "ann", "bob"], ["ann", "bob"]), (torch.tensor([40, 7, 40]), [7, 40])]
)
def test_judges_are_numbered_in_order_of_their_names(given, wanted):
    judge, names = number_judges(given)
    assert judge.tolist() == [1, 0, 1]
    assert names == wanted


def test_judges_survive_what_happens_to_observations():
    choice = Choice([[0, 1, 2], [2, 1, -1]], judge=[4, 5])
    for entry in (choice.as_ranking(), choice.reversed(), choice.shift(3), choice.as_ranking().reversed()):
        assert entry.judge.tolist() == [4, 5]
    assert choice.by(4).judge.tolist() == [4, 4]
    assert two().float().observations[0].judge.dtype == torch.long


def two():
    return SkewGP(X, duels(2), approximation="ep")


MEAN = ScalarizedPosteriorTransform(torch.tensor([0.5, 0.5], dtype=double))
WON = torch.tensor([[[0, 1]]])
NUMBERS = Numeric([0.1, 0.3], index=[0, 1], judge=[0, 1])
BAD_JUDGES = [
    *((lambda judge=judge: Preference([[0, 1], [1, 0]], judge=judge), "judge") for judge in
      ([0], [0, -1], [0.5, 1.0], [[0, 1]], [True, False], [0, 2**24])),
    *((lambda judge=judge: Preference([[0, 1], [1, 0]], judge=judge),
       r"^judge must .*judge, names = number_judges\(names\)")
      for judge in ("ann", ["ann", "bob"], np.array(["ann", "bob"]), ("ann", None))),
    *((lambda judge=judge: two().posterior(Q, judge=judge), "must be the number of a judge who gave answers")
      for judge in (7, -1, "ann", 0.0, True, torch.tensor([0, 1]))),
    (lambda: two().posterior(Q, judge="ann"), r"got 'ann'. A judge's number is .* number_judges"),
    (lambda: two().posterior(Q, judge=7), r"got 7\.$"),
    *((lambda judges=judges: two().latent_posterior(Q[:2], judges=judges), "one for each of the 2 points")
      for judges in ([0], [0, 1, 0], 1)),
    (lambda: SkewGP(X, duels(2), judge_covar_module=LinearTastesKernel(3)).posterior(Q), "dim=3"),
    (lambda: two().predictive(Q[:2], judge=[0, 1]), "one judge"),
    (lambda: SkewGP(X, Preference([[0, 1]])).for_judge("new"), "two judges or more"),
    (lambda: SkewGP(X, Preference([[0, 1]])).for_judge(0), "gave answers"),
    (lambda: two().for_judge("new").condition_on_observations(X[:2], Preference([[0, 1]])), "need judge="),
    (lambda: SkewGP(X, [duels(2), NUMBERS], inducing_points=X[:4]).posterior(Q), "inducing_points"),
    (lambda: LinearTastesKernel(2, rank=4), "rank"),
    (lambda: SkewGP(X, duels(2), approximation="laplace"), "approximation"),
    (lambda: SkewGP(X, duels(2), approximation="ep").draws, "has no draws"),
    (lambda: number_judges(["ann", 3, None]), "one type"),
    (lambda: two().for_judge([]), "must name at least one judge"),
    (lambda: two().posterior(Q, judge=[0, 7]), "gave answers"),
    (lambda: SkewGP(X, Preference([[0, 1]])).for_judge([0]), "two judges"),
    (lambda: two().posterior(Q, judge=[0, 1], output_indices=[5]), r"must name outputs 0 to 1; got \[5\]"),
    (lambda: two().posterior(Q, judge=[0, 1], observation_noise=True), "one judge"),
    (lambda: qKnowledgeGradient(two().for_judge([0, 1]), num_fantasies=2, posterior_transform=MEAN)(Q.unsqueeze(0)),
     r"committee has no fantasies.*model.for_judge\(j\)"),
    (lambda: two().for_judge(0).condition_on_observations(X[:2].unsqueeze(0), WON).posterior(Q, judge=[0, 1]),
     "model of data"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "message"), BAD_JUDGES)
def test_judges_that_do_not_fit_are_refused_in_words(build, message):
    with pytest.raises((InputDataError, UnsupportedError), match=message):
        build()


def test_a_judge_may_be_named_by_an_entry_of_a_tensor():
    model = two()
    for judge in model.observations[0].judge.unique():
        assert torch.equal(model.posterior(Q, judge=judge).mean, model.posterior(Q, judge=int(judge)).mean)


def test_questions_and_recommendations_are_a_judges_own():
    """Two judges who want opposite ends."""
    right = [[b, a] for a in range(9) for b in range(9) if X[b, 0] > X[a, 0] + 0.1]
    pairs = torch.tensor(right)
    judges = torch.tensor([0, 1]).repeat_interleave(len(pairs))
    model = SkewGP(X, Preference(torch.cat([pairs, pairs.flip(-1)]), judge=judges), approximation="ep")
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=double)
    few = {"num_restarts": 2, "raw_samples": 16}
    best = [recommend(model, bounds, judge=judge, **few)[0][0, 0] for judge in (0, 1)]
    assert best[0] > 0.8
    assert best[1] < 0.2
    pair, _ = next_pair(model, bounds, judge=1, **few)
    assert pair.shape == (2, 2)
    assert pair[1, 0] < 0.3  # the incumbent
    options, _ = next_choice(model, num_options=3, X_candidates=X, judge=0)
    assert options.shape == (3, 2)
    with pytest.raises(UnsupportedError, match="has no judges"):
        recommend(SingleTaskGP(X, X[:, :1]), judge=0)


# Several judges at once: their joint posterior, and what a committee chooses

WHO = [0, 2, "new"]
NUMBERS_OF_THREE = Numeric([10.0, 50.0, -30.0, 80.0], noise=1.0, index=[0, 1, 2, 3], judge=[0, 1, 2, 0])
OF_THREE = {
    "duels": lambda: model_of(wants([1, 1, -1])),
    "inducing points": lambda: model_of(wants([1, 1, -1]), inducing_points=FEW[:3]),
    "draws": lambda: SkewGP(FEW, wants([1, 1, -1]), judge_covar_module=own_kernel()),
    "a scale": lambda: model_of(NUMBERS_OF_THREE, outcome_transform=Standardize(m=1)),
}


@pytest.mark.parametrize("name", OF_THREE)
def test_each_output_is_the_posterior_of_its_judge(name):
    model = OF_THREE[name]()
    joint = model.posterior(Q, judge=WHO)
    assert joint.mean.shape == (3, 3)
    for place, judge in enumerate(WHO):
        one = model.posterior(Q, judge=judge)
        assert torch.allclose(joint.mean[..., place : place + 1], one.mean, atol=1e-8)
        assert torch.allclose(joint.variance[..., place : place + 1], one.variance, atol=1e-8)
    assert float(torch.linalg.eigvalsh(joint.covariance_matrix)[0]) > -1e-8
    assert torch.allclose(model.posterior(Q, judge=WHO, output_indices=[1]).mean, joint.mean[..., 1:2])


@pytest.mark.parametrize("name", ["duels", "inducing points"])
def test_every_judge_at_every_point_is_a_list_of_judges_at_points(name):
    model = OF_THREE[name]()
    crossed = model.latent_posterior(Q, judges=WHO, crossed=True)
    listed = model.latent_posterior(Q.repeat_interleave(3, dim=0), judges=3 * WHO)
    assert torch.allclose(crossed.mean.flatten(), listed.mean.flatten(), atol=1e-10)
    assert torch.allclose(crossed.covariance_matrix, listed.covariance_matrix, atol=1e-10)


def test_a_committee_does_not_depend_on_whom_its_model_is_for():
    model = model_of(wants([1, 1, -1]))
    expected, found = (Committee(one, [None, 0]).posterior(Q) for one in (model, model.for_judge(1)))
    assert torch.equal(found.mean, expected.mean)
    assert torch.allclose(found.mean[..., :1], model.posterior(Q).mean)


def test_joint_covariance_of_numbers_is_that_of_a_gaussian_process():
    """By hand, from the kernel of what is shared and of each judge's own."""
    numbers = Numeric([0.1, 0.5, -0.3, 0.8], noise=0.1, index=[0, 1, 2, 3], judge=[0, 1, 1, 0])
    own = own_kernel()
    model = SkewGP(FEW, numbers, judge_covar_module=own)
    points = torch.cat([FEW[:4], Q[:2].repeat_interleave(2, dim=0)])  # each point of two judges, judges fastest
    by = torch.tensor([0, 1, 1, 0, 0, 1, 0, 1])
    K = model.covar_module(points).to_dense() + own(points).to_dense() * (by.unsqueeze(-1) == by)
    gain = torch.linalg.solve(K[:4, :4] + 0.1 * torch.eye(4, dtype=double), K[:4, 4:]).mT
    joint = model.posterior(Q[:2], judge=[0, 1])
    assert torch.allclose(joint.mean.flatten(), gain @ numbers.values, atol=1e-6)
    assert torch.allclose(joint.covariance_matrix, K[4:, 4:] - gain @ K[:4, 4:], atol=1e-6)


def test_weighted_utilities_are_botorchs():
    committee = model_of(wants([1, 1, -1])).for_judge([0, 1, 2])
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=double)
    weighted = committee.posterior(Q, posterior_transform=ScalarizedPosteriorTransform(weights))
    assert torch.allclose(weighted.mean.squeeze(-1), committee.posterior(Q).mean @ weights)
    sampler, objective = SobolQMCNormalSampler(torch.Size([32]), seed=0), LinearMCObjective(weights)
    acquisition = qLogExpectedImprovement(committee, best_f=0.0, sampler=sampler, objective=objective)
    point = Q[:1].clone().requires_grad_()
    acquisition(point).backward()
    assert bool(point.grad.isfinite().all())

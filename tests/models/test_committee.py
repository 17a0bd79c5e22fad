"""Several judges at once: their joint posterior, what a committee chooses, and the table of judges."""

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qLogExpectedImprovement
from botorch.acquisition.objective import ExpectationPosteriorTransform, LinearMCObjective, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import recommend
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import Committee
from botorch_skewgp.observations import Numeric, Preference

double = torch.double
X = torch.rand(8, 2, dtype=double, generator=torch.Generator().manual_seed(0))
Q = torch.rand(3, 2, dtype=double, generator=torch.Generator().manual_seed(1))
WHO = [0, 2, "new"]


def own_kernel(scale=3.0):
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale, kernel.base_kernel.lengthscale = scale, 0.4
    return kernel.double()


def wants(first, each=14):
    """Duels of judges of whom each wants a large (1) or a small (-1) first input."""
    pairs = [(a, b) for a in range(len(X)) for b in range(len(X)) if X[a, 0] > X[b, 0] + 0.05][:each]
    pairs = torch.tensor(pairs)
    every = torch.cat([pairs if sign > 0 else pairs.flip(-1) for sign in first])
    return Preference(every, judge=torch.arange(len(first)).repeat_interleave(len(pairs)))


def model_of(observations, **options):
    return SkewGP(X, observations, judge_covar_module=own_kernel(), approximation="ep", **options)


@pytest.mark.parametrize("inducing", [None, X[:3]])
def test_each_output_is_the_posterior_of_its_judge(inducing):
    model = model_of(wants([1, 1, -1]), inducing_points=inducing)
    joint = model.posterior(Q, judge=WHO)
    assert joint.mean.shape == (3, 3)
    for place, judge in enumerate(WHO):
        one = model.posterior(Q, judge=judge)
        assert torch.allclose(joint.mean[..., place : place + 1], one.mean, atol=1e-8)
        assert torch.allclose(joint.variance[..., place : place + 1], one.variance, atol=1e-8)
    assert float(torch.linalg.eigvalsh(joint.covariance_matrix)[0]) > -1e-8
    assert torch.allclose(model.posterior(Q, judge=WHO, output_indices=[1]).mean, joint.mean[..., 1:2])


@pytest.mark.parametrize("inducing", [None, X[:3]])
def test_every_judge_at_every_point_is_a_list_of_judges_at_points(inducing):
    model = model_of(wants([1, 1, -1]), inducing_points=inducing)
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
    model = SkewGP(X, numbers, judge_covar_module=own)
    points = torch.cat([X[:4], Q[:2].repeat_interleave(2, dim=0)])  # each point of two judges, judges fastest
    by = torch.tensor([0, 1, 1, 0, 0, 1, 0, 1])
    K = model.covar_module(points).to_dense() + own(points).to_dense() * (by.unsqueeze(-1) == by)
    gain = torch.linalg.solve(K[:4, :4] + 0.1 * torch.eye(4, dtype=double), K[:4, 4:]).mT
    joint = model.posterior(Q[:2], judge=[0, 1])
    assert torch.allclose(joint.mean.flatten(), gain @ numbers.values, atol=1e-6)
    assert torch.allclose(joint.covariance_matrix, K[4:, 4:] - gain @ K[:4, 4:], atol=1e-6)


def test_inducing_points_at_all_points_leave_joint_posteriors_exact_there():
    observations = wants([1, -1, 1])
    exact, sparse = (model_of(observations, inducing_points=Z).posterior(X, judge=[0, 1]) for Z in (None, X))
    assert torch.allclose(exact.mean, sparse.mean, atol=1e-5)
    assert torch.allclose(exact.covariance_matrix, sparse.covariance_matrix, atol=1e-4)


def test_exact_draws_have_a_joint_posterior_too():
    model = SkewGP(X, wants([1, -1]), judge_covar_module=own_kernel())
    joint = model.posterior(Q, judge=[0, 1])
    assert torch.allclose(joint.mean[..., :1], model.posterior(Q, judge=0).mean)
    samples = joint.rsample(torch.Size([4096]))
    assert samples.shape == (4096, 3, 2)
    assert bool(((samples.mean(0) - joint.mean).abs() < 5 * (joint.variance / 4096).sqrt()).all())


def test_outcome_scale_is_that_of_one_judge():
    from botorch.models.transforms.outcome import Standardize

    numbers = Numeric([10.0, 50.0, -30.0, 80.0], noise=1.0, index=[0, 1, 2, 3], judge=[0, 1, 1, 0])
    model = SkewGP(X, numbers, judge_covar_module=own_kernel(), outcome_transform=Standardize(m=1))
    joint, one = model.posterior(Q, judge=[0, 1]), model.posterior(Q, judge=1)
    assert torch.allclose(joint.mean[..., 1:], one.mean)
    assert torch.allclose(joint.variance[..., 1:], one.variance)


def test_weighted_utilities_are_botorchs():
    committee = model_of(wants([1, 1, -1])).for_judge([0, 1, 2])
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=double)
    weighted = committee.posterior(Q, posterior_transform=ScalarizedPosteriorTransform(weights))
    assert torch.allclose(weighted.mean.squeeze(-1), committee.posterior(Q).mean @ weights)
    acquisition = qLogExpectedImprovement(
        committee,
        best_f=0.0,
        sampler=SobolQMCNormalSampler(torch.Size([32]), seed=0),
        objective=LinearMCObjective(weights),
    )
    point = Q[:1].clone().requires_grad_()
    acquisition(point).backward()
    assert bool(point.grad.isfinite().all())


def test_averages_over_points_stay_skewed_posteriors():
    committee = model_of(wants([1, -1])).for_judge([0, 1])
    average = committee.posterior(Q, posterior_transform=ExpectationPosteriorTransform(n_w=3))
    assert torch.allclose(average.mean, committee.posterior(Q).mean.mean(0, keepdim=True))


def test_a_committee_follows_its_weights():
    model = model_of(wants([1, 1, -1]))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=double)
    best = [
        recommend(
            model,
            bounds,
            judge=[0, 1, 2],
            posterior_transform=ScalarizedPosteriorTransform(torch.tensor(weights, dtype=double)),
            num_restarts=2,
            raw_samples=32,
        )[0][0, 0]
        for weights in ([1.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    ]
    assert best[0] > 0.7
    assert best[1] < 0.3


def test_bad_committees_are_refused_in_words():
    model = model_of(wants([1, -1]))
    with pytest.raises(InputDataError, match="must name at least one judge"):
        model.for_judge([])
    with pytest.raises(InputDataError, match="gave answers"):
        model.posterior(Q, judge=[0, 7])
    with pytest.raises(InputDataError, match="two judges"):
        SkewGP(X, Preference([[0, 1]])).for_judge([0])
    with pytest.raises(UnsupportedError, match=r"output_indices must name outputs 0 to 1; got \[5\]"):
        model.posterior(Q, judge=[0, 1], output_indices=[5])
    with pytest.raises(UnsupportedError, match="one judge"):
        model.posterior(Q, judge=[0, 1], observation_noise=True)
    mean = ScalarizedPosteriorTransform(torch.tensor([0.5, 0.5], dtype=double))
    ahead = qKnowledgeGradient(model.for_judge([0, 1]), num_fantasies=2, posterior_transform=mean)
    with pytest.raises(UnsupportedError, match=r"committee has no fantasies.*model.for_judge\(j\)"):
        ahead(Q.unsqueeze(0))
    fantasy = model.for_judge(0).condition_on_observations(X[:2].unsqueeze(0), torch.tensor([[[0, 1]]]))
    with pytest.raises(UnsupportedError, match="model of data"):
        fantasy.posterior(Q, judge=[0, 1])


def test_summary_tells_who_wants_what():
    model = model_of(wants([1, 1, -1]))
    summary = model.judge_summary(seed=3)
    assert summary.num_answers.tolist() == [14, 14, 14]
    first = summary.mean[1:, 1]
    assert bool((first[:2] > 0).all())
    assert first[2] < 0
    assert bool((summary.lower <= summary.mean).all() & (summary.mean <= summary.upper).all())
    assert summary.agreement[0, 1] > 0.8
    assert summary.agreement[0, 2] < 0.45
    assert torch.equal(summary.agreement, summary.agreement.mT)
    assert summary.difference[2] > summary.difference[0]
    columns = summary.columns(["ann", "bob", "eve"], ["sweet", "strong"])
    assert columns["judge"] == ["all", "ann", "bob", "eve"]
    assert columns["sweet"] == summary.mean[:, 1].tolist()
    assert len({len(column) for column in columns.values()}) == 1
    assert str(summary).count("\n") == 4  # a head, what all share, three judges


def test_tastes_are_those_of_least_squares():
    """A map of the joint posterior in closed form: mean and interval of each coefficient."""
    model = model_of(wants([1, 1, -1]))
    design = torch.cat([torch.ones(8, 1, dtype=double), X - X.mean(0)], dim=-1)
    summary = model.judge_summary(judges=[2], X=X, num_samples=2048)
    posterior = model.posterior(X, judge=2).affine(torch.linalg.pinv(design))
    mean, deviation = posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1)
    assert bool(((summary.mean[1] - mean).abs() < 5 * deviation / 2048**0.5).all())
    expected = mean + torch.special.ndtri(torch.tensor(0.95, dtype=double)) * deviation
    assert bool(((summary.upper[1] - expected).abs() < 0.15 * deviation).all())


def test_difference_is_that_of_utilities_whose_levels_are_put_aside():
    """In closed form: the mean square of a normal vector, centred over points."""
    model = model_of(wants([1, 1, -1]))
    summary = model.judge_summary(judges=[2], X=X, num_samples=2048)
    n = len(X)
    centred = torch.eye(n, dtype=double) - 1 / n
    apart = torch.kron(centred, torch.tensor([[-1.0, 1.0]], dtype=double))  # from what all share
    difference = Committee(model, [None, 2]).posterior(X).affine(apart)
    expected = ((difference.mean.square() + difference.variance).sum() / n).sqrt()
    assert summary.difference.item() == pytest.approx(expected.item(), rel=0.02)


def test_directions_are_the_principal_axes_of_expected_second_moments():
    """In closed form, from the joint normal distribution of three judges' tastes."""
    model = model_of(wants([1, 1, -1]))
    design = torch.linalg.pinv(torch.cat([torch.ones(8, 1, dtype=double), X - X.mean(0)], dim=-1))[1:]
    scaled = design * X.std(0, correction=0).unsqueeze(-1)
    summary = model.judge_summary(X=X, num_samples=2048, level=0.8)
    committee, apart = Committee(model, [0, 1, 2]).posterior(X), torch.eye(3, dtype=double) - 1 / 3
    tastes = [committee.affine(torch.kron(scaled, row.unsqueeze(0))) for row in apart]
    means = [taste.mean.squeeze(-1) for taste in tastes]
    covariances = [taste.moment_matched().distribution.covariance_matrix for taste in tastes]
    moment = sum(m.outer(m) + S for m, S in zip(means, covariances, strict=True))
    variance, axes = torch.linalg.eigh(moment)
    found = summary.directions
    assert torch.allclose(found.share, (variance / variance.sum()).flip(-1), atol=0.01)
    assert torch.allclose((found.weights @ axes.flip(-1)).abs(), torch.eye(2, dtype=double), atol=0.05)
    for row, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        score, deviation = found.weights @ mean, (found.weights @ covariance @ found.weights.mT).diagonal().sqrt()
        assert bool(((found.mean[row] - score).abs() < 5 * deviation / 2048**0.5).all())
        for end, level in ((found.lower, 0.1), (found.upper, 0.9)):
            expected = score + torch.special.ndtri(torch.tensor(level, dtype=double)) * deviation
            assert bool(((end[row] - expected).abs() < 0.15 * deviation).all())
    assert model.judge_summary(judges=[1]).directions.mean.shape == (1, 0)


@pytest.mark.parametrize("rank", [1, 2, None])
def test_segments_lie_apart_in_the_first_direction(rank):
    """Six judges want much of the first input and little of the third, six the opposite; all want the second."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(16, 3, dtype=double, generator=generator)
    side = torch.tensor([1.0, -1.0], dtype=double).repeat(6)
    likes = torch.stack([5 * side, torch.full_like(side, 4.0), -3 * side], dim=-1)
    judge = torch.arange(12).repeat_interleave(12)
    shown = torch.stack([torch.randperm(16, generator=generator)[:2] for _ in judge])
    said = (points[shown] * likes[judge].unsqueeze(1)).sum(-1)
    said = said + torch.randn(said.shape, dtype=double, generator=generator)
    answers = Preference(shown.gather(-1, said.argsort(-1, descending=True)), judge=judge)
    model = SkewGP(points, answers, judge_covar_module=LinearTastesKernel(3, rank=rank, scale=10.0), approximation="ep")
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    directions = model.judge_summary().directions
    assert len(directions.share) == (rank or len(directions.share))
    assert directions.share.sum().item() == pytest.approx(1.0)
    assert directions.share[0] > 0.8
    assert directions.weights[0] @ torch.tensor([5.0, 0.0, -3.0], dtype=double) / 34**0.5 > 0.9
    assert torch.equal(directions.mean[:, 0].sign(), side)
    certain = (directions.lower[:, 0] > 0) | (directions.upper[:, 0] < 0)
    assert certain.double().mean() > 0.8


def test_bad_summaries_are_refused_in_words():
    model = model_of(wants([1, -1]))
    with pytest.raises(InputDataError, match="two judges"):
        SkewGP(X, Preference([[0, 1]])).judge_summary()
    with pytest.raises(InputDataError, match="level"):
        model.judge_summary(level=1.0)
    with pytest.raises(InputDataError, match=r"list of judges; write \[0\]"):
        model.judge_summary(0)
    with pytest.raises(InputDataError, match="one plane"):
        model.judge_summary(X=X[:2])
    with pytest.raises(InputDataError, match="too many"):
        model.judge_summary(X=X.repeat(200, 1))
    with pytest.raises(InputDataError, match="gave answers"):
        model.judge_summary(judges=[5])
    for bad, match in (
        ({"level": "high"}, "level must be a finite number; got 'high'"),
        ({"judges": []}, "judges must not be empty"),
        ({"num_samples": 0}, "num_samples must be an integer"),
        ({"seed": "a"}, "seed must be an integer"),
        ({"X": [[0.0, 1.0]]}, "X must be a floating point tensor"),
        ({"X": X.unsqueeze(0)}, "X must be n x d"),
        ({"X": torch.full_like(X, torch.nan)}, "X contains NaN"),
    ):
        with pytest.raises(InputDataError, match=match):
            model.judge_summary(**bad)
    with pytest.raises(InputDataError, match="names"):
        model.judge_summary().columns(["ann"])


def test_summary_of_single_precision_points_is_that_of_double_ones():
    model = model_of(wants([1, -1]))
    found, expected = (model.judge_summary(X=points) for points in (X.float(), X.float().double()))
    assert torch.equal(found.mean, expected.mean)


def test_summary_tells_the_taste_for_a_rare_category():
    """One point in sixty has it, which points evenly spaced among 300 may miss."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(300, 3, dtype=double, generator=generator)
    points[:, 2] = (torch.arange(300) % 60 == 0).double()
    rare = torch.arange(0, 300, 60)
    pairs = torch.stack([rare, rare + 7], dim=-1)  # judge 0 wants the category, judge 1 does not
    answers = Preference(torch.cat([pairs, pairs.flip(-1)]), judge=torch.arange(10) // 5)
    summary = SkewGP(points, answers, approximation="ep").judge_summary()
    assert summary.mean[1, 3] > 0.5
    assert summary.mean[2, 3] < -0.5

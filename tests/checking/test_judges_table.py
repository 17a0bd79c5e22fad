"""The table of judges against closed forms."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from judge_cases import X, double, model_of, wants

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import judge_summary, judges
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import Committee
from botorch_skewgp.observations import Preference


def test_summary_tells_who_wants_what():
    model = model_of(wants([1, 1, -1]))
    summary = judge_summary(model, seed=3)
    assert summary.num_answers.tolist() == [14, 14, 14]
    assert judge_summary(model, torch.tensor([2, 0]), num_samples=8).num_answers.tolist() == [14, 14]
    first = summary.mean[1:, 1]
    assert bool((first[:2] > 0).all())
    assert first[2] < 0
    assert bool((summary.lower <= summary.mean).all() & (summary.mean <= summary.upper).all())
    assert summary.agreement[0, 1] > 0.8
    assert summary.agreement[0, 2] < 0.45
    assert torch.equal(summary.agreement, summary.agreement.mT)
    assert summary.difference[2] > summary.difference[0]
    columns = summary.columns()
    num = len(summary.effects) + 1
    assert columns["person"] == [name for name in ("all", "0", "1", "2") for _ in range(num)]
    assert columns["attribute"][:2] == ["level", "x0"]
    assert columns["upper"][1::num] == summary.upper[:, 1].tolist()
    assert columns["answers"][::num] == [42, 14, 14, 14]
    assert len({len(column) for column in columns.values()}) == 1
    assert str(summary).count("\n") == 4 * num  # a head, then rows of what all share and of three judges


def test_tastes_are_those_of_least_squares():
    """A map of the joint posterior in closed form: mean and interval of each coefficient."""
    model = model_of(wants([1, 1, -1]))
    design = torch.cat([torch.ones(8, 1, dtype=double), X - X.mean(0)], dim=-1)
    summary = judge_summary(model, judges=[2], X=X, num_samples=2048)
    posterior = model.posterior(X, judge=2).affine(torch.linalg.pinv(design))
    mean, deviation = posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1)
    assert bool(((summary.mean[1] - mean).abs() < 5 * deviation / 2048**0.5).all())
    expected = mean + torch.special.ndtri(torch.tensor(0.95, dtype=double)) * deviation
    assert bool(((summary.upper[1] - expected).abs() < 0.15 * deviation).all())


def test_difference_is_that_of_utilities_whose_levels_are_put_aside():
    """In closed form: the mean square of a normal vector, centred over points."""
    model = model_of(wants([1, 1, -1]))
    summary = judge_summary(model, judges=[2], X=X, num_samples=2048)
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
    summary = judge_summary(model, X=X, num_samples=2048, level=0.8)
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
    assert judge_summary(model, judges=[1]).directions.mean.shape == (1, 0)


@pytest.mark.parametrize("rank", [1, None])
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
    directions = judge_summary(model).directions
    assert len(directions.share) == (rank or len(directions.share))
    assert directions.share.sum().item() == pytest.approx(1.0)
    assert directions.share[0] > 0.8
    assert directions.weights[0] @ torch.tensor([5.0, 0.0, -3.0], dtype=double) / 34**0.5 > 0.9
    assert torch.equal(directions.mean[:, 0].sign(), side)
    certain = (directions.lower[:, 0] > 0) | (directions.upper[:, 0] < 0)
    assert certain.double().mean() > 0.8


def test_groups_of_judges_tell_what_all_of_them_together_tell(monkeypatch):
    model = model_of(wants([1, 1, -1, -1, 1, -1], each=6))
    together = judge_summary(model, num_samples=2048)
    monkeypatch.setattr(judges, "MAX_VALUES", 2 * len(X))
    monkeypatch.setattr(judges, "MAX_OF_GROUP", 3 * len(X))
    groups = judge_summary(model, num_samples=2048)
    spread = (together.upper - together.lower) / 3.3
    for name in ("mean", "lower", "upper"):
        assert bool(((getattr(groups, name) - getattr(together, name)).abs() < 0.15 * spread).all()), name
    assert torch.allclose(groups.difference, together.difference, rtol=0.05)
    assert torch.allclose(groups.agreement, together.agreement, atol=0.08)
    assert torch.allclose(groups.directions.share, together.directions.share, atol=0.05)
    assert groups.directions.weights[0] @ together.directions.weights[0] > 0.98
    assert torch.equal(groups.directions.mean[:, 0].sign(), together.directions.mean[:, 0].sign())


def test_few_points_compare_utilities_where_tastes_are_those_of_all_points():
    model = model_of(wants([1, 1, -1]))
    few, all_points = judge_summary(model, X=X[:2]), judge_summary(model)
    assert torch.allclose(few.mean[:, 1:], all_points.mean[:, 1:], atol=0.1)
    assert torch.allclose(few.mean[0, 0], model.posterior(X[:2]).mean.mean(), atol=0.1)
    assert few.agreement[0, 1] == pytest.approx(1.0 if X[0, 0] != X[1, 0] else 0.5, abs=0.2)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"model": SkewGP(X, Preference([[0, 1]]))}, "two judges"),
        ({"model": SkewGP(X * 0 + X[:, :1], wants([1, -1]), approximation="ep")}, "one plane"),
        ({"level": 1.0}, "level"),
        ({"level": "high"}, "level must be a finite number; got 'high'"),
        ({"judges": 0}, r"list of judges; write \[0\]"),
        ({"judges": [5]}, "gave answers"),
        ({"judges": []}, "judges must not be empty"),
        ({"num_samples": 0}, "num_samples must be an integer"),
        ({"seed": "a"}, "seed must be an integer"),
        ({"X": X.repeat(200, 1)}, "too many"),
        ({"X": [[0.0, 1.0]]}, "X must be a floating point tensor"),
        ({"X": X.unsqueeze(0)}, "X must be n x d"),
        ({"X": torch.full_like(X, torch.nan)}, "X contains NaN"),
    ],
)
def test_bad_summaries_are_refused_in_words(options, match):
    with pytest.raises(InputDataError, match=match):
        judge_summary(**{"model": model_of(wants([1, -1])), **options})


def test_summary_of_single_precision_points_is_that_of_double_ones():
    model = model_of(wants([1, -1]))
    found, expected = (judge_summary(model, X=points) for points in (X.float(), X.float().double()))
    assert torch.equal(found.mean, expected.mean)


def test_summary_tells_the_taste_for_a_rare_category():
    """One point in sixty has it, which points evenly spaced among 300 may miss."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(300, 3, dtype=double, generator=generator)
    points[:, 2] = (torch.arange(300) % 60 == 0).double()
    rare = torch.arange(0, 300, 60)
    pairs = torch.stack([rare, rare + 7], dim=-1)  # judge 0 wants the category, judge 1 does not
    answers = Preference(torch.cat([pairs, pairs.flip(-1)]), judge=torch.arange(10) // 5)
    summary = judge_summary(SkewGP(points, answers, approximation="ep"))
    assert summary.mean[1, 3] > 0.5
    assert summary.mean[2, 3] < -0.5

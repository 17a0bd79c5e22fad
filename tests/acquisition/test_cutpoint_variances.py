"""Variances of cut-points, against the posterior of the parameters on a grid."""

from copy import deepcopy

import pytest
import torch
from botorch.fit import fit_gpytorch_mll

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import Question
from botorch_skewgp.acquisition.cutpoint_variances import cutpoint_variances
from botorch_skewgp.acquisition.look_ahead import AnswerModel
from botorch_skewgp.acquisition.next_question import _answers_with_outcomes, _cutpoints
from botorch_skewgp.likelihoods import OrdinalLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Choice, Numeric, Ordinal, Preference, Tie

X = torch.linspace(0, 1, 25, dtype=torch.float64).unsqueeze(-1)
F = torch.sin(6 * X.squeeze(-1))
NUMBERS = Numeric(F[::3], index=torch.arange(0, 25, 3))


def fitted(*observations, likelihood=None) -> tuple[SkewGP, SkewGPMarginalLogLikelihood]:
    model = SkewGP(X, observations, likelihood)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    return model, mll.train()


def grid_variances(model, mll, parameter, values, cutpoints):
    """Mean squares of cut-points around their means, over the density of a parameter on a grid."""
    log_density, ends = [], []
    with torch.no_grad():
        for value in values:
            parameter.fill_(value)
            log_density.append(mll(model(*model.train_inputs), model.train_targets))
            ends.append(cutpoints().clone())
    p = torch.stack(log_density).softmax(0)
    ends = torch.stack(ends)
    assert float(p[0] + p[-1]) < 1e-3
    return p @ (ends - p @ ends).square()


def test_of_the_level_of_labels():
    noisy = F[1::2] + 0.5 * torch.randn(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model, mll = fitted(NUMBERS, Binary((noisy > 0.3).long(), index=torch.arange(1, 25, 2)))
    labels = model.likelihood.for_kind(Binary)
    (found,) = cutpoint_variances(deepcopy(model), [torch.zeros(1, dtype=torch.float64)])
    assert float(found) == 0.0  # nothing moves it
    copied = deepcopy(model)
    (found,) = cutpoint_variances(copied, [copied.likelihood.for_kind(Binary).shift])
    assert torch.equal(copied.likelihood.for_kind(Binary).shift, labels.shift)
    wanted = grid_variances(model, mll, labels.shift, torch.linspace(-4, 4, 81), lambda: labels.shift)
    assert found.tolist() == pytest.approx([float(wanted)], rel=0.2)
    assert float(found) > 0.01


@pytest.mark.slow
def test_of_the_gap_between_grades():
    noisy = F + 0.3 * torch.randn(25, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    grades = torch.bucketize(noisy, torch.tensor([-0.4, 0.4], dtype=torch.float64))
    likelihood = OrdinalLikelihood(3)  # two cut-points: the first at zero, the second a gap above
    model, mll = fitted(Ordinal(grades, 3), likelihood=likelihood)
    copied = deepcopy(model)
    (found,) = cutpoint_variances(copied, [copied.likelihood.cutpoints])
    raw = likelihood.raw_gaps
    wanted = grid_variances(model, mll, raw, torch.linspace(-4, 8, 321), lambda: likelihood.cutpoints)
    assert found.tolist() == [0.0, pytest.approx(float(wanted[1]), rel=0.2)]


@pytest.mark.parametrize("judge", [None, 0, "new"])
def test_learned_cutpoints_make_answers_noisier_and_known_ones_do_not(judge):
    grades = Ordinal([0, 2, 1, 2, 1, 0], 3, index=[0, 1, 2, 3, 4, 5], judge=[0, 1] * 3)
    question, noise = Question(Ordinal), []
    for learn in (True, False):
        likelihood = OrdinalLikelihood(3)
        likelihood.requires_grad_(learn)
        model = SkewGP(X, grades, likelihood, approximation="ep").eval()
        model.posterior(X)  # the fitted value holds its own likelihood
        with torch.no_grad():
            (answer,) = _answers_with_outcomes([model], [(question, judge)], X)[question, judge]
            noise.append(float(answer.reading.noise - AnswerModel.of(model, Ordinal, judge=judge).reading.noise))
    assert noise[0] > 0.01
    assert noise[1] == 0


@pytest.mark.slow
def test_unknown_cutpoints_count_as_noise_of_an_answer():
    duels = Preference([[8, 3], [9, 20], [2, 16]])
    model, _ = fitted(NUMBERS, duels, Tie([[0, 12]]), Ordinal([0, 3, 1], 4, index=[15, 6, 9]))
    model.eval()
    before = {name: p.clone() for name, p in model.named_parameters()}
    kinds = [Question(Ordinal), Question(Preference), Question(Choice, 3)]
    found = _answers_with_outcomes([model], [(kind, None) for kind in kinds], X)
    known = [AnswerModel.of(model, kind.kind, kind.num_points).reading for kind in kinds]
    answers = [found[kind, None][0].reading for kind in kinds]
    extra = [(reading.variance - before.variance).detach() for reading, before in zip(answers, known, strict=True)]
    copied = deepcopy(model)
    variances = cutpoint_variances(copied, [_cutpoints(copied, kind, X, None) for kind in kinds])
    assert float(extra[0]) == pytest.approx(float(variances[0].mean()), rel=1e-6)
    assert float(extra[1]) == pytest.approx(float(variances[1].mean()), rel=1e-6)  # of the difference of two items
    assert float(extra[0]) > 0.01 < float(extra[1])
    assert not extra[2].any()  # a choice has no cut-points to learn
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert not model.training


def test_the_gaps_of_a_long_scale_count_as_known():
    grades = (50 * (F + 1)).long()
    model = SkewGP(X, [NUMBERS, Ordinal(grades, 101)])
    (found,) = cutpoint_variances(model, [model.likelihood.for_kind(Ordinal).cutpoints])
    torch.testing.assert_close(found, found[:1].expand(100))  # they move with the level alone
    assert float(found[0]) > 0

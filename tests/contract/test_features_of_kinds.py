"""Every kind of observation with every feature of a model: copies, precision, ensembles, judges, slips."""

import copy
import pickle
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from botorch.models.transforms.input import Normalize
from kind_cases import EVERY, TEST_X, TRAIN_X

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    RowLikelihood,
    default_likelihood,
)
from botorch_skewgp.models import FullyBayesianSkewGP, SkewPrior
from botorch_skewgp.observations import AffineProbit, Binary, Choice, LabelPreference, Preference, Ranking, Slope, Vote
from botorch_skewgp.observations.duels import BUTTONS
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import SinhArcsinh

X, Q = TRAIN_X / 3, TEST_X / 3
WITHOUT_PROBABILITIES = ("numeric", "numeric with given noise", "sums", "censored", "tie", "slope", "affine")
WIDTHS = {"tie_width": torch.tensor([0.2, 0.7]), "learn_tie_width": True, "ties_allowed": True}
STRETCHES = {"stretch": torch.tensor([0.5, 2.0]), "learn_stretch": True}


def of_two(entry):
    return replace(entry, judge=torch.arange(entry.num_answers) % 2)


DUELS = of_two(EVERY["preference"])
FEATURES = {
    "a transform": {"observations": DUELS, "input_transform": Normalize(1)},
    "inducing points": {"observations": EVERY["binary"], "inducing_points": 4},
    "reliabilities": {"observations": DUELS, "learn_judge_reliability": True},
    "slips": {"observations": DUELS, "likelihood": PreferenceLikelihood(slip=[0.1, 0.2])},
    "widths": {"observations": DUELS, "likelihood": PreferenceLikelihood(**WIDTHS)},
    "stretches": {"observations": of_two(EVERY["ordinal"]), "likelihood": OrdinalLikelihood(3, **STRETCHES)},
    "a warping": {"observations": EVERY["numeric"], "likelihood": NumericLikelihood(warping=SinhArcsinh())},
    "weights": {"observations": Binary([1, 0, 1], count=[0.5, 1.5, 2.2])},
    "a skew prior": {"observations": EVERY["slope"], "skew_prior": SkewPrior(Q[:2], [1, -1], 0.3)},
}


def model_of(observations, **settings):
    settings = {"draw_settings": DrawSettings(num_draws=64, min_effective_size=1)} | settings
    return SkewGP(X, observations, **copy.deepcopy(settings)).eval()


def build(name):
    return model_of(EVERY[name]) if name in EVERY else model_of(**FEATURES[name])


def moments(model):
    posterior = model.posterior(Q.to(model.datapoints))
    return torch.cat([posterior.mean, posterior.variance]).detach()


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
@pytest.mark.parametrize(
    ("name", "drawn"), [*((name, True) for name in [*EVERY, *FEATURES]), *((name, False) for name in FEATURES)]
)
def test_copies_and_moves(name, drawn):
    model = build(name)
    model.covar_module.outputscale = 1.7
    before = moments(model) if drawn else moments(copy.deepcopy(model))
    fresh = build(name)
    assert not torch.allclose(moments(fresh), before, rtol=1e-3)
    fresh.load_state_dict(model.state_dict())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), fresh):
        assert torch.equal(moments(other), before)
        assert other.datapoints.data_ptr() != model.datapoints.data_ptr() or other is fresh
        other.covar_module.outputscale = 0.1
        assert torch.equal(moments(model), before)
    single = copy.deepcopy(model).float()
    assert moments(single).dtype == torch.float32
    torch.testing.assert_close(moments(single).double(), before, atol=0.02, rtol=0.02)
    again = single.double()
    assert {moments(again).dtype, *(p.dtype for p in again.parameters())} == {torch.float64}


@pytest.mark.parametrize("name", EVERY)
def test_ensembles(name):
    members = [build(name) for _ in range(2)]
    members[1].covar_module.outputscale = 3.0
    ensemble = FullyBayesianSkewGP(members)
    found, own = ensemble.posterior(Q), [member.posterior(Q) for member in members]
    torch.testing.assert_close(found.mean, torch.stack([one.mean for one in own]), rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(found.variance, torch.stack([one.variance for one in own]), rtol=1e-6, atol=1e-8)
    if name not in WITHOUT_PROBABILITIES:
        probs = [member.predictive(Q[:2]).probs for member in members]
        torch.testing.assert_close(ensemble.predictive(Q[:2]).probs, sum(probs) / 2)


SINGLE = ("partial ranking", "label graph", "graded duels by name")  # of one answer, or as good as another kind
JUDGED = {name: of_two(entry) for name, entry in EVERY.items() if name not in SINGLE}
JUDGED["tie"], JUDGED["slope"] = ([JUDGED["preference"], JUDGED[name]] for name in ("tie", "slope"))
JUDGED["affine"] = AffineProbit([[1.0, -1.0], [0.5, 0.5]], 0.0, [[1.0, 0.0], [0.0, 1.0]], judge=[0, 1])


@pytest.mark.parametrize("name", JUDGED)
def test_judges(name):
    model = model_of(JUDGED[name], approximation="ep")
    shared, first, second, new = (model.posterior(Q, judge=judge) for judge in (None, 0, 1, "new"))
    assert not torch.allclose(first.mean, second.mean)
    assert torch.allclose(shared.mean, new.mean)
    assert bool((new.variance > shared.variance).all())
    if name not in WITHOUT_PROBABILITIES:
        assert bool(model.predictive(Q[:2], judge=1).probs.isfinite().all())


@pytest.mark.parametrize("name", [name for name in EVERY if not EVERY[name].anchors_scale])
def test_slips(name):
    likelihood: RowLikelihood = default_likelihood([EVERY[name]])
    likelihood.start_slips()
    likelihood.slip = 0.1
    for given in (likelihood, MixedLikelihood(likelihood, NumericLikelihood())):
        model = model_of(EVERY[name], likelihood=given)
        slips = model.slips()
        assert slips.shape == (EVERY[name].num_answers,)
        assert bool(((slips > 0) & (slips < 1)).all())
        assert bool(moments(model).isfinite().all())


HALVES = ((0.0, torch.inf), (-torch.inf, 0.0))
QUESTIONS = {  # with all of their answers
    "choice": [Choice([[i, (i + 1) % 3, (i + 2) % 3]]) for i in range(3)],
    "ranking": [Ranking([order]) for order in permutations(range(3))],
    "ranking with ties": [
        *(Ranking([order], ties_allowed=True) for order in permutations(range(3))),
        *(Ranking([[i, (i + 1) % 3, (i + 2) % 3]], ranks=[[0, 0, 1]]) for i in range(3)),
        *(Ranking([[i, (i + 1) % 3, (i + 2) % 3]], ranks=[[0, 1, 1]]) for i in range(3)),
        Ranking([[0, 1, 2]], ranks=[[0, 0, 0]]),
    ],
    "vote": [Vote([[0, 1]], [button], BUTTONS) for button in BUTTONS],
    "graded duels": [Preference([pair], [step], 2) for pair in ([0, 1], [1, 0]) for step in (0, 1)],
    "slope": [Slope(0, sign, index=[0]) for sign in (1, -1)],
    "classes": [LabelPreference.from_classes([label], 3) for label in range(3)],
    "affine": [AffineProbit([[1.0]], 0.0, [[1.0]], *bounds) for bounds in HALVES],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_evidences_of_all_answers_add_up_to_one_with_slips(name):
    likelihood = default_likelihood(QUESTIONS[name])
    likelihood.start_slips()
    likelihood.slip = 0.3
    settings = {"likelihood": likelihood, "draw_settings": DrawSettings(num_draws=1024)}
    evidence = [model_of(answer, **settings).log_marginal_likelihood() for answer in QUESTIONS[name]]
    values = torch.stack([entry.value for entry in evidence]).exp()
    error = (values * torch.stack([entry.standard_error for entry in evidence])).norm()
    assert abs(float(values.sum() - 1)) < 4.5 * error + 1e-3
    assert bool((values > 0.3 / len(values)).all())

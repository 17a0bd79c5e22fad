"""Comparisons: rows with the noise that each kind implies; graded duels and votes in closed form."""

import math

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from tensors import tensor
from torch.distributions import Normal

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OutcomeScale,
    PreferenceLikelihood,
    VoteLikelihood,
    default_likelihood,
)
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.observations import Binary, Choice, GradedPreference, Numeric, Preference, Ranking, Tie, Vote
from botorch_skewgp.observations.duels import BUTTONS
from botorch_skewgp.truncated.draws import DrawSettings

INF = math.inf
LIKE = torch.zeros(0, dtype=torch.float64)
NOISE, WIDTH, GAPS, SCALE, THRESHOLD, LEVEL_GAP = 0.3, 0.4, (0.5, 0.9), 1.4, -0.3, 0.8


def make(**kwargs):
    return PreferenceLikelihood(noise=NOISE, **kwargs).double()


def noise_covariance(rows):
    full = torch.diag(rows.noise)
    return full if rows.noise_root is None else full + rows.noise_covariance


def difference(n, pairs):
    D = torch.zeros(len(pairs), n, dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        D[i, a], D[i, b] = 1.0, -1.0
    return D


@pytest.mark.parametrize(
    ("observation", "blocks"),
    [
        (Choice([[1, 0, 2, 3]]), [[(1, 0), (1, 2), (1, 3)]]),
        (Choice([[4, 3, -1]]), [[(4, 3)]]),
        (Ranking([[2, 0, 4, 1]]), [[(2, 0), (0, 4), (4, 1)]]),
        (Ranking([[4, 1, 0, 3]], ranks=[[0, 0, 1, 1]], ties_allowed=False), [[(4, 0), (4, 3), (1, 0), (1, 3)]]),
        (Ranking([[4, 1, 0, 3]], ranks=[[0, 2, 2, 5]], ties_allowed=False), [[(4, 1), (4, 0), (1, 3), (0, 3)]]),
        # the same items in two events have noise of their own in each
        (Choice([[0, 1, 2], [0, 2, 3]]), [[(0, 1), (0, 2)], [(0, 2), (0, 3)]]),
        (Ranking([[0, 1, 2], [2, 1, -1]]), [[(0, 1), (1, 2)], [(2, 1)]]),
    ],
)
def test_noise_of_an_item_is_drawn_once_in_an_event(observation, blocks):
    """With `D` the differences of an event their noise has covariance `noise D D^T`."""
    rows = make().rows(observation, LIKE)
    D = [difference(5, block) for block in blocks]
    assert torch.allclose(rows.weight(5), torch.cat(D))
    assert torch.allclose(noise_covariance(rows), NOISE * torch.block_diag(*(d @ d.T for d in D)))
    assert (rows.noise >= 0).all()
    assert ((rows.lower == 0) & (rows.upper == INF)).all()


def test_outcome_scale_leaves_comparisons_alone():
    scale = OutcomeScale(location=10.0, scale=3.0)
    rows, plain = make().rows(Tie([[0, 1]]), LIKE, scale), make().rows(Tie([[0, 1]]), LIKE)
    assert torch.equal(rows.upper, plain.upper)
    assert torch.equal(rows.noise, plain.noise)


def test_comparison_needs_two_items():
    with pytest.raises(InputDataError, match=r"function_samples must be .* k of at least 2.*got \(3, 1\)"):
        make()(torch.zeros(3, 1, dtype=torch.float64))


def test_fantasy_is_that_the_best_point_beats_all_others():
    rows = make().fantasy_rows(tensor(0.1, 0.9, -0.4).expand(2, 3), OutcomeScale())
    assert (rows.weight.shape, rows.noise_covariance.shape) == ((2, 2, 3), (2, 2, 2))
    D = difference(3, [(1, 0), (1, 2)])
    assert torch.equal(rows.weight[0], D)
    assert torch.allclose(rows.noise_covariance[0], NOISE * D @ D.T)
    assert ((rows.lower == 0) & (rows.upper == INF)).all()


@pytest.mark.parametrize("ties_allowed", [False, True])
def test_the_highest_outcome_of_a_duel_is_a_win(ties_allowed):
    likelihood = PreferenceLikelihood(ties_allowed=ties_allowed)
    _, won = likelihood.answers(Preference([[0, 1]]))
    assert likelihood.reading(Preference, torch.zeros(1)).highest == int(won)


X = torch.tensor([[0.0], [0.7]], dtype=torch.float64)
PAIR = [[0, 1]]


def kernel():
    return rbf_kernel(SCALE, 1.0)


def graded(ties_allowed: bool) -> PreferenceLikelihood:
    likelihood = PreferenceLikelihood(NOISE, tie_width=WIDTH, ties_allowed=ties_allowed, num_strengths=3)
    likelihood.strength_gaps = torch.tensor(GAPS)
    return likelihood


def votes(buttons=BUTTONS) -> VoteLikelihood:
    return VoteLikelihood(buttons, threshold=THRESHOLD, level_gap=LEVEL_GAP, noise=NOISE, tie_width=WIDTH)


def model_of(observations, likelihood, num_draws=512):
    settings = DrawSettings(num_draws=num_draws, seed=3)
    return SkewGP(X, observations, likelihood, kernel(), gpytorch.means.ZeroMean(), draw_settings=settings).eval()


# Two points' utilities are of equal variance, so that their difference and their average are independent.
COVARIANCE = SCALE * math.exp(-0.5 * 0.7**2)
DIFFERENCE = Normal(0.0, (2 * (SCALE - COVARIANCE) + 2 * NOISE) ** 0.5)
AVERAGE = Normal(0.0, ((SCALE + COVARIANCE) / 2 + NOISE / 2) ** 0.5)


def cells(law, cutpoints):
    """The probabilities between cut-points, the lowest first."""
    return law.cdf(torch.tensor([-torch.inf, *cutpoints, torch.inf], dtype=X.dtype)).diff()


@pytest.mark.parametrize("ties_allowed", [False, True])
def test_graded_duels(ties_allowed):
    above = [least := WIDTH if ties_allowed else 0.0, least + GAPS[0], least + GAPS[0] + GAPS[1]]
    truth = cells(DIFFERENCE, sorted({-cut for cut in above} | set(above)))
    likelihood = graded(ties_allowed)
    model = model_of([], likelihood)
    kind = likelihood.reading(GradedPreference, X)
    read = model.latent_posterior(X).affine(kind.weight)
    found = kind.log_outcome_probabilities(read.component_means.squeeze(-2), read.gaussian_variance).exp()
    assert kind.num_outcomes == (7 if ties_allowed else 6)
    torch.testing.assert_close(found.mean(-2).squeeze(), truth, atol=1e-6, rtol=0)
    # the same from the rows of data: evidences of single answers, the first point's wins and losses
    pairs = [Preference([[1, 0]], [step], 3) for step in (2, 1, 0)] + [Preference(PAIR, [s], 3) for s in (0, 1, 2)]
    if ties_allowed:
        pairs.insert(3, Tie(PAIR))
    evidence = torch.stack([model_of(answer, likelihood).log_marginal_likelihood("ep").value for answer in pairs])
    torch.testing.assert_close(evidence.exp(), truth, atol=1e-6, rtol=0)
    # a win whose strength is not told is any of the winner's cells
    plain = model_of(Preference(PAIR), likelihood).log_marginal_likelihood("ep").value.exp()
    assert float(plain) == pytest.approx(float(truth[-3:].sum()), abs=1e-6)


@pytest.mark.parametrize(
    "buttons", [BUTTONS, BUTTONS[:4], ("first", "second", "both bad", "both good"), BUTTONS[:3], BUTTONS[:2]]
)
def test_votes(buttons):
    width = WIDTH if len(buttons) > 2 else 0.0
    loss, tie, win = cells(DIFFERENCE, [-width, width]).tolist()
    bad, middle, good = cells(AVERAGE, [THRESHOLD, THRESHOLD + LEVEL_GAP * ("tie" in buttons)])
    level = {"both bad": bad, "tie": middle, "both good": good}
    missing = sum(share for button, share in level.items() if button not in buttons)  # counts as a tie
    level["tie"] = level["tie"] + missing
    truth = torch.tensor([{"first": win, "second": loss}.get(b, tie * float(level.get(b, 0))) for b in buttons])
    likelihood = votes(buttons)
    evidence = [model_of(Vote(PAIR, [b], buttons), likelihood).log_marginal_likelihood("exact") for b in buttons]
    found = torch.stack([entry.value for entry in evidence]).exp()
    error = torch.stack([entry.standard_error for entry in evidence]).nan_to_num() * found
    assert ((found - truth).abs() < 4.5 * error + 1e-4).all()
    predicted = model_of([], likelihood).predictive(X).probs.detach()
    assert predicted.shape == (len(buttons),)
    assert torch.allclose(predicted, truth.to(predicted), atol=6e-3)


def test_defaults():
    assert isinstance(default_likelihood([]), NumericLikelihood)
    plain, steps = Preference(PAIR), Preference(PAIR, [2])
    assert [default_likelihood(seen).num_strengths for seen in ([plain], [plain, steps])] == [1, 3]
    assert default_likelihood([], kinds=[GradedPreference]).num_strengths == 2
    likelihood = default_likelihood([plain, Vote(PAIR, ["tie"]), Vote(PAIR, ["both good"])])
    assert (type(likelihood), likelihood.buttons) == (VoteLikelihood, ("first", "second", "tie", "both good"))
    assert (likelihood.shift.requires_grad, likelihood.ties_allowed) == (False, True)
    numbers = default_likelihood([Numeric([0.1]), Vote(PAIR, ["both bad"])])
    assert isinstance(numbers, MixedLikelihood)
    assert numbers.for_kind(Vote).shift.requires_grad
    assert isinstance(SkewGP(X, Vote(PAIR, ["tie"])).mean_module, IntegratedConstantMean)
    assert isinstance(SkewGP(X, [Binary([1]), Vote(PAIR, ["tie"])]).likelihood.for_kind(Vote), VoteLikelihood)


def test_what_a_likelihood_does_not_know():
    with pytest.raises(InputDataError, match=r"answers have 3 strengths, the likelihood 1; give PreferenceLikelihood"):
        SkewGP(X, Preference(PAIR, [2]), likelihood=PreferenceLikelihood())
    with pytest.raises(InputDataError, match="answers have 2 strengths, the likelihood 1"):
        PreferenceLikelihood().reading(GradedPreference, X)
    with pytest.raises(InputDataError, match="takes Preference or Tie"):
        SkewGP(X, Vote(PAIR, ["tie"]), likelihood=PreferenceLikelihood())
    with pytest.raises(InputDataError, match=r"'both bad'.* are not among the likelihood's buttons"):
        SkewGP(X, Vote(PAIR, ["both bad"]), likelihood=VoteLikelihood(BUTTONS[:3]))

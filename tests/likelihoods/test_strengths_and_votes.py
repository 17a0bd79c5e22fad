"""Graded duels and votes against quadrature over two utilities, and what a judge's cut-points make of them."""

from functools import cache

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, PreferenceLikelihood, VoteLikelihood, default_likelihood
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.observations import Binary, GradedPreference, Numeric, Preference, Tie, Vote
from botorch_skewgp.observations.duels import BUTTONS
from botorch_skewgp.truncated.draws import DrawSettings

NOISE, WIDTH, GAPS, SCALE, THRESHOLD, LEVEL_GAP = 0.3, 0.4, (0.5, 0.9), 1.4, -0.3, 0.8
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


@cache
def noisy_utilities():
    """A grid of both noisy utilities and its weights, for integrals over what a vote is decided by."""
    step = 0.02
    nodes = torch.arange(-7, 7, step, dtype=torch.float64)
    covariance = SCALE * torch.exp(-0.5 * (X - X.mT).square()) + NOISE * torch.eye(2, dtype=X.dtype)
    grid = torch.cartesian_prod(nodes, nodes + step / 2)
    density = torch.distributions.MultivariateNormal(torch.zeros(2, dtype=X.dtype), covariance).log_prob(grid).exp()
    return grid, density * step**2


def by_quadrature(decide) -> torch.Tensor:
    """The probabilities of the outcomes that a rule tells apart."""
    grid, weights = noisy_utilities()
    outcome = decide(grid[:, 0] - grid[:, 1], grid.mean(-1))
    return torch.stack([weights[outcome == k].sum() for k in range(int(outcome.max()) + 1)])


def grade_of(ties_allowed: bool):
    """The number of the cell of a difference, by counting the cut-points below it."""
    least = WIDTH if ties_allowed else 0.0
    above = [least, least + GAPS[0], least + GAPS[0] + GAPS[1]]
    cuts = sorted({-cut for cut in above} | set(above))
    return lambda difference, average: sum((difference > cut).long() for cut in cuts)


def button_of(difference, average):
    """The number of the button, as a person would go about it."""
    high = average > THRESHOLD + LEVEL_GAP
    level = torch.where(average <= THRESHOLD, 3, torch.where(high, 4, 2))
    return torch.where(difference > WIDTH, 0, torch.where(difference < -WIDTH, 1, level))


@pytest.mark.parametrize("ties_allowed", [False, True])
def test_graded_duels_by_quadrature(ties_allowed):
    truth = by_quadrature(grade_of(ties_allowed))
    likelihood = graded(ties_allowed)
    model = model_of([], likelihood)
    kind = likelihood.reading(GradedPreference, X)
    read = model.latent_posterior(X).affine(kind.weight)
    found = kind.log_outcome_probabilities(read.component_means.squeeze(-2), read.gaussian_variance).exp()
    assert kind.num_outcomes == (7 if ties_allowed else 6)
    assert torch.allclose(found.mean(-2).squeeze(), truth, atol=2e-3)
    # the same from the rows of data: evidences of single answers, the first point's wins and losses
    pairs = [(Preference([[1, 0]], [step], 3)) for step in (2, 1, 0)] + [Preference(PAIR, [s], 3) for s in (0, 1, 2)]
    if ties_allowed:
        pairs.insert(3, Tie(PAIR))
    evidence = torch.stack([model_of(answer, likelihood).log_marginal_likelihood("ep").value for answer in pairs])
    assert torch.allclose(evidence.exp(), truth, atol=2e-3)
    assert float(evidence.exp().sum()) == pytest.approx(1.0, abs=1e-9)
    # a win whose strength is not told is any of the winner's cells
    plain = model_of(Preference(PAIR), likelihood).log_marginal_likelihood("ep").value.exp()
    assert float(plain) == pytest.approx(float(truth[-3:].sum()), abs=2e-3)


@pytest.mark.parametrize(
    "buttons", [BUTTONS, BUTTONS[:4], ("first", "second", "both bad", "both good"), BUTTONS[:3], BUTTONS[:2]]
)
def test_votes_by_quadrature(buttons):
    five = by_quadrature(button_of)
    if buttons == BUTTONS[:2]:
        five = by_quadrature(lambda difference, average: (difference <= 0).long())
        truth = five
    elif "tie" not in buttons:  # one threshold

        def decide(difference, average):
            level = torch.where(average <= THRESHOLD, 2, 3)
            return torch.where(difference > WIDTH, 0, torch.where(difference < -WIDTH, 1, level))

        truth = by_quadrature(decide)
    else:  # what has no button is a tie
        missing = [i for i, button in enumerate(BUTTONS) if button not in buttons]
        truth = five.clone()
        truth[2] += truth[missing].sum()
        truth = truth[[BUTTONS.index(button) for button in buttons]]
    likelihood = votes(buttons)
    evidence = [
        model_of(Vote(PAIR, [button], buttons), likelihood).log_marginal_likelihood("exact") for button in buttons
    ]
    found = torch.stack([entry.value for entry in evidence]).exp()
    error = torch.stack([entry.standard_error for entry in evidence]).nan_to_num() * found
    assert ((found - truth).abs() < 4.5 * error + 4e-3).all()
    predicted = model_of([], likelihood).predictive(X).probs.detach()
    assert predicted.shape == (len(buttons),)
    assert torch.allclose(predicted, truth, atol=6e-3)


def test_defaults():
    plain, steps = Preference(PAIR), Preference(PAIR, [2])
    assert default_likelihood([plain]).num_strengths == 1
    assert default_likelihood([plain, steps]).num_strengths == 3
    assert default_likelihood([], kinds=[GradedPreference]).num_strengths == 2
    likelihood = default_likelihood([plain, Vote(PAIR, ["tie"]), Vote(PAIR, ["both good"])])
    assert isinstance(likelihood, VoteLikelihood)
    assert likelihood.buttons == ("first", "second", "tie", "both good")
    assert not likelihood.shift.requires_grad
    assert likelihood.ties_allowed
    numbers = default_likelihood([Numeric([0.1]), Vote(PAIR, ["both bad"])])
    assert isinstance(numbers, MixedLikelihood)
    assert numbers.for_kind(Vote).shift.requires_grad
    assert isinstance(SkewGP(X, Vote(PAIR, ["tie"])).mean_module, IntegratedConstantMean)
    assert isinstance(SkewGP(X, [Binary([1]), Vote(PAIR, ["tie"])]).likelihood.for_kind(Vote), VoteLikelihood)


def test_votes_turn_round_where_low_values_are_good():
    likelihood, turned = votes(BUTTONS[:4]), Vote(PAIR, ["both bad"]).reversed()
    assert turned.buttons == ("first", "second", "tie", "both good")
    there = VoteLikelihood(turned.buttons, -THRESHOLD - LEVEL_GAP, level_gap=LEVEL_GAP, noise=NOISE, tie_width=WIDTH)
    posterior = model_of([], likelihood).latent_posterior(X)
    probabilities = there.reversed_marginal(
        posterior.scalarize(X.new_tensor([-1.0])), model_of([], there).outcome_scale
    )
    # a bad item of -f has f above the upper of the mirrored thresholds; one threshold each, mirrored
    mirrored = VoteLikelihood(BUTTONS[:4], THRESHOLD, level_gap=LEVEL_GAP, noise=NOISE, tie_width=WIDTH)
    assert torch.allclose(probabilities.probs, mirrored(posterior).probs, atol=6e-3)


def test_what_a_likelihood_does_not_know():
    with pytest.raises(InputDataError, match=r"answers have 3 strengths, the likelihood 1; give PreferenceLikelihood"):
        SkewGP(X, Preference(PAIR, [2]), likelihood=PreferenceLikelihood())
    with pytest.raises(InputDataError, match="the likelihood 1"):
        PreferenceLikelihood().reading(GradedPreference, X)
    with pytest.raises(InputDataError, match="num_strengths must be an integer from 1 to 10000; got 0"):
        PreferenceLikelihood(num_strengths=0)
    with pytest.raises(InputDataError, match="takes Preference or Tie"):
        SkewGP(X, Vote(PAIR, ["tie"]), likelihood=PreferenceLikelihood())
    with pytest.raises(InputDataError, match=r"'both bad'.* are not among the likelihood's buttons"):
        SkewGP(X, Vote(PAIR, ["both bad"]), likelihood=VoteLikelihood(BUTTONS[:3]))
    with pytest.raises(InputDataError, match="threshold must be a finite number"):
        VoteLikelihood(threshold=float("nan"))


def test_votes_by_two_buttons_are_duels():
    X = torch.rand(6, 2, dtype=torch.float64)
    votes = Vote([[0, 1], [2, 1], [0, 3]], ["first", "second", "first"], buttons=["first", "second"])
    model = SkewGP(X, votes, draw_settings=DrawSettings(num_draws=256))
    difference = model.latent_posterior(X[:2]).affine(torch.tensor([[1.0, -1.0]], dtype=torch.float64))
    wins = difference.add_noise(2 * model.likelihood.noise).probability_above(torch.zeros((), dtype=torch.float64))
    first = model.predictive(X[:2]).probs
    torch.testing.assert_close(first[0], wins.squeeze())
    torch.testing.assert_close(first.flip(-1), model.predictive(X[[1, 0]]).probs)

"""Widths of ties of judges' own: rows, evidence and predictions against quadrature, priors, and what is refused."""

import gpytorch
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.optim.utils import sample_all_priors
from gradients import assert_parameter_gradient

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, PreferenceLikelihood, ProbitLikelihood, VoteLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, GradedPreference, Preference, Tie, Vote
from botorch_skewgp.observations.duels import BUTTONS
from botorch_skewgp.truncated.draws import DrawSettings

double = torch.double
LIKE = torch.zeros(0, dtype=double)
WIDTHS = torch.tensor([0.2, 1.5, 0.7], dtype=double)
X = torch.tensor([[0.0], [0.3]], dtype=double)
PAIR = torch.tensor([[0, 1]])


def kernel(outputscale):
    return rbf_kernel(outputscale, 0.3).requires_grad_(False)


def model_of(observations, likelihood, **kwargs):
    return SkewGP(
        X,
        observations,
        likelihood,
        kernel(3.0),
        gpytorch.means.ZeroMean(),
        judge_covar_module=kernel(2.0),
        draw_settings=DrawSettings(num_draws=4096, seed=2),
        **kwargs,
    )


def answers(m=12):
    """Pairs of four points and who compared them."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.stack([torch.randperm(4, generator=generator)[:2] for _ in range(m)])
    return pairs, torch.arange(m) % 3


@pytest.mark.parametrize("ties_allowed", [False, True])
@pytest.mark.parametrize("kind", ["wins", "ties", "strengths", "votes"])
def test_rows_are_those_of_each_judges_own_likelihood(kind, ties_allowed):
    pairs, judge = answers()
    number = torch.arange(len(pairs))
    make, options = PreferenceLikelihood, {"ties_allowed": ties_allowed}
    if kind == "strengths":
        options["num_strengths"] = 3
    if kind == "votes":
        make, options = VoteLikelihood, {"buttons": BUTTONS if ties_allowed else BUTTONS[:2], "threshold": 0.4}

    def observation(at):
        if kind == "wins":
            return Preference(pairs[at], judge=judge[at])
        if kind == "ties":
            return Tie(pairs[at], judge=judge[at])
        if kind == "strengths":
            return Preference(pairs[at], number[at] % 5 % 3, 3, judge=judge[at])
        return Vote(pairs[at], number[at] % len(options["buttons"]), options["buttons"], judge=judge[at])

    rows = make(tie_width=WIDTHS, **options).rows(observation(number), LIKE)
    own = [
        make(tie_width=WIDTHS[j], **options).rows(observation(i.unsqueeze(0)), LIKE)
        for i, j in zip(number, judge, strict=True)
    ]
    for bound in ("lower", "upper"):
        assert torch.allclose(getattr(rows, bound), torch.cat([getattr(entry, bound) for entry in own]))
    assert torch.equal(rows.noise, torch.cat([entry.noise for entry in own]))
    ends = torch.cat([rows.lower, rows.upper])
    assert bool(torch.isclose(ends, WIDTHS.unsqueeze(-1)).any(-1).all()) == (ties_allowed or kind == "ties")


def grid():
    """Differences of two judges' utilities of the two points, their weights, and the chance of each outcome given them.

    Outcomes are win, loss and tie, `num_nodes x judges x 3`.
    """
    nodes, weights = map(torch.as_tensor, np.polynomial.hermite_e.hermegauss(80))
    z = torch.cartesian_prod(nodes, nodes)
    weight = torch.cartesian_prod(weights, weights).prod(-1)
    apart = torch.tensor([[1.0, -1.0]], dtype=double)
    shared, own = ((apart @ kernel(scale)(X).to_dense() @ apart.mT).item() for scale in (3.0, 2.0))
    covariance = torch.full((2, 2), shared, dtype=double) + own * torch.eye(2, dtype=double)
    d = (z @ torch.linalg.cholesky(covariance).mT).unsqueeze(-1)
    width = WIDTHS[:2].unsqueeze(-1)
    win, loss = (torch.special.ndtr((sign * d - width) / 2**0.5).squeeze(-1) for sign in (1.0, -1.0))
    return weight / weight.sum(), torch.stack([win, loss, 1 - win - loss], dim=-1)


def test_evidence_and_predictions_by_quadrature():
    weight, chance = grid()
    given = [(0, 0), (0, 1), (2, 1), (2, 0), (2, 1), (0, 0)]  # an outcome and a judge
    wins, ties = ([who for outcome, who in given if outcome == wanted] for wanted in (0, 2))
    observations = [Preference(PAIR.repeat(len(wins), 1), judge=wins), Tie(PAIR.repeat(len(ties), 1), judge=ties)]
    likelihood = PreferenceLikelihood(tie_width=WIDTHS, ties_allowed=True)
    model = model_of(observations, likelihood)
    posterior = weight * torch.stack([chance[:, who, outcome] for outcome, who in given]).prod(0)
    evidence = model.log_marginal_likelihood("exact")
    assert evidence.value.item() == pytest.approx(posterior.sum().log().item(), abs=4 * evidence.standard_error.item())
    assert evidence.standard_error < 0.02
    for judge in (0, 1):
        expected = (posterior @ chance[:, judge]) / posterior.sum()
        assert torch.allclose(model.predictive(X, judge=judge).probs, expected, atol=0.01)
    together = MixedLikelihood(ProbitLikelihood(), likelihood)
    other = model_of([*observations, Binary([True], judge=[2])], together)
    duels = together.for_judge(1).for_kind(Preference)
    probs = duels(other.latent_posterior(X, judges=[1, 1]), scale=other.outcome_scale).probs
    assert torch.equal(other.predictive(X, judge=1)[Preference].probs, probs)


@pytest.mark.parametrize("judge", [None, "new", 0, 1, 2])
def test_new_answers_are_of_the_judges_width_and_of_others_of_the_average(judge):
    likelihood = PreferenceLikelihood(tie_width=WIDTHS, ties_allowed=True, num_strengths=2)
    model = model_of(Preference(PAIR.repeat(3, 1), judge=[0, 1, 2]), likelihood, approximation="ep").for_judge(judge)
    width = WIDTHS[judge] if isinstance(judge, int) else WIDTHS.mean()
    gap = likelihood.strength_gaps.item()
    cuts = model.answering_likelihood.reading(Preference, X).cutpoints[0]
    assert torch.allclose(cuts, torch.stack([-width, width]))
    cuts = model.answering_likelihood.reading(GradedPreference, X).cutpoints[0]
    assert torch.allclose(cuts, torch.stack([-width - gap, -width, width, width + gap]))
    other = PreferenceLikelihood(tie_width=width, ties_allowed=True, num_strengths=2)
    assert torch.allclose(model.predictive(X).probs, other(model.latent_posterior(X)).probs)


def test_predictions_for_a_new_judge_average_over_learned_widths():
    """The probability of a tie between equals, by quadrature; the kernel makes the two points almost equal."""
    likelihood = PreferenceLikelihood(tie_width=torch.full((3,), 0.5), ties_allowed=True, learn_tie_width=True)
    model = model_of(Preference(PAIR.repeat(3, 1), judge=[0, 1, 2]), likelihood, approximation="ep")
    equal = torch.zeros(2, X.shape[-1], dtype=X.dtype) + torch.tensor([[0.0], [1e-7]], dtype=X.dtype)
    deviation = torch.linspace(-6, 6, 2001, dtype=X.dtype)
    chance = 2 * torch.special.ndtr(0.5 * (0.7 * deviation).exp() / 2**0.5) - 1
    expected = (chance * (-0.5 * deviation.square()).softmax(-1)).sum()
    tie = model.predictive(equal, judge="new").probs[..., 2]
    assert torch.allclose(tie, expected, atol=1e-4)
    assert not torch.allclose(tie, 2 * torch.special.ndtr(torch.tensor(0.5 / 2**0.5)).to(tie) - 1, atol=5e-3)


def test_a_judges_fantasies_are_of_his_width():
    likelihood = PreferenceLikelihood(tie_width=WIDTHS, ties_allowed=True)
    model = model_of(Preference(PAIR.repeat(3, 1), judge=[0, 1, 2]), likelihood)
    for judge in (0, 1):
        one = model.for_judge(judge)
        found = one.condition_on_observations(X.unsqueeze(0), PAIR.unsqueeze(0)).posterior(X).mean[0]
        expected = one.condition_on_observations(X, Preference(PAIR)).posterior(X).mean
        assert (found[0] - found[1]).item() == pytest.approx((expected[0] - expected[1]).item(), abs=0.05)


@pytest.mark.parametrize("width", [0.4, [0.4], torch.tensor([0.4])])
def test_one_width_is_the_same_for_named_judges_to_the_last_digit(width):
    likelihood = PreferenceLikelihood(tie_width=width, learn_tie_width=True, ties_allowed=True)
    assert [name for name, _ in likelihood.named_parameters()] == ["raw_noise", "shift", "raw_tie_width"]
    assert [name for name, *_ in likelihood.named_priors()] == ["tie_width_prior"]
    assert likelihood.for_judge(1) is likelihood
    pairs, judge = answers()
    by_judge, by_none = (likelihood.rows(Tie(pairs, judge=who), LIKE) for who in (judge, None))
    assert torch.equal(by_judge.lower, by_none.lower)
    assert torch.equal(by_judge.upper, by_none.upper)


def learned(**kwargs):
    return PreferenceLikelihood(tie_width=WIDTHS, learn_tie_width=True, ties_allowed=True, **kwargs)


def test_prior_is_of_the_common_width_and_of_each_judges_factor():
    likelihood = learned()
    assert torch.allclose(likelihood.tie_width, WIDTHS)
    common = WIDTHS.log().mean().exp()
    terms = {name: prior.log_prob(read(module)) for name, module, prior, read, _ in likelihood.named_priors()}
    assert terms["tie_width_prior"].item() == pytest.approx(
        torch.distributions.LogNormal(-1.0, 1.0).log_prob(common).item()
    )
    expected = torch.distributions.Normal(0.0, 0.7).log_prob((WIDTHS / common).log())
    assert torch.allclose(terms["tie_width_deviation_prior"].double(), expected)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sample_all_priors(likelihood)
    assert len(likelihood.tie_width.unique()) == 3
    likelihood.tie_width = 0.3
    assert torch.allclose(likelihood.tie_width, torch.full((3,), 0.3, dtype=double))
    fixed = PreferenceLikelihood(tie_width=WIDTHS)
    assert not list(fixed.named_priors())
    assert not any(parameter.requires_grad for parameter in fixed.parameters())


def test_derivatives_of_the_evidence_are_those_of_differences():
    judge = torch.arange(12) % 3
    pairs = PAIR.repeat(12, 1)
    likelihood = learned(num_strengths=2)
    observations = [
        Tie(pairs[:6], judge=judge[:6]),
        Preference(pairs[6:9], judge=judge[6:9]),
        Preference(pairs[9:], [0, 1, 1], 2, judge=judge[9:]),
    ]
    model = model_of(observations, likelihood)
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(likelihood, model).train(), rtol=1e-3, atol=1e-5)


def test_widths_that_do_not_fit_are_refused_in_words():
    likelihood = learned()
    for value, match in [
        ([0.1, 0.2], r"of shape \(3,\), with one for each judge; got shape \(2,\)"),
        ([[0.1, 0.2, 0.3]], r"got shape \(1, 3\)"),
        ([0.1, -0.2, 0.3], "positive"),
        (1e-12, r"within its constraint [^ ]+; got [^ ]+$"),  # not a word of noise
    ]:
        with pytest.raises(InputDataError, match=f"tie_width must be .*{match}"):
            likelihood.tie_width = value
        assert torch.allclose(likelihood.tie_width, WIDTHS)
    for width in ([0.1, 0.0], [[0.1, 0.2]], [], "wide"):
        with pytest.raises(InputDataError, match="tie_width must be"):
            PreferenceLikelihood(tie_width=width)
    with pytest.raises(InputDataError, match="tie_width has values for 3 judges, but judge 3 gave answers"):
        likelihood.rows(Tie(PAIR, judge=[3]), LIKE)
    likelihood.rows(Tie(PAIR), LIKE)  # of nobody in particular

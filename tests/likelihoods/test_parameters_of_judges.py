"""Widths of ties and stretches of cut-points of judges' own: rows, predictions, priors, and what is refused."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import gpytorch
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.optim.utils import sample_all_priors
from gpytorch.kernels import LinearKernel
from gradients import assert_parameter_gradient
from torch import Tensor

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    OutcomeScale,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    VoteLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric, Observation, Ordinal, Preference, Ranking, Tie, Vote
from botorch_skewgp.observations.duels import BUTTONS
from botorch_skewgp.truncated.draws import DrawSettings

double = torch.double
LIKE = torch.zeros(0, dtype=double)
WIDTHS = torch.tensor([0.2, 1.5, 0.7], dtype=double)
STRETCHES = torch.tensor([0.6, 1.0, 1.8], dtype=double)
CUTS = torch.tensor([-1.1, 0.2, 0.5, 2.0], dtype=double)
X = torch.rand(12, 2, dtype=double, generator=torch.Generator().manual_seed(0))
LINE = torch.tensor([[0.0], [0.3]], dtype=double)
PAIR = torch.tensor([[0, 1]])
NUMBER = torch.arange(12)
JUDGE = NUMBER % 3
PAIRS = torch.stack([torch.randperm(4, generator=torch.Generator().manual_seed(i))[:2] for i in range(12)])
TRIPLES = torch.stack([torch.randperm(4, generator=torch.Generator().manual_seed(i))[:3] for i in range(12)])
RANKS = torch.tensor([[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 1, 2]])[NUMBER // 3]
GRADES = Ordinal(torch.randint(5, (30,), generator=torch.Generator().manual_seed(1)), 5,
                 index=torch.arange(30) % 12, judge=torch.arange(30) % 3)  # fmt: skip


def of_widths(width, **options) -> PreferenceLikelihood:
    return PreferenceLikelihood(tie_width=width, ties_allowed=True, **options)


def of_stretches(stretch, **options) -> OrdinalLikelihood:
    """Cut-points are given; one stretch is that of other cut-points, around the middle one."""
    if stretch.numel() == 1:
        return OrdinalLikelihood(5, 0.2 + stretch * (CUTS - 0.2), **options)
    return OrdinalLikelihood(5, CUTS, stretch=stretch, **options)


class Case(NamedTuple):
    make: Callable[..., RowLikelihood]
    values: Tensor
    seen: Observation
    scale: OutcomeScale = OutcomeScale()


def of_duels(**options) -> Callable[..., RowLikelihood]:
    return lambda width, **more: PreferenceLikelihood(tie_width=width, **options, **more)


def of_votes(buttons) -> Callable[..., RowLikelihood]:
    return lambda width, **more: VoteLikelihood(buttons, threshold=0.4, tie_width=width, **more)


STEPS = Preference(PAIRS, NUMBER % 5 % 3, 3, judge=JUDGE)
CASES = {
    "wins": Case(of_duels(), WIDTHS, Preference(PAIRS, judge=JUDGE)),
    "wins beside ties": Case(of_widths, WIDTHS, Preference(PAIRS, judge=JUDGE)),
    "ties": Case(of_duels(), WIDTHS, Tie(PAIRS, judge=JUDGE)),
    "strengths": Case(of_duels(num_strengths=3), WIDTHS, STEPS),
    "strengths beside ties": Case(of_duels(num_strengths=3, ties_allowed=True), WIDTHS, STEPS),
    "two buttons": Case(of_votes(BUTTONS[:2]), WIDTHS, Vote(PAIRS, NUMBER % 2, BUTTONS[:2], judge=JUDGE)),
    "votes": Case(of_votes(BUTTONS), WIDTHS, Vote(PAIRS, NUMBER % 5, BUTTONS, judge=JUDGE)),
    "grades": Case(of_stretches, STRETCHES, GRADES),
    "grades in units": Case(of_stretches, STRETCHES, GRADES, OutcomeScale(3.0, 2.0)),
    "rankings with ties": Case(of_duels(), WIDTHS, Ranking(TRIPLES, RANKS, judge=JUDGE)),
}


@pytest.mark.parametrize(("name", "num_outcomes"), [*zip(CASES, [2, 3, 3, 6, 7, 2, 5, 5, 5, 13], strict=True)])
def test_rows_are_those_of_each_judges_own_likelihood(name, num_outcomes):
    make, values, seen, scale = CASES[name]
    rates = torch.tensor([0.05, 0.1, 0.2], dtype=double)
    likelihood = make(values, slip=rates)
    rows = likelihood.rows(seen, LIKE, scale)
    by = seen.judge[likelihood.answer_of_rows(seen, rows)]
    torch.testing.assert_close(rows.heights.outside, rates[by] / num_outcomes, rtol=1e-6, atol=0)
    moved = False
    for judge, value in enumerate(values):
        own = make(value).rows(seen, LIKE, scale)
        for bound in ("lower", "upper"):
            torch.testing.assert_close(getattr(rows, bound)[by == judge], getattr(own, bound)[by == judge])
            moved |= not torch.equal(getattr(rows, bound), getattr(own, bound))
        assert torch.equal(rows.noise, own.noise)
    assert moved == (name not in ("wins", "strengths", "two buttons"))
    middling = make(values.mean())
    nobody = replace(seen, judge=None)
    torch.testing.assert_close(likelihood.rows(nobody, LIKE).upper, middling.rows(nobody, LIKE).upper)


@pytest.mark.parametrize("judge", [None, "new", 0, 2])
@pytest.mark.parametrize("name", ["strengths beside ties", "grades"])
def test_new_answers_are_of_the_judges_value_and_of_others_of_the_average(name, judge):
    make, values, seen, _ = CASES[name]
    model = SkewGP(X, seen, make(values), approximation="ep").for_judge(judge)
    own = make(values[judge] if isinstance(judge, int) else values.mean())
    for kind in own.kinds_of_outcomes:
        cuts, expected = (one.reading(kind, X).cutpoints for one in (model.answering_likelihood, own))
        torch.testing.assert_close(cuts, expected)
    torch.testing.assert_close(model.predictive(X[:2]).probs, own(model.latent_posterior(X[:2])).probs)


def kernel(outputscale):
    return rbf_kernel(outputscale, 0.3).requires_grad_(False)


def on_line(observations, likelihood, **kwargs):
    settings = DrawSettings(num_draws=4096, seed=2)
    return SkewGP(LINE, observations, likelihood, kernel(3.0), gpytorch.means.ZeroMean(),
                  judge_covar_module=kernel(2.0), draw_settings=settings, **kwargs)  # fmt: skip


def test_predictions_of_a_mixture_are_of_the_judges_width():
    likelihood = MixedLikelihood(ProbitLikelihood(), of_widths(WIDTHS))
    model = on_line([Preference(PAIR.repeat(3, 1), judge=[0, 1, 2]), Binary([True], judge=[2])], likelihood)
    own = of_widths(WIDTHS[1])(model.latent_posterior(LINE, judges=[1, 1])).probs
    torch.testing.assert_close(model.predictive(LINE, judge=1)[Preference].probs, own)


@pytest.mark.parametrize(("name", "spread"), [("widths", 0.7), ("stretches", 0.6)])
def test_predictions_for_a_new_judge_average_over_learned_values(name, spread):
    """By quadrature over the factors of judges; other than at the common value."""
    if name == "widths":
        likelihood, seen = of_widths(torch.full((3,), 0.5), learn_tie_width=True), CASES["wins"].seen
    else:
        likelihood, seen = OrdinalLikelihood(5, stretch=torch.ones(3), learn_stretch=True), GRADES
        likelihood.stretch_deviation_prior.scale.fill_(spread)
        cuts = likelihood.cutpoints.detach()  # the middle one is 0
    model = SkewGP(X, seen, likelihood, approximation="ep")
    latent = model.for_judge("new").latent_posterior(X[:2])
    deviation = torch.linspace(-6, 6, 121, dtype=double)
    factors = (spread * deviation).exp()
    each = [of_widths(0.5 * f) if name == "widths" else OrdinalLikelihood(5, f * cuts) for f in factors]
    probs = torch.stack([one(latent).probs.detach() for one in each])
    expected = torch.tensordot((-0.5 * deviation.square()).softmax(-1), probs, dims=1)
    found = model.predictive(X[:2], judge="new").probs
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=0)
    assert (found - probs[60]).abs().max() > 5e-3
    torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))


def test_a_judges_fantasies_are_of_his_width():
    model = on_line(Preference(PAIR.repeat(3, 1), judge=[0, 1, 2]), of_widths(WIDTHS))
    for judge in (0, 1):
        one = model.for_judge(judge)
        found = one.condition_on_observations(LINE.unsqueeze(0), PAIR.unsqueeze(0)).posterior(LINE).mean[0]
        expected = one.condition_on_observations(LINE, Preference(PAIR)).posterior(LINE).mean
        assert (found[0] - found[1]).item() == pytest.approx((expected[0] - expected[1]).item(), abs=0.05)


@pytest.mark.parametrize("width", [0.4, [0.4], torch.tensor([0.4])])
def test_one_width_is_the_same_for_named_judges_to_the_last_digit(width):
    likelihood = of_widths(width, learn_tie_width=True)
    assert [name for name, _ in likelihood.named_parameters()] == ["raw_noise", "shift", "raw_tie_width"]
    assert [name for name, *_ in likelihood.named_priors()] == ["tie_width_prior"]
    assert likelihood.for_judge(1) is likelihood
    by_judge, by_none = (likelihood.rows(Tie(PAIRS, judge=who), LIKE) for who in (JUDGE, None))
    assert torch.equal(by_judge.lower, by_none.lower)
    assert torch.equal(by_judge.upper, by_none.upper)


def learned(name, **kwargs):
    if name == "tie_width":
        return of_widths(WIDTHS, learn_tie_width=True, **kwargs)
    return OrdinalLikelihood(5, stretch=STRETCHES, learn_stretch=True, **kwargs)


@pytest.mark.parametrize(("name", "values", "spread"), [("tie_width", WIDTHS, 0.7), ("stretch", STRETCHES, 0.35)])
def test_prior_is_of_each_judges_factor_and_that_of_widths_of_the_common_one(name, values, spread):
    likelihood = learned(name)
    torch.testing.assert_close(getattr(likelihood, name), values)
    common = values.log().mean().exp()
    terms = {key: prior.log_prob(read(module)) for key, module, prior, read, _ in likelihood.named_priors()}
    expected = torch.distributions.Normal(0.0, spread).log_prob((values / common).log())
    torch.testing.assert_close(terms[f"{name}_deviation_prior"].double(), expected)
    if name == "tie_width":
        expected = torch.distributions.LogNormal(-1.0, 1.0).log_prob(common)
        torch.testing.assert_close(terms["tie_width_prior"].double(), expected.reshape(1))
    assert getattr(likelihood, f"raw_{name}").requires_grad == (name == "tie_width")
    other = learned(name)
    setattr(other, name, 0.3)
    torch.testing.assert_close(getattr(other, name), torch.full((3,), 0.3, dtype=double))
    other.load_state_dict(copy.deepcopy(likelihood).state_dict())
    torch.testing.assert_close(getattr(other, name), values)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sample_all_priors(other)
    assert len(getattr(other, name).unique()) == 3
    fixed = of_widths(WIDTHS) if name == "tie_width" else of_stretches(STRETCHES)
    assert not list(fixed.named_priors())
    assert not any(parameter.requires_grad for parameter in fixed.parameters())


@pytest.mark.parametrize("name", ["tie_width", "stretch"])
def test_derivatives_of_the_evidence_are_those_of_differences(name):
    if name == "tie_width":
        pairs = PAIR.repeat(12, 1)
        seen = [Tie(pairs[:6], judge=JUDGE[:6]), Preference(pairs[6:9], judge=JUDGE[6:9])]
        model = on_line([*seen, Preference(pairs[9:], [0, 1, 1], 2, judge=JUDGE[9:])], learned(name, num_strengths=2))
    else:
        likelihood = MixedLikelihood(NumericLikelihood(), learned(name, learn_shift=True))
        few = Ordinal(GRADES.grades[:9], 5, judge=GRADES.judge[:9])
        model = SkewGP(X, [Numeric(X.sum(-1)[:4]), few], likelihood)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    assert_parameter_gradient(mll, rtol=1e-3 if name == "tie_width" else 1e-4, atol=1e-5)


@pytest.mark.parametrize("mixed", [False, True])
def test_first_grades_of_a_new_judge(mixed):
    """As if the judge had been there from the start with the common stretch; what is open of it is averaged over."""
    likelihood = learned("stretch")
    whole = MixedLikelihood(likelihood, NumericLikelihood()) if mixed else likelihood
    settings = {"judge_covar_module": LinearTastesKernel(0), "covar_module": LinearKernel(), "approximation": "ep"}
    model = SkewGP(X, GRADES, whole, **settings).eval()
    first = Ordinal([4, 3], 5, index=[0, 1], judge=[4, 4])
    later = model.condition_on_observations(X[:2], first)
    assert len(likelihood.stretch) == 3
    common = STRETCHES.log().mean().exp()
    wider = OrdinalLikelihood(5, stretch=torch.cat([STRETCHES, common.expand(2)]))
    at_once = SkewGP(X, [GRADES, first], wider, **settings).eval()

    def said(model, judge):
        found = model.predictive(X, judge=judge)
        return (found[Ordinal] if isinstance(model.likelihood, MixedLikelihood) else found).probs

    for judge in (0, 4):
        torch.testing.assert_close(said(later, judge), said(at_once, judge))
    likelihood.stretch_deviation_prior.judge_variance.copy_(torch.full((3,), 0.01))  # as a fit does
    fitted = model.condition_on_observations(X[:2], first)
    part = fitted.likelihood.for_kind(Ordinal)
    open_ = torch.tensor([0.01] * 3 + [0.35**2] * 2, dtype=double)
    torch.testing.assert_close(part.stretch_deviation_prior.judge_variance, open_)
    assert (said(fitted, 4) - said(later, 4)).abs().max() > 1e-3
    fitted.train()
    loss = -SkewGPMarginalLogLikelihood(fitted.likelihood, fitted)(fitted(*fitted.train_inputs), fitted.train_targets)
    loss.backward()
    assert part.stretch_deviation.grad.shape == (5,)


def set_width(value):
    learned("tie_width").tie_width = value


REFUSED = [
    (lambda: set_width([0.1, 0.2]), r"tie_width must be .*of shape \(3,\), with one for each judge; got shape \(2,\)"),
    (lambda: set_width([0.1, -0.2, 0.3]), "tie_width must be positive"),
    (lambda: set_width(1e-12), r"tie_width must be within its constraint [^ ]+; got [^ ]+$"),  # not a word of noise
    *((lambda w=width: of_widths(w), "tie_width must be") for width in ([0.1, 0.0], [[0.1, 0.2]], [], "wide")),
    (lambda: of_widths(WIDTHS).rows(Tie(PAIR, judge=[3]), LIKE), "tie_width has values for 3 judges, but judge 3"),
    (lambda: OrdinalLikelihood(4, stretch=torch.ones(1)), "each of two or more judges"),
    (lambda: OrdinalLikelihood(4, learn_stretch=True), "each of two or more judges"),
    (lambda: OrdinalLikelihood(4, stretch=torch.tensor([1.0, -2.0])), "stretch must be"),
    (lambda: OrdinalLikelihood(4, stretch=torch.ones(3), learn_stretch="yes"), "learn_stretch must be"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_values_that_do_not_fit_are_refused_in_words(make, message):
    with pytest.raises(InputDataError, match=message):
        make()

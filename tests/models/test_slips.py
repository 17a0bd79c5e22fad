"""Answers that may be slips: predictions, derivatives, judges, look-ahead; posteriors are in `test_slips_table`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from acquisition_checks import gain
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gradients import assert_parameter_gradient
from torch import Tensor

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.exceptions import CompetingExplanationsWarning
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitAffineLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    SlopeLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.observations import (
    Binary,
    Choice,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
)
from botorch_skewgp.papers import bivariate_log_normalizer, sun_parameters, unified_skew_normal
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.rand(8, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def kernel(outputscale: float = 4.0) -> ScaleKernel:
    return rbf_kernel(outputscale, 0.4)


def make(observations: Observation, likelihood: RowLikelihood, **kwargs: object) -> SkewGP:
    settings = {"covar_module": kernel(), "mean_module": ConstantMean()} | kwargs
    return SkewGP(X, observations, likelihood=likelihood, **settings)  # type: ignore[arg-type]


def Phi(x: Tensor) -> Tensor:
    return torch.special.ndtr(x)


class Case(NamedTuple):
    observation: Observation
    likelihood: RowLikelihood


LABELS = torch.tensor([1, 0, 1, 1, 0, 1, 1, 0])
GRADES = torch.tensor([0, 2, 1, 2, 0, 2, 2, 0])
PAIRS = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 4], [5, 6], [7, 0]])
OPTIONS = torch.tensor([[0, 1, 2], [2, 0, 1], [3, 4, 5], [5, 6, 7]])

CASES = {
    "label": Case(Binary(LABELS), ProbitLikelihood(slip=0.1, noise=0.2)),
    "guess": Case(Binary(LABELS), ProbitLikelihood(slip=0.1, guess=0.4)),
    "grade": Case(Ordinal(GRADES, num_grades=3), OrdinalLikelihood(3, cutpoints=torch.tensor([-0.5, 0.8]), slip=0.15)),
    "duel": Case(Preference(PAIRS), PreferenceLikelihood(slip=0.1, noise=0.2)),
    "validity": Case(Validity(LABELS.bool()), ValidityLikelihood(slip=0.1, noise=0.3)),
    "choice": Case(Choice(OPTIONS), PreferenceLikelihood(slip=0.12, noise=0.2)),
}


def test_no_slips_are_the_model_without() -> None:
    plain, zero = (
        make(Preference(PAIRS[3:]), likelihood)
        for likelihood in (PreferenceLikelihood(), PreferenceLikelihood(slip=0.0))
    )
    assert torch.equal(plain.posterior(X).mean, zero.posterior(X).mean)
    assert plain.state_dict().keys() == zero.state_dict().keys()
    assert torch.equal(zero.slips(), torch.zeros(3, dtype=torch.double))


def test_guesses_are_the_psychometric_function() -> None:
    likelihood = ProbitLikelihood(guess=0.5, slip=0.04)
    f = torch.linspace(-40, 40, 9, dtype=torch.double)
    assert torch.allclose(likelihood(f).probs, 0.5 + (1 - 0.5 - 0.02) * Phi(f))
    assert torch.allclose(ProbitLikelihood(guess=0.5, slip=0.9)(f).probs, 0.5 + 0.05 * Phi(f))


def test_rankings_are_drawn_among_all_that_their_ranks_tell_apart() -> None:
    ranking = Ranking([[0, 1, 2, 3], [4, 3, 2, -1]], ranks=[[0, 0, 1, 1], [0, 1, 2, 3]])
    assert torch.allclose(ranking.num_orders, torch.tensor([6.0, 6.0], dtype=torch.double))
    heights = PreferenceLikelihood(slip=0.12).rows(ranking, X).heights
    assert torch.allclose(heights.outside, torch.full((6,), 0.02, dtype=torch.double))
    assert torch.allclose(
        Choice([[0, 1, 2, 3], [4, 5, -1, -1]]).as_ranking().num_orders, torch.tensor([4.0, 2.0]).double()
    )


def test_numbers_and_ties_stand_beside() -> None:
    likelihood = MixedLikelihood(NumericLikelihood(), PreferenceLikelihood(slip=0.1, ties_allowed=True))
    observations = [Numeric(torch.tensor([0.1, 0.9]), index=[0, 1]), Preference(PAIRS), Tie([[3, 5]])]
    model = SkewGP(X, observations, likelihood=likelihood, covar_module=kernel(), mean_module=ConstantMean())
    slips = model.slips()
    assert slips.shape == (2 + 6 + 1,)
    assert bool((slips[:2] == 0).all())
    assert bool((slips[2:] > 0).all())


@pytest.mark.parametrize("name", ["label", "grade", "duel"])
def test_derivatives_of_the_evidence_are_differences(name: str) -> None:
    case = CASES[name]
    likelihood = {
        "label": ProbitLikelihood(slip=0.1, learn_slip=True),
        "grade": OrdinalLikelihood(3, slip=0.1, learn_slip=True),
        "duel": PreferenceLikelihood(slip=0.1, learn_slip=True),
    }[name]
    observation = Preference(PAIRS[3:]) if name == "duel" else case.observation
    model = make(observation, likelihood)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    assert_parameter_gradient(mll)


def test_learned_rates_are_stored() -> None:
    model, other = (make(Preference(PAIRS), PreferenceLikelihood(learn_slip=True)) for _ in range(2))
    assert model.likelihood.slip.item() == pytest.approx(0.02)
    model.likelihood.slip = 0.3
    other.load_state_dict(model.state_dict())
    assert other.likelihood.slip.item() == pytest.approx(0.3)


@pytest.mark.parametrize("mixed", [False, True])
def test_answers_of_a_judge_have_his_own_rate(mixed: bool) -> None:
    rates = [0.05, 0.8]
    likelihood: RowLikelihood = PreferenceLikelihood(slip=rates)
    if mixed:
        likelihood = MixedLikelihood(likelihood, NumericLikelihood())
    personal = ScaleKernel(RBFKernel())
    personal.outputscale = 1e-4
    model = make(Preference(PAIRS, judge=[0, 1, 0, 1, 0, 1]), likelihood, judge_covar_module=personal)

    def predicted(model: SkewGP, judge: int | str | None) -> float:
        found = model.predictive(X[[0, 5]], judge=judge)
        return float((found[Preference] if mixed else found).probs)

    draws = model.draws
    for judge in (0, 1, "new", None):
        one = model.for_judge(judge)
        attentive = PreferenceLikelihood()(one.latent_posterior(X[[0, 5]])).probs
        rate = rates[judge] if isinstance(judge, int) else sum(rates) / 2
        for found in (predicted(model, judge), predicted(one, None)):
            assert found == pytest.approx(float(rate / 2 + (1 - rate) * attentive), abs=1e-6)
    assert model.draws is draws
    choice = model.likelihood.for_kind(Choice).for_judge(1)(model.latent_posterior(X[:3])).probs
    assert float(choice.min()) >= 0.8 / 3


def test_slips_of_an_ensemble_are_averages_of_those_of_members() -> None:
    observation = Preference(PAIRS)
    members = [make(observation, PreferenceLikelihood(slip=rate)) for rate in (0.05, 0.4)]
    expected = (members[0].slips() + members[1].slips()) / 2
    assert torch.allclose(FullyBayesianSkewGP(members).slips(), expected)


def test_rows_that_stand_for_several() -> None:
    g = torch.Generator().manual_seed(0)
    pairs = torch.stack([torch.randperm(6, generator=g)[:2] for _ in range(1200)])
    f = X[:6, 0] * 5
    first = f[pairs[:, 0]] - f[pairs[:, 1]] + torch.randn(1200, dtype=torch.double, generator=g) > 0
    duels = torch.where(first.unsqueeze(-1), pairs, pairs.flip(-1))
    model = make(Preference(duels), PreferenceLikelihood(slip=0.05), approximation="ep")
    exact = make(Preference(duels), PreferenceLikelihood(slip=0.05))
    assert exact.draws.rows.shape[-1] <= 30  # pairs of six items
    sd = exact.posterior(X).variance.sqrt()
    assert bool(((exact.posterior(X).mean - model.posterior(X).mean).abs() < 0.3 * sd).all())
    assert torch.allclose(exact.slips(), model.slips(), atol=0.05)


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.CompetingExplanationsWarning")
@pytest.mark.parametrize("approximation", [None, "ep"])
def test_answers_with_weights_have_slips(approximation: str | None) -> None:
    weight, pairs = torch.tensor([0.4, 1.5, 2.3, 1.0], dtype=torch.double), PAIRS[:4]
    g = torch.Generator().manual_seed(1)
    K = kernel()(X).to_dense().detach() + 1e-9 * torch.eye(8)
    f = torch.randn(100_000, 8, dtype=torch.double, generator=g) @ torch.linalg.cholesky(K).mT
    likelihood = 0.05 + 0.9 * Phi((f[:, pairs[:, 0]] - f[:, pairs[:, 1]]) / 2**0.5)
    w = (weight * likelihood.log()).sum(-1).softmax(-1)

    given = Preference(pairs, count=weight)
    model = make(given, PreferenceLikelihood(slip=0.1), approximation=approximation)
    assert torch.allclose(model.slips(), w @ (0.05 / likelihood), atol=0.03)


def test_weights_beside_slips_and_slopes_without_noise_say_what_to_do() -> None:
    slopes, kind = Slope(dims=0, signs=1, index=[0, 1]), PreferenceLikelihood(slip=0.1)

    def model(count: Tensor | None, sampler: str | None, slope_noise: float = 0.0) -> SkewGP:
        likelihood = MixedLikelihood(kind, SlopeLikelihood(noise=slope_noise))
        observations = [Preference(PAIRS[:2], count=count), slopes]
        settings = DrawSettings(sampler=sampler, num_draws=64, max_thinning=1, warmup=16, min_effective_size=1)
        return make(observations, likelihood, draw_settings=settings)  # type: ignore[arg-type]

    weights = torch.tensor([0.5, 1.5])
    for sampler in (None, "reflective", "hamiltonian"):
        with pytest.raises(UnsupportedError, match=r"whole numbers as count, leave slip out, or .*noise=0\.01"):
            model(weights, sampler).posterior(X)
    with pytest.raises(UnsupportedError, match="'reflective'"):
        model(None, "hamiltonian").posterior(X)
    for cure in (model(None, "reflective"), model(weights.ceil(), None)):
        assert bool(cure.posterior(X).mean.isfinite().all())


def test_information_and_knowledge_gradient_are_averages() -> None:
    model = make(CASES["guess"].observation, CASES["guess"].likelihood)
    at = torch.tensor([[[0.33]], [[0.91]]], dtype=torch.double)
    f = model.latent_posterior(at).rsample(torch.Size([100_000])).flatten(1)
    p = 0.05 + 0.36 + 0.54 * Phi(f)

    def entropy(q: Tensor) -> Tensor:
        return torch.special.entr(q) + torch.special.entr(1 - q)

    information = entropy(p.mean(0)) - entropy(p).mean(0)
    acq = SkewBayesianActiveLearningByDisagreement(model)
    assert torch.allclose(acq(at), information, atol=4e-3 * float(information.max()) + 4e-4)

    joint = model.latent_posterior(torch.cat([at[0], X])).rsample(torch.Size([100_000])).squeeze(-1)
    p = (0.41 + 0.54 * Phi(joint[:, :1])).detach()
    expected = (p * joint).mean(0).max() + ((1 - p) * joint).mean(0).max() - joint.mean(0).max()
    assert float(gain(model, at[:1], torch.cat([at[0], X]), Binary)) == pytest.approx(float(expected), abs=0.02)


def test_fantasies_average_to_the_posterior_and_a_doubted_answer_moves_it_less() -> None:
    moved = []
    for slip in (0.0, 0.6):
        model = make(Preference(PAIRS[3:5]), PreferenceLikelihood(slip=slip))
        fantasies = model.fantasize(X[:2], SobolQMCNormalSampler(torch.Size([256]), seed=0))
        means = fantasies.posterior(X).mean
        sd = model.posterior(X).variance.sqrt()
        assert bool(((means.mean(0) - model.posterior(X).mean).abs() < 0.15 * sd).all())
        moved.append(float(means.std(0).mean()))
    assert moved[1] < 0.6 * moved[0]


def test_leave_one_out_densities_know_slips() -> None:
    likelihood = PreferenceLikelihood(slip=0.5, noise=0.2)
    found = leave_one_out(make(Preference(PAIRS), likelihood)).log_predictive
    for i in range(6):
        rest = torch.cat([PAIRS[:i], PAIRS[i + 1 :]])
        without = make(Preference(rest), likelihood)
        assert float(found[i]) == pytest.approx(float(without.predictive(X[PAIRS[i]]).probs.log()), abs=0.1)
    with pytest.raises(UnsupportedError, match="slips"):
        leave_one_out(make(CASES["choice"].observation, CASES["choice"].likelihood))


def test_expectation_propagation_says_where_explanations_compete() -> None:
    """Two answers against one: a case of one variable."""
    three = Preference([[0, 1], [0, 1], [1, 0]])
    model = make(three, PreferenceLikelihood(slip=0.1), covar_module=kernel(4000.0), approximation="ep")
    for call in (model.slips, lambda: model.posterior(X), lambda: model.log_marginal_likelihood("ep")):
        with pytest.warns(CompetingExplanationsWarning, match="for 1 of 3 rows"):
            call()
    exact = make(three, PreferenceLikelihood(slip=0.1), covar_module=kernel(4000.0)).slips()
    K = kernel(4000.0)(X[:2]).to_dense().detach()
    sd = float(K[0, 0] + K[1, 1] - 2 * K[0, 1]) ** 0.5
    d = torch.linspace(-8, 8, 200_001, dtype=torch.double) * sd  # the difference of the two, of which all else follows
    p = 0.05 + 0.9 * Phi(d / 2**0.5)
    w = torch.exp(-0.5 * (d / sd) ** 2) * p**2 * (1 - p)
    w = w / w.sum()
    assert float(exact[2]) == pytest.approx(float(w @ (0.05 / (1 - p))), abs=0.03)
    assert float(exact[0]) == pytest.approx(float(w @ (0.05 / p)), abs=0.03)
    certain = Preference([[0, 1], [0, 1], [2, 3]])
    make(certain, PreferenceLikelihood(slip=0.1), covar_module=kernel(4000.0), approximation="ep").slips()


def test_what_knows_of_no_slips_says_so() -> None:
    model = make(CASES["duel"].observation, CASES["duel"].likelihood)
    for call in (
        lambda: model.log_marginal_likelihood(bivariate_log_normalizer),
        lambda: sun_parameters(model, X),
        lambda: unified_skew_normal(model, X),
    ):
        with pytest.raises(UnsupportedError, match="slips"):
            call()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PreferenceLikelihood(slip=1.0), "slip must be 0 or a number between"),
        (lambda: PreferenceLikelihood(slip=1e-9), "slip must be 0 or a number between"),
        (lambda: PreferenceLikelihood(slip=-0.1), "slip must be 0 or a number between"),
        (lambda: OrdinalLikelihood(3, slip=math.nan), "slip must be 0 or a number between"),
        (lambda: ValidityLikelihood(slip="often"), "slip must be 0 or a number between"),
        (
            lambda: PreferenceLikelihood(slip=torch.tensor([0.1, 0.0])),
            "slip must be 0 for all judges or positive for each",
        ),
        (lambda: ProbitLikelihood(guess=1.0), "guess must be 0 or a number between"),
        (lambda: ProbitLikelihood(guess=[0.5, 0.2]), "guess must be one number"),
        (lambda: setattr(PreferenceLikelihood(), "slip", 0.1), "build another with slip="),
        (lambda: setattr(PreferenceLikelihood(slip=0.1), "slip", 0.0), "above 0"),
        (lambda: setattr(NumericLikelihood(), "slip", 0.1), "those of numbers do not take"),
        (lambda: SlopeLikelihood(slip=-0.1), "slip must be 0 or a number between"),
        (lambda: ProbitAffineLikelihood(slip=1.0), "slip must be 0 or a number between"),
        (
            lambda: make(Slope(dims=0, signs=[1, -1], index=[0, 0]), SlopeLikelihood(slip=0.1)).slips(),
            "the function rises and falls",
        ),
        (
            lambda: make(Preference(PAIRS, judge=[0, 1, 2, 0, 1, 2]), PreferenceLikelihood(slip=[0.1, 0.1])).slips(),
            "slip has values for 2 judges, but judge 2 gave answers",
        ),
    ],
)
def test_refuses_in_words(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        build()


@pytest.mark.parametrize("name", CASES)
def test_linear_and_logarithmic_probabilities_of_outcomes_agree(name: str) -> None:
    case = CASES[name]
    reading = case.likelihood.reading(type(case.observation), X, num_points=3 if name == "choice" else None)
    f = torch.randn(50, reading.num_items, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    linear, log = reading.probabilities(f), reading.log_probabilities(f)
    assert torch.allclose(linear, log.exp(), atol=1e-6)
    assert torch.allclose(linear.sum(-1), torch.ones(50, dtype=torch.double))


@pytest.mark.parametrize("rate", [1e-7, 1e-4, 0.9999, 0.9999999])
def test_a_rate_near_its_ends_is_kept_and_can_be_set_again(rate: float) -> None:
    likelihood = PreferenceLikelihood(slip=rate, learn_slip=True)
    for _ in range(2):
        assert bool(likelihood.raw_slip.isfinite())
        assert likelihood.slip.item() == pytest.approx(rate, abs=3e-7)
        likelihood.slip = likelihood.slip


def test_a_rate_stays_between_its_ends_however_far_an_optimiser_steps() -> None:
    model = make(CASES["duel"].observation, PreferenceLikelihood(slip=0.1, learn_slip=True))
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    for raw in (-800.0, 800.0):
        with torch.no_grad():
            model.likelihood.raw_slip.fill_(raw)
        mll.reset()
        value = mll(model(*model.train_inputs), model.train_targets)
        assert bool(value.isfinite())
        mll.zero_grad()
        value.backward()
        assert bool(model.likelihood.raw_slip.grad.isfinite().all())

"""Answers that may be slips: predictions, derivatives, judges, look-ahead; and posteriors of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gradients import assert_parameter_gradient
from kind_cases import KINDS, LENGTHSCALE, MEAN, TEST_X, TRAIN_X, Parameters, model_of
from torch import Tensor

from benchmarks._observations import rbf_kernel
from benchmarks.fuzz.cases import Anchors, Case, Seen
from benchmarks.fuzz.reference import reference_of
from botorch_skewgp import SkewGP
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
from botorch_skewgp.models import FullyBayesianSkewGP, SkewPrior
from botorch_skewgp.observations import Binary, Choice, Observation, Ordinal, Preference, Slope
from botorch_skewgp.papers import sun_parameters, unified_skew_normal
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.rand(8, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))


def kernel(outputscale: float = 4.0) -> ScaleKernel:
    return rbf_kernel(outputscale, 0.4)


def make(observations: Observation, likelihood: RowLikelihood, **kwargs: object) -> SkewGP:
    settings = {"covar_module": kernel(), "mean_module": ConstantMean()} | kwargs
    return SkewGP(X, observations, likelihood=likelihood, **settings)  # type: ignore[arg-type]


LABELS = torch.tensor([1, 0, 1, 1, 0, 1, 1, 0])
GRADES = torch.tensor([0, 2, 1, 2, 0, 2, 2, 0])
PAIRS = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 4], [5, 6], [7, 0]])


def duels(**kwargs: object) -> SkewGP:
    return make(Preference(PAIRS), PreferenceLikelihood(slip=0.1, noise=0.2), **kwargs)


def test_no_slips_are_the_model_without() -> None:
    likelihoods = PreferenceLikelihood(), PreferenceLikelihood(slip=0.0)
    plain, zero = (make(Preference(PAIRS[3:]), likelihood) for likelihood in likelihoods)
    assert torch.equal(plain.posterior(X).mean, zero.posterior(X).mean)
    assert plain.state_dict().keys() == zero.state_dict().keys()
    assert torch.equal(zero.slips(), torch.zeros(3, dtype=torch.double))


@pytest.mark.parametrize(
    ("observation", "likelihood"),
    [
        (Binary(LABELS), ProbitLikelihood(slip=0.1, learn_slip=True)),
        (Ordinal(GRADES, num_grades=3), OrdinalLikelihood(3, slip=0.1, learn_slip=True)),
        (Preference(PAIRS[3:]), PreferenceLikelihood(slip=0.1, learn_slip=True)),
    ],
)
def test_derivatives_of_the_evidence_are_differences(observation: Observation, likelihood: RowLikelihood) -> None:
    model = make(observation, likelihood)
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(model.likelihood, model).train())


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
    likelihood = 0.05 + 0.9 * torch.special.ndtr((f[:, pairs[:, 0]] - f[:, pairs[:, 1]]) / 2**0.5)
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
        leave_one_out(make(Choice([[0, 1, 2], [2, 0, 1]]), PreferenceLikelihood(slip=0.12, noise=0.2)))


def test_expectation_propagation_says_where_explanations_compete() -> None:
    """Two answers against one: a case of one variable."""
    three = Preference([[0, 1], [0, 1], [1, 0]])
    model = make(three, PreferenceLikelihood(slip=0.1), covar_module=kernel(4000.0), approximation="ep")
    for call in (model.slips, lambda: model.posterior(X), lambda: model.log_marginal_likelihood("ep")):
        with pytest.warns(CompetingExplanationsWarning, match="for some of them it is open"):
            call()
    exact = make(three, PreferenceLikelihood(slip=0.1), covar_module=kernel(4000.0)).slips()
    K = kernel(4000.0)(X[:2]).to_dense().detach()
    sd = float(K[0, 0] + K[1, 1] - 2 * K[0, 1]) ** 0.5
    d = torch.linspace(-8, 8, 200_001, dtype=torch.double) * sd  # the difference of the two, of which all else follows
    p = 0.05 + 0.9 * torch.special.ndtr(d / 2**0.5)
    w = torch.exp(-0.5 * (d / sd) ** 2) * p**2 * (1 - p)
    w = w / w.sum()
    assert float(exact[2]) == pytest.approx(float(w @ (0.05 / (1 - p))), abs=0.03)
    assert float(exact[0]) == pytest.approx(float(w @ (0.05 / p)), abs=0.03)
    certain = Preference([[0, 1], [0, 1], [2, 3]])
    make(certain, PreferenceLikelihood(slip=0.1), covar_module=kernel(4000.0), approximation="ep").slips()


BOTH_WAYS, OF_THREE = Slope(dims=0, signs=[1, -1], index=[0, 0]), Preference(PAIRS, judge=[0, 1, 2, 0, 1, 2])
TWO_RATES = PreferenceLikelihood(slip=[0.1, 0.1])
BAD_RATES = [
    *((PreferenceLikelihood, rate) for rate in (1.0, 1e-9, -0.1)), (ValidityLikelihood, "often"),
    (partial(OrdinalLikelihood, 3), math.nan), (SlopeLikelihood, -0.1), (ProbitAffineLikelihood, 1.0)]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "message"),
    [
        *((partial(kind, slip=rate), "slip must be 0 or a number between") for kind, rate in BAD_RATES),
        (lambda: PreferenceLikelihood(slip=torch.tensor([0.1, 0.0])), "slip must be 0 for all judges or positive for"),
        (lambda: ProbitLikelihood(guess=1.0), "guess must be 0 or a number between"),
        (lambda: ProbitLikelihood(guess=[0.5, 0.2]), "guess must be one number"),
        (lambda: setattr(PreferenceLikelihood(), "slip", 0.1), "build another with slip="),
        (lambda: setattr(PreferenceLikelihood(slip=0.1), "slip", 0.0), "above 0"),
        (lambda: setattr(NumericLikelihood(), "slip", 0.1), "those of numbers do not take"),
        (lambda: make(BOTH_WAYS, SlopeLikelihood(slip=0.1)).slips(), "the function rises and falls"),
        (lambda: make(OF_THREE, TWO_RATES).slips(), "slip has values for 2 judges, but judge 2 gave answers"),
        (lambda: sun_parameters(duels(), X), "slips"),
        (lambda: unified_skew_normal(duels(), X), "slips"),
    ],
)
def test_refuses_in_words(build: Callable[[], object], message: str) -> None:
    with pytest.raises((InputDataError, UnsupportedError), match=message):
        build()


@pytest.mark.parametrize("rate", [1e-7, 1e-4, 0.9999, 0.9999999])
def test_a_rate_near_its_ends_is_kept_and_can_be_set_again(rate: float) -> None:
    likelihood = PreferenceLikelihood(slip=rate, learn_slip=True)
    for _ in range(2):
        assert bool(likelihood.raw_slip.isfinite())
        assert likelihood.slip.item() == pytest.approx(rate, abs=3e-7)
        likelihood.slip = likelihood.slip


def test_a_rate_stays_between_its_ends_however_far_an_optimiser_steps() -> None:
    model = make(Preference(PAIRS), PreferenceLikelihood(slip=0.1, learn_slip=True))
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


# Every kind: a sum over all sets of answers that may be slips, whose terms the reference has without slips

P = Parameters()
GUESS = 0.5
ITEMS = partial(PreferenceLikelihood, P.items)
# observations, their likelihood, and the number of answers that a slip is drawn among
PROBLEMS: dict[str, tuple[Observation, Callable[..., RowLikelihood], int | tuple[int, ...]]] = {
    "labels": (KINDS["binary"], partial(ProbitLikelihood, P.labels), 2),
    "guesses": (KINDS["binary"], partial(ProbitLikelihood, P.labels, guess=GUESS), 2),
    "validity": (KINDS["validity"], partial(ValidityLikelihood, P.threshold, noise=P.validity), 2),
    "grades": (KINDS["ordinal"], partial(OrdinalLikelihood, 3, cutpoints=P.cutpoints, noise=P.grades), 3),
    "duels": (KINDS["preference"], ITEMS, 2),
    "duels against each other": (Preference([[0, 1], [1, 2], [2, 0], [0, 1], [1, 0], [0, 1]]), ITEMS, 2),
    "duels of two judges": (Preference([[0, 1], [2, 1], [2, 3], [4, 5]], judge=[0, 1, 0, 1]), ITEMS, 2),
    "choices": (KINDS["choice"], ITEMS, (4, 2, 3)),
    "rankings": (KINDS["ranking"], ITEMS, (24, 6)),
    "partial rankings": (KINDS["partial ranking"], ITEMS, 6),
    "affine": (KINDS["affine"], ProbitAffineLikelihood, 2),
    "slopes": (KINDS["slope"], SlopeLikelihood, 2),
    "slopes with noise": (Slope(0, [1, -1, 1, 1], index=[0, 0, 2, 4]), partial(SlopeLikelihood, 0.3), 2),
}


def some_of(entry: Observation, which: Tensor) -> Seen:
    """Some of the answers, as plain numbers."""

    def of(values: object) -> object:
        is_each = isinstance(values, list) and len(values) == len(which)
        return [value for value, is_in in zip(values, which, strict=True) if is_in] if is_each else values

    given = {name: of(values) for name, values in Seen.of(entry).arguments.items()}
    if "covariance" in given:
        given["covariance"] = [of(row) for row in given["covariance"]]
    return Seen(type(entry).__name__, given)


CASES = [(0.15, 4.0, False), (0.3, 20.0, False), (0.1, 4.0, True)]  # rate, output scale, whether the prior is skewed


@torch.no_grad()
@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.CompetingExplanationsWarning")
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    ("rate", "outputscale", "is_skewed"),
    [CASES[0], *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[1:])],
)
def test_exact_form_is_a_sum_over_sets_of_slips(name: str, rate: float, outputscale: float, is_skewed: bool) -> None:
    observation, make_likelihood, num_outcomes = PROBLEMS[name]
    by_judge = torch.tensor([rate, 2 * rate], dtype=torch.double)
    rates = by_judge[[0] * observation.num_answers] if observation.judge is None else by_judge[observation.judge]
    slip, guess, gain = rates / torch.as_tensor(num_outcomes), torch.zeros_like(rates), 1 - rates
    if name == "guesses":
        guess, gain = gain * GUESS * observation.labels, gain * (1 - GUESS)  # type: ignore[attr-defined]
    anchors = Anchors([[0.4], [1.8]], [1.0, -1.0], [0.1, -0.4]) if is_skewed else None
    case = Case(TRAIN_X.tolist(), [], TEST_X.tolist(), replace(P, slopes=0.3 * ("noise" in name)), LENGTHSCALE,
                outputscale, MEAN, anchors)  # fmt: skip
    total = torch.zeros(())
    for attentive in product([True, False], repeat=len(rates)):
        which = torch.tensor(attentive)
        told = [some_of(observation, which)] if any(attentive) else []
        reference = reference_of(replace(case, seen=told), size=4096)
        mean, sd = (torch.from_numpy(moment) for moment, _ in (reference.mean(), reference.standard_deviation()))
        weight = math.exp(reference.log_evidence) * torch.where(which, gain, slip + guess).prod()
        slipped = ~which * slip / (slip + guess)
        total = total + weight * torch.cat([torch.ones(1), mean, sd.square() + mean.square(), slipped])
    evidence = float(total[0])
    mean, square, slips = (total[1:] / evidence).tensor_split([4, 8])
    sd = (square - mean.square()).sqrt()

    options = {
        "with_likelihood": make_likelihood(slip=rate if observation.judge is None else by_judge),
        "covar_module": rbf_kernel(outputscale, LENGTHSCALE),
        "judge_covar_module": rbf_kernel(1e-6, LENGTHSCALE),
        "skew_prior": None if anchors is None else SkewPrior(anchors.points, anchors.phases, anchors.truncation),
    }
    model, approximate = (model_of(observation, 4096, approximation=method, **options) for method in (None, "ep"))
    error = (1 / 4096 + 1 / float(model.draws.effective_size.min())) ** 0.5  # of a mean, in standard deviations
    assert error < 0.03
    off, off_of_ep = ((one.posterior(TEST_X).mean.squeeze(-1) - mean).abs() / sd for one in (model, approximate))
    assert float(off.max()) < max(0.03, 4 * error)
    assert float((model.slips() - slips).abs().max()) < max(0.01, 2 * error)
    value, standard_error = model.log_marginal_likelihood("exact")
    assert float(value) == pytest.approx(math.log(evidence), abs=max(0.05, 4 * float(standard_error)))
    assert float(off_of_ep.max()) < 0.35
    assert torch.allclose(approximate.slips(), slips, atol=0.25)
    if "rankings" not in name:  # of several rows each, whose slips are one
        assert float(approximate.log_marginal_likelihood("ep").value) == pytest.approx(math.log(evidence), abs=0.5)

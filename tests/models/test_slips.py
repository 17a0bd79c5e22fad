"""Answers that may be slips: predictions, derivatives, judges, look-ahead; and thirty posteriors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gradients import assert_parameter_gradient
from kind_cases import rbf_columns
from torch import Tensor

from benchmarks._observations import rbf_kernel
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
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Choice,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Validity,
)
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
    plain, zero = (
        make(Preference(PAIRS[3:]), likelihood)
        for likelihood in (PreferenceLikelihood(), PreferenceLikelihood(slip=0.0))
    )
    assert torch.equal(plain.posterior(X).mean, zero.posterior(X).mean)
    assert plain.state_dict().keys() == zero.state_dict().keys()
    assert torch.equal(zero.slips(), torch.zeros(3, dtype=torch.double))


def test_rankings_are_drawn_among_all_that_their_ranks_tell_apart() -> None:
    ranking = Ranking([[0, 1, 2, 3], [4, 3, 2, -1]], ranks=[[0, 0, 1, 1], [0, 1, 2, 3]])
    assert torch.allclose(ranking.num_orders, torch.tensor([6.0, 6.0], dtype=torch.double))
    heights = PreferenceLikelihood(slip=0.12).rows(ranking, X).heights
    assert torch.allclose(heights.outside, torch.full((6,), 0.02, dtype=torch.double))
    assert torch.allclose(
        Choice([[0, 1, 2, 3], [4, 5, -1, -1]]).as_ranking().num_orders, torch.tensor([4.0, 2.0]).double()
    )


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
        with pytest.warns(CompetingExplanationsWarning, match="for 1 of 3 rows"):
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


# Problems of every kind: the exact form against importance sampling from the prior

NUM, NUM_POINTS, LENGTHSCALE = 300_000, 6, 0.4


class Problem(NamedTuple):
    observation: Observation
    likelihood: RowLikelihood
    attentive: Callable[[Tensor, Tensor], Tensor]  # of values and slopes, `n x 6` each: probabilities of the answers
    slip: Tensor | float  # the height outside, as a slip
    gain: Tensor | float
    guess: Tensor | float = 0.0


def _pairs(m: int, g: torch.Generator) -> Tensor:
    return torch.stack([torch.randperm(NUM_POINTS, generator=g)[:2] for _ in range(m)])


def _label(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    index, label = torch.arange(m) % NUM_POINTS, torch.randint(2, (m,), generator=g)
    return Problem(
        Binary(label, index=index),
        ProbitLikelihood(slip=rate, noise=noise),
        lambda f, _: torch.special.ndtr((2 * label - 1) * f[:, index] / noise**0.5),
        rate / 2,
        1 - rate,
    )


def _guess(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    plain, guess = _label(m, rate, noise, g), 0.5
    label = plain.observation.labels  # type: ignore[attr-defined]
    likelihood = ProbitLikelihood(slip=rate, noise=noise, guess=guess)
    share = (1 - rate) * guess
    return plain._replace(likelihood=likelihood, gain=(1 - rate) * (1 - guess), guess=share * label)


def _validity(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    plain = _label(m, rate, noise, g)
    observation = Validity(plain.observation.labels.bool(), index=plain.observation.index)  # type: ignore[attr-defined]
    return plain._replace(observation=observation, likelihood=ValidityLikelihood(slip=rate, noise=noise))


def _grade(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    index, grade = torch.arange(m) % NUM_POINTS, torch.randint(4, (m,), generator=g)
    grade[:2] = torch.tensor([0, 3])
    cuts = torch.tensor([-1.0, 0.2, 0.9], dtype=torch.double)
    ends = torch.cat([torch.tensor([-torch.inf]), cuts, torch.tensor([torch.inf])])
    return Problem(
        Ordinal(grade, num_grades=4, index=index),
        OrdinalLikelihood(4, cutpoints=cuts, slip=rate, noise=noise),
        lambda f, _: (
            torch.special.ndtr((ends[grade + 1] - f[:, index]) / noise**0.5)
            - torch.special.ndtr((ends[grade] - f[:, index]) / noise**0.5)
        ),
        rate / 4,
        1 - rate,
    )


def _duel(m: int, rate: float, noise: float, g: torch.Generator, pairs: Tensor | None = None) -> Problem:
    pairs = _pairs(m, g) if pairs is None else pairs
    return Problem(
        Preference(pairs),
        PreferenceLikelihood(slip=rate, noise=noise),
        lambda f, _: torch.special.ndtr((f[:, pairs[:, 0]] - f[:, pairs[:, 1]]) / (2 * noise) ** 0.5),
        rate / 2,
        1 - rate,
    )


def _repeated(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Few pairs with several answers each, some against each other."""
    pairs = _pairs(3, g)
    return _duel(m, rate, noise, g, torch.cat([pairs, pairs, pairs.flip(-1), pairs])[:m])


def _judges(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Two judges of one taste, each with a rate of his own."""
    plain, judge = _duel(m, rate, noise, g), torch.arange(m) % 2
    rates = torch.tensor([rate, min(4 * rate, 0.8)], dtype=torch.double)
    observation = Preference(plain.observation.pairs, judge=judge)  # type: ignore[attr-defined]
    likelihood = PreferenceLikelihood(slip=rates, noise=noise)
    return plain._replace(observation=observation, likelihood=likelihood, slip=rates[judge] / 2, gain=1 - rates[judge])


def _listed(m: int, rate: float, noise: float, g: torch.Generator, ranked: bool) -> Problem:
    """Choices of the best of three, or their full order; noise is simulated."""
    items = torch.stack([torch.randperm(NUM_POINTS, generator=g)[:3] for _ in range(m // 2)])

    def attentive(f: Tensor, _: Tensor) -> Tensor:
        u = f[:, items] + noise**0.5 * torch.randn(len(f), *items.shape, dtype=f.dtype, generator=g)
        best = (u[..., 0] > u[..., 1]) & (u[..., 0] > u[..., 2])
        return (best & (u[..., 1] > u[..., 2]) if ranked else best).double()

    observation = Ranking(items) if ranked else Choice(items)
    likelihood = PreferenceLikelihood(slip=rate, noise=noise)
    return Problem(observation, likelihood, attentive, rate / (6 if ranked else 3), 1 - rate)


_choice, _ranking = (partial(_listed, ranked=ranked) for ranked in (False, True))


def _affine(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Rows with correlated noise, which is simulated, and two-sided bounds."""
    weight = torch.randn(m, NUM_POINTS, dtype=torch.double, generator=g)
    root = torch.randn(m, m, dtype=torch.double, generator=g) * (noise / m) ** 0.5
    covariance = root @ root.mT + 0.1 * torch.eye(m)
    upper = torch.where(torch.arange(m) % 2 == 0, torch.inf, 2.0).double()

    def attentive(f: Tensor, _: Tensor) -> Tensor:
        v = torch.randn(len(f), m, dtype=f.dtype, generator=g) @ torch.linalg.cholesky(covariance).mT
        u = f @ weight.mT + 0.3 + v
        return ((u > 0) & (u <= upper)).double()

    observation = AffineProbit(weight, 0.3, covariance, 0.0, upper)
    return Problem(observation, ProbitAffineLikelihood(slip=rate), attentive, rate / 2, 1 - rate)


def _slope(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Slopes, with noise where some repeat or contradict others."""
    index, sign = torch.arange(m) % NUM_POINTS, torch.randint(2, (m,), generator=g) * 2 - 1
    return Problem(
        Slope(dims=0, signs=sign, index=index),
        SlopeLikelihood(noise if m > NUM_POINTS else 0.0, slip=rate),
        lambda _, slopes: (
            torch.special.ndtr(sign * slopes[:, index] / noise**0.5)
            if m > NUM_POINTS
            else (sign * slopes[:, index] > 0).double()
        ),
        rate / 2,
        1 - rate,
    )


MAKERS = (_label, _guess, _validity, _grade, _duel, _repeated, _judges, _choice, _ranking, _affine, _slope)
# maker, rows, rate, noise, output scale, whether the prior is skewed
TABLE = [
    *[(maker, 5 + i % 4, 0.1, 0.3, 4.0, False) for i, maker in enumerate(MAKERS)],
    *[(maker, 6 + i % 5, 0.3, 0.1, 20.0, False) for i, maker in enumerate(MAKERS)],
    *[(maker, 5, 0.15, 0.5, 4.0, True) for maker in (_label, _grade, _duel, _repeated, _choice, _ranking)],
    (_duel, 12, 0.05, 0.05, 50.0, False),
    (_repeated, 12, 0.02, 1.0, 50.0, False),
]
FAST = [
    MAKERS.index(_guess),
    MAKERS.index(_grade),
    next(i for i, row in enumerate(TABLE) if row[0] is _duel and row[-1]),
]


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.CompetingExplanationsWarning")
@pytest.mark.parametrize(
    "case", [pytest.param(i, marks=[] if i in FAST else pytest.mark.slow) for i in range(len(TABLE))]
)
def test_exact_form_agrees_with_importance_sampling(case: int) -> None:
    maker, m, rate, noise, outputscale, is_skewed = TABLE[case]
    g = torch.Generator().manual_seed(case)
    x = torch.rand(NUM_POINTS, dtype=torch.double, generator=g).sort().values
    problem = maker(m, rate, noise, g)
    pseudo = torch.tensor([0.25, 0.7], dtype=torch.double)

    # values, values at pseudo-points, and slopes
    at = torch.cat([x, pseudo, x]).unsqueeze(-1)
    reads = torch.tensor([-1] * (NUM_POINTS + 2) + [0] * NUM_POINTS)
    K = rbf_columns(at, reads, at, reads, outputscale, LENGTHSCALE)
    K = K + 1e-9 * torch.diag(K.diagonal())
    root = torch.linalg.cholesky(K)
    total, num_allowed = torch.zeros(()), 0.0
    for _ in range(16 if maker in (_choice, _ranking, _affine) else 2):  # whose noise is simulated
        y = torch.randn(NUM, len(K), dtype=torch.double, generator=g) @ root.mT
        f, slope = y[:, :NUM_POINTS], y[:, NUM_POINTS + 2 :]
        answers = problem.slip + problem.guess + problem.gain * problem.attentive(f, slope)
        w = answers.prod(-1)
        if is_skewed:
            allowed = (y[:, NUM_POINTS] > 0) & (y[:, NUM_POINTS + 1] < 0)
            w = w * allowed
        num_allowed += float(allowed.sum()) if is_skewed else NUM
        sums = torch.stack([w.sum(), w.square().sum()])
        total = total + torch.cat([sums, w @ f, w @ f.square(), w @ (problem.slip / answers)])
    weight, squares = total[:2].tolist()
    mean, square, slips = (total[2:] / weight).tensor_split([NUM_POINTS, 2 * NUM_POINTS])
    evidence, size, sd = weight / num_allowed, weight**2 / squares, (square - mean.square()).sqrt()

    options = {
        "covar_module": rbf_kernel(outputscale, LENGTHSCALE),
        "judge_covar_module": rbf_kernel(1e-6, LENGTHSCALE),
        "mean_module": ConstantMean(),
        "skew_prior": SkewPrior(pseudo.unsqueeze(-1), torch.tensor([1.0, -1.0])) if is_skewed else None,
        "draw_settings": DrawSettings(num_draws=8192 if case in FAST else 32768),
    }
    model, approximate = (
        SkewGP(x.unsqueeze(-1), problem.observation, problem.likelihood, approximation=approximation, **options)
        for approximation in (None, "ep")
    )
    error = (1 / size + 1 / float(model.draws.effective_size.min())) ** 0.5  # of a mean, in standard deviations
    off = (model.posterior(x.unsqueeze(-1)).mean.detach().squeeze(-1) - mean).abs() / sd
    assert float(off.max()) < max(0.03, 4 * error)
    assert float((model.slips() - slips).abs().max()) < max(0.01, 2 * error)
    value, standard_error = model.log_marginal_likelihood("exact")
    assert abs(float(value) - math.log(evidence)) < max(0.05, 4 * math.hypot(float(standard_error), size**-0.5))
    assert error < 0.03
    if case in FAST:  # elsewhere explanations may compete
        assert torch.allclose(approximate.slips(), slips, atol=0.25)
        assert bool(((approximate.posterior(x.unsqueeze(-1)).mean.squeeze(-1) - mean).abs() < 0.35 * sd).all())
        assert float(approximate.log_marginal_likelihood("ep").value) == pytest.approx(math.log(evidence), abs=0.5)

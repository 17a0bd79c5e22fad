"""Which question to ask: its value by simulation and by models that have seen the answer, prices, people, bad input."""

import math
from dataclasses import dataclass

import pytest
import torch
from acquisition_checks import DOUBLE, POINTS, gain, make_model, points, samples
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import Question, SkewBayesianActiveLearningByDisagreement, next_question
from botorch_skewgp.acquisition.information import information_about_best, information_about_function
from botorch_skewgp.acquisition.look_ahead import (
    AnswerModel,
    LatentMixture,
    _single_outcome_means,
    cells_of_numbers,
    expected_gain,
    given_pending,
    joint_draws,
)
from botorch_skewgp.acquisition.next_question import _answers_of_numbers, _mixture
from botorch_skewgp.acquisition.question_points import sets_to_ask_about
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OutcomeScale, PreferenceLikelihood
from botorch_skewgp.likelihoods.probit import NoisyValueLikelihood
from botorch_skewgp.observations import Binary, Choice, Numeric, Ordinal, Preference, Slope, Vote
from botorch_skewgp.rows import Reading
from botorch_skewgp.truncated.draws import DrawSettings

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
GENERATOR = torch.Generator().manual_seed(0)
X = torch.rand(12, 2, dtype=torch.float64, generator=GENERATOR)
Z = torch.cat([X, torch.rand(10, 2, dtype=torch.float64, generator=GENERATOR)])
F = -4 * (X - 0.5).square().sum(-1)
PAIRS = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [0, 5], [3, 8]])
WON = torch.where((F[PAIRS[:, 0]] > F[PAIRS[:, 1]]).unsqueeze(-1), PAIRS, PAIRS.flip(-1))
PANEL = Preference(WON, judge=torch.tensor([0, 1] * 4))
SEEN = [Numeric(10 + 3 * F[:4], index=torch.arange(4)), Preference(WON), Ordinal([0, 2, 1], 3, index=[5, 6, 7])]


def made(observations, likelihood=None, X=X, **options):
    kernel, settings = ScaleKernel(RBFKernel()).double(), DrawSettings(num_draws=256, seed=2)
    model = SkewGP(X, observations, likelihood, kernel, draw_settings=settings, **options)
    model.covar_module.outputscale = 1.5
    model.covar_module.base_kernel.lengthscale = 0.4
    return model.eval()


@pytest.fixture(scope="module")
def model():
    return made(SEEN, outcome_transform=Standardize(m=1))


@pytest.fixture(scope="module")
def alone(model):
    """What is asked if only one kind is offered."""
    return {kind: next_question(model, BOUNDS, [kind]) for kind in (Numeric, Preference)}


def asks_of(model, mixtures, question):
    """What a question reads if its cut-points are known."""
    if question.kind is Numeric:
        return _answers_of_numbers([model], mixtures, Numeric, Z)
    return [AnswerModel.of(model, question.kind, question.num_points)]


def value_of(function, model, question, items, Z=Z):
    with torch.no_grad():
        mixtures = [_mixture(model, Z, [])]
        return function(mixtures, asks_of(model, mixtures, question), torch.arange(len(Z)), items)


ITEMS = {Preference: torch.tensor([[4, 10], [21, 10], [5, 6]]), Ordinal: torch.tensor([[10], [21], [3]])}


def test_a_choice_of_two_is_a_duel(model):
    items = ITEMS[Preference]
    for function, atol in ((expected_gain, 2e-3), (information_about_best, 1e-9)):
        duel, choice = (
            value_of(function, model, question, items) for question in (Question(Preference), Question(Choice))
        )
        assert torch.allclose(duel, choice, atol=atol * 3)


def draws_of(model, num=100_000):
    """Joint draws of the latent function, by the mixture's own definition."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        posterior = model.latent_posterior(Z)
        which = torch.randint(posterior.component_means.shape[-1], (num,), generator=generator)
        root = torch.linalg.cholesky(posterior.gaussian_covariance + 1e-9 * torch.eye(len(Z), dtype=Z.dtype))
        white = torch.randn(len(Z), num, dtype=Z.dtype, generator=generator)
        return posterior.component_means[:, which] + root @ white, generator


def likely_best(f):
    """The number of the best point of each draw, of the twelve that are likeliest to be it, or 12."""
    best = f.argmax(0)
    votes = torch.bincount(best, minlength=len(f)).argsort(descending=True)[:12]
    return torch.full((len(f),), 12).scatter(0, votes, torch.arange(12))[best]


@pytest.fixture(scope="module")
def gaussian():
    """A model of numbers alone, whose posterior is a single Gaussian."""
    likelihood = MixedLikelihood(NumericLikelihood(), PreferenceLikelihood(noise=0.1))
    return made(SEEN[0], likelihood, outcome_transform=Standardize(m=1))


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.parametrize("name", ["model", "gaussian"])
def test_choices_by_simulation(name, k, request):
    model = request.getfixturevalue(name)
    items = torch.tensor([[21, 10, 4, 15][:k]])
    f, generator = draws_of(model)
    noise = model.likelihood.for_kind(Choice).noise.item()
    u = f[items[0]] + noise**0.5 * torch.randn(k, f.shape[-1], dtype=f.dtype, generator=generator)
    chosen = u.argmax(0)
    scale = model.outcome_scale.scale
    gain = sum((f[:, chosen == i].sum(-1) / f.shape[-1]).max() for i in range(k)) - f.mean(-1).max()
    found = value_of(expected_gain, model, Question(Choice, k), items)
    assert float(found) == pytest.approx(float(gain * scale), abs=0.003)
    assert float(gain * scale) > 0.03
    # the information that the choice brings about all of the function is an upper bound of that about the best point
    told = value_of(information_about_best, model, Question(Choice, k), items)
    assert 0 < float(told) < math.log(k)


def test_numbers_by_simulation():
    """With numbers alone the posterior is Gaussian: the gain is that of a normal vector, by its definition."""
    model = made(Numeric(F), NumericLikelihood(noise=0.05, learn_noise=False))
    posterior = model.posterior(Z)
    C, mean = posterior.covariance_matrix.detach(), posterior.mean.detach().squeeze(-1)
    items = torch.tensor([[20], [15]])
    found = value_of(expected_gain, model, Question(Numeric), items)
    z = torch.special.ndtri((torch.arange(4000, dtype=torch.float64) + 0.5) / 4000)
    for value, i in zip(found, items[:, 0], strict=True):
        step = C[:, i] / (C[i, i] + 0.05).sqrt()
        truth = (mean.unsqueeze(-1) + step.unsqueeze(-1) * z).amax(0).mean() - mean.max()
        assert float(value) == pytest.approx(float(truth), rel=0.05)
        assert float(value) <= float(truth) + 1e-9  # cells are a lower bound


def test_information_about_the_best_point(model):
    items = ITEMS[Preference]
    f, generator = draws_of(model)
    group, noise = likely_best(f), 2**0.5 * noise_of(model, Preference)
    for pair, value in zip(items, value_of(information_about_best, model, Question(Preference), items), strict=True):
        wins = (f[pair[0]] - f[pair[1]] + noise * torch.randn(f.shape[-1], generator=generator) > 0).long()
        assert float(value) == pytest.approx(float(simulated_information(group, wins)), abs=0.012)
    everything = SkewBayesianActiveLearningByDisagreement(model, kind=Preference)(Z[items])
    assert (value_of(information_about_best, model, Question(Preference), items) < everything + 0.01).all()


def simulated_information(best, outcome):
    """The mutual information of two integers, in nats."""
    joint = torch.bincount(best * (outcome.max() + 1) + outcome).double() / len(best)
    joint = torch.cat([joint, joint.new_zeros(-len(joint) % (int(outcome.max()) + 1))]).view(-1, outcome.max() + 1)
    return -torch.special.entr(joint).sum() + sum(torch.special.entr(joint.sum(dim)).sum() for dim in (0, 1))


def cells_of(number):
    """Sixteen cells of equal probability under a normal distribution with the moments of a number."""
    levels = torch.special.ndtri(torch.arange(1, 16, dtype=number.dtype) / 16)
    return torch.bucketize(number, number.mean() + number.std() * levels)


def noise_of(model, kind):
    return model.likelihood.for_kind(kind).noise.item() ** 0.5


def test_information_of_numbers_is_not_biased():
    """Many outcomes and a sample of draws: without its correction the average is too large by 0.012."""
    likelihood = MixedLikelihood(NumericLikelihood(noise=1e-4), PreferenceLikelihood(noise=0.1))
    model = made(SEEN[:2], likelihood)
    f, generator = draws_of(model)
    group = likely_best(f)
    y = f + noise_of(model, Numeric) * torch.randn(f.shape, dtype=f.dtype, generator=generator)
    truth = torch.stack([simulated_information(group, cells_of(row)) for row in y])
    found = value_of(information_about_best, model, Question(Numeric), torch.arange(len(Z)).unsqueeze(-1))
    assert float((found - truth).mean()) == pytest.approx(0, abs=0.005)
    assert float(truth.max()) > 0.05


def test_the_kind_that_tells_more_for_its_price_at_the_points_of_the_largest_gain(model):
    """Against the simulated information of every number and every duel of a list."""
    listed = Z[[4, 10, 12, 15, 19, 21]]
    f, generator = draws_of(model)
    f = f[[4, 10, 12, 15, 19, 21]]
    best = f.argmax(0)
    y = f + noise_of(model, Numeric) * torch.randn(f.shape, dtype=f.dtype, generator=generator)
    number = max(float(simulated_information(best, cells_of(row))) for row in y)
    u = f + noise_of(model, Preference) * torch.randn(f.shape, dtype=f.dtype, generator=generator)
    duel = max(
        float(simulated_information(best, (u[i] > u[j]).long()))
        for i, j in torch.combinations(torch.arange(6)).tolist()
    )
    of_list = {}
    for kind, price in ((Numeric, number), (Preference, duel)):
        of_list[kind] = next_question(model, questions=[kind], X_candidates=listed)
        for cheaper in (Numeric, Preference):
            costs = {Numeric: number, Preference: duel, cheaper: 0.85 * (number if cheaper is Numeric else duel)}
            asked = next_question(model, questions=[Numeric, Preference], costs=costs, X_candidates=listed)
            assert asked.question.kind is cheaper
            if cheaper is kind:
                assert (asked.cost, asked.value) == (pytest.approx(0.85 * price), of_list[kind].value)
                assert torch.equal(asked.X, of_list[kind].X)
    gains = of_list[Numeric].value / of_list[Preference].value
    assert not 0.85 < gains / (number / duel) < 1.18  # by gain per price one of the four choices would differ


def test_kinds_that_are_not_worth_their_price_are_left_out(model, alone):
    number, duel = (alone[kind].value for kind in (Numeric, Preference))
    assert not alone[Preference].stop  # nothing is said of what it is worth
    assert next_question(model, BOUNDS, [Preference], [1.0], value_per_unit=0.99 / duel).stop
    costs = {Numeric: 1.02 * number / duel, Preference: 1.0}
    assert next_question(model, BOUNDS, [Numeric, Preference], costs).question.kind is Numeric
    asked = next_question(model, BOUNDS, [Numeric, Preference], costs, value_per_unit=1.01 / duel)
    assert (asked.question.kind, asked.value, asked.stop) == (Preference, duel, False)
    asked = next_question(model, BOUNDS, [Numeric, Preference], costs, value_per_unit=0.95 / duel)
    assert (asked.question.kind, asked.stop) == (Numeric, True)


def test_waiting_answers_make_the_same_question_worth_less(model):
    question, item = Question(Preference), torch.tensor([[4, 10]])
    with torch.no_grad():
        before = [_mixture(model, Z, [])]
        answers = asks_of(model, before, question)
        waiting = given_pending(before, answers, item[0], 0)
        recommended = torch.arange(len(Z))
        first, again = (float(expected_gain(b, answers, recommended, item)) for b in (before, waiting))
        told, told_again = (float(information_about_best(b, answers, recommended, item)) for b in (before, waiting))
        # the two answers together by simulation
        f, generator = draws_of(model)
        noise = 2**0.5 * noise_of(model, Preference)
        wins = [
            (f[4] - f[10] + noise * torch.randn(f.shape[-1], generator=generator) > 0).long() * 2**i for i in range(2)
        ]
        cell = wins[0] + wins[1]
        gain = sum((f[:, cell == k].sum(-1) / f.shape[-1]).max() for k in range(4)) - f.mean(-1).max()
    scale = model.outcome_scale.scale
    assert torch.allclose(waiting[0].weights.sum(), torch.ones((), dtype=torch.float64))
    assert first + again == pytest.approx(float(gain * scale), abs=0.004)
    assert 0 < again < first
    assert told + told_again == pytest.approx(float(simulated_information(likely_best(f), cell)), abs=0.015)
    assert 0 < told_again < 0.7 * told


@pytest.mark.parametrize("questions", [[[4, 10, 21]], [[4, 10, 21, 2]], [[4, 10], [5, 21]], [[4, 10], [4, 10]]])
def test_waiting_answers_leave_mean_and_variance(gaussian, questions):
    """On average over their outcomes; of as many draws as are kept."""
    with torch.no_grad():
        (before,) = mixtures = [_mixture(gaussian, Z, [])]
        for items in questions:
            answers = asks_of(gaussian, mixtures, Question(Choice, len(items)))
            mixtures = given_pending(mixtures, answers, torch.tensor(items), 0)
        (waiting,) = mixtures
        weights = waiting.weights.sum(0)
        mean = waiting.means @ weights
        variance = (waiting.means - mean.unsqueeze(-1)).square() @ weights + waiting.covariance.diagonal()
    sd = before.covariance.diagonal().sqrt()
    told = (before.covariance - waiting.covariance).diagonal().sqrt()
    assert ((mean - before.means[:, 0]).abs() < 0.05 * told + 1e-9).all()
    assert ((variance.sqrt() / sd - 1).abs() < 0.05).all()
    assert (told > 0.5 * sd).any()


def test_sampled_outcomes_of_a_waiting_number_average_to_the_mean(model):
    with torch.no_grad():
        before = [_mixture(model, Z, [])]
        answers = asks_of(model, before, Question(Numeric))
        waiting = [given_pending(before, answers, torch.tensor([21]), seed)[0] for seed in range(40)]
        means = torch.stack([mixture.scenario_means().sum(0) for mixture in waiting])
    for mixture in waiting:
        torch.testing.assert_close(mixture.weights.sum(-1), torch.full((6,), 1 / 6).double())
    error = means.std(0) / 40**0.5
    assert ((means.mean(0) - before[0].scenario_means()[0]).abs() < 4.5 * error + 1e-9).all()
    assert (error > 1e-3).any()


@torch.no_grad()
def test_sets_of_three_come_with_the_recommended_point_too(model):
    mixtures = [_mixture(model, Z, [])]
    sets, best = sets_to_ask_about(mixtures, 3, torch.arange(len(Z)), 0), mixtures[0].scenario_means()[0].argmax()
    without = sets[(sets != best).all(-1)]
    with_best = torch.cat([without[:, :2], best.expand(len(without), 1)], dim=-1)
    assert len(without)
    assert all((sets == row).all(-1).any() for row in with_best)


KINDS = [Numeric, Preference, Question(Choice, 3), Ordinal]


@pytest.mark.slow
def test_the_best_for_its_price(model):
    dear = [1.0] * len(KINDS)
    for i in range(len(KINDS)):
        costs = [cost if j == i else 1e6 for j, cost in enumerate(dear)]
        asked = next_question(model, BOUNDS, KINDS, costs)
        expected = KINDS[i] if isinstance(KINDS[i], Question) else Question(KINDS[i])
        assert (asked.question, asked.cost, asked.judge, asked.stop) == (expected, 1.0, None, False)
        assert asked.X.shape == (expected.size, 2)
        assert ((asked.X >= 0) & (asked.X <= 1)).all()
        assert asked.value > 0
    again = next_question(model, BOUNDS, KINDS, dear)
    assert torch.equal(next_question(model, BOUNDS, KINDS, dear).X, again.X)


def test_where_no_answer_changes_the_recommendation_the_likeliest_points_are_compared():
    """Noisy duels of three points: two about which it is unknown which one is better, and a hopeless one."""
    points = torch.tensor([[0.0], [5.0], [10.0]], dtype=torch.float64)
    likelihood = MixedLikelihood(NumericLikelihood(noise=1.0, learn_noise=False), PreferenceLikelihood(noise=1e5))
    model = made(Numeric([1.0, 0.4, -9.0], noise=[1.0, 1.0, 1e-4]), likelihood, points)
    for candidates in (points, points.flip(0), points[[0, 2, 1]]):
        asked = next_question(model, questions=[Preference], X_candidates=candidates)
        assert asked.value < 1e-6
        assert sorted(asked.X.flatten().tolist()) == [0.0, 5.0]


def test_a_page_of_questions(model):
    listed = {"questions": [Preference, Numeric], "X_candidates": Z[10:20]}
    page = next_question(model, **listed, num_questions=3)
    assert page[0].value == next_question(model, **listed).value
    assert len({tuple(entry.X.flatten().tolist()) for entry in page}) == 3
    assert all(entry.value <= page[0].value + 0.05 for entry in page)
    assert all((Z[10:20] == point).all(-1).any() for entry in page for point in entry.X)


def test_inputs_of_few_values(model):
    values = [0.0, 0.25, 1.0]
    asked = next_question(model, BOUNDS, [Question(Choice, 3)], method="information", discrete_dims={0: values})
    assert asked.X.shape == (3, 2)
    assert torch.isin(asked.X[:, 0], torch.tensor(values).double()).all()


def test_a_choice_among_nearly_all_points(model):
    assert len(next_question(model, questions=[Question(Choice, 21)], X_candidates=Z).X.unique(dim=0)) == 21


def test_who_slips_less_is_asked():
    """Of two judges of whom the same is known but their rates of slips."""
    said, likelihood = [[0, 1], [2, 3], [4, 5]], PreferenceLikelihood(slip=torch.tensor([0.01, 0.6]).double())
    model = SkewGP(X, Preference(said + said, judge=[0] * 3 + [1] * 3), likelihood, approximation="ep")
    asked = next_question(model, questions=[Preference], judges=[0, 1], X_candidates=Z)
    assert asked.judge == 0
    other = next_question(model, questions=[Preference], judges=[1], X_candidates=Z)
    assert other.value < 0.6 * asked.value


def test_judges_are_chosen_by_their_price():
    model = made(PANEL)
    dear = next_question(model, BOUNDS, [Preference], [2.0], judges={0: 1e4, 1: 0.5})
    assert (dear.judge, dear.cost) == (1, 1.0)
    own = next_question(model.for_judge(0), BOUNDS, [Preference], judges={0: 1.0, 1: 1.0})
    assert own.judge == 0  # his own utility


def test_a_page_for_a_judge_by_simulation(generator):
    """Two answers to the only question, of the judge's own utility, about the shared one."""
    model, pair, N = made(PANEL), Z[[4, 10]], 100_000
    page = next_question(model, questions=[Preference], judges=[1], X_candidates=pair, num_questions=2)
    f = samples(model.latent_posterior(pair.repeat(2, 1), judges=[None, None, 1, 1]), N, generator)
    noise = 2**0.5 * noise_of(model, Preference) * torch.randn(2, N, dtype=f.dtype, generator=generator)
    first, second = (f[:, 2] - f[:, 3] + noise > 0).long()
    cells = [f[2 * first + second == k, :2].sum(0).max() / N for k in range(4)]
    total = sum(cells) - f[:, :2].mean(0).max()
    assert page[0].value + page[1].value == pytest.approx(float(total), abs=0.003)
    assert page[1].value > 0.01


@dataclass(frozen=True, eq=False)
class Taste(Binary):
    """A kind of one's own: whether a person likes a point."""


class TasteLikelihood(NoisyValueLikelihood):
    observation_types = (Taste,)

    def reading(self, kind, like, scale=None, num_points=None) -> Reading:
        return Reading.at_point(like.new_tensor([0.5]), self.noise)

    def answers(self, observation: Taste) -> tuple[Tensor, Tensor]:
        return observation.index.unsqueeze(-1), observation.labels.long()


def test_kinds_of_ones_own_and_votes_take_part():
    likelihood = MixedLikelihood(PreferenceLikelihood(), TasteLikelihood())
    model = made([Preference(WON), Taste([1, 0], index=[0, 1])], likelihood)
    assert next_question(model, BOUNDS, [Preference, Taste], [1e6, 1.0]).question.kind is Taste
    answers = ["first", "second", "tie", "both bad"] * 2
    asked = next_question(made(Vote(PAIRS, answers)), BOUNDS, [Vote, Preference], [1.0, 1.0])
    assert asked.question.kind is Vote  # it tells what a duel tells, and the level of ties
    assert asked.value > 0


def test_cells_of_numbers_reach_beyond_all_members():
    one = torch.ones(1, 1).double()
    mixtures = [LatentMixture(mean * one, 0.1 * one, one, one[0], OutcomeScale()) for mean in (-5.0, 5.0)]
    for cuts in cells_of_numbers(mixtures, [0.1 * one[0]] * 2):
        assert cuts[0, 0] < -5 < 5 < cuts[0, -1]


def test_cells_of_numbers_do_not_depend_on_where_the_outcome_has_its_zero():
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(4, 32, dtype=torch.double, generator=generator)
    covariance, weights = 0.1 * torch.eye(4).double(), torch.full((1, 32), 1 / 32).double()
    near, far = (
        cells_of_numbers(
            [LatentMixture(means, covariance, weights, torch.ones(4).double(), OutcomeScale(location, 2.0))],
            [torch.full((1,), 0.3).double()],
        )[0]
        for location in (0.0, 1e9)
    )
    torch.testing.assert_close(far, near, rtol=0, atol=1e-6)  # the digits that 1e9 leaves
    standard = (near - means.mean(-1, keepdim=True)) / (means.var(-1, correction=0) + 0.4).sqrt().unsqueeze(-1)
    levels = torch.arange(1, near.shape[-1] + 1).double() / (near.shape[-1] + 1)
    torch.testing.assert_close(torch.special.ndtr(standard), levels.expand(4, -1))


POINT = torch.tensor([[0.5, 0.5], [0.5, 0.5]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("questions must name at least one kind", {"questions": []}),
        ("kind must be a class of observations, such as Preference", {"questions": ["duel"]}),
        (r"write questions=\[...\] for a single one", {"questions": Preference}),
        ("questions must be a list", {"questions": None}),
        ("a price for each of the 1 questions", {"costs": 2.0}),
        ("a price for each of the 1 questions", {"costs": [1.0, 2.0]}),
        ("costs must be positive and finite", {"costs": [0.0]}),
        ("costs must be positive and finite", {"costs": [float("nan")]}),
        ("costs names no price for questions of kind Preference", {"costs": {Numeric: 1.0}}),
        ("takes Binary observations", {"questions": [Binary]}),
        ("Give either bounds", {"bounds": None}),
        ("Bounds and fixed_features leave one point", {"bounds": POINT}),
        ("about 2 points, but there is 1", {"bounds": None, "X_candidates": Z[:1]}),
        ("X_candidates must be finite and n x 2", {"bounds": None, "X_candidates": Z[:, :1]}),
        ("cat_dims only has a meaning with bounds", {"bounds": None, "X_candidates": Z, "cat_dims": {0: [0.0, 1.0]}}),
        ("judges must name at least one judge", {"judges": []}),
        ("Joint utilities of judges", {"judges": [0, 1]}),
        ("judge must be the number of a judge who gave answers", {"judges": [7], "seen": PANEL}),
        ("What multiplies the price", {"judges": {0: -1.0}, "seen": PANEL}),
        ("method must be 'knowledge_gradient' or 'information'", {"method": "best"}),
        ("value_per_unit must be positive", {"value_per_unit": 0.0}),
        ("value_per_unit must be a finite number", {"value_per_unit": "much"}),
        *[("num_questions must be an integer of at least 1", {"num_questions": num}) for num in (0, 2.5, "2")],
        ("next_question needs a SkewGP", {"model": SingleTaskGP(X, F.unsqueeze(-1))}),
        ("Questions of kind Slope have no outcomes", {"seen": Slope(0, [1], index=[0]), "questions": [Slope]}),
    ],
)
def test_bad_input(model, message, changes):
    arguments = {"model": model, "bounds": BOUNDS, "questions": [Preference]} | changes
    if "seen" in arguments:
        arguments["model"] = SkewGP(X, arguments.pop("seen"))
    with pytest.raises((InputDataError, UnsupportedError), match=message):
        next_question(**arguments)


@pytest.mark.parametrize(
    ("kind", "num_points", "message"),
    [
        (Choice, 1, "Choice is about 2 or more point"),
        (Preference, 3, r"Preference is about 2 point\(s\)"),
        (Numeric, 2, r"Numeric is about 1 point\(s\)"),
        (Choice, 2.5, "num_points must be an integer"),
    ],
)
def test_number_of_points_of_a_question(kind, num_points, message):
    with pytest.raises(InputDataError, match=message):
        Question(kind, num_points)


def test_questions_to_judges_are_the_same_with_all_points_inducing():
    """Away from the model's points, where what judges share is not what inducing points explain."""
    points = torch.rand(12, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    pairs = torch.arange(12).view(6, 2)
    new = torch.tensor([[-0.6], [-0.3], [1.3], [1.6], [1.9], [2.2]], dtype=torch.double)
    asked = []
    for inducing_points in (None, points):
        shared, own = rbf_kernel(4.0, 0.15), rbf_kernel(0.5, 0.15)
        answers = Preference(pairs, judge=torch.tensor([0, 1, 2, 0, 1, 2]))
        options = {"judge_covar_module": own, "approximation": "ep", "inducing_points": inducing_points}
        model = SkewGP(points, answers, covar_module=shared, **options)
        options = {"X_candidates": new, "judges": [0, 1, 2], "num_questions": 2}
        asked.append(next_question(model, questions=[Preference], **options))
    for exact, inducing in zip(*asked, strict=True):
        assert exact.value > 0.1
        assert inducing.value == pytest.approx(exact.value, rel=1e-4)
        assert inducing.judge == exact.judge
        assert torch.equal(inducing.X.sort(0).values, exact.X.sort(0).values)


# Gains of small models


def test_look_ahead_is_the_posterior_of_a_model_with_the_duel(generator):
    """Means given either outcome, and the outcome's probability, against fresh draws of larger models."""
    model = make_model(num_draws=8192, likelihood=PreferenceLikelihood(noise=0.1))
    pair = POINTS[:2] + 0.05
    joint = torch.cat([pair, points(generator, q=5)])
    asked = AnswerModel.of(model, Preference)
    mixture = LatentMixture.of(model.latent_posterior(joint), model.outcome_scale, 8192)
    means = _single_outcome_means(mixture, asked, torch.tensor([[0, 1]]), torch.arange(7))
    won, lost = means[0, 0, [asked.reading.highest, 1 - asked.reading.highest]]
    posterior = model.posterior(joint)
    torch.testing.assert_close(won + lost, posterior.mean.squeeze(-1))
    p = model.predictive(pair).probs
    between = posterior.variance.squeeze(-1) - posterior.gaussian_variance  # of component means
    error = 4.5 * (2 * between / 6000).sqrt()  # draws of two models; their autocorrelation time is near 1
    surprises = []
    for observed, part, probability in [([[0, 1]], won, p), ([[1, 0]], lost, 1 - p)]:
        fresh = model.condition_on_observations(pair, Preference(torch.tensor(observed)))
        change = fresh.posterior(joint).mean.squeeze(-1) - posterior.mean.squeeze(-1)
        assert ((part / probability - posterior.mean.squeeze(-1) - change).abs() < error).all()
        surprises.append(bool((change.abs() > 3 * error).any()))
    assert any(surprises)  # the duel says something


def test_value_by_monte_carlo(generator):
    """Posterior means given each outcome times its probability, with ties of three outcomes."""
    width, N = 0.6, 400_000
    model = make_model(likelihood=PreferenceLikelihood(noise=0.3, tie_width=width, ties_allowed=True))
    pair, X = points(generator, q=2), points(generator, q=4)
    value = float(gain(model, pair.unsqueeze(0), torch.cat([pair, X]), Preference))
    f = samples(model.posterior(torch.cat([pair, X])), N, generator)
    d = f[:, 0] - f[:, 1] + 0.6**0.5 * torch.randn(N, generator=generator, dtype=DOUBLE)

    def gain_of(outcomes):
        """Mean and standard error: the best point for the outcome of each draw against the best one before."""
        best = sum(o.long() * (o.double().unsqueeze(-1) * f).mean(0).argmax() for o in outcomes)
        change = f.gather(-1, best.unsqueeze(-1)).squeeze(-1) - f[:, f.mean(0).argmax()]
        return change.mean().item(), change.std().item() / N**0.5

    expected, error = gain_of([d > width, d <= -width, (d > -width) & (d <= width)])
    assert abs(value - expected) < 4.5 * error
    assert abs(expected - gain_of([d > 0, d <= 0])[0]) > 9 * error  # ties taken for wins or losses would be seen


def test_never_negative_zero_for_nothing_and_in_either_order(generator):
    X, candidates = points(generator, 100, q=2), points(generator, q=6)
    for model in (make_model(), make_model(likelihood=PreferenceLikelihood(slip=0.1))):
        found = gain(model, X, candidates, Preference)
        assert (found >= -1e-12).all()
        torch.testing.assert_close(found, gain(model, X.flip(-2), candidates, Preference))
        same = gain(model, X[:5, :1].expand(5, 2, 2), candidates, Preference)
        torch.testing.assert_close(same, torch.zeros(5, dtype=DOUBLE), rtol=0, atol=1e-9)
    noisy = made(SEEN[1], PreferenceLikelihood(noise=1e4))  # choices, whose outcomes are averaged over draws
    items = torch.combinations(torch.arange(6), 3)
    assert (value_of(expected_gain, noisy, Question(Choice, 3), items) > -1e-9).all()


# Pending questions, and answers of judges that are not known


def test_pending_questions_are_those_of_a_page(model):
    page = next_question(model, BOUNDS, [Numeric, Preference], num_questions=2)
    other = next_question(model, BOUNDS, [Numeric, Preference], pending=page[:1])
    assert other.question == page[1].question
    assert torch.equal(other.X, page[1].X)
    assert other.value == pytest.approx(page[1].value, rel=1e-9)


def test_pending_questions_are_not_asked_again():
    model, pool, asked = made(PANEL), Z[:3], []
    for _ in range(3):
        asked.append(next_question(model, None, [Preference], X_candidates=pool, judges=[1], pending=asked))
    assert len({frozenset(map(tuple, question.X.tolist())) for question in asked}) == 3
    with pytest.raises(InputDataError, match="All questions are pending"):
        next_question(model, None, [Preference], X_candidates=pool, judges=[1], pending=asked)
    assert next_question(model, None, [Preference], X_candidates=pool, judges=[0], pending=asked).judge == 0
    with pytest.raises(InputDataError, match="pending must be a list of questions"):
        next_question(model, None, [Preference], X_candidates=pool, pending=[pool[:2]])


def test_questions_keep_to_what_is_fixed_and_constrained(model):
    below = [([0, 1], [-1.0, -1.0], -0.7)]
    asked = next_question(model, BOUNDS, [Preference], fixed_features={0: 0.2}, inequality_constraints=below)
    assert (asked.X[:, 0] == 0.2).all()
    assert (asked.X[:, 1] <= 0.5 + 1e-9).all()
    with pytest.raises(InputDataError, match="There is no argument inequality; leave it out"):
        next_question(model, BOUNDS, [Preference], inequality=below)


def test_answers_of_a_new_judge_average_over_reliabilities():
    """As predictions do, which mix the closed forms of all reliabilities."""
    model = made(PANEL, learn_judge_reliability=True)
    model.judge_reliability.logarithm_prior.scale.fill_(1.0)
    new, pair = model.for_judge("new"), Z[[4, 10]]
    asked = AnswerModel.of(new, Preference)
    assert len(asked.readings) > 1
    with torch.no_grad():
        mixture = LatentMixture.of(new.latent_posterior(pair), new.outcome_scale)
        values, _, _ = mixture.values_at(torch.tensor([[0, 1]]))
        wins = asked.probabilities(values.mT, torch.tensor([[0, 1]]))[0].mean(0)[asked.reading.highest]
        expected = new.predictive(pair).probs
        first = AnswerModel([asked.readings[0]]).probabilities(values.mT, torch.tensor([[0, 1]]))[0].mean(0)
    assert float(wins) == pytest.approx(float(expected), abs=0.01)
    assert abs(float(first[asked.reading.highest]) - float(expected)) > 0.03


def test_information_of_a_new_judges_answer_by_quadrature():
    """`H(y) - E[H(y | f)]` where answers average over reliabilities, over draws of the difference."""
    model = made(PANEL, learn_judge_reliability=True)
    model.judge_reliability.logarithm_prior.scale.fill_(1.0)
    new, pair = model.for_judge("new"), Z[[4, 10]]
    asked, items = AnswerModel.of(new, Preference), torch.tensor([[0, 1]])
    with torch.no_grad():
        mixture = LatentMixture.of(new.latent_posterior(pair), new.outcome_scale)
        found = information_about_function([mixture], [asked], items)
        f = joint_draws(mixture, 200_000, seed=0)
        p = asked.probabilities(f.mT.unsqueeze(0), items)[0]
        expected = torch.special.entr(p.mean(0)).sum() - torch.special.entr(p).sum(-1).mean()
    assert float(found) == pytest.approx(float(expected), rel=0.02)

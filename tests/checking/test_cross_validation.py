"""Leave-one-out densities against models without the observation."""

import math

import pytest
import torch
from botorch.models.transforms.outcome import Standardize
from tensors import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import (
    AffineProbit,
    Choice,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Vote,
)
from botorch_skewgp.observations.duels import BUTTONS
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings

SETTINGS = DrawSettings(num_draws=4096, num_chains=4)


X = tensor(0.0, 0.15, 0.3, 0.45, 0.65, 0.8, 1.0).unsqueeze(-1)
PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [5, 6], [3, 4]])
PRIOR = (tensor(0.2, 0.9).unsqueeze(-1), tensor(1.0, -1.0), tensor(0.1, -0.4))


def model_of(observations, skew=False, likelihood=None):
    prior = SkewPrior(*PRIOR) if skew else None
    model = SkewGP(X, observations, likelihood, skew_prior=prior, draw_settings=SETTINGS)
    model.covar_module.outputscale = 3.0
    model.covar_module.base_kernel.lengthscale = 0.4
    return model


def without(x, i):
    return torch.cat([x[:i], x[i + 1 :]])


def parts_of(make, rows, chosen, first=0, beside=()):
    """By the number of an entry: the observations without it, and the one left out; for some of the rows of a kind."""
    return {first + i: ([make(without(rows, i)), *beside], make(rows[i : i + 1])) for i in chosen}


MORE_PAIRS = torch.cat([PAIRS, PAIRS[:3], PAIRS[3:].flip(-1)])
RANKINGS = torch.tensor([[0, 1, 2, 3], [4, 2, 6, -1], [5, 3, 1, 0], [4, 6, 5, 2]])
MORE_RANKINGS = torch.cat([RANKINGS, RANKINGS.flip(0), RANKINGS])
OPTIONS = torch.tensor([[0, 1, 2, 3], [4, 3, 6, -1], [5, 6, 1, 2]])
TWO, GRADES = Preference(PAIRS[:2]), Ordinal([0, 2], 3, index=[1, 6])
NUMBERS = torch.stack([tensor(0.4, -0.2, 0.3), tensor(0, 3, 5)], dim=-1)  # values and their rows
CLASSES = torch.stack([torch.tensor([0, 2, 1, 1, 0]), torch.arange(5)], dim=-1)


def numbers(rows):
    return Numeric(rows[:, 0], index=rows[:, 1].long())


def classes(rows):
    return LabelPreference.from_classes(rows[:, 0], 3, rows[:, 1])


def probits(rows):
    """Rows 0 and 3 share noise, as do 1, 2 and 5 in a chain; row 4 is by itself."""
    covariance = torch.eye(6, dtype=torch.float64)
    for i, j in ((0, 3), (1, 2), (2, 5)):
        covariance[i, j] = covariance[j, i] = 0.6
    eye, lower = torch.eye(7, dtype=torch.float64)[:6], tensor(0.0, -1.0, 0.2, 0.1, 0.0, -0.4)
    return AffineProbit(eye[rows], 0.3, covariance[rows][:, rows], lower[rows], lower[rows] + 1.5)


def votes(rows):
    """Of pairs by their answers, which may bound the average too."""
    return Vote(rows[:, :2], [BUTTONS[code] for code in rows[:, 2].tolist()])


def tied(rows):
    return Ranking(rows[:, :3], ranks=rows[:, 3:], ties_allowed=True)


VOTES = torch.tensor([[0, 1, 0], [2, 1, 3], [3, 4, 2], [5, 6, 3], [4, 6, 1]])
TIED = torch.tensor([[0, 1, 2, 0, 0, 1], [3, 4, 5, 0, 1, 1], [6, 2, 4, 0, 1, 2], [1, 5, 3, 0, 0, 1]])
UNITS = [([1, 2, 4, 5], [0, 3]), ([0, 3, 4], [1, 2, 5]), ([0, 1, 2, 3, 5], [4])]
# the observations, the number of each entry's object, and the entries that are checked, with the observations then left
CASES = {
    "duels": (Preference(PAIRS), [0] * 6, parts_of(Preference, PAIRS, (0, 2, 5))),
    "more duels than points": (Preference(MORE_PAIRS), [0] * 12, parts_of(Preference, MORE_PAIRS, (0, 5, 10))),
    "duels, numbers, grades": (
        [TWO, numbers(NUMBERS), GRADES],
        [0, 0, 1, 1, 1, 2, 2],
        parts_of(Preference, PAIRS[:2], (1,), beside=(numbers(NUMBERS), GRADES))
        | parts_of(numbers, NUMBERS, (0, 2), first=2, beside=(TWO, GRADES)),
    ),
    "votes": (votes(VOTES), [0] * 5, parts_of(votes, VOTES, (0, 1, 3))),
    "rankings with ties": (tied(TIED), [0] * 4, parts_of(tied, TIED, (0, 1, 2))),
    "rankings": (Ranking(RANKINGS), [0] * 4, parts_of(Ranking, RANKINGS, (0, 1))),
    "more rankings than points": (Ranking(MORE_RANKINGS), [0] * 12, parts_of(Ranking, MORE_RANKINGS, (1, 4))),
    "duels, choices, numbers": (
        [TWO, Choice(OPTIONS), numbers(NUMBERS[:2])],
        [0, 0, 1, 1, 1, 2, 2],
        parts_of(Preference, PAIRS[:2], (0,), beside=(Choice(OPTIONS), numbers(NUMBERS[:2])))
        | parts_of(Choice, OPTIONS, (0, 1), first=2, beside=(TWO, numbers(NUMBERS[:2]))),
    ),
    "units with correlated noise": (
        probits(range(6)),
        [0] * 3,
        {i: ([probits(rest)], probits(unit)) for i, (rest, unit) in enumerate(UNITS)},
    ),
    "classes": (classes(CLASSES), [0] * 5, parts_of(classes, CLASSES, range(5))),
}


@pytest.mark.parametrize(
    ("case", "skew"),
    [
        *((name, False) for name in CASES if name != "classes"),
        ("duels", True),
        ("rankings", True),
        pytest.param("classes", False, marks=pytest.mark.slow),
    ],
)
def test_entries_are_those_of_refits_without_them(case, skew):
    observations, objects, parts = CASES[case]
    model = model_of(observations, skew)
    found = leave_one_out(model)
    assert found.observation.tolist() == objects
    for i, (rest, left_out) in parts.items():
        refit = SkewGP(X, rest, model.likelihood, model.covar_module, model.mean_module, model.skew_prior)
        refit.draw_settings = SETTINGS
        method = corrected_log_normalizer if case == "more rankings than points" else "exact"
        wanted = refit.log_predictive_probability(X, left_out, method=method).item()
        error = 1 / math.sqrt(found.effective_size[i].item())
        most = 0.05 if case.startswith("more") else 4 * error + 0.02
        assert found.log_predictive[i].item() == pytest.approx(wanted, abs=most), i
        assert error < 0.15


def test_a_ranking_against_simulation(generator):
    """The share of simulated pasts that agree with a duel in which a ranking of four comes out as it did."""
    model = model_of([Ranking([[3, 0, 4, 6]]), Preference([[3, 2]])])
    N = 1_000_000
    root = torch.linalg.cholesky(model.covar_module(X).to_dense().detach() + 1e-9 * torch.eye(7, dtype=torch.float64))
    latent = torch.randn(N, 7, generator=generator, dtype=torch.float64) @ root.mT
    ranked, dueled = (latent + torch.randn(N, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    ranked = ranked[:, [3, 0, 4, 6]]
    ordered = (ranked[:, :-1] > ranked[:, 1:]).all(-1)[dueled[:, 3] > dueled[:, 2]].double()
    found = leave_one_out(model)
    error = math.hypot(ordered.std() / ordered.mean() / math.sqrt(len(ordered)), 1 / math.sqrt(found.effective_size[0]))
    assert found.effective_size[0] > 500
    assert abs(found.log_predictive[0].item() - ordered.mean().log().item()) < 4 * error
    assert abs(found.log_predictive[1].item() - math.log(0.5)) > 0.1  # the duel is predicted by the ranking


def test_numbers_alone_are_exact_and_in_units_of_the_outcome():
    values = tensor(3.0, 5.0, 1.0, 2.0)
    model = SkewGP(X[:4], Numeric(values, noise=torch.full_like(values, 0.3)), outcome_transform=Standardize(m=1))
    found = leave_one_out(model)
    assert found.effective_size.isinf().all()
    K = model.covar_module(X[:4]).to_dense().detach() * values.var() + 0.3 * torch.eye(4, dtype=torch.float64)
    mean = values.mean()
    for i in range(4):
        rest = [j for j in range(4) if j != i]
        gain = torch.linalg.solve(K[rest][:, rest], K[rest, i])
        center, variance = mean + gain @ (values[rest] - mean), K[i, i] - gain @ K[rest, i]
        distribution = torch.distributions.Normal(center, variance.sqrt())
        assert found.log_predictive[i].item() == pytest.approx(distribution.log_prob(values[i]).item(), abs=1e-8)


def test_effective_size_falls_for_an_outlier():
    """A duel that contradicts many others, with little noise."""
    pairs = torch.tensor([[0, 6]] * 6 + [[6, 0]])
    found = leave_one_out(model_of(Preference(pairs), likelihood=PreferenceLikelihood(0.05)))
    assert found.log_predictive[-1] < -2
    assert found.effective_size[-1] < 0.5 * found.effective_size[:-1].min()

"""Fits against predictors that know nothing of the points."""

import math
import warnings

import pytest
import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms import Standardize
from scipy.special import betaln
from scipy.stats import norm

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import UninformedFitWarning
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.fitting.trivial import trivial_log_evidence
from botorch_skewgp.items import item_model
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    ChoiceOrNone,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)

X = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)
VALUES = torch.tensor([0.3, -0.6, 1.1, 0.2])


def frequencies(*counts):
    """The evidence of counts under Jeffreys' prior, one class against the later ones after another."""
    half = torch.full((len(counts),), 0.5)
    before = [(c, sum(counts[i + 1 :]), half[i].item(), half[i + 1 :].sum().item()) for i, c in enumerate(counts[:-1])]
    return sum(betaln(c + a, d + b) - betaln(a, b) for c, d, a, b in before)


def normal(values, scale=1.0):
    values = values * scale
    return norm.logpdf(values, values.mean(), values.std()).sum() - math.log(len(values))


CASES = {
    "duels": (Preference([[0, 1], [2, 3], [1, 4]]), -3 * math.log(2)),
    "counts": (Preference([[0, 1], [2, 3]], count=[3, 2]), -5 * math.log(2)),
    "weights": (Preference([[0, 1], [2, 3]], count=[0.5, 1.25]), -1.75 * math.log(2)),
    "ties": ([Preference([[0, 1], [2, 3], [1, 4]]), Tie([[0, 2]])], frequencies(3, 1) - 3 * math.log(2)),
    "strengths": (
        Preference([[0, 1], [2, 3], [1, 4]], strength=[0, 1, 1], num_strengths=2),
        frequencies(1, 2) - 3 * math.log(2),
    ),
    "choices": (Choice([[0, 1, 2], [3, 4, -1]]), -math.log(3) - math.log(2)),
    "none": (ChoiceOrNone([[0, 1, 2], [3, 4, 5]], none=[False, True]), frequencies(1, 1) - math.log(3)),
    "rankings": (Ranking([[0, 1, 2], [3, 4, 5]]), -2 * math.log(6)),
    "votes": (Vote([[0, 1], [2, 3], [4, 5]], ["first", "second", "tie"]), frequencies(2, 1) - 2 * math.log(2)),
    "labels": (Binary([1, 1, 1, 0]), frequencies(3, 1)),
    "failures": (Validity([1, 0, 1, 0, 0]), frequencies(2, 3)),
    "grades": (Ordinal([0, 2, 2, 1], 3), frequencies(1, 1, 2)),
    "classes": (LabelPreference.from_classes([0, 2, 2, 1], 3), frequencies(1, 1, 2)),
    "numbers": (Numeric(VALUES), normal(VALUES)),
    "beside": ([Numeric(VALUES), Binary([1, 0], index=[4, 5])], normal(VALUES) + frequencies(1, 1)),
    "slopes": ([Numeric(VALUES), Slope(0, 1, index=[4])], None),
    "bounds": ([Numeric(VALUES), Censored(-5.0, [torch.inf], index=[4], noise=0.0)], None),
    "pairs of labels": (LabelPreference([[0, 1], [2, 1]], 3, index=[0, 1]), None),
}


@pytest.mark.parametrize("name", CASES)
def test_trivial_evidence_by_hand(name):
    observations, expected = CASES[name]
    found = trivial_log_evidence(SkewGP(X, observations))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_numbers_are_in_units_of_the_outcome_and_readings_have_their_intervals():
    model = SkewGP(X, Numeric(40 * VALUES), outcome_transform=Standardize(m=1))
    assert trivial_log_evidence(model) == pytest.approx(normal(VALUES, 40), abs=1e-6)
    low, high = VALUES - 0.1, VALUES + 0.1
    mean, sd = VALUES.mean(), VALUES.std()
    by_hand = (norm.cdf(high, mean, sd) - norm.cdf(low, mean, sd)).prod()
    found = trivial_log_evidence(SkewGP(X, Censored(low, high)))
    assert found == pytest.approx(math.log(by_hand) - math.log(4), abs=1e-5)


def test_a_ladder_is_in_order_and_told():
    """Items met by neighbours only: the evidence prefers that all be equal, and predictions do not."""
    n = 15
    steps = [[i, i + 1] for i in range(n - 1)]
    model = item_model(n, Preference(steps, count=[5] * (n - 1)), approximation="ep")
    with pytest.warns(UninformedFitWarning, match="no better than coin tosses.*features, of which one tells the order"):
        fit_skew_gp(model)
    assert bool((model.predictive(model.datapoints[torch.tensor(steps)]).probs > 0.75).all())
    assert bool((model.posterior(model.datapoints).mean.flatten().diff() < 0).all())


@pytest.mark.parametrize(
    "observations", [Binary([0, 1, 0, 1, 1, 0, 1, 0]), Numeric(torch.tensor([1.0, -1, 1, -1] * 2))]
)
def test_noise_is_told(observations):
    with pytest.warns(UninformedFitWarning, match="The fit explains the answers no better than"):
        fit_skew_gp(SkewGP(X, observations))


def test_an_informed_fit_is_silent():
    Z = torch.linspace(0, 1, 30, dtype=torch.float64).unsqueeze(-1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UninformedFitWarning)
        fit_skew_gp(SkewGP(Z, Binary(Z.squeeze(-1) > 0.4)))
        fit_skew_gp(SkewGP(Z, Numeric(torch.sin(6 * Z.squeeze(-1)))))


def test_readings_of_another_scale_are_told_and_fitted():
    """One start ends where three do; that of a function of unit variance explains next to nothing."""
    Z = torch.linspace(0, 1, 16, dtype=torch.float64).unsqueeze(-1)
    low = torch.floor(20 * torch.sin(6 * Z.squeeze(-1)) / 5) * 5
    with pytest.warns(InputDataWarning, match=r"Bounds of readings are far apart.*Standardize\(m=1\)"):
        model = SkewGP(Z, Censored(low, low + 5))
    fit_skew_gp(model)
    standardised = SkewGP(Z, Censored(low, low + 5), outcome_transform=Standardize(m=1))
    fit_skew_gp(standardised)
    values = [float(one.log_marginal_likelihood("ep").value) for one in (model, standardised)]
    assert values[0] > values[1] - 5
    assert values[0] > trivial_log_evidence(model) + 5


def test_answers_that_are_all_alike_are_not_compared():
    """Their frequency says all there is; a warning of one class tells of them where it matters."""
    X = torch.rand(6, 1, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    assert trivial_log_evidence(SkewGP(X, Binary([True] * 6))) is None
    assert trivial_log_evidence(SkewGP(X, Binary([True] * 5 + [False]))) is not None

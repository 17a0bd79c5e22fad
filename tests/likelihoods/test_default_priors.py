"""Default priors by what they mean: medians, tails and shares that the documentation states."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms import Standardize
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
)

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
    VoteLikelihood,
    default_likelihood,
)
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)
from botorch_skewgp.transformed.defaults import default_transformed_covar_module, default_transformed_likelihood

X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
NUMBERS = Numeric(torch.tensor([0.1, 0.5, -0.3, 1.0], dtype=torch.float64))
LABELS = Binary(torch.tensor([1, 0, 1, 0]))
GRADES = Ordinal(torch.tensor([0, 1, 2, 3]), 4)
DUELS = Preference(torch.tensor([[0, 1], [2, 3]]))
TIES = Tie(torch.tensor([[0, 2]]))


def below(prior, value):
    return float(prior.cdf(torch.tensor(float(value))))


FAILURES, CENSORED = Validity([1, 0, 1, 1]), Censored([0.0], [1.0])
BUTTONS = ["first", "second", "tie"]
CHOICES, RANKINGS = Choice([[0, 1, 2]]), Ranking([[0, 1, 2]])


def scale_of(*seen):
    return default_covar_module(4, seen).outputscale_prior


def lengths_of(*seen, dim=4):
    return default_covar_module(dim, seen).base_kernel.lengthscale_prior


def beside(anchor, other, name):
    return getattr(default_likelihood([anchor, other]).for_kind(type(other)), name)


VANILLA = 2 * math.exp(2**0.5)  # BoTorch's median of lengthscales of four inputs
# a prior, a value, and the share below it
SHARES = [
    *[(scale_of(*seen), *row) for seen in ([LABELS], [GRADES], [LABELS, DUELS]) for row in ((10, 0.5), (120, 0.951))],
    *[(scale_of(FAILURES), *row) for row in ((100, 0.5), (100 * math.exp(1.5), 0.841))],
    *[
        (beside(anchor, other, "noise_prior"), *row)
        for anchor in (NUMBERS, CENSORED)
        for other in (LABELS, GRADES, DUELS)
        for row in ((math.exp(-1), 0.5), (0.05, 0.023), (2.7, 0.977))
    ],
    *[(beside(NUMBERS, other, "shift_prior"), *row) for other in (LABELS, GRADES) for row in ((2, 0.841), (-2, 0.159))],
    *[(default_likelihood([NUMBERS]).noise_prior, *row) for row in ((math.exp(-4), 0.5), (math.exp(-3), 0.841))],
    # equal items tie in erf(width / 2) of duels: a fifth at the median; in 4 % to 82 % within the central nine tenths
    *[(default_likelihood([TIES]).tie_width_prior, *row) for row in ((0.0715, 0.051), (0.368, 0.5), (1.905, 0.95))],
    *[(default_likelihood([GRADES]).gaps_prior, *row) for row in ((1, 0.5), (0.2, 0.054), (5, 0.946))],
    *[
        (lengths_of(*seen, dim=dim), factor * median * dim**0.5, share)
        for seen, median, row in (
            ([DUELS], 0.2, (1.6, 0.826)), ([DUELS, TIES], 0.2, (1.6, 0.826)), ([RANKINGS, CHOICES], 0.2, (1.6, 0.826)),
            ([FAILURES, FAILURES], 0.2, (1.6, 0.826)), ([NUMBERS], 0.3, (2, 0.839)), ([CENSORED], 0.3, (2, 0.839)),
            ([DUELS, NUMBERS], 0.3, (2, 0.839)), ([NUMBERS, FAILURES], 0.3, (2, 0.839)),
        )
        for dim in (1, 9)
        for factor, share in ((1, 0.5), row)
    ],
    *[(lengths_of(*seen), *row) for seen in ([], [LABELS], [DUELS, LABELS]) for row in (
        (VANILLA, 0.5), (VANILLA * math.exp(3**0.5), 0.841))],
    *[(default_transformed_covar_module(1).lengthscale_prior, *row) for row in ((0.3 / 7, 0.165), (2.1, 0.835))],
    # one in forty beyond a fiftieth of their size and all of it, in standard deviations
    *[(default_transformed_likelihood().noise_covar.noise_prior, *row) for row in ((0.0004, 0.028), (1, 0.977))],
]  # fmt: skip


def test_shares_of_priors():
    found = torch.tensor([below(prior, value) for prior, value, _ in SHARES])
    torch.testing.assert_close(found, torch.tensor([share for *_, share in SHARES]), atol=1e-3, rtol=0)


def test_priors_of_numbers_are_those_of_botorch():
    theirs = get_gaussian_likelihood_with_lognormal_prior().noise_covar.noise_prior
    for value in (1e-3, 0.02, 0.5):
        assert below(default_likelihood([NUMBERS]).noise_prior, value) == pytest.approx(below(theirs, value), abs=1e-6)
    # of transformed processes as likely more as less than the noise that BoTorch's fits expect
    middle = float(default_transformed_likelihood().noise_covar.noise_prior.icdf(torch.tensor(0.5)))
    assert below(theirs, middle) == pytest.approx(0.5, abs=1e-3)
    modes = [float(lengths_of(*seen).mode) for seen in ([NUMBERS], [LABELS])]
    assert modes[0] == pytest.approx(modes[1], rel=0.15)


def test_where_fits_start():
    for seen, noise in ((LABELS, 1.0), (GRADES, 1.0), (DUELS, 1.0), (FAILURES, 0.01), (Slope(0, 1), 0.0)):
        likelihood = default_likelihood([seen])
        assert float(likelihood.noise) == pytest.approx(noise, abs=1e-6)
        assert not likelihood.noise.requires_grad
    for other in (LABELS, GRADES, DUELS):  # a fit that starts with too little noise keeps what explains it
        parts = default_likelihood([NUMBERS, other])
        assert [parts.for_kind(kind).noise.item() for kind in (Numeric, type(other))] == pytest.approx([0.1] * 2)
        assert parts.for_kind(type(other)).noise.requires_grad
        assert other is DUELS or parts.for_kind(type(other)).shift.requires_grad
    assert math.erf(default_likelihood([DUELS, TIES]).tie_width.item() / 2) == pytest.approx(0.28, abs=0.03)
    for seen, median in (([NUMBERS], 0.3), ([FAILURES], 0.2), ([DUELS], 0.2)):
        kernel = default_covar_module(9, seen).base_kernel
        assert torch.allclose(kernel.lengthscale, torch.tensor(3 * median).to(kernel.lengthscale))
    bounds = [default_covar_module(4, [seen]).base_kernel.raw_lengthscale_constraint for seen in (NUMBERS, LABELS)]
    assert bounds[0].lower_bound == bounds[1].lower_bound


@pytest.mark.parametrize("observations", [[LABELS], [GRADES]])
def test_a_constant_of_labels_is_as_wide_as_the_function_at_its_median(observations):
    model = SkewGP(X, observations)
    model.covar_module.outputscale = 1e-3  # what is left is that of the constant
    model.train()
    with torch.no_grad():
        assert float(model(X).variance[0]) == pytest.approx(10.0, abs=0.01)


@pytest.mark.parametrize(
    ("judge", "wrong_answers", "twice", "half"),
    [(None, 1 / 17.4, 0.77, 0.78), ("consistent", 1 / 222, 0.38, 0.38), ("noisy", 1 / 10.25, 0.27, 0.36)],
)
def test_a_judge_by_how_many_answers_about_random_points_are_wrong(judge, wrong_answers, twice, half):
    # f(a) - f(b) and its noise have variances 2 r and 2; the sum has the other sign with probability atan(r^-1/2) / pi
    prior = default_covar_module(1, [DUELS], judge).outputscale_prior
    noise = default_likelihood([DUELS]).noise.item()

    def log_density(share):
        return float(prior.log_prob(torch.tensor(noise / math.tan(math.pi * share) ** 2, dtype=torch.float64)))

    shares = [wrong_answers * factor for factor in (0.9, 0.95, 1.0, 1.05, 1.1)]
    assert max(shares, key=log_density) == wrong_answers
    assert math.exp(log_density(2 * wrong_answers) - log_density(wrong_answers)) == pytest.approx(twice, abs=0.02)
    assert math.exp(log_density(wrong_answers / 2) - log_density(wrong_answers)) == pytest.approx(half, abs=0.02)


@pytest.mark.parametrize("judge", [None, "consistent", "noisy"])
def test_a_judge_is_what_is_most_likely_of_one_at_first(judge):
    covar_module = default_covar_module(2, [DUELS], judge)
    start = covar_module.outputscale.detach()
    around = start * torch.tensor([0.95, 1.0, 1.05])
    assert covar_module.outputscale_prior.log_prob(around).argmax() == 1


def test_bounds_of_an_output_scale_are_a_hundred_standard_deviations_of_the_noise():
    covar_module = default_covar_module(2, [LABELS])
    bounds = covar_module.raw_outputscale_constraint
    noise = default_likelihood([LABELS]).noise.item()
    assert float(bounds.lower_bound / noise) ** 0.5 == pytest.approx(1 / 100, rel=1e-5)
    assert float(bounds.upper_bound / noise) ** 0.5 == pytest.approx(100, rel=1e-5)
    prior = covar_module.outputscale_prior
    assert 1 - below(prior, bounds.upper_bound) + below(prior, bounds.lower_bound) < 1e-5


def test_least_lengthscale_of_transformed_processes_is_that_of_botorch():
    ours = default_transformed_covar_module(2).raw_lengthscale_constraint.lower_bound
    theirs = get_covar_module_with_dim_scaled_prior(ard_num_dims=2).raw_lengthscale_constraint.lower_bound
    assert float(ours) == float(theirs)


def described(likelihood):
    """What is fitted from where, and every prior at a few values."""
    at = torch.tensor([0.02, 0.3, 2.0])
    values = {name: (p.requires_grad, p.tolist()) for name, p in likelihood.named_parameters()}
    return values, {name: prior.log_prob(at).tolist() for name, _, prior, *_ in likelihood.named_priors()}


HAND = {
    "labels": (LABELS, lambda: ProbitLikelihood()),
    "grades": (GRADES, lambda: OrdinalLikelihood(4)),
    "duels": (DUELS, lambda: PreferenceLikelihood()),
    "validity": (FAILURES, lambda: ValidityLikelihood()),
    "votes": (Vote([[0, 1]], ["tie"], BUTTONS), lambda: VoteLikelihood(BUTTONS)),
    "ties": (TIES, lambda: PreferenceLikelihood()),
}


@pytest.mark.parametrize("beside", [[], [NUMBERS], [Censored([0.0], [1.0])]], ids=["alone", "numbers", "censored"])
@pytest.mark.parametrize("kind", HAND)
def test_a_class_called_by_hand_has_the_defaults_of_the_model(kind, beside):
    entry, make = HAND[kind]
    for likelihood in [make()] if not beside else [make(), MixedLikelihood(make(), NumericLikelihood())]:
        model, plain = SkewGP(X, [entry, *beside], likelihood), SkewGP(X, [entry, *beside])
        ours, default = (one.likelihood.for_kind(type(entry)) for one in (model, plain))
        assert described(ours) == described(default)
        if kind == "ties":
            assert ours.ties_allowed
    if beside and kind != "ties":
        assert ours.raw_noise.requires_grad


def test_kinds_that_are_not_named_have_their_defaults():
    given = NumericLikelihood(noise=0.03)
    for observations in ([NUMBERS, GRADES, DUELS], [GRADES, NUMBERS, DUELS]):
        likelihood = SkewGP(X, observations, likelihood=given).likelihood
        assert likelihood.for_kind(Numeric).raw_noise is given.raw_noise
        assert [part.observation_types[0] for part in likelihood.likelihoods] == [type(entry) for entry in observations]
        expected = SkewGP(X, observations).likelihood
        for entry in (GRADES, DUELS):
            parts = (one.for_kind(type(entry)) for one in (likelihood, expected))
            assert described(next(parts)) == described(next(parts))
    mixed = MixedLikelihood(PreferenceLikelihood(noise=0.5), given)
    of_model = SkewGP(X, [DUELS, NUMBERS], likelihood=mixed).likelihood
    assert [*of_model.parameters()] == [*mixed.parameters()]  # the same objects
    parts = SkewGP(X, [NUMBERS, GRADES], likelihood=mixed).likelihood.likelihoods
    assert [*map(type, parts)] == [PreferenceLikelihood, NumericLikelihood, OrdinalLikelihood]


def test_a_likelihood_for_two_models_is_changed_by_neither():
    """The defaults of one model are not the other's, and what both may share are parameters that are fitted."""
    given, beside = PreferenceLikelihood(), [DUELS, NUMBERS]
    first = SkewGP(X, DUELS, likelihood=given)
    before, of_first = described(given), first.posterior(X).mean
    second, ties = SkewGP(X, beside, likelihood=given), SkewGP(X, TIES, likelihood=given)
    with pytest.warns(InputDataWarning, match="float32"):
        SkewGP(X.float(), TIES, likelihood=given)
    assert described(given) == before
    assert not given.ties_allowed
    assert torch.equal(first.posterior(X).mean, of_first)
    assert described(second.likelihood.for_kind(Preference)) == described(
        SkewGP(X, beside).likelihood.for_kind(Preference)
    )
    assert ties.likelihood.ties_allowed
    first.likelihood.noise = 0.7  # as a fit does
    assert float(given.noise) == pytest.approx(0.7)


@pytest.mark.parametrize(
    "likelihood",
    [
        OrdinalLikelihood(4, noise=0.4),
        OrdinalLikelihood(4, learn_noise=False, learn_shift=False),
        OrdinalLikelihood(4, torch.tensor([-1.0, 0.0, 1.0]), noise=1.0),
    ],
)
def test_what_is_given_stays(likelihood):
    before = described(likelihood)[0]
    SkewGP(X, [NUMBERS, GRADES], likelihood=likelihood)
    changed = {name for name, value in described(likelihood)[0].items() if value != before[name]}
    assert changed <= ({"shift"} if likelihood.noise.item() == pytest.approx(0.4) else set())


def test_values_that_were_set_or_fitted_stay():
    likelihood = OrdinalLikelihood(4)
    likelihood.noise = 0.7
    model = SkewGP(X, [NUMBERS, GRADES], likelihood=likelihood)
    assert likelihood.noise.item() == pytest.approx(0.7)
    second = SkewGP(X, [NUMBERS, GRADES], likelihood=OrdinalLikelihood(4))
    shared = second.likelihood.for_kind(Ordinal)
    shared.noise = 0.3  # as by a fit
    SkewGP(X, [NUMBERS, GRADES], likelihood=shared)
    assert shared.noise.item() == pytest.approx(0.3)
    assert len([*model.likelihood.named_priors()]) > 0


def test_an_error_leaves_a_given_likelihood_as_it_was():
    likelihood = PreferenceLikelihood()
    before = described(likelihood)
    with pytest.raises(InputDataError, match="row 9"):
        SkewGP(X, [NUMBERS, Preference([[0, 9]])], likelihood=likelihood)
    assert described(likelihood) == before
    with pytest.raises(InputDataError, match="takes Ordinal"):
        SkewGP(X, [NUMBERS, DUELS], likelihood=OrdinalLikelihood(4))


def test_labels_of_a_known_threshold_are_grades_of_a_given_cutpoint():
    """A threshold in units of the outcome is that of grades with one given cut-point."""
    labels, grades = Binary([1, 0, 1, 0]), Ordinal([1, 0, 1, 0], 2)
    values = []
    for entry, likelihood in (
        (labels, ProbitLikelihood(threshold=0.4, noise=0.2)),
        (grades, OrdinalLikelihood(2, torch.tensor([0.4]), noise=0.2)),
    ):
        model = SkewGP(X, [NUMBERS, entry], likelihood=likelihood, outcome_transform=Standardize(m=1))
        values.append(float(model.log_marginal_likelihood("ep").value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert not model.likelihood.for_kind(Ordinal).shift.requires_grad
    with pytest.raises(InputDataError, match="do not shift"):
        ProbitLikelihood(threshold=0.4, learn_shift=True)

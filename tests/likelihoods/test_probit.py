"""Probit likelihoods of points and their parameters, cut-points of items; probabilities are in `test_predictions`."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms import Standardize
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import LinearKernel
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitAffineLikelihood,
    ProbitLikelihood,
    SlopeLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Validity

X = torch.tensor([[0.0], [0.2], [0.45], [0.75], [1.0]], dtype=torch.float64)


def t(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


F = t(-1.2, 0.1, 0.9)


@pytest.mark.parametrize(("num_grades", "middle"), [(2, 0), (3, 0), (4, 1), (5, 1), (6, 2)])
def test_learned_cutpoints_shift_as_one(num_grades, middle):
    likelihood = OrdinalLikelihood(num_grades, learn_shift=True).requires_grad_(False)
    if num_grades > 2:
        likelihood.gaps = torch.linspace(0.1, 1.0, num_grades - 2)
    before = likelihood.cutpoints.clone()
    assert before.shape == (num_grades - 1,)
    assert before[middle] == 0
    assert (before.diff() > 0).all()
    likelihood.shift.add_(0.7)
    torch.testing.assert_close(likelihood.cutpoints, before + 0.7)
    assert float(likelihood.cutpoints[middle]) == pytest.approx(0.7)
    given = OrdinalLikelihood(num_grades, likelihood.cutpoints)
    torch.testing.assert_close(given.cutpoints, likelihood.cutpoints, rtol=0, atol=1e-12)
    assert not given.raw_gaps.requires_grad
    torch.testing.assert_close(given(F).probs, likelihood(F).probs)


@pytest.mark.parametrize(
    ("make", "level"),
    [(lambda high, index: Binary(high.long(), index), -0.8), (lambda high, index: Ordinal(high.long(), 2, index), 0.8)],
    ids=["labels", "grades"],
)
def test_the_level_of_labels_is_found_beside_numbers(make, level):
    """They tell where the function crosses a level that nobody gave, and do not spoil what numbers tell."""
    X = torch.linspace(0, 1, 41, dtype=torch.float64).unsqueeze(-1)
    truth = torch.sin(8 * X.squeeze(-1))
    numbered, labelled = torch.arange(0, 41, 8), torch.arange(1, 41, 2)
    numbers = Numeric(100 + 5 * truth[numbered], index=numbered)
    labels = make(truth[labelled] > level, labelled)
    model = SkewGP(X, [numbers, labels], outcome_transform=Standardize(m=1))
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    found = model.outcome_scale.unstandardize(model.likelihood.for_kind(type(labels)).shift.detach())
    assert float(found) == pytest.approx(100 + 5 * level, abs=1.0)
    error = model.posterior(X).mean.squeeze(-1) - 100 - 5 * truth
    assert float(error.square().mean().sqrt()) < 0.5


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize(
    ("make", "name"), [(NumericLikelihood, "noise"), (ProbitLikelihood, "noise"), (PreferenceLikelihood, "tie_width")]
)
def test_parameters_are_positive(make, name, bad):
    likelihood = make()
    for act in (lambda: make(**{name: bad}), lambda: setattr(likelihood, name, bad)):
        with pytest.raises(InputDataError, match=f"{name} must be positive and finite"):
            act()
    assert likelihood.noise.item() == make().noise.item()


@pytest.mark.parametrize("make", [NumericLikelihood, ProbitLikelihood, PreferenceLikelihood, ValidityLikelihood])
def test_noise_outside_of_its_constraint_is_refused_in_our_words(make):
    with pytest.raises(InputDataError, match=r"noise must be within its constraint GreaterThan.*noise_constraint"):
        make(noise=1e-9)
    likelihood = make(noise=0.3)
    with pytest.raises(InputDataError, match="noise must be within its constraint"):
        likelihood.noise = 1e-9
    assert likelihood.noise.item() == pytest.approx(0.3)
    assert make(noise=1e-9, noise_constraint=GreaterThan(1e-12)).noise.item() == pytest.approx(1e-9, abs=1e-15)


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
def test_equal_labels_do_not_make_certain():
    """Five equal labels: far from them little is known; without a prior on the mean the fit runs off."""
    model = SkewGP(torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), Binary([1] * 5))
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    far = model.predictive(torch.full((1, 2), 20.0, dtype=torch.float64)).probs
    assert 0.6 < float(far.detach()) < 0.98  # 0.99999997 without the prior


def test_rows_are_between_the_cutpoints_of_item_and_judge():
    likelihood = OrdinalLikelihood(4, num_items=2, stretch=torch.tensor([1.0, 2.0]))
    likelihood.gaps = torch.tensor([[1.0, 2.0], [0.5, 0.25]])
    assert torch.allclose(likelihood.cutpoints, torch.tensor([[-1.0, 0.0, 2.0], [-0.5, 0.0, 0.25]]).double())
    grades = Ordinal([0, 2, 2, 3], 4, index=[0, 0, 1, 1], item=[0, 0, 1, 1], judge=[0, 1, 0, 1])
    rows = likelihood.rows(grades, torch.zeros(2, dtype=torch.float64))
    assert rows.lower.tolist() == pytest.approx([-torch.inf, 0.0, 0.0, 0.5])
    assert rows.upper.tolist() == pytest.approx([-1.0, 4.0, 0.25, torch.inf])
    one = likelihood.for_item(1).reading(Ordinal, torch.zeros(1, dtype=torch.float64))  # an average stretch
    assert torch.allclose(one.cutpoints[0], 1.5 * torch.tensor([-0.5, 0.0, 0.25], dtype=torch.float64))


@pytest.mark.slow
def test_cutpoints_of_items_are_found_again():
    generator = torch.Generator().manual_seed(0)
    cuts = torch.tensor([[-0.5, 0.0, 0.5], [-2.0, 0.0, 2.0]], dtype=torch.float64)
    item, person = torch.arange(400) % 2, torch.arange(400) // 10
    level = torch.randn(40, dtype=torch.float64, generator=generator)[person]
    noisy = level + torch.randn(400, dtype=torch.float64, generator=generator)
    grades = Ordinal((noisy.unsqueeze(-1) > cuts[item]).sum(-1), 4, index=item, item=item, judge=person)
    X = torch.eye(2, dtype=torch.float64)
    model = SkewGP(
        X, grades, OrdinalLikelihood(4, num_items=2), covar_module=LinearKernel(),
        judge_covar_module=LinearTastesKernel(0), inducing_points=X, approximation="ep",
    )  # fmt: skip
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    assert torch.allclose(model.likelihood.cutpoints, cuts, atol=0.5)
    for number in range(2):
        said = model.likelihood.for_item(number)(model.for_judge("new").latent_posterior(X[number : number + 1])).probs
        shares = torch.bincount(grades.grades[item == number], minlength=4) / 200
        assert torch.allclose(said.flatten(), shares.double(), atol=0.06)


def rows_of(likelihood, seen):
    return likelihood.rows(seen, torch.zeros(2, dtype=torch.float64))


ITEMS = OrdinalLikelihood(3, num_items=2)
OTHERS = [ProbitLikelihood(), ValidityLikelihood(), OrdinalLikelihood(4), PreferenceLikelihood()]
OF_OWN_ROWS = [SlopeLikelihood(), ProbitAffineLikelihood(), LabelPreferenceLikelihood(3), NumericLikelihood()]
BAD_CUTS = [[1.0, 0.0], [0.0, 0.0], [0.0], [0.0, math.nan], [0.0, math.inf]]
REFUSED = [
    *((lambda c=cuts: OrdinalLikelihood(3, t(*c)), "cutpoints must be 2 finite increasing") for cuts in BAD_CUTS),
    (lambda: OrdinalLikelihood(1), "num_grades must be an integer from 2"),
    (lambda: rows_of(OrdinalLikelihood(3), Ordinal([3, 0], 4)), "observations have 4 grades, the likelihood 3"),
    (lambda: ProbitLikelihood(learn_shift="yes"), "learn_shift must be"),
    (lambda: ValidityLikelihood(threshold=math.inf), "threshold must be a finite number"),
    *((lambda one=other: rows_of(one, Numeric([0.1])), r"takes .* observations; got Numeric") for other in OTHERS),
    *((lambda one=other: rows_of(one, Binary([1])), r"takes .* observations; got Binary") for other in OF_OWN_ROWS),
    (lambda: Ordinal([0, 1], 3, item=[0]), "item must have one entry for each of the 2 grades"),
    (lambda: OrdinalLikelihood(3, cutpoints=[0.0, 1.0], num_items=2), "leave num_items out"),
    (lambda: ITEMS.for_item(2), "item must be a number from 0 to 1"),
    (lambda: rows_of(ITEMS, Ordinal([0, 1], 3)), r"name the item of each grade, Ordinal\(item=\)"),
    (lambda: rows_of(ITEMS, Ordinal([0, 1], 3, item=[0, 2])), "There are 2 items; got item 2"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_words(make, message):
    with pytest.raises(InputDataError, match=message):
        make()


@pytest.mark.parametrize("kind", [Validity, Binary])
def test_values_of_the_function_are_read_in_units_of_the_outcome(kind):
    """A threshold beside standardised numbers: an answer's probability is its average over samples of the function."""
    X = torch.linspace(0, 1, 8, dtype=torch.double).unsqueeze(-1)
    answers = kind([1, 0, 1, 1], index=[4, 5, 6, 7])
    model = SkewGP(X, [Numeric([5.0, 8.0, 3.0, -1.0]), answers], outcome_transform=Standardize(m=1))
    samples = model.latent_posterior(X[:3]).rsample(torch.Size([2**14])).squeeze(-1)
    with torch.no_grad():
        probs = model.likelihood.for_kind(kind)(samples, scale=model.outcome_scale).probs
    expected = model.predictive(X[:3])[kind].probs.flatten()
    assert ((probs.mean(0) - expected).abs() < 5 * probs.std(0) / 2**7 + 1e-3).all()

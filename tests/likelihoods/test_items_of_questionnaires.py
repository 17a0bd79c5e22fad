"""Cut-points of each item: the rows they make, what is found again, and predictions of an item."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import LinearKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import OrdinalLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Ordinal

double = torch.double


def test_rows_are_between_the_cutpoints_of_item_and_judge():
    likelihood = OrdinalLikelihood(4, num_items=2, stretch=torch.tensor([1.0, 2.0]))
    likelihood.gaps = torch.tensor([[1.0, 2.0], [0.5, 0.25]])
    assert torch.allclose(likelihood.cutpoints, torch.tensor([[-1.0, 0.0, 2.0], [-0.5, 0.0, 0.25]]).double())
    grades = Ordinal([0, 2, 2, 3], 4, index=[0, 0, 1, 1], item=[0, 0, 1, 1], judge=[0, 1, 0, 1])
    rows = likelihood.rows(grades, torch.zeros(2, dtype=double))
    assert rows.lower.tolist() == pytest.approx([-torch.inf, 0.0, 0.0, 0.5])
    assert rows.upper.tolist() == pytest.approx([-1.0, 4.0, 0.25, torch.inf])
    one = likelihood.for_item(1).reading(Ordinal, torch.zeros(1, dtype=double))
    assert torch.allclose(one.cutpoints[0], 1.5 * torch.tensor([-0.5, 0.0, 0.25], dtype=double))  # an average stretch


def test_cutpoints_of_items_are_found_again():
    generator = torch.Generator().manual_seed(0)
    cuts = torch.tensor([[-0.5, 0.0, 0.5], [-2.0, 0.0, 2.0]], dtype=double)
    item, person = torch.arange(400) % 2, torch.arange(400) // 10
    level = torch.randn(40, dtype=double, generator=generator)[person]
    noisy = level + torch.randn(400, dtype=double, generator=generator)
    grades = Ordinal((noisy.unsqueeze(-1) > cuts[item]).sum(-1), 4, index=item, item=item, judge=person)
    X = torch.eye(2, dtype=double)
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


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Ordinal([0, 1], 3, item=[0]), "item must have one entry for each of the 2 grades"),
        (lambda: OrdinalLikelihood(3, cutpoints=[0.0, 1.0], num_items=2), "leave num_items out"),
        (lambda: OrdinalLikelihood(3, num_items=2).for_item(2), "item must be a number from 0 to 1"),
        (lambda: rows_of(Ordinal([0, 1], 3)), r"name the item of each grade, Ordinal\(item=\)"),
        (lambda: rows_of(Ordinal([0, 1], 3, item=[0, 2])), "There are 2 items; got item 2"),
    ],
)
def test_items_that_do_not_fit_are_refused_in_words(make, match):
    with pytest.raises(InputDataError, match=match):
        make()


def rows_of(grades):
    return OrdinalLikelihood(3, num_items=2).rows(grades, torch.zeros(2, dtype=double))

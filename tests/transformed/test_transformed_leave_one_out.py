"""Leave-one-out in closed form, against models without the point, and the comparison of warpings that it serves."""

import copy
import dataclasses

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from transformed_cases import FEW, WARPINGS, data, model, shared

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.transformed import compare_warpings
from botorch_skewgp.transformed.nodes import Nodes
from botorch_skewgp.warpings import Affine, BoxCox


def law_without(i, transformed, X, Y, nodes):
    """The law of an outcome from all others, by given nodes."""
    rest, refit = torch.arange(len(X)) != i, copy.deepcopy(transformed)
    refit.tolerance = 0.0
    refit.set_train_data(X[rest], Y[rest].squeeze(-1))
    refit.use_nodes(nodes)
    return refit.posterior(X[i : i + 1], observation_noise=True)


@pytest.mark.parametrize("name", WARPINGS)
def test_leave_one_out_equals_refits(name):
    X, Y = data()
    transformed = shared(name, tolerance=0.0)
    transformed, nodes = copy.deepcopy(transformed), transformed.weighted_nodes
    quadrature = nodes.log_weight - nodes.log_likelihood - transformed.log_prior(nodes.u)
    given = Nodes(nodes.u, quadrature.detach())
    transformed.use_nodes(given)  # else it makes some of its own
    transformed.tolerance = 0.3  # without an outcome nodes of little weight may count
    left_out = transformed.leave_one_out()
    for i in (0, int(Y.argmax())):
        law = law_without(i, transformed, X, Y, given)
        for level in (0.05, 0.5, 0.9):
            expected = law.quantile(level).squeeze()
            assert left_out.posterior.quantile(level)[i].item() == pytest.approx(expected.item(), rel=1e-9)
        assert left_out.level[i].item() == pytest.approx(law.cdf(Y[i].item()).item(), rel=1e-9)
        assert left_out.log_density[i].item() == pytest.approx(law.log_density(Y[i].item()).item(), rel=1e-9)


def test_the_sum_is_that_of_refits_with_nodes_of_their_own():
    X, Y = data(n=8, d=1)
    transformed = model("sinh-arcsinh", X, Y, num_nodes=256, num_restarts=4)
    left_out = transformed.leave_one_out()
    exact = []
    for i in range(len(X)):
        rest = torch.arange(len(X)) != i
        refit = model("sinh-arcsinh", X[rest], Y[rest], num_nodes=384, num_restarts=2, standardize=False)
        refit.units = transformed.units
        exact.append(refit.posterior(X[i : i + 1], observation_noise=True).log_density(Y[i].item()).squeeze())
    difference = left_out.log_density - torch.stack(exact)
    assert difference.sum().abs() < 0.3
    assert left_out.standard_error < 0.15
    assert (left_out.effective_number > 32).all()
    # the nodes of posteriors alone are too few
    transformed.use_nodes(transformed._nodes)
    assert transformed.leave_one_out().standard_error > 2 * left_out.standard_error


def test_a_sum_that_may_be_off_is_warned_of():
    X, Y = data(n=8, d=1)
    few = model("L-SA", X, Y, num_nodes=16, least_effective=32.0)
    with pytest.warns(QuadratureWarning) as caught:
        few.leave_one_out()
    messages = [str(warning.message) for warning in caught]
    assert [message.split(" may be off")[0] for message in messages] == [
        "Probabilities of predictions",
        "The sum of leave-one-out log densities",
    ]
    assert caught[-1].filename == __file__


def test_the_only_outcome_that_differs_cannot_be_left_out():
    X, Y = data()
    transformed = model("sinh-arcsinh", X, torch.where(Y.amax() == Y, 1.0, 0.0).to(Y))
    with pytest.raises(UnsupportedError, match=f"Without row {int(Y.argmax())} all outcomes are equal"):
        transformed.leave_one_out()


def test_an_outcome_far_larger_than_all_others_is_left_out_without_cancellation():
    X, Y = data()
    largest, least = int(Y.argmax()), int(Y.argmin())
    Y[largest] = 1e11
    transformed = model("identity", X, Y, tolerance=0.0, quadrature="mode")
    left_out, nodes = transformed.leave_one_out(), transformed.weighted_nodes
    law = law_without(largest, transformed, X, Y, Nodes.single(nodes.u[0]))
    wanted = law.quantile(0.9).item() - law.median.item()
    found = left_out.posterior.quantile(0.9)[largest] - left_out.posterior.median[largest]
    # the location is a difference of numbers of the left out outcome's size
    assert found.item() == pytest.approx(wanted, rel=1e-4)
    assert left_out.log_density[largest].item() == pytest.approx(law.log_density(1e11).item(), rel=1e-6)
    assert left_out.log_density[least].isfinite()


def test_too_few_points_to_leave_one_out():
    X, Y = data(n=3)
    transformed = model("identity", X, Y, num_nodes=4)
    transformed.set_train_data(X, Y.squeeze(-1))
    assert transformed.leave_one_out().log_density.isfinite().all()
    process = transformed._process  # one degree of freedom is what only a process that is made by hand can have
    two = dataclasses.replace(process, X=process.X[:2], y=process.y[:2])
    with pytest.raises(UnsupportedError, match="none for the scale"):
        two.weigh(transformed.coordinates().unsqueeze(0)).left_out()


@pytest.fixture(scope="module")
def scores():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(14, 1, dtype=torch.double, generator=generator)
    y = (2 * torch.sin(6 * X) + 0.2 * torch.randn(X.shape, dtype=torch.double, generator=generator)).exp()
    return compare_warpings(X, y, [Affine(), BoxCox()], **FEW)


def test_the_warping_of_an_exponential_is_found(scores):
    best, other = scores
    assert isinstance(best.model.warping, BoxCox)
    assert best.behind == best.standard_error == 0
    assert other.behind > 2 * other.standard_error > 0
    assert best.log_evidence > other.log_evidence


def test_scores_are_those_of_the_models(scores):
    results = [score.model.leave_one_out() for score in scores]
    for score, result in zip(scores, results, strict=True):
        assert score.leave_one_out == pytest.approx(float(result.log_density.sum()))
        assert score.behind == pytest.approx(scores[0].leave_one_out - score.leave_one_out)
        assert score.log_evidence == score.model.log_evidence
        assert score.effective_number == float(result.effective_number.min())
    best, other = results  # the error of nodes is part of the standard error
    spread = (best.log_density - other.log_density).std() * len(best.log_density) ** 0.5
    exact = (spread**2 + best.standard_error**2 + other.standard_error**2).sqrt()
    assert scores[1].standard_error == pytest.approx(float(exact))
    assert other.standard_error > 0

"""A constant mean that is integrated over: what it adds to the prior, and what it does far from the data."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean

from botorch_skewgp import SkewGP
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.observations import Binary, Censored, Numeric, Ordinal, Preference, Validity
from botorch_skewgp.sampling.pathwise import SkewGPSamplePath

X = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TEST_X = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
VALUES = torch.tensor([0.3, 1.2, -0.4, 0.8, 0.1, 2.0], dtype=torch.float64)


def test_numbers_are_conditioned_on_as_with_a_constant_of_that_law():
    noise = torch.full((6,), 0.1, dtype=torch.float64)
    kernel = RBFKernel().double()
    model = SkewGP(X, Numeric(VALUES, noise), covar_module=kernel, mean_module=IntegratedConstantMean(4.0)).eval()
    K = kernel(torch.cat([X, TEST_X])).to_dense().detach() + 4.0
    gain = torch.linalg.solve(K[:6, :6] + 0.1 * torch.eye(6, dtype=torch.float64), K[:6, 6:]).mT
    posterior = model.posterior(TEST_X)
    torch.testing.assert_close(posterior.mean.squeeze(-1).detach(), gain @ VALUES)
    torch.testing.assert_close(posterior.covariance_matrix.detach(), K[6:, 6:] - gain @ K[:6, 6:])


def test_comparisons_do_not_see_the_constant():
    duels = Preference(torch.tensor([[0, 1], [2, 3]]))
    pair = TEST_X[:2]
    with_constant = SkewGP(X, duels, mean_module=IntegratedConstantMean(4.0))
    without = SkewGP(X, duels, mean_module=ConstantMean())
    torch.testing.assert_close(with_constant.predictive(pair).probs, without.predictive(pair).probs)


def test_labels_of_one_region_say_little_about_another():
    near = 0.01 * X[:5]
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.1
    model = SkewGP(near, Binary(torch.ones(5)), covar_module=kernel, mean_module=IntegratedConstantMean(1.0))
    # all five read c + g(0), far away c + g(1) with g of variance 1: five noisy signs of one value
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(3, 1_000_000, dtype=torch.float64, generator=generator)
    weight = torch.special.ndtr(draws[0] + draws[1]).pow(5)
    expected = (weight * torch.special.ndtr(draws[0] + draws[2])).sum() / weight.sum()
    far = torch.ones(1, 2, dtype=torch.float64)
    assert float(model.predictive(far).probs.detach()) == pytest.approx(float(expected), abs=0.01)


def test_sample_paths_draw_the_constant():
    model = SkewGP(X, Binary(torch.tensor([1, 0, 1, 1, 0, 1])), mean_module=IntegratedConstantMean(4.0))
    num_paths = 4096
    path = SkewGPSamplePath.draw(model, torch.Size([num_paths]), generator=torch.Generator().manual_seed(0))
    values, posterior = path(TEST_X).detach(), model.posterior(TEST_X)
    mean, variance = posterior.mean.squeeze(-1).detach(), posterior.variance.squeeze(-1).detach()
    assert ((values.mean(0) - mean).abs() < 4 * (variance / num_paths).sqrt()).all()
    assert ((values.var(0) / variance - 1).abs() < 6 * math.sqrt(2 / num_paths)).all()


@pytest.mark.parametrize(
    ("observations", "integrated"),
    [
        (Binary(torch.tensor([1, 0])), True),
        (Validity(torch.tensor([True, True])), True),
        (Ordinal(torch.tensor([0, 2]), 3), True),
        ([Binary(torch.tensor([1, 0])), Preference(torch.tensor([[0, 1]]))], True),
        (Preference(torch.tensor([[0, 1]])), False),
        (Numeric(VALUES[:2]), False),
        ([Numeric(VALUES[:2]), Validity(torch.tensor([True, True]))], False),
        (Censored(VALUES[:2], VALUES[:2] + 1), False),
        (None, False),
    ],
)
def test_default_is_integrated_where_labels_or_grades_alone_tell_it(observations, integrated):
    assert isinstance(SkewGP(X[:2], observations).mean_module, IntegratedConstantMean) is integrated


def test_refusal():
    with pytest.raises(InputDataError, match="variance must be"):
        IntegratedConstantMean(0.0)

"""The mean and the expected maximum of a pair in closed form: by samples, by differences, at equal points, in tails."""

import math

import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import InputPerturbation
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch.distributions import Normal

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.acquisition.closed_forms import ExpectedMaximumOfPair, ExpectedPositivePart, MixtureMean
from botorch_skewgp.acquisition.search_domain import SearchDomain
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Numeric, Preference, Slope

DOUBLE = torch.double
BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=DOUBLE)
POINTS = torch.rand(8, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
PAIRS = torch.rand(5, 2, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
NUMBERS = torch.tensor([3.0, -1.0, 0.5, 2.0, 4.0, 0.0, 1.0, -2.0], dtype=DOUBLE)
DUELS = Preference([[0, 1], [2, 3], [4, 5], [6, 7], [0, 4], [2, 6]])
NUM_SAMPLES = 2**16


class Halved(RBFKernel):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs) * 0.5


def with_changed_kernel() -> SkewGP:
    """A kernel of a known class, one of whose instances is evaluated otherwise."""
    model = SkewGP(POINTS, DUELS)
    base = model.covar_module.base_kernel
    base.covar_dist = lambda *args, **kwargs: 4.0 * type(base).covar_dist(base, *args, **kwargs)
    return model


MODELS = {
    "duels": lambda: SkewGP(POINTS, DUELS),
    "Matern": lambda: SkewGP(POINTS, DUELS, covar_module=ScaleKernel(MaternKernel(ard_num_dims=2))),
    "of one input": lambda: SkewGP(POINTS, DUELS, covar_module=ScaleKernel(RBFKernel(active_dims=[1]))),
    "transforms": lambda: SkewGP(
        POINTS,
        [Numeric(NUMBERS), DUELS],
        input_transform=Normalize(2, bounds=2 * BOUNDS - 0.5),
        outcome_transform=Standardize(1),
    ),
    "a subclass": lambda: SkewGP(POINTS, DUELS, covar_module=ScaleKernel(Halved(ard_num_dims=2))),
    "changed by hand": with_changed_kernel,
    "slopes": lambda: SkewGP(POINTS, [DUELS, Slope(dims=0, signs=1, index=range(3))]),
    "inducing points": lambda: SkewGP(POINTS, DUELS, inducing_points=5),
    "ep": lambda: SkewGP(POINTS, DUELS, approximation="ep"),
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(request) -> SkewGP:
    return MODELS[request.param]().eval()


@pytest.fixture(scope="module")
def duels() -> SkewGP:
    return MODELS["duels"]().eval()


def test_values_are_those_of_the_posterior(model):
    assert ExpectedMaximumOfPair.takes(model)
    with torch.no_grad():
        mean, value = MixtureMean(model)(PAIRS[:, :1]), ExpectedMaximumOfPair(model)(PAIRS)
        torch.testing.assert_close(mean, PosteriorMean(model)(PAIRS[:, :1]), rtol=1e-9, atol=1e-9)
        torch.manual_seed(0)
        largest = model.posterior(PAIRS).rsample(torch.Size([NUM_SAMPLES])).squeeze(-1).amax(-1)
    error = largest.std(0) / math.sqrt(NUM_SAMPLES)
    assert ((value - largest.mean(0)).abs() < 4.5 * error).all()


def test_gradients(model):
    pairs = PAIRS[:2].clone().requires_grad_()
    assert torch.autograd.gradcheck(ExpectedMaximumOfPair(model), (pairs,), atol=1e-5)
    assert torch.autograd.gradcheck(MixtureMean(model), (pairs[:, :1].detach().requires_grad_(),), atol=1e-5)


def test_equal_points_have_the_mean_and_its_gradient(model):
    point = PAIRS[:, :1].clone().requires_grad_()
    mean = PosteriorMean(model)(point)
    (slope,) = torch.autograd.grad(mean.sum(), point)
    pairs = PAIRS[:, [0, 0]].requires_grad_()
    value = ExpectedMaximumOfPair(model)(pairs)
    (slopes,) = torch.autograd.grad(value.sum(), pairs)
    torch.testing.assert_close(value, mean, atol=1e-4, rtol=0)  # of the least variance, 1e-10 at most
    torch.testing.assert_close(slopes.sum(1), slope.squeeze(1), atol=1e-4, rtol=1e-4)


def test_positive_part_far_in_the_tails():
    means = torch.tensor([[-400.0, -40.0], [-1.0, 2.0], [30.0, 400.0]], dtype=DOUBLE).requires_grad_()
    variance = torch.tensor([1e-10, 4.0, 1e-3], dtype=DOUBLE).requires_grad_()
    weights = torch.tensor([0.25, 0.75], dtype=DOUBLE)
    value = ExpectedPositivePart.apply(means, variance, weights)
    slopes = torch.autograd.grad(value.sum(), (means, variance))
    z, normal = means.detach() / 2, Normal(0.0, 1.0)
    middle = 2 * (normal.log_prob(z).exp() + z * normal.cdf(z)) @ weights
    expected = torch.tensor([0.0, float(middle[1]), 0.25 * 30 + 0.75 * 400], dtype=DOUBLE)
    torch.testing.assert_close(value.detach(), expected)
    torch.testing.assert_close(slopes[0][[0, 2]], torch.stack([0 * weights, weights]))
    assert all(slope.isfinite().all() for slope in slopes)


def test_models_of_other_posteriors_are_left_to_samples(duels):
    shift = torch.zeros(2, 2, dtype=DOUBLE)
    others = [
        SingleTaskGP(POINTS, NUMBERS.unsqueeze(-1)),
        FullyBayesianSkewGP([duels, duels]),
        SkewGP(POINTS, Preference([[0, 1], [2, 3]], judge=[0, 1])),
        SkewGP(POINTS, DUELS, input_transform=InputPerturbation(shift)),
        duels.condition_on_draws(POINTS[:2])[0],
    ]
    assert not any(ExpectedMaximumOfPair.takes(other) for other in others)


def test_pairs_are_no_worse_than_those_by_samples(duels):
    exact = ExpectedMaximumOfPair(duels)
    for seed in range(2):
        torch.manual_seed(seed)
        pair, value = next_pair(duels, BOUNDS)
        by_samples, _ = next_pair(duels, BOUNDS, method=qExpectedUtilityOfBestOption(duels))
        with torch.no_grad():
            torch.testing.assert_close(exact(pair).squeeze(), value)
            assert value > exact(by_samples).squeeze() - 1e-6
    torch.manual_seed(seed)
    again, _ = next_pair(duels, BOUNDS)
    assert torch.equal(pair, again)


def test_recommendation_is_that_of_the_posterior_mean(duels):
    torch.manual_seed(0)
    point, value = recommend(duels, BOUNDS)
    found, largest = SearchDomain.build(duels, BOUNDS).optimize(
        PosteriorMean(duels), 1, num_restarts=10, raw_samples=256
    )
    torch.testing.assert_close(value, largest, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(point, found, rtol=0, atol=1e-3)


def test_searches_climb_to_a_known_optimum(duels):
    class Quadratic(AcquisitionFunction):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            return -(X - X.new_tensor([[0.3, 0.7], [1.4, 0.2]])).square().sum((-2, -1))

    domain = SearchDomain.build(duels, BOUNDS)
    pair, _ = domain.optimize(Quadratic(duels), 2, num_restarts=4, raw_samples=32)
    torch.testing.assert_close(pair, pair.new_tensor([[0.3, 0.7], [1.0, 0.2]]), rtol=0, atol=1e-4)


def test_later_changes_of_a_model_do_not_matter():
    model = MODELS["duels"]().eval()
    mean = MixtureMean(model)
    before = mean(PAIRS[:, :1])
    model.covar_module.base_kernel.lengthscale = 0.1
    assert torch.equal(mean(PAIRS[:, :1]), before)
    assert not torch.equal(MixtureMean(model)(PAIRS[:, :1]), before)

"""Whether inducing points are enough."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import check_inducing_points
from botorch_skewgp.observations import Binary, Choice, Numeric, Observation, Preference
from botorch_skewgp.truncated.draws import DrawSettings

N = 60
SETTINGS = DrawSettings(num_draws=2048)


def kernel(lengthscale: float) -> ScaleKernel:
    module = ScaleKernel(RBFKernel()).double()
    module.outputscale = 2.0
    module.base_kernel.lengthscale = lengthscale
    return module


def model_of(lengthscale: float, num_points: int | None, observations: Observation | None = None) -> SkewGP:
    X = torch.rand(N, 2, dtype=torch.float64)
    if observations is None:
        observations = Binary(torch.sin(4 * X[:, 0]) + torch.randn(N).double() > 0)
    return SkewGP(X, observations, covar_module=kernel(lengthscale), inducing_points=num_points, draw_settings=SETTINGS)


def test_many_points_for_a_smooth_function_are_enough():
    found = check_inducing_points(model_of(1.0, 15))
    assert found.enough
    assert (found.num_points, found.num_compared) == (15, 30)
    assert found.mean_change < found.most_change < 0.05
    assert abs(found.log_evidence_change) < 0.01
    assert found.pareto_k < 1
    assert 0.9 < found.effective_share <= 1


def test_few_points_for_a_rough_function_are_not():
    found = check_inducing_points(model_of(0.15, 5))
    assert not found.enough
    assert found.mean_change > 0.1
    assert abs(found.log_evidence_change) > 0.1


def test_the_model_is_left_alone_and_any_points_may_be_asked_for():
    model = model_of(0.5, 6)
    before = model.inducing_points.clone()
    one = check_inducing_points(model, torch.rand(7, 2, dtype=torch.float64), tolerance=10.0)
    assert one.enough
    assert torch.equal(model.inducing_points, before)
    assert model.training
    assert check_inducing_points(model, model.datapoints) == check_inducing_points(model)


@pytest.mark.parametrize(
    "observations",
    [
        Numeric(torch.linspace(-1, 1, N)),
        Preference(torch.arange(N).view(-1, 2)),
        Choice(torch.arange(N).view(-1, 3)),
        [Numeric(torch.linspace(-1, 1, 20)), Binary(torch.arange(N) > 40)],
    ],
    ids=["numbers", "duels", "choices", "numbers and labels"],
)
def test_the_gaussian_posterior_has_the_draws_mean(observations):
    model = model_of(0.3, 8, observations)
    found = check_inducing_points(model)
    X, few = model.datapoints, model.posterior(model.datapoints)
    model.choose_inducing_points(16)
    many = model.posterior(X)
    change = ((many.mean - few.mean) / many.variance.sqrt()).square().mean().sqrt().item()
    assert found.mean_change == pytest.approx(change, abs=0.06)
    assert found.mean_change > 0.1
    sd_change = (many.variance.sqrt() / few.variance.sqrt()).log().square().mean().sqrt().item()
    assert found.sd_change == pytest.approx(sd_change, abs=0.03)
    assert found.sd_change > 0.07
    assert 0.2 < found.effective_share <= 1


@pytest.mark.slow
def test_what_cannot_be_checked():
    with pytest.raises(InputDataError, match="exact model"):
        check_inducing_points(model_of(1.0, None))
    with pytest.raises(InputDataError, match="no more than 60"):
        check_inducing_points(model_of(1.0, N))
    model = model_of(1.0, 3)
    fantasies = model.fantasize(torch.rand(1, 2, dtype=torch.float64), SobolQMCNormalSampler(torch.Size([2])))
    with pytest.raises(UnsupportedError, match="model that they come from"):
        check_inducing_points(fantasies)

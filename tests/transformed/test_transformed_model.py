"""The transformed process against dense linear algebra, refits, other quadratures and its own limits."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import ModelList, ModelListGP
from botorch.models.transforms.input import Normalize
from botorch.utils.datasets import SupervisedDataset
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from scipy import stats
from transformed_cases import DOUBLE, FEW, TEST_X, data, model, shared

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.transformed import BayesianTransformedGP, compare_warpings
from botorch_skewgp.transformed.nodes import Nodes
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh


@pytest.mark.parametrize("noisy", [False, True])
def test_identity_is_a_student_t_process(noisy):
    X, Y = data()
    transformed = model("identity", standardize=False)
    transformed.covar_module.lengthscale = torch.tensor(0.4, dtype=DOUBLE)  # a float would be rounded to single
    transformed.likelihood.noise = torch.tensor(0.01, dtype=DOUBLE)
    transformed.use_nodes(Nodes.single(transformed.coordinates()))
    posterior = transformed.posterior(TEST_X, observation_noise=noisy)

    def kernel(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1) / 0.4**2)

    x, y, t = X.numpy(), Y.squeeze(-1).numpy(), TEST_X.numpy()
    n = len(x)
    K, k = kernel(x, x) + 0.01 * np.eye(n), kernel(x, t)
    one = np.ones(n)
    b = one @ np.linalg.solve(K, y) / (one @ np.linalg.solve(K, one))
    q = (y - b) @ np.linalg.solve(K, y - b)
    location = k.T @ np.linalg.solve(K, y - b) + b
    h = 1 - k.T @ np.linalg.solve(K, one)
    C = kernel(t, t) + 0.01 * noisy * np.eye(len(t)) - k.T @ np.linalg.solve(K, k)
    C = C + np.outer(h, h) / (one @ np.linalg.solve(K, one))
    law = stats.t(n - 1, location, np.sqrt(q * C.diagonal() / (n - 1)))
    np.testing.assert_allclose(posterior._joint.matrix().detach()[0], C, rtol=1e-9)
    np.testing.assert_allclose(posterior.median.squeeze(-1), law.median(), rtol=1e-9)
    np.testing.assert_allclose(posterior.quantile(0.95).squeeze(-1), law.ppf(0.95), rtol=1e-9)
    np.testing.assert_allclose(posterior.cdf(2.0).squeeze(-1), law.cdf(2.0), rtol=1e-9)
    np.testing.assert_allclose(posterior.density(2.0).squeeze(-1), law.pdf(2.0), rtol=1e-9)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), law.mean(), rtol=1e-9)
    np.testing.assert_allclose(posterior.variance.squeeze(-1), law.var(), rtol=1e-7)


def test_share_left_out_is_a_bound():
    X, Y = data()
    every, some = model("sinh-arcsinh", X, Y, tolerance=0.0), model("sinh-arcsinh", X, Y, tolerance=0.05)
    assert len(some.weighted_nodes.u) < len(every.weighted_nodes.u)
    assert 0 < some.share_left_out <= 0.05
    y = torch.linspace(0.1, 12, 30, dtype=DOUBLE)
    error = some.posterior(TEST_X).cdf(y) - every.posterior(TEST_X).cdf(y)
    assert 0 < error.abs().max() <= some.share_left_out + 1e-12
    assert every.share_left_out == pytest.approx(0.0, abs=1e-12)


class BrokenBeyond(RBFKernel):
    """Not positive definite where lengthscales are long."""

    threshold = 0.6

    def forward(self, x1, x2, diag=False, **params):
        value = super().forward(x1, x2, diag=diag, **params)
        bad = (self.lengthscale > self.threshold).any(-1, keepdim=True)
        return torch.where(bad.squeeze(-1) if diag else bad, -value, value)


def test_singular_nodes_are_left_out():
    X, Y = data()
    kernel = BrokenBeyond(ard_num_dims=2)
    kernel.lengthscale = 0.4
    transformed = model("sinh-arcsinh", X, Y, covar_module=kernel, num_nodes=64)
    with pytest.warns(QuadratureWarning, match="singular; they are left out") as caught:
        transformed.posterior(TEST_X)
    assert {warning.filename for warning in caught} == {__file__}
    lengthscales = transformed._space.at(transformed.weighted_nodes.u, "covar_module").lengthscale
    assert (lengthscales <= BrokenBeyond.threshold).all()
    assert transformed.posterior(TEST_X).median.isfinite().all()


def built(change=lambda Y: Y, **kwargs):
    """Builds a model, of outcomes that are changed."""
    return lambda X, Y: BayesianTransformedGP(X, change(Y), **kwargs)


BAD_DATA = [
    (built(lambda Y: Y - 1.0, warping=BoxCox()), r"above 0; rows \["),
    (built(lambda Y: Y - 1.0, warping=Composition([BoxCox(), SinhArcsinh()])), "above 0"),
    (built(lambda Y: 0 * Y + 3.0), "All values"),
    (built(lambda Y: 1.7e308 * torch.where(Y.amax() == Y, 1, -1).to(Y)), "differ by more than"),
    (built(lambda Y: torch.where(Y > 2, math.nan, Y)), "NaN or infinite values in rows"),
    (built(lambda Y: Y.squeeze(-1)), "n x 1"),
    (built(lambda Y: Y.to(torch.complex128)), "real numbers"),
    (built(lambda Y: Y.tolist()), "got list"),
    (lambda X, Y: BayesianTransformedGP(torch.where(X > 0.5, math.nan, X), Y), "train_X contains NaN"),
    (lambda X, Y: BayesianTransformedGP(X[:3], Y[:3], mean="linear"), "at least 5 are needed"),
    (lambda X, Y: BayesianTransformedGP(X.float(), 1e60 * Y), "too large"),
    (built(warping=BoxCox), "the class BoxCox, not an instance"),
    (built(covar_module="RBF"), "covar_module must be"),
    (built(likelihood=RBFKernel()), "likelihood must be a"),
    (built(mean="quadratic"), "mean must be one of 'constant', 'linear'; got 'quadratic'"),
    (built(quadrature="smolyak"), "quadrature must be one of 'sobol', 'mode'; got 'smolyak'"),
    (built(num_nodes=0), "num_nodes must be an integer of at least 1"),
    (built(num_restarts=1.5), "num_restarts must be an integer of at least 1"),
    (built(seed=None), "seed must be an integer"),
    (built(num_moments=-1), "num_moments must be an integer of at least 0"),
    (built(num_moments=0.5), "num_moments must be an integer"),
    (built(least_effective=math.nan), "least_effective must be a finite number of at least 0"),
    (built(tolerance=1.0), "tolerance must be below 1"),
    (built(standardize="no"), "standardize must be True or False; got 'no'"),
    (lambda X, Y: shared("identity").posterior(X, observation_noise="no"), "observation_noise must be True or False"),
    (lambda X, Y: shared("identity").posterior(X, posterior_transform=3), "posterior_transform must be a"),
    (lambda X, Y: shared("identity").set_train_data(targets=[1.0]), "targets must be a"),
    (lambda X, Y: shared("identity").set_train_data(()), "train_X must be a"),
    (lambda X, Y: shared("identity").use_nodes(3), "nodes must be a"),
    (lambda X, Y: shared("identity").use_nodes(Nodes.single(torch.zeros(9))), r"nodes.u must .* \(1, 9\)"),
    (lambda X, Y: shared("identity").log_prior(torch.zeros(3)), r"u must have the coordinates .* got shape \(3,\)"),
    (lambda X, Y: shared("identity").log_posterior([0.0]), "u must be a"),
    (lambda X, Y: Composition([]), "at least one warping"),
    (lambda X, Y: Composition(BoxCox()), "a list of at least one warping"),
    (lambda X, Y: Composition([BoxCox]), "An entry of warpings must be .* the class BoxCox"),
    (lambda X, Y: compare_warpings(X, Y, []), "a list of at least one warping"),
    # a warping without moments
    (lambda X, Y: built(warping=Arcsinh(), num_moments=1)(X, Y).posterior(X), "No parameters were found"),
    (lambda X, Y: shared("identity").condition_on_observations(X[:2], torch.ones(2, dtype=DOUBLE)), "^Y "),
    (lambda X, Y: shared("identity").condition_on_observations(X[:2], math.nan * Y[:2]), "^Y "),
]
NOT_SUPPORTED = [
    (built(covar_module=ScaleKernel(RBFKernel())), "base kernel"),
    (built(covar_module=RBFKernel(batch_shape=torch.Size([2]))), "batch shape"),
    (built(likelihood=GaussianLikelihood(batch_shape=torch.Size([2]))), "one noise variance"),
    (lambda X, Y: shared("identity").posterior(X, output_indices=[1]), "one output"),
    (lambda X, Y: shared("identity").posterior(X, observation_noise=Y), "True or False"),
    (lambda X, Y: shared("identity").posterior(X, output_indices=0), "one output"),
    (lambda X, Y: shared("identity").subset_output([1]), "one output"),
    (lambda X, Y: shared("identity").subset_output(0), "one output"),
    (lambda X, Y: shared("identity").fantasize(X), "look-ahead"),
    (lambda X, Y: shared("identity").condition_on_observations(X[None], Y[None]), "batches"),
    (lambda X, Y: shared("identity").condition_on_observations(X, Y, noise=Y), "noise is that of the warped outcome"),
    (lambda X, Y: BayesianTransformedGP.construct_inputs(dataset(X, Y.repeat(1, 2))), "one outcome"),
]


def dataset(X, Y):
    return SupervisedDataset(X, Y, feature_names=["a", "b"], outcome_names=list("yz"[: Y.shape[-1]]))


@pytest.mark.filterwarnings("ignore::botorch.exceptions.InputDataWarning")  # of single precision
@pytest.mark.parametrize(
    ("error", "act", "message"),
    [*((InputDataError, *case) for case in BAD_DATA), *((UnsupportedError, *case) for case in NOT_SUPPORTED)],
)
def test_what_is_refused(error, act, message):
    with pytest.raises(error, match=message):
        act(*data())


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (torch.rand(2, 3, dtype=DOUBLE), BotorchTensorDimensionError, "2 columns"),
        (torch.rand(2, dtype=DOUBLE), BotorchTensorDimensionError, "batch_shape x q x d"),
        (torch.zeros(1, 2, dtype=torch.long), InputDataError, "floating point"),
        (torch.full((1, 2), math.nan, dtype=DOUBLE), InputDataError, "NaN"),
        ([[0.1, 0.2]], InputDataError, "floating point"),
    ],
)
def test_bad_queries_are_refused(X, error, message):
    transformed = shared("identity")
    for ask in (transformed.posterior, lambda X: transformed.condition_on_observations(X, torch.ones(1, 1).double())):
        with pytest.raises(error, match=message):
            ask(X)


def test_bad_new_data_change_nothing():
    transformed, (X, Y) = model("identity"), data()
    before, y = transformed.posterior(TEST_X).median, Y.squeeze(-1)
    for points, outcomes, message in [
        (X * math.nan, y, "NaN"),
        (X[:, :1], y, "n x 2"),
        (X, Y, "n-dim"),
        (X[:5], None, "one number for each point"),
        (X, 0 * y, "equal"),
    ]:
        with pytest.raises(InputDataError, match=message):
            transformed.set_train_data(points, outcomes)
    torch.testing.assert_close(transformed.posterior(TEST_X).median, before, rtol=0, atol=0)


@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e9, 1e300])
def test_outcomes_of_any_size(scale):
    X, Y = data()
    median = model("identity", X, scale * Y).posterior(TEST_X).median
    torch.testing.assert_close(median / scale, shared("identity").posterior(TEST_X).median, rtol=1e-4, atol=0)


@pytest.mark.parametrize("odd", [1e-310, 1e-200, 1e200])
def test_one_outcome_that_differs_gives_a_unit(odd):
    X, Y = data()
    Y = odd * (Y.amax() == Y).to(Y)
    quantiles = model("identity", X, Y).posterior(X[Y.argmax()].unsqueeze(0)).quantile(torch.tensor([0.1, 0.9]))
    assert quantiles[0] < odd <= quantiles[1] < 3 * odd


def test_samples_at_points_that_coincide_where_much_is_known():
    X = torch.linspace(0, 1, 60, dtype=DOUBLE).unsqueeze(-1)
    transformed = model("identity", X, torch.sin(3 * X))
    points = 0.5 + 1e-9 * torch.arange(6, dtype=DOUBLE).unsqueeze(-1)
    posterior = transformed.posterior(points)
    base = torch.randn(500, 8, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    samples = posterior.rsample_from_base_samples(torch.Size([500]), base).squeeze(-1)
    apart = (samples - samples[:, :1]).abs().amax()
    assert apart < 0.1 * samples[:, 0].std()
    assert samples[:, 0].var().item() == pytest.approx(posterior.variance[0].item(), rel=0.3)


def test_a_likelihood_of_the_users():
    X, Y = data()
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(0.5))
    transformed = model("identity", X, Y, likelihood=likelihood)
    assert (transformed._integrate().noise >= 0.5).all()
    assert transformed.likelihood is likelihood
    prior = transformed.log_prior(torch.tensor([[0.1, 0.2, 0.3], [0.1, 0.2, 5.0]], dtype=DOUBLE))
    assert prior[0] == prior[1]  # a parameter without a prior has a flat one in its coordinate


def test_an_outermost_affine_map_changes_nothing():
    X, Y = data()
    plain = shared("sinh-arcsinh")
    affine = BayesianTransformedGP(X, Y, warping=Composition([SinhArcsinh(), Affine()]), **FEW)
    torch.testing.assert_close(affine.posterior(TEST_X).median, plain.posterior(TEST_X).median, rtol=1e-8, atol=1e-8)
    assert affine.log_evidence == pytest.approx(plain.log_evidence, abs=1e-8)
    assert affine.parameter_names()[-2:] == ["warping.warpings.0.raw_skewness", "warping.warpings.0.raw_tail_weight"]


def test_equivariant_under_affine_maps_of_the_outcome():
    X, Y = data()
    first, second = shared("sinh-arcsinh"), model("sinh-arcsinh", X, 100 + 7 * Y)
    torch.testing.assert_close(
        second.posterior(TEST_X).median, 100 + 7 * first.posterior(TEST_X).median, rtol=1e-6, atol=1e-6
    )
    # the law of y has the density of 7 y, in all but the share that pays for the coefficients of the mean
    n = len(Y)
    assert second.log_evidence == pytest.approx(first.log_evidence - (n - 1) * math.log(7), abs=1e-4)


def test_conditioning_keeps_the_nodes():
    X, Y = data()
    transformed = model("sinh-arcsinh", X[:-2], Y[:-2], tolerance=0.0)
    more = transformed.condition_on_observations(X[-2:], Y[-2:])
    before = transformed.posterior(TEST_X).median
    other = copy.deepcopy(transformed)
    other.set_train_data(X, Y.squeeze(-1))
    other.use_nodes(transformed._nodes)
    torch.testing.assert_close(more.posterior(TEST_X).median, other.posterior(TEST_X).median, rtol=1e-9, atol=0)
    torch.testing.assert_close(transformed.posterior(TEST_X).median, before, rtol=0, atol=0)
    assert not torch.allclose(more.posterior(TEST_X).median, before)


@pytest.mark.parametrize("dtype", [DOUBLE, torch.float32], ids=str)
@pytest.mark.filterwarnings("ignore::botorch.exceptions.InputDataWarning")  # of single precision
def test_nodes_of_no_weight_do_not_count(dtype):
    # some nodes of the prior's size are warpings so steep that scales overflow
    generator = torch.Generator().manual_seed(102)
    X = torch.rand(7, 1, generator=generator, dtype=DOUBLE)
    Y = (1.2 * torch.sin(6 * X + 2) + 0.2 * torch.randn(7, 1, generator=generator, dtype=DOUBLE)).exp()
    settings = {"num_nodes": 256, "num_restarts": 4, "tolerance": 0.0}
    transformed = model("L-SA", X.to(dtype), Y.to(dtype), **settings)
    steeper = torch.tensor([float("tail_weight" in name) for name in transformed.parameter_names()], dtype=DOUBLE)
    assert steeper.sum() == 1
    steep = transformed.coordinates() + steeper * torch.tensor([[2.5], [3.5], [4.5], [6.0]])
    everything = transformed._make_nodes()
    given = everything._replace(
        u=torch.cat([everything.u, steep]),
        log_weight=torch.cat([everything.log_weight, torch.full((4,), 50.0, dtype=DOUBLE)]),
    )
    for nodes in (everything, given):
        transformed.use_nodes(nodes)
        kept = transformed.weighted_nodes
        assert (kept.probabilities > 0).all()
        assert kept.regression.square.isfinite().all()
        points = torch.tensor([[0.3], [0.9]], dtype=dtype)
        law = transformed.posterior(points)
        more = transformed.condition_on_observations(points[:1], Y[:1].to(dtype))
        for each in (law, more.posterior(points), transformed.leave_one_out().posterior):
            for values in (each.cdf(2.0), each.median, each.log_density(2.0), each.log_expected_gain(2.0)):
                assert values.isfinite().all()


def test_outcomes_that_leave_few_nodes_are_warned_of():
    X, Y = data(n=30)
    few = model("sinh-arcsinh", X[:4], Y[:4], num_nodes=512, num_restarts=4, least_effective=32.0)
    few.posterior(TEST_X)  # accurate enough
    with pytest.warns(QuadratureWarning, match="set_train_data"):
        few.condition_on_observations(X[4:], Y[4:])


def test_input_transforms():
    X, Y = data()
    bounds = torch.tensor([[0.0, 0.0], [10.0, 10.0]], dtype=DOUBLE)
    scaled = model("sinh-arcsinh", 10 * X, Y, input_transform=Normalize(d=2, bounds=bounds))
    plain = shared("sinh-arcsinh")
    torch.testing.assert_close(
        scaled.posterior(10 * TEST_X).median, plain.posterior(TEST_X).median, rtol=1e-6, atol=1e-6
    )
    more = scaled.condition_on_observations(10 * TEST_X[:1], Y[:1])
    reference = plain.condition_on_observations(TEST_X[:1], Y[:1])
    torch.testing.assert_close(
        more.posterior(10 * TEST_X).median, reference.posterior(TEST_X).median, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_new_data_before_a_learned_input_transform(mode):
    X, Y = data()
    transformed = model("identity", 10 * X[:-3], Y[:-3], input_transform=Normalize(d=2))
    transformed.posterior(TEST_X)
    getattr(transformed, mode)()
    transformed.set_train_data(10 * X, Y.squeeze(-1))
    inputs = 10 * X if mode == "train" else transformed.transform_inputs(10 * X)
    torch.testing.assert_close(transformed.train_inputs[0], inputs)
    fresh = model("identity", 10 * X, Y, input_transform=Normalize(d=2))
    fresh.units = transformed.units
    torch.testing.assert_close(
        transformed.posterior(10 * TEST_X).median, fresh.posterior(10 * TEST_X).median, rtol=0.05, atol=0
    )


def test_other_kernels_and_a_linear_mean():
    X, Y = data()
    transformed = model("sinh-arcsinh", X, Y, covar_module=MaternKernel(nu=2.5, ard_num_dims=2), mean="linear")
    posterior = transformed.posterior(TEST_X.unsqueeze(0))
    assert (posterior.df, posterior.median.shape) == (len(X) - 3, (1, 3, 1))
    assert transformed.leave_one_out().log_density.isfinite().all()


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(twin):
    transformed = shared("Box-Cox")
    before = transformed.posterior(TEST_X).median
    torch.testing.assert_close(twin(transformed).posterior(TEST_X).median, before, rtol=0, atol=0)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda law: pickle.loads(pickle.dumps(law))])
def test_copies_of_posteriors_have_the_same_samples(twin, noisy, generator):
    """Also those of several points, whose covariance is made when they are drawn."""
    law = shared("Box-Cox").posterior(TEST_X, observation_noise=noisy)
    base = torch.randn(4, 2 + len(TEST_X), generator=generator, dtype=DOUBLE)
    drawn = [each.rsample_from_base_samples(torch.Size([4]), base) for each in (twin(law), law)]
    torch.testing.assert_close(*drawn, rtol=0, atol=0)


def test_state_dict_round_trip():
    X, Y = data()
    first, second = model("sinh-arcsinh", X, Y), model("sinh-arcsinh", X, Y)
    median = first.posterior(TEST_X).median
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second.covar_module.lengthscale, first.covar_module.lengthscale, rtol=0, atol=0)
    torch.testing.assert_close(second.posterior(TEST_X).median, median, rtol=1e-2, atol=0)


def test_single_precision():
    X, Y = data()
    with pytest.warns(InputDataWarning, match="double"):
        single = model("sinh-arcsinh", X.float(), Y.float())
    posterior = single.posterior(TEST_X.float())
    assert posterior.median.dtype == torch.float32
    torch.testing.assert_close(
        posterior.median, shared("sinh-arcsinh").posterior(TEST_X).median.float(), rtol=1e-2, atol=1e-2
    )


def test_moments_that_the_prior_demands():
    X, Y = data(n=5)
    heavy = model("sinh-arcsinh", X, Y)
    if heavy.posterior(TEST_X).marginals.largest_tail_power() < 2:
        pytest.fail("the case is to have nodes without variance")
    with pytest.raises(UnsupportedError, match=r"no variance.*num_moments=2"):
        _ = heavy.posterior(TEST_X).variance
    light = model("sinh-arcsinh", X, Y, num_moments=2)
    assert light.posterior(TEST_X).variance.isfinite().all()
    # at this warping no moment exists, and the error says so before anything is integrated
    with pytest.raises(UnsupportedError, match=r"no mean.*exponentially"):
        _ = shared("arcsinh").posterior(TEST_X).mean


def test_contract_of_posteriors():
    transformed = shared("sinh-arcsinh")
    assert (transformed.num_outputs, transformed.batch_shape) == (1, torch.Size())
    minus = transformed.posterior(TEST_X, posterior_transform=ScalarizedPosteriorTransform(torch.tensor([-2.0]), 1.0))
    plain = transformed.posterior(TEST_X, output_indices=[0])
    torch.testing.assert_close(minus.quantile(0.1), 1 - 2 * plain.quantile(0.9))
    torch.testing.assert_close(minus.cdf(-3.0), plain.probability_above(2.0))
    torch.testing.assert_close(minus.log_probability_above(-3.0).exp(), plain.cdf(2.0))
    torch.testing.assert_close(minus.density(-3.0), plain.density(2.0) / 2)
    assert transformed.subset_output([0]) is transformed
    inputs = BayesianTransformedGP.construct_inputs(dataset(*data()), num_moments=2)
    assert BayesianTransformedGP(**inputs).num_moments == 2


def test_a_list_for_gaussian_models_refuses_it_in_words():
    models = shared("identity"), shared("arcsinh")
    X = data()[0][:2]
    with pytest.raises(AttributeError, match="Join models in a ModelList, not in a ModelListGP"):
        ModelListGP(*models).posterior(X)
    assert ModelList(*models).posterior(X).rsample(torch.Size([3])).shape == (3, 2, 2)


def test_nodes_are_made_in_inference_mode():
    plain, scaled = model("identity"), model("identity", input_transform=Normalize(2))
    with torch.inference_mode():
        median = plain.posterior(TEST_X).median
        assert scaled.posterior(TEST_X).median.isfinite().all()
    torch.testing.assert_close(median, shared("identity").posterior(TEST_X).median, rtol=1e-9, atol=0)


@pytest.mark.parametrize("shape", [(0, 2), (0, 1, 2), (3, 0, 2)])
def test_no_points_have_no_predictions(shape):
    posterior = shared("arcsinh").posterior(torch.zeros(shape, dtype=DOUBLE))
    event = (*shape[:-1], 1)
    assert posterior.median.shape == posterior.cdf(1.0).shape == event
    assert posterior.quantile(torch.tensor([0.1, 0.9], dtype=DOUBLE)).shape == (2, *event)
    assert posterior.rsample(torch.Size([3])).shape == (3, *event)

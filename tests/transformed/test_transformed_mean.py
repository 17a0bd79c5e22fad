"""Means with several basis functions, against universal kriging, refits and other bases of the same functions."""

import copy
import pickle

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import Normalize
from gpytorch.means import ConstantMean
from scipy import integrate, stats
from transformed_cases import DOUBLE, TEST_X, data, model

from botorch_skewgp.transformed import BayesianTransformedGP, TransformedLogExpectedImprovement
from botorch_skewgp.transformed.nodes import Nodes

OTHER_BASIS = torch.tensor([[2.0, 0.3, 0.0, -1.0], [0.0, 1.0, 0.4, 5.0], [0.1, 0.0, -3.0, 0.0], [0.0, 0.7, 0.0, 0.02]])


def curved(X):
    """A constant, both inputs and a square."""
    return torch.cat([torch.ones_like(X[:, :1]), X, X[:, :1].square()], dim=-1)


def other_curved(X):
    """Other combinations of the same functions."""
    return curved(X) @ OTHER_BASIS.to(X)


class Roots(torch.nn.Module):
    """A module, for inputs of the unit cube only."""

    def forward(self, X):
        return torch.cat([torch.ones_like(X[:, :1]), (1 - X[:, :1]).sqrt()], dim=-1)


def at_nodes(transformed, generator, num=6):
    """Nodes around the model's parameters, all of which it keeps."""
    center = transformed.coordinates()
    u = center + 0.3 * torch.randn(num, len(center), generator=generator, dtype=DOUBLE)
    nodes = Nodes(u, torch.zeros(num, dtype=DOUBLE))
    transformed.tolerance = 0.0
    transformed.use_nodes(nodes)
    return nodes


@pytest.mark.parametrize("noisy", [False, True])
def test_identity_is_universal_kriging_with_unknown_scale(noisy):
    X, Y = data()
    transformed = model("identity", X, Y, mean=curved, standardize=False)
    transformed.covar_module.lengthscale = torch.tensor(0.4, dtype=DOUBLE)
    transformed.likelihood.noise = torch.tensor(0.01, dtype=DOUBLE)
    transformed.use_nodes(Nodes.single(transformed.coordinates()))
    posterior = transformed.posterior(TEST_X, observation_noise=noisy)

    x, y, t = X.numpy(), Y.squeeze(-1).numpy(), TEST_X.numpy()
    M, m = curved(X).numpy(), curved(TEST_X).numpy()
    n, p = M.shape
    K = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(-1) / 0.4**2) + 0.01 * np.eye(n)
    k = np.exp(-0.5 * ((x[:, None] - t) ** 2).sum(-1) / 0.4**2)
    # the kriging system: weights w of the data and multipliers l, with M^T w = m at every point
    system = np.block([[K, M], [M.T, np.zeros((p, p))]])
    right = np.vstack([k, m.T])
    solved = np.linalg.solve(system, right)
    location = solved[:n].T @ y
    prior = np.exp(-0.5 * ((t[:, None] - t) ** 2).sum(-1) / 0.4**2) + 0.01 * noisy * np.eye(len(t))
    C = prior - right.T @ solved
    q = y @ np.linalg.solve(system, np.concatenate([y, np.zeros(p)]))[:n]
    scale = np.sqrt(q * C.diagonal() / (n - p))
    law = stats.t(n - p, location, scale)
    assert posterior.df == n - p
    np.testing.assert_allclose(posterior._joint.matrix().detach()[0], C, rtol=1e-9)
    np.testing.assert_allclose(posterior.median.squeeze(-1), law.median(), rtol=1e-9)
    np.testing.assert_allclose(posterior.quantile(0.95).squeeze(-1), law.ppf(0.95), rtol=1e-9)
    np.testing.assert_allclose(posterior.cdf(2.0).squeeze(-1), law.cdf(2.0), rtol=1e-9)
    np.testing.assert_allclose(posterior.density(2.0).squeeze(-1), law.pdf(2.0), rtol=1e-9)
    np.testing.assert_allclose(posterior.variance.squeeze(-1), law.var(), rtol=1e-7)
    gain = [integrate.quad(stats.t(n - p, location[i], scale[i]).sf, 2, np.inf)[0] for i in range(len(t))]
    np.testing.assert_allclose(posterior.log_expected_gain(2.0).exp().squeeze(-1), gain, rtol=1e-6)


@pytest.mark.parametrize("name", ["identity", "Box-Cox", "L-SA"])
@pytest.mark.parametrize("mean", ["linear", curved], ids=["linear", "curved"])
def test_leave_one_out_equals_refits(name, mean, generator):
    X, Y = data()
    transformed = model(name, X, Y, mean=mean)
    nodes = at_nodes(transformed, generator)
    left_out = transformed.leave_one_out()
    for i in (0, 5, int(Y.argmax())):
        rest, refit = torch.arange(len(X)) != i, copy.deepcopy(transformed)
        refit.set_train_data(X[rest], Y[rest].squeeze(-1))
        refit.use_nodes(nodes)
        law = refit.posterior(X[i : i + 1], observation_noise=True)
        for level in (0.05, 0.5, 0.9):
            expected = law.quantile(level).squeeze()
            assert left_out.posterior.quantile(level)[i].item() == pytest.approx(expected.item(), rel=1e-9)
        assert left_out.level[i].item() == pytest.approx(law.cdf(Y[i].item()).item(), rel=1e-9)
        assert left_out.log_density[i].item() == pytest.approx(law.log_density(Y[i].item()).item(), rel=1e-9)


def test_posteriors_depend_on_the_span_of_the_basis_only(generator):
    X, Y = data()
    first, second = model("L-SA", X, Y, mean=curved), model("L-SA", X, Y, mean=other_curved, tolerance=0.0)
    second.use_nodes(at_nodes(first, generator))
    base = torch.randn(8, 5, generator=generator, dtype=DOUBLE)
    more = torch.tensor([[1.0], [2.0]], dtype=DOUBLE)
    conditioned = [m.condition_on_observations(TEST_X[:2], more) for m in (first, second)]
    for pair in ((first, second), conditioned):
        one, other = (m.posterior(TEST_X) for m in pair)
        torch.testing.assert_close(other.median, one.median, rtol=1e-9, atol=0)
        samples = [law.rsample_from_base_samples(torch.Size([8]), base) for law in (one, other)]
        torch.testing.assert_close(samples[1], samples[0], rtol=1e-8, atol=1e-8)
    scores = [m.leave_one_out().log_density for m in (first, second)]
    torch.testing.assert_close(scores[1], scores[0], rtol=1e-9, atol=1e-9)
    # the flat prior of the coefficients, in other coordinates
    change = OTHER_BASIS.double()
    assert second.log_evidence == pytest.approx(first.log_evidence - change.det().abs().log().item(), abs=1e-9)
    laws = [m.mean_and_scale() for m in (first, second)]
    torch.testing.assert_close(laws[1].coefficients @ change.mT, laws[0].coefficients, rtol=1e-8, atol=1e-8)
    precisions = [law.root @ law.root.mT for law in laws]
    torch.testing.assert_close(precisions[1], change.mT @ precisions[0] @ change, rtol=1e-8, atol=1e-8)


def test_names_are_of_functions(generator):
    X, Y = data()
    for name, mean in [("constant", lambda X: X.new_ones(len(X), 1)), ("linear", lambda X: curved(X)[:, :-1])]:
        named, free = (model("sinh-arcsinh", X, Y, mean=each, tolerance=0.0) for each in (name, mean))
        free.use_nodes(at_nodes(named, generator, num=3))
        points = TEST_X.unsqueeze(-2).requires_grad_()
        values = [TransformedLogExpectedImprovement(m, best_f=3.0)(points) for m in (named, free)]
        torch.testing.assert_close(values[1], values[0], rtol=1e-10, atol=0)
        slopes = [torch.autograd.grad(value.sum(), points)[0] for value in values]
        torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-8, atol=1e-10)
        assert free.log_evidence == named.log_evidence


def test_gradients_count_those_of_the_basis():
    X, Y = data()
    transformed = model("Box-Cox", X, Y, mean=curved)

    def median(x):
        return transformed.posterior(x).median

    assert torch.autograd.gradcheck(median, TEST_X.clone().requires_grad_(), atol=1e-5, rtol=1e-4)


def test_a_straight_line_is_continued(generator):
    # beside it the posterior is that of the noise, which vanishes in proportion
    X = torch.rand(12, 1, generator=generator, dtype=DOUBLE)
    noise = torch.randn(12, 1, generator=generator, dtype=DOUBLE)
    far, levels = torch.tensor([[-4.0], [5.0]], dtype=DOUBLE), torch.tensor([0.025, 0.5, 0.975], dtype=DOUBLE)
    alone = model("identity", X, noise, mean="linear")
    nodes = at_nodes(alone, generator)
    quantiles = alone.posterior(far).quantile(levels)
    for size in (1e-2, 1e-5, 1e-8):
        Y = 1 + 2 * X + size * noise
        continued = model("identity", X, Y, mean="linear", tolerance=0.0)
        continued.use_nodes(nodes)
        found = continued.posterior(far).quantile(levels)
        torch.testing.assert_close(found, 1 + 2 * far + size * quantiles, rtol=0, atol=1e-7 * size + 1e-12)


@pytest.mark.parametrize("constant", [lambda X: X**0, lambda X: (X <= 1.9).to(X)])
def test_inputs_far_from_zero(constant):
    # such as seconds since 1970, of which the squares of a basis keep no digit; a step may be constant at the data
    X, Y = data(d=1)
    X = (X * 2**20).round() / 2**20  # sums with 2^30 are exact
    far, near = (
        model("identity", X, Y, mean=lambda X, by=by: torch.cat([constant(X), by * constant(X) + X], -1))
        for by in (2.0**30, 0.0)
    )
    points = torch.tensor([[-1.0], [0.5], [2.0]], dtype=DOUBLE)
    far.use_nodes(Nodes.single(near.coordinates()))
    near.use_nodes(Nodes.single(near.coordinates()))
    torch.testing.assert_close(far.posterior(points).median, near.posterior(points).median, rtol=1e-9, atol=1e-9)
    assert far.log_posterior(near.coordinates().unsqueeze(0)) == pytest.approx(
        near.log_posterior(near.coordinates().unsqueeze(0))
    )


def test_outcomes_have_the_moments_that_are_left():
    X, Y = data(n=8)
    constant, several = (model("sinh-arcsinh", X, Y, mean=mean, num_moments=2) for mean in ("constant", curved))
    posterior = several.posterior(TEST_X)
    assert posterior.df == 4
    assert posterior.variance.isfinite().all()
    heavy = constant.coordinates().unsqueeze(0)
    heavy[0, -1] = -torch.tensor(3.0).log()  # outcomes grow with the third power, their squares with the sixth
    assert constant.parameter_names()[-1].endswith("tail_weight")
    assert constant.log_posterior(heavy).isfinite()  # of seven degrees of freedom
    assert several.log_posterior(heavy) == -torch.inf  # of four


def test_transformed_inputs_other_data_copies_and_precision():
    X, Y = data()
    bounds = torch.tensor([[0.0, 0.0], [10.0, 10.0]], dtype=DOUBLE)
    plain = model("Box-Cox", X, Y, mean=Roots())
    scaled = model("Box-Cox", 10 * X[:9], Y[:9], mean=Roots(), input_transform=Normalize(d=2, bounds=bounds))
    scaled.posterior(TEST_X)
    scaled.set_train_data(10 * X, Y.squeeze(-1))
    scaled.units = plain.units
    scaled.use_nodes(Nodes.single(plain.coordinates()))
    plain.use_nodes(Nodes.single(plain.coordinates()))
    wanted = plain.posterior(TEST_X).median
    torch.testing.assert_close(scaled.posterior(10 * TEST_X).median, wanted, rtol=1e-9, atol=0)
    for twin in (copy.deepcopy(plain), pickle.loads(pickle.dumps(plain))):
        torch.testing.assert_close(twin.posterior(TEST_X).median, wanted, rtol=0, atol=0)
    single = copy.deepcopy(plain).float().posterior(TEST_X.float()).median
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, wanted.float(), rtol=1e-4, atol=1e-4)


def ones_and(function):
    """A basis of a constant and something else."""
    return lambda X: torch.cat([torch.ones_like(X[:, :1]), function(X)], dim=-1)


BAD_MEANS = [
    (ConstantMean(), r"n x p real numbers .* got shape \(14,\)"),
    (lambda X: X[:3], r"got shape \(3, 2\) .* n = 14"),
    (lambda X: X[:, :0], r"got shape \(14, 0\)"),
    (lambda X: X.tolist(), "got list for n = 14"),
    (lambda X: X.to(torch.complex128), "complex128"),
    (ones_and(torch.log), r"basis that mean returns contains NaN or infinite values in rows \[0\]"),
    (ones_and(lambda X: X @ X.new_ones(2, 3)), "4 basis functions .* dependent .* their rank is 2. Leave 2 out"),
    (ones_and(lambda X: 0 * X), "3 basis functions .* their rank is 1"),
    (ones_and(lambda X: X.repeat(1, 6) ** torch.arange(1, 13)), "14 points for the 13 coefficients .* 15 are needed"),
    (lambda X: X, "No linear combination .* column of ones .* standardize=False"),
    (lambda X: torch.cat([X[:, :1] ** 0, 3 * data()[1] - 2], -1), "train_Y is exactly a linear combination"),
]


@pytest.mark.parametrize(("mean", "message"), BAD_MEANS)
def test_bad_bases_are_refused(mean, message):
    X, Y = data()
    X[0, 0] = 0.0
    with pytest.raises(InputDataError, match=message):
        BayesianTransformedGP(X, Y, mean=mean)


def test_an_input_that_is_constant_has_no_slope():
    X, Y = data()
    X[:, 0] = 0.3
    with pytest.raises(InputDataError, match="3 basis functions of the mean are linearly dependent"):
        BayesianTransformedGP(X, Y, mean="linear")


def test_a_mean_through_the_origin_is_of_outcomes_in_their_units():
    X, Y = data()
    transformed = model("identity", X, Y, mean=lambda X: X, standardize=False)
    assert transformed.posterior(TEST_X).df == len(X) - 2
    assert transformed.posterior(TEST_X).median.isfinite().all()


def groups(X):
    """A mean of each group, by the first input."""
    return torch.nn.functional.one_hot(X[:, 0].long())


def test_bad_points_of_a_mean_change_nothing():
    X, Y = data()
    X = torch.cat([torch.arange(14).remainder(3).to(X).unsqueeze(-1), X[:, 1:]], dim=-1)
    transformed = model("identity", X, Y, mean=groups)
    before = transformed.posterior(X[:3]).median
    for points, message in [(X * X.new_tensor([0.0, 1.0]) + 2, "3 basis functions .* rank is 1"), (X - 5, "negative")]:
        with pytest.raises((InputDataError, RuntimeError), match=message):
            transformed.set_train_data(points, Y.squeeze(-1))
    with pytest.raises(InputDataError, match=r"same p always; got shape \(1, 2\) .* p = 3"):
        transformed.posterior(X[1:2])
    with pytest.raises(InputDataError, match="their rank is 4"):
        transformed.condition_on_observations(X[:1] + 4, Y[:1])
    torch.testing.assert_close(transformed.posterior(X[:3]).median, before, rtol=0, atol=0)


def test_bad_points_teach_the_input_transform_nothing():
    X, Y = data()
    transformed = model("identity", 10 * X, Y, mean="linear", input_transform=Normalize(d=2)).train()
    learned = transformed.input_transform.bounds.clone()
    with pytest.raises(InputDataError, match="linearly dependent"):
        transformed.set_train_data(X[:, :1].repeat(1, 2), Y.squeeze(-1))
    torch.testing.assert_close(transformed.input_transform.bounds, learned, rtol=0, atol=0)


def test_what_cannot_be_left_out():
    X, Y = data()
    alone = torch.where(torch.arange(14) == 3, 1.0, 0.0).to(X).unsqueeze(-1)
    X = torch.cat([alone, X[:, :1]], dim=-1)
    with pytest.raises(UnsupportedError, match="Without row 3 the basis functions of the mean are linearly dependent"):
        model("identity", X, Y, mean=groups).leave_one_out()
    line = 1 + 2 * X[:, 1:]
    line[5] += 1
    with pytest.raises(UnsupportedError, match="Without row 5 all outcomes are equal, or a linear combination"):
        model("identity", X[:, 1:], line, mean="linear").leave_one_out()

"""Inducing points: the exact model where they are the training points, and dense formulas where they are few."""

import gpytorch
import pytest
import torch
from kind_cases import (
    KINDS,
    LABELS,
    LENGTHSCALE,
    MEAN,
    OUTPUTSCALE,
    TEST_X,
    TRAIN_X,
    kernel,
    label_model_of,
    model_of,
    rbf,
    rbf_columns,
)

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.models.inducing import InducingPoints
from botorch_skewgp.observations import AffineProbit, Binary, Preference
from botorch_skewgp.papers import sun_parameters

Z = torch.tensor([[0.2], [1.2], [2.5]], dtype=torch.float64)
PRIOR = SkewPrior(torch.tensor([[0.6], [2.4]]).double(), torch.tensor([1.0, -1.0]), torch.tensor([0.3, -0.1]))
MANY_DUELS = Preference(torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [1, 2], [5, 3], [0, 4], [4, 1], [2, 0]]))
CASES = {
    **{name: [entry] for name, entry in KINDS.items()},
    "numbers and labels": [KINDS["numeric"], KINDS["numeric with given noise"], KINDS["binary"]],
    "numbers and a label": [KINDS["numeric"], KINDS["numeric with given noise"], Binary([1], index=[4])],
    "many duels": [MANY_DUELS],
    "everything": [KINDS[name] for name in ("choice", "numeric", "slope", "validity", "affine", "ranking")],
}


def objective(model: SkewGP) -> tuple[float, torch.Tensor]:
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    value = mll(model(*model.train_inputs), model.train_targets)
    parameters = [model.covar_module.raw_outputscale, model.covar_module.base_kernel.raw_lengthscale]
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters)])
    model.eval()
    return value.item(), gradient


def assert_equal_models(one: SkewGP, other: SkewGP) -> None:
    (value, gradient), (other_value, other_gradient) = objective(one), objective(other)
    assert value == pytest.approx(other_value, abs=1e-7)
    assert torch.allclose(gradient, other_gradient, rtol=1e-6, atol=1e-7)
    first, second = (model.row_model(model.forward(TRAIN_X)) for model in (one, other))
    assert torch.allclose(first.truncated_normal.gamma, second.truncated_normal.gamma, atol=1e-9)
    for mine, theirs in zip(sun_parameters(one, TEST_X), sun_parameters(other, TEST_X), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-8)


@pytest.mark.parametrize("case", [*CASES, "skew prior"])
def test_all_points_as_inducing_points_are_the_exact_model(case):
    observations, skew_prior = CASES.get(case, [KINDS["binary"]]), PRIOR if case == "skew prior" else None
    options = {"num_draws": 64, "skew_prior": skew_prior}
    exact, model = (model_of(observations, inducing_points=points, **options) for points in (None, TRAIN_X))
    assert_equal_models(model, exact)
    row_model = exact.row_model(exact.forward(TRAIN_X))
    if row_model.works_by_points or row_model.rows.noise_root is not None:
        return  # draws in other coordinates, or from another start
    mine, theirs = model.posterior(TEST_X), exact.posterior(TEST_X)
    assert torch.allclose(mine.mean, theirs.mean, atol=1e-7)
    assert torch.allclose(mine.covariance_matrix, theirs.covariance_matrix, atol=1e-7)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", LABELS)
def test_all_points_as_inducing_points_are_the_exact_model_of_labels(kind, batched):
    covar_module = kernel()
    if batched:
        each = gpytorch.kernels.RBFKernel(batch_shape=torch.Size([3]))
        covar_module = gpytorch.kernels.ScaleKernel(each, batch_shape=torch.Size([3])).double()
        covar_module.base_kernel.lengthscale = torch.tensor([0.4, 0.7, 1.1]).view(3, 1, 1)
    exact, model = (label_model_of(LABELS[kind], covar_module=covar_module, num_draws=64) for _ in range(2))
    model.inducing = InducingPoints(TRAIN_X, learn=False)
    first, second = (entry.row_model(entry.forward(TRAIN_X)).truncated_normal for entry in (model, exact))
    assert torch.allclose(first.gamma, second.gamma, atol=1e-9)
    assert torch.allclose(first.mean, second.mean, atol=1e-9)
    assert torch.allclose(model.posterior(TEST_X).mean, exact.posterior(TEST_X).mean, atol=1e-6)


def dense_approximation(observations, skew_prior=None):
    """The joint normal of all rows, and of these with values at the test points, from dense matrices.

    The prior covariance of two rows is `W K W^T` where they share noise, or are one, and `W Q W^T` elsewhere, with `Q =
    K_xu K_uu^-1 K_ux`; here `u` are values at `Z`, at pseudo-points, and all slopes that are read.
    """
    exact = model_of(observations, 64, skew_prior=skew_prior)
    prior, rows = exact.latent_prior(), exact.row_model(exact.forward(TRAIN_X)).rows
    pseudo = torch.zeros(0, 1, dtype=torch.float64) if skew_prior is None else skew_prior.pseudo_points.detach()
    dims = torch.cat([torch.full((len(TRAIN_X) + len(pseudo),), -1), prior.layout.slope_dims])
    points = torch.cat([TRAIN_X, pseudo, prior.slope_points])
    own = slice(len(TRAIN_X), len(points))
    u, u_dims = torch.cat([Z, points[own]]), torch.cat([torch.full((len(Z),), -1), dims[own]])
    K, cross, K_u = (
        rbf_columns(*pair, OUTPUTSCALE, LENGTHSCALE)
        for pair in ((points, dims, points, dims), (points, dims, u, u_dims), (u, u_dims, u, u_dims))
    )
    test = rbf_columns(TEST_X, torch.full((len(TEST_X),), -1), u, u_dims, OUTPUTSCALE, LENGTHSCALE)
    Q = cross @ torch.linalg.solve(K_u, cross.mT)
    W = rows.weight(K.shape[-1])
    shared = torch.zeros(len(W), len(W), dtype=W.dtype)
    linked = torch.eye(len(W), dtype=torch.bool)
    if rows.noise_root is not None:
        shared = rows.noise_covariance
        shares = rows.noise_root.abs().sum(-1) > 0  # with the rows of its judgement, also where the covariance is zero
        linked |= shares.outer(shares) & (rows.label.unsqueeze(-1) == rows.label)
    covariance = torch.where(linked, W @ K @ W.mT, W @ Q @ W.mT) + shared + torch.diag(rows.noise)
    mean_of_columns = torch.where(dims < 0, MEAN, 0.0).double()
    with_test = test @ torch.linalg.solve(K_u, cross.mT) @ W.mT
    return rows, W @ mean_of_columns + rows.bias, covariance, with_test


@pytest.mark.parametrize("case", [*CASES, "skew prior"])
def test_few_inducing_points_agree_with_dense_formulas(case):
    skew_prior = PRIOR if case == "skew prior" else None
    observations = CASES.get(case, [KINDS["binary"], KINDS["numeric"]])
    model = model_of(observations, 64, inducing_points=Z, skew_prior=skew_prior)
    rows, row_means, covariance, with_test = dense_approximation(observations, skew_prior)
    number, interval = rows.is_equality.nonzero().squeeze(-1), (~rows.is_equality).nonzero().squeeze(-1)
    values = (rows.lower - row_means)[number]
    gain = torch.linalg.solve(covariance[number][:, number], covariance[number][:, interval]).mT
    left = covariance[interval][:, interval] - gain @ covariance[number][:, interval]

    row_model = model.row_model(model.forward(TRAIN_X))
    distribution = row_model.truncated_normal
    assert torch.allclose(distribution.mean, row_means[interval] + gain @ values, atol=1e-8)
    assert torch.allclose(distribution.gamma, left, atol=1e-8)
    if len(number):
        law = torch.distributions.MultivariateNormal(torch.zeros_like(values), covariance[number][:, number])
        assert row_model.number_log_density.item() == pytest.approx(law.log_prob(values).item(), abs=1e-7)

    # f(x) given numbers and a draw of the intervals is Gaussian
    posterior = model.posterior(TEST_X)
    precision = torch.linalg.pinv(covariance, hermitian=True, rtol=1e-10)  # a partial ranking compares in a cycle
    prior_covariance = rbf(TEST_X, TEST_X, OUTPUTSCALE, LENGTHSCALE)
    left = prior_covariance - with_test @ precision @ with_test.mT
    assert torch.allclose(posterior.gaussian_covariance, left, atol=1e-7)
    seen = torch.empty(model.draws.rows.shape[0] if len(interval) else 1, len(row_means), dtype=torch.float64)
    seen[:, interval], seen[:, number] = model.draws.rows[: len(seen)], rows.lower[number]
    means = MEAN + with_test @ precision @ (seen - row_means).mT
    found = posterior.component_means
    assert torch.allclose(found.mean(-1), means.mean(-1), atol=1e-7)
    assert torch.allclose(found.sort(-1).values, means.sort(-1).values, atol=1e-6)

    parameters = sun_parameters(model, TEST_X)
    location, cross = parameters.location, with_test[:, interval] - with_test[:, number] @ gain.mT
    weight = torch.linalg.solve(covariance[number][:, number], values)
    assert torch.allclose(location, MEAN + with_test[:, number] @ weight, atol=1e-8)
    found = parameters.skewness * parameters.scale.diagonal().sqrt().unsqueeze(-1)
    for side, bound in ((1.0, rows.lower[interval]), (-1.0, rows.upper[interval])):
        for column in (side * cross[:, bound.isfinite()]).unbind(-1):
            assert bool(((found - column.unsqueeze(-1)).abs() < 1e-8).all(0).any())


@pytest.mark.parametrize("observations", [[MANY_DUELS], [KINDS["choice"], KINDS["numeric"]]])
def test_objective_is_differentiable_in_the_inducing_points(observations):
    def value(points):
        model = model_of(observations, inducing_points=points, learn_inducing_points=True)
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
        return model.inducing_points, mll(model(*model.train_inputs), model.train_targets)

    points, at_Z = value(Z)
    (gradient,) = torch.autograd.grad(at_Z, points)
    step = 1e-4 * torch.tensor([[1.0], [-0.5], [0.7]], dtype=torch.float64)
    difference = (value(Z + step)[1] - value(Z - step)[1]).item() / 2
    assert (gradient * step).sum().item() == pytest.approx(difference, rel=1e-4)


def test_wide_rows_with_noise_of_their_own_keep_their_residuals(generator):
    weight = torch.randn(4, 6, dtype=torch.float64, generator=generator)
    wide = AffineProbit(torch.cat([weight, weight], dim=-1), 0.0, 0.3 * torch.eye(4, dtype=torch.float64))
    X = torch.cat([TRAIN_X, TRAIN_X + 0.21])
    exact, model = (model_of(wide, 64, train_X=X, inducing_points=points) for points in (None, Z))
    found = model.row_model(model.forward(X)).truncated_normal
    K, cross, K_z = (rbf(*pair, OUTPUTSCALE, LENGTHSCALE) for pair in ((X, X), (X, Z), (Z, Z)))
    W = exact.row_model(exact.forward(X)).rows.weight(12)
    Q = W @ cross @ torch.linalg.solve(K_z, cross.mT) @ W.mT
    residual = W @ K @ W.mT - Q
    expected = Q + torch.diag(residual.diagonal()) + 0.3 * torch.eye(4, dtype=torch.float64)
    assert torch.allclose(found.gamma, expected, atol=1e-9)

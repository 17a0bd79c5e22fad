"""Independence sampling of what blocks of rows share, beside dense distributions of the same rows."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Choice
from botorch_skewgp.truncated.draws import DrawSettings, choose_sampler, draw
from botorch_skewgp.truncated.priors import BorderedPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.shared_independence import SharedIndependenceSampler
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF, double = torch.inf, torch.double


def distribution_of(seed: int, block: list[int], columns: int = 1, far: float = 0.0) -> TruncatedNormal:
    """Rows with one bound, of either kind, that share two coordinates, and more in blocks."""
    generator = torch.Generator().manual_seed(seed)
    m = len(block)
    randn = lambda *shape: torch.randn(*shape, dtype=double, generator=generator)  # noqa: E731
    lower = torch.where(torch.arange(m) % 3 == 0, -INF, far - 0.2).double()
    N = (0.7 + 0.3 * randn(m, columns)).abs()
    N[[i for i, b in enumerate(block) if block.count(b) == 1]] = 0
    return TruncatedNormal(
        mean=0.3 * randn(m),
        prior=BorderedPrior(randn(m, 2), N, torch.tensor(block)),
        lower=lower,
        upper=torch.where(lower.isfinite(), INF, 0.4 - far).double(),
        noise=0.3 + torch.rand(m, dtype=double, generator=generator),
    )


def within(distribution: TruncatedNormal) -> torch.Tensor:
    """The covariance of rows given what all share."""
    prior = distribution.prior
    same = prior.block.unsqueeze(-1) == prior.block
    return prior.block_root @ prior.block_root.mT * same + distribution.noise.diag()


def log_probability(distribution: TruncatedNormal, z: torch.Tensor) -> float:
    """Of the bounds given the shared coordinates: by scipy's integrals of pairs, and over the shared variable."""
    mean, covariance = distribution.mean + distribution.prior.root @ z, within(distribution)
    total = 0.0
    for b in distribution.prior.block.unique():
        which = (distribution.prior.block == b).nonzero().squeeze(-1)
        sign = torch.where(distribution.lower[which].isfinite(), -1.0, 1.0).to(mean)  # to upper bounds
        bound = torch.where(sign < 0, distribution.lower[which], distribution.upper[which])
        S, N = sign.unsqueeze(-1) * covariance[which][:, which] * sign, distribution.prior.block_root[which]
        room, scale = (sign * (bound - mean[which])).numpy(), distribution.noise[which].sqrt().numpy()
        if N.shape[-1] > 1:
            p = multivariate_normal.cdf(room, np.zeros(len(room)), S.numpy(), maxpts=10**7, abseps=1e-9, releps=1e-9)
        else:
            slope = (sign * N[:, 0]).numpy()
            p = quad(lambda x: norm.pdf(x) * norm.cdf((room - slope * x) / scale).prod(), -12, 12, epsabs=0)[0]  # noqa: B023
        total += float(np.log(p))
    return total


@pytest.mark.parametrize(
    ("block", "columns", "far"),
    [([0, 0, 0, 1, 1, 2, 3, 3, 3], 1, 0.0), ([0, 0, 1, 1, 2], 2, 0.0), ([0, 0, 0, 1, 1, 1], 1, 4.0)],
)
def test_weights_of_proposals_are_those_of_the_dense_distribution(block, columns, far):
    distribution = distribution_of(1, block, columns, far)
    approximation = expectation_propagation(distribution)
    sampler = SharedIndependenceSampler.of(distribution, approximation)
    z, log_weight = sampler.propose(6, torch.Generator().manual_seed(0))
    mean, root = approximation.factor.shared_coordinates
    normal = torch.distributions.MultivariateNormal
    prior, proposal = normal(torch.zeros(2, dtype=double), torch.eye(2, dtype=double)), normal(mean, root @ root.mT)
    expected = torch.tensor([log_probability(distribution, one) for one in z], dtype=double)
    expected = expected + prior.log_prob(z) - proposal.log_prob(z)
    assert torch.allclose(log_weight - log_weight[0], expected - expected[0], atol=1e-7)


def test_equal_blocks_count_as_often_as_they_are_there():
    distribution = distribution_of(2, [0, 0, 0, 1, 1])
    index = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2])
    prior = distribution.prior
    merged = TruncatedNormal(
        mean=distribution.mean[index],
        prior=BorderedPrior(
            prior.root[index], prior.block_root[index], torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
        ),
        lower=distribution.lower[index],
        upper=distribution.upper[index],
        noise=distribution.noise[index],
    )
    several = expectation_propagation(merged)
    z, log_weight = SharedIndependenceSampler.of(merged, several).propose(5, torch.Generator().manual_seed(0))
    mean, root = several.factor.shared_coordinates
    normal = torch.distributions.MultivariateNormal(mean, root @ root.mT)
    expected = torch.tensor([log_probability(merged, one) for one in z], dtype=double)
    expected = expected - 0.5 * z.square().sum(-1) - normal.log_prob(z)
    assert torch.allclose(log_weight - log_weight[0], expected - expected[0], atol=1e-7)


@pytest.mark.parametrize("far", [0.0, 2.5])
def test_rows_given_shared_coordinates_have_the_moments_of_the_dense_distribution(far):
    distribution = distribution_of(3, [0, 0, 0, 1, 1, 2], far=far)
    sampler = SharedIndependenceSampler.of(distribution, expectation_propagation(distribution))
    generator = torch.Generator().manual_seed(1)
    z = torch.tensor([0.4, -0.3], dtype=double)
    rows = sampler.rows(z.expand(40000, 2), generator)
    assert bool(((rows > distribution.lower) & (rows <= distribution.upper)).all())
    # importance sampling: block by block, one variable after another
    L = torch.linalg.cholesky(within(distribution))
    mean = distribution.mean + distribution.prior.root @ z
    normal = torch.zeros(2**17, len(mean), dtype=double)
    weight = torch.ones(2**17, dtype=double)
    level = torch.quasirandom.SobolEngine(len(mean), scramble=True, seed=0).draw(2**17, dtype=double)
    for i in range(len(mean)):
        ahead = mean[i] + normal @ L[i]
        low, high = (torch.special.ndtr((b - ahead) / L[i, i]) for b in (distribution.lower[i], distribution.upper[i]))
        weight = weight * (high - low)
        normal[:, i] = torch.special.ndtri((low + level[:, i] * (high - low)).clamp(1e-15, 1 - 1e-15))
    u = mean + normal @ L.mT
    for power in (1, 2):
        expected = (weight.unsqueeze(-1) * u.pow(power)).sum(0) / weight.sum()
        error = rows.pow(power).std(0) / len(rows) ** 0.5
        assert ((rows.pow(power).mean(0) - expected).abs() <= 4 * error + 1e-3 * expected.abs()).all()
    product = (weight * u[:, 0] * u[:, 1]).sum() / weight.sum()  # which the shared variable makes
    error = (rows[:, 0] * rows[:, 1]).std() / len(rows) ** 0.5
    assert abs(float((rows[:, 0] * rows[:, 1]).mean() - product)) <= 4 * float(error) + 1e-3 * abs(float(product))


def test_one_factor_is_the_covariance_of_blocks():
    distribution = distribution_of(4, [0, 0, 0, 1, 1, 2, 3], columns=1)
    loading, own = distribution.prior.one_factor(distribution.noise)
    same = distribution.prior.block.unsqueeze(-1) == distribution.prior.block
    assert torch.allclose(torch.outer(loading, loading) * same + own.diag(), within(distribution), atol=1e-12)
    assert bool((own > 0).all())
    opposite = BorderedPrior(
        torch.ones(2, 1, dtype=double), torch.tensor([[1.0, 0.5], [-1.0, 0.2]]).double(), torch.zeros(2).long()
    )
    loading, own = opposite.one_factor(torch.ones(2, dtype=double))
    covariance = opposite.block_root @ opposite.block_root.mT + torch.eye(2)
    assert torch.allclose(torch.outer(loading, loading) + own.diag(), covariance, atol=1e-12)


def test_blocks_without_that_form_are_left_to_others():
    ranking = distribution_of(5, [0, 0, 0])  # neighbours of a ranking share noise with opposite signs
    ranking.prior.block_root = torch.tensor([[-1.0, 0.0], [1.0, -1.0], [0.0, 1.0]]).double()
    assert SharedIndependenceSampler.of(ranking, expectation_propagation(ranking)) is None
    many = distribution_of(5, [0, 0, 0, 0], columns=3)
    assert SharedIndependenceSampler.of(many, expectation_propagation(many)) is None


def choices(m: int, num_points: int, seed: int = 0) -> tuple[torch.Tensor, Choice]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(num_points, 2, dtype=double, generator=generator)
    shown = torch.rand(m, num_points, generator=generator).topk(3, dim=-1).indices
    said = 2 * torch.sin(5 * X).sum(-1)[shown] + torch.randn(m, 3, dtype=double, generator=generator)
    return X, Choice(shown.gather(-1, said.argsort(-1, descending=True)))


@pytest.mark.parametrize("inducing", [None, 5])
def test_posterior_of_choices_is_that_of_reflections(inducing):
    X, observation = choices(60, 7)
    found = []
    for sampler in ("independence", "reflective"):
        model = SkewGP(X, observation, inducing_points=inducing, draw_settings=DrawSettings(4096, sampler=sampler))
        model.covar_module.outputscale = 5.0
        posterior = model.posterior(X)
        found.append((posterior.mean.detach(), posterior.variance.detach(), posterior.skewness.detach()))
        assert model.draws.sampler == sampler
        assert model.draws.latent is None or sampler == "reflective"
    for a, b, tolerance in zip(*found, (0.05, 0.05, 0.1), strict=True):
        scale = found[1][1].sqrt() if tolerance == 0.05 else torch.ones_like(a)
        assert ((a - b).abs() <= tolerance * scale).all()


@torch.no_grad()
def test_many_choices_over_few_points_are_drawn_like_this():
    X, observation = choices(3000, 6)
    model = SkewGP(X, observation)
    model.covar_module.outputscale = 2.0
    rows = model.row_model(model.forward(X)).truncated_normal
    assert choose_sampler(rows) == "independence"
    draws = draw(rows, DrawSettings(256))
    assert draws.sampler == "independence"
    assert float(draws.effective_size.min()) > 128

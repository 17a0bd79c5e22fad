"""Modes and nodes of the parameters of a transformed process."""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from torch.distributions import MultivariateNormal
from transformed_cases import DOUBLE, TEST_X, data, model

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.transformed.nodes import (
    Mode,
    Nodes,
    Proposal,
    ProposalMixture,
    find_modes,
    prior_proposal,
    sobol_nodes,
    widened,
)
from botorch_skewgp.transformed.regression import effective_number, keep_largest

LOG_TOTAL = 3.0  # of the integral over the two hills
HILLS = [
    (0.7, MultivariateNormal(torch.tensor([2.0, 0.0], dtype=DOUBLE), 0.04 * torch.eye(2, dtype=DOUBLE))),
    (0.3, MultivariateNormal(torch.tensor([-2.0, 1.0], dtype=DOUBLE), torch.diag(torch.tensor([0.25, 0.09])).double())),
]


def two_hills(u):
    return LOG_TOTAL + torch.stack([math.log(share) + law.log_prob(u) for share, law in HILLS]).logsumexp(0)


def test_both_modes_are_found():
    modes = find_modes(two_hills, torch.zeros(2, dtype=DOUBLE), num_restarts=4, seed=0)
    assert len(modes) == 2
    for mode, (share, law) in zip(modes, HILLS, strict=True):
        torch.testing.assert_close(mode.center, law.mean, rtol=0, atol=1e-3)
        torch.testing.assert_close(mode.root @ mode.root.mT, law.covariance_matrix, rtol=1e-3, atol=1e-6)
        assert mode.log_mass == pytest.approx(LOG_TOTAL + math.log(share), abs=1e-2)


WIDE = Proposal(torch.zeros(2, dtype=DOUBLE), 3 * torch.eye(2, dtype=DOUBLE))


@pytest.mark.parametrize(("num_restarts", "num_nodes"), [(4, 128), (1, 512)])
def test_nodes_integrate_two_hills_also_if_one_mode_is_known(num_restarts, num_nodes):
    start = torch.tensor([2.0, 0.0], dtype=DOUBLE) if num_restarts == 1 else torch.zeros(2, dtype=DOUBLE)
    modes = find_modes(two_hills, start, num_restarts=num_restarts, seed=0)
    assert len(modes) == min(num_restarts, 2)
    found = []
    for seed in range(8):
        nodes = sobol_nodes(two_hills, modes, WIDE, num_nodes, 32.0, seed=50 * seed)
        assert len(nodes.u) == num_nodes or num_restarts == 1
        log_weight = nodes.log_weight + two_hills(nodes.u)
        weight = torch.softmax(log_weight, dim=0)
        share, mean = weight[nodes.u[:, 0] > 0].sum(), weight @ nodes.u[:, 1]
        found.append(torch.stack([log_weight.logsumexp(0).exp(), share, mean]))
    found, exact = torch.stack(found), torch.tensor([math.exp(LOG_TOTAL), 0.7, 0.3], dtype=DOUBLE)
    assert ((found.mean(0) - exact).abs() < 4 * found.std(0) / math.sqrt(8) + 1e-3).all()
    limit = 0.1 * exact + 0.01 if num_restarts > 1 else torch.tensor([math.inf, 0.1, math.inf])
    assert (found.std(0) < limit).all()


def test_rounds_find_the_shape_that_a_mode_does_not_tell():
    # the Gaussian at the mode is far too narrow and its center is off: nodes move until enough of them count
    narrow = Mode(torch.tensor([1.0, -1.0], dtype=DOUBLE), 0.1 * torch.eye(2, dtype=DOUBLE), 0.0)
    law = MultivariateNormal(torch.zeros(2, dtype=DOUBLE), torch.tensor([[1.0, 0.6], [0.6, 1.0]], dtype=DOUBLE))
    nodes = sobol_nodes(law.log_prob, [narrow], WIDE, 128, 60.0, seed=0)
    log_weight = nodes.log_weight + law.log_prob(nodes.u)
    assert len(nodes.u) >= 128
    assert effective_number(torch.softmax(log_weight, 0)) >= 32  # a quarter of the nodes at most is asked for
    assert log_weight.logsumexp(0).item() == pytest.approx(0.0, abs=0.15)
    correlated = Proposal(narrow.center, torch.tensor([[1.0, 0.0], [0.8, 0.6]], dtype=DOUBLE)).nodes(4096, seed=0)
    assert torch.corrcoef(correlated.mT)[0, 1].item() == pytest.approx(0.8, abs=0.03)


def test_a_mode_of_no_weight_gets_nodes_of_the_wide_proposal_only():
    modes = [Mode(law.mean, torch.linalg.cholesky(law.covariance_matrix), 0.0) for _, law in HILLS]
    wide = Proposal(modes[0].center, 0.1 * torch.eye(2, dtype=DOUBLE))
    nodes = sobol_nodes(HILLS[0][1].log_prob, [modes[0], modes[1]._replace(log_density=-20.0)], wide, 64, 8.0, seed=0)
    assert (nodes.u[:, 0] > 0).double().mean() > 0.98
    both = sobol_nodes(HILLS[0][1].log_prob, modes, wide, 64, 8.0, seed=0)
    assert (both.u[:, 0] < 0).sum() > 5  # of the first round


def test_several_targets_share_nodes():
    modes = find_modes(two_hills, torch.zeros(2, dtype=DOUBLE), num_restarts=4, seed=0)[:1]
    others = [MultivariateNormal(law.mean + 1.0, 0.5 * torch.eye(2, dtype=DOUBLE)) for _, law in HILLS]

    def targets(u):
        return torch.stack([law.log_prob(u) for law in others], dim=-1)

    log_totals = []
    for seed in range(8):
        nodes = sobol_nodes(targets, modes, WIDE, 256, 32.0, seed=50 * seed)
        log_totals.append((nodes.log_weight.unsqueeze(-1) + targets(nodes.u)).logsumexp(0))
        weights = torch.softmax(nodes.log_weight.unsqueeze(-1) + targets(nodes.u), dim=0)
        assert (1 / weights.square().sum(0) >= 32).all()
    log_totals = torch.stack(log_totals)
    assert (log_totals.mean(0).abs() < 4 * log_totals.std(0) / math.sqrt(8)).all()


def test_axes_are_as_long_as_the_density_is_wide():
    # flat above and normal below: from the mode the density falls by two at two standard deviations below only
    def one_sided(u):
        return -0.5 * (u / torch.tensor([0.5, 2.0], dtype=DOUBLE)).clamp(max=0.0).square().sum(-1) - 1e-3 * u[:, 0]

    mode = Mode(torch.zeros(2, dtype=DOUBLE), torch.tensor([[0.4, 0.0], [0.0, 1.0]], dtype=DOUBLE), 0.0)
    wide = widened(one_sided, mode)
    assert wide.root[1, 0] == 0
    assert (wide.root.diagonal() >= mode.root.diagonal() * 4.9).all()  # the side on which it hardly falls
    # of a normal density its own standard deviations, unless Laplace's are larger
    law = MultivariateNormal(mode.center, torch.diag(torch.tensor([0.64, 0.25], dtype=DOUBLE)))
    found = widened(law.log_prob, mode._replace(log_density=float(law.log_prob(mode.center))))
    torch.testing.assert_close(found.root.diagonal(), torch.tensor([0.8, 1.0], dtype=DOUBLE), rtol=1e-9, atol=0)
    # zero density counts as fallen
    cut = widened(lambda u: torch.where(u.abs().amax(-1) < 1.2, 0.0, -math.inf), mode._replace(log_density=0.0))
    assert (cut.root.diagonal() <= mode.root.diagonal() * 2).all()


@pytest.mark.parametrize("start", [0.0, 1.7])
def test_the_wide_proposal_is_the_prior_wherever_the_search_starts(start):
    center, spread = torch.tensor([0.3, -4.0, 0.0], dtype=DOUBLE), torch.tensor([2.0, 1.5, 0.5], dtype=DOUBLE)

    def log_prior(u):  # the last one is flat
        return -0.5 * ((u - center) / spread).square()[:, :2].sum(-1)

    wide = prior_proposal(log_prior, torch.full((3,), start, dtype=DOUBLE))
    torch.testing.assert_close(wide.center[:2], center[:2], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(wide.root.diagonal()[:2], spread[:2], rtol=1e-6, atol=0)
    assert (wide.center[2], wide.root[2, 2]) == (start, 3.0)


def test_probabilities_that_may_be_off_are_warned_of():
    X, Y = data(n=7)
    few = model("L-SA", X, Y, num_nodes=16, least_effective=32.0)
    with pytest.warns(QuadratureWarning, match=r"Probabilities of predictions may be off \(model\.probability_error\)"):
        few.posterior(TEST_X)
    assert few.probability_error > 0.02
    assert model("L-SA", X, Y, quadrature="mode").probability_error == 0


def test_the_estimated_error_is_that_of_probabilities():
    # over seeds: the spread of a cdf at a fixed value, against the estimates
    X, Y = data(n=7, d=1)
    seeds = [model("Box-Cox", X, Y, num_nodes=128, num_restarts=2, seed=seed) for seed in range(6)]
    probes = torch.cat([X, 0.5 * (X + X.roll(1, 0))]).unsqueeze(-2)
    values = seeds[0].posterior(probes).quantile(0.5)
    levels = torch.stack([each.posterior(probes).cdf(values).squeeze() for each in seeds])
    estimates = torch.tensor([each.probability_error for each in seeds])
    assert 0.1 * estimates.mean() < levels.std(0).max() < 1.3 * estimates.mean()


def test_nodes_of_fixed_kernels_have_an_estimated_error():
    # all nodes share one kernel, and are as many draws as they are
    X, Y = data(n=7)
    kernel, likelihood = RBFKernel(ard_num_dims=2), GaussianLikelihood()
    for parameter in (*kernel.parameters(), *likelihood.parameters()):
        parameter.requires_grad_(False)
    few = model("sinh-arcsinh", X, Y, covar_module=kernel, likelihood=likelihood)
    assert few.parameter_names() == ["warping.raw_skewness", "warping.raw_tail_weight"]
    assert few.weighted_nodes.regression.root.shape == (1, 7, 7)
    assert few.probability_error > 0.005
    known = model("identity", X, Y, covar_module=kernel, likelihood=likelihood)  # without anything to integrate over
    assert (known.parameter_names(), len(known.weighted_nodes.u)) == ([], 1)


def test_more_nodes_are_effective_where_they_are_asked_for():
    few, more = (model("L-SA", num_nodes=32, least_effective=least) for least in (0.0, 7.9))
    with pytest.warns(QuadratureWarning, match="may be off"):
        more.posterior(TEST_X)
    assert len(more._nodes.u) > len(few._make_nodes().u)
    assert more.effective_number_of_nodes >= 7.9 > few.effective_number_of_nodes


@pytest.mark.parametrize(("name", "lowest", "highest"), [("identity", -12.0, 2.0), ("Box-Cox", -8.0, 4.0)])
def test_nodes_agree_with_a_dense_grid_over_all_parameters(name, lowest, highest):
    # of the kernel and the noise, where steps have two modes: short lengthscales, or long ones with more noise; and of
    # the kernel and the warping
    X = torch.linspace(0, 1, 31, dtype=DOUBLE).unsqueeze(-1)
    noise = 0.05 * torch.randn(X.shape, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    Y, likelihood = torch.sin(2 * math.pi * X - math.pi).round() + noise, None
    if name == "Box-Cox":
        Y, likelihood = Y.exp(), GaussianLikelihood().requires_grad_(False)
        likelihood.noise = 0.05
    sobol, dense = (model(name, X, Y, likelihood=likelihood, num_nodes=256, num_restarts=4) for _ in range(2))
    u = torch.cartesian_prod(*(torch.linspace(*ends, 60, dtype=DOUBLE) for ends in ((-7.0, 3.0), (lowest, highest))))
    cell = math.log(10 * (highest - lowest) / 59**2)
    dense.use_nodes(Nodes(u, torch.full_like(u[:, 0], cell)))
    assert sobol.log_evidence == pytest.approx(dense.log_evidence, abs=0.1)
    quantiles = dense.posterior(X[::5]).quantile(torch.tensor([0.1, 0.5, 0.9]))
    error = sobol.posterior(X[::5]).cdf(quantiles).squeeze(-1) - torch.tensor([[0.1], [0.5], [0.9]])
    assert error.abs().max() < 0.02
    nodes = [m.weighted_nodes for m in (sobol, dense)]
    share, exact = (float(each.probabilities[each.u[:, 0] < -2].sum()) for each in nodes)
    assert share == pytest.approx(exact, abs=0.02)
    assert name == "Box-Cox" or exact > 0.03


# Proposals, and which nodes are kept


@pytest.mark.parametrize("num_nodes", [1, 4, 100])
def test_every_proposal_of_a_mixture_has_nodes_and_the_wide_one_stays(num_nodes):
    wide = Proposal(torch.zeros(2, dtype=DOUBLE), 5 * torch.eye(2, dtype=DOUBLE))
    near = [Proposal(torch.full((2,), float(k), dtype=DOUBLE), torch.eye(2, dtype=DOUBLE)) for k in (1, 2, 3)]
    mixture = ProposalMixture.of(near, torch.tensor([1.0, 1e-6, 0.0], dtype=DOUBLE), wide, num_nodes)
    assert min(mixture.counts) >= 1
    assert num_nodes <= sum(mixture.counts) <= num_nodes + 3
    if num_nodes == 100:
        assert mixture.counts[-1] == 15
    u = mixture.nodes(seed=0)
    adapted = mixture.adapted(u, torch.softmax(-u.square().sum(-1), 0))
    assert adapted.components[-1] is wide
    far = mixture.adapted(u, torch.nn.functional.one_hot(u.norm(dim=-1).argmax(), len(u)).to(u))
    assert len(far.components) >= 2  # also where the wide proposal has all the weight


def test_sparsification_leaves_out_no_more_than_the_tolerance(generator):
    weights = torch.rand(300, generator=generator, dtype=DOUBLE).pow(8)
    weights = weights / weights.sum()
    for tolerance in (0.3, 0.05, 1e-3):
        kept = keep_largest(weights, tolerance)
        assert weights[kept].sum() >= 1 - tolerance
        assert weights[kept].sum() - weights[kept].min() < 1 - tolerance  # no node more than needed
    assert keep_largest(torch.tensor([0.5, 0.4, 0.9, 1e-9]), 0.01).tolist() == [0, 1, 2]
    assert keep_largest(torch.tensor([0.5, 0.5]), 0.0).tolist() == [0, 1]
    # nodes of no weight
    assert keep_largest(torch.tensor([0.5, 0.0, 0.5, 0.0], dtype=DOUBLE), 0.0).tolist() == [0, 2]
    assert keep_largest(torch.tensor([0.0, 1.0, 1.5], dtype=DOUBLE), 0.0).tolist() == [1, 2]
    # a sum of rounded shares may fall short of one
    weights = torch.cat([torch.full((999,), 1 / 999, dtype=DOUBLE), torch.zeros(5, dtype=DOUBLE)])
    assert effective_number(weights) == pytest.approx(999)
    assert len(keep_largest(weights, 0.0)) == 999
    assert len(keep_largest(torch.tensor([1.0, 1e-300], dtype=DOUBLE), 0.0)) == 2

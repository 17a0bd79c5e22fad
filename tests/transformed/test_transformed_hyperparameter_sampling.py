"""The quadrature of a transformed process against Metropolis runs over all parameters, and its calibration."""

import math

import pytest
import torch
from scipy import stats
from transformed_cases import DOUBLE, WARPINGS, data, model

from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.transformed.nodes import Nodes

TEST_X = torch.tensor([[0.2, 0.3], [0.9, 0.1], [0.5, 0.5]], dtype=DOUBLE)
LEVELS = torch.tensor([0.1, 0.5, 0.9], dtype=DOUBLE)
CHAINS, BURN_IN, STEPS, THIN = 64, 200, 600, 20


@torch.no_grad()
def metropolis(transformed, generator):
    """Random walks in all coordinates, many at a time, from the nodes of the quadrature; `CHAINS x draws x D`."""
    fitted = transformed.weighted_nodes
    start = torch.multinomial(fitted.probabilities, CHAINS, replacement=True, generator=generator)
    u = fitted.u[start]
    center = fitted.probabilities @ fitted.u
    spread = (fitted.u - center).mT @ (fitted.probabilities.unsqueeze(-1) * (fitted.u - center))
    root = torch.linalg.cholesky(spread) * 2.0 / u.shape[-1] ** 0.5
    value, kept = transformed.log_posterior(u), []
    for step in range(BURN_IN + STEPS):
        new = u + torch.randn(u.shape, generator=generator, dtype=DOUBLE) @ root.mT
        proposed = transformed.log_posterior(new)
        accept = torch.rand(CHAINS, generator=generator, dtype=DOUBLE).log() < proposed - value
        u, value = torch.where(accept.unsqueeze(-1), new, u), torch.where(accept, proposed, value)
        if step >= BURN_IN and step % THIN == 0:
            kept.append(u)
    return torch.stack(kept, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sinh-arcsinh", "Box-Cox"])
def test_quantiles_agree_with_a_metropolis_run(name, generator):
    X, Y = data(n=10)
    ours = []
    for seed in range(6):
        transformed = model(name, X, Y, num_nodes=256, least_effective=0.0, tolerance=0.0, seed=seed)
        ours.append(transformed.posterior(TEST_X).quantile(LEVELS))
    chains, theirs = metropolis(transformed, generator), []
    for part in chains.split(CHAINS // 8):  # groups of chains, for an error of what is found from them
        u = part.flatten(0, 1)
        # all draws weigh the same: the quadrature weight undoes the posterior density
        transformed.use_nodes(Nodes(u, -transformed.log_posterior(u).detach(), torch.ones(len(u), dtype=DOUBLE)))
        theirs.append(transformed.posterior(TEST_X).quantile(LEVELS))
    ours, theirs = torch.stack(ours).squeeze(-1), torch.stack(theirs).squeeze(-1)
    error = (ours.var(0) / len(ours) + theirs.var(0) / len(theirs)).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() < 4 * error).all()
    assert (error < 0.1 * theirs.mean(0).diff(dim=0).sum(0)).all()  # so that the comparison says something


@torch.no_grad()
def level_of_a_draw(name, generator, num_nodes):
    """The cdf that data from the prior give to one more outcome; uniform if predictions are what they say.

    Scale and mean of the process, whose priors are improper, are 1 and 0: predictions follow affine maps.
    """
    X = torch.rand(13, 1, generator=generator, dtype=DOUBLE)
    prior = BayesianTransformedGP(X, X, warping=WARPINGS[name](), standardize=False)
    for module in (prior.covar_module, prior.likelihood, prior.warping):
        for name_of_prior, owner, law, _, setter in module.named_priors():
            constraint = owner.constraint_for_parameter_name(
                "raw_" + name_of_prior.split(".")[-1].removesuffix("_prior")
            )
            setter(owner, draw(law, -math.inf if constraint is None else float(constraint.lower_bound), generator))
    K = prior.covar_module(X).to_dense() + prior.likelihood.noise * torch.eye(13, dtype=DOUBLE)
    z = torch.linalg.cholesky(K) @ torch.randn(13, generator=generator, dtype=DOUBLE)
    y = prior.warping.inverse(z).unsqueeze(-1)
    if not bool(y.isfinite().all()) or bool(y[:-1].amax() == y[:-1].amin()):
        return float("nan")
    fitted = BayesianTransformedGP(
        X[:-1], y[:-1], warping=WARPINGS[name](), standardize=False, num_nodes=num_nodes, least_effective=num_nodes / 4
    )
    return float(fitted.posterior(X[-1:], observation_noise=True).cdf(y[-1].item()))


def draw(law, lower, generator):
    """A draw of a normal or log normal prior above what the parameter's constraint admits."""
    is_log = hasattr(law, "base_dist")
    normal = law.base_dist if is_log else law
    value = torch.tensor(-math.inf)
    while not bool(value > lower):
        value = (normal.loc + normal.scale * torch.randn((), generator=generator, dtype=DOUBLE)).double()
        value = value.exp() if is_log else value
    return value.reshape(1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.QuadratureWarning")  # some data leave few nodes
def test_ranks_of_data_from_the_prior_are_uniform():
    levels = torch.tensor([level_of_a_draw("sinh-arcsinh", torch.Generator().manual_seed(i), 32) for i in range(30)])
    levels = levels[~levels.isnan()]
    assert len(levels) > 25
    assert stats.kstest(levels.numpy(), "uniform").pvalue > 1e-3

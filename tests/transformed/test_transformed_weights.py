"""Weights of nodes: against an integral in another basis, and one node at a time."""

import math

import pytest
import torch
from transformed_cases import data, shared

from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.warpings import BoxCox


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_evidence_of_a_node_is_an_integral(mean):
    # of a few numbers, over coefficients and scale by brute force in the coordinates of another basis
    X, Y = data(n=5, d=1)
    transformed = BayesianTransformedGP(X, Y, warping=BoxCox(), mean=mean, standardize=False)
    log_likelihood = transformed._data.weigh(transformed.coordinates().unsqueeze(0)).log_likelihood
    z = transformed.warping(Y.squeeze(-1)).detach()
    K = transformed.covar_module(X).to_dense().detach() + transformed.likelihood.noise.detach() * torch.eye(5).to(X)
    M = torch.ones_like(X) if mean == "constant" else torch.cat([torch.ones_like(X), X], -1)
    p = M.shape[-1]
    # the marginal law of the contrasts N^T z, with N orthogonal to M: a multivariate t without location
    null = torch.linalg.svd(M.mT)[2][p:].mT
    contrast, covariance = null.mT @ z, null.mT @ K @ null
    q = contrast @ torch.linalg.solve(covariance, contrast)
    df = 5 - p
    value = math.lgamma(df / 2) - df / 2 * math.log(math.pi) - 0.5 * torch.logdet(covariance) - df / 2 * q.log()
    # and the Jacobian of the change from z to contrasts and coefficients
    value = value - 0.5 * torch.logdet(M.mT @ M) + (1 - p / 5) * transformed.warping.log_derivative(Y.squeeze(-1)).sum()
    assert log_likelihood.item() == pytest.approx(value.item(), rel=1e-9)


def test_kernels_are_shared_by_nodes():
    transformed = shared("sinh-arcsinh", tolerance=0.0)
    nodes = transformed.weighted_nodes
    assert len(nodes.u) == 4 * len(nodes.regression.root)
    # the same nodes without sharing, one at a time
    each = torch.cat([transformed._data.weigh(u.unsqueeze(0)).log_likelihood for u in nodes.u])
    torch.testing.assert_close(nodes.log_likelihood, each, rtol=1e-10, atol=1e-10)


def test_kept_nodes_keep_what_is_theirs():
    nodes = shared("sinh-arcsinh", tolerance=0.0).weighted_nodes
    some = nodes.keep(torch.tensor([1, 4, 6, 15]))
    torch.testing.assert_close(some.of_kernels[some.kernel][:, :3], some.u[:, :3])
    torch.testing.assert_close(
        some.select(some.regression.square), nodes.select(nodes.regression.square)[[1, 4, 6, 15]], rtol=0, atol=0
    )

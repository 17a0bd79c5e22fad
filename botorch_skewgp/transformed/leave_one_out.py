r"""Predictions of every outcome from all others, in closed form."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.transformed.integrated_process import IntegratedProcess
from botorch_skewgp.transformed.posterior import TransformedTPosterior
from botorch_skewgp.transformed.regression import WeightedNodes, normalised, standard_error

CANCELLING = 1e-3  # share of `q` without an outcome, below which a difference of squares loses digits


class LeaveOneOut(NamedTuple):
    r"""Predictions of every outcome from all others.

    Args:
        posterior: The laws of the noisy outcomes, a batch of shape `n` of one point each.
        log_density: Their log densities at the outcomes, `n`; the sum is the leave-one-out score of a model.
        level: Their cdfs at the outcomes, `n`; uniform if the model is right.
        effective_number: The effective numbers of nodes given all outcomes but each, `n`.
        standard_error: That of the sum of `log_density`, from the spread over nodes.
    """

    posterior: TransformedTPosterior
    log_density: Tensor
    level: Tensor
    effective_number: Tensor
    standard_error: float


def leave_one_out_laws(nodes: WeightedNodes) -> tuple[Tensor, Tensor, Tensor]:
    """Locations and scales of the warped outcomes' Student t laws, each from all others, and log weights, `n x S`.

    With `Q = K^-1 - K^-1 M A^-1 M^T K^-1`, leaving out point `i` takes `(Q z)_i^2 / Q_ii` from `q` and
    `(Q z)_i / Q_ii` from `z_i`, and multiplies the determinants by `Q_ii`.
    """
    regression = nodes.regression
    n, df = nodes.warped.shape[-1], regression.df - 1
    p = n - 1 - df
    if df < 1:
        raise UnsupportedError(f"Leaving one of {n} points out leaves none for the scale; add points.")
    projections = regression.projections()
    diagonal = projections.square().sum(-2).mT[:, nodes.kernel]  # n x S
    shrink = nodes.select(projections.mT @ regression.residual) / diagonal
    total = nodes.select(regression.square)
    square = total - shrink.square() * diagonal
    i, s = (square < CANCELLING * total).nonzero(as_tuple=True)
    residual = regression.residual.movedim(-1, -2)[nodes.kernel[s], nodes.slot[s]]
    without = residual - shrink[i, s, None] * projections[nodes.kernel[s], :, i]  # of z with its prediction for z_i
    square[i, s] = without.square().sum(-1)
    determinants = regression.log_determinants()[nodes.kernel] + diagonal.log()
    jacobian = nodes.log_slope.sum(-1) - nodes.log_slope.mT
    log_likelihood = -0.5 * determinants - 0.5 * df * square.log() + (1 - p / (n - 1)) * jacobian
    log_weight = torch.where(nodes.log_weight == -math.inf, -math.inf, nodes.log_weight - nodes.log_likelihood)
    log_weight = log_weight + log_likelihood.nan_to_num(0.0)  # of a singular covariance
    scale = (square / (diagonal * df)).sqrt()
    return nodes.warped.mT - shrink, scale, log_weight


def leave_one_out(process: IntegratedProcess, nodes: WeightedNodes) -> LeaveOneOut:
    """The predictions of all outcomes by nodes, each with the weights that it has without the outcome."""
    (location, scale, log_weight), units = leave_one_out_laws(nodes), process.units
    probabilities = normalised(log_weight, nodes.sign)
    used = (probabilities != 0).any(0).nonzero().squeeze(-1)  # others may have scales that are infinite
    probabilities = probabilities[:, used]
    posterior = TransformedTPosterior(
        location[:, used].unsqueeze(-2),
        scale[:, used].unsqueeze(-2),
        probabilities,
        nodes.regression.df - 1,
        process.warping(nodes.u[used]),
        offset=units.center,
        weight=units.scale,
    )
    y = process.y.to(nodes.u).view(-1, 1, 1)
    log_density = posterior.marginals.component_log_density(units.standardise(y)).squeeze(-2)
    share = probabilities * (log_density - log_density.amax(-1, keepdim=True)).exp()
    influence = (share / share.sum(-1, keepdim=True) - probabilities).sum(0)  # of nodes on the sum of log densities
    error = 0.0 if len(nodes.u) == 1 else float(standard_error(influence, nodes.kernel[used]))
    effective = 1 / probabilities.square().sum(-1)
    return LeaveOneOut(posterior, posterior.log_density(y).flatten(), posterior.cdf(y).flatten(), effective, error)

r"""A check of the number of inducing points, and of draws from the Gaussian approximation.

.. [Vehtari2024pareto] Vehtari et al. Pareto smoothed importance sampling. 2024.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_skewgp.checks import as_number, as_seed
from botorch_skewgp.inputs.points import check_query
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import check_skew_gp
from botorch_skewgp.truncated.diagnostics import pareto_shape
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler

NUM_PROPOSALS = 1024
MAX_POINTS = 1000  # training points at which posteriors are compared


class InducingPointsCheck(NamedTuple):
    r"""The result of `check_inducing_points`.

    Args:
        num_points: The number of inducing points of the model.
        num_compared: The number of inducing points of the model compared with.
        mean_change: The root mean square change of posterior means, in posterior standard deviations.
        most_change: The largest change of a posterior mean, in posterior standard deviations.
        sd_change: The root mean square change of the logarithm of posterior standard deviations.
        log_evidence_change: The change of the log evidence by expectation propagation, in nats.
        pareto_k: The shape of the tail of the importance weights from the Gaussian of expectation propagation to the
            posterior under the model's inducing points, [Vehtari2024pareto]_: below 0.5 it is a good approximation,
            above 0.7 it may miss mass of the posterior. Minus infinity where all observations are numbers, NaN where
            rows have no noise. The size of the tail is in `effective_share`.
        effective_share: The effective share of these weights, one at best. Near one the weights hardly differ, whatever
            their tail; below a quarter another sampler than that of proposals makes the draws.
        enough: Whether `mean_change` and `sd_change` are within the tolerance.
    """

    num_points: int
    num_compared: int
    mean_change: float
    most_change: float
    sd_change: float
    log_evidence_change: float
    pareto_k: float
    effective_share: float
    enough: bool


@torch.no_grad()
def check_inducing_points(
    model: SkewGP, X: Tensor | None = None, tolerance: float = 0.05, seed: int = 0
) -> InducingPointsCheck:
    r"""Compare a model with one that has twice as many inducing points, at the same hyperparameters.

    Both posteriors are the Gaussians of expectation propagation, so that no difference is due to draws. Errors of
    inducing points mostly fall fast with their number: the change by doubling is about the error. A model that twice as
    many points do not resolve either changes little too, but its evidence by many nats.

    Args:
        model: A model with inducing points.
        X: The points at which posteriors are compared, `q x d`; up to `MAX_POINTS` training points if `None`.
        tolerance: The admissible change of means, in standard deviations, and of log standard deviations.
        seed: The seed of the proposals.

    Raises:
        InputDataError: If the model has no inducing points, or as many as there are training points, or the tolerance
            is negative or not finite.
        UnsupportedError: If the model is a fantasy model.
    """
    check_skew_gp(model, "check_inducing_points")
    tolerance, seed = as_number(tolerance, "tolerance", least=0.0), as_seed(seed)
    if model.batch_shape:
        raise UnsupportedError("Fantasy models are checked by the model that they come from.")
    if model.inducing_points is None:
        raise InputDataError("The model has no inducing points; it is the exact model.")
    M, n = len(model.inducing_points), len(model.datapoints)
    if n <= M:
        raise InputDataError(f"There are no more than {M} training points to compare the {M} inducing points with.")
    model = deepcopy(model).eval()
    if X is None:
        X = model.datapoints[torch.linspace(0, n - 1, min(n, MAX_POINTS), dtype=torch.float64).round().long()]
    X = check_query(X, model.datapoints)
    few, evidence, k, share = _approximate(model, X, seed)
    model.choose_inducing_points(min(2 * M, n))
    many, other_evidence, _, _ = _approximate(model, X, None)
    sd = many.variance.sqrt()
    change = (many.mean - few.mean).abs() / sd
    mean_change, sd_change = (
        float(values.square().mean().sqrt()) for values in (change, 0.5 * (many.variance / few.variance).log())
    )
    return InducingPointsCheck(
        num_points=M,
        num_compared=len(model.inducing_points),  # type: ignore[arg-type]
        mean_change=mean_change,
        most_change=float(change.max()),
        sd_change=sd_change,
        log_evidence_change=other_evidence - evidence,
        pareto_k=k,
        effective_share=share,
        enough=max(mean_change, sd_change) <= tolerance,
    )


def _approximate(model: SkewGP, X: Tensor, seed: int | None) -> tuple[SkewGPPosterior, float, float, float]:
    """The Gaussian posterior, the log evidence, and, given a seed, shape and effective share of importance weights."""
    prior = model.forward(model.train_inputs[0])
    plan = model.row_plan(merge_equal=True)
    row_model, evidence = model.row_model(prior, plan), model.evidence(prior, plan)
    distribution = row_model.truncated_normal
    approximation = expectation_propagation(distribution)
    of_prior = expectation_propagation(evidence.prior_rows).log_normalizer if evidence.prior_rows.num_rows else 0.0
    value = float(evidence.log_evidence(approximation.log_normalizer, torch.as_tensor(of_prior)))
    posterior = model.fitted().posterior_of_mixture(X, row_model.gaussian_mixture(approximation))
    if seed is None:
        return posterior, value, torch.nan, torch.nan
    if distribution.num_rows == 0:
        return posterior, value, -torch.inf, 1.0
    if not bool((distribution.noise > 0).all()):
        return posterior, value, torch.nan, torch.nan
    generator = torch.Generator(device=X.device).manual_seed(seed)
    log_weight = HamiltonianSampler(distribution, approximation).propose(NUM_PROPOSALS, generator)[1]
    share = (2 * log_weight.logsumexp(-1) - (2 * log_weight).logsumexp(-1)).exp() / NUM_PROPOSALS
    return posterior, value, float(pareto_shape(log_weight)), float(share)

"""The default reference point of hypervolumes."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor


def plausible_reference_point(
    model: Model, X: Tensor, objective_weights: Tensor, outcome_constraints: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    """The nadir of the Pareto front of means plus standard deviations; `o` values, of objectives by `o x m` weights."""
    # Ax uses observed points alone: as long as these lie close together, no point far from them adds to the hypervolume
    with torch.no_grad():
        posterior = model.posterior(X)
        mean, variance = posterior.mean, posterior.variance  # type: ignore[attr-defined]
    if outcome_constraints is not None:
        A, b = outcome_constraints
        meets = (mean @ A.mT <= b.mT).all(-1)
        if meets.any():
            mean, variance = mean[meets], variance[meets]
    objectives = mean @ objective_weights.mT
    optimistic = objectives + (variance @ objective_weights.square().mT).sqrt()
    return infer_reference_point(objectives[is_non_dominated(optimistic)])

"""Options of a search as BoTorch's functions read them: inputs by columns, constraints in the domain's precision."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from botorch.optim import optimize_acqf
from botorch.optim.initializers import gen_batch_initial_conditions
from torch import Tensor

from botorch_skewgp.checks import as_tensor
from botorch_skewgp.inputs.columns import as_column, as_columns

LINEAR = ("inequality_constraints", "equality_constraints")
CONSTRAINTS = (*LINEAR, "nonlinear_inequality_constraints")
# arguments of optimisers that a user may give; a generator of initial conditions may have others
OPTIONS = {
    *inspect.signature(optimize_acqf).parameters,
    *inspect.signature(gen_batch_initial_conditions).parameters,
} - {"acq_function", "bounds", "q", "ic_gen_kwargs"}
# those of them where inputs have a list of values
MIXED_OPTIONS = {"num_restarts", "raw_samples", "fixed_features", "inequality_constraints", "post_processing_func"}
INFEASIBLE = "No point within the bounds satisfies the constraints; widen them."
OPTIONS_IN_UNITS_OF_INPUTS = {
    *CONSTRAINTS,
    "fixed_features",
    "gen_candidates",
    "ic_generator",
    "post_processing_func",
}


def with_columns(options: Mapping[str, Any], bounds: Tensor) -> dict[str, Any]:
    """Options whose fixed features and linear constraints name inputs by their columns; raises `InputDataError`."""
    d, options = bounds.shape[-1], dict(options)
    fixed = options.get("fixed_features")
    if fixed is not None:
        if not isinstance(fixed, Mapping):
            raise InputDataError(f"fixed_features must map inputs to their values, such as {{0: 0.5}}; got {fixed!r}.")
        columns = as_columns(fixed.keys(), d, "fixed_features")
        options["fixed_features"] = dict(zip(columns, fixed.values(), strict=True))
    for name in LINEAR:
        if options.get(name):
            options[name] = [_linear(name, constraint, bounds) for constraint in options[name]]
    return options


def _linear(name: str, constraint: Any, bounds: Tensor) -> tuple[Tensor, Tensor, float]:
    """A constraint `(i, a, b)` for `sum_i a_i x_i >= b`, or `= b`; an `i` may be a pair of a point and an input."""
    d = bounds.shape[-1]
    if not isinstance(constraint, tuple | list) or len(constraint) != 3:
        raise InputDataError(f"{name} must hold tuples (indices, coefficients, bound); got {constraint!r}.")
    indices, coefficients = as_tensor(constraint[0], name), as_tensor(constraint[1], name).to(bounds)
    if indices.ndim == 2:
        columns = [as_column(i, d, name) for i in indices[:, -1].tolist()]
        indices[:, -1] = indices.new_tensor(columns)
    else:
        indices = torch.tensor(as_columns(indices, d, name), device=bounds.device)
    if coefficients.shape != indices.shape[:1]:
        raise InputDataError(
            f"{name} must have a coefficient for each of its {len(indices)} inputs; got {constraint!r}."
        )
    return indices.to(bounds.device), coefficients, float(constraint[2])

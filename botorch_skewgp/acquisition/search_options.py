"""Arguments of a search: how it searches, and linear constraints, which name inputs by their columns."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from botorch.optim import optimize_acqf
from botorch.optim.initializers import gen_batch_initial_conditions
from torch import Tensor

from botorch_skewgp.checks import as_count, as_number, as_tensor
from botorch_skewgp.inputs.columns import as_column, as_columns

LINEAR = ("inequality_constraints", "equality_constraints")
CONSTRAINTS = (*LINEAR, "nonlinear_inequality_constraints")
INFEASIBLE = "No point within the bounds satisfies the constraints; widen them."
WHERE = {
    *CONSTRAINTS,
    "discrete_dims",
    "cat_dims",
    "fixed_features",
    "post_processing_func",
}  # options that are part of the domain
# further arguments of optimisers that a user may give; a generator of initial conditions may have others
HOW = {
    *inspect.signature(optimize_acqf).parameters,
    *inspect.signature(gen_batch_initial_conditions).parameters,
} - {"acq_function", "bounds", "q", "ic_gen_kwargs", "acq_function_sequence", "generator", *WHERE}
OWN_STARTS = {"batch_initial_conditions", "ic_generator"}  # of the user
ONLY_THE_BEST = {"sequential", "return_best_only", "return_full_tree", "return_acq_values"}  # which questions need


def split_options(
    options: Mapping[str, Any], num_restarts: int, raw_samples: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options that say where to search, and those that say how; raises `InputDataError` for others."""
    counts = {"num_restarts": num_restarts, "raw_samples": raw_samples}
    how: dict[str, Any] = {name: as_count(value, name, least=1) for name, value in counts.items()}
    how |= {name: value for name, value in options.items() if name not in WHERE}
    if "X_pending" in how:
        raise InputDataError("X_pending is not supported; give the questions that are asked already as pending.")
    for name in sorted(ONLY_THE_BEST & how.keys()):
        raise InputDataError(
            f"The points of a question are chosen together, and the best are returned; leave {name} out."
        )
    unknown = sorted(how.keys() - HOW)
    if unknown and "ic_generator" not in how:
        raise InputDataError(f"optimize_acqf has no argument {', '.join(unknown)}; leave it out.")
    return {name: value for name, value in options.items() if name in WHERE}, how


def with_columns(options: Mapping[str, Any], bounds: Tensor) -> dict[str, Any]:
    """Options whose fixed features and linear constraints name inputs by their columns; raises `InputDataError`."""
    options = dict(options)
    if options.get("fixed_features") is not None:
        options["fixed_features"] = by_column(options["fixed_features"], "fixed_features", "{0: 0.5}", bounds)
    for name in LINEAR:
        if options.get(name):
            options[name] = [_linear(name, constraint, bounds) for constraint in options[name]]
    return options


def by_column(given: Any, name: str, example: str, bounds: Tensor) -> dict[int, Any]:
    """What is given for some inputs by their columns, from 0; raises `InputDataError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputDataError(f"{name} must map inputs to their values, such as {example}; got {given!r}.")
    columns = as_columns(given.keys(), bounds.shape[-1], name)
    return dict(zip(columns, given.values(), strict=True))


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
    return indices.to(bounds.device), coefficients, as_number(constraint[2], name)

r"""Linear effects of inputs on a function: the least-squares fit to its values at some points.

With the regressors `z(x)` of a point, a constant first, effects are `argmin_b sum_i (f(x_i) - z(x_i)^T b)^2`, a linear
map of the values. Regressors follow what the model makes of its inputs: a number is one, or its logarithm where the
model takes that, and a category has an indicator of each level but the first, so that its effects are contrasts with
that level, and effects of other inputs are those at a fixed category.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.inputs.transforms import encoded_inputs, logarithmic_inputs, transformed_dim
from botorch_skewgp.kernels.items import categorical_inputs
from botorch_skewgp.models.skew_gp import SkewGP


class Effect(NamedTuple):
    """A linear effect of an input.

    Args:
        input: The number of the input.
        level: The level of a category whose effect it is; `None` for a slope.
        reference: The level that it is compared with; `None` for a slope.
        per_decade: Whether a slope is in the logarithm of the input to base 10.
    """

    input: int
    level: float | None = None
    reference: float | None = None
    per_decade: bool = False

    def label(self, name: str) -> str:
        """The effect in words, for an input of a name."""
        if self.level is not None:
            return f"{name}={self.level:g}"
        return f"log10 {name}" if self.per_decade else name

    def regressor(self, X: Tensor) -> Tensor:
        """The regressor at `n x d` points, `n`."""
        values = X[:, self.input]
        if self.level is not None:
            return (values == self.level).to(X)
        return values.log10() if self.per_decade else values


def linear_effects(model: SkewGP, X: Tensor) -> list[Effect]:
    """The effects of a model's inputs, of categories those of the levels at some points, `n x d`."""
    categories = categories_of(model)
    logarithmic = logarithmic_inputs(getattr(model, "input_transform", None), X.shape[-1])
    effects = []
    for i in range(X.shape[-1]):
        if i in categories:
            reference, *others = X[:, i].unique().tolist()
            effects += [Effect(i, level, reference) for level in others]
        else:
            effects.append(Effect(i, per_decade=i in logarithmic))
    return effects


def categories_of(model: Any) -> list[int]:
    """The inputs that a model reads as numbers of categories, by its input transform or by its kernels."""
    transform = getattr(model, "input_transform", None)
    X = model.datapoints
    encoded = encoded_inputs(transform, X.shape[-1])
    if encoded or (transform is not None and transformed_dim(transform, X) != X.shape[-1]):
        return encoded  # kernels see other columns
    kernels = [getattr(model, name, None) for name in ("covar_module", "judge_covar_module")]
    by_kernel = [categorical_inputs(kernel, X.shape[-1]) for kernel in kernels if kernel is not None]
    return sorted({i for inputs in by_kernel for i in inputs})


def design_matrix(X: Tensor, effects: Sequence[Effect]) -> Tensor:
    """A constant and the centred regressors at points, `n x (1 + p)`."""
    if not effects:
        return X.new_ones(len(X), 1)
    regressors = torch.stack([effect.regressor(X) for effect in effects], dim=-1)
    return torch.cat([X.new_ones(len(X), 1), regressors - regressors.mean(0)], dim=-1)


def identifies_effects(X: Tensor, effects: Sequence[Effect]) -> bool:
    """Whether values at points determine all effects."""
    return int(torch.linalg.matrix_rank(design_matrix(X, effects))) == 1 + len(effects)

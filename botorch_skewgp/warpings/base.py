r"""The base class of warpings: increasing maps with an inverse, a log derivative, a domain and a range.

.. [Zhu2023btg] X. Zhu, L. Huang, C. Ibrahim, E. H. Lee, D. Bindel. Bayesian transformed Gaussian processes.
   Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from gpytorch import Module
from gpytorch.constraints import Positive
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.observations.checks import check_parameter


class Warping(Module, ABC):
    r"""An increasing, differentiable map `g` from an outcome `y` to `z = g(y)` ([Zhu2023btg]_, Table 2).

    Parameters have shape `batch_shape x 1` and broadcast against the last dimension of outcomes. They are GPyTorch
    parameters with constraints, and priors for outcomes of about unit size; `register_prior` replaces one.

    Example:
        >>> warping = SinhArcsinh()
        >>> y = torch.linspace(-3, 3, 5, dtype=torch.double)
        >>> z = warping(y)
        >>> torch.testing.assert_close(warping.inverse(z), y)
    """

    redundant_if_outermost: tuple[str, ...] = ()
    """The names of parameters that an affine map after this one makes redundant."""

    def _add_parameter(self, name: str, value: float, positive: bool, prior: Prior) -> None:
        constraint = Positive() if positive else None
        initial = torch.full((1,), value, dtype=torch.float64)
        raw = initial if constraint is None else constraint.inverse_transform(initial)
        self.register_parameter(f"raw_{name}", torch.nn.Parameter(raw))
        if constraint is not None:
            self.register_constraint(f"raw_{name}", constraint)
        self.register_prior(f"{name}_prior", prior, _Getter(name), _Setter(name))

    @abstractmethod
    def forward(self, y: Tensor) -> Tensor:
        r"""The warped outcomes `g(y)`.

        Args:
            y: A `... x n` tensor of outcomes. Below the domain the result is the lower end of the range.
        """

    @abstractmethod
    def inverse(self, z: Tensor) -> Tensor:
        r"""The outcomes `y` with `g(y) = z`.

        Args:
            z: A `... x n` tensor. Outside of the range the result is the end of the domain.
        """

    @abstractmethod
    def log_derivative(self, y: Tensor) -> Tensor:
        r"""The logarithm of `g'(y)`, computed without `g'` itself, so that it does not overflow.

        Args:
            y: A `... x n` tensor of outcomes. Outside of the domain the result is minus infinity.
        """

    @property
    def domain(self) -> tuple[Tensor, Tensor]:
        """The ends of the interval of outcomes, each `batch_shape x 1` or a number."""
        return torch.tensor(-math.inf), torch.tensor(math.inf)

    @property
    def range(self) -> tuple[Tensor, Tensor]:
        """The ends of the interval of warped outcomes, each `batch_shape x 1` or a number."""
        return torch.tensor(-math.inf), torch.tensor(math.inf)

    @property
    @abstractmethod
    def tail_power(self) -> Tensor:
        r"""The power `r` with which `|y|` grows in `|z|`, in the tail where it grows faster; infinite if no power does.

        If `z` has moments of orders below `m`, then `y` has those below `m / r`.
        """

    def redundant_parameters(self) -> set[str]:
        """The names of raw parameters that have no effect if location and scale of `z` are unknown."""
        return {f"raw_{name}" for name in self.redundant_if_outermost}


def shape_parameter(name: str, description: str) -> property:
    """A property, with a docstring, for a parameter of a warping, stored as a raw parameter with a constraint."""

    def get(warping: Warping) -> Tensor:
        raw, constraint = getattr(warping, f"raw_{name}"), warping._constraints.get(f"raw_{name}_constraint")
        return raw if constraint is None else constraint.transform(raw)

    def set_value(warping: Warping, value: Tensor | float) -> None:
        raw, constraint = f"raw_{name}", warping._constraints.get(f"raw_{name}_constraint")
        check_parameter(value, name, positive=constraint is not None)
        like = getattr(warping, raw)
        value = torch.as_tensor(value, dtype=like.dtype, device=like.device)
        warping.initialize(**{raw: value if constraint is None else constraint.inverse_transform(value)})

    return property(get, set_value, doc=description)


class _Getter:
    """Reads a parameter of a module; an object, as functions defined here could not be pickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module) -> Tensor:
        return getattr(module, self.name)


class _Setter(_Getter):
    """Sets a parameter of a module."""

    def __call__(self, module: Module, value: Tensor) -> Tensor:  # type: ignore[override]
        module.initialize(**{self.name: value})
        return value


def log_cosh(x: Tensor) -> Tensor:
    """The logarithm of the hyperbolic cosine, without overflow."""
    size = x.abs()
    return size + torch.log1p(torch.exp(-2 * size)) - math.log(2.0)


def log_hypot(x: Tensor, y: Tensor) -> Tensor:
    """The logarithm of `sqrt(x^2 + y^2)`, without overflow."""
    return torch.hypot(*torch.broadcast_tensors(x, y)).log()

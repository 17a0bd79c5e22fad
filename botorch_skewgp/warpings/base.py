r"""The base class of warpings: increasing maps with an inverse, a log derivative, a domain and a range.

.. [Zhu2023btg] Zhu et al. Bayesian transformed Gaussian processes. Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from gpytorch import Module
from gpytorch.constraints import Positive
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor

from botorch_skewgp.parameters import constrained_parameter, register_named_prior, unconstrained


class shape_parameter(constrained_parameter):
    """A parameter of a warping, stored as a raw one, with its prior; positive if that is log normal."""

    def __init__(
        self, description: str, value: float, prior: type[NormalPrior | LogNormalPrior], location: float, spread: float
    ) -> None:
        super().__init__(description)
        self.value, self.prior, self.prior_arguments = value, prior, (location, spread)

    def register(self, warping: Warping) -> None:
        """Give a new warping its parameter, constraint and prior."""
        constraint = Positive() if self.prior is LogNormalPrior else None
        raw = unconstrained(constraint, torch.full((1,), self.value, dtype=torch.float64))
        warping.register_parameter(f"raw_{self.name}", torch.nn.Parameter(raw))
        if constraint is not None:
            warping.register_constraint(f"raw_{self.name}", constraint)
        register_named_prior(warping, self.name, self.prior(*self.prior_arguments))


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

    def __init__(self) -> None:
        super().__init__()
        for cls in reversed(type(self).__mro__):
            for parameter in vars(cls).values():
                if isinstance(parameter, shape_parameter):
                    parameter.register(self)

    @abstractmethod
    def forward(self, y: Tensor) -> Tensor:
        """The warped outcomes `g(y)`, `... x n`; below the domain the lower end of the range."""

    @abstractmethod
    def inverse(self, z: Tensor) -> Tensor:
        """The outcomes `y` with `g(y) = z`, `... x n`; outside of the range the end of the domain."""

    @abstractmethod
    def log_derivative(self, y: Tensor) -> Tensor:
        """The logarithm of `g'(y)`, `... x n`, which does not overflow; outside of the domain minus infinity."""

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

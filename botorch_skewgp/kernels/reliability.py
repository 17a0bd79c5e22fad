"""How much each judge follows what all share."""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.observations.checks import check_parameter

SPREAD = 1.0  # of the logarithm of a weight, around that of 1
POWER = 4  # of the mean that is 1: high, so that judges who answer at random hardly lift the weights of the others


class ReliabilityKernel(Kernel):
    r"""A judge's own part, with the weight that the shared part has in this judge's utility.

    The utility of judge `j` is `a_j f(x) + g_j(x)`: as the noise of answers is fixed at 1, a judge of weight `a_j`
    answers as one whose noise has a standard deviation of `1 / a_j` does, and at random where the weight is zero.
    Weights are learned, with a prior that is normal in their logarithm. A common factor of theirs is one of `f`; it is
    fixed by a mean fourth power of 1, so that reliable judges have a weight of about 1. The utility that all share, and
    that of a judge without answers, has a weight of 1. Give this kernel as `judge_covar_module`.

    Args:
        own: The kernel of what a judge has of his own, `g_j`.
        num_judges: The number of judges.

    Raises:
        InputDataError: If there are no judges.

    Example:
        >>> judge_covar_module = ReliabilityKernel(ItemEffectKernel(active_dims=[0]), num_judges=3)
    """

    has_lengthscale = False

    def __init__(self, own: Kernel, num_judges: int) -> None:
        super().__init__()
        if num_judges < 1:
            raise InputDataError(f"num_judges must be at least 1; got {num_judges}.")
        self.own = own
        self.register_parameter("raw_weights", torch.nn.Parameter(torch.zeros(num_judges, dtype=torch.double)))
        self.register_constraint("raw_weights", Positive(transform=torch.exp, inv_transform=torch.log))
        # as a function of the logarithm, which is what a fit moves, normal around that of 1
        self.register_prior("weights_prior", LogNormalPrior(SPREAD**2, SPREAD), _relative, _set_relative)

    @property
    def relative_weights(self) -> Tensor:
        """The weights up to a common factor, `num_judges`."""
        return self.raw_weights_constraint.transform(self.raw_weights)

    @relative_weights.setter
    def relative_weights(self, value: Any) -> None:
        check_parameter(value, "relative_weights")
        new = torch.as_tensor(value).to(self.raw_weights).expand(self.raw_weights.shape)
        self.initialize(raw_weights=self.raw_weights_constraint.inverse_transform(new))

    @property
    def weights(self) -> Tensor:
        """The weight `a_j` of what all share in the utility of each judge, `num_judges`."""
        relative = self.relative_weights
        return relative / relative.pow(POWER).mean().pow(1 / POWER)

    def of_judges(self, codes: Tensor) -> Tensor:
        """The weights at points whose last column holds these numbers: 0 for what all share, `j + 1` for judge `j`."""
        weights = torch.cat([self.weights.new_ones(1), self.weights]).to(codes)
        known = (codes >= 0) & (codes < len(weights))
        return weights[torch.where(known, codes, 0.0).long()]

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of a judge's own part at points."""
        return self.own(x1, x2, diag=True) if diag else self.own(x1, x2).to_dense()


def _relative(kernel: ReliabilityKernel) -> Tensor:
    return kernel.relative_weights


def _set_relative(kernel: ReliabilityKernel, value: Tensor) -> None:
    kernel.relative_weights = value

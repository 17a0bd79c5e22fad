"""Likelihoods of all kinds of observations with known parameters, and models of them with a known kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean

from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitAffineLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    SlopeLikelihood,
    ValidityLikelihood,
    VoteLikelihood,
)


@dataclass(frozen=True)
class Noise:
    """Noise variances, cut-points, widths and thresholds, in units of the latent function."""

    numbers: float = 0.1
    labels: float = 1.0
    grades: float = 1.0
    items: float = 1.0
    validity: float = 0.01
    classes: float = 1.0
    slopes: float = 0.0
    affine: float = 1.0
    cutpoints: tuple[float, ...] = (0.0,)
    tie_width: float = 0.5
    ties_allowed: bool = False
    strengths: tuple[float, ...] = (0.0,)
    threshold: float = 0.0
    level_gap: float = 1.0

    def times(self, factor: float) -> Noise:
        """All variances multiplied by a number."""
        variances = ("numbers", "labels", "grades", "items", "validity", "classes", "slopes", "affine")
        return replace(self, **{name: factor * getattr(self, name) for name in variances})


def likelihood_of(noise: Noise, num_labels: int = 1) -> RowLikelihood:
    """Likelihoods of all kinds but class labels; of class labels alone if there are several."""

    def tensor(*values: float) -> torch.Tensor:
        return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.float64)

    if num_labels > 1:
        return LabelPreferenceLikelihood(num_labels, noise=tensor(noise.classes))
    items, width, threshold = tensor(noise.items), tensor(noise.tie_width), tensor(noise.threshold)
    num_strengths = len(noise.strengths)
    duels = PreferenceLikelihood(items, tie_width=width, ties_allowed=noise.ties_allowed, num_strengths=num_strengths)
    if num_strengths > 1:
        duels.strength_gaps = tensor(*noise.strengths).diff()
    return MixedLikelihood(
        NumericLikelihood(noise=tensor(noise.numbers), learn_noise=False),
        ProbitLikelihood(noise=tensor(noise.labels)),
        OrdinalLikelihood(
            len(noise.cutpoints) + 1, torch.tensor(noise.cutpoints, dtype=torch.float64), noise=tensor(noise.grades)
        ),
        duels,
        VoteLikelihood(threshold=noise.threshold, level_gap=noise.level_gap, noise=items, tie_width=width),
        ValidityLikelihood(threshold=threshold, noise=tensor(noise.validity)),
        SlopeLikelihood(tensor(noise.slopes)),
        ProbitAffineLikelihood(),
    )


def rbf_kernel(outputscale: float, lengthscale: float) -> ScaleKernel:
    """A kernel with one lengthscale."""
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.initialize(outputscale=torch.tensor(outputscale, dtype=torch.float64))
    kernel.base_kernel.initialize(lengthscale=torch.tensor(lengthscale, dtype=torch.float64))
    return kernel


def constant_mean(value: float) -> ConstantMean:
    """A mean of this value."""
    mean = ConstantMean().double()
    mean.initialize(constant=torch.tensor(value, dtype=torch.float64))
    return mean

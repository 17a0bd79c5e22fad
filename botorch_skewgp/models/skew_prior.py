r"""The skew prior: a Gaussian process conditioned on the signs of its noise-free values at pseudo-points.

.. [Benavoli2020skew] Benavoli, Azzimonti, Piga. Skew Gaussian processes for classification. Machine Learning 109, 2020.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.module import Module
from torch import Tensor

from botorch_skewgp.checks import as_tensor, check_flags
from botorch_skewgp.rows import Rows


class SkewPrior(Module):
    r"""The skewness of a SkewGP prior of latent dimension `s` ([Benavoli2020skew]_, equation (14)).

    The prior is the distribution of `f` given `L_i (f(u_i) - m(u_i)) / sd(u_i) + gamma_i > 0` for `i = 1, ..., s`, with
    pseudo-points `u_i`, phases `L_i` of -1 or 1, and truncation `gamma`. In the papers' terms `Delta(x) = Omega_bar(x,
    U) L` and `Gamma = L Omega_bar(U, U) L`. With `s = 0`, or as `gamma` grows, it is the Gaussian process itself.

    Args:
        pseudo_points: An `s x d` tensor or list, in the space in which the kernel works (after any input transform).
        phases: An `s`-dim tensor of -1 and 1.
        truncation: An `s`-dim tensor or a number.
        learn_pseudo_points: Whether the pseudo-points are parameters to fit.

    Raises:
        InputDataError: If shapes disagree, a phase is neither -1 nor 1, a value is not finite, or another argument is
            of another class.

    Example:
        >>> skew_prior = SkewPrior(pseudo_points=train_X[:2], phases=[1, -1])  # high at the first, low at the second
        >>> model = SkewGP(train_X, Binary(labels), skew_prior=skew_prior)
    """

    def __init__(
        self,
        pseudo_points: Tensor | Sequence[Sequence[float]],
        phases: Tensor | Sequence[float],
        truncation: Tensor | Sequence[float] | float = 0.0,
        learn_pseudo_points: bool = False,
    ) -> None:
        super().__init__()
        check_flags(learn_pseudo_points=learn_pseudo_points)
        pseudo_points = as_tensor(pseudo_points, "pseudo_points")
        if pseudo_points.ndim != 2 or not pseudo_points.is_floating_point() or not pseudo_points.isfinite().all():
            raise InputDataError(
                f"pseudo_points must be a finite floating point s x d tensor; got shape {tuple(pseudo_points.shape)}."
            )
        s = pseudo_points.shape[0]
        phases = as_tensor(phases, "phases").to(pseudo_points)
        if phases.shape != (s,) or (phases.abs() != 1).any():
            raise InputDataError(f"phases must hold -1 or 1 for each of the {s} pseudo-points; got {phases.tolist()}.")
        truncation = as_tensor(truncation, "truncation").to(pseudo_points)
        truncation = truncation.expand(s) if truncation.ndim == 0 else truncation
        if truncation.shape != (s,) or not truncation.isfinite().all():
            raise InputDataError(f"truncation must hold a finite number for each of the {s} pseudo-points.")
        points = torch.nn.Parameter(pseudo_points.detach().clone(), requires_grad=learn_pseudo_points)
        self.register_parameter("pseudo_points", points)
        self.register_parameter("truncation", torch.nn.Parameter(truncation.clone(), requires_grad=False))
        self.register_buffer("phases", phases.clone())

    @property
    def latent_dim(self) -> int:
        """The latent dimension `s`."""
        return self.pseudo_points.shape[0]

    def rows(self, mean: Tensor, variance: Tensor, first: int) -> Rows:
        """The prior's rows: noise-free, one for each pseudo-point, whose mean and variance are given, both `s`."""
        s = self.latent_dim
        coefficient = self.phases.to(mean) / variance.sqrt()
        zeros = torch.zeros_like(mean)
        return Rows(
            index=torch.arange(first, first + s, device=mean.device).unsqueeze(-1),
            coefficient=coefficient.unsqueeze(-1),
            bias=self.truncation.to(mean) - coefficient * mean,
            lower=zeros,
            upper=torch.full_like(zeros, torch.inf),
            noise=zeros,
        )

r"""Acquisition functions for duels against a reference point, such as the best point so far.

All depend on the distribution of `f(x) - f(x_r)` and are maximised over single points `x`; the maximiser is then
compared with the reference `x_r`. `papers.dueling` has others.

.. [Ament2023logei] S. Ament, S. Daulton, D. Eriksson, M. Balandat, E. Bakshy. Unexpected improvements to expected
   improvement for Bayesian optimization. NeurIPS 2023.
.. [Astudillo2023qeubo] R. Astudillo, Z. J. Lin, E. Bakshy, P. I. Frazier. qEUBO: a decision-theoretic acquisition
   function for preferential Bayesian optimization. AISTATS 2023.
"""

from __future__ import annotations

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import Components
from botorch_skewgp.observations.checks import check_class
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel, members_of


class DuelingAcquisitionFunction(AcquisitionFunction):
    """Base class for duels against a reference point, `d`-dim or `1 x d`; an ensemble counts as a mixture."""

    X_reference: Tensor

    def __init__(self, model: Model, X_reference: Tensor) -> None:
        super().__init__(model=model)
        dim = self.members[0].dim
        check_class(X_reference, "X_reference", Tensor)
        if X_reference.ndim == 1:
            X_reference = X_reference.unsqueeze(0)
        if X_reference.shape != (1, dim):
            raise InputDataError(
                f"X_reference must be one point, of shape {dim} or 1 x {dim}; got {tuple(X_reference.shape)}."
            )
        if not X_reference.isfinite().all():
            raise InputDataError(f"X_reference must be finite; got {X_reference.tolist()}.")
        self.register_buffer("X_reference", X_reference)

    @property
    def members(self) -> list[LatentModel]:
        """The members of an ensemble, or the only model."""
        return members_of(self.model, type(self).__name__)

    def difference(self, member: LatentModel, X: Tensor, weight: Tensor | None = None) -> SkewGPPosterior:
        r"""A member's posterior of `f(x) - f(x_r)` at `batch_shape x 1 x d` points, in units of the outcome.

        `weight` is two numbers, for `weight^T (f(x), f(x_r))` instead of the difference.
        """
        posterior = member.posterior(torch.cat([X, self.X_reference.to(X).expand(X.shape)], dim=-2))
        if posterior.num_points != 2:
            raise UnsupportedError(
                f"{type(self).__name__} does not go with input transforms that turn one point into many: two points "
                f"became {posterior.num_points}."
            )
        return posterior.affine(X.new_tensor([[1.0, -1.0]]) if weight is None else weight.unsqueeze(0))

    def _components(self, X: Tensor) -> Components:
        """The components of `f(x) - f(x_r)` of all members."""
        differences = (self.difference(member, X) for member in self.members)
        return Components.of_members(
            Components(
                posterior.component_means[..., 0, :], posterior.gaussian_variance.sqrt(), posterior.log_probabilities
            )
            for posterior in differences
        )

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: every candidate duels with the reference, one at a time."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")


class DuelingLogExpectedImprovement(DuelingAcquisitionFunction):
    r"""The logarithm of `E[max(f(x) - f(x_r), 0)]` over the skewed posterior, in closed form on the mixture.

    Up to a constant and the logarithm this is qEUBO with one arm given ([Astudillo2023qeubo]_): the expected excess of
    the better of the two over the reference. The logarithm and the closed form keep its gradient alive where little is
    left to gain ([Ament2023logei]_).

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = DuelingLogExpectedImprovement(model, X_reference=best)
        >>> challenger, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return self._components(X).log_expected_improvement(X.new_zeros(()), maximize=True)

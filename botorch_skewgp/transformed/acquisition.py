r"""Improvement under the posterior of a transformed process, in closed form and without moments of the outcome."""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.checks import as_number
from botorch_skewgp.posteriors.mixture_posterior import check_one_value
from botorch_skewgp.transformed.posterior import TransformedTPosterior


class _TransformedImprovement(AnalyticAcquisitionFunction):
    """Base class of acquisition functions that compare with the best value so far."""

    _log = True
    _value: Callable[[TransformedTPosterior, Tensor], Tensor]  # of an improvement, `batch_shape x 1 x 1`
    best_f: Tensor

    def __init__(
        self,
        model: Model,
        best_f: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        """Of a `BayesianTransformedGP`, the best value so far, a finite number, and an affine posterior transform.

        If outcomes are noisy, take the posterior's median for the best value.
        """
        best_f = as_number(best_f, "best_f")
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.register_buffer("best_f", torch.tensor(best_f, dtype=torch.float64))
        self.maximize = maximize

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The logarithm at `batch_shape x 1 x d` candidates, `batch_shape`; `UnsupportedError` for other models."""
        self.to(X)
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        name = type(self).__name__
        if not isinstance(posterior, TransformedTPosterior):
            raise UnsupportedError(
                f"{name} needs a BayesianTransformedGP; got a posterior of type {type(posterior).__name__}. For a "
                f"SkewGP take {name.replace('Transformed', 'Skew')}."
            )
        check_one_value(posterior, name)
        best_f = self.best_f
        if not self.maximize:
            posterior, best_f = posterior.scalarize(X.new_tensor([-1.0])), -best_f
        return self._value(posterior, best_f).squeeze((-1, -2))


class TransformedLogExpectedImprovement(_TransformedImprovement):
    r"""The logarithm of the expected improvement under a transformed process, measured on the warped scale.

    `log sum_s p_s E[max(g_s(f) - g_s(best_f), 0)] / g_s'(best_f)`, over the nodes `s` of the warping `g`. It is in
    units of the outcome. Small improvements count as in the ordinary expected improvement, large ones by the warping.
    Without a warping it is the ordinary one. It needs no moment of the outcome.

    Example:
        >>> acq = TransformedLogExpectedImprovement(transformed, best_f=values.exp().max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=2, raw_samples=16)
    """

    _value = staticmethod(TransformedTPosterior.log_expected_gain)


class TransformedLogProbabilityOfImprovement(_TransformedImprovement):
    r"""The logarithm of the probability of improvement under a transformed process.

    It needs no moments, and has gradients where improvement is all but impossible.

    Example:
        >>> acq = TransformedLogProbabilityOfImprovement(transformed, best_f=values.exp().max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=2, raw_samples=16)
    """

    _value = staticmethod(TransformedTPosterior.log_probability_above)

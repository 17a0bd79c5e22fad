r"""Probability of improvement under any posterior that has exact tail probabilities, such as that of a transformed
process.
"""

from __future__ import annotations

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import check_one_value
from botorch_skewgp.posteriors import TransformedTPosterior


class TransformedLogProbabilityOfImprovement(AnalyticAcquisitionFunction):
    r"""The logarithm of the probability of improvement under a transformed process, in closed form.

    It needs no moments, which expected improvement does, and has gradients where improvement is all but impossible.

    Example:
        >>> acq = TransformedLogProbabilityOfImprovement(transformed, best_f=values.exp().max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=2, raw_samples=16)

    Args:
        model: A `BayesianTransformedGP`.
        best_f: The best value so far.
        posterior_transform: An affine posterior transform.
        maximize: Whether large values are good.
    """

    _log = True
    best_f: Tensor

    def __init__(
        self,
        model: Model,
        best_f: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.register_buffer("best_f", torch.as_tensor(best_f, dtype=torch.float64))
        self.maximize = maximize

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        r"""Log probability of improvement at `batch_shape x 1 x d` candidates; `batch_shape`.

        Raises:
            UnsupportedError: If the model's posterior is not that of a transformed process.
        """
        self.to(X)
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        if not isinstance(posterior, TransformedTPosterior):
            raise UnsupportedError(
                f"{type(self).__name__} needs a BayesianTransformedGP; got a posterior of type "
                f"{type(posterior).__name__}. For a SkewGP take SkewLogProbabilityOfImprovement."
            )
        check_one_value(posterior, type(self).__name__)
        if not self.maximize:
            return posterior.scalarize(X.new_tensor([-1.0])).log_probability_above(-self.best_f).squeeze((-1, -2))
        return posterior.log_probability_above(self.best_f).squeeze((-1, -2))

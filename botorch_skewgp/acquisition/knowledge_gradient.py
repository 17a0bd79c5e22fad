r"""The knowledge gradient: the expected growth of the best posterior mean by one observation, such as a duel.

.. [Frazier2009knowledge] P. Frazier, W. Powell, S. Dayanik. The knowledge-gradient policy for correlated normal
   beliefs. INFORMS Journal on Computing 21, 2009.
.. [Wu2026knowledge] K. Wu, J. R. Gardner. Knowledge gradient for preference learning. arXiv 2601.22335, 2026.
"""

from __future__ import annotations

from collections.abc import Sequence

from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.outlook import Asked, Belief, Best, Outlook
from botorch_skewgp.acquisition.questions import OutlookAcquisitionFunction
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import check_class


class SkewKnowledgeGradient(OutlookAcquisitionFunction):
    r"""The exact knowledge gradient of one observation, over a fixed set of points to recommend from.

    `sum_o P(o) max_x E[f(x) | o] - max_x E[f(x)]` over the outcomes `o` of a label, a grade, a validity or a duel,
    where `x` is one of `X_candidates` or of the points of the observation ([Frazier2009knowledge]_,
    [Wu2026knowledge]_). Never negative; differentiable where the maximisers are unique.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = SkewKnowledgeGradient(model)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models, whose average means are compared.
        kind: As for `SkewBayesianActiveLearningByDisagreement`.
        X_candidates: An `n x d` tensor of points to recommend from; the model's own points if `None`.

    Raises:
        UnsupportedError: If the model is no SkewGP, or its likelihood takes no supported kind.
        InputDataError: If the likelihood does not take observations of the wanted kind.
        BotorchTensorDimensionError: If `X_candidates` is not `n x d` with at least one point.
    """

    X_candidates: Tensor

    def __init__(
        self,
        model: Model,
        kind: type[Observation] | None = None,
        X_candidates: Tensor | None = None,
    ) -> None:
        super().__init__(model=model, kind=kind)
        first = self.members[0]
        X_candidates = first.datapoints if X_candidates is None else X_candidates
        check_class(X_candidates, "X_candidates", Tensor)
        if X_candidates.ndim != 2 or X_candidates.shape[0] == 0 or X_candidates.shape[1] != first.dim:
            raise BotorchTensorDimensionError(
                f"X_candidates must be n x {first.dim} with n of at least 1; got shape {tuple(X_candidates.shape)}."
            )
        self.register_buffer("X_candidates", X_candidates.detach())

    def _targets(self) -> Tensor:
        return self.X_candidates

    def _value_of(self, beliefs: Sequence[Belief], asks: Sequence[Asked], items: Tensor, targets: Tensor) -> Tensor:
        return Outlook(beliefs, asks, Best(targets, with_asked=True)).gain(items)

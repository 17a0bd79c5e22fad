r"""Active learning: the observation with the largest expected information about the latent function.

The information is `I(y; f) = H(y) - E[H(y | f)]`, Bayesian active learning by disagreement ([Houlsby2011bald]_), for
labels, validity, grades and duels. On the posterior's mixture the probabilities in the first entropy have closed forms;
the second is an integral, see `answer_entropy`.

.. [Houlsby2011bald] N. Houlsby, F. Huszar, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification and
   preference learning. arXiv 1112.5745, 2011.
.. [Kirsch2019batchbald] A. Kirsch, J. van Amersfoort, Y. Gal. BatchBALD: efficient and diverse batch acquisition for
   deep Bayesian active learning. NeurIPS 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.outlook import NUM_DRAWS, Asked, Belief, Function, Outlook, after
from botorch_skewgp.acquisition.questions import OutlookAcquisitionFunction
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_count, as_seed, check_class, check_parts
from botorch_skewgp.protocols import LatentModel

MAX_OUTCOMES = 64  # joint outcomes of pending observations, beyond which they are sampled
BATCH = 256  # entries of a pool evaluated at once


class SkewBayesianActiveLearningByDisagreement(OutlookAcquisitionFunction):
    r"""The expected information about the latent function from one observation of a given kind, in nats.

    A function of single points for labels and grades, of pairs for duels, which have three outcomes where ties are
    allowed. Exact given the model's draws, up to the quadrature's rounding, and smooth. With pending points it is the
    information beyond that of their unknown outcomes `y_P`, `I(y; f | y_P) = E[H(y | y_P)] - E[H(y | f)]`, so that
    choosing one after the other is greedy batch selection ([Kirsch2019batchbald]_); more than `MAX_OUTCOMES` joint
    outcomes are replaced by a sample.

    BoTorch's `PairwiseBayesianActiveLearningByDisagreement` assumes a normal posterior, and uses one item's noise for
    that of a duel.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = SkewBayesianActiveLearningByDisagreement(model)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models, for the information about the latent function
            and the hyperparameters.
        kind: The kind of the observation, with a single reading and cut-points, such as `Preference`, `Binary`,
            `Ordinal` and `Validity`; by default the first that the model's likelihood takes, comparisons before others.
        X_pending: Points whose observations are pending, `m x d`; for duels the pairs one after the other.
        seed: The seed of the sample of pending outcomes.

    Raises:
        UnsupportedError: If the model is no SkewGP, or its likelihood takes no supported kind.
        InputDataError: If the likelihood does not take observations of the wanted kind.
        BotorchTensorDimensionError: If the pending points are not `m x d`, or do not make whole pairs.
    """

    X_pending: Tensor | None  # type: ignore[assignment]

    def __init__(
        self,
        model: Model,
        kind: type[Observation] | None = None,
        X_pending: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(model=model, kind=kind)
        self.seed = as_seed(seed)
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Condition on the unknown outcomes of pending observations at `m x d` points, pairs one after the other.

        Raises:
            BotorchTensorDimensionError: If the points are not `m x d`, or do not make whole pairs.
        """
        check_parts(X_pending=(X_pending, Tensor))
        k = self.points_per_observation
        if X_pending is not None and (X_pending.ndim != 2 or X_pending.shape[0] % k):
            raise BotorchTensorDimensionError(
                f"X_pending must be m x d with {k} point(s) per observation; got shape {tuple(X_pending.shape)}."
            )
        self.X_pending = None if X_pending is None or not len(X_pending) else X_pending.detach().clone()

    def _targets(self) -> Tensor:
        first = self.members[0]
        return first.datapoints.new_zeros(0, first.dim) if self.X_pending is None else self.X_pending

    def _belief(self, member: LatentModel, X: Tensor) -> Belief:
        posterior = self._joint_posterior(member, X)
        num_draws = posterior.mixture.num_draws
        # of a Gaussian one draw is enough until outcomes are pending
        return Belief.of(
            posterior, member.outcome_scale, num_draws if self.X_pending is None else max(num_draws, NUM_DRAWS)
        )

    def _value_of(self, beliefs: Sequence[Belief], asks: Sequence[Asked], items: Tensor, targets: Tensor) -> Tensor:
        for number, item in enumerate(targets.view(-1, self.points_per_observation)):
            beliefs = after(beliefs, asks, item, self.seed + number, MAX_OUTCOMES)
        return Outlook(beliefs, asks, Function()).information(items)


def select_from_pool(acq_function: AcquisitionFunction, pool: Tensor, num: int = 1) -> tuple[Tensor, Tensor]:
    r"""Choose entries of a pool greedily, one after the other, as a batch.

    Each choice is the remaining entry of largest acquisition value, with those chosen so far as pending points. For
    information this is the greedy choice of the batch ([Kirsch2019batchbald]_), and an entry next to a chosen one has
    little left to tell.

    Example:
        >>> acq = SkewBayesianActiveLearningByDisagreement(SkewGP(train_X, Binary(labels)))
        >>> chosen, information = select_from_pool(acq, pool, num=5)
        >>> X_next = pool[chosen]

    Args:
        acq_function: The acquisition function; its pending points stay pending.
        pool: An `N x d` tensor of points, or `N x q x d` of sets of points such as pairs.
        num: The number of entries to choose; several need an acquisition function with pending points.

    Returns:
        The `num` indices of the entries chosen, in the order of choice, and their acquisition values when chosen.

    Raises:
        BotorchTensorDimensionError: If the pool has another number of dimensions.
        InputDataError: If the pool has fewer entries than wanted.
        UnsupportedError: If the acquisition function does not account for pending points, and several are wanted.
    """
    check_class(pool, "pool", Tensor)
    if pool.ndim not in (2, 3):
        raise BotorchTensorDimensionError(f"pool must be N x d or N x q x d; got shape {tuple(pool.shape)}.")
    X = pool.unsqueeze(-2) if pool.ndim == 2 else pool
    N = X.shape[0]
    num = as_count(num, "num", least=1, most=N)  # entries of the pool
    before = getattr(acq_function, "X_pending", None)
    if num > 1:
        acq_function.set_X_pending(before)  # raises where pending points are not accounted for
    left, chosen, best = torch.arange(N, device=X.device), [], []
    try:
        for _ in range(num):
            with torch.no_grad():
                values = torch.cat([acq_function(X[part]) for part in left.split(BATCH)])
            best_value, position = values.max(0)
            chosen.append(int(left[position]))
            best.append(best_value)
            left = left[left != left[position]]
            if len(chosen) < num:
                picked = X[chosen].flatten(0, 1)
                acq_function.set_X_pending(picked if before is None else torch.cat([before, picked]))
    finally:
        if num > 1:
            acq_function.set_X_pending(before)
    return torch.tensor(chosen, device=X.device), torch.stack(best)

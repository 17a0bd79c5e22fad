r"""What one more answer tells at given points: where a yes is likelier than a level, or what other answers will be.

A point belongs to the level set of a model of yes/no answers if `P(yes | f(x)) >= level`, which is `f(x) >= c` with one
number `c`. An answer informs about the membership of every point ([Letham2022lookahead]_), and about the answer that
another question would have ([BickfordSmith2023epig]_); the integrals are in `outlook`.

.. [BickfordSmith2023epig] F. Bickford Smith, A. Kirsch, S. Farquhar, Y. Gal, A. Foster, T. Rainforth. Prediction-
   oriented Bayesian active learning. AISTATS 2023.
.. [Letham2022lookahead] B. Letham, P. Guan, C. Tymms, E. Bakshy, M. Shvartsman. Look-ahead acquisition functions for
   Bernoulli level set estimation. AISTATS 2022.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.outlook import Asked, Belief, Cells, Outlook
from botorch_skewgp.acquisition.questions import OutlookAcquisitionFunction
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import check_class
from botorch_skewgp.protocols import LatentModel, members_of
from botorch_skewgp.rows import Reading
from botorch_skewgp.thresholds import PsychometricFunction, kind_of_yes


class _InformationAtPoints(OutlookAcquisitionFunction):
    """Base class: information about the cell of a reading at reference points, averaged over these."""

    X_reference: Tensor

    def __init__(self, model: Model, X_reference: Tensor, points_each: int, kind: type[Observation] | None) -> None:
        super().__init__(model, kind)
        check_class(X_reference, "X_reference", Tensor)
        shape = (self.members[0].dim,) if points_each == 1 else (points_each, self.members[0].dim)
        if X_reference.ndim != 1 + len(shape) or X_reference.shape[0] == 0 or X_reference.shape[1:] != shape:
            raise BotorchTensorDimensionError(
                f"X_reference must be n x {' x '.join(map(str, shape))} with n of at least 1; got shape "
                f"{tuple(X_reference.shape)}."
            )
        self.register_buffer("X_reference", X_reference.detach())

    @abstractmethod
    def _told(self, member: LatentModel) -> Reading:
        """The reading at reference points, in units of a member's latent function."""

    def _targets(self) -> Tensor:
        return self.X_reference.flatten(0, -2)

    def _belief(self, member: LatentModel, X: Tensor) -> Belief:
        if member.approximation != "ep":
            return Belief.of(self._joint_posterior(member, X), member.outcome_scale)
        # a Gaussian: slips can make it a mixture of random components, whose noise would count as information
        posterior = self._joint_posterior(member, X)
        return Belief(
            posterior.mean.flatten(-2).unsqueeze(-1),
            posterior.covariance_matrix,
            posterior.mean.new_ones(1, 1),
            posterior.prior_variance,
            member.outcome_scale,
        )

    def _value_of(self, beliefs: Sequence[Belief], asks: Sequence[Asked], items: Tensor, targets: Tensor) -> Tensor:
        told = Cells(targets.view(len(self.X_reference), -1), [self._told(member) for member in self.members])
        return Outlook(beliefs, asks, told).information(items)


class LevelSetInformation(_InformationAtPoints):
    r"""The mutual information of one more answer and the membership of a point in the level set, averaged over points.

    `E_z[I(y; 1(z in the level set))]` in nats over the reference points `z`: the global mutual information of
    [Letham2022lookahead]_. It is smooth, and positive where an answer changes no classification yet.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = LevelSetInformation(model, level=0.75, X_reference=pool)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP of yes/no answers with one output, or an ensemble of such models.
        level: The probability of a yes that bounds the level set.
        X_reference: An `n x d` tensor: the points to be classified.
        kind: The kind of the answers, where the model takes several with two outcomes.

    Raises:
        UnsupportedError: If the model is another, or takes no yes/no answers at single points.
        InputDataError: If the probability of a yes never is `level`.
        BotorchTensorDimensionError: If `X_reference` is not `n x d` with at least one point.
    """

    def __init__(self, model: Model, level: float, X_reference: Tensor, kind: type[Observation] | None = None) -> None:
        members = members_of(model, type(self).__name__)
        kind = kind_of_yes(members[0], kind)
        for member in members:
            PsychometricFunction.of(member, kind).latent_level(level)
        super().__init__(model, X_reference, 1, kind)
        self.level = level

    def _told(self, member: LatentModel) -> Reading:
        level = PsychometricFunction.of(member, self.kind).latent_level(self.level).reshape(1)
        return Reading.at_point(level, level.new_zeros(1))


class PredictiveInformation(_InformationAtPoints):
    r"""The mutual information of one more answer and the answer to another question, averaged over questions.

    `E_z[I(y_x; y_z)]` in nats over the reference points `z`, the expected predictive information gain
    ([BickfordSmith2023epig]_): an answer counts for what it says of predictions where they are wanted, not of the
    function wherever it is unknown, as on the faces of a domain.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = PredictiveInformation(model, X_reference=pool)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_reference: The points where predictions are wanted, an `n x d` tensor; of duels the pairs, `n x 2 x d`.
        kind: As for `SkewBayesianActiveLearningByDisagreement`, of the answer and of predictions.

    Raises:
        UnsupportedError: If the model is another, or its likelihood takes no supported kind.
        InputDataError: If the likelihood does not take observations of the wanted kind.
        BotorchTensorDimensionError: If `X_reference` has another shape.
    """

    def __init__(self, model: Model, X_reference: Tensor, kind: type[Observation] | None = None) -> None:
        kind = self.kind_of(model, kind)
        super().__init__(model, X_reference, kind.points_per_observation, kind)

    def _told(self, member: LatentModel) -> Reading:
        return self.reading(member, self.X_reference)

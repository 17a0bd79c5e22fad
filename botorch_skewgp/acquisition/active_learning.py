r"""Active learning: what one more answer tells about the function, a level set, or answers, in nats of `information`.

.. [BickfordSmith2023epig] Bickford Smith et al. Prediction-oriented Bayesian active learning. AISTATS 2023.
.. [Houlsby2011bald] Houlsby et al. arXiv 1112.5745, 2011.
.. [Kirsch2019batchbald] Kirsch, van Amersfoort, Gal. BatchBALD. NeurIPS 2019.
.. [Letham2022lookahead] Letham et al. Look-ahead acquisition functions for Bernoulli level set estimation. 2022.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.information import information_about_cells, information_about_function
from botorch_skewgp.acquisition.look_ahead import NUM_DRAWS, AnswerModel, LatentMixture, given_pending, joint_posterior
from botorch_skewgp.checks import as_count, as_seed, check_class, check_parts
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel, members_of
from botorch_skewgp.rows import Reading
from botorch_skewgp.thresholds import PsychometricFunction, kind_of_yes

MAX_OUTCOMES = 64  # joint outcomes of pending observations, beyond which they are sampled
BATCH = 256  # entries of a pool evaluated at once
NUM_TOGETHER = 256  # candidates, or as many as there are other points, in one joint posterior


class _Information(AcquisitionFunction):
    """Base class of what a new observation tells, by joint posteriors with further points."""

    kind: type[Observation]

    def __init__(self, model: Model, kind: type[Observation] | None = None) -> None:
        super().__init__(model=model)
        self.kind = self.kind_of(model, kind)

    @classmethod
    def kind_of(cls, model: Model, kind: type[Observation] | None) -> type[Observation]:
        """The kind of the observation."""
        first = members_of(model, cls.__name__)[0]
        taken = first.likelihood.kinds_of_outcomes
        if kind is None:
            if not taken:
                raise UnsupportedError(
                    f"{type(first.likelihood).__name__} takes no kind of observation that {cls.__name__} is "
                    "known for, such as labels, grades or duels. For numbers use BoTorch's "
                    "qNegIntegratedPosteriorVariance, PosteriorStandardDeviation or qKnowledgeGradient."
                )
            kind = max(taken, key=lambda known: known.points_per_observation)  # the first of those of most points
        part = first.likelihood.for_kind(kind)
        if kind not in taken or not part.reading(kind, first.datapoints, first.outcome_scale).is_single:
            raise UnsupportedError(f"{cls.__name__} does not support observations of kind {kind.__name__}.")
        return kind

    @property
    def members(self) -> list[LatentModel]:
        """The members of an ensemble, or the only model."""
        return members_of(self.model, type(self).__name__)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: the value of an observation is that of this one alone."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")

    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value of an observation at `batch_shape x k x d` points, 2 for duels; `batch_shape`."""
        k = self.kind.points_per_observation
        if X.shape[-2] != k:
            raise AssertionError(f"Expected X to be `batch_shape x q={k} x d`, but got X with shape {X.shape}.")
        members = self.members
        others = self._others().to(X)
        values = []
        # candidates are independent of each other: a few of them at a time, for memory linear in their number
        for part in X.reshape(-1, k, X.shape[-1]).split(max(NUM_TOGETHER, len(others) // k)):
            points = torch.cat([part.flatten(0, 1), others])
            mixtures = [self._mixture(member, joint_posterior(member, points)) for member in members]
            answers = [AnswerModel.of(member, self.kind) for member in members]
            place = torch.arange(len(points), device=points.device)
            items, places = place.tensor_split([len(part) * k])
            values.append(self._value_of(mixtures, answers, items.view(-1, k), places))
        return torch.cat(values).reshape(X.shape[:-2])

    @abstractmethod
    def _others(self) -> Tensor:
        """The further points, `n x d`."""

    @abstractmethod
    def _mixture(self, member: LatentModel, posterior: SkewGPPosterior) -> LatentMixture:
        """A member's latent function at candidates and further points."""

    @abstractmethod
    def _value_of(
        self, mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], items: Tensor, places: Tensor
    ) -> Tensor:
        """The value of observations at `B x k` candidates, beside the places of further points; `B`."""


class SkewBayesianActiveLearningByDisagreement(_Information):
    r"""The expected information about the latent function from one observation of a given kind, in nats.

    `I(y; f) = H(y) - E[H(y | f)]` ([Houlsby2011bald]_), a function of single points for labels and grades, of pairs for
    duels, exact given the model's draws and smooth. With pending points it is the information beyond that of their
    unknown outcomes `y_P`, `I(y; f | y_P) = E[H(y | y_P)] - E[H(y | f)]`, so that choosing one after the other is
    greedy batch selection ([Kirsch2019batchbald]_); more than `MAX_OUTCOMES` joint outcomes are replaced by a sample.
    BoTorch's `PairwiseBayesianActiveLearningByDisagreement` assumes a normal posterior, and one item's noise for a
    duel's.

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
        """Condition on the unknown outcomes at `X_pending`; a `BotorchTensorDimensionError` as when built."""
        check_parts(X_pending=(X_pending, Tensor))
        k = self.kind.points_per_observation
        if X_pending is not None and (X_pending.ndim != 2 or X_pending.shape[0] % k):
            raise BotorchTensorDimensionError(
                f"X_pending must be m x d with {k} point(s) per observation; got shape {tuple(X_pending.shape)}."
            )
        self.X_pending = None if X_pending is None or not len(X_pending) else X_pending.detach().clone()

    def _others(self) -> Tensor:
        first = self.members[0]
        return first.datapoints.new_zeros(0, first.dim) if self.X_pending is None else self.X_pending

    def _mixture(self, member: LatentModel, posterior: SkewGPPosterior) -> LatentMixture:
        num_draws = posterior.mixture.num_draws
        if self.X_pending is not None:  # of a Gaussian one is enough until outcomes are pending
            num_draws = max(num_draws, NUM_DRAWS)
        return LatentMixture.of(posterior, member.outcome_scale, num_draws)

    def _value_of(
        self, mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], items: Tensor, places: Tensor
    ) -> Tensor:
        for number, pending in enumerate(places.view(-1, self.kind.points_per_observation)):
            mixtures = given_pending(mixtures, answers, pending, self.seed + number, MAX_OUTCOMES)
        return information_about_function(mixtures, answers, items)


class _InformationAtPoints(_Information):
    """Base class: information about the cell of a reading at reference points, averaged over these."""

    X_reference: Tensor

    def __init__(self, model: Model, X_reference: Tensor, kind: type[Observation] | None = None) -> None:
        super().__init__(model, kind)
        check_class(X_reference, "X_reference", Tensor)
        k, dim = self.kind.points_per_observation, self.members[0].dim
        shape = (dim,) if k == 1 else (k, dim)
        if X_reference.ndim != 1 + len(shape) or X_reference.shape[0] == 0 or X_reference.shape[1:] != shape:
            raise BotorchTensorDimensionError(
                f"X_reference must be n x {' x '.join(map(str, shape))} with n of at least 1; got shape "
                f"{tuple(X_reference.shape)}."
            )
        self.register_buffer("X_reference", X_reference.detach())

    @abstractmethod
    def _reference(self, member: LatentModel) -> AnswerModel:
        """What is read at reference points, in units of a member's latent function."""

    def _others(self) -> Tensor:
        return self.X_reference.flatten(0, -2)

    def _mixture(self, member: LatentModel, posterior: SkewGPPosterior) -> LatentMixture:
        if member.approximation != "ep":
            return LatentMixture.of(posterior, member.outcome_scale)
        # a Gaussian: slips can make it a mixture of random components, whose noise would count as information
        mean = posterior.mean.flatten(-2).unsqueeze(-1)
        weight = mean.new_ones(1, 1)
        covariance = posterior.covariance_matrix
        return LatentMixture(mean, covariance, weight, posterior.prior_variance, member.outcome_scale)

    def _value_of(
        self, mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], items: Tensor, places: Tensor
    ) -> Tensor:
        references = [self._reference(member) for member in self.members]
        places = places.view(len(self.X_reference), -1)
        return information_about_cells(mixtures, answers, references, places, items)


class LevelSetInformation(_InformationAtPoints):
    r"""The mutual information of one more answer and the membership of a point in the level set, averaged over points.

    `E_z[I(y; 1(P(yes | f(z)) >= level))]` in nats over the reference points `z`: the global mutual information of
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
        super().__init__(model, X_reference, kind)
        self.level = level

    def _reference(self, member: LatentModel) -> AnswerModel:
        level = PsychometricFunction.of(member, self.kind).latent_level(self.level).reshape(1)
        return AnswerModel([Reading.at_point(level, level.new_zeros(1))])


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
        kind: As for `SkewBayesianActiveLearningByDisagreement`, of the answer and of predictions, as are the errors.

    Raises:
        BotorchTensorDimensionError: If `X_reference` has another shape.
    """

    def _reference(self, member: LatentModel) -> AnswerModel:
        return AnswerModel.of(member, self.kind)


def select_from_pool(acq_function: AcquisitionFunction, pool: Tensor, num: int = 1) -> tuple[Tensor, Tensor]:
    r"""Choose entries of a pool greedily, one after the other, as a batch.

    Each choice is the remaining entry of largest acquisition value, with those chosen so far as pending points; for
    information the greedy choice of the batch ([Kirsch2019batchbald]_).

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
    left = torch.arange(N, device=X.device)
    chosen, values = list[int](), list[Tensor]()
    try:
        for _ in range(num):
            with torch.no_grad():
                of_left = torch.cat([acq_function(X[part]) for part in left.split(BATCH)])
            value, position = of_left.max(0)
            values.append(value)
            chosen.append(int(left[position]))
            left = left[left != chosen[-1]]
            if len(chosen) < num:
                pending = X[chosen].flatten(0, 1)
                acq_function.set_X_pending(pending if before is None else torch.cat([before, pending]))
    finally:
        if num > 1:
            acq_function.set_X_pending(before)
    return torch.tensor(chosen, device=X.device), torch.stack(values)

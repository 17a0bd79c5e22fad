r"""The base class of acquisition functions of a new observation of a kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.outlook import Asked, Belief
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel, members_of
from botorch_skewgp.rows import Reading

NUM_TOGETHER = 256  # candidates, or as many as there are other points, in one joint posterior


class OutlookAcquisitionFunction(AcquisitionFunction):
    """Base class of look-aheads from a new observation to a target at points of its own, by joint posteriors."""

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

    @property
    def points_per_observation(self) -> int:
        """The number of points of one observation."""
        return self.kind.points_per_observation

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: the value of an observation is that of this one alone."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")

    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value of an observation at `batch_shape x k x d` points, 2 for duels; `batch_shape`."""
        k = self.points_per_observation
        if X.shape[-2] != k:
            raise AssertionError(f"Expected X to be `batch_shape x q={k} x d`, but got X with shape {X.shape}.")
        # candidates are independent of each other: a few of them at a time, for memory linear in their number
        sets, others = X.reshape(-1, *X.shape[-2:]), self._targets().to(X)
        values = []
        for part in sets.split(max(NUM_TOGETHER, len(others) // k)):
            points = torch.cat([part.flatten(0, 1), others])
            places = torch.arange(len(points), device=points.device)
            beliefs = [self._belief(member, points) for member in self.members]
            asks = [
                Asked(self.reading(member, belief.means)) for member, belief in zip(self.members, beliefs, strict=True)
            ]
            asked, targets = places.split([part.shape[0] * k, len(others)])
            values.append(self._value_of(beliefs, asks, asked.view(-1, k), targets))
        return torch.cat(values).reshape(X.shape[:-2])

    @abstractmethod
    def _targets(self) -> Tensor:
        """The target's points, `n x d`."""

    @abstractmethod
    def _value_of(self, beliefs: Sequence[Belief], asks: Sequence[Asked], items: Tensor, targets: Tensor) -> Tensor:
        """The value of observations at `B x k` places; the target's points are at the places `targets`."""

    def reading(self, member: LatentModel, like: Tensor) -> Reading:
        """The reading of an observation, in units of a member's latent function."""
        return member.answering_likelihood.reading(self.kind, like, member.outcome_scale)

    @abstractmethod
    def _belief(self, member: LatentModel, X: Tensor) -> Belief:
        """What a member believes of the function at `n x d` points."""

    def _joint_posterior(self, member: LatentModel, X: Tensor) -> SkewGPPosterior:
        posterior = member.latent_posterior(X)
        if posterior.batch_shape:
            raise UnsupportedError(f"{type(self).__name__} takes no models with batch dimensions, such as fantasies.")
        if posterior.num_points != X.shape[-2]:
            raise UnsupportedError("Input transforms that turn one point into many are not supported here.")
        return posterior

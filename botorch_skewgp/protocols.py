"""What acquisition functions and plots ask of a model, or of every member of an ensemble: interfaces, not classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.checks import check_class
from botorch_skewgp.likelihoods import OutcomeScale, RowLikelihood
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior


class LatentModel(Protocol):
    """A model of a latent function, whose posterior mixes normal distributions that share a covariance."""

    likelihood: RowLikelihood
    approximation: Literal["ep"] | None

    @property
    def answering_likelihood(self) -> RowLikelihood:
        """The likelihood of new answers, of the judge whom the model is for if it is for one."""

    @property
    def num_outputs(self) -> int:
        """The number of latent functions."""

    @property
    def dim(self) -> int:
        """The dimension of the points."""

    @property
    def datapoints(self) -> Tensor:
        """The points that observations refer to, `n x d`, before input transforms."""

    @property
    def observations(self) -> Sequence[Observation]:
        """The observations."""

    @property
    def outcome_scale(self) -> OutcomeScale:
        """How outcomes relate to the latent function."""

    def posterior(self, X: Tensor) -> Any:
        """The posterior in units of the outcome."""

    def latent_posterior(self, X: Tensor, judges: Sequence[int | str | None] | None = None) -> SkewGPPosterior:
        """The posterior of the latent function in its own units, at each point that of a judge where they are named."""

    def condition_on_draws(self, X: Tensor, samples_per_draw: int = 1, seed: int = 0) -> tuple[Any, Tensor]:
        """A model whose every draw also knows values drawn at points, and these values."""


@runtime_checkable
class Ensemble(Protocol):
    """An ensemble of models of the same data."""

    @property
    def members(self) -> Sequence[Any]:
        """The members."""


def is_latent_model(model: Any) -> bool:
    """Whether a model, or every member of an ensemble, is a `LatentModel`."""
    members = model.members if isinstance(model, Ensemble) else [model]
    return all(hasattr(member, "latent_posterior") and hasattr(member, "likelihood") for member in members)


def members_of(model: Model, user: str) -> list[LatentModel]:
    """The members of an ensemble, or a single model as the only one; errors name the user who asks."""
    if not is_latent_model(model) or model.num_outputs != 1:
        raise UnsupportedError(
            f"{user} needs a SkewGP with one output, or an ensemble of such models; got {type(model).__name__}."
        )
    return list(model.members) if isinstance(model, Ensemble) else [model]  # type: ignore[list-item]


def check_skew_gp(model: Any, user: str) -> None:
    """Raise `UnsupportedError` unless a model is a single one with rows, which an ensemble or BoTorch's have not."""
    if not isinstance(model, Model) or not hasattr(model, "row_model"):
        raise UnsupportedError(f"{user} needs a single SkewGP; got {type(model).__name__}.")


def for_judge(model: Model, judge: int | str | Sequence[int | str] | None) -> Model:
    """The model for a judge, or for several; the same model for `None`."""
    check_class(model, "model", Model)
    if judge is None:
        return model
    if not hasattr(model, "for_judge"):
        raise UnsupportedError(f"{type(model).__name__} has no judges; leave judge out, or give a SkewGP.")
    return model.for_judge(judge)  # type: ignore[operator]


def kind_of_duels(model: Model, user: str) -> type[Observation]:
    """The kind of observations by which new duels of two points are told."""
    return members_of(model, user)[0].likelihood.kind_of_duels


def input_transform_of(model: Any) -> Any:
    """The input transform of a model or of an ensemble's first member; `None` if there is none."""
    return getattr(model.members[0] if isinstance(model, Ensemble) else model, "input_transform", None)

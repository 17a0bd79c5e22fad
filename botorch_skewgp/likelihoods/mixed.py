r"""Several kinds of observations of one latent function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import Context
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.predictions import Predictions
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import FantasyRows, Reading, Rows


class MixedLikelihood(RowLikelihood):
    r"""Several likelihoods over one latent function; each kind of observation goes to the first that accepts it.

    A state dict names each part by its first kind (`likelihoods.Preference.raw_noise`), so that their order does not
    matter.

    Args:
        likelihoods: The likelihoods, in order of precedence.

    Raises:
        InputDataError: If there is no likelihood, or one is not of this package.

    Example:
        >>> MixedLikelihood(NumericLikelihood(), PreferenceLikelihood(learn_noise=True))
    """

    def __init__(self, *likelihoods: RowLikelihood) -> None:
        if not likelihoods:
            raise InputDataError("MixedLikelihood needs a likelihood for each kind of observation; got none.")
        super().__init__()
        self._likelihoods = torch.nn.ModuleDict()
        for part in likelihoods:
            if not isinstance(part, RowLikelihood):
                raise InputDataError(
                    f"MixedLikelihood takes likelihoods such as PreferenceLikelihood(); got {type(part).__name__}."
                )
            name = part.observation_types[0].__name__
            while name in self._likelihoods:
                name += "_again"  # not used, as the first takes these observations
            self._likelihoods[name] = part

    @property
    def likelihoods(self) -> list[RowLikelihood]:
        """The likelihoods, in order of precedence."""
        return list(self._likelihoods.values())  # type: ignore[arg-type]

    @property
    def observation_types(self) -> tuple[Kind, ...]:  # type: ignore[override]
        """All kinds of observations that one of the likelihoods takes."""
        return tuple(kind for likelihood in self.likelihoods for kind in likelihood.observation_types)

    @property
    def num_outputs(self) -> int:
        """That of the parts."""
        return max((likelihood.num_outputs for likelihood in self.likelihoods), default=1)

    @property
    def takes_numbers(self) -> bool:  # type: ignore[override]
        """Whether a part does."""
        return any(likelihood.takes_numbers for likelihood in self.likelihoods)

    @property
    def kinds_of_outcomes(self) -> tuple[Kind, ...]:
        """Those of all parts."""
        return tuple(kind for likelihood in self.likelihoods for kind in likelihood.kinds_of_outcomes)

    def for_kind(self, kind: Kind) -> RowLikelihood:
        """The first likelihood that takes observations of a kind; raises `InputDataError` if there is none."""
        for likelihood in self.likelihoods:
            if not isinstance(kind, type) or issubclass(kind, likelihood.observation_types):
                return likelihood.for_kind(kind)
        names = ", ".join(type(likelihood).__name__ for likelihood in self.likelihoods)
        raise InputDataError(f"None of {names} takes {kind.__name__} observations; add a likelihood for them.")

    def resolved_beside(self, context: Context) -> Self:
        """Resolved copies of all parts."""
        return self._of_parts(lambda part: part.resolved_beside(context))

    @property
    def parameters_by_judge(self) -> list[str]:
        """Those of all parts."""
        return [name for part in self.likelihoods for name in part.parameters_by_judge]

    def extend_judges(self, num_judges: int) -> None:
        """Begin fitted deviations of new judges in all parts."""
        for part in self.likelihoods:
            part.extend_judges(num_judges)

    def for_judge(self, judge: int | str | None) -> Self:
        """The parts for a judge."""
        return self._of_parts(lambda part: part.for_judge(judge))

    def with_noise_of_numbers(self, noise: Tensor) -> Self:
        """The parts, of which those for numbers expect this noise."""
        return self._of_parts(lambda part: part.with_noise_of_numbers(noise))

    def _of_parts(self, change: Callable[[RowLikelihood], RowLikelihood]) -> Self:
        """A likelihood of changed parts; itself if none changes."""
        parts = {name: change(part) for name, part in zip(self._likelihoods, self.likelihoods, strict=True)}
        if all(part is self._likelihoods[name] for name, part in parts.items()):
            return self
        return self._but(_modules={**self._modules, "_likelihoods": torch.nn.ModuleDict(parts)})

    @property
    def _predicting(self) -> list[RowLikelihood]:
        """The parts whose observations can be predicted."""
        parts = [likelihood for likelihood in self.likelihoods if likelihood.predicts]
        if not parts:
            raise UnsupportedError(
                "No part of this MixedLikelihood predicts new observations; add one that does, such as "
                "NumericLikelihood."
            )
        return parts

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """The reading of the likelihood that takes the kind."""
        return self.for_kind(kind).reading(kind, like, scale, num_points)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """The rows of the likelihood that takes the observations."""
        return self.for_kind(type(observation)).rows(observation, like, scale)

    def log_jacobian(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Tensor:
        """By the likelihood that takes the observations."""
        return self.for_kind(type(observation)).log_jacobian(observation, like, scale)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> list[Any]:
        """The distributions of new observations of every kind, in a list, since GPyTorch takes no mapping."""
        return [likelihood(function_samples, *args, **kwargs) for likelihood in self._predicting]

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Predictions:
        parts = self._predicting
        return Predictions([part.observation_types for part in parts], [part(posterior, scale=scale) for part in parts])

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale, seed: int = 0) -> FantasyRows:
        """The new observation of the first likelihood."""
        return self._predicting[0].fantasy_rows(noisy, scale, seed)

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise of numbers if a part takes them, else that of the first part."""
        parts = self._predicting
        return next((part for part in parts if part.takes_numbers), parts[0]).latent_noise(X)

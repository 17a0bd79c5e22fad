r"""An ensemble of SkewGPs, one for each draw of the hyperparameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.sampling.base import MCSampler
from torch import Tensor

from botorch_skewgp.exceptions import FewAnswersWarning
from botorch_skewgp.likelihoods.predictions import averaged
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.state import are_equal
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPEnsemblePosterior, SkewGPPosterior


def _of_all(name: str, doc: str) -> property:
    """A property that is the same for all members."""
    return property(lambda ensemble: getattr(ensemble.members[0], name), doc=doc)


class FullyBayesianSkewGP(Model):
    r"""An ensemble of SkewGPs whose hyperparameters are draws of their posterior, see `fit_fully_bayesian_skew_gp`.

    Follows BoTorch's conventions for fully Bayesian models: posteriors have a batch dimension for the members before
    `q x o`, over which acquisition functions average. It matters for small data: where many lengthscales are about
    equally likely, a model with the best one is overconfident.

    Args:
        models: The members, models of the same data.

    Raises:
        InputDataError: If there are none, one is not a SkewGP, or their data differ.
    """

    num_outputs = _of_all("num_outputs", "The number of outputs.")
    dim = _of_all("dim", "The dimension of the points.")
    datapoints = _of_all("datapoints", "The points that observations refer to, before input transforms.")
    observations = _of_all("observations", "The observations.")
    train_inputs = _of_all("train_inputs", "The training points.")
    judges = _of_all("judges", "The numbers of all judges who gave answers; empty if no answer names one.")

    def __init__(self, models: Sequence[SkewGP]) -> None:
        super().__init__()
        if isinstance(models, str) or not isinstance(models, Iterable):
            raise InputDataError("models must be a list of SkewGP models; write [model] for a single one.")
        models = list(models)
        if not models:
            raise InputDataError("models must hold at least one model; got none.")
        for number, model in enumerate(models):
            if not isinstance(model, SkewGP):
                raise InputDataError(f"models must be SkewGP models; number {number} is a {type(model).__name__}.")
            first = models[0]
            if not are_equal([model.datapoints, *model.observations], [first.datapoints, *first.observations]):
                raise InputDataError(
                    f"models must have the same data; number {number} has other points or observations."
                )
        self.models = torch.nn.ModuleList(models)

    @property
    def _is_ensemble(self) -> bool:  # type: ignore[override]  # BoTorch's are constants of a class
        """Whether acquisition functions average over members; over those of fantasies the outer function does."""
        return not self.members[0].batch_shape

    _is_fully_bayesian = _is_ensemble

    @property
    def members(self) -> list[SkewGP]:
        """The members."""
        return list(self.models)  # type: ignore[arg-type]

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of fantasies, then the number of members."""
        return torch.Size([*self.members[0].batch_shape, len(self.models)])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        judge: int | str | None = None,
    ) -> SkewGPEnsemblePosterior:
        r"""The posteriors of all members, `batch_shape x E x q x o`; arguments and errors are those of
        `SkewGP.posterior`, but transforms that are not affine and several judges raise `UnsupportedError`.
        """
        if judge is not None:
            return self.for_judge(judge).posterior(X, output_indices, observation_noise, posterior_transform)
        posteriors = []
        for member in self.members:
            posterior = member.posterior(X, output_indices, observation_noise, posterior_transform)
            if not isinstance(posterior, SkewGPPosterior):
                raise UnsupportedError(
                    f"{type(posterior_transform).__name__} is not affine; apply it to the posteriors of the members."
                )
            posteriors.append(posterior)
        return SkewGPEnsemblePosterior.stack(posteriors)

    def predictive(
        self, X: Tensor, judge: int | str | None = None, available: Tensor | None = None, none: bool = False
    ) -> Any:
        r"""The average of the members' `SkewGP.predictive`, whatever is predicted: of probabilities, for every kind of
        several, and for numbers an `AveragedPosterior`. A single member's own.
        """
        with warnings.catch_warnings(action="ignore", category=FewAnswersWarning):  # of single members
            distributions = [member.predictive(X, judge, available, none) for member in self.members]
        if len(distributions) == 1:
            return distributions[0]
        return averaged(distributions, X.new_full((len(distributions),), 1 / len(distributions)))

    def fantasize(
        self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any
    ) -> FullyBayesianSkewGP:
        r"""The ensemble of the members' fantasies at `batch_shape x n' x d` points, as BoTorch's fully Bayesian models
        have them: those of each member are drawn from its own posterior, from the same base samples.
        """
        return self._of_each(lambda member: member.fantasize(X, sampler, observation_noise, **kwargs))

    def _of_each(self, change: Callable[[SkewGP], SkewGP]) -> FullyBayesianSkewGP:
        """The ensemble of changed members."""
        return FullyBayesianSkewGP([change(member) for member in self.members])

    def frozen(self) -> FullyBayesianSkewGP:
        """The ensemble with its present posteriors, see `SkewGP.frozen`."""
        return self._of_each(SkewGP.frozen)

    def for_judge(self, judge: int | str | None) -> FullyBayesianSkewGP:
        r"""The ensemble of one judge's utility, as `SkewGP.for_judge`; raises `UnsupportedError` for several."""
        if isinstance(judge, Sequence) and not isinstance(judge, str):
            raise UnsupportedError("An ensemble has no committees; call for_judge(judges) of each of the members.")
        return self._of_each(lambda member: member.for_judge(judge))

    def slips(self) -> Tensor:
        """The posterior probability that each answer is a slip, averaged over members; see `SkewGP.slips`."""
        return torch.stack([member.slips() for member in self.members]).mean(0)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], **kwargs: Any
    ) -> FullyBayesianSkewGP:
        """The ensemble with more data and the same hyperparameters, as `SkewGP.condition_on_observations`."""
        return self._of_each(lambda member: member.condition_on_observations(X, Y, **kwargs))

    def condition_on_draws(
        self, X: Tensor, samples_per_draw: int = 1, seed: int = 0
    ) -> tuple[FullyBayesianSkewGP, Tensor]:
        """Every member by `SkewGP.condition_on_draws`; and the values, `n x E S`, of one member after the other."""
        known = [member.condition_on_draws(X, samples_per_draw, seed) for member in self.members]
        models, values = zip(*known, strict=True)
        return FullyBayesianSkewGP(models), torch.cat(values, dim=-1)

    def subset_output(self, idcs: list[int]) -> Self:
        """The ensemble itself; it has one output."""
        for member in self.members:
            member.subset_output(idcs)
        return self

r"""The Gaussian model of the same mean and covariance, for acquisition functions that need a Gaussian posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model, ModelList
from botorch.posteriors import GPyTorchPosterior, Posterior, PosteriorList
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import Tensor

from botorch_skewgp.checks import check_class
from botorch_skewgp.inputs.transforms import untransformed_inputs
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior


class MomentMatchedModel(Model):
    r"""A model whose posterior is Gaussian, with the mean and covariance of another model's skewed one.

    For acquisition functions that are Gaussian by construction, such as entropy searches and
    `qAnalyticProbabilityOfImprovement`. The skewness is lost. Conditioning and fantasies are those of the skewed model;
    only the result is moment-matched.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> acq = qMaxValueEntropy(MomentMatchedModel(model), candidate_set=torch.rand(100, 2, dtype=torch.double))

    Args:
        model: A `SkewGP`, or a `ModelList` of independent models with one output and a skewed or Gaussian posterior.

    Raises:
        InputDataError: If `model` is not a BoTorch model.
        UnsupportedError: If a model of a list has several outputs.
    """

    _supports_cache_root = False
    _supports_batched_models = False

    def __init__(self, model: Model) -> None:
        super().__init__()
        check_class(model, "model", Model)
        if isinstance(model, ModelList) and model.num_outputs > len(model.models):
            raise UnsupportedError(
                "Every model of a list must have one output; give a model of several outputs without a list."
            )
        self.model = model

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return self.model.num_outputs

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the model."""
        return self.model.batch_shape

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The training points before any input transform, `n x d`; of all models of a list, `m x n x d`."""
        if not isinstance(self.model, ModelList):
            return (untransformed_inputs(self.model),)
        points = torch.cat([untransformed_inputs(model) for model in self.model.models], dim=-2)
        return (points.expand(self.num_outputs, *points.shape),)

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The Gaussian distribution at points before any input transform; GIBBON asks for it."""
        return self.posterior(X).distribution

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> GPyTorchPosterior:
        r"""The Gaussian posterior at `batch_shape x q x d` points, transformed; of several outputs in blocks, one after
        the other. Raises `UnsupportedError` if a posterior is neither a `SkewGPPosterior` nor Gaussian.
        """
        skewed = self.model.posterior(X, output_indices=output_indices, observation_noise=observation_noise)
        posterior = _moment_matched(skewed)
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], **kwargs: Any
    ) -> Self:
        r"""Condition the skewed model.

        Numbers are noisy readings of the latent function, as in `posterior(X, observation_noise=True)`, also for models
        of other kinds of observations; a list of models takes `... x num_outputs`, one column for each, and raises
        `UnsupportedError` for anything but a tensor.
        """
        if not isinstance(self.model, ModelList):
            return type(self)(_condition(self.model, X, Y, **kwargs))
        if not isinstance(Y, Tensor):
            raise UnsupportedError("A list of models takes a tensor Y; condition its models one by one on other data.")
        columns = zip(self.model.models, Y.split(1, dim=-1), strict=True)
        return type(self)(ModelList(*(_condition(model, X, y, **kwargs) for model, y in columns)))

    def fantasize(self, X: Tensor, sampler: MCSampler, **kwargs: Any) -> Self:
        """Fantasies of the skewed model at `batch_shape x n' x d` points."""
        return type(self)(self.model.fantasize(X, sampler, **kwargs))  # type: ignore[operator]

    def subset_output(self, idcs: list[int]) -> Self:
        """The model of some of the outputs."""
        return type(self)(self.model.subset_output(idcs))


def _condition(model: Any, X: Tensor, Y: Tensor | Observation | Sequence[Observation], **kwargs: Any) -> Model:
    if isinstance(model, SkewGP) and isinstance(Y, Tensor) and Y.is_floating_point() and "noise" not in kwargs:
        variance = model.answering_likelihood.latent_noise(X).to(Y) * model.outcome_scale.scale**2
        kwargs["noise"] = variance.expand_as(Y)
    return model.condition_on_observations(X, Y, **kwargs)


def _moment_matched(posterior: Posterior) -> GPyTorchPosterior:
    if isinstance(posterior, SkewGPPosterior):
        posterior = posterior.moment_matched()
        return _in_blocks(posterior.distribution) if posterior._is_mt else posterior
    if isinstance(posterior, PosteriorList):
        normals = [_moment_matched(entry).distribution for entry in posterior.posteriors]
        several = len(normals) > 1
        return GPyTorchPosterior(MultitaskMultivariateNormal.from_independent_mvns(normals) if several else normals[0])
    if isinstance(posterior, GPyTorchPosterior):
        return posterior
    raise UnsupportedError(f"A {type(posterior).__name__} cannot be matched by a Gaussian.")


def _in_blocks(normal: MultitaskMultivariateNormal) -> GPyTorchPosterior:
    """The distribution of several outputs in blocks of outputs, as for lists."""
    q, o = normal.event_shape
    index = torch.arange(q * o).view(q, o).mT.flatten()
    covariance = normal.covariance_matrix[..., index[:, None], index]
    return GPyTorchPosterior(MultitaskMultivariateNormal(normal.mean, covariance, interleaved=False))

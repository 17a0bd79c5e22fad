"""Several judges at once: their utilities as the outputs of one BoTorch model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.models.latent_model import LatentModel
from botorch_skewgp.models.panel import code_of


class Committee(Model):
    r"""The joint utilities of several judges, an output for each; `SkewGP.for_judge` makes it of a sequence of them.

    BoTorch's objectives for several outputs weight the utilities: `ScalarizedPosteriorTransform(weights)`, or
    `LinearMCObjective(weights)`. Comparisons tell each judge's utility up to a level: differences between points mean
    something, and which of two judges' utilities is larger does not.

    Args:
        model: A model of answers whose judges are named.
        judges: Numbers of judges, `"new"` for one who has not answered yet, `None` for what all share.

    Raises:
        InputDataError: If nobody is named, or nothing is known of one.

    Example:
        >>> panel = Preference([[0, 1], [1, 2]], judge=[0, 1])
        >>> committee = SkewGP(torch.rand(3, 2, dtype=torch.double), panel).for_judge([0, 1])
        >>> committee.posterior(torch.rand(5, 2, dtype=torch.double)).mean.shape
        torch.Size([5, 2])
    """

    def __init__(self, model: LatentModel, judges: Sequence[int | str | None]) -> None:
        super().__init__()
        if not judges:
            raise InputDataError("A committee needs a judge; got an empty sequence.")
        known = model.judges
        self.codes = tuple(code_of(judge, known) for judge in judges)
        self.judges, self.model = tuple(judges), model

    @property
    def num_outputs(self) -> int:
        """The number of judges."""
        return len(self.judges)

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape, which is empty."""
        return torch.Size()

    @property
    def datapoints(self) -> Tensor:
        """The points that observations refer to, `n x d`."""
        return self.model.datapoints

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        **kwargs: Any,
    ) -> Posterior:
        r"""The joint posterior of the judges' utilities, in units of the outcome.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: Which of the judges, by their place; all if `None`.
            observation_noise: Must be `False`: ask for the answers of one judge at a time.
            posterior_transform: A posterior transform. Affine ones keep the skewness.

        Raises:
            UnsupportedError: If noise is asked for.
        """
        if not isinstance(observation_noise, bool) or observation_noise:
            raise UnsupportedError("Answers are those of one judge; ask model.for_judge(j) for them.")
        if output_indices is not None:
            return self.subset_output(output_indices).posterior(X, posterior_transform=posterior_transform)
        posterior, scale = self.model.latent_posterior_of_judges(X, self.codes), self.model.outcome_scale
        if scale.scale != 1 or scale.location != 0:
            eye = torch.eye(X.shape[-2] * self.num_outputs, dtype=X.dtype, device=X.device)
            posterior = posterior.affine(scale.scale * eye, scale.location, self.num_outputs)
        if posterior_transform is None:
            return posterior
        if type(posterior_transform) is ScalarizedPosteriorTransform:
            return posterior.scalarize(posterior_transform.get_buffer("weights"), posterior_transform.offset)
        return posterior_transform(posterior=posterior, X=X)

    def subset_output(self, idcs: list[int]) -> Self:
        r"""The committee of some of the judges.

        Args:
            idcs: Which, by their place.

        Raises:
            UnsupportedError: If there is no such place, or none is named.
        """
        size = self.num_outputs
        if not idcs or any(not -size <= i < size for i in idcs):
            raise UnsupportedError(f"output_indices must name judges by their place, 0 to {size - 1}; got {idcs}.")
        return type(self)(self.model, [self.judges[i] for i in idcs])

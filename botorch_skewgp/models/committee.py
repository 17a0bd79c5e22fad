r"""The joint utilities of several judges, as a model with several outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.models.inputs import check_output_indices
from botorch_skewgp.models.panel import code_of
from botorch_skewgp.models.transforms import apply_posterior_transform


class Committee(Model):
    r"""The joint utilities of several judges, an output for each; made by `SkewGP.for_judge` from a sequence.

    BoTorch's objectives for several outputs weight the utilities: `ScalarizedPosteriorTransform(weights)`, or
    `LinearMCObjective(weights)`. Comparisons determine each judge's utility up to a constant: compare it between
    points, not between judges.

    Args:
        model: A model of answers with judges.
        judges: Numbers of judges, `"new"` for one without answers, `None` for the shared utility.

    Raises:
        InputDataError: If no judge is given, or one of them gave no answers.

    Example:
        >>> panel = Preference([[0, 1], [1, 2]], judge=[0, 1])
        >>> committee = SkewGP(torch.rand(3, 2, dtype=torch.double), panel).for_judge([0, 1])
        >>> committee.posterior(torch.rand(5, 2, dtype=torch.double)).mean.shape
        torch.Size([5, 2])
    """

    def __init__(self, model: Any, judges: Sequence[int | str | None]) -> None:
        super().__init__()
        if not judges:
            raise InputDataError("judges must name at least one judge; got an empty sequence.")
        for judge in judges:
            code_of(judge, model.judges)
        self.judges, self.model = tuple(judges), model.for_judge(None)

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
        r"""The joint posterior of utilities at `batch_shape x q x d` points, in units of the outcome; `output_indices`
        are positions of judges. Affine transforms keep skewness. Raises `UnsupportedError` if noise is to be added.
        """
        if not isinstance(observation_noise, bool) or observation_noise:
            raise UnsupportedError("Answers are predicted for one judge; use model.for_judge(j).")
        if output_indices is not None:
            return self.subset_output(output_indices).posterior(X, posterior_transform=posterior_transform)
        posterior, scale = self.model.latent_posterior(X, self.judges, crossed=True), self.model.outcome_scale
        if scale.scale != 1 or scale.location != 0:
            eye = torch.eye(X.shape[-2] * self.num_outputs, dtype=X.dtype, device=X.device)
            posterior = posterior.affine(scale.scale * eye, scale.location, self.num_outputs)
        return apply_posterior_transform(posterior_transform, posterior, X)

    def fantasize(self, *args: Any, **kwargs: Any) -> Self:
        r"""Not supported, as one judge gives an answer: raises `UnsupportedError`; take `model.for_judge(j)`."""
        raise UnsupportedError(
            "A committee has no fantasies, since one judge gives an answer; use model.for_judge(j), or choose "
            "question and judge by next_question(model, judges=...)."
        )

    def subset_output(self, idcs: list[int]) -> Self:
        """The committee of the judges at some positions; raises `UnsupportedError` where there are none."""
        return type(self)(self.model, [self.judges[i] for i in check_output_indices(idcs, self.num_outputs)])

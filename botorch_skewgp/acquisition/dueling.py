r"""Acquisition functions for duels against a reference point, and for questions beside pending ones.

`papers.dueling` has other challengers.

.. [Ament2023logei] Ament et al. Unexpected improvements to expected improvement for Bayesian optimization. 2023.
.. [Astudillo2023qeubo] Astudillo et al. qEUBO. AISTATS 2023.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import concatenate_pending_points, is_ensemble, t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import Components, components_of
from botorch_skewgp.acquisition.look_ahead import AnswerModel
from botorch_skewgp.acquisition.search_domain import as_asked
from botorch_skewgp.checks import check_class
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel, is_latent_model, members_of

MAX_PARTS = 128  # joint outcomes of pending questions; of more few samples tell
SOFTNESS = 0.1  # of a step of a model without errors, in standard deviations of the difference: gradients see who wins


class DuelingAcquisitionFunction(AcquisitionFunction):
    """Base class for duels against a reference point, `d`-dim or `1 x d`; an ensemble counts as a mixture."""

    X_reference: Tensor

    def __init__(self, model: Model, X_reference: Tensor) -> None:
        super().__init__(model=model)
        dim = self.members[0].dim
        check_class(X_reference, "X_reference", Tensor)
        X_reference = X_reference.unsqueeze(0) if X_reference.ndim == 1 else X_reference
        if X_reference.shape != (1, dim):
            raise InputDataError(
                f"X_reference must be one point, of shape {dim} or 1 x {dim}; got {tuple(X_reference.shape)}."
            )
        if not X_reference.isfinite().all():
            raise InputDataError(f"X_reference must be finite; got {X_reference.tolist()}.")
        self.register_buffer("X_reference", X_reference)

    @property
    def members(self) -> list[LatentModel]:
        """The members of an ensemble, or the only model."""
        return members_of(self.model, type(self).__name__)

    def difference(self, member: LatentModel, X: Tensor, weight: Tensor | None = None) -> SkewGPPosterior:
        """A member's posterior of `f(x) - f(x_r)` at `batch_shape x 1 x d` points, or of `weight^T (f(x), f(x_r))`."""
        posterior = member.posterior(torch.cat([X, self.X_reference.to(X).expand(X.shape)], dim=-2))
        if posterior.num_points != 2:
            raise UnsupportedError(
                f"{type(self).__name__} does not go with input transforms that turn one point into many: two points "
                f"became {posterior.num_points}."
            )
        return posterior.affine(X.new_tensor([[1.0, -1.0]]) if weight is None else weight.unsqueeze(0))

    def _components(self, X: Tensor) -> Components:
        """The components of `f(x) - f(x_r)` of all members."""
        name = type(self).__name__
        return Components.of_members(components_of(self.difference(member, X), name) for member in self.members)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: every candidate duels with the reference, one at a time."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")


class DuelingLogExpectedImprovement(DuelingAcquisitionFunction):
    r"""The logarithm of `E[max(f(x) - f(x_r), 0)]` over the skewed posterior, in closed form on the mixture.

    Up to a constant and the logarithm this is qEUBO with one arm given ([Astudillo2023qeubo]_): the expected excess of
    the better of the two over the reference. The logarithm and the closed form keep its gradient alive where little is
    left to gain ([Ament2023logei]_).

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = DuelingLogExpectedImprovement(model, X_reference=best)
        >>> challenger, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return self._components(X).log_expected_improvement(X.new_zeros(()), maximize=True)


class qExpectedUtilityAfterAnswers(qExpectedUtilityOfBestOption):
    r"""`E[max_{x in D} E[f(x) | answers]]`, with `D` the points of a question and of pending ones, and answers to all.

    What the best of the points asked about is worth once all is answered. Answers divide samples of the function, by
    their probabilities, into as many parts as there are joint outcomes. Of one pair without others or errors, the two
    parts are those where each point is better, and the value is qEUBO ([Astudillo2023qeubo]_). qEUBO with pending
    points as further options would be that of a choice among all of them, of which several answers tell less.

    Args:
        model: A model of the utility; answers are without errors unless it is a SkewGP of comparisons, or an ensemble.
        pending: The pending questions, which of some points is best: `k x d` points each. Of more than `MAX_PARTS`
            joint outcomes, as of eight pairs, as many are drawn.
        X_pending: Points of the new question that are given, `n x d`.

    Raises:
        InputDataError: If the points are not finite, or a question has another shape.
    """

    def __init__(self, model: Model, pending: Sequence[Tensor], X_pending: Tensor | None = None) -> None:
        super().__init__(model, X_pending=X_pending)
        self.pending = as_asked(pending, None)
        members = members_of(model, "next_pair") if is_latent_model(model) else [None]
        self._answers = [_Answers(member) for member in members]

    @concatenate_pending_points
    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The value of a question, or of a first point of it that is not compared yet, `batch_shape x q x d`.

        Raises:
            InputDataError: If candidates have other inputs than the pending points.
        """
        known = torch.cat([X.new_empty(0, X.shape[-1]), *(question.to(X) for question in self.pending)])
        points = torch.cat([known.expand(*X.shape[:-2], *known.shape), X], dim=-2)
        _, values = self._get_samples_and_objectives(points)  # S x batch_shape x (n + q)
        # an ensemble is a mixture, about whose members answers are informative too
        of_members = list(values.unbind(-2)) if is_ensemble(self.model) else [values]
        pending = [v.detach().flatten(1, -2)[:, 0] for v in of_members]  # the same for all candidates
        generator = torch.Generator(X.device).manual_seed(0)
        values, start = torch.cat(of_members), 0
        parts = values.new_full((len(values), 1), 1 / len(values))
        for question in self.pending:
            place = slice(start, start + len(question))
            answers = torch.cat([of(v[..., place]) for of, v in zip(self._answers, pending, strict=True)])
            parts = (parts.unsqueeze(-1) * answers.unsqueeze(-2)).flatten(-2)
            if parts.shape[-1] > MAX_PARTS:
                chances = parts.sum(0)
                drawn = chances.multinomial(MAX_PARTS, replacement=True, generator=generator)
                parts = parts[:, drawn] / (MAX_PARTS * chances[drawn])
            start += len(question)
        if X.shape[-2] == 1:
            return torch.einsum("sp,s...n->...pn", parts, values).amax(-1).sum(-1)
        answers = torch.cat([of(v[..., start:]) for of, v in zip(self._answers, of_members, strict=True)])
        expected = X.new_zeros(())
        for probability in answers.unbind(-1):
            means = torch.einsum("sp,s...n->...pn", parts, values * probability.unsqueeze(-1))
            expected = expected + means.amax(-1).sum(-1)
        return expected


class _Answers:
    """The probabilities of each of several points to be named the best, given `S x ... x k` values."""

    def __init__(self, member: LatentModel | None) -> None:
        self._member = member
        self._models: dict[int, AnswerModel | None] = {}  # by the number of points

    def __call__(self, values: Tensor) -> Tensor:
        k = values.shape[-1]
        if k not in self._models:
            self._models[k] = self._model_of(k)
        model = self._models[k]
        if model is None or self._member is None:
            # without errors the largest value wins, in soft steps
            step = 2 * SOFTNESS * (values - values.mean(-1, keepdim=True)).std(0).mean(-1, keepdim=True)
            return torch.softmax(values / step.clamp(min=torch.finfo(step.dtype).tiny), dim=-1)
        return model.smooth_probabilities(self._member.outcome_scale.standardize(values))

    @torch.no_grad()
    def _model_of(self, k: int) -> AnswerModel | None:
        """The distribution of answers about `k` points, as a judge of the model gives them; `None` if not known."""
        if self._member is None:
            return None
        try:
            kind = self._member.likelihood.kind_of_choices(k)
            return AnswerModel.of(self._member, kind, None if k == 2 else k)
        except InputDataError:  # of numbers alone, say
            return None

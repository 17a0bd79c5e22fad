r"""Acquisition functions for duels: against a reference point, and of several pairs. `papers.dueling` has others.

.. [Ament2023logei] Ament et al. Unexpected improvements to expected improvement for Bayesian optimization. 2023.
.. [Astudillo2023qeubo] Astudillo et al. qEUBO. AISTATS 2023.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import concatenate_pending_points, is_ensemble, t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import Components, components_of
from botorch_skewgp.checks import check_class
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel, is_latent_model, members_of

MAX_PENDING = 7  # pairs: of the 2^8 answers to these and one more few samples tell
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


class qExpectedUtilityAfterDuels(qExpectedUtilityOfBestOption):
    r"""`E[max_{x in D} E[f(x) | answers]]`, with `D` the points of a pair and of pending pairs, and answers to all.

    What the best of the points asked about is worth after the page is answered. Answers divide samples of the function,
    by their probabilities, into as many parts as there are joint outcomes. Of one pair without others or errors, the
    two parts are those where each point is better, and the value is qEUBO ([Astudillo2023qeubo]_). qEUBO with pending
    points as further options would be that of a choice among all of them, of which duels tell less.

    Args:
        model: A model of the utility; answers are without errors unless it is a SkewGP of duels, or an ensemble.
        pairs: The pending pairs, `m x 2 x d` with at most `MAX_PENDING`; values take `2^m` joint outcomes.
        X_pending: A point of the new pair, `1 x d`, if it is given.

    Raises:
        InputDataError: If the pairs are not finite or have another shape.
    """

    pairs: Tensor

    def __init__(self, model: Model, pairs: Tensor, X_pending: Tensor | None = None) -> None:
        super().__init__(model, X_pending=X_pending)
        check_class(pairs, "pairs", Tensor)
        if pairs.ndim != 3 or pairs.shape[1] != 2 or len(pairs) > MAX_PENDING or not pairs.isfinite().all():
            raise InputDataError(
                f"pairs must be finite points, m x 2 x d with m at most {MAX_PENDING}; got shape {tuple(pairs.shape)}."
            )
        self.register_buffer("pairs", pairs)
        members = members_of(model, "next_pair") if is_latent_model(model) else []
        self._answers = [_answers_of(member) for member in members] or [_answers_without_errors]

    @concatenate_pending_points
    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The value of a pair, or of a first point of it that is not compared yet, `batch_shape x q x d`.

        Raises:
            InputDataError: If candidates are not one pair of points.
        """
        known = self.pairs.flatten(0, 1).to(X)
        if X.shape[-2] > 2 or X.shape[-1] != known.shape[-1]:
            raise InputDataError(
                f"Candidates must be one pair of points like pairs, 2 x {known.shape[-1]}, that of X_pending counted; "
                f"got shape {tuple(X.shape)}."
            )
        points = torch.cat([known.expand(*X.shape[:-2], *known.shape), X], dim=-2)
        _, values = self._get_samples_and_objectives(points)  # S x batch_shape x (2m + q)
        # an ensemble is a mixture, about whose members answers are informative too
        of_members = list(values.unbind(-2)) if is_ensemble(self.model) else [values]
        pending = [v.detach().flatten(1, -2)[:, 0] for v in of_members]  # the same for all candidates

        def answers(values: list[Tensor], place: int) -> Tensor:
            """The probabilities of answers to the pair at a place, `S x batch_shape x O`."""
            pair = slice(2 * place, 2 * place + 2)
            return torch.cat([of(v[..., pair]) for of, v in zip(self._answers, values, strict=True)])

        values = torch.cat(of_members)
        parts = values.new_full((len(values), 1), 1 / len(values))
        for place in range(len(self.pairs)):
            parts = (parts.unsqueeze(-1) * answers(pending, place).unsqueeze(-2)).flatten(-2)
        if X.shape[-2] == 1:
            return torch.einsum("sp,s...n->...pn", parts, values).amax(-1).sum(-1)
        expected = X.new_zeros(())
        for probability in answers(of_members, len(self.pairs)).unbind(-1):
            means = torch.einsum("sp,s...n->...pn", parts, values * probability.unsqueeze(-1))
            expected = expected + means.amax(-1).sum(-1)
        return expected


def _answers_of(member: LatentModel) -> Callable[[Tensor], Tensor]:
    """The probabilities of answers to duels given `... x 2` values, as a judge of the model gives them."""
    likelihood = member.answering_likelihood
    try:
        kind = likelihood.kind_of_duels
    except InputDataError:  # of numbers alone, say
        return _answers_without_errors
    with torch.no_grad():
        reading = likelihood.reading(kind, member.datapoints, member.outcome_scale)
    return lambda values: reading.log_probabilities(member.outcome_scale.standardize(values)).exp()


def _answers_without_errors(values: Tensor) -> Tensor:
    """Who wins for sure, in soft steps, `S x ... x 2` values; likewise."""
    difference = values[..., 0] - values[..., 1]
    step = SOFTNESS * difference.std(0)
    first = torch.sigmoid(difference / step.clamp(min=torch.finfo(step.dtype).tiny))
    return torch.stack([first, 1 - first], dim=-1)

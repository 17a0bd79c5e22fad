r"""The knowledge gradient of duels: how much the best posterior mean is expected to grow by asking for one.

After a duel the posterior is that of a SkewGP again, and its mean has a closed form ([Wu2026knowledge]_). On the
mixture: given draw `s`, `f(x)` and the noisy difference `d = f(a) - f(b) + v_a - v_b` are jointly normal, so that

    `E[f(x) 1(d > 0)] = sum_s p_s [m_s(x) Phi(u_s) + Cov(f(x), d) phi(u_s) / sd(d)]`,  `u_s = E[d | s] / sd(d)`,

with `Cov` and `sd` the same for all draws. This is the posterior mean given that `a` wins times the probability that it
does, and that of the other outcome is what is left of the mean, so that no ratio is needed and nothing is drawn again.

.. [Frazier2009knowledge] P. Frazier, W. Powell, S. Dayanik. The knowledge-gradient policy for correlated normal
   beliefs. INFORMS Journal on Computing 21, 2009.
.. [Wu2026knowledge] K. Wu, J. R. Gardner. Knowledge gradient for preference learning. arXiv 2601.22335, 2026.
"""

from __future__ import annotations

import torch
from botorch.acquisition.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Preference
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.univariate import log_normal_density


class _DuelLookAhead(AcquisitionFunction):
    """Base class: the posterior mean after a duel, times the probability of its outcome."""

    model: SkewGP

    def __init__(self, model: SkewGP) -> None:
        if not isinstance(model, SkewGP) or model.num_outputs != 1:
            raise UnsupportedError(f"{type(self).__name__} needs a SkewGP with one output; got {type(model).__name__}.")
        model.likelihood.for_kind(Preference)  # raises if it does not take duels
        super().__init__(model=model)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: the gain of a duel is that of this duel alone."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")

    def _posterior(self, X: Tensor) -> SkewGPPosterior:
        """The posterior of the latent function, in its own units."""
        self.model.eval()
        posterior = self.model.latent_posterior(X)
        if posterior._extended_shape()[-2] != X.shape[-2]:
            raise UnsupportedError("Input transforms that turn one point into many are not supported here.")
        return posterior

    def _won_and_lost(self, posterior: SkewGPPosterior) -> tuple[Tensor, Tensor]:
        r"""`E[f 1(d > 0)]` and `E[f 1(d <= 0)]` at all points, for a duel of the first against the second.

        Args:
            posterior: The joint posterior at `q >= 2` points.

        Returns:
            Two `batch_shape x q` tensors, in units of the outcome.
        """
        like = posterior.component_means
        row = self.model.likelihood.rows(Preference(torch.tensor([[0, 1]], device=like.device)), like)
        weight = torch.nn.functional.pad(row.weight(2)[0], (0, like.shape[-2] - 2))
        covariance = posterior.gaussian_covariance @ weight  # batch_shape x q: Cov(f(x), d)
        deviation = ((covariance @ weight).unsqueeze(-1) + row.noise).sqrt()
        margin = (weight @ posterior.component_means + row.bias - row.lower) / deviation  # batch_shape x S
        probabilities = posterior.mixture.probabilities
        wins = probabilities * torch.special.ndtr(margin)
        losses = probabilities * torch.special.ndtr(-margin)
        density = (probabilities * log_normal_density(margin).exp()).sum(-1, keepdim=True)
        shift = covariance * density / deviation
        won = (posterior.component_means @ wins.unsqueeze(-1)).squeeze(-1) + shift
        lost = (posterior.component_means @ losses.unsqueeze(-1)).squeeze(-1) - shift
        outcome = self.model.outcome_scale
        return (
            outcome.location * wins.sum(-1, keepdim=True) + outcome.scale * won,
            outcome.location * losses.sum(-1, keepdim=True) + outcome.scale * lost,
        )


class DuelingKnowledgeGradient(_DuelLookAhead):
    r"""The exact knowledge gradient of a duel, over a fixed set of points to recommend from ([Wu2026knowledge]_).

    `P(a wins) max_x E[f(x) | a wins] + P(b wins) max_x E[f(x) | b wins] - max_x E[f(x)]`, where `x` is one of
    `X_candidates`, or of the pair itself unless told otherwise. Never negative; differentiable where the maximisers
    are unique.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> acq = DuelingKnowledgeGradient(model, X_candidates=train_X)
        >>> pair, value = optimize_acqf(acq, bounds, q=2, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, whose likelihood takes duels.
        X_candidates: An `n x d` tensor of points to recommend from; the model's own points if `None`.
        include_pair: Whether the points of the pair may be recommended too. If so, so that asking about a good point
            alone is worth nothing, the mean before the duel is maximised over them as well.

    Raises:
        UnsupportedError: If the model is no SkewGP with one output.
        InputDataError: If its likelihood does not take duels.
        BotorchTensorDimensionError: If `X_candidates` is not `n x d` with at least one point.
    """

    X_candidates: Tensor

    def __init__(self, model: SkewGP, X_candidates: Tensor | None = None, include_pair: bool = True) -> None:
        super().__init__(model=model)
        X_candidates = model.datapoints if X_candidates is None else X_candidates
        if X_candidates.ndim != 2 or X_candidates.shape[0] == 0 or X_candidates.shape[1] != model.dim:
            raise BotorchTensorDimensionError(
                f"X_candidates must be n x {model.dim} with n of at least 1; got shape {tuple(X_candidates.shape)}."
            )
        self.register_buffer("X_candidates", X_candidates.detach())
        self.include_pair = include_pair

    @t_batch_mode_transform(expected_q=2)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The expected gain of a duel at `batch_shape x 2 x d` pairs; `batch_shape`."""
        candidates = self.X_candidates.to(X).expand(*X.shape[:-2], *self.X_candidates.shape)
        won, lost = self._won_and_lost(self._posterior(torch.cat([X, candidates], dim=-2)))
        if not self.include_pair:
            won, lost = won[..., 2:], lost[..., 2:]
        return won.amax(-1) + lost.amax(-1) - (won + lost).amax(-1)


class OneShotDuelingKnowledgeGradient(_DuelLookAhead, OneShotAcquisitionFunction):
    r"""The exact knowledge gradient of a duel over the whole domain, up to a constant, by joint optimisation.

    `P(a wins) E[f(x_1) | a wins] + P(b wins) E[f(x_2) | b wins]` as a function of four points `a, b, x_1, x_2`. Its
    maximum over all four has the pair that maximises the knowledge gradient with `x_1` and `x_2` the points to
    recommend after either outcome: two outcomes need no more. `optimize_acqf` must be told `q = 4` and returns the
    pair.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> acq = OneShotDuelingKnowledgeGradient(model)
        >>> pair, value = optimize_acqf(acq, bounds, q=4, num_restarts=8, raw_samples=256)

    Args:
        model: A SkewGP with one output, whose likelihood takes duels.

    Raises:
        UnsupportedError: If the model is no SkewGP with one output.
        InputDataError: If its likelihood does not take duels.
    """

    @t_batch_mode_transform(expected_q=4)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The expected posterior mean at what is recommended, for `batch_shape x 4 x d` points; `batch_shape`."""
        won, lost = self._won_and_lost(self._posterior(X))
        return won[..., 2] + lost[..., 3]

    def get_augmented_q_batch_size(self, q: int) -> int:
        """A pair and two points to recommend: 4."""
        if q != 2:
            raise UnsupportedError(f"A duel is between two points; got q = {q}.")
        return 4

    def extract_candidates(self, X_full: Tensor) -> Tensor:
        """The pair, `batch_shape x 2 x d`."""
        return X_full[..., :2, :]

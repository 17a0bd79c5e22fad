r"""The knowledge gradient of duels: how much the best posterior mean is expected to grow by asking for one.

After a duel the posterior is that of a SkewGP again, and its mean has a closed form ([Wu2026knowledge]_). On the
mixture: given draw `s`, `f(x)` and the noisy difference `d = f(a) - f(b) + v_a - v_b` are jointly normal, so that

    `E[f(x) 1(d > 0)] = sum_s p_s [m_s(x) Phi(u_s) + Cov(f(x), d) phi(u_s) / sd(d)]`,  `u_s = E[d | s] / sd(d)`,

with `Cov` and `sd` the same for all draws. This is the posterior mean given that `a` wins times the probability that it
does, so that no ratio is needed and nothing is drawn again. Where ties are allowed a duel has three outcomes, each an
interval of `d`, with differences of these terms at its ends.

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
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading
from botorch_skewgp.truncated.univariate import log_interval_probability, log_normal_density, standardise


class _DuelLookAhead(AcquisitionFunction):
    """Base class: the posterior mean after a duel, times the probability of its outcome."""

    model: SkewGP

    def __init__(self, model: SkewGP) -> None:
        if not isinstance(model, SkewGP) or model.num_outputs != 1:
            raise UnsupportedError(f"{type(self).__name__} needs a SkewGP with one output; got {type(model).__name__}.")
        super().__init__(model=model)
        self._kind = model.likelihood.kind_of_duels

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: the gain of a duel is that of this duel alone."""
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")

    def _reading(self, like: Tensor) -> Reading:
        """What a duel reads."""
        return self.model.likelihood.reading(self._kind, like, self.model.outcome_scale)

    def _posterior(self, X: Tensor) -> SkewGPPosterior:
        """The posterior of the latent function, in its own units."""
        posterior = self.model.latent_posterior(X)
        if posterior.num_points != X.shape[-2]:
            raise UnsupportedError("Input transforms that turn one point into many are not supported here.")
        return posterior

    def _outcome_means(self, posterior: SkewGPPosterior) -> Tensor:
        r"""`E[f 1(outcome)]` at all points, for a duel of the first against the second.

        Args:
            posterior: The joint posterior at `q >= 2` points.

        Returns:
            A `batch_shape x q x O` tensor in units of the outcome: that the first wins comes first, that the second
            does last, a tie, where it is allowed, between them.
        """
        means = posterior.component_means
        reading = self._reading(means)
        weight = torch.nn.functional.pad(reading.weight[0], (0, means.shape[-2] - 2))
        covariance = posterior.gaussian_covariance @ weight  # batch_shape x q: Cov(f(x), d)
        scale = ((covariance @ weight).unsqueeze(-1) + reading.variance).sqrt()
        order = reading.outcomes[:, 0, 0].argsort(descending=True)
        bounds = (bound.view(-1, *(1,) * (means.ndim - 1)) for bound in reading.bounds(order))
        lower, upper = (standardise(bound, weight @ means, scale) for bound in bounds)  # O x batch_shape x S
        probabilities = posterior.probabilities
        mass = probabilities * log_interval_probability(lower, upper).exp()
        rise = log_normal_density(lower).exp() - log_normal_density(upper).exp()
        shift = covariance * (probabilities * rise).sum(-1, keepdim=True) / scale
        latent = (means @ mass.unsqueeze(-1)).squeeze(-1) + shift  # O x batch_shape x q
        outcome = self.model.outcome_scale
        return (outcome.location * mass.sum(-1, keepdim=True) + outcome.scale * latent).movedim(0, -1)


class DuelingKnowledgeGradient(_DuelLookAhead):
    r"""The exact knowledge gradient of a duel, over a fixed set of points to recommend from ([Wu2026knowledge]_).

    `P(a wins) max_x E[f(x) | a wins] + P(b wins) max_x E[f(x) | b wins] - max_x E[f(x)]`, and a term for a tie where
    the judge may call one, where `x` is one of `X_candidates`, or of the pair itself unless told otherwise. Never
    negative; differentiable where the maximisers are unique.

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
        means = self._outcome_means(self._posterior(torch.cat([X, candidates], dim=-2)))
        if not self.include_pair:
            means = means[..., 2:, :]
        return means.amax(-2).sum(-1) - means.sum(-1).amax(-1)


class OneShotDuelingKnowledgeGradient(_DuelLookAhead, OneShotAcquisitionFunction):
    r"""The exact knowledge gradient of a duel over the whole domain, up to a constant, by joint optimisation.

    `P(a wins) E[f(x_1) | a wins] + P(b wins) E[f(x_2) | b wins]` as a function of four points `a, b, x_1, x_2`. Its
    maximum over all four has the pair that maximises the knowledge gradient with `x_1` and `x_2` the points to
    recommend after either outcome: two outcomes need no more. Where ties are allowed there is a fifth point, to
    recommend after a tie, between these two. `optimize_acqf` must be told `q = get_augmented_q_batch_size(2)` and
    returns the pair.

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

    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The expected posterior mean at what is recommended, for `batch_shape x 4 x d` points; `batch_shape`.

        Raises:
            BotorchTensorDimensionError: If `X` has another number of points.
        """
        wanted = self.get_augmented_q_batch_size(2)
        if X.shape[-2] != wanted:
            raise BotorchTensorDimensionError(
                f"X must be batch_shape x {wanted} x d, a pair and a point to recommend after each outcome; got shape "
                f"{tuple(X.shape)}."
            )
        means = self._outcome_means(self._posterior(X))
        return means[..., 2:, :].diagonal(dim1=-2, dim2=-1).sum(-1)

    def get_augmented_q_batch_size(self, q: int) -> int:
        """A pair and a point to recommend after each outcome: 4, or 5 where ties are allowed.

        Raises:
            UnsupportedError: If `q` is not 2.
        """
        if q != 2:
            raise UnsupportedError(f"A duel is between two points; got q = {q}.")
        return 2 + self._reading(self.model.train_inputs[0]).num_outcomes

    def extract_candidates(self, X_full: Tensor) -> Tensor:
        """The pair, `batch_shape x 2 x d`."""
        return X_full[..., :2, :]

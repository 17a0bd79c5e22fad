r"""The knowledge gradient: the expected growth of the best posterior mean by one observation, such as a duel.

After a duel the posterior is that of a SkewGP again, and its mean has a closed form ([Wu2026knowledge]_). On the
mixture: given draw `s`, `f(x)` and the noisy difference `d = f(a) - f(b) + v_a - v_b` are jointly normal, so that

    `E[f(x) 1(d > 0)] = sum_s p_s [m_s(x) Phi(u_s) + Cov(f(x), d) phi(u_s) / sd(d)]`,  `u_s = E[d | s] / sd(d)`,

with `Cov` and `sd` the same for all draws. This is the posterior mean given that `a` wins times the probability of
that, without a ratio or new draws. Where ties are allowed a duel has three outcomes, each an interval of `d`, with
differences of these terms at its ends. Labels and grades are the same with `d = f(a) + v_a`. Where an answer may be a
slip, these terms are of attentive ones, and a slip of probability `e` adds `e m_s(x)`.

.. [Frazier2009knowledge] P. Frazier, W. Powell, S. Dayanik. The knowledge-gradient policy for correlated normal
   beliefs. INFORMS Journal on Computing 21, 2009.
.. [Wu2026knowledge] K. Wu, J. R. Gardner. Knowledge gradient for preference learning. arXiv 2601.22335, 2026.
"""

from __future__ import annotations

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.questions import QuestionAcquisitionFunction
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import check_class, check_flags
from botorch_skewgp.protocols import LatentModel
from botorch_skewgp.truncated.univariate import log_interval_probability, log_normal_density, standardise


class SkewKnowledgeGradient(QuestionAcquisitionFunction):
    r"""The exact knowledge gradient of one observation, over a fixed set of points to recommend from.

    `sum_o P(o) max_x E[f(x) | o] - max_x E[f(x)]` over the outcomes `o` of a label, a grade, a validity or a duel,
    where `x` is one of `X_candidates` or, by default, of the points of the observation ([Frazier2009knowledge]_,
    [Wu2026knowledge]_). Never negative; differentiable where the maximisers are unique.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = SkewKnowledgeGradient(model)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models, whose average means are compared.
        kind: As for `SkewBayesianActiveLearningByDisagreement`.
        X_candidates: An `n x d` tensor of points to recommend from; the model's own points if `None`.
        include_points: Whether the points of the observation may be recommended too. Then the mean before the
            observation is maximised over them as well.

    Raises:
        UnsupportedError: If the model is no SkewGP, or its likelihood takes no supported kind.
        InputDataError: If the likelihood does not take observations of the wanted kind.
        BotorchTensorDimensionError: If `X_candidates` is not `n x d` with at least one point.
    """

    X_candidates: Tensor

    def __init__(
        self,
        model: Model,
        kind: type[Observation] | None = None,
        X_candidates: Tensor | None = None,
        include_points: bool = True,
    ) -> None:
        super().__init__(model=model, kind=kind)
        first = self.members[0]
        X_candidates = first.datapoints if X_candidates is None else X_candidates
        check_class(X_candidates, "X_candidates", Tensor)
        check_flags(include_points=include_points)
        if X_candidates.ndim != 2 or X_candidates.shape[0] == 0 or X_candidates.shape[1] != first.dim:
            raise BotorchTensorDimensionError(
                f"X_candidates must be n x {first.dim} with n of at least 1; got shape {tuple(X_candidates.shape)}."
            )
        self.register_buffer("X_candidates", X_candidates.detach())
        self.include_points = include_points

    def _value(self, X: Tensor) -> Tensor:
        candidates = self.X_candidates.to(X).expand(*X.shape[:-2], *self.X_candidates.shape)
        means = self._outcome_means(torch.cat([X, candidates], dim=-2))
        if not self.include_points:
            means = means[..., self.points_per_observation :, :]
        return means.amax(-2).sum(-1) - means.sum(-1).amax(-1)

    def _outcome_means(self, X: Tensor) -> Tensor:
        r"""`E[f 1(outcome)]` in units of the outcome, averaged over members; `batch_shape x q x O`.

        At `batch_shape x q x d` points, those of the observation first. The outcome of the largest reading comes first,
        for a duel that the first point wins.
        """
        return torch.stack([self._outcome_means_of(member, X) for member in self.members]).mean(0)

    def _outcome_means_of(self, member: LatentModel, X: Tensor) -> Tensor:
        posterior = self.latent_posterior(member, X)
        means = posterior.component_means
        reading = self.reading(member, means)
        weight = torch.nn.functional.pad(reading.weight[0], (0, means.shape[-2] - reading.num_items))
        covariance = posterior.gaussian_covariance @ weight  # batch_shape x q: Cov(f(x), d)
        scale = ((covariance @ weight).unsqueeze(-1) + reading.variance).sqrt()
        order = reading.outcomes[:, 0, 0].argsort(descending=True)
        bounds = (bound.view(-1, *(1,) * (means.ndim - 1)) for bound in reading.bounds(order))
        lower, upper = (standardise(bound, weight @ means, scale) for bound in bounds)  # O x batch_shape x S
        probabilities = posterior.probabilities
        mass = log_interval_probability(lower, upper).exp()
        gain, slip = reading.attention, reading.slip_of(order).view(-1, *(1,) * (mass.ndim - 1))
        mass = probabilities * (gain * mass + slip)
        rise = log_normal_density(lower).exp() - log_normal_density(upper).exp()
        shift = gain * covariance * (probabilities * rise).sum(-1, keepdim=True) / scale
        latent = (means @ mass.unsqueeze(-1)).squeeze(-1) + shift  # O x batch_shape x q
        outcome = member.outcome_scale
        return (outcome.location * mass.sum(-1, keepdim=True) + outcome.scale * latent).movedim(0, -1)

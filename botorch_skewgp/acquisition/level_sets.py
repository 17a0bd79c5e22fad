r"""Where the probability of a yes is above a level: the information of one more answer about that.

A point belongs to the level set if `P(yes | f(x)) >= level`, which is `f(x) >= c` with one number `c`. An answer at `x`
informs about the membership of every point `z` ([Letham2022lookahead]_). Given draw `s` of the mixture, `f(x)` with its
noise and `f(z)` are jointly normal, so that with `h_s = E[f(x) - center | s] / sd` and `k_s = E[f(z) - c | s] / sd`

    `P(yes at x, f(z) >= c) = guess P(f(z) >= c) + (1 - guess - lapse) sum_s p_s Phi_2(h_s, k_s; rho)`,

with the bivariate normal cdf `Phi_2` and a correlation `rho` that all draws share. The four probabilities of answer and
membership determine the information of the answer.

.. [Letham2022lookahead] B. Letham, P. Guan, C. Tymms, E. Bakshy, M. Shvartsman. Look-ahead acquisition functions for
   Bernoulli level set estimation. AISTATS 2022.
"""

from __future__ import annotations

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.bivariate import NUM_NODES, bivariate_normal_cdf
from botorch_skewgp.acquisition.question_values import Belief
from botorch_skewgp.acquisition.questions import QuestionAcquisitionFunction
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import check_class
from botorch_skewgp.protocols import LatentModel, members_of
from botorch_skewgp.thresholds import PsychometricFunction, kind_of_yes
from botorch_skewgp.truncated.univariate import normal_cdf

MAX_ENTRIES = 2**21  # of a tensor over candidates, reference points and draws
NUM_TOGETHER = 64  # candidates, or as many as there are reference points, in one joint covariance


class LevelSetInformation(QuestionAcquisitionFunction):
    r"""The mutual information of one more answer and the membership of a point in the level set, averaged over points.

    `E_z[I(y; 1(z in the level set))]` in nats over the reference points `z`: the global mutual information of
    [Letham2022lookahead]_. It is smooth, and positive where an answer changes no classification yet.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = LevelSetInformation(model, level=0.75, X_reference=pool)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP of yes/no answers with one output, or an ensemble of such models.
        level: The probability of a yes that bounds the level set.
        X_reference: An `n x d` tensor: the points to be classified.
        kind: The kind of the answers, where the model takes several with two outcomes.

    Raises:
        UnsupportedError: If the model is another, or takes no yes/no answers at single points.
        InputDataError: If the probability of a yes never is `level`.
        BotorchTensorDimensionError: If `X_reference` is not `n x d` with at least one point.
    """

    X_reference: Tensor

    def __init__(self, model: Model, level: float, X_reference: Tensor, kind: type[Observation] | None = None) -> None:
        members = members_of(model, type(self).__name__)
        super().__init__(model, kind_of_yes(members[0], kind))
        for member in members:
            PsychometricFunction.of(member, self.kind).latent_level(level)
        self.level = level
        check_class(X_reference, "X_reference", Tensor)
        dim = members[0].dim
        if X_reference.ndim != 2 or X_reference.shape[0] == 0 or X_reference.shape[1] != dim:
            raise BotorchTensorDimensionError(
                f"X_reference must be n x {dim} with n of at least 1; got shape {tuple(X_reference.shape)}."
            )
        self.register_buffer("X_reference", X_reference.detach())

    def _value(self, X: Tensor) -> Tensor:
        # candidates are independent of each other: a few of them at a time, for memory linear in their number
        parts = X.reshape(-1, X.shape[-1]).split(max(NUM_TOGETHER, len(self.X_reference)))
        return torch.cat([self._information(part) for part in parts]).reshape(X.shape[:-2])

    def _information(self, points: Tensor) -> Tensor:
        """The information of an answer at each of `B x d` points, `B`."""
        X = torch.cat([points, self.X_reference.to(points)])
        beliefs = [self._belief(member, X) for member in self.members]
        size = max(1, MAX_ENTRIES // (len(self.X_reference) * beliefs[0].means.shape[-1]))
        parts = []
        for part in torch.arange(len(points), device=X.device).split(size):
            cells = [self._joint(member, belief, part) for member, belief in zip(self.members, beliefs, strict=True)]
            joint = torch.stack(cells).mean(0)
            told = _entropy(joint.sum(-1)) + _entropy(joint.sum(-2)) - _entropy(joint.flatten(-2))
            parts.append(told.mean(-1))
        return torch.cat(parts)

    def _belief(self, member: LatentModel, X: Tensor) -> Belief:
        posterior = self.latent_posterior(member, X)
        if posterior.batch_shape:
            raise UnsupportedError(f"{type(self).__name__} takes no models with batch dimensions, such as fantasies.")
        if member.approximation != "ep":
            return Belief.of(posterior, member.outcome_scale)
        # a Gaussian: slips can make it a mixture of random components, whose noise would count as information
        weights = posterior.mean.new_ones(1, 1)
        return Belief(
            posterior.mean.flatten(-2).unsqueeze(-1),
            posterior.covariance_matrix,
            weights,
            posterior.prior_variance,
            member.outcome_scale,
        )

    def _joint(self, member: LatentModel, belief: Belief, part: Tensor) -> Tensor:
        """The probabilities of no and yes (first), out of the level set and in it (last), `B x R x 2 x 2`."""
        function = PsychometricFunction.of(member, self.kind)
        num = len(self.X_reference)
        weights = belief.weights[0]
        low, high = function.limits
        variance = belief.covariance.diagonal().maximum(torch.finfo(belief.means.dtype).eps * belief.variance)
        sd_of_answer = (variance[part] + function.noise).sqrt()
        sd = variance[-num:].sqrt()
        h = function.sign * (belief.means[part] - function.center) / sd_of_answer.unsqueeze(-1)  # B x S
        k = function.sign * (belief.means[-num:] - function.latent_level(self.level)) / sd.unsqueeze(-1)  # R x S
        correlation = belief.covariance[part, -num:] / (sd_of_answer.unsqueeze(-1) * sd)
        correlation = correlation.clamp(-1, 1)  # rounding only
        both = _mixture_cdf(h, k, correlation, weights)
        inside = (normal_cdf(k) @ weights).expand_as(both)
        yes = (low + (high - low) * (normal_cdf(h) @ weights)).unsqueeze(-1).expand_as(both)
        both = low * inside + (high - low) * both
        cells = torch.stack([1 - yes - inside + both, inside - both, yes - both, both], dim=-1)
        return cells.unflatten(-1, (2, 2))


def _mixture_cdf(h: Tensor, k: Tensor, correlation: Tensor, weights: Tensor) -> Tensor:
    """The bivariate cdf at `h`, `B x S`, and `k`, `R x S`, averaged over components; `B x R` like the correlation."""
    size, lower, value = correlation.detach().abs(), -1.0, torch.zeros_like(correlation)
    for upper in (*NUM_NODES, 1.0):
        i, j = ((size > lower) & (size <= upper)).nonzero(as_tuple=True)
        if len(i):
            cdf = bivariate_normal_cdf(h[i], k[j], correlation[i, j].unsqueeze(-1))
            value = value.index_put((i, j), cdf @ weights)
        lower = upper
    return value


def _entropy(probabilities: Tensor) -> Tensor:
    """The entropy of `... x K` probabilities; impossible outcomes add nothing, and have no gradient."""
    possible = probabilities > torch.finfo(probabilities.dtype).eps
    return torch.special.entr(torch.where(possible, probabilities, 1.0)).sum(-1)

r"""The look-ahead to the answer of a question: the latent function given each answer, and what is expected to gain.

The posterior at all points of a set is computed once: given draw `s` the latent function is normal with mean `m_s` and
a covariance that all draws share. Values of questions are linear algebra on these, for hundreds of questions at a time,
and depend on their `Reading` alone: each is a sum over outcomes `o` of terms joint with a target. Here it is the best
mean, in `information` others.

The knowledge gradient is `sum_o max_x E[f(x) 1(o)] - max_x E[f(x)]` ([Frazier2009knowledge]_). For a single reading
`d`, noise included, `f(x)` and `d` are jointly normal given `s`. With `u` and `l` the ends of the outcome in standard
deviations of `d` from its mean, `E[f(x) 1(o)] = sum_s p_s [m_s(x) (Phi(u) - Phi(l)) + Cov(f(x), d) (phi(l) - phi(u)) /
sd(d)]`: the posterior mean given the outcome times its probability, without a ratio or new draws ([Wu2026knowledge]_).
Where an answer may be a slip these terms are of attentive ones, and a slip of probability `e` adds `e m_s(x)`. Joint
outcomes (a choice, a vote) are averaged over values of the function at the question's points, drawn in mirrored pairs
for each draw `s`, with the noise integrated out. A number is a grade on a fine scale: its predictive distribution is
cut into cells of equal probability, which is a lower bound that rises with their number.

.. [Frazier2009knowledge] Frazier, Powell, Dayanik. The knowledge-gradient policy for correlated normal beliefs. 2009.
.. [Wu2026knowledge] K. Wu, J. R. Gardner. Knowledge gradient for preference learning. arXiv 2601.22335, 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel
from botorch_skewgp.rows.reading import Reading, cell_probabilities
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.univariate import log_normal_density, normal_cdf, standardise

NUM_DRAWS = 512  # of a mixture that look-aheads go over
NUM_CELLS = 16  # of a number
NUM_SCENARIOS = 6  # joint outcomes of pending questions, beyond which they are sampled
TINY = 1e-300  # least divisor
MAX_ENTRIES = 2**22  # of a tensor over questions, outcomes and draws


def joint_posterior(
    member: LatentModel, X: Tensor, judges: Sequence[int | str | None] | None = None
) -> SkewGPPosterior:
    """The posterior of a member's latent function at `n x d` points; raises `UnsupportedError` if it is of others."""
    posterior = member.latent_posterior(X, judges=judges)
    if posterior.batch_shape:
        raise UnsupportedError("Look-aheads take no models with batch dimensions, such as fantasies.")
    if posterior.num_points != len(X):
        raise UnsupportedError("Input transforms that turn one point into many are not supported here.")
    return posterior


@dataclass(frozen=True, eq=False)
class LatentMixture:
    """The latent function of a model at `N` points: a mixture of `S` normal distributions that share a covariance.

    Args:
        means: The means of components, `N x S`.
        covariance: The covariance that they share, `N x N`.
        weights: The weights of components in each of `M` scenarios, joint outcomes of pending questions, `M x S`.
        prior_variance: The variances of the prior, `N`, the scale of the covariance's rounding.
        scale: How outcomes relate to the latent function.
        num_sobol: The number of Sobol coordinates of which the means are made, those of pending questions.
    """

    means: Tensor
    covariance: Tensor
    weights: Tensor
    prior_variance: Tensor
    scale: OutcomeScale
    num_sobol: int = 0

    @classmethod
    def of(cls, posterior: SkewGPPosterior, scale: OutcomeScale, num_draws: int = NUM_DRAWS) -> LatentMixture:
        """The mixture of a posterior of one output, with at most `num_draws` of its draws."""
        if posterior.mixture.num_draws == 1:  # joint outcomes are averages over values drawn for each draw
            posterior = posterior.with_draws_repeated(num_draws)
        means = posterior.component_means
        num_components = means.shape[-1]
        weights = posterior.probabilities.expand(num_components)
        step = -(-num_components // num_draws)
        if step > 1:  # one random draw of each group of neighbours, which are alike
            first = torch.arange(0, num_components, step)
            size = (num_components - first).clamp(max=step)
            uniform = torch.rand(len(first), generator=torch.Generator().manual_seed(0))
            kept = (first + (uniform * size).long()).to(means.device)
            means, weights = means[:, kept], weights[kept] * size.to(weights)
        weights = (weights / weights.sum()).unsqueeze(0)
        return cls(means, posterior.gaussian_covariance, weights, posterior.prior_variance, scale)

    def scenario_means(self) -> Tensor:
        """`E[f 1(scenario)]` in units of the outcome, `M x N`; the means themselves if there is one scenario."""
        probability = self.weights.sum(-1, keepdim=True)
        return self.scale.location * probability + self.scale.scale * (self.weights @ self.means.mT)

    def weighted_sum(self, weight: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A weighted sum at `B x k` points: means, `B x S`, variance, `B`, and covariance with all points, `B x N`."""
        covariance = weight @ self.covariance[items]
        variance = covariance.gather(-1, items) @ weight
        rounding = torch.finfo(self.means.dtype).eps * (self.prior_variance[items] @ weight.square())
        return weight @ self.means[items], variance.maximum(rounding), covariance

    def standardised_cutpoints(self, reading: Reading, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cut-points in deviations of the reading from its means, `B x C x S`; deviations, `B`; covariance, `B x N`."""
        means, variance, covariance = self.weighted_sum(reading.weight[0], items)
        sd = (variance + reading.variance).sqrt()
        distance = reading.cutpoints[0].unsqueeze(-1) - means.unsqueeze(-2)
        return distance / sd[:, None, None], sd, covariance

    def standard_normals(self, num: int) -> Tensor:
        """Standard normal numbers of Sobol coordinates that the means do not depend on, `num x S`."""
        like, d = self.means, self.num_sobol + num
        samples = draw_sobol_normal_samples(d=d, n=like.shape[-1], device=like.device, dtype=like.dtype, seed=0)
        return samples[:, self.num_sobol :].mT

    def values_at(self, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values drawn at `B x k` points in mirrored pairs, `B x k x 2S`, the standard normals that they are made of,
        `k x 2S`, and the covariance of all points with these, `B x N x k`.
        """
        normals = self.standard_normals(items.shape[-1])
        normals = torch.cat([normals, -normals], dim=-1)
        block = self.covariance[items.unsqueeze(-1), items.unsqueeze(-2)]
        root = cholesky_with_relative_jitter(block, scale=self.prior_variance[items])
        covariance = self.covariance[:, items].movedim(0, 1)  # B x N x k
        whitened = torch.linalg.solve_triangular(root, covariance.mT, upper=False).mT
        values = self.means[items].repeat(1, 1, 2) + root @ normals
        return values, normals, whitened


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """The distribution of answers to questions of one kind given the latent function, in units of the latter.

    Args:
        readings: What an answer reads, by each of the laws that answers are an average of; for numbers a reading
            without cut-points. All have the same weights and outcomes.
        shares: The weights of the laws; `None` for a single one.
        cutpoints: For numbers the ends of cells of a number at each point, `N x C`; else `None`.
    """

    readings: Sequence[Reading]
    shares: Tensor | None = None
    cutpoints: Tensor | None = None

    @classmethod
    def of(
        cls,
        member: Any,
        kind: type[Observation],
        num_points: int | None = None,
        judge: int | str | None = None,
    ) -> AnswerModel:
        """Answers of a judge, of the model's own if `None`, of a kind with outcomes."""
        laws = (
            member.fitted().answer_laws(kind) if judge is None else member.for_judge(judge).fitted().answer_laws(kind)
        )
        readings = []
        for law in laws:
            reading = law.likelihood.reading(kind, member.datapoints, member.outcome_scale, num_points)
            factor = law.factor.to(reading.noise)
            # a reading of c f has the cut-points and the deviation of one of f over c
            noise = reading.noise / factor.square()
            readings.append(replace(reading, cutpoints=reading.cutpoints / factor, noise=noise))
        return cls(readings, torch.stack([law.weight for law in laws]).to(readings[0].noise))

    def with_noise(self, variances: Tensor) -> AnswerModel:
        """Answers whose cut-points have variances, each worth one with that much more noise."""
        readings = []
        for reading in self.readings:
            size = reading.weight.square().sum(-1, keepdim=True)  # a reading has this times the noise
            readings.append(replace(reading, noise=reading.noise + (variances / size).mean()))
        return replace(self, readings=readings)

    @property
    def reading(self) -> Reading:
        """The first reading, whose weights and outcomes are those of all."""
        return self.readings[0]

    @property
    def num_outcomes(self) -> int:
        """The number of outcomes."""
        return self.reading.num_outcomes if self.cutpoints is None else self.cutpoints.shape[-1] + 1

    def average(self, of_reading: Callable[[Reading], Tensor]) -> Tensor:
        """The average over laws of what is linear in the probabilities of outcomes."""
        values = [of_reading(reading) for reading in self.readings]
        if self.shares is None or len(values) == 1:
            return values[0]
        return torch.tensordot(self.shares, torch.stack(values), dims=1)

    def bounds(self, reading: Reading, items: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of the outcomes of a single reading, `1 x O` or for numbers `B x O`."""
        if self.cutpoints is None:
            lower, upper = reading.bounds(torch.arange(self.num_outcomes, device=items.device))
            return lower.mT, upper.mT
        cutpoints = self.cutpoints[items[:, 0]]
        end = torch.full_like(cutpoints[:, :1], torch.inf)
        return torch.cat([-end, cutpoints], dim=-1), torch.cat([cutpoints, end], dim=-1)

    def probabilities(self, values: Tensor, items: Tensor) -> Tensor:
        """The probabilities of outcomes given `B x S x k` values at `B x k` points, `B x S x O`."""
        if self.cutpoints is None:
            return self.average(lambda reading: reading.probabilities(values))
        lower, upper = self.bounds(self.reading, items)
        return cell_probabilities(lower.unsqueeze(-2), upper.unsqueeze(-2), values, self.reading.variance.sqrt())

    def of_sums(self, value: Tensor, variance: Tensor | float) -> Tensor:
        """Those of what a single reading reads without noise, `...`, with a variance besides its own; `... x O`."""
        return self.average(lambda reading: reading.log_outcome_probabilities(value, variance).exp())

    def smooth_probabilities(self, values: Tensor) -> Tensor:
        """The same given values, `... x k`, with derivatives, `... x O`."""
        return self.average(lambda reading: reading.log_probabilities(values).exp())


def given_pending(
    mixtures: Sequence[LatentMixture],
    answers: Sequence[AnswerModel],
    item: Tensor,
    seed: int,
    max_scenarios: int = NUM_SCENARIOS,
) -> list[LatentMixture]:
    """The members' mixtures with a question pending: scenarios for its outcomes, sampled if more than a number."""
    drawn = [mixture.values_at(item.unsqueeze(0)) for mixture in mixtures]
    joint = []
    for mixture, answer, (values, _, _) in zip(mixtures, answers, drawn, strict=True):
        p = answer.probabilities(values.mT, item.unsqueeze(0))[0]  # 2S x O
        weights = mixture.weights.repeat(1, 2) / 2
        joint.append((weights.unsqueeze(1) * p.mT).flatten(0, 1))  # scenarios x 2S
    probability = torch.stack([weights.sum(-1) for weights in joint]).mean(0)
    if len(probability) > max_scenarios:
        generator = torch.Generator(probability.device).manual_seed(seed)
        chosen = torch.multinomial(probability, max_scenarios, replacement=True, generator=generator)
        factor = (probability[chosen] * max_scenarios).unsqueeze(-1)
        joint = [weights[chosen] / factor for weights in joint]
    new = []
    for mixture, weights, (_, normals, whitened) in zip(mixtures, joint, drawn, strict=True):
        means = mixture.means.repeat(1, 2) + whitened[0] @ normals
        k, S = len(normals), mixture.means.shape[-1]
        if 2 * S > NUM_DRAWS:  # every draw with one of its two values, by a Sobol coordinate of its own
            is_second = mixture.standard_normals(k + 1)[-1] > 0
            kept = torch.arange(S, device=means.device) + S * is_second.long()
            before = weights.sum(-1, keepdim=True)
            means, weights = means[:, kept], weights[:, kept]
            weights = weights * (before / weights.sum(-1, keepdim=True).clamp(min=TINY))
        covariance = mixture.covariance - whitened[0] @ whitened[0].mT
        num_sobol = mixture.num_sobol + k + 1
        new.append(replace(mixture, means=means, covariance=covariance, weights=weights, num_sobol=num_sobol))
    return new


def cells_of_numbers(mixtures: Sequence[LatentMixture], noise: Sequence[Tensor]) -> list[Tensor]:
    """Cut-points of numbers between cells of about equal probability, `N x (NUM_CELLS - 1)` in each member's units."""
    means, variances = [], []
    for mixture, noise_variance in zip(mixtures, noise, strict=True):
        weights = mixture.weights.sum(0) / mixture.weights.sum()
        mean = mixture.means @ weights
        between = (mixture.means - mean.unsqueeze(-1)).square() @ weights
        variance = between + mixture.covariance.diagonal() + noise_variance
        means.append(mixture.scale.unstandardize(mean))
        variances.append(variance * mixture.scale.scale**2)
    of_members = torch.stack(means)
    mean = of_members.mean(0)
    variance = torch.stack(variances).mean(0) + (of_members - mean).square().mean(0)
    levels = torch.arange(1, NUM_CELLS, dtype=mean.dtype, device=mean.device) / NUM_CELLS
    cutpoints = mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * torch.special.ndtri(levels)
    return [mixture.scale.standardize(cutpoints) for mixture in mixtures]


def joint_draws(mixture: LatentMixture, num: int, seed: int) -> Tensor:
    """Joint draws of the function at all points, `N x num`, of components in proportion to their probabilities."""
    means, weights = mixture.means, mixture.weights.sum(0)
    levels = (torch.arange(num, device=means.device) + 0.5) / num
    component = torch.searchsorted(weights.cumsum(0) / weights.sum(), levels.to(weights))
    component = component.clamp(max=len(weights) - 1)
    root = cholesky_with_relative_jitter(mixture.covariance, scale=mixture.prior_variance)
    generator = torch.Generator(means.device).manual_seed(seed)
    normals = torch.randn(len(means), num, dtype=means.dtype, device=means.device, generator=generator)
    return means[:, component] + root @ normals


def expected_gain(
    mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], points: Tensor, items: Tensor
) -> Tensor:
    """The expected rise of the largest posterior mean at some points by answers at `B x k` points, `B`; smooth."""
    is_single = answers[0].reading.is_single
    outcome_means = _single_outcome_means if is_single else _joint_outcome_means
    before = torch.stack([mixture.scenario_means()[:, points] for mixture in mixtures]).mean(0).amax(-1).sum()
    num_terms = mixtures[0].weights.numel() * (1 if is_single else 2 * items.shape[-1])
    values = []
    for part in items.split(max(1, MAX_ENTRIES // (num_terms * answers[0].num_outcomes))):
        of_members = [outcome_means(*member, part, points) for member in zip(mixtures, answers, strict=True)]
        best = torch.stack(of_members).mean(0).amax(-1)  # B x M x O
        values.append(best.sum((-1, -2)) - before)
    return torch.cat(values)


def _single_outcome_means(mixture: LatentMixture, answer: AnswerModel, items: Tensor, points: Tensor) -> Tensor:
    """`E[f(x) 1(o)]` of a single reading and each scenario, `B x M x O x C`, in units of the outcome."""
    return answer.average(lambda reading: _outcome_means_of(reading, mixture, answer, items, points))


def _outcome_means_of(
    reading: Reading, mixture: LatentMixture, answer: AnswerModel, items: Tensor, points: Tensor
) -> Tensor:
    """The same of one law of answers."""
    means, variance, covariance = mixture.weighted_sum(reading.weight[0], items)
    sd = (variance + reading.variance).sqrt()[:, None, None]  # B x 1 x 1
    lower, upper = answer.bounds(reading, items)
    lower = standardise(lower.unsqueeze(-1), means.unsqueeze(-2), sd)  # B x O x S
    upper = standardise(upper.unsqueeze(-1), means.unsqueeze(-2), sd)
    slip = reading.slip_of(torch.arange(answer.num_outcomes, device=items.device))
    p = reading.attention * (normal_cdf(upper) - normal_cdf(lower)) + slip.unsqueeze(-1)
    p = p.unsqueeze(1) * mixture.weights.unsqueeze(1)  # B x M x O x S
    density = log_normal_density(lower).exp() - log_normal_density(upper).exp()  # B x O x S
    shift = reading.attention * (density @ mixture.weights.mT).mT / sd  # B x M x O
    latent = p @ mixture.means[points].mT + shift.unsqueeze(-1) * covariance[:, None, None, points]
    return mixture.scale.location * p.sum(-1, keepdim=True) + mixture.scale.scale * latent


def _joint_outcome_means(mixture: LatentMixture, answer: AnswerModel, items: Tensor, points: Tensor) -> Tensor:
    """The same of outcomes that depend on several values."""
    values, normals, whitened = mixture.values_at(items)
    p = answer.probabilities(values.mT, items).mT.unsqueeze(1)  # B x 1 x O x 2S
    p = p * mixture.weights.repeat(1, 2).unsqueeze(1) / 2  # B x M x O x 2S
    from_means = p @ mixture.means[points].repeat(1, 2).mT
    from_values = (p @ normals.mT) @ whitened[:, points].mT.unsqueeze(1)
    return mixture.scale.location * p.sum(-1, keepdim=True) + mixture.scale.scale * (from_means + from_values)

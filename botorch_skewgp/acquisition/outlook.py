r"""The look-ahead to the answer of a question: its information about a target, and what it is expected to gain.

The posterior at all points of a set is computed once: given draw `s` the latent function is normal with mean `m_s` and
a covariance that all draws share. Values of questions are linear algebra on these, for hundreds of questions at a time,
and depend on their `Reading` alone: each is a sum over outcomes `o` of terms joint with a target.

- The best mean (the knowledge gradient): `sum_o max_x E[f(x) 1(o)] - max_x E[f(x)]` ([Frazier2009knowledge]_). For a
  single reading `d`, noise included, `f(x)` and `d` are jointly normal given `s`. With `u` and `l` the ends of the
  outcome in standard deviations of `d` from its mean, `E[f(x) 1(o)] = sum_s p_s [m_s(x) (Phi(u) - Phi(l)) + Cov(f(x),
  d) (phi(l) - phi(u)) / sd(d)]`: the posterior mean given the outcome times its probability, without a ratio or new
  draws ([Wu2026knowledge]_). Where an answer may be a slip these terms are of attentive ones, and a slip of probability
  `e` adds `e m_s(x)`. Joint outcomes (a choice, a vote) are averaged over values of the function at the question's
  points, drawn in mirrored pairs for each draw `s`, with the noise integrated out. A number is a grade on a fine scale:
  its predictive distribution is cut into cells of equal probability, which is a lower bound that rises with their
  number.
- The best point: `I(o; argmax_x f(x))` with joint draws of the function at all points, where all but the few points
  that are likeliest to be best count as one ([Hennig2012entropy]_). The plug-in estimate is too large, more so for many
  outcomes, by the expected shortfall of an entropy of averages; its first order is subtracted ([Miller1955note]_, here
  for averages of probabilities).
- The function itself: `I(o; f) = H(o) - E[H(o | f)]`, for a single reading, see `answer_integrals`.
- The cell of another reading, at each of several places: `I(o; c)`, from bivariate normal probabilities that all draws
  share a correlation of.

.. [Frazier2009knowledge] Frazier, Powell, Dayanik. The knowledge-gradient policy for correlated normal beliefs. 2009.
.. [Hennig2012entropy] Hennig, Schuler. Entropy search for information-efficient global optimization. JMLR 13, 2012.
.. [Miller1955note] G. A. Miller. Note on the bias of information estimates. Information Theory in Psychology, 1955.
.. [Wu2026knowledge] K. Wu, J. R. Gardner. Knowledge gradient for preference learning. arXiv 2601.22335, 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.acquisition.answer_integrals import NUM_CDF_NODES, bivariate_normal_cdf, expected_entropy
from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows.reading import Reading, cell_probabilities
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.univariate import log_normal_density, normal_cdf, standardise

NUM_DRAWS = 512  # of a mixture that look-aheads go over
NUM_CELLS = 16  # of a number
NUM_LIKELY = 12  # points that count by themselves as the best one
NUM_SCENARIOS = 6  # joint outcomes of pending questions, beyond which they are sampled
TINY = 1e-300  # least divisor
MAX_ENTRIES = 2**22  # of a tensor over questions, outcomes and draws


@dataclass(frozen=True, eq=False)
class Belief:
    """The latent function at `N` points: a mixture of normal distributions that share a covariance."""

    means: Tensor  # N x S
    covariance: Tensor  # N x N
    weights: Tensor  # M x S: of components under each of M scenarios, joint outcomes of pending questions
    variance: Tensor  # N: the prior's, the scale of the covariance's rounding
    scale: OutcomeScale
    num_used: int = 0  # Sobol coordinates of which the means are made: those of pending questions

    @classmethod
    def of(cls, posterior: SkewGPPosterior, scale: OutcomeScale, num_draws: int = NUM_DRAWS) -> Belief:
        """The belief of a posterior of one output, with at most `num_draws` of its draws."""
        if posterior.mixture.num_draws == 1:  # joint outcomes are averages over values drawn for each draw
            posterior = posterior.with_draws_repeated(num_draws)
        means, weights = posterior.component_means, posterior.probabilities.expand(posterior.component_means.shape[-1])
        total = means.shape[-1]
        step = -(-total // num_draws)
        if step > 1:  # one random draw of each group of neighbours, which are alike
            first = torch.arange(0, total, step)
            size = (total - first).clamp(max=step)
            kept = first + (torch.rand(len(first), generator=torch.Generator().manual_seed(0)) * size).long()
            means, weights = means[:, kept.to(means.device)], weights[kept.to(means.device)] * size.to(weights)
        weights = (weights / weights.sum()).unsqueeze(0)
        return cls(means, posterior.gaussian_covariance, weights, posterior.prior_variance, scale)

    def mean(self) -> Tensor:
        """`E[f 1(scenario)]` in units of the outcome; `M x N`, the means themselves if there is one scenario."""
        own = self.weights.sum(-1, keepdim=True)
        return self.scale.location * own + self.scale.scale * (self.weights @ self.means.mT)

    def read(self, weight: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A weighted sum at `B x k` points: means, `B x S`, variance, `B`, and covariance with all points, `B x N`."""
        crossed = weight @ self.covariance[items]
        least = torch.finfo(self.means.dtype).eps * (self.variance[items] @ weight.square())  # what rounding leaves
        return weight @ self.means[items], (crossed.gather(-1, items) @ weight).maximum(least), crossed

    def standardised(self, reading: Reading, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cut-points of a reading in standard deviations, `B`, from its means, `B x C x S`; its covariance, `B x N`."""
        means, variance, crossed = self.read(reading.weight[0], items)
        sd = (variance + reading.variance).sqrt()
        return (reading.cutpoints[0].unsqueeze(-1) - means.unsqueeze(-2)) / sd[:, None, None], sd, crossed

    def white_numbers(self, num: int) -> Tensor:
        """Sobol coordinates that the means do not depend on, as standard normal numbers; `num x S`."""
        first, like = self.num_used, self.means
        every = draw_sobol_normal_samples(d=first + num, n=like.shape[-1], device=like.device, dtype=like.dtype, seed=0)
        return every[:, first:].mT

    def at(self, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values at `B x k` points in mirrored pairs, `B x k x 2S`; white numbers, `k x 2S`, and gains, `B x N x k`."""
        white = self.white_numbers(items.shape[-1])
        white = torch.cat([white, -white], dim=-1)
        block = self.covariance[items.unsqueeze(-1), items.unsqueeze(-2)]
        root = cholesky_with_relative_jitter(block, scale=self.variance[items])
        crossed = self.covariance[:, items].movedim(0, 1)  # B x N x k
        gain = torch.linalg.solve_triangular(root, crossed.mT, upper=False).mT
        return self.means[items].repeat(1, 1, 2) + root @ white, white, gain


@dataclass(frozen=True, eq=False)
class Asked:
    """The reading of questions of one kind, in units of the latent function."""

    reading: Reading  # for numbers one without cut-points
    cutpoints: Tensor | None = None  # for numbers: the ends of cells of a number at each point, N x C

    @property
    def num_outcomes(self) -> int:
        """The number of outcomes."""
        return self.reading.num_outcomes if self.cutpoints is None else self.cutpoints.shape[-1] + 1

    def bounds(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Lower and upper bounds of the outcomes of a single reading, `1 x O` or for numbers `B x O`."""
        if self.cutpoints is None:
            outcome = torch.arange(self.num_outcomes, device=items.device)
            lower, upper = (bound.squeeze(-1).unsqueeze(0) for bound in self.reading.bounds(outcome))
            return lower, upper
        cuts = self.cutpoints[items[:, 0]]
        end = torch.full_like(cuts[:, :1], torch.inf)
        return torch.cat([-end, cuts], dim=-1), torch.cat([cuts, end], dim=-1)

    def probabilities(self, values: Tensor, items: Tensor) -> Tensor:
        """The probabilities of outcomes given `B x S x k` values at `B x k` points, `B x S x O`."""
        if self.cutpoints is None:
            return self.reading.probabilities(values)
        lower, upper = (bound.unsqueeze(-2) for bound in self.bounds(items))
        return cell_probabilities(lower, upper, values, self.reading.variance.sqrt())


def after(
    beliefs: Sequence[Belief], asks: Sequence[Asked], item: Tensor, seed: int, most: int = NUM_SCENARIOS
) -> list[Belief]:
    """The members' beliefs with a question pending: scenarios for its outcomes, sampled if more than `most`."""
    drawn, joint = [belief.at(item.unsqueeze(0)) for belief in beliefs], []
    for belief, ask, (values, _, _) in zip(beliefs, asks, drawn, strict=True):
        p = ask.probabilities(values.mT, item.unsqueeze(0))[0]  # 2S x O
        joint.append(((belief.weights.repeat(1, 2) / 2).unsqueeze(1) * p.mT).flatten(0, 1))  # scenarios x 2S
    own = torch.stack([weights.sum(-1) for weights in joint]).mean(0)
    if len(own) > most:
        generator = torch.Generator(own.device).manual_seed(seed)
        chosen = torch.multinomial(own, most, replacement=True, generator=generator)
        joint = [weights[chosen] / (own[chosen] * most).unsqueeze(-1) for weights in joint]
    new = []
    for belief, weights, (_, white, gain) in zip(beliefs, joint, drawn, strict=True):
        means = belief.means.repeat(1, 2) + gain[0] @ white
        if means.shape[-1] > NUM_DRAWS:  # every draw with one of its two values, by a Sobol coordinate of its own
            coin, S = belief.white_numbers(len(white) + 1)[-1], belief.means.shape[-1]
            which = torch.arange(S, device=means.device) + S * (coin > 0).long()
            kept = weights[:, which]
            weights = kept * (weights.sum(-1, keepdim=True) / kept.sum(-1, keepdim=True).clamp(min=TINY))
            means = means[:, which]
        covariance, num_used = belief.covariance - gain[0] @ gain[0].mT, belief.num_used + len(white) + 1
        new.append(replace(belief, means=means, covariance=covariance, weights=weights, num_used=num_used))
    return new


def cells_of_numbers(beliefs: Sequence[Belief], noise: Sequence[Tensor]) -> list[Tensor]:
    """Cut-points of numbers between cells of about equal probability, `N x (NUM_CELLS - 1)` in each member's units."""
    means, variances = [], []
    for belief, variance in zip(beliefs, noise, strict=True):
        weights = belief.weights.sum(0) / belief.weights.sum()
        mean = belief.means @ weights
        spread = (belief.means - mean.unsqueeze(-1)).square() @ weights + belief.covariance.diagonal() + variance
        means.append(belief.scale.unstandardize(mean))
        variances.append(spread * belief.scale.scale**2)
    every = torch.stack(means)
    centre = every.mean(0)
    deviation = (torch.stack(variances).mean(0) + (every - centre).square().mean(0)).sqrt()
    levels = torch.arange(1, NUM_CELLS, dtype=centre.dtype, device=centre.device) / NUM_CELLS
    cuts = centre.unsqueeze(-1) + deviation.unsqueeze(-1) * torch.special.ndtri(levels)
    return [belief.scale.standardize(cuts) for belief in beliefs]


def joint_draws(belief: Belief, num: int, seed: int) -> Tensor:
    """Joint draws of the function at all points, `N x num`, of components in proportion to their probabilities."""
    means, weights = belief.means, belief.weights.sum(0)
    generator = torch.Generator(means.device).manual_seed(seed)
    level = (torch.arange(num, device=means.device) + 0.5) / num
    which = torch.searchsorted(weights.cumsum(0) / weights.sum(), level.to(weights)).clamp(max=len(weights) - 1)
    root = cholesky_with_relative_jitter(belief.covariance, scale=belief.variance)
    noise = torch.randn(len(means), num, dtype=means.dtype, device=means.device, generator=generator)
    return means[:, which] + root @ noise


def gain(beliefs: Sequence[Belief], asks: Sequence[Asked], points: Tensor, items: Tensor) -> Tensor:
    """The expected rise of the best posterior mean of points by `B x k` questions, in units of the outcome; `B`."""
    first, is_single = beliefs[0], asks[0].reading.is_single
    draws = first.means.shape[-1] * first.weights.shape[0] * (1 if is_single else 2 * items.shape[-1])
    of_outcomes = _single_outcome_means if is_single else _joint_outcome_means
    before = torch.stack([belief.mean()[:, points] for belief in beliefs]).mean(0).amax(-1).sum()
    values = []
    for part in items.split(max(1, MAX_ENTRIES // (draws * asks[0].num_outcomes))):
        means = [of_outcomes(belief, ask, part, points) for belief, ask in zip(beliefs, asks, strict=True)]
        values.append(torch.stack(means).mean(0).amax(-1).sum((-1, -2)) - before)
    return torch.cat(values)


def _single_outcome_means(belief: Belief, ask: Asked, items: Tensor, points: Tensor) -> Tensor:
    """Means joint with scenarios and outcomes, `B x M x O x C`, in units of the outcome."""
    read, variance, crossed = belief.read(ask.reading.weight[0], items)
    scale = (variance + ask.reading.variance).sqrt()[:, None, None]  # B x 1 x 1
    lower, upper = (standardise(b.unsqueeze(-1), read.unsqueeze(-2), scale) for b in ask.bounds(items))  # B x O x S
    attention, slip = ask.reading.attention, ask.reading.slip_of(torch.arange(ask.num_outcomes, device=items.device))
    inside = attention * (normal_cdf(upper) - normal_cdf(lower)) + slip.unsqueeze(-1)
    mass = inside.unsqueeze(1) * belief.weights.unsqueeze(1)  # B x M x O x S
    rise = log_normal_density(lower).exp() - log_normal_density(upper).exp()  # B x O x S
    shift = attention * (rise @ belief.weights.mT).mT / scale  # B x M x O
    latent = mass @ belief.means[points].mT + shift.unsqueeze(-1) * crossed[:, None, None, points]
    return belief.scale.location * mass.sum(-1, keepdim=True) + belief.scale.scale * latent


def _joint_outcome_means(belief: Belief, ask: Asked, items: Tensor, points: Tensor) -> Tensor:
    """The same of outcomes that hang on several values."""
    values, white, gain = belief.at(items)
    probabilities = ask.probabilities(values.mT, items).mT.unsqueeze(1)  # B x 1 x O x 2S
    mass = probabilities * belief.weights.repeat(1, 2).unsqueeze(1) / 2  # B x M x O x 2S
    latent = mass @ belief.means[points].repeat(1, 2).mT + (mass @ white.mT) @ gain[:, points].mT.unsqueeze(1)
    return belief.scale.location * mass.sum(-1, keepdim=True) + belief.scale.scale * latent


def information_about_function(beliefs: Sequence[Belief], asks: Sequence[Asked], items: Tensor) -> Tensor:
    """The expected information of single readings at `B x k` points about the function, in nats, `B`; smooth."""
    answers, known = [], []
    for belief, ask in zip(beliefs, asks, strict=True):
        means, variance, _ = belief.read(ask.reading.weight[0], items)
        log_p = ask.reading.log_outcome_probabilities(means, variance.unsqueeze(-1))  # B x S x O
        answers.append(belief.weights @ log_p.exp())  # joint with scenarios, B x M x O
        known.append(expected_entropy(means, variance, belief.weights.sum(0), ask.reading))
    joint = torch.stack(answers).mean(0)
    return entropy(joint.flatten(-2)) - entropy(joint.sum(-1)) - torch.stack(known).mean(0)


def information_about_best(beliefs: Sequence[Belief], asks: Sequence[Asked], points: Tensor, items: Tensor) -> Tensor:
    """The expected information of answers at `B x k` points about which of some points is best, in nats, `B`."""
    chances = torch.stack([belief.weights.sum(-1) for belief in beliefs]).mean(0)
    values = []
    for scenario in range(len(chances)):
        given = [replace(belief, weights=belief.weights[scenario : scenario + 1]) for belief in beliefs]
        values.append(_information_in_scenario(given, asks, points, items))
    return (chances @ torch.stack(values)).clamp(min=0)  # the correction of the bias can overshoot


def _information_in_scenario(beliefs: Sequence[Belief], asks: Sequence[Asked], points: Tensor, items: Tensor) -> Tensor:
    draws = [joint_draws(belief, 2 * NUM_DRAWS, seed=0) for belief in beliefs]
    best = torch.cat([values[points].argmax(0) for values in draws])
    counts = torch.bincount(best, minlength=len(points))
    likely = counts.argsort(descending=True)[:NUM_LIKELY]
    group = torch.full_like(counts, len(likely)).scatter(0, likely, torch.arange(len(likely), device=best.device))
    groups = torch.nn.functional.one_hot(group[best], len(likely) + 1).to(draws[0])  # draws x groups
    share = groups.mean(0)
    values = []
    for part in items.split(max(1, MAX_ENTRIES // (len(groups) * asks[0].num_outcomes))):
        known = [ask.probabilities(f[part].mT, part) for ask, f in zip(asks, draws, strict=True)]
        p = torch.cat(known, dim=-2)  # B x draws x O
        joint = groups.mT @ p / len(groups)  # B x groups x O
        square = groups.mT @ p.square() / len(groups)
        alone = _unbiased_entropy(joint.sum(-2), square.sum(-2), share.sum(), len(groups)).sum(-1)
        given = _unbiased_entropy(joint, square, share.unsqueeze(-1), len(groups)).sum((-1, -2))
        values.append(alone - given + torch.special.entr(share).sum())
    return torch.cat(values)


def information_about_cells(
    beliefs: Sequence[Belief], asks: Sequence[Asked], told: Sequence[Reading], places: Tensor, items: Tensor
) -> Tensor:
    """The expected information of answers at `B x k` points about the cell of a reading at `R x j`, on average, `B`."""
    values = []
    for part in items.split(max(1, MAX_ENTRIES // (2 * len(places) * beliefs[0].means.shape[-1]))):
        members = zip(beliefs, asks, told, strict=True)
        joint = torch.stack([_joint(belief, ask.reading, part, of, places) for belief, ask, of in members]).mean(0)
        shared = entropy(joint.sum(-1)) + entropy(joint.sum(-2)) - entropy(joint.flatten(-2))
        values.append(shared.mean(-1))
    return torch.cat(values)


def _joint(belief: Belief, asked: Reading, items: Tensor, told: Reading, places: Tensor) -> Tensor:
    """The probabilities of outcomes (first) and cells (last), each from the lowest, `B x R x O x T`."""
    weights = belief.weights[0]
    h, sd, crossed = belief.standardised(asked, items)
    k, sd_told, _ = belief.standardised(told, places)
    covariance = crossed[:, places] @ told.weight[0]  # B x R
    correlation = (covariance / (sd.unsqueeze(-1) * sd_told)).clamp(-1, 1)  # rounding only
    # the cdf at all pairs of cut-points, with those at -inf and inf around
    inner = torch.stack(
        [torch.stack([_mixture_cdf(a, b, correlation, weights) for b in k.unbind(1)], -1) for a in h.unbind(1)], -2
    )
    of_answer, of_told = normal_cdf(h) @ weights, normal_cdf(k) @ weights  # B x (O - 1), R x (T - 1)
    inner = torch.cat([inner, of_answer[:, None, :, None].expand(*inner.shape[:-1], 1)], dim=-1)
    last = torch.nn.functional.pad(of_told, (0, 1), value=1.0)[:, None].expand(len(items), -1, -1, -1)
    inner = torch.cat([inner, last], dim=-2)
    cells = torch.nn.functional.pad(inner, (1, 0, 1, 0)).diff(dim=-1).diff(dim=-2)
    for reading, axis in ((asked, -2), (told, -1)):
        if reading.slips is not None:
            slips = reading.slip_of(reading.outcomes[:, 0, 0].argsort())
            slips = slips.unsqueeze(-1) if axis == -2 else slips
            cells = reading.attention * cells + slips * cells.sum(axis, keepdim=True)
    return cells


def entropy(probabilities: Tensor) -> Tensor:
    """The entropy of `... x K` probabilities; impossible outcomes add nothing, and have no gradient."""
    possible = probabilities > torch.finfo(probabilities.dtype).tiny
    return torch.special.entr(torch.where(possible, probabilities, 1.0)).sum(-1)


def _mixture_cdf(h: Tensor, k: Tensor, correlation: Tensor, weights: Tensor) -> Tensor:
    """The bivariate cdf at `h`, `B x S`, and `k`, `R x S`, averaged over components; `B x R` like the correlation."""
    size, lower, value = correlation.detach().abs(), -1.0, torch.zeros_like(correlation)
    for upper in (*NUM_CDF_NODES, 1.0):
        i, j = ((size > lower) & (size <= upper)).nonzero(as_tuple=True)
        if len(i):
            cdf = bivariate_normal_cdf(h[i], k[j], correlation[i, j].unsqueeze(-1))
            value = value.index_put((i, j), cdf @ weights)
        lower = upper
    return value


def _unbiased_entropy(mean: Tensor, square: Tensor, share: Tensor, num: int) -> Tensor:
    """`-m log(m)` of averages `m` over `num` draws, of which a share counts, without its bias of first order."""
    variance = (square - mean.square() / share.clamp(min=TINY)).clamp(min=0)  # of `m` given the share, times `num`
    return torch.special.entr(mean) + variance / (2 * num * mean.clamp(min=TINY))  # -m log(m) bends by -1 / m

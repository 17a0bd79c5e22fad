"""The posterior by simulation of how observations come about, without rows, likelihood objects or truncated normals.

The latent function is drawn at all points from its Gaussian prior (conditioned on exact numbers first), the noise of
each item is drawn, and what follows is compared with what was seen. Where a draw would mostly be thrown away, the last
noise that matters is integrated out, so that draws carry a probability as their weight. All standard errors are those
of influence functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from benchmarks._kinds import Noise
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    LabelPreference,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)

LEVELS = torch.tensor([0.025, 0.5, 0.975], dtype=torch.float64)
NOISE_DRAWS = 6  # of a ranking's noise for each draw of the latent function
ndtr = torch.special.ndtr


Parameters = partial(
    Noise, numbers=0.15, labels=0.6, grades=0.8, cutpoints=(-0.5, 0.7), items=0.5, tie_width=0.4,
    strengths=(0.0, 0.6, 1.5), level_gap=0.7, threshold=0.3, validity=0.4, classes=0.7,
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A value with its Monte Carlo standard error."""

    value: Tensor
    error: Tensor


@dataclass(frozen=True)
class Reference:
    """What is known about the latent function at the test points, and the log evidence."""

    mean: Estimate
    sd: Estimate
    skewness: Estimate
    quantiles: Estimate
    log_evidence: Estimate
    effective_size: float

    def statistics(self) -> dict[str, Estimate]:
        names = ("mean", "sd", "skewness", "quantiles")
        return {name: getattr(self, name) for name in names}


def rbf(A: Tensor, B: Tensor, outputscale: float, lengthscale: float) -> Tensor:
    """The RBF covariance, written out."""
    return outputscale * torch.exp(-0.5 * (A.unsqueeze(-2) - B.unsqueeze(-3)).square().sum(-1) / lengthscale**2)


def rbf_columns(
    A: Tensor, reads_A: Tensor, B: Tensor, reads_B: Tensor, outputscale: float, lengthscale: float
) -> Tensor:
    """The same between values (-1 among what is read) and slopes in inputs (their number), written out."""
    K = rbf(A, B, outputscale, lengthscale)
    difference = (A.unsqueeze(-2) - B.unsqueeze(-3)) / lengthscale**2

    def along(reads: Tensor) -> Tensor:  # the difference in the input read
        return difference.gather(-1, reads.clamp(min=0).unsqueeze(-1)).squeeze(-1)

    in_A = reads_A.unsqueeze(-1).expand_as(K)
    in_B = reads_B.expand_as(K)
    same = (in_A == in_B).to(K) / lengthscale**2
    slopes = torch.where(in_A >= 0, same - along(in_A) * along(in_B), along(in_B))
    return K * torch.where(in_B >= 0, slopes, torch.where(in_A >= 0, -along(in_A), 1.0))


def normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, dtype=like.dtype, generator=generator)


def inside(f: Tensor, lower: Tensor | float, upper: Tensor | float, variance: float | Tensor) -> Tensor:
    """The probability that `f` plus noise is in an interval."""
    sd = torch.as_tensor(variance, dtype=f.dtype).sqrt()
    lower, upper = (torch.as_tensor(x, dtype=f.dtype) for x in (lower, upper))
    return ndtr((upper - f) / sd) - ndtr((lower - f) / sd)


def truncated(lower: Tensor, upper: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Standard normal draws in intervals by the inverse cdf, and the intervals' probabilities."""
    below, above = ndtr(lower), ndtr(upper)
    uniform = torch.rand(torch.broadcast_shapes(below.shape, above.shape), dtype=torch.float64, generator=generator)
    uniform = (below + (above - below) * uniform).clamp(1e-300, 1 - 1e-16)
    return torch.special.ndtri(uniform), above - below


def in_order(f: Tensor, ranks: list[int], noise: float, generator: torch.Generator) -> Tensor:
    """The probability of an order of `N x k` items, one noisy utility drawn after the other below those before it."""
    sd, weight = math.sqrt(noise), torch.ones_like(f[:, 0])
    worst = torch.full_like(weight, math.inf)
    for rank in sorted(set(ranks)):
        group = f[:, [i for i, r in enumerate(ranks) if r == rank]]
        upper = (worst.unsqueeze(-1) - group) / sd
        z, mass = truncated(torch.full_like(upper, -math.inf), upper, generator)
        weight = weight * mass.prod(-1)
        worst = (group + sd * z).amin(-1)
    return weight


def vote(a: Tensor, b: Tensor, answer: int, p: Noise, generator: torch.Generator) -> Tensor:
    """The probability of a page's button given one draw of the first item's noise: an interval of the other item."""
    first = a + math.sqrt(p.items) * normal(a, generator)
    low, high = first - p.tie_width, first + p.tie_width  # neither is better
    if answer < 2:
        return inside(b, *((-math.inf, low) if answer == 0 else (high, math.inf)), p.items)
    middle = (2 * p.threshold - first, 2 * (p.threshold + p.level_gap) - first)  # from average to the second item
    below, above = ((middle[0], middle[1]), (-math.inf, middle[0]), (middle[1], math.inf))[answer - 2]
    lower, upper = (torch.as_tensor(bound, dtype=a.dtype).expand_as(a) for bound in (below, above))
    lower, upper = torch.maximum(lower, low), torch.minimum(upper, high)
    return torch.where(lower < upper, inside(b, lower, torch.maximum(lower, upper), p.items), 0.0)


def probability(observation: Observation, f: Tensor, p: Noise, generator: torch.Generator) -> Tensor:
    """The probability of what was seen, given `N` draws of the latent function and of some of the noise."""
    N, one = f.shape[0], f.new_ones(f.shape[0])
    if isinstance(observation, Binary):
        sign = torch.where(observation.labels, 1.0, -1.0).to(f)
        return ndtr(sign * f[:, observation.index] / math.sqrt(p.labels)).prod(-1)
    if isinstance(observation, Validity):
        sign = torch.where(observation.valid, 1.0, -1.0).to(f)
        return ndtr(sign * (f[:, observation.index] - p.threshold) / math.sqrt(p.validity)).prod(-1)
    if isinstance(observation, Ordinal):
        bounds = torch.tensor([-math.inf, *p.cutpoints, math.inf], dtype=f.dtype)
        g = observation.grades
        return inside(f[:, observation.index], bounds[g], bounds[g + 1], p.grades).prod(-1)
    if isinstance(observation, Censored):
        bounds = (observation.lower.to(f), observation.upper.to(f))
        return inside(f[:, observation.index], *bounds, p.numbers).prod(-1)
    if isinstance(observation, Preference | Tie):
        difference = f[:, observation.pairs[:, 0]] - f[:, observation.pairs[:, 1]]
        reach = (-p.tie_width, p.tie_width) if isinstance(observation, Tie) else (0.0, math.inf)
        if isinstance(observation, Preference) and observation.strength is not None:
            bounds = f.new_tensor([*p.strengths, math.inf])
            reach = (bounds[observation.strength], bounds[observation.strength + 1])
        return inside(difference, *reach, 2 * p.items).prod(-1)
    if isinstance(observation, Vote):  # the second item's noise is integrated out, the first one's drawn
        for (a, b), answer in zip(observation.pairs.tolist(), observation.answers.tolist(), strict=True):
            one = one * torch.stack([vote(f[:, a], f[:, b], answer, p, generator) for _ in range(NOISE_DRAWS)]).mean(0)
        return one
    if isinstance(observation, Slope):  # its index names coordinates that are slopes already
        return (f[:, observation.index] * observation.signs > 0).all(-1).to(f)
    if isinstance(observation, Choice | Ranking):
        choice = isinstance(observation, Choice)
        items = observation.options if choice else observation.items
        for k, row in enumerate(items.tolist()):
            names = [i for i in row if i >= 0]
            ranks = [0] + [1] * (len(names) - 1) if choice else observation.ranks[k].tolist()[: len(names)]
            repeats = [in_order(f[:, names], ranks, p.items, generator) for _ in range(NOISE_DRAWS)]
            one = one * torch.stack(repeats).mean(0)
        return one
    if isinstance(observation, LabelPreference):
        for event in observation.event.unique().tolist():
            which = (observation.event == event).nonzero().squeeze(-1).tolist()
            noisy: dict[int, Tensor] = {}
            for k in which[:-1]:  # the noise of every label that is named before the last preference
                for label in observation.labels[k].tolist():
                    noise = math.sqrt(p.classes) * torch.randn(N, dtype=f.dtype, generator=generator)
                    noisy.setdefault(label, noise)

            def at(k: int, label: int, noisy: dict[int, Tensor] = noisy) -> tuple[Tensor, int]:
                value = f[:, int(observation.index[k]) * observation.num_labels + label]
                return (value + noisy[label], 0) if label in noisy else (value, 1)

            for k in which:
                (a, free_a), (b, free_b) = (at(k, label) for label in observation.labels[k].tolist())
                free = free_a + free_b
                one = one * (ndtr((a - b) / math.sqrt(free * p.classes)) if free else (a > b).to(f))
        return one
    if isinstance(observation, AffineProbit):
        g = f[:, observation.index] @ observation.weight.to(f).mT + observation.bias.to(f)
        lower, upper = observation.lower.to(f), observation.upper.to(f)
        Sigma = observation.covariance.to(f)
        L = torch.linalg.cholesky(Sigma)
        z = torch.zeros_like(g)
        for i in range(g.shape[-1]):  # one row's noise after the other, inside its interval
            rest = g[:, i] + z[:, :i] @ L[i, :i]
            z[:, i], mass = truncated((lower[i] - rest) / L[i, i], (upper[i] - rest) / L[i, i], generator)
            one = one * mass
        return one
    raise NotImplementedError(type(observation).__name__)


def condition_on_numbers(
    mean: Tensor, covariance: Tensor, observations: list[Observation], p: Noise
) -> tuple[Tensor, Tensor, Tensor]:
    """The Gaussian given all numbers, and the log density of these, with a plain inverse."""
    numbers = [entry for entry in observations if isinstance(entry, Numeric)]
    if not numbers:
        return mean, covariance, mean.new_zeros(())
    index = torch.cat([entry.index for entry in numbers])
    y = torch.cat([entry.values for entry in numbers]).to(mean)
    default = [entry.values.new_full(entry.values.shape, p.numbers) for entry in numbers]
    noise = torch.cat([d if e.noise is None else e.noise for d, e in zip(default, numbers, strict=True)]).to(mean)
    S = covariance[index][:, index] + torch.diag(noise)
    gain = covariance[:, index] @ torch.linalg.inv(S)
    distribution = torch.distributions.MultivariateNormal(mean[index], S)
    return mean + gain @ (y - mean[index]), covariance - gain @ covariance[index], distribution.log_prob(y)


def weighted_quantile(x: Tensor, w: Tensor, level: Tensor) -> Tensor:
    order = x.argsort()
    cumulative = w[order].cumsum(0) - 0.5 * w[order]
    return x[order][torch.searchsorted(cumulative, level * w.sum()).clamp(max=len(x) - 1)]


@dataclass(frozen=True)
class Proposal:
    """White coordinates: standard normal, or a tenth of them and the rest Gaussian with given moments."""

    mean: Tensor
    root: Tensor | None

    def draw(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draws, and the log ratio of the standard normal density to the proposal's."""
        z = torch.randn(size, len(self.mean), dtype=self.mean.dtype, generator=generator)
        if self.root is None:
            return z, z.new_zeros(size)
        ours = torch.rand(size, 1, dtype=z.dtype, generator=generator) < 0.9
        z = torch.where(ours, self.mean + z @ self.root.mT, z)
        white = torch.linalg.solve_triangular(self.root, (z - self.mean).mT, upper=False).mT
        log_prior = -0.5 * z.square().sum(-1)
        log_fitted = -0.5 * white.square().sum(-1) - self.root.diagonal().log().sum()
        return z, log_prior - torch.logaddexp(math.log(0.1) + log_prior, math.log(0.9) + log_fitted)


def adapt(weigh: Callable[[Tensor], tuple[Tensor, Tensor]], size: int, generator: torch.Generator) -> Proposal:
    """Fit a Gaussian to weighted draws, five times over; weights are tempered until 500 draws count."""
    proposal = Proposal(torch.zeros(size, dtype=torch.float64), None)
    for _ in range(5):
        z, log_ratio = proposal.draw(20_000, generator)
        log_w = weigh(z)[1].log() + log_ratio
        for power in (1.0, 0.7, 0.5, 0.3, 0.2, 0.1):
            w = torch.softmax(power * log_w, dim=0)
            if 1 / w.square().sum() > 500:
                break
        center = w @ z
        spread = (w.unsqueeze(-1) * (z - center)).mT @ (z - center)
        eye = torch.eye(size, dtype=z.dtype)
        proposal = Proposal(center, torch.linalg.cholesky(1.3 * spread + 1e-6 * eye))
    return proposal


def generative_posterior(
    mean: Tensor,
    covariance: Tensor,
    observations: Observation | list[Observation],
    watched: Tensor,
    generator: torch.Generator,
    parameters: Noise = Parameters(),  # noqa: B008
    pseudo: tuple[Tensor, Tensor, Tensor] | None = None,
    num_draws: int = 200_000,
    adaptive: bool = False,
) -> Reference:
    """The posterior of some coordinates of the latent vector, and the log evidence.

    Args:
        mean: The prior mean of all coordinates that observations name or that are asked for.
        covariance: Their prior covariance.
        observations: What was seen.
        watched: The coordinates wanted.
        generator: The source of randomness.
        parameters: Noise and cut-points.
        pseudo: Coordinates, phases and truncation of a skew prior.
        num_draws: The number of draws from the prior given the numbers.
        adaptive: Whether to draw from a Gaussian fitted to weighted pilot draws instead; the weights make up for it.
    """
    observations = [observations] if isinstance(observations, Observation) else list(observations)
    center, spread, log_density = condition_on_numbers(mean, covariance, observations, parameters)
    eigenvalues, vectors = torch.linalg.eigh(spread)
    root = vectors * eigenvalues.clamp(min=0).sqrt()
    root = root[:, eigenvalues > 1e-13 * eigenvalues.amax()]
    others = [entry for entry in observations if not isinstance(entry, Numeric)]

    def weigh(z: Tensor) -> tuple[Tensor, Tensor]:
        """The latent vector at white coordinates, and the probability of what was seen besides numbers."""
        f = center + z @ root.mT
        w = f.new_ones(len(f)) if pseudo is None else allowed(f[:, pseudo[0]])
        for entry in others:
            w = w * probability(entry, f, parameters, generator)
        return f, w

    def allowed(g: Tensor) -> Tensor:
        assert pseudo is not None
        at, phases, truncation = pseudo
        standardised = (g - mean[at]) / covariance.diagonal()[at].sqrt()
        return (phases * standardised + truncation > 0).all(-1).to(g)

    proposal = adapt(weigh, root.shape[-1], generator) if adaptive else Proposal(root.new_zeros(root.shape[-1]), None)
    values, weights, signs = [], [], []
    for start in range(0, num_draws, 50_000):
        z, log_ratio = proposal.draw(min(50_000, num_draws - start), generator)
        f, w = weigh(z)
        values.append(f[:, watched])
        weights.append(w * log_ratio.exp())
        if pseudo is not None:
            at = pseudo[0]
            L = torch.linalg.cholesky(covariance[at][:, at])
            signs.append(allowed(mean[at] + torch.randn(len(z), len(at), dtype=L.dtype, generator=generator) @ L.mT))
    f, w = torch.cat(values), torch.cat(weights)
    log_evidence = log_density + w.mean().log()
    variance = (w / w.mean() - 1).square().mean() / len(w)
    if pseudo is not None:
        ok = torch.cat(signs)
        log_evidence = log_evidence - ok.mean().log()
        variance = variance + (1 - ok.mean()) / ok.mean() / len(ok)
    keep = w > 0
    f, w = f[keep], w[keep] / w.sum()

    def estimate(value: Tensor, influence: Tensor) -> Estimate:
        return Estimate(value, (w.unsqueeze(-1) * influence).square().sum(0).sqrt())

    mu = w @ f
    sd = (w @ (f - mu).square()).sqrt()
    z = (f - mu) / sd
    skewness = w @ z.pow(3)
    quantiles = torch.stack([weighted_quantile(x, w, LEVELS) for x in f.unbind(-1)], dim=-1)  # 3 x q
    errors = []
    for level, q in zip(LEVELS, quantiles, strict=True):
        width = 0.1 * sd  # a boxcar estimate of the density at the quantile
        density = (w @ ((f - q).abs() < width).to(f)) / (2 * width)
        errors.append(estimate(q, ((f <= q).to(f) - level) / density).error)
    return Reference(
        mean=estimate(mu, f - mu),
        sd=estimate(sd, 0.5 * sd * (z.square() - 1)),
        skewness=estimate(skewness, z.pow(3) - 3 * z - skewness - 1.5 * skewness * (z.square() - 1)),
        quantiles=Estimate(quantiles, torch.stack(errors)),
        log_evidence=Estimate(log_evidence, variance.sqrt()),
        effective_size=float(1 / w.square().sum()),
    )


def own_statistics(posterior, effective_size: float) -> dict[str, Estimate]:
    """The same statistics of the package's posterior, with the errors that follow from its effective sample size."""
    means, v = posterior.component_means.detach(), posterior.gaussian_variance.detach().unsqueeze(-1)
    mu = posterior.mean.detach().flatten(-2).unsqueeze(-1)
    sd = posterior.variance.detach().flatten(-2).unsqueeze(-1).sqrt()
    skewness = posterior.skewness.detach().flatten(-2)
    a, c = (means - mu) / sd, v / sd.square()
    one_draw = means.shape[-1] == 1

    def estimate(value: Tensor, influence: Tensor) -> Estimate:
        """`influence` holds the mean influence of each component of the mixture."""
        error = influence.square().mean(-1).sqrt() / math.sqrt(effective_size)
        return Estimate(value, torch.zeros_like(error) if one_draw else error)

    quantiles = posterior.quantile(LEVELS).detach().flatten(-2)
    density = torch.stack([posterior.density(q.unsqueeze(-1)).detach().flatten(-2) for q in quantiles])
    below = ndtr((quantiles.unsqueeze(-1) - means) / v.sqrt())
    s = skewness.unsqueeze(-1)
    return {
        "mean": estimate(mu.squeeze(-1), means - mu),
        "sd": estimate(sd.squeeze(-1), 0.5 * sd * (a.square() + c - 1)),
        "skewness": estimate(skewness, a.pow(3) + 3 * a * c - 3 * a - s - 1.5 * s * (a.square() + c - 1)),
        "quantiles": estimate(quantiles, (below - LEVELS.view(-1, 1, 1)) / density.unsqueeze(-1)),
    }


def own_effective_size(model) -> float:
    sizes = model.draws.effective_size
    return float(sizes.min()) if sizes.numel() else math.inf


def deviations(model, posterior, reference: Reference) -> dict[str, float]:
    """The largest deviation of each statistic over points, in combined standard errors."""
    own = own_statistics(posterior, own_effective_size(model))
    result = {}
    for name, theirs in reference.statistics().items():
        ours = own[name]
        error = (ours.error.square() + theirs.error.square()).sqrt()
        deviation = (ours.value - theirs.value).abs() / error
        result[name] = float(deviation.nan_to_num(nan=math.inf).max())
    return result


def log_evidence(model) -> float:
    """The model's own log evidence by expectation propagation, without hyperparameter priors."""
    return float(model.log_marginal_likelihood("ep").value)

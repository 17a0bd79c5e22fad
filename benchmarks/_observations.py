"""Where observations come from: functions that are drawn, answers of every kind about them, and models of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from torch import Tensor

from botorch_skewgp import SkewGP, likelihoods, observations
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Observation, Preference, Slope, Tie, Validity
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


@dataclass(frozen=True)
class Noise:
    """Noise variances, cut-points, widths and thresholds, in units of the latent function."""

    numbers: float = 0.1
    labels: float = 1.0
    grades: float = 1.0
    items: float = 1.0
    validity: float = 0.01
    classes: float = 1.0
    slopes: float = 0.0
    affine: float = 1.0
    cutpoints: tuple[float, ...] = (0.0,)
    tie_width: float = 0.5
    ties_allowed: bool = False
    strengths: tuple[float, ...] = (0.0,)
    threshold: float = 0.0
    level_gap: float = 1.0
    unit: float = 1.0  # of scales that are read in whole units
    reach: float = 1.0  # of such scales for one value, in units

    def times(self, factor: float) -> Noise:
        variances = ("numbers", "labels", "grades", "items", "validity", "classes", "slopes", "affine")
        return replace(self, **{name: factor * getattr(self, name) for name in variances})


def likelihood_of(noise: Noise, num_labels: int = 1) -> likelihoods.RowLikelihood:
    """Likelihoods of all kinds but class labels; of class labels alone if there are several."""

    def tensor(*values: float) -> Tensor:
        return torch.tensor(values[0] if len(values) == 1 else values, dtype=torch.float64)

    if num_labels > 1:
        return likelihoods.LabelPreferenceLikelihood(num_labels, noise=tensor(noise.classes))
    items, width, threshold = tensor(noise.items), tensor(noise.tie_width), tensor(noise.threshold)
    of_ties = {"tie_width": width, "ties_allowed": noise.ties_allowed}
    duels = likelihoods.PreferenceLikelihood(items, num_strengths=len(noise.strengths), **of_ties)
    if len(noise.strengths) > 1:
        duels.strength_gaps = tensor(*noise.strengths).diff()
    return likelihoods.MixedLikelihood(
        likelihoods.NumericLikelihood(noise=tensor(noise.numbers), learn_noise=False),
        likelihoods.ProbitLikelihood(noise=tensor(noise.labels)),
        likelihoods.OrdinalLikelihood(
            len(noise.cutpoints) + 1, torch.tensor(noise.cutpoints, dtype=torch.float64), noise=tensor(noise.grades)
        ),
        duels,
        likelihoods.VoteLikelihood(threshold=noise.threshold, level_gap=noise.level_gap, noise=items, tie_width=width),
        likelihoods.ValidityLikelihood(threshold=threshold, noise=tensor(noise.validity)),
        likelihoods.SlopeLikelihood(tensor(noise.slopes)),
        likelihoods.ProbitAffineLikelihood(),
    )


def rbf_kernel(outputscale: float, lengthscale: float) -> ScaleKernel:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.initialize(outputscale=torch.tensor(outputscale, dtype=torch.float64))
    kernel.base_kernel.initialize(lengthscale=torch.tensor(lengthscale, dtype=torch.float64))
    return kernel


def fitted(model: SkewGP) -> SkewGP:
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def constant_mean(value: float) -> ConstantMean:
    mean = ConstantMean().double()
    mean.initialize(constant=torch.tensor(value, dtype=torch.float64))
    return mean


class VariationalProcess(gpytorch.models.ApproximateGP):
    """A process of GPyTorch's with a variational distribution at inducing points, which may be learned."""

    def __init__(self, Z: Tensor, distribution: Any, mean: Mean, kernel: Kernel, learns_points: bool = False) -> None:
        strategy = gpytorch.variational.VariationalStrategy
        super().__init__(strategy(self, Z, distribution, learn_inducing_locations=learns_points))
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, X: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


# Functions


def squared_exponential(X: Tensor, lengthscale: Tensor | float) -> Tensor:
    """The covariance of points with a variance of one."""
    scaled = X / lengthscale
    return torch.exp(-0.5 * torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist").square())


def random_features(
    frequency: Tensor, generator: torch.Generator, variance: float = 1.0, split: int = 10_000
) -> Callable[[Tensor], Tensor]:
    """A function of points from random frequencies, `d x features`, of its kernel."""
    size, kind = frequency.shape[-1], {"generator": generator, "dtype": frequency.dtype}
    phase, weight = 2 * math.pi * torch.rand(size, **kind), torch.randn(size, **kind)
    scale = math.sqrt(2 * variance / size)
    return lambda X: scale * torch.cat([torch.cos(part @ frequency + phase) @ weight for part in X.split(split)])


def normal_draw(covariance: Tensor, generator: torch.Generator, jitter: float = 0.0) -> Tensor:
    n, dtype = len(covariance), covariance.dtype
    root = torch.linalg.cholesky(covariance + jitter * torch.eye(n, dtype=dtype))
    return root @ torch.randn(n, generator=generator, dtype=dtype)


# Answers: of judges with noise of their own, about values of points


def noisy(values: Tensor, variance: float, generator: torch.Generator) -> Tensor:
    """Values as they are read."""
    return values + math.sqrt(variance) * torch.randn(values.shape, dtype=values.dtype, generator=generator)


def random_pairs(num_items: int, num: int, generator: torch.Generator) -> Tensor:
    """Pairs of two different items each."""
    first = torch.randint(num_items, (num,), generator=generator)
    return torch.stack([first, (first + torch.randint(1, num_items, (num,), generator=generator)) % num_items], -1)


def random_items(num_items: int, num: int, k: int, generator: torch.Generator) -> Tensor:
    """Sets of `k` different items each, `num x k`."""
    return torch.stack([torch.randperm(num_items, generator=generator)[:k] for _ in range(num)])


def winner_first(pairs: Tensor, first_wins: Tensor) -> Tensor:
    """The pairs in the order of an answer."""
    return torch.where(first_wins.unsqueeze(-1), pairs, pairs.flip(-1))


def duel(utility: Tensor, pairs: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Duels, winner first, by a judge who sees each value with a noise of this standard deviation."""
    gap = utility[pairs[:, 0]] - utility[pairs[:, 1]]
    return winner_first(pairs, (noisy(gap, 2 * noise**2, generator) if noise else gap) > 0)


def best_first(utility: Tensor, items: Tensor, variance: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sets of items in the order in which they are seen, and the values seen."""
    values, order = noisy(utility[items], variance, generator).sort(-1, descending=True)
    return items.gather(-1, order), values


Simulator = Callable[[Tensor, int, Noise, torch.Generator], list[Observation]]


def _at_points(noise: str, make: Callable[[Tensor, Tensor, Noise], Observation]) -> Simulator:
    """What is made of noisy values and the numbers of their points."""

    def simulate(f: Tensor, size: int, truth: Noise, generator: torch.Generator) -> list[Observation]:
        index = torch.randint(len(f), (size,), generator=generator)
        return [make(noisy(f[index], getattr(truth, noise), generator), index, truth)]

    return simulate


def _of_items(k: int, make: Callable[[Tensor, Tensor, Noise], list[Observation]]) -> Simulator:
    """What is made of `k` different points, the best first, and of their values."""

    def simulate(f: Tensor, size: int, truth: Noise, generator: torch.Generator) -> list[Observation]:
        return make(*best_first(f, random_items(len(f), size, k, generator), truth.items, generator), truth)

    return simulate


def _censored(values: Tensor, index: Tensor, truth: Noise) -> Observation:
    """Readings of a scale that shows whole units, and beyond its reach only the side."""
    values = values / truth.unit
    inside = values.abs() < truth.reach
    lower = torch.where(inside, values.floor(), torch.where(values < 0, -torch.inf, truth.reach))
    upper = torch.where(inside, values.floor() + 1, torch.where(values < 0, -truth.reach, torch.inf))
    return observations.Censored(truth.unit * lower, truth.unit * upper, index=index)


def _duels_with_ties(pairs: Tensor, values: Tensor, truth: Noise) -> list[Observation]:
    tied = values[:, 0] - values[:, 1] <= truth.tie_width
    return [entry for entry in (Preference(pairs[~tied]), Tie(pairs[tied])) if len(entry.pairs)]


def _affine(f: Tensor, size: int, truth: Noise, generator: torch.Generator) -> list[Observation]:
    """Weighted sums with correlated noise, each known to a unit."""
    kind: dict[str, Any] = {"dtype": f.dtype, "generator": generator}
    weight = torch.randn(size, len(f), **kind) / 2
    root = torch.eye(size, dtype=f.dtype) + 0.5 * torch.randn(size, size, **kind) / size**0.5
    values = weight @ f + math.sqrt(truth.affine) * root @ torch.randn(size, **kind)
    lower = (values / truth.unit).floor()
    bounds = truth.unit * lower, truth.unit * (lower + 1)
    return [observations.AffineProbit(weight, torch.zeros_like(values), root @ root.mT, *bounds)]


def _grades(values: Tensor, index: Tensor, truth: Noise) -> Observation:
    edges = torch.tensor(truth.cutpoints, dtype=values.dtype)
    return observations.Ordinal((values.unsqueeze(-1) > edges).sum(-1), len(edges) + 1, index=index)


# How each kind comes about: from a function at the points, or its slopes, of classes a column for each
SIMULATORS: dict[str, Simulator] = {
    "Numeric": _at_points("numbers", lambda values, index, truth: observations.Numeric(values, index=index)),
    "Binary": _at_points("labels", lambda values, index, truth: observations.Binary(values > 0, index=index)),
    "Ordinal": _at_points("grades", _grades),
    "Censored": _at_points("numbers", _censored),
    "Preference": _of_items(2, lambda pairs, *_: [Preference(pairs)]),
    "Preference, Tie": _of_items(2, _duels_with_ties),
    "Choice": _of_items(3, lambda options, *_: [observations.Choice(options)]),
    "Ranking": _of_items(4, lambda items, *_: [observations.Ranking(items)]),
    "Validity": _at_points("validity", lambda values, index, p: Validity(values > p.threshold, index=index)),
    "Slope": _at_points("slopes", lambda values, index, truth: Slope(0, values.sign().long(), index=index)),
    "AffineProbit": _affine,
    "LabelPreference": _at_points(
        "classes",
        lambda values, index, truth: observations.LabelPreference.from_classes(
            values.argmax(-1), values.shape[-1], index=index
        ),
    ),
}


# Truncated normals


def positive_rows(covariance: Tensor, noise: float = 1.0) -> TruncatedNormal:
    zeros = torch.zeros_like(covariance[0])
    return TruncatedNormal(
        mean=zeros, prior=covariance, lower=zeros, upper=torch.full_like(zeros, math.inf), noise=zeros + noise
    )


def label_rows(covariance: Tensor, generator: torch.Generator) -> TruncatedNormal:
    """The rows of labels with unit noise of a function drawn with this covariance, turned to be positive."""
    sign = noisy(normal_draw(covariance, generator), 1.0, generator).sign()
    return positive_rows(sign.unsqueeze(-1) * covariance * sign)


def classification(n: int, seed: int = 0, d: int = 3) -> TruncatedNormal:
    """Of the unified paper, section 4: normal inputs, a variance in (1, 10), lengthscales in (0.1, 1.1), unit noise."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, d, generator=generator, dtype=torch.float64)
    variance = 1 + 9 * torch.rand(1, generator=generator, dtype=torch.float64)
    lengthscale = 0.1 + torch.rand(d, generator=generator, dtype=torch.float64)
    K = variance * (squared_exponential(X, lengthscale) + 1e-6 * torch.eye(n, dtype=torch.float64))
    return label_rows(K, generator)


def duel_data(m: int, noise: float, d: int, lengthscale: float = 0.5, seed: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Two new points of the unit cube for each duel, `2m x d`, the pairs, winner first, and the values' covariance."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(2 * m, d, generator=generator, dtype=torch.float64)
    K = squared_exponential(X, lengthscale)
    pairs = torch.stack([torch.arange(m), torch.arange(m) + m], -1)
    return X, duel(normal_draw(K, generator, 1e-8), pairs, noise, generator), K


def duels(m: int, noise: float, d: int = 4, seed: int = 3) -> TruncatedNormal:
    """The rows of `m` duels between `2 m` points, in units in which their noise is one."""
    _, pairs, K = duel_data(m, noise, d, seed=seed)
    winner, loser = torch.nn.functional.one_hot(pairs, 2 * m).to(K).unbind(1)
    covariance = (winner - loser) @ K @ (winner - loser).mT / (2 * noise**2)
    covariance = covariance + 1e-8 * covariance.diagonal().mean() * torch.eye(m, dtype=covariance.dtype)
    return positive_rows(covariance)

"""Posteriors of duels, of numbers with duels and of labels, beside their approximations (unified framework, figures 1,
4, 5, 6 and 7).

- `duels` (figures 4 and 5): 25 points in [-2.6, 2.6], 45 duels by cos(5 x) + exp(-x^2 / 2), lengthscale 0.33, variance
  50; the posterior of f(x) - f(0.05).
- `numbers and duels` (figures 1 and 6): a function drawn from the prior, lengthscale 0.19 and variance 1; 15 numbers
  with noise 0.001 on [0, 2.5] and 30 duels of noise 0.1 between 15 points on [2.5, 5] (the paper does not tell its
  function, nor the noise of its judgements); the posterior of f(x).
- `figure 7`: the same with the lengthscale 0.497, the variance 0.147 and the noise 0.0021 of that figure, whose data
  the paper does not tell.
- `labels`: 40 of a function drawn from the prior with variance 10 and lengthscale 0.5 on [-2.6, 2.6].

The reference is 16,384 draws of the library's default sampler, which its tests hold against others; `again` is as many
with another seed, and tells how exact both are. Reported are the largest differences over 101 points, in standard
deviations of the reference: of means, and of upper ends of intervals of 95 % with equal tails; and the largest
skewness. A trial is another data set.
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._race import Group, Race, grid
from benchmarks._reporting import Cell
from benchmarks._test_functions import CosineExponential
from benchmarks.experiments._experiment import Experiment
from benchmarks.experiments._models import build
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
)
from botorch_skewgp.observations import Binary, Numeric, Observation, Preference
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.draws import DrawSettings

DATA = ("duels", "numbers and duels", "labels", "figure 7")
METHODS = ("SkewGP", "LIN-ESS", "EP", "Laplace", "numbers only", "again")
REFERENCE = DrawSettings(num_draws=16384, seed=1)
NUM_POINTS, TAIL = 101, 0.025
MEASURES = ("mean", "upper", "skewness", "seconds")


def _drawn(X: Tensor, variance: float, lengthscale: float, generator: torch.Generator) -> Tensor:
    covariance = variance * torch.exp(-0.5 * ((X - X.mT) / lengthscale).square())
    root = torch.linalg.cholesky(covariance + 1e-8 * torch.eye(len(X), dtype=X.dtype))
    return root @ torch.randn(len(X), generator=generator, dtype=X.dtype)


def _duels(f: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """Random duels between different items, winner first."""
    first = torch.randint(len(f), (num,), generator=generator)
    second = (first + torch.randint(1, len(f), (num,), generator=generator)) % len(f)
    wins = (f[first] > f[second]).unsqueeze(-1)
    return torch.where(wins, torch.stack([first, second], -1), torch.stack([second, first], -1))


def _data(name: str, number: int) -> tuple[Tensor, list[Observation], RowLikelihood, float, float, Tensor]:
    """Points, observations, likelihood, variance, lengthscale, and where the posterior is looked at."""
    generator = torch.Generator().manual_seed(number)
    wide = torch.linspace(-2.6, 2.6, NUM_POINTS, dtype=torch.float64).unsqueeze(-1)
    if name == "duels":
        X = 5.2 * torch.rand(25, 1, generator=generator, dtype=torch.float64) - 2.6
        pairs = _duels(CosineExponential()(X), 45, generator)
        return X, [Preference(pairs)], PreferenceLikelihood(), 50.0, 0.33, wide
    if name == "labels":
        X = 5.2 * torch.rand(40, 1, generator=generator, dtype=torch.float64) - 2.6
        f = _drawn(X, 10.0, 0.5, generator)
        labels = f + torch.randn(40, generator=generator, dtype=X.dtype) > 0
        return X, [Binary(labels)], ProbitLikelihood(), 10.0, 0.5, wide
    X = 2.5 * torch.rand(30, 1, generator=generator, dtype=torch.float64)
    X[15:] += 2.5
    variance, lengthscale, noise = (0.147, 0.497, 0.0021) if name == "figure 7" else (1.0, 0.19, 0.001)
    f = _drawn(X, variance, lengthscale, generator)
    values = f[:15] + noise**0.5 * torch.randn(15, generator=generator, dtype=X.dtype)
    pairs = _duels(f[15:], 30, generator) + 15
    likelihood = MixedLikelihood(
        NumericLikelihood(noise=noise, learn_noise=False), PreferenceLikelihood(noise=0.1, learn_noise=False)
    )
    observations: list[Observation] = [Numeric(values, index=torch.arange(15)), Preference(pairs)]
    at = torch.linspace(0, 5, NUM_POINTS, dtype=torch.float64).unsqueeze(-1)
    return X, observations, likelihood, variance, lengthscale, at


@torch.no_grad()
def _posterior(model: SkewGP, at: Tensor, difference: bool) -> SkewGPPosterior:
    if not difference:
        return model.posterior(at.unsqueeze(-2))
    posterior = model.posterior(torch.stack([at, torch.full_like(at, 0.05)], dim=-2))
    return posterior.affine(at.new_tensor([[1.0, -1.0]]))


def _run(data: str, seed: int, smoke: bool = False) -> list[dict[str, Cell]]:
    X, observations, likelihood, variance, lengthscale, at = _data(data, seed)
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = variance, lengthscale
    modules = {"likelihood": likelihood, "covar_module": kernel, "mean_module": ZeroMean()}
    settings = replace(REFERENCE, num_draws=64) if smoke else REFERENCE
    reference = _summary(SkewGP(X, observations, draw_settings=settings, **modules), at, data)
    rows: list[dict[str, Cell]] = []
    for method in METHODS:
        began = time.process_time()
        if method == "numbers only":
            if len(observations) == 1:
                continue
            model = SkewGP(X, observations[:1], **modules)
        elif method == "again":
            model = SkewGP(X, observations, draw_settings=replace(settings, seed=2), **modules)
        else:
            model = build(method, X, observations, 64 if smoke else 2048, **modules)
        mean, _, upper, skewness = _summary(model, at, data)
        seconds = time.process_time() - began
        measures = (
            ((mean - reference[0]) / reference[1]).abs().max(),
            ((upper - reference[2]) / reference[1]).abs().max(),
            skewness.abs().max(),
            seconds,
        )
        rows.append({"method": method, **{k: float(v) for k, v in zip(MEASURES, measures, strict=True)}})
    return rows


@torch.no_grad()
def _summary(model: SkewGP, at: Tensor, data: str) -> tuple[Tensor, ...]:
    """Mean, standard deviation, upper end and skewness at the points."""
    posterior = _posterior(model, at, data == "duels")
    upper = posterior.quantile(torch.tensor([1 - TAIL], dtype=at.dtype))
    return (
        posterior.mean.flatten(), posterior.variance.flatten().sqrt(), upper.flatten(), posterior.skewness.flatten(),
    )  # fmt: skip


def _columns(runs: Group) -> dict[str, Cell]:
    means: dict[str, Cell] = {name: runs.mean(name) for name in MEASURES}
    return {"data_sets": len(runs), **means, "its_error": runs.error("mean"), "error": runs.error("upper")}


EXPERIMENT = Experiment(
    race=Race(
        "posteriors", grid(data=DATA), [{}], range(5), _run, ("method", *MEASURES), _columns,
        ["largest differences from the reference, in its standard deviations; averages over data sets"],
    ),
    methods=METHODS,
)  # fmt: skip

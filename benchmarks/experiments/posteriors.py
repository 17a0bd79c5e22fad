"""Posteriors of duels, of numbers beside duels or validity, and of labels, beside approximations (unified framework,
figures 1, 4 to 7).
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._functions import cosine_exponential
from benchmarks._observations import duel, normal_draw, random_pairs, rbf_kernel, squared_exponential
from benchmarks._race import Cell, Group, Race, grid
from benchmarks.experiments._models import build
from botorch_skewgp import SkewGP, likelihoods
from botorch_skewgp.observations import Binary, Numeric, Observation, Preference, Validity
from botorch_skewgp.truncated.draws import DrawSettings

DATA = ("duels", "numbers and duels", "labels", "numbers and validity")
METHODS = ("SkewGP", "LIN-ESS", "EP", "Laplace", "numbers only", "again")  # again: with another seed
REFERENCE = DrawSettings(num_draws=16384, seed=1)
NUM_POINTS, TAIL = 101, 0.025
MEASURES = ("mean", "upper", "skewness", "seconds")


def _data(
    name: str, number: int
) -> tuple[Tensor, list[Observation], likelihoods.RowLikelihood, tuple[float, float], Tensor]:
    """Points, observations, likelihood, variance and lengthscale, and where the posterior is looked at."""
    generator = torch.Generator().manual_seed(number)
    wide = torch.linspace(-2.6, 2.6, NUM_POINTS, dtype=torch.float64).unsqueeze(-1)
    if name == "duels":
        X = 5.2 * torch.rand(25, 1, generator=generator, dtype=torch.float64) - 2.6
        pairs = duel(cosine_exponential(X), random_pairs(25, 45, generator), 0.0, generator)
        return X, [Preference(pairs)], likelihoods.PreferenceLikelihood(), (50.0, 0.33), wide
    if name == "labels":
        X = 5.2 * torch.rand(40, 1, generator=generator, dtype=torch.float64) - 2.6
        f = normal_draw(10.0 * squared_exponential(X, 0.5), generator, 1e-8)
        labels = f + torch.randn(40, generator=generator, dtype=X.dtype) > 0
        return X, [Binary(labels)], likelihoods.ProbitLikelihood(), (10.0, 0.5), wide
    at = torch.linspace(0, 5, NUM_POINTS, dtype=torch.float64).unsqueeze(-1)
    if name == "numbers and validity":  # figure 7: numbers of valid points, the mixed likelihood (40) with h = 0
        variance, lengthscale, noise = 0.147, 0.497, 0.0021
        X = 5 * torch.rand(30, 1, generator=generator, dtype=torch.float64)
        f = normal_draw(variance * squared_exponential(X, lengthscale), generator, 1e-8)
        values = f + noise**0.5 * torch.randn(30, generator=generator, dtype=X.dtype)
        valid = values > 0
        likelihood = likelihoods.MixedLikelihood(
            likelihoods.NumericLikelihood(noise=noise, learn_noise=False),
            likelihoods.ValidityLikelihood(threshold=0.0, noise=noise),
        )
        numbers = Numeric(values[valid], index=valid.nonzero().squeeze(-1))
        return X, [numbers, Validity(valid)], likelihood, (variance, lengthscale), at
    X = 2.5 * torch.rand(30, 1, generator=generator, dtype=torch.float64)
    X[15:] += 2.5
    variance, lengthscale, noise = 1.0, 0.19, 0.001
    f = normal_draw(variance * squared_exponential(X, lengthscale), generator, 1e-8)
    values = f[:15] + noise**0.5 * torch.randn(15, generator=generator, dtype=X.dtype)
    pairs = duel(f[15:], random_pairs(15, 30, generator), 0.0, generator) + 15
    likelihood = likelihoods.MixedLikelihood(
        likelihoods.NumericLikelihood(noise=noise, learn_noise=False),
        likelihoods.PreferenceLikelihood(noise=0.1, learn_noise=False),
    )
    observations: list[Observation] = [Numeric(values, index=torch.arange(15)), Preference(pairs)]
    return X, observations, likelihood, (variance, lengthscale), at


def _run(data: str, method: str, seed: int, smoke: bool = False) -> list[dict[str, Cell]]:
    X, observations, likelihood, kernel, at = _data(data, seed)
    modules = {"likelihood": likelihood, "covar_module": rbf_kernel(*kernel), "mean_module": ZeroMean()}
    settings = replace(REFERENCE, num_draws=64) if smoke else REFERENCE
    reference = _summary(SkewGP(X, observations, draw_settings=settings, **modules), at, data)
    rows: list[dict[str, Cell]] = []
    for method in METHODS:  # that which is asked for comes first
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
        rows.append({
            "method": method, "mean": float(((mean - reference[0]) / reference[1]).abs().max()),
            "upper": float(((upper - reference[2]) / reference[1]).abs().max()),
            "skewness": float(skewness.abs().max()), "seconds": seconds,
        })  # fmt: skip
    return rows


@torch.no_grad()
def _summary(model: SkewGP, at: Tensor, data: str) -> tuple[Tensor, ...]:
    """Mean, standard deviation, upper end and skewness at the points, of duels less the value at .05."""
    posterior = model.posterior(at.unsqueeze(-2))
    if data == "duels":
        both = torch.stack([at, torch.full_like(at, 0.05)], dim=-2)
        posterior = model.posterior(both).affine(at.new_tensor([[1.0, -1.0]]))
    upper = posterior.quantile(torch.tensor([1 - TAIL], dtype=at.dtype))
    return (
        posterior.mean.flatten(), posterior.variance.flatten().sqrt(), upper.flatten(), posterior.skewness.flatten(),
    )  # fmt: skip


def _columns(runs: Group) -> dict[str, Cell]:
    means: dict[str, Cell] = {name: runs.mean(name) for name in MEASURES}
    return {"data_sets": len(runs), **means, "its_error": runs.error("mean"), "error": runs.error("upper")}


RACES = (
    Race(
        "experiments/posteriors", grid(data=DATA), grid(method=METHODS[:1]), range(5), _run, MEASURES, _columns,
        ["largest differences from the reference, in its standard deviations; averages over data sets"],
        quick={"smoke": True},
    ),
)  # fmt: skip

"""The probability of being safe that few labels give: what is claimed, and what is true."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.test_functions import Branin, SixHumpCamel
from torch import Tensor

from benchmarks._functions import sobol_points
from benchmarks._observations import squared_exponential
from benchmarks._race import Cell, Group, Names, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition.validity import log_probability_of_validity
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import default_covar_module, default_mean_module
from botorch_skewgp.models.defaults import MIN_LENGTHSCALE
from botorch_skewgp.observations import Validity

DIMENSION, TESTED, CANDIDATES, FIRST = 2, 200, 256, 8
NOISE = 0.01  # of the default likelihood of validity
LEVELS, TRIALS = (0.9, 0.95, 0.99), 12
FAMILIES = {"prior": ("prior",), "Branin and camel": ("Branin", "camel")}
RUNS = {"prior": 200, "Branin and camel": 100}


def _claims(functions: str, labels: int, posterior: str, hyperparameters: str, level: float, seed: int) -> list[Names]:
    """Of the points of one function that count, at each level: how many, and sums of what is claimed and true."""
    if seed >= RUNS[functions]:
        return []
    family, began = FAMILIES[functions], time.process_time()
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(64 + TESTED, DIMENSION, generator=generator, dtype=torch.double)
    true = _probability(family[seed % len(family)], seed, X)
    valid = torch.rand(len(X), generator=generator) < true
    claimed = _claimed(X[:labels], valid[:labels], posterior, hyperparameters)(X[64:])
    row: dict[str, Cell] = {"one_class": int(len(valid[:labels].unique()) == 1)}
    rows: list[Names] = []
    for at_least in LEVELS:
        counts = claimed >= at_least
        sums = {
            "points": int(counts.sum()),
            "claimed": float(claimed[counts].sum()),
            "true": float(true[64:][counts].sum()),
            "difference": float((claimed - true[64:])[counts].sum()),
        }
        rows.append({"level": at_least, **row, **sums, "seconds": time.process_time() - began})
    return rows


def _of_claims(runs: Group) -> dict[str, Cell]:
    found = {name: runs.ratio(name, "points") for name in ("claimed", "true", "difference")}
    return {
        "runs": len(runs), "one_class": int(runs.values("one_class").sum()),
        **{name: value for name, (value, _) in found.items()}, "standard_error": found["difference"][1],
        "share": runs.mean("points") / TESTED, "seconds": runs.mean("seconds"),
    }  # fmt: skip


def _search(functions: str, posterior: str, hyperparameters: str, seed: int) -> dict[str, Cell]:
    """How many trials a search makes, and how many of them are invalid as it claims, and in truth."""
    family = FAMILIES[functions]
    generator = torch.Generator().manual_seed(10_000 + seed)
    pool = sobol_points(DIMENSION, CANDIDATES, seed)
    X = torch.cat([torch.rand(FIRST, DIMENSION, generator=generator, dtype=torch.double), pool])
    valid = torch.rand(len(X), generator=generator) < _probability(family[seed % len(family)], seed, X)
    tried, left, claimed, violated = list(range(FIRST)), torch.ones(len(X), dtype=torch.bool), 0.0, 0
    left[:FIRST] = False
    for _ in range(TRIALS):
        told = _claimed(X[tried], valid[tried], posterior, hyperparameters)(X)
        safe = torch.where(left & (told >= LEVELS[1]), told, torch.inf)
        if not bool(safe.isfinite().any()):
            break
        chosen = int(safe.argmin())
        tried.append(chosen)
        left[chosen] = False
        claimed, violated = claimed + 1 - float(told[chosen]), violated + int(not valid[chosen])
    return {"trials": len(tried) - FIRST, "claimed": claimed, "violated": violated, "difference": violated - claimed}


def _of_searches(runs: Group) -> dict[str, Cell]:
    shares = {name: runs.ratio(name, "trials")[0] for name in ("claimed", "violated")}
    error = runs.ratio("difference", "trials")[1]
    return {"runs": len(runs), "trials": runs.total("trials"), **shares, "standard_error": error}


def _claimed(X: Tensor, valid: Tensor, posterior: str, method: str) -> Callable[[Tensor], Tensor]:
    model = SkewGP(X, Validity(valid), approximation="ep" if posterior == "ep" else None)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    told = model if method == "fitted" else fit_fully_bayesian_skew_gp(mll)

    def probability(points: Tensor) -> Tensor:
        with torch.no_grad():
            return log_probability_of_validity(told, points.unsqueeze(-2)).exp().squeeze(-1)

    return probability


def _probability(kind: str, seed: int, X: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(1000 + seed)
    if kind == "prior":
        return torch.special.ndtr(_drawn(X, generator) / math.sqrt(NOISE))
    function = Branin() if kind == "Branin" else SixHumpCamel()
    low, high = function.bounds.to(X)
    share = 0.2 + 0.6 * torch.rand(1, generator=generator, dtype=torch.double)
    threshold = function(low + (high - low) * torch.rand(4096, DIMENSION, generator=generator).to(X)).quantile(share)
    return (function(low + (high - low) * X) < threshold).double()


def _drawn(X: Tensor, generator: torch.Generator) -> Tensor:
    seen = [Validity(torch.tensor([True]))]
    kernel = default_covar_module(DIMENSION, seen)

    def log_normal(prior: torch.nn.Module, size: int) -> Tensor:
        return (prior.loc + prior.scale * torch.randn(size, generator=generator, dtype=torch.double)).exp()

    lengthscale = log_normal(kernel.base_kernel.lengthscale_prior, DIMENSION).clamp(min=MIN_LENGTHSCALE)
    variance = log_normal(kernel.outputscale_prior, 1)
    K = squared_exponential(X, lengthscale) + 1e-8 * torch.eye(len(X), dtype=torch.double)
    normal = torch.randn(len(X) + 1, generator=generator, dtype=torch.double)
    constant = default_mean_module(seen).variance.sqrt() * normal[-1]
    return constant + variance.sqrt() * torch.linalg.cholesky(K) @ normal[:-1]


METHODS = {"posterior": ("exact", "ep"), "hyperparameters": ("fitted", "sampled")}
RACES = (
    Race("safety_claims", grid(functions=FAMILIES, labels=(5, 8, 16, 30)), grid(**METHODS, level=LEVELS[:1]),
         range(200), _claims, ("one_class", "points", "claimed", "true", "difference", "seconds"), _of_claims,
         ["share of points that count"]),
    Race("safety_searches", grid(functions=FAMILIES), grid(**METHODS), range(20), _search,
         ("trials", "claimed", "violated", "difference"), _of_searches,
         [f"level {LEVELS[1]}, {FIRST} first labels, up to {TRIALS} trials a search; shares of invalid trials"]),
)  # fmt: skip

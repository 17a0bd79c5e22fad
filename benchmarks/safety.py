"""The probability of being safe that few labels give: what is claimed, and what is true.

Labels say whether points at random in the unit square are valid. Functions are drawn from the model's own prior, their
hyperparameters too, or are Branin's and the six-hump camel function below a threshold that 20 to 80 % of the square
keep. Of 200 further points, those count whose claimed probability of being valid is at least a level: `claimed` is the
average of what is claimed there, `true` that of what is so, with the standard error of the difference, functions being
what is independent. Hyperparameters are fitted, or sixteen draws of them are averaged over.

Safe searches begin with eight labels and always try the least sure of 256 Sobol points at or above the level, after
every label with new hyperparameters: nothing that keeps to the level comes closer to the edge.

Posteriors are exact, or expectation propagation's Gaussians, which are too cautious where all labels nearby are valid.
Safe searches take the latter by default, which are faster.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Callable

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.test_functions import Branin, SixHumpCamel
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from benchmarks._problems import squared_exponential
from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition.validity import log_probability_of_validity
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import default_covar_module, default_mean_module
from botorch_skewgp.models.defaults import MIN_LENGTHSCALE
from botorch_skewgp.observations import Validity

DIMENSION, TESTED, CANDIDATES, FIRST = 2, 200, 256, 8
NOISE = 0.01  # of the default likelihood of validity
LEVELS = (0.9, 0.95, 0.99)
METHODS = ("fitted", "sampled")
POSTERIORS = ("exact", "ep")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--functions", type=int, default=200, help="functions of the prior")
    parser.add_argument("--others", type=int, default=100, help="functions of Branin's and the camel's")
    parser.add_argument("--labels", type=int, nargs="*", default=[5, 8, 16, 30], metavar="N")
    parser.add_argument("--searches", type=int, default=40, help="safe searches, half of them on the prior's functions")
    parser.add_argument("--trials", type=int, default=12, help="trials of a search")
    parser.add_argument("--posteriors", nargs="+", choices=POSTERIORS, default=["exact"], help="of claims")
    parser.add_argument("--of-searches", choices=POSTERIORS, default="ep", help="posteriors of safe searches")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    num_functions, num_others, num_searches = (
        (4, 2, 2) if options.quick else (options.functions, options.others, options.searches)
    )
    seeds = [("prior", seed) for seed in range(num_functions)]
    others = [(("Branin", "camel")[seed % 2], seed) for seed in range(num_others)]
    claims = Table(
        "safety_claims",
        ("functions", "runs", "labels", "posterior", "hyperparameters", "one_class", "level", "claimed", "true",
         "difference", "standard_error", "share", "seconds"),
        notes=[environment(), f"{len(seeds)} functions of the prior, {len(others)} others; share of points that count"],
    )  # fmt: skip
    searches = Table(
        "safety_searches",
        ("functions", "posterior", "hyperparameters", "runs", "trials", "claimed", "violated", "standard_error"),
        notes=[environment(), f"level {LEVELS[1]}, {FIRST} first labels; shares of invalid trials"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, family in (("prior", seeds), ("Branin and camel", others)):
            for size in options.labels:
                for posterior, method in itertools.product(options.posteriors, options.methods):
                    _claims(claims, name, family, size, posterior, method)
                    if folder is not None:
                        claims.store(folder)  # it takes long
        for name, family in (("prior", seeds), ("Branin and camel", others)):
            for method in options.methods:
                if num_searches > 1:
                    _searches(searches, name, family[: num_searches // 2], options.of_searches, method, options.trials)
    publish([claims, searches], folder)


def _claims(table: Table, name: str, family: list[tuple[str, int]], size: int, posterior: str, method: str) -> None:
    began, one_class, claimed, true = time.process_time(), 0, [], []
    for kind, seed in family:
        generator = torch.Generator().manual_seed(seed)
        X = torch.rand(64 + TESTED, DIMENSION, generator=generator, dtype=torch.double)
        probability = _probability(kind, seed, X)
        valid = torch.rand(len(X), generator=generator) < probability
        one_class += bool(valid[:size].all() or not valid[:size].any())
        claimed.append(_claimed(X[:size], valid[:size], posterior, method)(X[64:]))
        true.append(probability[64:])
    told, holds = torch.stack(claimed), torch.stack(true)
    for level in LEVELS:
        counts = told >= level
        number = counts.sum()
        gaps = ((told - holds) * counts).sum(-1)
        error = len(gaps) ** 0.5 * gaps.std() / number
        table.add(
            functions=name, runs=len(family), labels=size, posterior=posterior, hyperparameters=method,
            one_class=one_class, level=level,
            claimed=float(told[counts].mean()), true=float(holds[counts].mean()),
            difference=float(gaps.sum() / number), standard_error=float(error), share=float(counts.double().mean()),
            seconds=(time.process_time() - began) / len(family),
        )  # fmt: skip
        row = table.rows[-1]
        what = f"{name}, {size} labels, {posterior}, {method}, {level}"
        say(f"{what}: claimed {row['claimed']:.3f}, true {row['true']:.3f}")


def _searches(
    table: Table, name: str, family: list[tuple[str, int]], posterior: str, method: str, num_trials: int
) -> None:
    risks, violations = [], []
    for kind, seed in family:
        generator = torch.Generator().manual_seed(10_000 + seed)
        unit = torch.stack([torch.zeros(DIMENSION), torch.ones(DIMENSION)]).double()
        pool = draw_sobol_samples(unit, n=CANDIDATES, q=1, seed=seed).squeeze(1)
        X = torch.cat([torch.rand(FIRST, DIMENSION, generator=generator, dtype=torch.double), pool])
        valid = torch.rand(len(X), generator=generator) < _probability(kind, seed, X)
        tried, left, risk, violated = list(range(FIRST)), torch.ones(len(X), dtype=torch.bool), 0.0, 0
        left[:FIRST] = False
        for _ in range(num_trials):
            told = _claimed(X[tried], valid[tried], posterior, method)(X)
            safe = torch.where(left & (told >= LEVELS[1]), told, torch.inf)
            if not bool(safe.isfinite().any()):
                break
            chosen = int(safe.argmin())
            tried.append(chosen)
            left[chosen] = False
            risk, violated = risk + 1 - float(told[chosen]), violated + int(not valid[chosen])
        risks.append((risk, len(tried) - FIRST))
        violations.append(violated)
    number = sum(count for _, count in risks)
    gaps = torch.tensor([violated - risk for violated, (risk, _) in zip(violations, risks, strict=True)])
    table.add(
        functions=name, posterior=posterior, hyperparameters=method, runs=len(family), trials=number,
        claimed=sum(risk for risk, _ in risks) / max(number, 1), violated=sum(violations) / max(number, 1),
        standard_error=float(len(gaps) ** 0.5 * gaps.std() / max(number, 1)),
    )  # fmt: skip
    say(f"searches, {name}, {method}: {table.rows[-1]}")


def _claimed(X: Tensor, valid: Tensor, posterior: str, method: str) -> Callable[[Tensor], Tensor]:
    """What a model of these labels says of further points."""
    model = SkewGP(X, Validity(valid), approximation="ep" if posterior == "ep" else None)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    told = model if method == "fitted" else fit_fully_bayesian_skew_gp(mll)

    def probability(points: Tensor) -> Tensor:
        with torch.no_grad():
            return log_probability_of_validity(told, points.unsqueeze(-2)).exp().squeeze(-1)

    return probability


def _probability(kind: str, seed: int, X: Tensor) -> Tensor:
    """The true probabilities that points are valid."""
    generator = torch.Generator().manual_seed(1000 + seed)
    if kind == "prior":
        return torch.special.ndtr(_drawn(X, generator) / math.sqrt(NOISE))
    function = Branin() if kind == "Branin" else SixHumpCamel()
    low, high = function.bounds.to(X)
    share = 0.2 + 0.6 * torch.rand(1, generator=generator, dtype=torch.double)
    threshold = function(low + (high - low) * torch.rand(4096, DIMENSION, generator=generator).to(X)).quantile(share)
    return (function(low + (high - low) * X) < threshold).double()


def _drawn(X: Tensor, generator: torch.Generator) -> Tensor:
    """A function of the default prior."""
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

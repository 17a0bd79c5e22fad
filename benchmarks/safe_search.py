"""Safe searches: trials beyond the limit, recommendations that are safe, and what caution costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewLogExpectedImprovement, next_safe, recommend
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp, fit_skew_gp
from botorch_skewgp.likelihoods import NumericLikelihood, ValidityLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Censored, Numeric, Validity

LIMIT, TRIALS, SAID, ERROR = 0.1, 25, 10, 0.4  # risk of a safe setting; outcomes at the known one; of what is measured
RADIUS = 0.1  # of the random walk, times the square root of the dimension
FAMILIES = ("doses", "bowls", "waves", "steep edges", "pits", "one dose")
METHODS = ("next_safe, stated", "next_safe", "random walk")


class Problem(NamedTuple):
    """How likely a setting is to fail, what it yields, and one that is known to be safe, `1 x d`."""

    risk: Callable[[Tensor], Tensor]
    gain: Callable[[Tensor], Tensor]
    known: Tensor


def problem_of(family: str, seed: int) -> Problem:
    """A problem whose known setting fails at most once in 25 trials."""
    generator = torch.Generator().manual_seed(1000 * seed + 13)
    while True:
        problem = _drawn(family, generator)
        if problem.risk(problem.known) <= 0.4 * LIMIT:
            return problem


def _drawn(family: str, generator: torch.Generator) -> Problem:
    d = 1 if family == "one dose" else 2

    def uniform(low: float, high: float, size: int = d) -> Tensor:
        return low + (high - low) * torch.rand(size, generator=generator, dtype=torch.double)

    corner, target = torch.full((1, d), 0.1, dtype=torch.double), uniform(0, 1)
    center, phase, rate = uniform(0.3, 0.7), uniform(0, 6.28), uniform(1.5, 3)

    def towards(X: Tensor) -> Tensor:
        return 10 - 9 * (X - target).square().sum(-1)

    if family == "doses":  # both raise the risk and the benefit
        weights, low, high = uniform(0.4, 1.4), uniform(-4.4, -3.6, 1), uniform(1, 3, 1)
        use = 10 * torch.softmax(uniform(0, 1), 0)
        return Problem(
            lambda X: torch.sigmoid(low + (high - low) * (X @ weights) / weights.sum()),
            lambda X: (use * (1 - torch.exp(-rate * X))).sum(-1),
            corner,
        )
    if family == "one dose":
        middle, width = uniform(0.35, 0.95), uniform(0.08, 0.33)
        return Problem(
            lambda X: 0.01 + 0.99 * torch.sigmoid((X - middle) / width).squeeze(-1),
            lambda X: 10 * (1 - torch.exp(-2.5 * X)).squeeze(-1),
            torch.zeros_like(corner),
        )
    if family == "bowls":
        return Problem(
            lambda X: torch.special.ndtr(
                9 * (X - center).square().sum(-1) - 2.2 - 0.3 * torch.sin(5 * X + phase).sum(-1)
            ),
            towards,
            center.unsqueeze(0),
        )
    if family == "waves":
        across = uniform(-5, 5, 2 * d).view(d, 2)
        return Problem(
            lambda X: torch.special.ndtr(1.5 * torch.sin(X @ across + phase).sum(-1) - 0.8),
            towards,
            uniform(0, 1)[None],
        )
    if family == "steep edges":
        middle, width = uniform(0.45, 0.8, 1), uniform(0.04, 0.14, 1)
        return Problem(
            lambda X: 0.02 + 0.9 * torch.sigmoid((X[..., 0] - middle + 0.15 * (X[..., 1] - 0.5)) / width),
            lambda X: 8 * X[..., 0] + 3 * torch.sin(3 * X.sum(-1)),
            corner,
        )
    start, best, height, width = uniform(0.1, 0.3), uniform(0.7, 0.95), uniform(0.3, 0.8, 1), uniform(0.1, 0.2, 1)
    pit = start + (best - start) * uniform(0.45, 0.65, 1)
    return Problem(
        lambda X: 0.02 + height * torch.exp(-0.5 * (X - pit).square().sum(-1) / width**2),
        lambda X: 10 - 9 * (X - best).square().sum(-1),
        start.unsqueeze(0),
    )


def _search(functions: str, method: str, seed: int, trials: int = TRIALS) -> dict[str, Cell]:
    """What the trials of one search risk, and the recommendation at its end."""
    torch.manual_seed(seed)
    problem, began = problem_of(functions, seed), time.process_time()
    random = torch.Generator().manual_seed(10_000 * (1 + FAMILIES.index(functions)) + seed)
    d = problem.known.shape[-1]
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, d)
    tried, works, gains = problem.known, list[bool](), list[Tensor]()
    for trial in range(trials + 1):
        x = tried[-1:]
        works.append(bool(torch.rand(1, generator=random) > problem.risk(x)))
        gains.append(problem.gain(x) + ERROR * torch.randn(1, generator=random, dtype=torch.double))
        if method == "random walk":
            step = torch.randn(1, d, generator=random, dtype=torch.double)
            length = RADIUS * d**0.5 * torch.rand(1, generator=random) ** (1 / d)
            proposed = (problem.known + length * step / step.norm()).clamp(0, 1)
        else:
            validity = _validity(tried, works, is_stated=method == "next_safe, stated")
            improvement = SkewLogExpectedImprovement(_numbers(tried, gains), best_f=max(gains))
            options = {"safe_points": problem.known, "num_restarts": 2, "raw_samples": 128}
            proposed, _ = next_safe(improvement, bounds, validity, 1 - LIMIT, **options)
        if trial < trials:
            tried = torch.cat([tried, proposed])
    numbers = _numbers(tried, gains)
    if method == "random walk":
        best, _ = recommend(numbers)
    else:
        best, _ = recommend(numbers, bounds, validity=validity, level=1 - LIMIT, **options)
    risk, grid_of = problem.risk(tried[1:]), torch.linspace(0, 1, 201, dtype=torch.double)
    X = torch.cartesian_prod(*[grid_of] * d).view(-1, d)
    most = problem.gain(X)[problem.risk(X) <= LIMIT].max()
    return {
        "trials": trials, "over": int((risk > LIMIT).sum()), "worst": float(risk.max()),
        "still": int((tried[1:] == problem.known).all(-1).sum()),
        "recommended": float(problem.risk(best)), "safe": int(problem.risk(best) <= LIMIT),
        "regret": float(most - problem.gain(best)), "at_first": float(most - problem.gain(problem.known)),
        "seconds": time.process_time() - began,
    }  # fmt: skip


def _numbers(tried: Tensor, gains: list[Tensor]) -> SkewGP:
    likelihood = NumericLikelihood(noise=ERROR**2, learn_noise=False)
    return fit_skew_gp(SkewGP(tried, Numeric(torch.cat(gains)), likelihood)).model


def _validity(tried: Tensor, works: list[bool], is_stated: bool) -> FullyBayesianSkewGP:
    """With the statement that the known setting is safe, perhaps: its latent value is at least that of the level."""
    index = torch.cat([torch.arange(len(tried)), torch.zeros(SAID, dtype=torch.long)])
    data = [Validity(torch.tensor([*works, *[True] * SAID]), index=index)]
    least = torch.special.ndtri(torch.tensor([1 - LIMIT], dtype=torch.double))
    known = [Censored(least, torch.full_like(least, torch.inf), index=[0], noise=0.0)] if is_stated else []
    model = SkewGP(tried, [*data, *known], ValidityLikelihood(noise=1.0), approximation="ep")
    return fit_fully_bayesian_skew_gp(fit_skew_gp(model), num_draws=8)


def _columns(runs: Group) -> dict[str, Cell]:
    return {
        "runs": len(runs), **{name: runs.mean(name) for name in ("worst", "still", "safe", "at_first", "seconds")},
        "over": runs.ratio("over", "trials")[0], "error": runs.ratio("over", "trials")[1],
        "regret": runs.mean("regret"), "its_error": runs.error("regret"),
    }  # fmt: skip


RACES = (
    Race("safe_search", grid(functions=FAMILIES), grid(method=METHODS), range(20), _search,
         ("trials", "over", "worst", "still", "recommended", "safe", "regret", "at_first", "seconds"), _columns,
         [f"{TRIALS} trials after {SAID} outcomes of a known setting; safe is at most {LIMIT} of failures"],
         quick={"trials": 1}),
)  # fmt: skip

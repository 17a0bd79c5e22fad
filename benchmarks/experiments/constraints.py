"""Constraints that are learned: safe optimisation (unified framework, 5.2.3), and duels some of whose points turn out
not to be valid (preferential optimisation, figures 7 and 8).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._observations import normal_draw, rbf_kernel
from benchmarks._race import Cell, Group, Race, Row, grid
from benchmarks.experiments import optimisation
from benchmarks.experiments._models import build
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood, ValidityLikelihood
from botorch_skewgp.observations import Numeric, Validity
from botorch_skewgp.posteriors import SkewGPPosterior

HALF_WIDTH, NUM_POINTS, STEPS = 5.0, 500, 30
VARIANCE, LENGTHSCALE, NOISE = 2.0, 1.5, 1e-4
MOST_RISK, PENALTY, TAIL = 0.3, 1000.0, 0.025
# The paper (footnote 21) takes a beta of 0.85 in the SafeOpt library, whose bounds are mean -+ beta deviations.
TAIL_OF_SAFEOPT = float(torch.special.ndtr(torch.tensor(-0.85, dtype=torch.float64)))
METHODS = (
    "SkewGP",  # numbers and validity in one model; less 1,000 times what P[g < 0] exceeds 0.3 by
    "SkewGP, lower bound",  # the same model; points are safe whose lower 2.5 % quantile is not negative
    "SafeOpt, classifier",  # of valid numbers, with an EP classifier (noise 1, of which the paper says nothing)
    "SafeOpt, all values",  # as if points that are not valid told their value too; 95 %
)


def _function(number: int, X: Tensor) -> Tensor:
    """Values at all points of a function that is valid at 0."""
    generator = torch.Generator().manual_seed(number)
    start = X.squeeze(-1).abs().argmin()
    while True:
        lengthscale = 1 + torch.rand(1, generator=generator, dtype=X.dtype)
        covariance = VARIANCE * torch.exp(-0.5 * ((X - X.mT) / lengthscale).square())
        g = normal_draw(covariance, generator, 1e-9)
        if g[start] >= 0:
            return g


def _prior() -> dict[str, Any]:
    return {"covar_module": rbf_kernel(VARIANCE, LENGTHSCALE), "mean_module": ZeroMean()}


def _model(X: Tensor, values: Tensor, method: str) -> SkewGP:
    told = torch.ones_like(values, dtype=torch.bool) if method == "SafeOpt, all values" else values >= 0
    valid, failed = told.nonzero().squeeze(-1), (~told).nonzero().squeeze(-1)
    observations: list[Numeric | Validity] = [Numeric(values[valid], index=valid)]
    if method.startswith("SkewGP") and len(failed):
        observations.append(Validity(torch.zeros(len(failed), dtype=torch.bool), index=failed))
    numbers = NumericLikelihood(noise=NOISE, learn_noise=False)
    likelihood = MixedLikelihood(numbers, ValidityLikelihood(threshold=0.0, noise=NOISE))
    return SkewGP(X, observations, likelihood=likelihood, **_prior())


def _interval(posterior: SkewGPPosterior, tail: float) -> tuple[Tensor, Tensor]:
    levels = torch.tensor([tail, 1 - tail], dtype=posterior.dtype)
    lower, upper = (bound.flatten() for bound in posterior.quantile(levels))
    return lower, upper


@torch.no_grad()
def _next(method: str, X: Tensor, g: Tensor, asked: Sequence[int]) -> int:
    which = torch.tensor(asked)
    model = _model(X[which], g[which], method)
    posterior = model.posterior(X.unsqueeze(-2))
    tail = TAIL_OF_SAFEOPT if method == "SafeOpt, classifier" else TAIL
    lower, upper = _interval(posterior, tail)
    if method == "SkewGP":
        risk = posterior.cdf(torch.zeros(1, dtype=X.dtype)).flatten()
        return int((upper - PENALTY * (risk - MOST_RISK).clamp(min=0)).argmax())
    safe = lower >= 0
    if method == "SkewGP, lower bound":
        safe[asked[0]] = True  # known to be valid from the beginning
        return int(torch.where(safe, upper, -torch.inf).argmax())
    constraint, bounds, noise = model, (lower, upper), NOISE
    if method == "SafeOpt, classifier":
        likelihood, noise = ValidityLikelihood(noise=1.0), 1.0
        constraint = build("EP", X[which], [Validity(g[which] >= 0)], likelihood=likelihood, **_prior())
        bounds = _interval(constraint.posterior(X.unsqueeze(-2)), tail)
        safe = safe & (bounds[0] >= 0)
    safe[asked[0]] = True
    covariance = constraint.posterior(X).covariance_matrix
    wanted = _maximisers(lower, upper, safe) | _expanders(covariance, *bounds, safe, noise, tail)
    return int(torch.where(wanted, upper - lower, -torch.inf).argmax())


def _maximisers(lower: Tensor, upper: Tensor, safe: Tensor) -> Tensor:
    """Safe points that may be best."""
    return safe & (upper >= lower[safe].max())


def _expanders(
    covariance: Tensor, lower: Tensor, upper: Tensor, safe: Tensor, noise: float = NOISE, tail: float = TAIL
) -> Tensor:
    """Safe points at which a value as large as is plausible would make another point safe."""
    variance, mean = covariance.diagonal(), 0.5 * (lower + upper)
    gain = covariance / (variance + noise).unsqueeze(-1)  # of the point in the row, for that in the column
    new_mean = mean + gain * (upper - mean).unsqueeze(-1)
    new_variance = (variance - gain * covariance).clamp(min=0)  # rounding only
    deviations = -torch.special.ndtri(torch.tensor(tail, dtype=lower.dtype))
    return safe & ((new_mean - deviations * new_variance.sqrt() >= 0) & ~safe).any(-1)


def _run(method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    X = torch.linspace(-HALF_WIDTH, HALF_WIDTH, NUM_POINTS, dtype=torch.float64).unsqueeze(-1)
    g = _function(seed, X)
    asked, began = [int(X.squeeze(-1).abs().argmin())], time.process_time()
    steps = 2 if smoke else STEPS
    for _ in range(steps):
        asked.append(_next(method, X, g, asked))
    seconds = (time.process_time() - began) / steps
    values = g[torch.tensor(asked)]
    best = [float(g.max() - values[: n + 1][values[: n + 1] >= 0].max()) for n in range(len(values))]
    return {
        "violations": int((values[1:] < 0).sum()), "regret": " ".join(f"{regret:.4g}" for regret in best),
        "seconds_per_step": seconds,
    }  # fmt: skip


def _derived(row: Row) -> dict[str, Cell]:
    trace = optimisation.trace_of(row)
    return {"final": trace[-1], "evaluations": len(trace) - 1}


def _columns(runs: Group) -> dict[str, Cell]:
    more, its_error = runs.less("final", method=METHODS[0])
    violations = runs.values("violations")
    return {
        "violations": int(violations.sum()), "evaluations": int(runs.values("evaluations").sum()),
        "a_function": runs.mean("violations"), "error_of_violations": runs.error("violations"),
        "functions": int((violations > 0).sum()), "of": len(runs), "regret": runs.mean("final"),
        "error": runs.error("final"), "less_than_skewgp": -more, "its_error": its_error,
        "seconds_per_step": runs.mean("seconds_per_step"),
    }  # fmt: skip


# An unknown constraint: Sasena's function

WAYS = (
    "two models",  # of duels and of validity; the best of points that are valid with a probability of one half
    "one function",  # of both kinds of answers, as in the paper, by the mixed likelihood (10) with noise 1
    "penalty",  # all points duel, by the utility less `1e8 max(0, h)^2`
)
OF_DUELS = tuple(f"{way}, {name}" for name in ("UCB", "EIIG 0.1", "Thompson") for way in WAYS)
FIRST, QUESTIONS, BEST, OF_EXCESS, LEAST = 10, 60, 1.1743, 1e8, 0.5


def value(U: Tensor) -> Tensor:
    """Sasena's function of points in the unit cube, turned to be maximised."""
    x1, x2 = (5 * U).unbind(-1)
    bowls = (x2 - x1.square()).square() / 100 + (1 - x1).square() + 2 * (2 - x2).square()
    return -(2 + bowls + 7 * torch.sin(0.5 * x1) * torch.sin(0.7 * x1 * x2))


def excess(U: Tensor) -> Tensor:
    """What must not be positive."""
    x1, x2 = (5 * U).unbind(-1)
    return -torch.sin(x1 - x2 - math.pi / 8)


def _of_duels(method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    way, acquisition = method.split(", ")
    is_joint, is_penalised = way == "one function", way == "penalty"
    generator = torch.Generator().manual_seed(seed)
    points = torch.empty(0, 2, dtype=torch.float64)
    penalty = OF_EXCESS if is_penalised else 0.0
    history = optimisation.History(
        points, lambda X: value(X) - penalty * excess(X).clamp(min=0).square(), lambda X: excess(X) <= 0
    )

    def answer(step: int, new: int, best: int) -> None:
        if best >= 0 and (is_penalised or history.valid[new]):
            history.duel(new, best)

    best = -1
    first_points = points
    while (excess(first_points) <= 0).sum() < 2:
        first_points = torch.rand(FIRST, 2, generator=generator, dtype=torch.float64)
    for point in first_points:
        new = history.add(point)
        answer(0, new, best)
        if is_penalised or history.valid[new]:
            best = new if best < 0 else history.pairs[-1][0]
    likelihood = MixedLikelihood(PreferenceLikelihood(), ValidityLikelihood(noise=1.0)) if is_joint else None
    fitter, fitter_of_validity = optimisation.Fitter("SkewGP", smoke, likelihood), optimisation.Fitter("SkewGP", smoke)

    def fit() -> SkewGP:
        return fitter(history.points, [*history.observations(), *([Validity(history.valid)] if is_joint else [])])

    def among(X: Tensor) -> Tensor:
        if way != "two models":
            return X
        validity = fitter_of_validity(history.points, [Validity(history.valid)])
        chance = optimisation.values_at(LogProbabilityOfValidity(validity), X).exp()
        return X[chance >= min(LEAST, float(chance.max()))]

    found = optimisation.search(
        history, fit, answer, lambda x: BEST - float(value(x)), acquisition, 1 if smoke else QUESTIONS, generator, seed,
        among, smoke,
    )  # fmt: skip
    return {**found, "not_valid": int((~history.valid[FIRST:]).sum())}


RACES = (
    Race(
        "experiments/safe_optimisation", [{}], grid(method=METHODS), range(100), _run,
        ("violations", "regret", "seconds_per_step"), _columns,
        ["in the paper: 51 violations of 3,000 (SafeOpt), 53 (SkewGP)",
         "functions: those with a violation; less_than_skewgp: of paired final regrets"],
        derived=_derived, quick={"smoke": True},
    ),
    Race(
        "experiments/unknown_constraint", [{}], grid(method=OF_DUELS), range(20), _of_duels,
        ("regret", "not_valid", "seconds_per_step"),
        lambda runs: {
            **optimisation.regret_columns(OF_DUELS[0], runs), "not_valid": runs.mean("not_valid"),
            "error_of_not_valid": runs.error("not_valid"),
        },
        [*optimisation.NOTES, f"not_valid: of {QUESTIONS} questions"],
        derived=optimisation.regrets, plot=partial(optimisation.plot_regret, xlabel="questions"), quick={"smoke": True},
    ),
)  # fmt: skip

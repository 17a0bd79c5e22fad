"""What a rate of slips is worth: calibration of simulated duels, exact and by expectation propagation; ranks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from gpytorch.means import ConstantMean
from torch import Tensor

from benchmarks._observations import noisy, normal_draw, random_items, rbf_kernel, squared_exponential, winner_first
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.items.effects import item_covar_module, item_points
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Preference

NUM_POINTS, NUM_NEW, LEVEL = 12, 200, 0.9
MODELS = ("exact", "EP", "exact, no slips")
ITEMS, MEMBERS, RANDOM, VOTES, SPREAD = 12, 10, 2, 30, 2.0
TAILS = torch.tensor([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], dtype=torch.float64)
MEASURES = ("log_loss", "coverage", "error", "slip_loss")
OF_VOTES = ("ranks_coverage", "utilities_coverage", "correlation", "rate_of_random", "rate_of_others")


def _answer(f: Tensor, pairs: Tensor, slips: Tensor, g: torch.Generator) -> Tensor:
    ahead = noisy(f[pairs[:, 0]] - f[pairs[:, 1]], 2.0, g) > 0
    return winner_first(pairs, torch.where(slips, torch.rand(len(pairs), generator=g) < 0.5, ahead))


def _log_loss(p: Tensor, truth: Tensor) -> float:
    p = p.clamp(1e-9, 1 - 1e-9)
    return -float((truth * p.log() + (1 - truth) * (1 - p).log()).mean())


def _coverage(draws: Tensor, truth: Tensor) -> float:
    low, high = draws.quantile(TAILS, dim=0)
    return float(((low <= truth) & (truth <= high)).double().mean())


def _of_duels(outputscale: float, slip: float, duels: int, model: str, seed: int) -> dict[str, Cell]:
    g = torch.Generator().manual_seed(seed)
    X = torch.rand(NUM_POINTS, 1, dtype=torch.double, generator=g)
    f = normal_draw(outputscale * squared_exponential(X, 0.2), g, 1e-9 * outputscale)
    pairs = random_items(NUM_POINTS, duels, 2, g)
    slips = torch.rand(len(pairs), generator=g) < slip
    answers, new = _answer(f, pairs, slips, g), random_items(NUM_POINTS, NUM_NEW, 2, g)
    ignores = model == "exact, no slips"
    likelihood, began = PreferenceLikelihood(slip=0.0 if ignores else slip), time.process_time()
    fitted = SkewGP(
        X, Preference(answers), likelihood=likelihood, covar_module=rbf_kernel(outputscale, 0.2),
        mean_module=ConstantMean(), approximation="ep" if model == "EP" else None,
    ).eval()  # fmt: skip
    with torch.no_grad():
        samples = fitted.posterior(X).rsample(torch.Size([2048])).squeeze(-1)
        seconds = time.process_time() - began
        slip_loss = math.nan if ignores else _log_loss(fitted.slips(), slips.double())
    differences, truth = (values[..., new[:, 0]] - values[..., new[:, 1]] for values in (samples, f))
    wins, expected = torch.special.ndtr(differences / math.sqrt(2)).mean(0), torch.special.ndtr(truth / math.sqrt(2))
    return {
        "log_loss": _log_loss(wins, expected),  # that attentive answers are expected to have
        "coverage": _coverage(differences, truth),
        "error": float((differences.mean(0) - truth).square().mean().sqrt() / math.sqrt(2 * outputscale)),
        "slip_loss": slip_loss,
        "seconds": seconds,
    }


def _columns_of_duels(runs: Group) -> dict[str, Cell]:
    row: dict[str, Cell] = {"data_sets": len(runs), "seconds": runs.median("seconds")}
    for measure in MEASURES:
        less, error = runs.less(measure, model="exact")
        of_exact = runs.names["model"] == "exact"
        row |= {measure: runs.mean(measure), f"{measure}_less_exact": None if of_exact else less,
                f"{measure}_error": runs.error(measure) if of_exact else error}  # fmt: skip
    return row


LIKELIHOODS: dict[str, Callable[[], PreferenceLikelihood]] = {
    "slips of each": lambda: PreferenceLikelihood(slip=torch.full((MEMBERS,), 0.05), learn_slip=True),
    "one rate": lambda: PreferenceLikelihood(learn_slip=True),
    "reliabilities": PreferenceLikelihood,
    "neither": PreferenceLikelihood,
}


def _of_votes(model: str, seed: int) -> dict[str, Cell]:
    g = torch.Generator().manual_seed(seed)
    f = SPREAD * torch.randn(ITEMS, dtype=torch.double, generator=g)
    pairs, judge = random_items(ITEMS, MEMBERS * VOTES, 2, g), torch.arange(MEMBERS * VOTES) % MEMBERS
    duels = _answer(f, pairs, judge >= MEMBERS - RANDOM, g)
    personal = rbf_kernel(1e-6, 1.0).requires_grad_(False)  # members differ in their slips alone
    began = time.process_time()
    fitted = SkewGP(
        item_points(torch.arange(ITEMS)), Preference(duels, judge=judge), likelihood=LIKELIHOODS[model](),
        covar_module=item_covar_module(), judge_covar_module=personal,
        learn_judge_reliability=model == "reliabilities",
    )  # fmt: skip
    fit_skew_gp(fitted)
    with torch.no_grad():
        torch.manual_seed(seed)
        samples = fitted.posterior(fitted.datapoints).rsample(torch.Size([2048])).squeeze(-1)
    seconds = time.process_time() - began
    centred, truth = samples - samples.mean(-1, keepdim=True), f - f.mean()
    ranks = samples.argsort(-1, descending=True).argsort(-1).double() + 1
    of_truth = f.argsort(descending=True).argsort().double() + 1
    low_rank = ranks.quantile(TAILS[0], dim=0, interpolation="lower")
    high_rank = ranks.quantile(TAILS[1], dim=0, interpolation="higher")
    rates = fitted.likelihood.slip.detach().expand(MEMBERS)
    return {
        "ranks_coverage": float(((low_rank <= of_truth) & (of_truth <= high_rank)).double().mean()),
        "utilities_coverage": _coverage(centred, truth),
        "correlation": float(torch.corrcoef(torch.stack([centred.mean(0), truth]))[0, 1]),
        "rate_of_random": float(rates[MEMBERS - RANDOM :].mean()),
        "rate_of_others": float(rates[: MEMBERS - RANDOM].mean()),
        "seconds": seconds,
    }


RACES = (
    Race("slips_duels", grid(outputscale=(10.0, 100.0), slip=[0.05], duels=[30]), grid(model=MODELS), range(200),
         _of_duels, (*MEASURES, "seconds"), _columns_of_duels, ["paired differences with standard errors"]),
    Race("slips_votes", [{}], grid(model=LIKELIHOODS), range(30), _of_votes, (*OF_VOTES, "seconds"),
         lambda runs: {"crowds": len(runs), **{name: runs.mean(name) for name in OF_VOTES},
                       "seconds": runs.median("seconds"),
                       **{f"{name}_error": runs.error(f"{name}_coverage") for name in ("ranks", "utilities")}},
         ["coverage of 90 % intervals"]),
)  # fmt: skip

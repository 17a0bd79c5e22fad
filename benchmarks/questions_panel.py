"""Whom to ask: duels of two judges, a good and dear one and a cheap and noisy one, by `next_question`, or of one alone.

A run is a function and a seed. All methods start with the same six duels of Sobol points by each judge, which are
free. Both judges want the same; the noise of an item is a hundredth of the function's standard deviation over the
domain for the good judge, and half of it for the cheap one. A duel costs 4 and 1, and a run 30, or 60 where the method
says so. Reported is the simple regret of the point of largest posterior mean in the domain, against money, at the end
and at half of it, with logarithms floored at 1e-6. Models have reliabilities of judges, are fitted after every third
answer, from the last hyperparameters, and have 512 draws. "Told" models know the reliabilities, that the good judge is
consistent, and that both want the same; others learn all that. Seconds are those of the processor, on one thread.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from benchmarks._race import Cell, Group, Race, grid
from benchmarks._utilities import find_utility
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_question, recommend
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Preference
from botorch_skewgp.truncated.draws import DrawSettings

NOISE, PRICE, REFIT, STARTS = (0.01, 0.5), (4.0, 1.0), 3, 6
ASKED = {"both": (0, 1), "good and dear": (0,), "cheap and noisy": (1,)}
CASES = {"": (False, 30.0), ", told": (True, 30.0), ", told, 60": (True, 60.0)}  # whether told, and the budget
METHODS = {name + case: (who, case) for case in CASES for name, who in ASKED.items()}
HALF, END, COURSE = "regret_half", "regret", "log10_course"
MEASURED = (HALF, END, COURSE, "asked_good", "asked_cheap", "seconds_per_question")


def _columns(runs: Group) -> dict[str, Cell]:
    both = f"both{METHODS[str(runs.names['method'])][1]}"
    less, error = runs.less(END, 1e-6, method=both)
    course, its_error = runs.less(COURSE, method=both)
    return {
        "seeds": len(runs), **{name: runs.mean(name) for name in MEASURED}, HALF: runs.median(HALF),
        END: runs.median(END), "log10_less_than_both": less, "error": error, "course_less_than_both": course,
        "its_error": its_error,
    }  # fmt: skip


def _model(X: Tensor, answers: Preference, told: bool) -> SkewGP:
    known: dict[str, Any] = {"learn_judge_reliability": True, "draw_settings": DrawSettings(num_draws=512)}
    if not told:
        return SkewGP(X, answers, **known)
    known["covar_module"] = default_covar_module(X.shape[-1], answers, judge="consistent")
    model = SkewGP(X, answers, judge_covar_module=LinearTastesKernel(0), **known)
    model.judge_reliability.initialize(logarithm=-torch.tensor(NOISE).log()).requires_grad_(False)
    return model


def _run(function: str, method: str, seed: int, budget: float | None = None) -> dict[str, Cell]:
    who, case = METHODS[method]
    told, money_of_case = CASES[case]
    budget = money_of_case if budget is None else budget
    utility, generator = find_utility(function), torch.Generator().manual_seed(seed)
    bounds = torch.tensor([[0.0] * utility.dim, [1.0] * utility.dim], dtype=torch.float64)
    deviation = float(utility.values().std())

    def winner_first(pair: Tensor, judge: int) -> Tensor:
        noise = torch.randn(2, dtype=torch.float64, generator=generator)
        return pair[(utility.evaluate(pair) + NOISE[judge] * deviation * noise).argsort(descending=True)]

    X = draw_sobol_samples(bounds, n=4 * STARTS, q=1, seed=seed).squeeze(-2).view(-1, 2, utility.dim)
    judges = [i % 2 for i in range(len(X))]
    duels = [winner_first(pair, judge) for pair, judge in zip(X, judges, strict=True)]
    regrets, money, spent = [], [], 0.0
    state: dict[str, Tensor] = {}
    began, step = time.process_time(), 0
    while True:
        points, place = torch.cat(duels).unique(dim=0, return_inverse=True)
        model = _model(points, Preference(place.view(-1, 2), judge=judges), told)
        hyperparameters = dict(model.named_parameters())
        with torch.no_grad():
            for key, value in state.items():
                hyperparameters[key].copy_(value)
        if step % REFIT == 0:
            mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 50}}, warning_handler=lambda _: True)
            state = {key: p.detach().clone() for key, p in hyperparameters.items() if p.numel()}
        model.eval()
        best, _ = recommend(model, bounds, num_restarts=3, raw_samples=64)
        regrets.append(utility.best - float(utility.evaluate(best)))
        money.append(spent)
        affordable = {judge: PRICE[judge] for judge in who if spent + PRICE[judge] <= budget}
        if not affordable:
            break
        asked = next_question(model, bounds, [Preference], judges=affordable, seed=step)
        assert isinstance(asked.judge, int)
        duels.append(winner_first(asked.X.detach(), asked.judge))
        judges.append(asked.judge)
        spent, step = spent + asked.cost, step + 1
    seconds = (time.process_time() - began) / max(step, 1)
    at = [
        [regret for regret, paid in zip(regrets, money, strict=True) if paid <= m][-1] for m in range(int(budget) + 1)
    ]
    course = sum(math.log10(max(regret, 1e-6)) for regret in at) / len(at)
    asked_of = [judges[2 * STARTS :].count(judge) for judge in (0, 1)]
    return dict(zip(MEASURED, (at[int(budget) // 2], regrets[-1], course, *asked_of, seconds), strict=True))


RACES = (
    Race("questions_panel", grid(function=("camel", "hartmann3")), grid(method=METHODS), range(10), _run, MEASURED,
         _columns, ["regrets are medians, all else means"], quick={"budget": 4.0}),
)  # fmt: skip

"""Which kind of question to ask, by price: numbers, duels and grades mixed by `next_question`, or each alone."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms import Standardize
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks._functions import Utility, find_utility, sobol_points, unit_cube, with_points
from benchmarks._race import Cell, Group, Names, Race, Row, grid, mean_and_error
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_question, recommend
from botorch_skewgp.fitting import warm_start
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import NumericLikelihood, OrdinalLikelihood, PreferenceLikelihood, RowLikelihood
from botorch_skewgp.likelihoods.defaults import ANCHORED_NOISE
from botorch_skewgp.likelihoods.registry import default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Numeric, Observation, Ordinal, Preference
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import SinhArcsinh

NOISE, ERRING_NOISE, ERRING_PRIOR, REFIT, NUM_GRADES = 0.01, 0.3, (0.25, 1.5), 3, 5
GRADED = (0.5, 0.8, 0.95, 0.99)  # quantiles of the function at the cut-points of grades
FUNCTIONS = ("camel", "hartmann6", "rosenbrock5", "mixed5")
ERRING = ", judges err"
PRICES = {"10:1:2": (10.0, 1.0, 2.0), "3:1:1": (3.0, 1.0, 1.0), "1:1:1": (1.0, 1.0, 1.0)}
PRICES |= {prices + ERRING: PRICES[prices] for prices in ("3:1:1", "10:1:2")}
BUDGETS = {"10:1:2": 30.0, "3:1:1": 20.0, "1:1:1": 15.0, "3:1:1" + ERRING: 60.0, "10:1:2" + ERRING: 80.0}
KINDS: tuple[type[Observation], ...] = (Numeric, Preference, Ordinal)
LONG_TAILED = ("rosenbrock5",)
METHODS: dict[str, dict[str, Any]] = {
    "mixed": {"kinds": KINDS},
    "mixed, errors expected": {"kinds": KINDS, "errors_expected": True},
    "numbers": {"kinds": (Numeric,)},
    "duels": {"kinds": (Preference,)},
    "grades": {"kinds": (Ordinal,)},
    "mixed, told": {"kinds": KINDS, "told": True},
    "numbers, told": {"kinds": (Numeric,), "told": True},
    "duels, told": {"kinds": (Preference,), "told": True},
}
SHARES = (0.25, 0.5, 1.0)  # of the budget at which regret is told
VALUES = ("asked", "seconds_per_question", "money", "domain_regret", "asked_regret")
SEARCH: dict[str, Any] = {"num_restarts": 3, "raw_samples": 64}


def _mixed(U: Tensor) -> Tensor:
    classes = U.new_tensor([0.0, 0.3, 0.6])[(2 * U[..., 4]).round().long()]
    return find_utility("hartmann3").evaluate(U[..., :3]) - 0.8 * (U[..., 3] - 0.5).abs() - classes


def _utility(name: str) -> tuple[Utility, dict[str, Any]]:
    if name != "mixed5":
        return find_utility(name), {}
    values = [0.0, 0.5, 1.0]
    utility = Utility(name, 5, find_utility("hartmann3").best, _mixed)
    return utility, {"discrete_dims": {3: values}, "cat_dims": {4: values}}


@dataclass
class _Answers:
    """Points, and what was answered about them."""

    utility: Utility
    noise: float
    generator: torch.Generator
    points: Tensor
    numbers: list[tuple[int, float]] = field(default_factory=list)
    duels: list[list[int]] = field(default_factory=list)
    grades: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        values = self.utility.values()
        self.deviation = float(values.std())
        self.cutpoints = values.quantile(torch.tensor(GRADED, dtype=values.dtype))

    def ask(self, kind: type[Observation], X: Tensor) -> None:
        self.points, rows = with_points(self.points, X)
        noise = torch.randn(2, dtype=torch.float64, generator=self.generator)[: len(X)]
        seen = self.utility.evaluate(X) + (NOISE if kind is Numeric else self.noise) * self.deviation * noise
        if kind is Numeric:
            self.numbers.append((rows[0], float(seen[0])))
        elif kind is Ordinal:
            self.grades.append((rows[0], int((seen[0] > self.cutpoints).sum())))
        else:
            self.duels.append(rows if seen[0] > seen[1] else rows[::-1])

    def observations(self, told: bool) -> list[Observation]:
        """All answers; of numbers the noise is told or not."""
        index, values = map(list, zip(*self.numbers, strict=True))
        graded, grades = map(list, zip(*self.grades, strict=True))
        noise = torch.tensor((NOISE * self.deviation) ** 2, dtype=torch.float64) if told else None
        numbers, ordinal = Numeric(values, noise, index), Ordinal(grades, NUM_GRADES, index=graded)
        return [numbers, Preference(self.duels), ordinal]


def _start(utility: Utility, values: dict[str, Any], noise: float, seed: int) -> _Answers:
    X = sobol_points(utility.dim, 20, seed)
    for dims in values.values():
        for dim in dims:
            X[:, dim] = (2 * X[:, dim]).round() / 2
    answers = _Answers(utility, noise, torch.Generator().manual_seed(seed), X[:0])
    for i in range(4):
        answers.ask(Numeric, X[i : i + 1])
        answers.ask(Ordinal, X[i + 4 : i + 5])
    for i in range(6):
        answers.ask(Preference, X[8 + 2 * i : 10 + 2 * i])
    return answers


def _likelihood(answers: _Answers, observations: Sequence[Observation], method: dict[str, Any]) -> RowLikelihood:
    """The default likelihood, but for a warping of numbers with a long tail and what the method says of judgements."""
    factories: dict[type[Observation], Any] = {}
    if answers.utility.name in LONG_TAILED:
        factories[Numeric] = lambda *context: NumericLikelihood(warping=SinhArcsinh())
    noise: dict[str, Any] = {}
    if method.get("errors_expected"):
        noise = {"noise": ANCHORED_NOISE, "learn_noise": True, "noise_prior": LogNormalPrior(*ERRING_PRIOR)}
    elif method.get("told"):
        numbers = torch.tensor([value for _, value in answers.numbers], dtype=torch.float64)
        noise = {"noise": float((answers.noise * answers.deviation / numbers.std()) ** 2)}
    if noise:
        factories[Preference] = lambda *context: PreferenceLikelihood(**noise)
        factories[Ordinal] = lambda *context: OrdinalLikelihood(NUM_GRADES, learn_shift=True, **noise)
    return default_likelihood(observations, factories=factories)


def _fitted(model: SkewGP, earlier: SkewGP | None, step: int) -> SkewGP:
    """The last model that was fitted, whose hyperparameters this one has; every third one is."""
    if earlier is not None:
        warm_start(model, earlier)
    if step % REFIT:
        model.eval()
        return earlier or model
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 50}}, warning_handler=lambda _: True)
    return model.eval()


def _run(
    prices: str, function: str, method: str, seed: int, budget: float | None = None
) -> dict[str, Cell] | list[Names]:
    """One run; its traces are money spent and regret after each answer."""
    told = METHODS[method]
    errs = prices.endswith(ERRING)
    if (errs and method == "grades") or ("," in method and not errs):
        return []
    budget = BUDGETS[prices] if budget is None else budget
    utility, values = _utility(function)
    cost = dict(zip(KINDS, PRICES[prices], strict=True))
    answers = _start(utility, values, ERRING_NOISE if errs else NOISE, seed)
    bounds = unit_cube(utility.dim)
    fitted: SkewGP | None = None
    spent, step, began = 0.0, 0, time.process_time()
    money, asked, in_domain, among_asked = [], [], [], []
    while True:
        observations = answers.observations(told.get("told", False))
        model = SkewGP(
            answers.points, observations, _likelihood(answers, observations, told),
            outcome_transform=Standardize(m=1), draw_settings=DrawSettings(num_draws=512),
        )  # fmt: skip
        fitted = _fitted(model, fitted, step)
        best, _ = recommend(model, bounds, **SEARCH, **values)
        known, _ = recommend(model, X_candidates=answers.points)
        money.append(spent)
        in_domain.append(utility.best - float(utility.evaluate(best)))
        among_asked.append(utility.best - float(utility.evaluate(known)))
        if spent + min(cost[kind] for kind in told["kinds"]) > budget:
            break
        kinds = [kind for kind in told["kinds"] if spent + cost[kind] <= budget]
        found = next_question(model, bounds, kinds, cost, method="knowledge_gradient", seed=step, **values)
        kind = found.question.kind
        answers.ask(kind, found.X.detach())
        asked.append(kind.__name__[0])
        spent, step = spent + cost[kind], step + 1
    seconds = (time.process_time() - began) / max(step, 1)
    traces = (" ".join(f"{value:.4g}" for value in trace) for trace in (money, in_domain, among_asked))
    return dict(zip(VALUES, ("".join(asked), seconds, *traces), strict=True))


def _regret(row: Row, column: str, money: Tensor) -> Tensor:
    spent, regret = (torch.tensor([float(x) for x in row[name].split()]).double() for name in ("money", column))
    return regret[torch.searchsorted(spent, money + 1e-9, right=True) - 1]


def _medians(runs: Group) -> dict[str, Cell]:
    """Regret at shares of the budget, and how many of each kind were asked."""
    row: dict[str, Cell] = {"seeds": len(runs)}
    money = BUDGETS[str(runs.names["prices"])] * torch.tensor(SHARES).double()
    for name in ("domain", "asked"):
        regrets = torch.stack([_regret(run, f"{name}_regret", money) for run in runs.rows]).quantile(0.5, dim=0)
        row |= {f"{name}_{share:g}": float(regret) for share, regret in zip(SHARES, regrets, strict=True)}
    for letter in "NPO":
        row[letter] = sum(run["asked"].count(letter) for run in runs.rows) / len(runs)
    return {**row, "seconds": runs.median("seconds_per_question")}


def _paired(runs: Group) -> list[Names]:
    """Of mixed questions beside each single kind, told or not like them, in the domain."""
    name, budget = str(runs.names["method"]), BUDGETS[str(runs.names["prices"])]
    course, rows = torch.linspace(0, budget, 21).double(), list[Names]()
    suffix = ", told" if "told" in METHODS[name] else ""
    for kind in ("numbers", "duels", "grades") if name.startswith("mixed") else ():
        pairs = runs.pairs(method=kind + suffix)
        if len(pairs) < 2:
            continue
        mine, others = (
            torch.stack([_regret(pair[i], "domain_regret", course) for pair in pairs]).clamp(min=1e-6).log10()
            for i in (0, 1)
        )
        end, its_error = mean_and_error((mine - others)[:, -1])
        average, error = mean_and_error((mine - others).mean(-1))
        rows.append({
            "against": kind, "seeds": len(pairs), "median": float((10 ** mine[:, -1]).quantile(0.5)),
            "of_other": float((10 ** others[:, -1]).quantile(0.5)), "log10_difference": end,
            "standard_error": its_error, "of_averages": average, "error": error,
        })  # fmt: skip
    return rows


# Judges

NOISES, PRICE, STARTS = (NOISE, 0.5), (4.0, 1.0), 6
ASKED = {"both": (0, 1), "good and dear": (0,), "cheap and noisy": (1,)}
KNOWING = {"": (False, 30.0), ", told": (True, 30.0), ", told, 60": (True, 60.0)}  # whether told, and the budget
POLICIES = {name + case: (who, case) for case in KNOWING for name, who in ASKED.items()}
HALF, END, COURSE = "regret_half", "regret", "log10_course"
OF_PANEL = (HALF, END, COURSE, "asked_good", "asked_cheap", "seconds_per_question")


def _of_panel(runs: Group) -> dict[str, Cell]:
    both = f"both{POLICIES[str(runs.names['method'])][1]}"
    less, error = runs.less(END, 1e-6, method=both)
    course, its_error = runs.less(COURSE, method=both)
    return {
        "seeds": len(runs), **{name: runs.mean(name) for name in OF_PANEL}, HALF: runs.median(HALF),
        END: runs.median(END), "log10_less_than_both": less, "error": error, "course_less_than_both": course,
        "its_error": its_error,
    }  # fmt: skip


def _panel_model(X: Tensor, answers: Preference, told: bool) -> SkewGP:
    known: dict[str, Any] = {"learn_judge_reliability": True, "draw_settings": DrawSettings(num_draws=512)}
    if not told:
        return SkewGP(X, answers, **known)
    known["covar_module"] = default_covar_module(X.shape[-1], answers, judge="consistent")
    model = SkewGP(X, answers, judge_covar_module=LinearTastesKernel(0), **known)
    model.judge_reliability.initialize(logarithm=-torch.tensor(NOISES).log()).requires_grad_(False)
    return model


def _ask_panel(function: str, method: str, seed: int, budget: float | None = None) -> dict[str, Cell]:
    who, case = POLICIES[method]
    told, money_of_case = KNOWING[case]
    budget = money_of_case if budget is None else budget
    utility, generator = find_utility(function), torch.Generator().manual_seed(seed)
    bounds = unit_cube(utility.dim)
    deviation = utility.deviation()

    def winner_first(pair: Tensor, judge: int) -> Tensor:
        noise = torch.randn(2, dtype=torch.float64, generator=generator)
        return pair[(utility.evaluate(pair) + NOISES[judge] * deviation * noise).argsort(descending=True)]

    X = sobol_points(utility.dim, 4 * STARTS, seed).view(-1, 2, utility.dim)
    judges = [i % 2 for i in range(len(X))]
    duels = [winner_first(pair, judge) for pair, judge in zip(X, judges, strict=True)]
    regrets, money, spent = [], [], 0.0
    fitted: SkewGP | None = None
    began, step = time.process_time(), 0
    while True:
        points, place = torch.cat(duels).unique(dim=0, return_inverse=True)
        model = _panel_model(points, Preference(place.view(-1, 2), judge=judges), told)
        fitted = _fitted(model, fitted, step)
        best, _ = recommend(model, bounds, **SEARCH)
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
    paid = torch.tensor(money)
    at = [regrets[int((paid <= m).sum()) - 1] for m in range(int(budget) + 1)]
    course = sum(math.log10(max(regret, 1e-6)) for regret in at) / len(at)
    asked_of = [judges[2 * STARTS :].count(judge) for judge in (0, 1)]
    return dict(zip(OF_PANEL, (at[int(budget) // 2], regrets[-1], course, *asked_of, seconds), strict=True))


CASES = [*grid(prices=[prices for prices in PRICES if ERRING not in prices], function=FUNCTIONS),
         *grid(prices=[prices for prices in PRICES if ERRING in prices], function=("camel", "mixed5"))]  # fmt: skip
RACES = (
    Race("questions", CASES, grid(method=METHODS), range(10), _run, VALUES, _medians,
         ["medians over seeds of regret at shares of the budget; N, P, O: Numbers, Preferences, Ordinals asked a run; "
          "paired: log10 of the regret in the domain less the other's (negative: mixing is ahead), floored at 1e-6: at "
          "the end, over the course"], {"questions_paired": _paired}, quick={"budget": 2.0}),
    Race("questions_panel", grid(function=("camel", "hartmann3")), grid(method=POLICIES), range(10), _ask_panel,
         OF_PANEL, _of_panel, ["regrets are medians, all else means; logarithms are of 1e-6 at least"],
         quick={"budget": 4.0}),
)  # fmt: skip

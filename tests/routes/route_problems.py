"""Small problems from features: a kind of answers, judges, slips, weights, numbers beside, priors, transforms ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import torch
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import Kernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean, Mean
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp import likelihoods as every_likelihood
from botorch_skewgp import observations as kinds
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import MixedLikelihood, RowLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Observation
from botorch_skewgp.truncated.draws import DrawSettings

BESIDE = [0, 3, 6]  # the points of numbers beside other answers
NUM_POINTS, NUM_ANSWERS, NUM_GRADES, NUM_LABELS, NUM_STRENGTHS = 7, 8, 4, 3, 2
NUM_JUDGES = {"no judges": 0, "one judge": 1, "two judges": 2, "some unnamed": 2, "many judges": 4, "reliability": 2}
FEATURES = {
    "kind": (
        "numbers", "known noise", "sums", "labels", "grades", "grades of items", "censored", "validity", "duels",
        "strengths", "ties", "votes", "choices", "choices or none", "rankings", "partial rankings", "tied rankings",
        "classes", "slopes", "affine",
    ),
    "judges": tuple(NUM_JUDGES),
    "slips": ("no slips", "slips", "slips by judge", "guesses"),
    "weights": ("single", "counts", "fractions"),
    "beside": ("alone", "numbers beside", "duels beside"),
    "prior": ("Gaussian prior", "skew prior"),
    "mean": ("constant", "default mean", "linear mean"),
    "transforms": ("untransformed", "inputs", "outcomes", "inputs and outcomes"),
    "kernel": (
        "plain", "default kernel", "Matern", "sum", "sum with linear", "product", "scale of one input", "categories",
        "subclass", "wrapper",
    ),
}  # fmt: skip
RARE = ("fractions",)  # powers of likelihoods are integrals by quadrature, which take long
PLAIN = {name: values[0] for name, values in FEATURES.items()}
COUNTABLE = {*FEATURES["kind"]} - {"numbers", "known noise", "sums", "classes", "slopes", "affine"}
WITHOUT_SLIPS = {"numbers", "known noise", "sums", "censored"}
ORDERS = {
    "choices",
    "choices or none",
    "rankings",
    "partial rankings",
    "tied rankings",
}  # whose comparisons share noise
COMPARISONS = {"duels", "strengths", "ties", "votes", *ORDERS}
SAMPLED = ("Vote", "LabelPreference")  # whose probabilities are averages over a sequence of 1,024 points


@dataclass(frozen=True)
class Problem:
    """One value of each feature; the words of its test."""

    kind: str
    judges: str = PLAIN["judges"]
    slips: str = PLAIN["slips"]
    weights: str = PLAIN["weights"]
    beside: str = PLAIN["beside"]
    prior: str = PLAIN["prior"]
    mean: str = PLAIN["mean"]
    transforms: str = PLAIN["transforms"]
    kernel: str = PLAIN["kernel"]

    def __str__(self) -> str:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return ", ".join(value for name, value in values.items() if name == "kind" or value != PLAIN[name])

    @property
    def has_judges(self) -> bool:
        """Whether there are judges enough for utilities of their own."""
        return NUM_JUDGES[self.judges] > 1

    @property
    def standardises(self) -> bool:
        return self.transforms in ("outcomes", "inputs and outcomes")

    @property
    def normalises(self) -> bool:
        return self.transforms in ("inputs", "inputs and outcomes")

    @property
    def has_slopes(self) -> bool:
        return self.kind == "slopes"

    @property
    def has_numbers(self) -> bool:
        return self.kind in ("numbers", "known noise", "sums") or self.beside == "numbers beside"


def is_possible(problem: Problem) -> bool:
    """Whether the library takes the problem; what it refuses in words is tested where it is refused."""
    one_function = problem.kind != "classes"
    refused = [
        problem.weights != "single" and problem.kind not in COUNTABLE,
        problem.weights == "fractions" and problem.kind in ORDERS,
        problem.weights == "fractions" and problem.kind == "votes" and problem.slips != "no slips",
        problem.slips != "no slips" and problem.kind in WITHOUT_SLIPS,
        problem.slips == "guesses" and problem.kind != "labels",
        problem.slips == "slips by judge" and NUM_JUDGES[problem.judges] < 2,
        problem.slips == "slips by judge" and problem.judges == "some unnamed",
        problem.judges == "reliability" and (problem.has_numbers or problem.kind == "censored"),
        problem.beside == "numbers beside" and problem.kind in ("numbers", "known noise"),
        problem.beside == "duels beside" and problem.kind in COMPARISONS,
        not one_function and problem.beside != "alone",
        not one_function and problem.prior == "skew prior",
        problem.standardises and not (problem.has_numbers or problem.kind == "censored"),
        problem.kind == "slopes" and problem.kernel in ("categories", "wrapper", "subclass"),
    ]
    return not any(refused)


# Points


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def points_of(problem: Problem) -> Tensor:
    """Training points; the second input is a number of a category where the kernel reads one."""
    X = torch.rand(NUM_POINTS, 2, dtype=torch.float64, generator=generator(1))
    return in_categories(problem, X)


def new_points(problem: Problem, num_points: int = 3) -> Tensor:
    """Points without observations but the first."""
    X = torch.rand(num_points, 2, dtype=torch.float64, generator=generator(2)) * 1.2 - 0.1
    X = in_categories(problem, X)
    return torch.cat([points_of(problem)[2:3], X[1:]])


def in_categories(problem: Problem, X: Tensor) -> Tensor:
    if problem.kernel != "categories":
        return X
    return torch.stack([X[:, 0], (3 * X[:, 1]).floor().clamp(0, 2)], dim=-1)


# Answers


def take(entry: Observation, which: Tensor) -> Observation:
    """Some of an object's answers, in a given order."""
    m = entry.num_answers
    taken: dict[str, Any] = {}
    for each in fields(entry):
        value = getattr(entry, each.name)
        if isinstance(value, Tensor) and value.ndim and len(value) == m:
            taken[each.name] = value[which]
    if isinstance(entry, kinds.AffineProbit):
        taken.update(covariance=entry.covariance[which][:, which], index=entry.index)
    return entry._with(taken)


def answers_of(kind: str, **of_all: Any) -> Observation:
    """Answers of a kind about the points, some of them twice about the same ones."""
    m, g = NUM_ANSWERS, generator(3)
    index = torch.randint(NUM_POINTS, (m,), generator=g)
    orders = torch.stack([torch.randperm(NUM_POINTS, generator=g) for _ in range(m)])
    pairs, values = orders[:, :2], torch.randn(m, generator=g, dtype=torch.float64)
    triples = orders[:, :3].clone()
    short = triples.clone()
    short[1::3, 2] = -1
    low, high = values - torch.rand(m, generator=g).double(), values + torch.rand(m, generator=g).double()
    open_low, open_high = low.clone(), high.clone()
    open_low[::3], open_high[1::3] = -torch.inf, torch.inf
    flags = values > 0
    build: dict[str, Callable[[], Observation]] = {
        "numbers": lambda: kinds.Numeric(values, index=index, **of_all),
        "known noise": lambda: kinds.Numeric(values, noise=0.05 + high - values, index=index, **of_all),
        "sums": lambda: kinds.Numeric(values, index=triples, weights=weights_of_sums(m), **of_all),
        "labels": lambda: kinds.Binary(flags, index=index, **of_all),
        "grades": lambda: kinds.Ordinal((2 * values + 2).long().clamp(0, 3), NUM_GRADES, index=index, **of_all),
        "grades of items": lambda: kinds.Ordinal(
            (2 * values + 2).long().clamp(0, 3), NUM_GRADES, index=index, item=torch.arange(m) % 2, **of_all
        ),
        "censored": lambda: kinds.Censored(open_low, open_high, index=index, **of_all),
        "validity": lambda: kinds.Validity(flags, index=index, **of_all),
        "duels": lambda: kinds.Preference(pairs, **of_all),
        "strengths": lambda: kinds.Preference(pairs, flags.long(), NUM_STRENGTHS, **of_all),
        "ties": lambda: kinds.Tie(pairs, **of_all),
        "votes": lambda: kinds.Vote(pairs, torch.arange(m) % 5, **of_all),
        "choices": lambda: kinds.Choice(short, **of_all),
        "choices or none": lambda: kinds.ChoiceOrNone(short, flags, **of_all),
        "rankings": lambda: kinds.Ranking(short, **of_all),
        "partial rankings": lambda: kinds.Ranking(
            triples, ranks=torch.tensor([[0, 0, 1], [0, 1, 1]]).repeat(m, 1)[:m], ties_allowed=False, **of_all
        ),
        "tied rankings": lambda: kinds.Ranking(
            triples, ranks=torch.tensor([[0, 0, 1], [0, 1, 2], [0, 1, 1]]).repeat(m, 1)[:m], **of_all
        ),
        "classes": lambda: kinds.LabelPreference(
            torch.stack([torch.arange(m) % 3, (torch.arange(m) + 1) % 3], dim=-1), NUM_LABELS, index, **of_all
        ),
        "slopes": lambda: kinds.Slope(torch.arange(m) % 2, torch.where(flags, 1, -1), index=index, **of_all),
        "affine": lambda: kinds.AffineProbit(
            torch.randn(m, 3, generator=g, dtype=torch.float64), 0.1 * values, affine_noise(m), low, high,
            index=[0, 2, 5], **of_all,
        ),
    }  # fmt: skip
    return build[kind]()


def weights_of_sums(m: int) -> Tensor:
    """Differences, averages and sums of three points, and numbers of single points, from which scales are learned."""
    some = [[1.0, -1.0, 0.0], [0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [2.0, -0.5, 1.0], [1.0, 0.0, 0.0]]
    return torch.tensor(some, dtype=torch.float64).repeat(m, 1)[:m]


def affine_noise(m: int) -> Tensor:
    """Independent noise but for the first two rows, which share some."""
    covariance = torch.diag(torch.linspace(0.3, 0.9, m, dtype=torch.float64))
    covariance[0, 1] = covariance[1, 0] = 0.2
    return covariance


def judges_of(problem: Problem, num_answers: int = NUM_ANSWERS) -> Tensor | None:
    number = NUM_JUDGES[problem.judges]
    return None if number == 0 else torch.arange(num_answers) % number


def counts_of(problem: Problem, num_answers: int) -> Tensor:
    counts = torch.arange(num_answers) % 3 + 1
    return counts if problem.weights == "counts" else 0.4 * counts + 0.3


def observations_of(problem: Problem) -> list[Observation]:
    """The answers; with judges of whom some are not named, half of them are about the shared utility."""
    judge = judges_of(problem)
    of_all: dict[str, Any] = {} if judge is None else {"judge": judge}
    answers = answers_of(problem.kind, **of_all)
    entries = [answers]
    if problem.judges == "some unnamed":
        named = torch.arange(NUM_ANSWERS) % 4 < 2
        entries = [take(answers, named), take(answers, ~named)._with({"judge": None})]
    if problem.kind == "ties":
        entries.append(take(answers_of("duels", **of_all), torch.arange(NUM_ANSWERS - 1, -1, -1)))
    if problem.weights != "single":
        entries = [replace(entry, count=counts_of(problem, entry.num_answers)) for entry in entries]
    if problem.beside == "numbers beside":
        entries.append(kinds.Numeric(torch.tensor([1.3, -0.4, 0.6]).double(), index=torch.tensor(BESIDE)))
    if problem.beside == "duels beside":
        entries.append(kinds.Preference(torch.tensor([[0, 1], [4, 3], [2, 5]]), judge=judges_of(problem, 3)))
    return entries


# Likelihoods, with values that no default has


def likelihood_of(problem: Problem, as_given: dict[str, Any] | None = None) -> RowLikelihood:
    """Likelihoods of all the problem's kinds; `as_given` replaces arguments, as standardised thresholds."""
    if problem.kind == "classes":
        return every_likelihood.LabelPreferenceLikelihood(NUM_LABELS, noise=0.7, **slips_of(problem))
    slips, number = slips_of(problem), NUM_JUDGES[problem.judges]
    thresholds = {"threshold": 0.2, "validity": 0.3} | (as_given or {})
    duels: dict[str, Any] = {"noise": 0.6, "threshold": thresholds["threshold"]}
    if problem.kind in ("ties", "tied rankings", "votes"):
        duels["tie_width"] = torch.linspace(0.3, 0.7, number) if number > 1 else 0.4
        duels["learn_tie_width"] = True
    labels = {key: value for key, value in slips.items() if key != "guess"}
    strengths = every_likelihood.PreferenceLikelihood(
        **duels, num_strengths=NUM_STRENGTHS if problem.kind == "strengths" else 1,
        ties_allowed=problem.kind in ("ties", "tied rankings"),
        **(labels if problem.kind in COMPARISONS else {}),
    )  # fmt: skip
    if problem.kind == "strengths":
        strengths.strength_gaps = torch.tensor([0.8])
    parts = {
        "numbers": every_likelihood.NumericLikelihood(noise=0.15 * thresholds.get("noise", 1.0)),
        "labels": every_likelihood.ProbitLikelihood(
            noise=0.8, threshold=thresholds["threshold"], **(slips if problem.kind == "labels" else {})
        ),
        "grades": every_likelihood.OrdinalLikelihood(NUM_GRADES, noise=0.5, **labels),
        "grades of items": every_likelihood.OrdinalLikelihood(NUM_GRADES, noise=0.5, num_items=2, **labels),
        "validity": every_likelihood.ValidityLikelihood(threshold=thresholds["validity"], noise=0.3, **labels),
        "votes": every_likelihood.VoteLikelihood(**duels, level_gap=0.9, **labels),
        "slopes": every_likelihood.SlopeLikelihood(noise=0.4, **labels),
        "affine": every_likelihood.ProbitAffineLikelihood(**labels),
    }
    if problem.kind == "grades of items":
        with torch.no_grad():
            parts["grades of items"].raw_gaps[-1, -1] += 0.4  # lower cut-points are equal, but not one parameter
    of_numbers = ("numbers", "known noise", "sums", "censored")
    own = parts.get("numbers" if problem.kind in of_numbers else problem.kind, strengths)
    wanted = [own]
    if problem.beside == "numbers beside" and problem.kind not in ("sums", "censored"):
        wanted.append(parts["numbers"])
    if problem.beside == "duels beside":
        wanted.append(strengths)
    return wanted[0] if len(wanted) == 1 else MixedLikelihood(*wanted)


def slips_of(problem: Problem) -> dict[str, Any]:
    number = NUM_JUDGES[problem.judges]
    return {
        "no slips": {},
        "slips": {"slip": 0.1, "learn_slip": True},
        "slips by judge": {"slip": torch.linspace(0.02, 0.6, max(number, 1)), "learn_slip": True},
        "guesses": {"guess": 0.25},
    }[problem.slips]


# Kernels and means


class Tapered(ScaleKernel):
    """A subclass of a kernel that the library knows, with a variance that grows with the first input."""

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        first, second = 1 + x1[..., 0], 1 + x2[..., 0]
        K = super().forward(x1, x2, diag=diag, **params)
        return K * first * second if diag else K * (first.unsqueeze(-1) * second.unsqueeze(-2))


class Wrapped(Kernel):
    """A kernel of a user's that calls another one."""

    def __init__(self, base: Kernel) -> None:
        super().__init__()
        self.base_kernel = base

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        return 0.6 * self.base_kernel(2 * x1, 2 * x2, diag=diag, **params)


def squared_exponential(**active: Any) -> RBFKernel:
    kernel = RBFKernel(ard_num_dims=len(active["active_dims"]) if active else 2, **active)
    kernel.lengthscale = torch.tensor([0.5, 0.8])[: kernel.lengthscale.shape[-1]]
    return kernel


def scaled(kernel: Kernel, scale: float = 1.7, class_: type[ScaleKernel] = ScaleKernel, **active: Any) -> ScaleKernel:
    kernel = class_(kernel, **active)
    kernel.outputscale = scale
    return kernel


def kernel_of(problem: Problem) -> Kernel | None:
    """The kernel; `None` for the default."""
    matern = MaternKernel(nu=2.5, ard_num_dims=1, active_dims=[1])
    matern.lengthscale = 0.7
    linear = LinearKernel()
    linear.variance = 0.5
    build: dict[str, Callable[[], Kernel]] = {
        "plain": lambda: scaled(squared_exponential()),
        "Matern": lambda: scaled(MaternKernel(nu=2.5, ard_num_dims=2)),
        "sum": lambda: scaled(squared_exponential(active_dims=[0])) + scaled(matern, 0.6),
        "sum with linear": lambda: scaled(squared_exponential()) + linear,
        "product": lambda: scaled(squared_exponential(active_dims=[0]) * matern),
        "scale of one input": lambda: scaled(RBFKernel(), active_dims=[1]),
        "categories": lambda: scaled(
            squared_exponential(active_dims=[0]) * CategoricalKernel(ard_num_dims=1, active_dims=[1])
        ),
        "subclass": lambda: scaled(squared_exponential(), 1.1, Tapered) + linear,
        "wrapper": lambda: Wrapped(scaled(squared_exponential())),
    }
    return None if problem.kernel == "default kernel" else build[problem.kernel]().double()


def mean_of(problem: Problem) -> Mean | None:
    if problem.mean == "default mean":
        return None
    mean = ConstantMean() if problem.mean == "constant" else LinearMean(2)
    with torch.no_grad():
        for value, parameter in zip((0.3, -0.4), mean.parameters(), strict=False):
            parameter.fill_(value)
    return mean.double()


def own_kernel_of() -> Kernel:
    """Each judge's own part: linear tastes and a smooth part."""
    tastes = LinearTastesKernel(2)
    with torch.no_grad():
        tastes.raw_root.copy_(torch.tensor([[0.7, 0.0, 0.0], [0.3, 0.5, 0.0], [-0.2, 0.1, 0.4]]))
    return (tastes + scaled(squared_exponential(), 0.4)).double()


# Models


def model_of(problem: Problem, **changes: Any) -> SkewGP:
    """The problem's model by expectation propagation, without errors of draws; any argument may be replaced."""
    train_X = points_of(problem)
    arguments: dict[str, Any] = {
        "likelihood": likelihood_of(problem),
        "covar_module": kernel_of(problem),
        "mean_module": mean_of(problem),
        "judge_covar_module": own_kernel_of() if problem.has_judges else None,
        "learn_judge_reliability": problem.judges == "reliability",
        "approximation": "ep",
        "draw_settings": DrawSettings(num_draws=256, seed=1),
        "observations": observations_of(problem),
        "train_X": train_X,
    }
    if problem.prior == "skew prior":
        arguments["skew_prior"] = SkewPrior(train_X[:2].clone() + 0.05, [1.0, -1.0], torch.tensor([0.3, -0.2]).double())
    if problem.normalises:
        arguments["input_transform"] = Normalize(2, bounds=torch.tensor([[-0.5, -0.25], [1.5, 2.25]]).double())
    if problem.standardises:
        arguments["outcome_transform"] = Standardize(m=1)
    model = SkewGP(**(arguments | changes))
    if model.judge_reliability is not None:
        with torch.no_grad():
            model.judge_reliability.logarithm[:2] = torch.tensor([0.2, -0.6], dtype=torch.float64)
    return model.eval()


def judges_asked(problem: Problem) -> tuple[int | str | None, ...]:
    """The judges whose utilities are compared: the shared one, the last and a new one."""
    return (None, NUM_JUDGES[problem.judges] - 1, "new") if problem.has_judges else (None,)


# What a model says


def says(model: SkewGP, X: Tensor, judges: tuple[int | str | None, ...] = (None,)) -> dict[str, Tensor]:
    """Evidence; the joint posterior of judges' utilities at points; the distribution of each judge's new answers."""
    said = {"evidence": model.log_marginal_likelihood("ep").value} | posterior_of(model, X, judges)
    for judge in judges:
        said |= {f"answers of {judge}, {name}": value for name, value in answers_predicted(model, X, judge).items()}
    said["slips"] = model.slips()
    return {name: value.detach() for name, value in said.items()}


def posterior_of(model: SkewGP, X: Tensor, judges: tuple[int | str | None, ...] = (None,)) -> dict[str, Tensor]:
    """Mean and covariance of judges' utilities at points, in units of the outcome."""
    if judges == (None,):
        posterior = model.posterior(X)
    elif model.num_outputs == 1:
        posterior = model.for_judge(judges).posterior(X)
    else:
        each = [model.posterior(X, judge=judge) for judge in judges]
        return {
            "mean": torch.stack([p.mean for p in each]),
            "covariance": torch.stack([p.covariance_matrix for p in each]),
        }
    return {"mean": posterior.mean, "covariance": posterior.covariance_matrix}


def answers_predicted(model: SkewGP, X: Tensor, judge: int | str | None = None) -> dict[str, Tensor]:
    """Probabilities of new answers of each kind that can be predicted, at all points together."""
    if not predicts(model):
        return {}
    pairs = X[..., :2, :] if model.num_outputs == 1 and compares(model) else X
    predicted = model.predictive(pairs, judge=judge)
    parts = predicted.items() if hasattr(predicted, "items") else [(type(model.observations[0]), predicted)]
    found = {}
    for kind, part in parts:
        name = getattr(kind, "__name__", str(kind))
        if hasattr(part, "probs"):
            found[name] = part.probs
        else:
            found |= {f"{name} {which}": getattr(part, which) for which in ("mean", "variance")}
    return found


def parts_of(model: SkewGP) -> list[RowLikelihood]:
    likelihood = model.likelihood
    return [*likelihood.likelihoods] if isinstance(likelihood, MixedLikelihood) else [likelihood]


def predicts(model: SkewGP) -> bool:
    return any(part.predicts for part in parts_of(model))


def compares(model: SkewGP) -> bool:
    return any(part.observation_types[0].points_per_observation > 1 for part in parts_of(model))


@lru_cache(maxsize=2)
def said_of(problem: Problem) -> dict[str, Tensor]:
    """What the plain route says, computed once for all routes that follow each other."""
    return says(model_of(problem), new_points(problem), judges_asked(problem))


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float = 1e-7, what: str = "") -> None:
    """Every value that both routes give is equal up to a tolerance, relative to values above one."""
    common = [name for name in one if name in other]
    assert common, f"nothing to compare: {sorted(one)} and {sorted(other)}"
    wrong = []
    for name in common:
        a, b = one[name].detach().double(), other[name].detach().double()
        if a.shape != b.shape:
            wrong.append(f"{name}: shapes {tuple(a.shape)} and {tuple(b.shape)}")
        elif a.numel():
            error = float(((a - b).abs() / b.abs().clamp(min=1)).max())
            if not error <= (max(tolerance, 0.05) if name.endswith(SAMPLED) else tolerance):
                wrong.append(f"{name}: {error:.2g} apart: {a.flatten()[:4].tolist()} and {b.flatten()[:4].tolist()}")
    assert not wrong, "; ".join([what, *wrong] if what else wrong)


def changed(problem: Problem, **changes: str) -> Problem:
    return replace(problem, **changes)

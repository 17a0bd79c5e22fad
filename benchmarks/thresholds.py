"""Thresholds of a psychometric function of two inputs after 80 trials, against variational and parametric fits."""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Callable, Sequence

import gpytorch
import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.utils.sampling import manual_seed
from scipy.optimize import minimize
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks._observations import VariationalProcess, fitted
from benchmarks._process import apart
from benchmarks._race import Cell, Group, Names, Race, Row, grid
from benchmarks._thresholds import AT, BAND, FIRST, LEVEL, RATES, TRIALS, Observer, aepsych
from benchmarks.experiments._models import LatentModel
from botorch_skewgp import SkewGP, acquisition
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp
from botorch_skewgp.likelihoods import OutcomeScale, ProbitLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.thresholds import threshold

REFIT, REFERENCE = 8, 64
AEPSYCH = os.environ.get("AEPSYCH_PYTHON", "")
DOMAIN = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
Acquisition = Callable[[Model], Callable[[Tensor], Tensor]]
Next = Callable[[Model, Tensor], Tensor]  # the point of the next trial, given those before
Estimate = tuple[Tensor, Tensor | None, Tensor | None]  # thresholds at `AT`, and their bands if there are any
Method = Callable[[Observer], dict[str, Estimate]]


def _run(function: str, guess: float, lapse: float, method: str, seed: int) -> list[Names]:
    observer = Observer(function, seed, guess, lapse)
    is_missing = method == "psignifit" and importlib.util.find_spec("psignifit") is None
    is_missing = is_missing or (method == "AEPsych" and not AEPSYCH)
    if is_missing or (observer.is_closed and method in OF_ONE_CURVE):
        return []
    began = _processor_seconds()
    estimates = METHODS[method](observer)
    seconds = _processor_seconds() - began
    rows: list[Names] = []
    for suffix, (median, lower, upper) in estimates.items():
        error = float((median.clamp(0, 1) - observer.truth).abs().mean())
        covered = width = float("nan")
        if lower is not None and upper is not None:
            covered = float(((lower <= observer.truth) & (observer.truth <= upper)).double().mean())
            width = float((upper.clamp(0, 1) - lower.clamp(0, 1)).mean())
        rows.append({"method": method + suffix, "error": error, "covered": covered, "width": width, "seconds": seconds})
    return rows


def _processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _columns(runs: Group) -> dict[str, Cell]:
    row: dict[str, Cell] = {"runs": len(runs), "error": runs.mean("error"), "error_se": runs.error("error")}
    for name, rival in (("variational", "variational, information"), ("sobol", "asked by Sobol")):
        more, row[f"{name}_se"] = runs.less("error", method=rival)
        row[f"less_than_{name}"] = -more
    row |= {"covered": runs.mean("covered"), "covered_se": runs.error("covered")}
    return {**row, "width": runs.mean("width"), "seconds": runs.mean("seconds")}


def _with_all(rows: Sequence[Row]) -> list[Row]:
    """Methods that differ in their points alone, over all functions too."""
    of_all = {"function": "all", "guess": "", "lapse": ""}
    return [*rows, *({**row, **of_all, "seed": f"{row['function']} {row['seed']}"}
                     for row in rows if "asked " in row["method"])]  # fmt: skip


# Models


def likelihood_of(guess: float, lapse: float) -> ProbitLikelihood:
    """`guess + (1 - guess - lapse) Phi(f)`: a slip is right as often as not."""
    slip = 2 * lapse
    return ProbitLikelihood(guess=(guess - lapse) / (1 - slip) if guess else 0.0, slip=slip)


def skew_gp(X: Tensor, y: Tensor, observer: Observer, exact: bool = False) -> SkewGP:
    likelihood = likelihood_of(observer.guess, observer.lapse)
    return SkewGP(X, Binary(y), likelihood=likelihood, approximation=None if exact else "ep")


class _Link(gpytorch.likelihoods.Likelihood):
    def __init__(self, guess: float, lapse: float) -> None:
        super().__init__()
        self.guess, self.lapse = guess, lapse
        self.quadrature = gpytorch.utils.quadrature.GaussHermiteQuadrature1D()

    def forward(self, f: Tensor) -> torch.distributions.Bernoulli:
        p = self.guess + (1 - self.guess - self.lapse) * torch.special.ndtr(f)
        return torch.distributions.Bernoulli(probs=p.clamp(1e-9, 1 - 1e-9))

    def expected_log_prob(self, y: Tensor, distribution: gpytorch.distributions.MultivariateNormal) -> Tensor:
        return self.quadrature(lambda f: self.forward(f).log_prob(y), distribution)


class Variational(LatentModel):
    """A variational GP with what acquisition functions ask of a SkewGP: its posterior is a mixture of one component."""

    approximation = "ep"  # its posterior is a single Gaussian

    def __init__(self, like: SkewGP, observer: Observer) -> None:
        super().__init__(2, likelihood_of(observer.guess, observer.lapse), OutcomeScale())
        Z = SobolEngine(2, scramble=True, seed=0).draw(64, dtype=torch.double)
        distribution = gpytorch.variational.CholeskyVariationalDistribution(64)
        mean, kernel = copy.deepcopy(like.mean_module), copy.deepcopy(like.covar_module)
        self.process = VariationalProcess(Z, distribution, mean, kernel).double()
        self.link = _Link(observer.guess, observer.lapse)

    def update(self, X: Tensor, y: Tensor, steps: int) -> None:
        """Steps of Adam on the evidence lower bound, from where the last ones ended."""
        self.process.train()
        self.datapoints = X
        bound = gpytorch.mlls.VariationalELBO(self.link, self.process, num_data=len(X))
        optimiser = torch.optim.Adam([p for p in self.process.parameters() if p.requires_grad], lr=0.05)
        for _ in range(steps):
            optimiser.zero_grad()
            (-bound(self.process(X), y.double())).backward()
            optimiser.step()
        self.process.eval()

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> SkewGPPosterior:
        return SkewGPPosterior.from_gaussian(self.process(X))


# Methods


def _of_points(acquisition: Acquisition, num: int, seed: int, edges: int = 0) -> Next:
    """The best of new Sobol points, some of them on the edges; a model without gradients can choose from them too."""

    def choose(model: Model, X: Tensor) -> Tensor:
        candidates = SobolEngine(2, scramble=True, seed=seed + len(X)).draw(num, dtype=torch.double)
        candidates[:edges, 0] = candidates[:edges, 0].round()
        candidates[edges : 2 * edges, 1] = candidates[edges : 2 * edges, 1].round()
        with torch.no_grad():
            return candidates[acquisition(model)(candidates.unsqueeze(-2)).argmax()].unsqueeze(0)

    return choose


def _optimised(criterion: Callable[[Model], AcquisitionFunction]) -> Next:
    """The best of the domain, as the example of each class has it."""

    def choose(model: Model, X: Tensor) -> Tensor:
        with manual_seed(len(X)):
            return optimize_acqf(criterion(model), DOMAIN, q=1, num_restarts=4, raw_samples=64)[0]

    return choose


def _estimate(model: Model, observer: Observer) -> Estimate:
    X = torch.stack([observer.at, torch.zeros_like(observer.at)], dim=-1)
    ways = [(0.0, 1.0), (1.0, 0.0)] if observer.is_closed else [(0.0, 1.0)]
    found = [threshold(model, X, LEVEL, 1, bounds, probability=BAND) for bounds in ways]
    ends = [(each.median, each.lower, each.upper) for each in found]
    median, lower, upper = (torch.cat(parts) for parts in zip(*ends, strict=True))
    return median, lower, upper


def _of_skew_gp(choose: Next | None, exact: bool = False, points: str = "sobol") -> Method:
    def method(observer: Observer) -> dict[str, Estimate]:
        given = getattr(observer, points)
        X = given if choose is None else given[:FIRST]
        y, state = observer.answer(X, 0), None
        while True:
            model = skew_gp(X, y, observer)
            if state is not None:
                model.load_state_dict(state)
            if state is None or len(X) % REFIT == 0:
                state = fitted(model).state_dict()
            if choose is None or len(X) == TRIALS:
                break
            X = torch.cat([X, choose(model, X)])
            y = torch.cat([y, observer.answer(X[-1:], len(X) - 1)])
        found = {"": _estimate(model, observer)}
        if exact:
            drawn = skew_gp(X, y, observer, exact=True)
            drawn.load_state_dict(state)
            found[", exact draws"] = _estimate(drawn, observer)
            model.load_state_dict(state)
            mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
            generator = torch.Generator().manual_seed(observer.seed)
            found[", hyperparameters drawn"] = _estimate(fit_fully_bayesian_skew_gp(mll, generator=generator), observer)
        return found

    return method


def _variational(observer: Observer) -> dict[str, Estimate]:
    X = observer.sobol[:FIRST]
    y = observer.answer(X, 0)
    model = Variational(skew_gp(X, y, observer), observer)
    model.update(X, y, 400)
    while len(X) < TRIALS:
        X = torch.cat([X, OF_POOL(model, X)])
        y = torch.cat([y, observer.answer(X[-1:], len(X) - 1)])
        model.update(X, y, 200 if len(X) % REFIT == 0 else 25)
    model.update(X, y, 400)
    return {"": _estimate(model, observer)}


def _probit_curve(observer: Observer) -> dict[str, Estimate]:
    X = observer.sobol
    y, x = observer.answer(X, 0).numpy(), X.numpy()
    powers = np.vander(2 * x[:, 0] - 1, 4)

    def negative_log_likelihood(w: np.ndarray) -> float:
        latent = np.exp(np.clip(w[4] + w[5] * (x[:, 0] - 0.5), -3, 5)) * (x[:, 1] - powers @ w[:4])
        latent = torch.from_numpy(latent + float(observer.at_level))
        p = observer.guess + (1 - observer.guess - observer.lapse) * torch.special.ndtr(latent).numpy()
        return -float(np.log(np.where(y, p, 1 - p).clip(1e-12)).sum()) + 0.05 * float((w[:3] ** 2).sum())

    starts = [np.array([0, 0, 0, middle, 2.0, 0]) for middle in (0.3, 0.5, 0.7)]
    best = min((minimize(negative_log_likelihood, start, method="Powell") for start in starts), key=lambda r: r.fun)
    return {"": (torch.from_numpy(np.vander(2 * AT.numpy() - 1, 4) @ best.x[:4]), None, None)}


def _psignifit(observer: Observer) -> dict[str, Estimate]:
    import psignifit

    frequencies, levels = torch.linspace(0.05, 0.95, 5).double(), torch.linspace(0.03, 0.97, 16).double()
    X = torch.cartesian_prod(frequencies, levels)
    y = observer.answer(X, 0).view(5, 16)
    rates = {"gamma": observer.guess, "lambda": observer.lapse}
    share = (LEVEL - observer.guess) / (1 - observer.guess - observer.lapse)  # of the way from guesses to lapses
    found = []
    for answers in y:
        data = np.stack([levels.numpy(), answers.numpy().astype(float), np.ones(16)], axis=-1)
        fit = psignifit.psignifit(
            data, experiment_type="yes/no", sigmoid="norm", stimulus_range=[0, 1],
            fixed_parameters=rates, thresh_PC=share,
        )  # fmt: skip
        interval = fit.confidence_intervals["threshold"][f"{BAND:g}"]
        found.append([float(fit.parameter_estimate["threshold"]), *map(float, interval)])
    curves = [np.interp(AT.numpy(), frequencies.numpy(), column) for column in np.array(found).T]
    median, lower, upper = (torch.from_numpy(curve) for curve in curves)
    return {"": (median, lower, upper)}


def _aepsych(observer: Observer) -> dict[str, Estimate]:
    found = apart(aepsych, observer.function, observer.seed, observer.guess, observer.lapse, python=AEPSYCH)
    median, lower, upper = torch.tensor(found["estimates"]).double()
    return {"": (median, lower, upper)}


POINTS = SobolEngine(2, scramble=True, seed=99).draw(REFERENCE, dtype=torch.double)
CRITERIA: dict[str, Callable[[Model], AcquisitionFunction]] = {
    "LevelSetInformation": lambda model: acquisition.LevelSetInformation(model, LEVEL, POINTS),
    "PredictiveInformation": lambda model: acquisition.PredictiveInformation(model, POINTS),
    "BALD": acquisition.SkewBayesianActiveLearningByDisagreement,
}
OF_POOL = _of_points(CRITERIA["LevelSetInformation"], 160, 0, edges=16)
METHODS: dict[str, Method] = {
    "asked by Sobol": _of_skew_gp(None),
    "asked at random": _of_skew_gp(None, points="random"),
    **{f"asked by {name}": _of_skew_gp(_optimised(criterion)) for name, criterion in CRITERIA.items()},
    **{
        f"asked by {name} of Sobol points": _of_skew_gp(_of_points(CRITERIA[name], 128, 1000))
        for name in ("LevelSetInformation", "PredictiveInformation")
    },
    "SkewGP, information": _of_skew_gp(OF_POOL, exact=True),
    "variational, information": _variational,
    "probit curve, Sobol": _probit_curve,
    "psignifit": _psignifit,
    "AEPsych": _aepsych,
}
OF_ONE_CURVE = ("probit curve, Sobol", "psignifit", "AEPsych")
CASES = [{"function": name, "guess": guess, "lapse": lapse} for name, (guess, lapse) in RATES.items()]
RACES = (
    Race(
        "thresholds", CASES, grid(method=METHODS), range(20), _run, ("error", "covered", "width", "seconds"), _columns,
        [f"{TRIALS} trials, guess and lapse rates {RATES}; less_than: by how much the error is less than that of "
         "'variational, information' and of 'asked by Sobol', paired"], told=_with_all,
    ),
)  # fmt: skip

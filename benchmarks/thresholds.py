"""Thresholds of a psychometric function of two inputs after 80 trials, against variational and parametric fits.

An observer answers right or wrong over frequency and level, with guesses of one half and 2 % lapses, or on the `step`,
a threshold that rises like an S, yes or no, with 5 % lapses of either kind. After ten Sobol
points each method chooses level and frequency of a trial by itself, from the same 160 candidates. Hyperparameters are
fitted again after every eighth answer. In the end the threshold at 75 % is estimated at 19 frequencies by the posterior
median: its mean absolute error, the share of frequencies at which a 90 % credible band has the truth in it, and the
band's width. Seeds are paired: they share function, first points and the randomness of answers. On the `ellipse`
answers are right within a closed curve: at ten frequencies its ends are estimated from below and from above.

- `asked by ...`: a SkewGP by expectation propagation with the default prior of labels; points of trials are Sobol's,
  uniform, or the maximiser of an acquisition function over the domain, by `optimize_acqf`, or of 128 new Sobol points;
- `SkewGP`: expectation propagation while trials are chosen, and in the end by it, by exact draws from the same data, or
  by sixteen draws of the hyperparameters with expectation propagation for each;
- `rising`: the same, told by slopes that the probability of a right answer rises with the level;
- `variational`: GPyTorch's variational GP with the same kernel, priors, link and guess rate, 64 inducing points. It
  goes through the same acquisition functions and the same thresholds as the others;
- `probit curve`: the likelihood's maximum, threshold a cubic and log slope linear in the frequency; of Sobol points;
- `psignifit`: one function at each of five frequencies, sixteen trials each at even levels, interpolated between; if
  installed;
- `AEPsych`: its GP classification model and acquisition function EAVC with their defaults; if the Python of an
  environment with it is given.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gpytorch
import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.utils.sampling import manual_seed
from scipy.optimize import minimize
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks._race import Group, Race, add_race_arguments, grid, mean_and_error
from benchmarks._reporting import Cell, prepare, publish
from benchmarks._threshold_problem import AT, BAND, FIRST, LEVEL, RATES, TRIALS, Observer
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    LevelSetInformation,
    PredictiveInformation,
    SkewBayesianActiveLearningByDisagreement,
)
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp
from botorch_skewgp.likelihoods import MixedLikelihood, OutcomeScale, ProbitLikelihood, SlopeLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Slope
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.thresholds import PsychometricFunction, threshold

REFIT, CANDIDATES, REFERENCE = 8, 160, 64
ASKED = "asked "  # in the names of methods that differ in their points alone
NOTES = [
    f"{TRIALS} trials, guess and lapse rates {RATES}; less_than: by how much the error is less than that of "
    "'variational, information' and of 'asked by Sobol', paired"
]
DOMAIN = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
Acquisition = Callable[[Model], Callable[[Tensor], Tensor]]
Next = Callable[[Model, Tensor], Tensor]  # the point of the next trial, given those before
Estimate = tuple[Tensor, Tensor | None, Tensor | None]  # thresholds at `AT`, and their bands if there are any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=20)
    parser.add_argument("--functions", nargs="+", choices=RATES, default=list(RATES), metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="NAME")
    parser.add_argument("--aepsych", metavar="PYTHON", help="the Python of an environment with AEPsych")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    functions, seeds = (options.functions[:1], 1) if options.quick else (options.functions, options.seeds)
    cases = [{"function": name, "guess": RATES[name][0], "lapse": RATES[name][1]} for name in functions]
    race = Race("thresholds", cases, grid(method=options.methods), range(seeds), partial(_run, aepsych=options.aepsych),
                ("error", "covered", "width", "seconds"), _columns, NOTES)  # fmt: skip
    folder = prepare(options)
    rows = race.hold(folder, options.processes, options.seconds)
    of_all = {"function": "all", "guess": "", "lapse": ""}
    every = [{**row, **of_all, "seed": f"{row['function']} {row['seed']}"} for row in rows if ASKED in row["method"]]
    publish([race.table([*rows, *every])], folder)


def _run(
    function: str, guess: float, lapse: float, method: str, seed: int, aepsych: str | None
) -> list[dict[str, Cell]]:
    """The estimates of a method, in one row or several."""
    observer = Observer(function, seed, guess, lapse)
    is_missing = method == "psignifit" and importlib.util.find_spec("psignifit") is None
    if is_missing or (method == "AEPsych" and aepsych is None) or (observer.is_closed and method in OF_ONE_CURVE):
        return []
    began = _processor_seconds()
    estimates = METHODS[method](observer, aepsych)
    seconds = _processor_seconds() - began
    rows: list[dict[str, Cell]] = []
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
        mine, theirs = runs.beside("error", method=rival)
        row[f"less_than_{name}"], row[f"{name}_se"] = mean_and_error(theirs - mine)
    row |= {"covered": runs.mean("covered"), "covered_se": runs.error("covered")}
    return {**row, "width": runs.mean("width"), "seconds": runs.mean("seconds")}


# Models


def likelihood_of(guess: float, lapse: float) -> ProbitLikelihood:
    """`guess + (1 - guess - lapse) Phi(f)`: a slip is right as often as not."""
    slip = 2 * lapse
    return ProbitLikelihood(guess=(guess - lapse) / (1 - slip) if guess else 0.0, slip=slip)


def skew_gp(X: Tensor, y: Tensor, observer: Observer, rising: bool = False, exact: bool = False) -> SkewGP:
    """A SkewGP of answers, with slopes on an even grid if told that it rises with the level."""
    options = {} if exact else {"approximation": "ep"}
    likelihood = likelihood_of(observer.guess, observer.lapse)
    if not rising:
        return SkewGP(X, Binary(y), likelihood=likelihood, **options)
    line = torch.linspace(0, 1, 6).to(X)
    grid = torch.cartesian_prod(line, line)
    at = torch.arange(len(X), len(X) + len(grid))
    observations = [Binary(y, index=torch.arange(len(X))), Slope(torch.ones_like(at), torch.ones(len(at)), index=at)]
    mixed = MixedLikelihood(likelihood, SlopeLikelihood(noise=0.01))
    return SkewGP(torch.cat([X, grid]), observations, likelihood=mixed, **options)


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


class Variational(gpytorch.models.ApproximateGP, Model):
    """A variational GP with what acquisition functions ask of a SkewGP: its posterior is a mixture of one component."""

    minimize = False
    approximation = "ep"  # its posterior is a single Gaussian

    def __init__(self, like: SkewGP, observer: Observer) -> None:
        Z = SobolEngine(2, scramble=True, seed=0).draw(64, dtype=torch.double)
        variational = gpytorch.variational.CholeskyVariationalDistribution(64)
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, variational, learn_inducing_locations=False))
        self.mean_module, self.covar_module = copy.deepcopy(like.mean_module), copy.deepcopy(like.covar_module)
        self.likelihood = likelihood_of(observer.guess, observer.lapse)
        self.link = _Link(observer.guess, observer.lapse)
        self.double()
        self.outcome_scale, self.observations, self.num_outputs, self.dim = OutcomeScale(), (), 1, 2
        self.datapoints = Z

    num_outputs = 1  # BoTorch's is a property without a setter

    def forward(self, X: Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The prior."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    def update(self, X: Tensor, y: Tensor, steps: int) -> None:
        """Steps of Adam on the evidence lower bound, from where the last ones ended."""
        self.train()
        self.datapoints = X
        bound = gpytorch.mlls.VariationalELBO(self.link, self, num_data=len(X))
        parameters = [p for name, p in self.named_parameters() if not name.startswith("likelihood.")]
        optimiser = torch.optim.Adam([p for p in parameters if p.requires_grad], lr=0.05)
        for _ in range(steps):
            optimiser.zero_grad()
            (-bound(self(X), y.double())).backward()
            optimiser.step()
        self.eval()

    @property
    def answering_likelihood(self) -> ProbitLikelihood:
        """The likelihood of new answers."""
        return self.likelihood

    def posterior(self, X: Tensor) -> SkewGPPosterior:
        """The posterior of the latent function."""
        return SkewGPPosterior.from_gaussian(self(X))

    def latent_posterior(self, X: Tensor, judges: None = None) -> SkewGPPosterior:
        """The same."""
        return self.posterior(X)

    def condition_on_draws(self, *arguments: object) -> None:
        """Nothing here asks for it."""
        raise NotImplementedError


# Acquisition


def _reference() -> Tensor:
    return SobolEngine(2, scramble=True, seed=99).draw(REFERENCE, dtype=torch.double)


def _level_set(model: Model) -> LevelSetInformation:
    return LevelSetInformation(model, LEVEL, _reference())


def _predictions(model: Model) -> PredictiveInformation:
    return PredictiveInformation(model, _reference())


def _straddle(model: Model) -> Callable[[Tensor], Tensor]:
    level = PsychometricFunction.of(model).latent_level(LEVEL).detach()

    def value(X: Tensor) -> Tensor:
        posterior = model.posterior(X)
        return (1.96 * posterior.variance.sqrt() - (posterior.mean - level).abs()).flatten()

    return value


# Methods


def _of_pool(acquisition: Acquisition) -> Next:
    """The best of 160 candidates, which a model without gradients can choose from too."""

    def choose(model: Model, X: Tensor) -> Tensor:
        candidates = SobolEngine(2, scramble=True, seed=len(X)).draw(CANDIDATES, dtype=torch.double)
        candidates[:16, 0] = candidates[:16, 0].round()  # optimisers see the edges
        candidates[16:32, 1] = candidates[16:32, 1].round()
        with torch.no_grad():
            return candidates[acquisition(model)(candidates.unsqueeze(-2)).argmax()].unsqueeze(0)

    return choose


def _optimised(acquisition: Callable[[Model], AcquisitionFunction]) -> Next:
    """The best of the domain, as the example of each class has it."""

    def choose(model: Model, X: Tensor) -> Tensor:
        with manual_seed(len(X)):
            return optimize_acqf(acquisition(model), DOMAIN, q=1, num_restarts=4, raw_samples=64)[0]

    return choose


def _of_sobol_points(acquisition: Acquisition) -> Next:
    """The best of 128 new Sobol points, as the guide has it."""

    def choose(model: Model, X: Tensor) -> Tensor:
        candidates = SobolEngine(2, scramble=True, seed=1000 + len(X)).draw(128, dtype=torch.double)
        with torch.no_grad():
            return candidates[acquisition(model)(candidates.unsqueeze(-2)).argmax()].unsqueeze(0)

    return choose


def _estimate(model: Model, observer: Observer) -> Estimate:
    X = torch.stack([observer.at, torch.zeros_like(observer.at)], dim=-1)
    ways = [(0.0, 1.0), (1.0, 0.0)] if observer.is_closed else [(0.0, 1.0)]
    found = [threshold(model, X, LEVEL, 1, bounds, probability=BAND) for bounds in ways]
    ends = [(each.median, each.lower, each.upper) for each in found]
    median, lower, upper = (torch.cat(parts) for parts in zip(*ends, strict=True))
    return median, lower, upper


def _of_skew_gp(
    choose: Next | None, rising: bool = False, exact: bool = False, points: str = "sobol"
) -> Callable[[Observer, str | None], dict[str, Estimate]]:
    def method(observer: Observer, _: str | None) -> dict[str, Estimate]:
        given = getattr(observer, points)
        X = given if choose is None else given[:FIRST]
        y, state = observer.answer(X, 0), None
        while True:
            model = skew_gp(X, y, observer, rising)
            if state is not None:
                model.load_state_dict(state)
            if state is None or len(X) % REFIT == 0:
                fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
                state = model.state_dict()
            if choose is None or len(X) == TRIALS:
                break
            X = torch.cat([X, choose(model, X)])
            y = torch.cat([y, observer.answer(X[-1:], len(X) - 1)])
        found = {"": _estimate(model, observer)}
        if exact:
            drawn = skew_gp(X, y, observer, rising, exact=True)
            drawn.load_state_dict(state)
            found[", exact draws"] = _estimate(drawn, observer)
            model.load_state_dict(state)
            mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
            generator = torch.Generator().manual_seed(observer.seed)
            found[", hyperparameters drawn"] = _estimate(fit_fully_bayesian_skew_gp(mll, generator=generator), observer)
        return found

    return method


def _of_variational(choose: Next | None) -> Callable[[Observer, str | None], dict[str, Estimate]]:
    def method(observer: Observer, _: str | None) -> dict[str, Estimate]:
        X = observer.sobol if choose is None else observer.sobol[:FIRST]
        y = observer.answer(X, 0)
        model = Variational(skew_gp(X, y, observer), observer)
        model.update(X, y, 400)
        while choose is not None and len(X) < TRIALS:
            X = torch.cat([X, choose(model, X)])
            y = torch.cat([y, observer.answer(X[-1:], len(X) - 1)])
            model.update(X, y, 200 if len(X) % REFIT == 0 else 25)
        model.update(X, y, 400)
        return {"": _estimate(model, observer)}

    return method


def _probit_curve(observer: Observer, _: str | None) -> dict[str, Estimate]:
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


def _psignifit(observer: Observer, _: str | None) -> dict[str, Estimate]:
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


def _aepsych(observer: Observer, python: str | None) -> dict[str, Estimate]:
    file = Path(__file__).parent / "_threshold_aepsych.py"
    arguments = [str(x) for x in (observer.function, observer.seed, observer.guess, observer.lapse)]
    environ = {**os.environ, "PYTHONPATH": str(file.parents[1])}
    with tempfile.TemporaryDirectory() as folder:  # AEPsych makes a folder of logs where it is started
        result = subprocess.run(
            [str(python), "-m", f"benchmarks.{file.stem}", *arguments],
            capture_output=True, text=True, check=True, cwd=folder, env=environ,
        )  # fmt: skip
    median, lower, upper = torch.tensor(json.loads(result.stdout.splitlines()[-1])).double()
    return {"": (median, lower, upper)}


METHODS: dict[str, Callable[[Observer, str | None], dict[str, Estimate]]] = {
    "asked by Sobol": _of_skew_gp(None),
    "asked at random": _of_skew_gp(None, points="random"),
    "asked by LevelSetInformation": _of_skew_gp(_optimised(_level_set)),
    "asked by PredictiveInformation": _of_skew_gp(_optimised(_predictions)),
    "asked by BALD": _of_skew_gp(_optimised(SkewBayesianActiveLearningByDisagreement)),
    "asked by LevelSetInformation of Sobol points": _of_skew_gp(_of_sobol_points(_level_set)),
    "asked by PredictiveInformation of Sobol points": _of_skew_gp(_of_sobol_points(_predictions)),
    "asked by BALD of Sobol points": _of_skew_gp(_of_sobol_points(SkewBayesianActiveLearningByDisagreement)),
    "SkewGP, information": _of_skew_gp(_of_pool(_level_set), exact=True),
    "SkewGP, rising, information": _of_skew_gp(_of_pool(_level_set), rising=True),
    "variational, information": _of_variational(_of_pool(_level_set)),
    "variational, straddle": _of_variational(_of_pool(_straddle)),
    "variational, Sobol": _of_variational(None),
    "probit curve, Sobol": _probit_curve,
    "psignifit": _psignifit,
    "AEPsych": _aepsych,
}
OF_ONE_CURVE = ("SkewGP, rising, information", "probit curve, Sobol", "psignifit", "AEPsych")

"""One step of a preferential optimisation beside BoTorch's PairwiseGP: fit, draws, next pair, recommendation."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from botorch.acquisition import AcquisitionFunction, PosteriorMean
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskVariationalGP
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from botorch.optim.fit import fit_gpytorch_mll_torch
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import MarginalLogLikelihood, VariationalELBO
from torch import Tensor

from benchmarks._functions import unit_cube
from benchmarks._observations import duel_data, fitted
from benchmarks._race import Cell, Group, Names, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement, next_pair, recommend
from botorch_skewgp.acquisition.closed_forms import ExpectedMaximumOfPair
from botorch_skewgp.fitting import fit_skew_gp, sample_hyperparameters
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.posteriors import RepresenterMixture
from botorch_skewgp.truncated import draws
from botorch_skewgp.truncated.propagation import expectation_propagation

SIZES = (20, 50, 100, 300)  # duels
LABELS = (50, 200, 500, 1000)
DIMENSION = 6
NOISE = 0.3  # standard deviation of one value of a duel
CPU = torch.device("cpu")
Clock = Callable[[], float]
STAGES = ("fit_s", "draws_s", "acquisition_s", "total_s")
PARTS: tuple[tuple[str, Any, str], ...] = (  # nothing that a part calls is left out of its seconds
    ("objective of the fit", SkewGPMarginalLogLikelihood, "forward"),
    ("moments of rows in expectation propagation", expectation_propagation, "next_sites"),
    ("expectation propagation of the draws", draws, "expectation_propagation"),
    ("starts of the chains", draws, "feasible_start"),
    ("trajectories", draws.ReflectiveEllipticalSliceSampler, "run"),
    ("diagnostics", draws, "diagnose"),
    ("order of the draws", RepresenterMixture, "in_space_filling_order"),
    ("acquisition function of duels", ExpectedMaximumOfPair, "forward"),
    ("acquisition function of labels", SkewBayesianActiveLearningByDisagreement, "forward"),
)


def skew_gp(X: Tensor, pairs: Tensor) -> Model:
    return fitted(SkewGP(X, Preference(pairs)))


def pairwise_gp(X: Tensor, pairs: Tensor) -> Model:
    model = PairwiseGP(X, pairs)
    fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    return model


def sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([256]), seed=0)


def best_pair(model: Model) -> AcquisitionFunction:
    return qExpectedUtilityOfBestOption(pref_model=model, sampler=sampler())


def botorch_search(acquire: Callable[[Model], AcquisitionFunction], model: Model, q: int) -> None:
    bounds = unit_cube(DIMENSION).to(model.train_inputs[0][0])
    optimize_acqf(acquire(model), bounds=bounds, q=q, num_restarts=10, raw_samples=256)


def duel_search(model: Model) -> None:
    """The next pair and the recommendation, as each library has them."""
    if isinstance(model, SkewGP):
        bounds = unit_cube(DIMENSION).to(model.datapoints)
        next_pair(model, bounds)
        recommend(model, bounds)
    else:
        botorch_search(best_pair, model, q=2)
        botorch_search(PosteriorMean, model, q=1)


def duel_step(
    build: Callable[[Tensor, Tensor], Model], m: int, device: torch.device = CPU, clock: Clock = time.process_time
) -> dict[str, float]:
    X, pairs = (part.to(device) for part in duel_data(m, NOISE, DIMENSION)[:2])
    return stages(X, functools.partial(build, X, pairs), duel_search, clock=clock)


def label_data(n: int, device: torch.device = CPU, d: int = DIMENSION, edge: float = 2.0) -> tuple[Tensor, Tensor]:
    X = torch.rand(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(device)
    return X, torch.sin(4 * X).sum(-1) > edge


def label_step(
    n: int, device: torch.device = CPU, clock: Clock = time.process_time, inducing_points: int | None = None
) -> dict[str, float]:
    X, labels = label_data(n, device)

    def build() -> Model:
        return fitted(SkewGP(X, Binary(labels), inducing_points=inducing_points))

    search = functools.partial(botorch_search, SkewBayesianActiveLearningByDisagreement, q=1)
    return stages(X, build, search, clock=clock)


def stages(X: Tensor, build: Callable[[], Model], search: Callable[[Model], None], clock: Clock) -> dict[str, float]:
    torch.manual_seed(0)  # optimize_acqf draws from the global generator
    times = [clock()]
    model = build()
    times.append(clock())
    with torch.no_grad():
        model.posterior(X[:1])  # makes the draws
    times.append(clock())
    search(model)
    times.append(clock())
    spent = [after - before for before, after in itertools.pairwise(times)]
    return dict(zip(STAGES, (*spent, times[-1] - times[0]), strict=True))


@functools.cache
def _warm_up(device: torch.device = CPU) -> None:
    duel_step(skew_gp, 10, device)
    label_step(10, device)


def _run(duels: int, model: str, seed: int) -> dict[str, Cell]:
    _warm_up()
    return {**duel_step(skew_gp if model == "SkewGP" else pairwise_gp, duels)}


def _profile(data: str, size: int, part: str, seed: int) -> list[Names]:
    """Calls and seconds of the stages and parts of a step."""
    _warm_up()
    spent: dict[str, list[float]] = {name: [] for name, _, _ in PARTS}
    with ExitStack() as stack:
        for name, owner, function in PARTS:
            stack.enter_context(patch.object(owner, function, _timed(getattr(owner, function), spent[name])))
        found = duel_step(skew_gp, size) if data == "duels" else label_step(size)
    spent = {stage.removesuffix("_s"): [seconds] for stage, seconds in found.items()} | spent
    return [{"part": name, "calls": len(times), "seconds": sum(times)} for name, times in spent.items() if times]


def _timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    """A function that also notes how long each call takes."""

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            times.append(time.process_time() - began)

    return timed


def _columns_of_step(runs: Group) -> dict[str, Cell]:
    rival = runs.beside("total_s", model="PairwiseGP")[1]
    medians = {stage: runs.median(stage) for stage in STAGES}
    ratio = medians["total_s"] / float(rival.quantile(0.5)) if len(rival) else 1.0
    return {**medians, "ratio_to_pairwise": ratio}


CASES = [*grid(data=["duels"], size=SIZES), *grid(data=["labels"], size=LABELS)]


# Hyperparameters sampled beside hyperparameters fitted


def duel_model(m: int, d: int = DIMENSION) -> SkewGP:
    X, pairs, _ = duel_data(m, NOISE, d)
    return SkewGP(X, Preference(pairs))


def _labels(n: int, d: int) -> SkewGP:
    X, labels = label_data(n, d=d, edge=1.0)
    return SkewGP(X, Binary(labels))


def _numbers(n: int, d: int, relevant: int) -> SkewGP:
    """Numbers that depend on some of the inputs, with a noise of 0.1."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    return SkewGP(X, Numeric(torch.sin(4 * X[:, :relevant]).sum(-1) + noise))


SAMPLED: dict[str, Callable[[], SkewGP]] = {
    "50 duels, 6 inputs": lambda: duel_model(50),
    "15 duels, 2 inputs": lambda: duel_model(15, 2),
    "60 labels, 4 inputs": lambda: _labels(60, 4),
    "15 numbers, 10 inputs": lambda: _numbers(15, 10, relevant=2),
    "40 numbers, 20 inputs": lambda: _numbers(40, 20, relevant=3),
}

_warm_up_sampling = functools.cache(lambda: sample_hyperparameters(fit_skew_gp(duel_model(50))))


def _of_sampling(case: str, seed: int) -> dict[str, Cell]:
    """Seconds of a fit, seconds of sampling after it, and the effective size of the draws."""
    _warm_up_sampling()
    model, began = SAMPLED[case](), time.process_time()
    mll = fit_skew_gp(model)
    after = time.process_time()
    found = sample_hyperparameters(mll, generator=torch.Generator().manual_seed(seed))
    seconds = {"fit_s": after - began, "sampling_s": time.process_time() - after}
    return {**seconds, "effective_size": found.effective_size}


OF_SAMPLING = ("fit_s", "sampling_s", "effective_size")


# One call of optimize_acqf, of one point with 256 draws

DUELS, LITTLE_NOISE, FIT_STEPS = 100, 0.1, 10
FUNCTIONS: dict[str, Callable[[Model, Tensor], AcquisitionFunction]] = {
    "qEUBO": lambda model, X: qExpectedUtilityOfBestOption(model, sampler=sampler(), X_pending=X[:1]),
    "qLogNEI": lambda model, X: qLogNoisyExpectedImprovement(model, X, sampler=sampler(), prune_baseline=True),
}


@functools.cache
def _roughly_fitted(name: str) -> tuple[Model, Tensor]:
    (X, pairs, _), is_ours = duel_data(DUELS, LITTLE_NOISE, DIMENSION), name == "SkewGP"
    model = SkewGP(X, Preference(pairs)) if is_ours else PairwiseGP(X, pairs)
    objective = SkewGPMarginalLogLikelihood if is_ours else PairwiseLaplaceMarginalLogLikelihood
    mll: MarginalLogLikelihood = objective(model.likelihood, model)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": FIT_STEPS}}, warning_handler=lambda _: True)
    model.eval().posterior(X[:1])  # draws and factorisations, made once per fit
    return model, X


def _of_call(function: str, model: str, seed: int) -> dict[str, Cell]:
    acquisition, began = FUNCTIONS[function](*_roughly_fitted(model)), time.process_time()
    optimize_acqf(acquisition, unit_cube(DIMENSION), q=1, num_restarts=10, raw_samples=256)
    return {"call_s": time.process_time() - began}


def _columns_of_call(runs: Group) -> dict[str, Cell]:
    seconds = runs.median("call_s")
    rival = runs.beside("call_s", model="PairwiseGP")[1]
    return {"call_s": seconds, "times_pairwise": seconds / float(rival.quantile(0.5)) if len(rival) else 1.0}


# The CPU and a GPU, by the clock; beside our inducing points a sparse variational model of BoTorch

POINTS = 200  # inducing points
ADAM_STEPS = 500  # of the variational model, each over all data
MOST_ON_CPU = 2000  # labels without inducing points; more takes minutes


def _variational_fit(n: int, device: torch.device, clock: Clock) -> dict[str, float]:
    """Seconds of the fit of a sparse variational model, of which no step is asked."""
    X, labels = label_data(n, device)
    Y, likelihood = labels.to(X).unsqueeze(-1), BernoulliLikelihood()
    torch.manual_seed(0)
    began = clock()
    model = SingleTaskVariationalGP(X, Y, likelihood, num_outputs=1, inducing_points=min(POINTS, n // 2))
    mll = VariationalELBO(model.likelihood, model.model, num_data=n).to(X)
    fit_gpytorch_mll(mll, optimizer=fit_gpytorch_mll_torch, optimizer_kwargs={"step_limit": ADAM_STEPS})
    seconds = clock() - began
    return {"fit_s": seconds, "total_s": seconds}


def clock_of(device: torch.device) -> float:
    """The time when a device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


STEPS_ON_DEVICES: dict[str, tuple[Callable[..., dict[str, float]], tuple[int, ...]]] = {
    "SkewGP, duels": (functools.partial(duel_step, skew_gp), (100, 300, 1000)),
    "PairwiseGP, duels": (functools.partial(duel_step, pairwise_gp), (100, 300)),  # more takes minutes
    "SkewGP, labels": (label_step, (200, 1000, 2000, 5000)),
    "SkewGP, labels by inducing points": (functools.partial(label_step, inducing_points=POINTS), (10_000,)),
    "SVGP, labels by inducing points": (_variational_fit, (10_000,)),
}


def _on_device(data: str, size: int, device: str, seed: int) -> dict[str, Cell] | list[Names]:
    too_many = data == "SkewGP, labels" and size > MOST_ON_CPU
    if (not torch.cuda.is_available()) if device == "cuda" else too_many:
        return []
    of = torch.device(device)
    _warm_up(of)
    return {**STEPS_ON_DEVICES[data][0](size, of, functools.partial(clock_of, of))}


ON_DEVICES = [case for data, (_, sizes) in STEPS_ON_DEVICES.items() for case in grid(data=[data], size=sizes)]

RACES = (
    Race("steps", grid(duels=SIZES), grid(model=("PairwiseGP", "SkewGP")), range(5), _run, STAGES,
         _columns_of_step, ["medians; the models take turns"]),
    Race("steps_profile", CASES, grid(part=["fit"]), range(1), _profile, ("calls", "seconds")),
    Race("fully_bayesian", grid(case=SAMPLED), [{}], range(5), _of_sampling, OF_SAMPLING,
         lambda runs: {**{name: runs.median(name) for name in OF_SAMPLING},
                       "ratio_in_fits": runs.median("sampling_s") / runs.median("fit_s")}),
    Race("acquisition", grid(function=FUNCTIONS), grid(model=("SkewGP", "PairwiseGP")), range(3), _of_call, ("call_s",),
         _columns_of_call),
    Race("devices", ON_DEVICES, grid(device=("cuda", "cpu")), range(1), _on_device, STAGES),
)  # fmt: skip

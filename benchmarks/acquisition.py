"""One call of optimize_acqf at 100 duels in 6 dimensions, beside BoTorch's PairwiseGP and SingleTaskGP.

`q = 1`, 10 restarts, 256 raw samples, 256 Monte Carlo draws. All models see the same points and are fitted with as many
steps of the optimiser; the SingleTaskGP sees values in the place of duels. How many evaluations a call takes
is the optimiser's choice and differs between models, hence it is reported too, with the time of one evaluation with its
gradient at as many points as there are restarts. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction, qExpectedImprovement
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import PairwiseGP, SingleTaskGP
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks._problems import duel_data
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

DUELS, DIM, NOISE = 100, 6, 0.1
FIT_STEPS = 10
RESTARTS, RAW_SAMPLES, DRAWS = 10, 256, 256

Build = Callable[[Model, Tensor], AcquisitionFunction]
FUNCTIONS: dict[str, Build] = {
    "qEUBO": lambda model, X: qExpectedUtilityOfBestOption(model, sampler=_sampler(), X_pending=X[:1]),
    "qLogNEI": lambda model, X: qLogNoisyExpectedImprovement(model, X, sampler=_sampler(), prune_baseline=True),
    "qLogEI": lambda model, X: qLogExpectedImprovement(model, _best(model, X), sampler=_sampler()),
    "qEI": lambda model, X: qExpectedImprovement(model, _best(model, X), sampler=_sampler()),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--repeats", type=int, default=3, help="calls of which the median is reported")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    repeats = 1 if options.quick else options.repeats
    models = _models()
    table = Table(
        "acquisition", ("function", "model", "call_s", "evaluations", "ms_per_evaluation", "value", "times_pairwise")
    )
    table.notes += [environment(), f"load average at the start {load_average()}"]
    X = models["PairwiseGP"].datapoints
    bounds = torch.tensor([[0.0] * DIM, [1.0] * DIM], dtype=X.dtype)
    for name, build in FUNCTIONS.items():
        seconds: dict[str, list[float]] = {label: [] for label in models}
        counts: dict[str, list[int]] = {label: [] for label in models}
        values: dict[str, float] = {}
        for repeat in range(repeats):  # models take turns, so that a busy spell of the machine hits all of them
            for label, model in models.items():
                took, count, values[label] = _timed_call(build, model, X, bounds, seed=repeat)
                seconds[label].append(took)
                counts[label].append(count)
        median = {label: statistics.median(times) for label, times in seconds.items()}
        for label, model in models.items():
            table.add(
                function=name,
                model=label,
                call_s=median[label],
                evaluations=statistics.median(counts[label]),
                ms_per_evaluation=1e3 * _timed_evaluation(build(model, X), X),
                value=values[label],
                times_pairwise=median[label] / median["PairwiseGP"],
            )
        say(f"{name}: " + ", ".join(f"{label} {took:.2f} s" for label, took in median.items()))
    table.notes += [
        f"load average at the end {load_average()}",
        f"{DUELS} duels between {2 * DUELS} points, {DIM}-d, q = 1, {RESTARTS} restarts, {RAW_SAMPLES} raw samples, "
        f"{DRAWS} draws; medians of {repeats}; models take turns",
    ]
    publish([table], folder)


def _sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([DRAWS]), seed=0)


def _best(model: Model, X: Tensor) -> float:
    with torch.no_grad():
        return float(model.posterior(X).mean.max())


def _models() -> dict[str, Model]:
    data = duel_data(DUELS, NOISE, DIM)
    generator = torch.Generator().manual_seed(0)
    root = torch.linalg.cholesky(data.covariance + 1e-8 * torch.eye(len(data.X), dtype=data.X.dtype))
    values = root @ torch.randn(len(data.X), 1, dtype=data.X.dtype, generator=generator)
    values = (values - values.mean()) / values.std()
    models = {
        "SkewGP": SkewGP(data.X, Preference(data.pairs)),
        "PairwiseGP": PairwiseGP(data.X, data.pairs),
        "SingleTaskGP": SingleTaskGP(data.X, values, outcome_transform=None),
    }
    objectives = {
        "SkewGP": SkewGPMarginalLogLikelihood,
        "PairwiseGP": PairwiseLaplaceMarginalLogLikelihood,
        "SingleTaskGP": ExactMarginalLogLikelihood,
    }
    for label, model in models.items():
        start = time.process_time()
        mll = objectives[label](model.likelihood, model)
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": FIT_STEPS}}, warning_handler=lambda _: True)
        model.eval()
        model.posterior(data.X[:1])  # draws and factorisations, made once per fit
        say(f"fit of {label}: {time.process_time() - start:.1f} s")
    return models


def _timed_call(build: Build, model: Model, X: Tensor, bounds: Tensor, seed: int) -> tuple[float, int, float]:
    """Seconds, evaluations with a gradient, and the value found, of one call."""
    acquisition = build(model, X)
    count = 0

    def counting(*_: object) -> None:
        nonlocal count
        count += torch.is_grad_enabled()

    handle = acquisition.register_forward_pre_hook(counting)
    with torch.random.fork_rng(), warnings.catch_warnings():
        torch.manual_seed(seed)
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        start = time.process_time()
        _, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=RESTARTS, raw_samples=RAW_SAMPLES)
        took = time.process_time() - start
    handle.remove()
    return took, count, float(value)


def _timed_evaluation(acquisition: AcquisitionFunction, X: Tensor) -> float:
    """Seconds of a value with its gradient at as many points as there are restarts; the median of ten."""
    points = torch.rand(RESTARTS, 1, DIM, dtype=X.dtype, generator=torch.Generator().manual_seed(1)).requires_grad_()
    times = []
    for _ in range(11):
        start = time.process_time()
        torch.autograd.grad(acquisition(points).sum(), points)
        times.append(time.process_time() - start)
    return statistics.median(times[1:])

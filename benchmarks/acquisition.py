"""One call of optimize_acqf at 100 duels in 6 dimensions, beside BoTorch's PairwiseGP.

`q = 1`, 10 restarts, 256 raw samples, 256 Monte Carlo draws; both models are fitted with ten steps of the optimiser.
How many evaluations a call takes is the optimiser's choice and differs between models, hence it is told too. Seconds
are those of the processor, medians; models take turns.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models import PairwiseGP
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseLaplaceMarginalLogLikelihood
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

from benchmarks._observations import duel_data
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

DUELS, DIM, NOISE, FIT_STEPS = 100, 6, 0.1, 10
MODELS: dict[str, Callable[[Tensor, Tensor], Model]] = {
    "SkewGP": lambda X, pairs: SkewGP(X, Preference(pairs)),
    "PairwiseGP": PairwiseGP,
}
OBJECTIVES: dict[str, type[MarginalLogLikelihood]] = {
    "SkewGP": SkewGPMarginalLogLikelihood,
    "PairwiseGP": PairwiseLaplaceMarginalLogLikelihood,
}
FUNCTIONS: dict[str, Callable[[Model, Tensor], AcquisitionFunction]] = {
    "qEUBO": lambda model, X: qExpectedUtilityOfBestOption(model, sampler=_sampler(), X_pending=X[:1]),
    "qLogNEI": lambda model, X: qLogNoisyExpectedImprovement(model, X, sampler=_sampler(), prune_baseline=True),
}


def _sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([256]), seed=0)


@functools.cache
def _fitted(name: str) -> tuple[Model, Tensor]:
    data = duel_data(DUELS, NOISE, DIM)
    model = MODELS[name](data.X, data.pairs)
    mll = OBJECTIVES[name](model.likelihood, model)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": FIT_STEPS}}, warning_handler=lambda _: True)
    model.eval().posterior(data.X[:1])  # draws and factorisations, made once per fit
    return model, data.X


def _run(function: str, model: str, seed: int) -> dict[str, Cell]:
    """Seconds, evaluations with a gradient, and the value found, of one call."""
    fitted, X = _fitted(model)
    acquisition, count = FUNCTIONS[function](fitted, X), 0

    def counting(*_: object) -> None:
        nonlocal count
        count += torch.is_grad_enabled()

    acquisition.register_forward_pre_hook(counting)
    bounds, began = torch.tensor([[0.0] * DIM, [1.0] * DIM], dtype=X.dtype), time.process_time()
    _, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=256)
    return {"call_s": time.process_time() - began, "evaluations": count, "value": float(value)}


def _columns(runs: Group) -> dict[str, Cell]:
    mine, theirs = runs.median("call_s"), runs.beside("call_s", model="PairwiseGP")[1]
    return {
        "call_s": mine, "evaluations": runs.median("evaluations"), "value": runs.mean("value"),
        "times_pairwise": mine / float(theirs.quantile(0.5)) if len(theirs) else 1.0,
    }  # fmt: skip


MEASURES = ("call_s", "evaluations", "value")
RACES = (Race("acquisition", grid(function=FUNCTIONS), grid(model=MODELS), range(3), _run, MEASURES, _columns),)

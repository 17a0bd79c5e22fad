"""Thousands of labels and of duels: time, memory, and how far probabilities are from the true ones.

The protocol is on the page, docs/measurements/scale.md.
"""

from __future__ import annotations

import importlib.util
import math
import resource
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks._process import apart
from benchmarks._race import Cell, Names, Race, grid

LENGTHSCALES, VARIANCE = (0.2, 0.3, 0.6), 2.0
NUM_TEST = 2000
FEATURES = 2000
PASSES = 120
LEAST_GAIN = 1e-6  # of a step of our fits, relative to the evidence, at which they stop
LIMIT = 1200.0  # seconds that a method may take
MEASURES = ("fit_s", "draws_s", "total_s", "memory_gb", "divergence", "note")


def _run(
    kind: str, size: int, method: str, seed: int, items: int = 0, points: int = 0
) -> dict[str, Cell] | list[Names]:
    """What a fresh process measures."""
    if importlib.util.find_spec(method) is None and method in ("gpboost", "choix"):
        return []
    found = apart(measure, kind, method, size, items, points, limit=LIMIT)
    note = found.pop("why", "")
    return {**found, "note": found.get("note", note[:100])}


def measure(kind: str, method: str, size: int, items: int, points: int) -> dict[str, Any]:
    """Seconds, memory and divergence of one method."""
    warnings.simplefilter("ignore")
    data = make_labels(size) if kind == "labels" else _duels(size, items)
    began = time.process_time()
    predicted, fitted, note = (LABELS if kind == "labels" else DUELS)[method](*data[:-1], points)
    ended = time.process_time()
    sides = [(data[-1], predicted), (1 - data[-1], 1 - predicted)]  # infinite if sure and wrong
    divergence = sum(torch.xlogy(true, true) - torch.xlogy(true, said) for true, said in sides)
    return {
        "fit_s": fitted - began, "draws_s": ended - fitted, "total_s": ended - began,
        "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "divergence": float(divergence.mean()), "note": note,
    }  # fmt: skip


# Data


def make_labels(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points, labels, test points, and the true probabilities there."""
    kind: dict[str, Any] = {"generator": torch.Generator().manual_seed(seed), "dtype": torch.float64}
    frequency = torch.randn(3, FEATURES, **kind) / torch.tensor(LENGTHSCALES, dtype=torch.float64).unsqueeze(-1)
    phase, weight = 2 * math.pi * torch.rand(FEATURES, **kind), torch.randn(FEATURES, **kind)
    X = torch.rand(n + NUM_TEST, 3, **kind)
    f = torch.cat([torch.cos(part @ frequency + phase) @ weight for part in X.split(10_000)])
    f = f * math.sqrt(2 * VARIANCE / FEATURES)
    labels = f[:n] + torch.randn(n, **kind) > 0
    return X[:n], labels, X[n:], torch.special.ndtr(f[n:])


def _duels(m: int, items: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Items, duels with the winner first, pairs to predict, and the true probabilities that the first one wins."""
    generator = torch.Generator().manual_seed(seed)
    utility = torch.randn(items, generator=generator, dtype=torch.float64)

    def pairs(k: int) -> Tensor:
        first = torch.randint(items, (k,), generator=generator)
        return torch.stack([first, (first + torch.randint(1, items, (k,), generator=generator)) % items], dim=-1)

    asked = pairs(m)
    gap = utility[asked[:, 0]] - utility[asked[:, 1]]
    wins = gap + math.sqrt(2) * torch.randn(m, generator=generator, dtype=torch.float64) > 0
    answered = torch.where(wins.unsqueeze(-1), asked, asked.flip(-1))
    test = pairs(NUM_TEST)
    true = torch.special.ndtr((utility[test[:, 0]] - utility[test[:, 1]]) / math.sqrt(2))
    X = 100 * torch.arange(items, dtype=torch.float64).unsqueeze(-1)
    return X, answered, test, true


# Labels: points, labels, test points and a number of inducing points -> probabilities, the time after the fit, a note


def _kernel() -> Any:
    from gpytorch.kernels import RBFKernel, ScaleKernel

    kernel = ScaleKernel(RBFKernel(ard_num_dims=3)).double()
    kernel.base_kernel.lengthscale = 0.4
    return kernel


def _skewgp(X: Tensor, labels: Tensor, test_X: Tensor, points: int) -> tuple[Tensor, float, str]:
    from botorch.fit import fit_gpytorch_mll

    from botorch_skewgp import SkewGP
    from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
    from botorch_skewgp.observations import Binary

    model = SkewGP(X, Binary(labels), covar_module=_kernel(), inducing_points=points // 2)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    for _ in range(2):
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"ftol": LEAST_GAIN}})
        model.choose_inducing_points(points)
    fitted = time.process_time()
    with torch.no_grad():
        probabilities = torch.cat([model.predictive(part).probs.squeeze(-1) for part in test_X.split(500)])
    draws = model.draws
    return probabilities, fitted, f"{draws.sampler}, least ESS {float(draws.effective_size.min()):.0f}"


def _svgp(X: Tensor, labels: Tensor, test_X: Tensor, points: int) -> tuple[Tensor, float, str]:
    import gpytorch
    from botorch.models.utils.inducing_point_allocators import GreedyVarianceReduction
    from gpytorch.variational import NaturalVariationalDistribution, VariationalStrategy

    torch.manual_seed(0)
    kernel = _kernel()
    candidates = X[: min(len(X), 4096)]
    Z = GreedyVarianceReduction().allocate_inducing_points(candidates, kernel, points, torch.Size())

    class Process(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            distribution = NaturalVariationalDistribution(len(Z)).double()
            super().__init__(VariationalStrategy(self, Z.clone(), distribution, learn_inducing_locations=True))
            self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), kernel

        def forward(self, x: Tensor) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Process().double(), gpytorch.likelihoods.BernoulliLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    natural = gpytorch.optim.NGD(model.variational_parameters(), num_data=len(X), lr=0.1)
    adam = torch.optim.Adam(model.hyperparameters(), lr=0.01)
    Y, past, passes = labels.double(), [], 0
    least = max(1, min(20, 20_000 // len(X)))  # passes that are looked at together
    model.train()
    for passes in range(1, PASSES * least + 1):
        values = []
        for which in torch.randperm(len(X)).split(1024):
            for optimizer in (natural, adam):
                optimizer.zero_grad()
            value = -bound(model(X[which]), Y[which])
            value.backward()
            natural.step()
            adam.step()
            values.append(-float(value.detach()) * len(which))
        past.append(sum(values) / len(X))
        if passes >= 10 * least and passes % (5 * least) == 0:
            recent, before = (sum(past[-k - 5 * least : len(past) - k]) / (5 * least) for k in (0, 5 * least))
            if recent - before < 1e-3:
                break
    fitted = time.process_time()
    model.eval()
    with torch.no_grad():
        probabilities = likelihood(model(test_X)).probs
    return probabilities, fitted, f"{passes} passes, bound {past[-1]:.4f}"


def _gpboost(X: Tensor, labels: Tensor, test_X: Tensor, points: int) -> tuple[Tensor, float, str]:
    import gpboost

    model = gpboost.GPModel(
        gp_coords=X.numpy(), cov_function="gaussian_ard", likelihood="bernoulli_probit", gp_approx="fitc",
        num_ind_points=min(points, len(X)), num_parallel_threads=1, seed=0,
    )  # fmt: skip
    model.fit(y=labels.double().numpy())
    fitted = time.process_time()
    found = model.predict(gp_coords_pred=test_X.numpy(), predict_response=True)
    return torch.as_tensor(found["mu"], dtype=torch.float64), fitted, ""


# Duels: items, duels, pairs -> probabilities that the first one wins


def _skewgp_duels(X: Tensor, duels: Tensor, test: Tensor, points: int) -> tuple[Tensor, float, str]:
    from botorch.fit import fit_gpytorch_mll
    from gpytorch.kernels import RBFKernel, ScaleKernel

    from botorch_skewgp import SkewGP
    from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
    from botorch_skewgp.observations import Preference

    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    model = SkewGP(X, Preference(duels), covar_module=kernel)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    fitted = time.process_time()
    with torch.no_grad():
        probabilities = model.predictive(X[test]).probs
    draws = model.draws
    note = f"{draws.sampler}, {draws.rows.shape[-1]} rows, least ESS {float(draws.effective_size.min()):.0f}"
    return probabilities.reshape(-1), fitted, note


def _choix(X: Tensor, duels: Tensor, test: Tensor, points: int) -> tuple[Tensor, float, str]:
    import choix

    utility = torch.as_tensor(choix.opt_pairwise(len(X), duels.tolist(), alpha=1e-2))
    fitted = time.process_time()
    return torch.sigmoid(utility[test[:, 0]] - utility[test[:, 1]]), fitted, ""


Method = Callable[[Tensor, Tensor, Tensor, int], tuple[Tensor, float, str]]
LABELS: dict[str, Method] = {"skewgp": _skewgp, "svgp": _svgp, "gpboost": _gpboost}
DUELS: dict[str, Method] = {"skewgp duels": _skewgp_duels, "choix": _choix}
SIZES = (1000, 10_000, 100_000, 1_000_000)
NOTES = ["one thread for each method, in a process of its own; seconds of its CPU, memory at its peak"]
RACES = (
    Race("scale_labels", grid(size=(500, 2000, 10_000, 100_000), points=[200]), grid(method=LABELS), range(1),
         partial(_run, "labels"), MEASURES, notes=NOTES),
    Race("scale_duels", grid(size=SIZES, items=(100, 1000)), grid(method=DUELS), range(1), partial(_run, "duels"),
         MEASURES, notes=NOTES),
)  # fmt: skip

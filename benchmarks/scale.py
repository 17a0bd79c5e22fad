"""Thousands of labels and of duels: time, memory, and how far probabilities are from the true ones."""

from __future__ import annotations

import importlib.util
import math
import resource
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import gpytorch
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.utils.inducing_point_allocators import GreedyVarianceReduction
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from benchmarks._observations import VariationalProcess, duel, fitted, noisy, random_features, random_pairs, rbf_kernel
from benchmarks._process import apart
from benchmarks._race import Cell, Names, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.checking import check_inducing_points
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Preference
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation

LENGTHSCALES, VARIANCE = torch.tensor([0.2, 0.3, 0.6], dtype=torch.float64).unsqueeze(-1), 2.0
NUM_TEST = 2000
PASSES = 120
LEAST_GAIN = 1e-6  # of a step of our fits, relative to the evidence, at which they stop
LIMIT = 1200.0  # seconds that a method may take
MEASURES = ("total_s", "memory_gb", "divergence", "note")


def _run(
    kind: str, size: int, method: str, seed: int, items: int = 0, points: int = 0
) -> dict[str, Cell] | list[Names]:
    if importlib.util.find_spec(method) is None and method in ("gpboost", "choix"):
        return []
    found = apart(measure, kind, method, size, items, points, limit=LIMIT)
    note = found.pop("why", "")
    return {**found, "note": found.get("note", note[:100])}


def measure(kind: str, method: str, size: int, items: int, points: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    data = make_labels(size, LENGTHSCALES) if kind == "labels" else _duels(size, items)
    began = time.process_time()
    predicted, note = (LABELS if kind == "labels" else DUELS)[method](*data[:-1], points)
    ended = time.process_time()
    sides = [(data[-1], predicted), (1 - data[-1], 1 - predicted)]  # infinite if sure and wrong
    divergence = sum(torch.xlogy(true, true) - torch.xlogy(true, said) for true, said in sides)
    return {
        "total_s": ended - began,
        "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "divergence": float(divergence.mean()), "note": note,
    }  # fmt: skip


# Data


def make_labels(
    n: int, lengthscale: float | Tensor, num_test: int = NUM_TEST, features: int = 2000, dim: int = 3
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points of the unit cube, labels with unit noise, test points, and the true probabilities there."""
    generator = torch.Generator().manual_seed(0)
    frequency = torch.randn(dim, features, generator=generator, dtype=torch.float64) / lengthscale
    function = random_features(frequency, generator, VARIANCE)
    X = torch.rand(n + num_test, dim, generator=generator, dtype=torch.float64)
    f = function(X)
    return X[:n], noisy(f[:n], 1.0, generator) > 0, X[n:], torch.special.ndtr(f[n:])


def _duels(m: int, items: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Items, duels with the winner first, pairs to predict, and the true probabilities that the first one wins."""
    generator = torch.Generator().manual_seed(0)
    utility = torch.randn(items, generator=generator, dtype=torch.float64)
    answered = duel(utility, random_pairs(items, m, generator), 1.0, generator)
    test = random_pairs(items, NUM_TEST, generator)
    true = torch.special.ndtr((utility[test[:, 0]] - utility[test[:, 1]]) / math.sqrt(2))
    return 100 * torch.arange(items, dtype=torch.float64).unsqueeze(-1), answered, test, true


# Labels: points, labels, test points and a number of inducing points -> probabilities, and a note


def _kernel() -> Any:
    kernel = ScaleKernel(RBFKernel(ard_num_dims=3)).double()
    kernel.base_kernel.lengthscale = 0.4
    return kernel


def _skewgp(X: Tensor, labels: Tensor, test_X: Tensor, points: int) -> tuple[Tensor, str]:
    model = SkewGP(X, Binary(labels), covar_module=_kernel(), inducing_points=points // 2)
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    for _ in range(2):
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"ftol": LEAST_GAIN}})
        model.choose_inducing_points(points)
    with torch.no_grad():
        probabilities = torch.cat([model.predictive(part).probs.squeeze(-1) for part in test_X.split(500)])
    draws = model.draws
    return probabilities, f"{draws.sampler}, least ESS {float(draws.effective_size.min()):.0f}"


def _svgp(X: Tensor, labels: Tensor, test_X: Tensor, points: int) -> tuple[Tensor, str]:
    torch.manual_seed(0)
    kernel = _kernel()
    candidates = X[: min(len(X), 4096)]
    Z = GreedyVarianceReduction().allocate_inducing_points(candidates, kernel, points, torch.Size())
    distribution = gpytorch.variational.NaturalVariationalDistribution(len(Z)).double()
    model = VariationalProcess(Z.clone(), distribution, gpytorch.means.ConstantMean(), kernel, True).double()
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
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
    model.eval()
    with torch.no_grad():
        probabilities = likelihood(model(test_X)).probs
    return probabilities, f"{passes} passes, bound {past[-1]:.4f}"


def _gpboost(X: Tensor, labels: Tensor, test_X: Tensor, points: int) -> tuple[Tensor, str]:
    import gpboost

    model = gpboost.GPModel(
        gp_coords=X.numpy(), cov_function="gaussian_ard", likelihood="bernoulli_probit", gp_approx="fitc",
        num_ind_points=min(points, len(X)), num_parallel_threads=1, seed=0,
    )  # fmt: skip
    model.fit(y=labels.double().numpy())
    found = model.predict(gp_coords_pred=test_X.numpy(), predict_response=True)
    return torch.as_tensor(found["mu"], dtype=torch.float64), ""


# Duels: items, duels, pairs -> probabilities that the first one wins


def _skewgp_duels(X: Tensor, duels: Tensor, test: Tensor, points: int) -> tuple[Tensor, str]:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    model = fitted(SkewGP(X, Preference(duels), covar_module=kernel))
    with torch.no_grad():
        probabilities = model.predictive(X[test]).probs
    draws = model.draws
    note = f"{draws.sampler}, {draws.rows.shape[-1]} rows, least ESS {float(draws.effective_size.min()):.0f}"
    return probabilities.reshape(-1), note


def _choix(X: Tensor, duels: Tensor, test: Tensor, points: int) -> tuple[Tensor, str]:
    import choix

    utility = torch.as_tensor(choix.opt_pairwise(len(X), duels.tolist(), alpha=1e-2))
    return torch.sigmoid(utility[test[:, 0]] - utility[test[:, 1]]), ""


# Inducing points where they are too few

NUM_LABELS = 800
OF_POINTS = ("mean_error", "mean_change", "enough", "pareto_k", "effective_share")


def _too_few(inputs: int, lengthscale: float, points: int, seed: int) -> dict[str, Cell]:
    """How far posterior means are off, in standard deviations of the exact model's, and what a check says."""
    X, labels, test_X, _ = make_labels(NUM_LABELS, lengthscale, 300, 1000, inputs)
    models = [
        SkewGP(X, Binary(labels), covar_module=rbf_kernel(VARIANCE, lengthscale), inducing_points=number).eval()
        for number in (None, points)
    ]
    with torch.no_grad():
        exact, found = (_posterior(model, test_X) for model in models)
        error = float(((found.mean - exact.mean) / exact.variance.sqrt()).square().mean().sqrt())
    check = check_inducing_points(models[1])
    told = {name: float(getattr(check, name)) for name in ("mean_change", "pareto_k", "effective_share")}
    return {"mean_error": error, "enough": bool(check.enough), **told}


def _posterior(model: SkewGP, X: Tensor) -> SkewGPPosterior:
    """The Gaussian posterior of expectation propagation."""
    rows = model.row_model(model.forward(model.train_inputs[0]))
    return model.fitted().posterior_of_mixture(X, rows.gaussian_mixture(expectation_propagation(rows.truncated_normal)))


CASES = [{"inputs": inputs, "lengthscale": lengthscale, "points": 100}
         for inputs, lengthscale in ((3, 0.1), (3, 0.2), (3, 0.4), (6, 0.4), (6, 1.0), (10, 1.0))]  # fmt: skip
Method = Callable[[Tensor, Tensor, Tensor, int], tuple[Tensor, str]]
LABELS: dict[str, Method] = {"skewgp": _skewgp, "svgp": _svgp, "gpboost": _gpboost}
DUELS: dict[str, Method] = {"skewgp duels": _skewgp_duels, "choix": _choix}
SIZES = (1000, 10_000, 100_000, 1_000_000)
NOTES = ["one thread for each method, in a process of its own; seconds of its CPU, memory at its peak"]
RACES = (
    Race("scale_labels", grid(size=(500, 2000, 10_000, 100_000), points=[200]), grid(method=LABELS), range(1),
         partial(_run, "labels"), MEASURES, notes=NOTES),
    Race("scale_duels", grid(size=SIZES, items=(100, 1000)), grid(method=DUELS), range(1), partial(_run, "duels"),
         MEASURES, notes=NOTES),
    Race("inducing_points", CASES, [{}], range(1), _too_few, OF_POINTS, notes=[f"{NUM_LABELS} labels"]),
)  # fmt: skip

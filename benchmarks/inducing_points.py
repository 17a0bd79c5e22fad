"""Inducing points where they are too few: how far posterior means are off, and what `check_inducing_points` says.

Labels of a function with a squared exponential kernel of one lengthscale, variance 2 and unit noise, at points that are
uniform in the unit cube; the hyperparameters are the true ones. Means at 300 new points by expectation propagation, in
standard deviations of the exact model's, whose means are found in the same way.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from benchmarks._observations import rbf_kernel
from benchmarks._race import Cell, Race
from botorch_skewgp import SkewGP
from botorch_skewgp.checking import check_inducing_points
from botorch_skewgp.observations import Binary
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation

CASES = [{"inputs": inputs, "lengthscale": lengthscale, "points": 100}
         for inputs, lengthscale in ((3, 0.1), (3, 0.2), (3, 0.4), (6, 0.4), (6, 1.0), (10, 1.0))]  # fmt: skip
MEASURES = ("mean_error", "mean_change", "enough", "pareto_k", "effective_share")
NUM_LABELS, NUM_TEST, FEATURES, VARIANCE = 800, 300, 1000, 2.0


def _run(inputs: int, lengthscale: float, points: int, seed: int) -> dict[str, Cell]:
    X, labels, test_X = _data(inputs, lengthscale)
    models = [_model(X, labels, lengthscale, number) for number in (None, points)]
    with torch.no_grad():
        exact, found = (_posterior(model, test_X) for model in models)
        error = float(((found.mean - exact.mean) / exact.variance.sqrt()).square().mean().sqrt())
    check = check_inducing_points(models[1])
    told = {name: float(getattr(check, name)) for name in ("mean_change", "pareto_k", "effective_share")}
    return {"mean_error": error, "enough": bool(check.enough), **told}


def _data(dim: int, lengthscale: float) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(NUM_LABELS + NUM_TEST, dim, generator=generator, dtype=torch.float64)
    frequency = torch.randn(dim, FEATURES, generator=generator, dtype=torch.float64) / lengthscale
    phase = 2 * math.pi * torch.rand(FEATURES, generator=generator, dtype=torch.float64)
    weight = torch.randn(FEATURES, generator=generator, dtype=torch.float64) * math.sqrt(2 * VARIANCE / FEATURES)
    f = torch.cos(X[:NUM_LABELS] @ frequency + phase) @ weight
    labels = f + torch.randn(NUM_LABELS, generator=generator, dtype=torch.float64) > 0
    return X[:NUM_LABELS], labels, X[NUM_LABELS:]


def _model(X: Tensor, labels: Tensor, lengthscale: float, points: int | None) -> SkewGP:
    kernel = rbf_kernel(VARIANCE, lengthscale)
    return SkewGP(X, Binary(labels), covar_module=kernel, inducing_points=points).eval()


def _posterior(model: SkewGP, X: Tensor) -> SkewGPPosterior:
    """The Gaussian posterior of expectation propagation."""
    rows = model.row_model(model.forward(model.train_inputs[0]))
    return model.posterior_of_mixture(X, rows.gaussian_mixture(expectation_propagation(rows.truncated_normal)))


RACES = (Race("inducing_points", CASES, [{}], range(1), _run, MEASURES, notes=[f"{NUM_LABELS} labels"]),)

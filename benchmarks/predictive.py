"""Held-out log predictive density of classifiers: ours, scikit-learn's Laplace classifier, and GPy's EP classifier.

Data are drawn from the model (the generator of the unified paper, section 4) or are those bundled with scikit-learn,
with small random training sets. Inputs are scaled to the unit cube by the training set. The others' kernels are squared
exponential with one lengthscale, and with one for each dimension. GPy takes part if it is installed.

How methods are compared. A data set is one function drawn from the model, or one random split of one part of bundled
data; every task has the same number of them, with seeds counted from 0, and every method gets the same ones. Points of
one data set share a function and a fit, so that they are no independent evidence; data sets are. The difference of two
methods is therefore averaged over test points within each data set, and its standard error is that of the mean over
data sets. A method is no worse than another on a task if the mean difference is not below zero by more than two of its
standard errors, and better on average if the average difference over tasks is above zero by more than two of its own. A
fixed limit in nats instead would be decided by luck where differences between data sets are larger than it, as they are
between functions drawn from the model: with two of these the error is of the order of the differences that are asked
for. Splits of the same data overlap, so that errors on bundled data say how far other splits of these data would
differ, not other data.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from benchmarks._scores import information_score
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp, fit_skew_gp
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary

Classifier = Callable[[Tensor, Tensor, Tensor], Tensor]  # train_X, labels, test_X -> probabilities of label 1
TASKS = ("drawn", "breast cancer", "wine", "digits")
DATA_SETS = 24  # of every task; a multiple of the parts of wine and digits
PARTS = {"drawn": 1, "breast cancer": 1, "wine": 3, "digits": 3}


@dataclass(frozen=True)
class Split:
    """A task with its data."""

    task: str
    train_X: Tensor
    train_y: Tensor
    test_X: Tensor
    test_y: Tensor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--size", type=int, help="training points; 100, or 40 with --quick")
    parser.add_argument("--data-sets", type=int, help=f"data sets of each task; {DATA_SETS}, or 3 with --quick")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), help="all but the slow fully Bayesian one if not given"
    )


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    size, data_sets = (
        options.size or (40 if options.quick else 100),
        options.data_sets or (3 if options.quick else DATA_SETS),
    )
    has_gpy = importlib.util.find_spec("GPy") is not None
    methods = options.methods or [
        name for name in METHODS if "Bayesian" not in name and (has_gpy or not name.startswith("gpy"))
    ]
    if not has_gpy:
        say("GPy is not installed; it is left out.")
    ours = methods[0]
    table = Table(
        "predictive",
        ("task", "method", "log_density", "difference", "standard_error", "bits", "accuracy", "seconds"),
        notes=[
            environment(),
            f"load average at the start {load_average()}",
            f"{size} training points, {data_sets} data sets for each task; averages per test point; bits: information "
            f"score; difference: of {ours} to the method, paired by data set, with its standard error",
        ],
    )
    gaps: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for task in options.tasks:
        data = [split for seed in range(math.ceil(data_sets / PARTS[task])) for split in _splits(task, size, seed)]
        reference: Tensor | None = None
        for method in methods:
            began, densities, scores, right = time.perf_counter(), [], [], []
            for split in data[:data_sets]:
                p = METHODS[method](split.train_X, split.train_y, split.test_X)
                densities.append(torch.where(split.test_y == 1, p, 1 - p).log().mean())  # infinite if sure and wrong
                scores.append(float(information_score(p, split.test_y)))
                right.append(float(((p > 0.5) == split.test_y).double().mean()))
            density, seconds = torch.stack(densities), (time.perf_counter() - began) / data_sets
            reference = density if reference is None else reference
            gap, error = _paired(reference - density)
            table.add(
                task=task, method=method, log_density=float(density.mean()), difference=gap, standard_error=error,
                bits=float(np.mean(scores)), accuracy=float(np.mean(right)), seconds=seconds,
            )  # fmt: skip
            gaps[method].append((gap, error))
            say(f"{task}, {method}: {float(density.mean()):.4f}, {gap:+.4f} +- {error:.4f}, in {seconds:.1f} s")
    for method in methods[1:]:
        gap = float(np.mean([gap for gap, _ in gaps[method]]))
        error = math.hypot(*(error for _, error in gaps[method])) / len(gaps[method])
        table.notes.append(f"average of tasks, {ours} less {method}: {gap:+.4f} +- {error:.4f}")
    table.notes.append(f"load average at the end {load_average()}")
    publish([table], folder)


def _paired(differences: Tensor) -> tuple[float, float]:
    """The mean over data sets and its standard error."""
    return float(differences.mean()), float(differences.std()) / math.sqrt(differences.shape[0])


def _splits(task: str, size: int, seed: int) -> Iterator[Split]:
    """Random splits of a task; wine and digits have several parts."""
    generator = torch.Generator().manual_seed(seed)
    if task == "drawn":
        yield _drawn(size, generator)
        return
    load = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}[task]
    inputs, classes = load(return_X_y=True)
    X, y = torch.tensor(inputs, dtype=torch.float64), torch.tensor(classes)
    if task == "breast cancer":
        parts = [(X, y)]
    elif task == "wine":
        parts = [(X, (y == label).long()) for label in range(3)]
    else:
        pairs = [(3, 5), (4, 9), (1, 7)]
        parts = [(X[(y == a) | (y == b)], (y[(y == a) | (y == b)] == a).long()) for a, b in pairs]
    for X, y in parts:
        order = torch.randperm(X.shape[0], generator=generator)
        train, test = order[:size], order[size:]
        low, high = X[train].amin(0), X[train].amax(0)
        scaled = (X - low) / torch.where(high > low, high - low, torch.ones_like(low))
        yield Split(task, scaled[train], y[train], scaled[test], y[test])


def _drawn(size: int, generator: torch.Generator, d: int = 3, num_test: int = 400) -> Split:
    """Standard normal inputs; the variance uniform on (1, 10), lengthscales on (0.1, 1.1), unit noise."""
    kind: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    X = torch.randn(size + num_test, d, **kind)
    variance, lengthscale = 1 + 9 * torch.rand(1, **kind), 0.1 + torch.rand(d, **kind)
    K = variance * torch.exp(-0.5 * torch.cdist(X / lengthscale, X / lengthscale).square())
    root = torch.linalg.cholesky(K + 1e-6 * torch.eye(X.shape[0], dtype=K.dtype))
    y = (root @ torch.randn(X.shape[0], **kind) + torch.randn(X.shape[0], **kind) > 0).long()
    low, high = X[:size].amin(0), X[:size].amax(0)
    X = (X - low) / (high - low)
    return Split("drawn", X[:size], y[:size], X[size:], y[size:])


# Methods


def _skewgp(train_X: Tensor, labels: Tensor, test_X: Tensor) -> Tensor:
    model = SkewGP(train_X, Binary(labels))
    fit_skew_gp(model)
    with torch.no_grad():
        return model.predictive(test_X).probs.squeeze(-1)


def _fully_bayesian(train_X: Tensor, labels: Tensor, test_X: Tensor) -> Tensor:
    model = SkewGP(train_X, Binary(labels))
    mll = fit_skew_gp(model)
    assert isinstance(mll, SkewGPMarginalLogLikelihood)
    ensemble = fit_fully_bayesian_skew_gp(mll)
    with torch.no_grad():
        return ensemble.predictive(test_X).probs.squeeze(-1)


def _laplace(ard: bool) -> Classifier:
    def classify(train_X: Tensor, labels: Tensor, test_X: Tensor) -> Tensor:
        scale = np.ones(train_X.shape[-1]) if ard else 1.0
        classifier = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(scale), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a hyperparameter at the end of its range
            classifier.fit(train_X.numpy(), labels.numpy())
        return torch.from_numpy(classifier.predict_proba(test_X.numpy())[:, 1])

    return classify


def _gpy(ard: bool) -> Classifier:
    def classify(train_X: Tensor, labels: Tensor, test_X: Tensor) -> Tensor:
        import GPy

        kernel = GPy.kern.RBF(train_X.shape[-1], ARD=ard)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a package that has not kept up with numpy's
            classifier = GPy.models.GPClassification(train_X.numpy(), labels.numpy()[:, None], kernel=kernel)
            classifier.optimize(max_iters=200)
            p, _ = classifier.predict(test_X.numpy())
        return torch.from_numpy(p[:, 0])

    return classify


METHODS: dict[str, Classifier] = {
    "skewgp": _skewgp,
    "skewgp fully Bayesian": _fully_bayesian,
    "scikit-learn": _laplace(ard=False),
    "scikit-learn ARD": _laplace(ard=True),
    "gpy": _gpy(ard=False),
    "gpy ARD": _gpy(ard=True),
}

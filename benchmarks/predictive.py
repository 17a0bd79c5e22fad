"""Held-out log predictive density of classifiers: ours, scikit-learn's Laplace classifier, and GPy's EP classifier.

Data are drawn from the model (the generator of the unified paper, section 4) or are those bundled with scikit-learn,
with small random training sets. Inputs are scaled to the unit cube by the training set. The others' kernels are squared
exponential with one lengthscale, and with one for each dimension. GPy takes part if it is installed.
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

from benchmarks._reporting import (
    Table,
    add_bar,
    add_common_arguments,
    bars_table,
    environment,
    load_average,
    prepare,
    publish,
    say,
)
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.fitting import fit_skew_gp
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.models.model_checking import information_score
from botorch_skewgp.observations import Binary

Classifier = Callable[[Tensor, Tensor, Tensor], Tensor]  # train_X, labels, test_X -> probabilities of label 1
TASKS = ("drawn", "breast cancer", "wine", "digits")
DRAWS = 6  # draws from the model for each split of another task: functions differ more than splits do
WORSE = 0.01  # nats a point within which two methods count as equal


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
    parser.add_argument("--splits", type=int, help="random splits of each task; 2, or 1 with --quick")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), help="all but the slow fully Bayesian one if not given"
    )


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    size, splits = options.size or (40 if options.quick else 100), options.splits or (1 if options.quick else 2)
    has_gpy = importlib.util.find_spec("GPy") is not None
    methods = options.methods or [
        name for name in METHODS if "Bayesian" not in name and (has_gpy or not name.startswith("gpy"))
    ]
    if not has_gpy:
        say("GPy is not installed; it is left out.")
    table = Table(
        "predictive",
        ("task", "method", "log_density", "standard_error", "bits", "accuracy", "seconds"),
        notes=[
            environment(),
            f"load average at the start {load_average()}",
            f"{size} training points, {splits} random splits; averages per test point; bits: information score; "
            "standard error: of the paired difference to skewgp",
        ],
    )
    bars = bars_table("predictive_bars")
    means: dict[str, list[float]] = {name: [] for name in methods}
    for task in options.tasks:
        draws = splits if options.quick or task != "drawn" else DRAWS * splits
        data = [split for seed in range(draws) for split in _splits(task, size, seed, options.quick)]
        reference: Tensor | None = None
        for method in methods:
            began, densities, scores, right = time.perf_counter(), [], [], []
            for split in data:
                p = METHODS[method](split.train_X, split.train_y, split.test_X).clamp(1e-12, 1 - 1e-12)
                densities.append(torch.where(split.test_y == 1, p, 1 - p).log())
                scores.append(float(information_score(p, split.test_y)))
                right.append(float(((p > 0.5) == split.test_y).double().mean()))
            density, seconds = torch.cat(densities), (time.perf_counter() - began) / len(data)
            reference = density if reference is None else reference
            error = float((density - reference).std() / math.sqrt(density.shape[0]))
            table.add(
                task=task, method=method, log_density=float(density.mean()), standard_error=error,
                bits=float(np.mean(scores)), accuracy=float(np.mean(right)), seconds=seconds,
            )  # fmt: skip
            means[method].append(float(density.mean()))
            say(f"{task}, {method}: {float(density.mean()):.4f} in {seconds:.1f} s")
            if method != methods[0] and "skewgp" not in method:
                add_bar(bars, f"log density above {method}'s", task, means[methods[0]][-1] - means[method][-1], -WORSE)
    for method in methods[1:]:
        if "skewgp" not in method:
            gain = float(np.mean(means[methods[0]]) - np.mean(means[method]))
            add_bar(bars, f"log density above {method}'s", "average of tasks", gain, 0.0)
    table.notes.append(f"load average at the end {load_average()}")
    bars.notes += table.notes
    publish([table, bars], folder)


def _splits(task: str, size: int, seed: int, quick: bool) -> Iterator[Split]:
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
    for X, y in parts[:1] if quick else parts:
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
    ensemble = FullyBayesianSkewGP.sample(mll, num_draws=16, warmup=64, thinning=2)
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

"""Information scores of classifiers (skew Gaussian processes for classification, figures 8 to 10).

Five-fold cross-validation; the score is `1 + mean log2 p(true label)`, 1 for certainty and 0 for a coin. The paper has
sets of PMLB; here those that come with scikit-learn stand for them (iris and wine: each class against the rest, breast
cancer, digits: 3 against 8), at most 240 points of each, inputs scaled to the unit cube by the training points. A trial
is a shuffle of the folds. Inputs that are constant in training are left out.

- `s = 0`: the Gaussian process prior, exact; `s = 2`: a skew prior with pseudo-points at the means of both classes,
  whose phases are chosen by the evidence.
- `EP`: the Gaussian of expectation propagation, with the hyperparameters of `s = 0`.
- `Laplace`: scikit-learn's classifier with a lengthscale for each input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.transforms.input import Normalize
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from torch import Tensor

from benchmarks._reporting import Table
from benchmarks.experiments._experiment import Experiment, Row, paired
from botorch_skewgp import SkewGP
from botorch_skewgp.checking import information_score
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.truncated.expectation_propagation import expectation_propagation

FOLDS, MOST_POINTS = 5, 240
METHODS = ("s = 0", "s = 2", "EP", "Laplace")
LEAST = 1e-12  # of the others' probabilities, whose logarithm they do not give


def _sets() -> dict[str, tuple[Tensor, Tensor]]:
    """Inputs and labels of every set."""
    found = {}
    for name, load in (("iris", load_iris), ("wine", load_wine)):
        X, y = (torch.as_tensor(part) for part in load(return_X_y=True))
        for kind in range(3):
            found[f"{name} {kind}"] = X.double(), y == kind
    X, y = (torch.as_tensor(part) for part in load_breast_cancer(return_X_y=True))
    found["breast cancer"] = X.double(), y == 1
    X, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    either = (y == 3) | (y == 8)
    found["digits 3, 8"] = X[either].double(), y[either] == 3
    return found


def _probabilities(train_X: Tensor, labels: Tensor, test_X: Tensor) -> dict[str, Tensor]:
    """The probabilities of label 1 by every method, from inputs in the unit cube."""
    plain = SkewGP(train_X, Binary(labels))
    fit_skew_gp(plain)
    means = torch.stack([train_X[labels].mean(0), train_X[~labels].mean(0)])
    skewed = SkewGP(train_X, Binary(labels), skew_prior=SkewPrior(means, torch.tensor([1.0, -1.0])))
    fit_skew_gp(skewed, search_phases=True)
    kernel = ConstantKernel(1.0) * RBF([1.0] * train_X.shape[1])
    laplace = GaussianProcessClassifier(kernel, random_state=0).fit(train_X.numpy(), labels.numpy())
    with torch.no_grad():
        rows = plain.row_model(plain.forward(plain.train_inputs[0]))
        mixture = rows.gaussian_mixture(expectation_propagation(rows.truncated_normal))
        gaussian = plain.posterior_of_mixture(test_X, mixture)
        return {
            "s = 0": plain.predictive(test_X).probs.flatten(),
            "s = 2": skewed.predictive(test_X).probs.flatten(),
            "EP": plain.likelihood(gaussian).probs.flatten(),
            "Laplace": torch.as_tensor(laplace.predict_proba(test_X.numpy())[:, 1]),
        }


def _trial(number: int, smoke: bool) -> list[Row]:
    rows = []
    for name, (X, labels) in list(_sets().items())[: 1 if smoke else None]:
        generator = torch.Generator().manual_seed(number)
        order = torch.randperm(len(X), generator=generator)[: 30 if smoke else MOST_POINTS]
        told: dict[str, list[Tensor]] = {method: [] for method in METHODS}
        seen: list[Tensor] = []
        for fold in range(2 if smoke else FOLDS):
            test = torch.arange(len(order)) % (2 if smoke else FOLDS) == fold
            train, held_out = order[~test], order[test]
            varied = X[train].amax(0) > X[train].amin(0)
            scale = Normalize(int(varied.sum()))
            train_X = scale(X[train][:, varied])
            scale.eval()
            for method, probability in _probabilities(train_X, labels[train], scale(X[held_out][:, varied])).items():
                told[method].append(probability)
            seen.append(labels[held_out])
        for method in METHODS:
            probability = torch.cat(told[method]).clamp(LEAST, 1 - LEAST)
            score = information_score(probability, torch.cat(seen))
            rows.append({"set": name, "method": method, "score": f"{float(score):.5f}"})
    return rows


def _tables(rows: Sequence[Row]) -> list[Table]:
    table = Table(
        "information_scores",
        ("set", "method", "score", "error", "less_than_s_2", "its_error"),
        notes=["in the paper, means over its sets: .512, .542, .557, .573", "errors are over shuffles of the folds"],
    )
    sets = list(dict.fromkeys(row["set"] for row in rows))
    scores = {
        (name, method): [float(row["score"]) for row in rows if (row["set"], row["method"]) == (name, method)]
        for name in sets
        for method in METHODS
    }
    for method in METHODS:  # of one trial, the mean over all sets
        scores["all", method] = [
            sum(of_trial) / len(sets) for of_trial in zip(*(scores[n, method] for n in sets), strict=True)
        ]
    for name in [*sets, "all"]:
        for method in METHODS:
            score, error = paired(scores[name, method])
            less, its_error = paired([a - b for a, b in zip(scores[name, "s = 2"], scores[name, method], strict=True)])
            table.add(set=name, method=method, score=score, error=error, less_than_s_2=less, its_error=its_error)
    return [table]


def _plot(ax: Any, rows: Sequence[Row]) -> None:
    sets = list(dict.fromkeys(row["set"] for row in rows))
    for i, method in enumerate(METHODS):
        for j, name in enumerate(sets):
            own = [float(row["score"]) for row in rows if (row["set"], row["method"]) == (name, method)]
            label = method if j == 0 else None
            ax.plot([j + 0.15 * (i - 1.5)] * len(own), own, ".", color=f"C{i}", label=label)
    ax.set_xticks(range(len(sets)), sets, rotation=30, ha="right")
    ax.set_ylabel("information score, bits")


EXPERIMENT = Experiment(
    name="information_scores",
    figure="Classification, figures 8 to 10",
    claim="A skew prior predicts better than EP, and EP better than Laplace's approximation.",
    trials=5,
    columns=("set", "method", "score"),
    trial=_trial,
    tables=_tables,
    plot=_plot,
)

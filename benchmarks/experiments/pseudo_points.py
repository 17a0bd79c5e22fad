"""A pseudo-point that is learned with the hyperparameters (skew Gaussian processes for classification, figures 6, 7).

Thirty labels in one dimension, of a function that is high on the left of [0, 1] and low on the right, with noise; 500
others measure the information score in bits. All are fitted by the evidence of expectation propagation.

- `none`: a Gaussian process prior. `at the mean`: one pseudo-point at the mean of the points of label 1, its phase
  chosen by the evidence; `learned`: from there, its place is fitted too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks._race import Group, Race, grid, mean_and_error
from benchmarks._reporting import Cell
from benchmarks._scores import information_score
from benchmarks.experiments._experiment import Experiment
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.papers import fit_phases

METHODS = ("none", "at the mean", "learned")
NUM_TRAIN, NUM_TEST, SLOPE = 30, 500, 6.0
COLUMNS = ("evidence", "score", "skewness")


def _data(num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    X = torch.rand(num, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(num, generator=generator, dtype=torch.float64)
    return X, SLOPE * (0.6 - X.squeeze(-1)) + noise > 0


def _run(method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    generator = torch.Generator().manual_seed(seed)
    (X, labels), (test_X, test_labels) = _data(NUM_TRAIN, generator), _data(NUM_TEST, generator)
    options = {"optimizer_kwargs": {"options": {"maxiter": 1}}, "warning_handler": lambda _: True} if smoke else {}
    prior = None
    if method != "none":
        is_learned = method == "learned"
        prior = SkewPrior(X[labels].mean(0, keepdim=True), torch.ones(1), learn_pseudo_points=is_learned)
    model = SkewGP(X, Binary(labels), skew_prior=prior)
    (fit_skew_gp if prior is None else fit_phases)(model, **options)
    with torch.no_grad():
        score = information_score(model.predictive(test_X).probs.flatten(), test_labels)
        found = (model.log_marginal_likelihood().value, score, model.posterior(test_X).skewness.abs().max())
    return {name: f"{float(value):.5f}" for name, value in zip(COLUMNS, found, strict=True)}


def _columns(runs: Group) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"trials": len(runs), **{name: runs.mean(name) for name in COLUMNS}}
    for name, error in (("evidence", "its_error"), ("score", "error")):
        mine, theirs = runs.beside(name, method="none")
        cells[f"more_{name}"], cells[error] = mean_and_error(mine - theirs)
    return cells


EXPERIMENT = Experiment(
    race=Race(
        "pseudo_points", [{}], grid(method=METHODS), range(10), _run, COLUMNS, _columns,
        ["more: than without a pseudo-point, paired; skewness: the largest of the posterior, on average"],
    ),
)  # fmt: skip

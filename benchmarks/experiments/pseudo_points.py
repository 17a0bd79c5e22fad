"""A pseudo-point that is learned with the hyperparameters (skew Gaussian processes for classification, figures 6, 7).

Thirty labels in one dimension, of a function that is high on the left of [0, 1] and low on the right, with noise; 500
others measure the information score in bits. All are fitted by the evidence of expectation propagation.

- `none`: a Gaussian process prior. `at the mean`: one pseudo-point at the mean of the points of label 1, its phase
  chosen by the evidence; `learned`: from there, its place is fitted too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks._reporting import Table
from benchmarks._scores import information_score
from benchmarks.experiments._experiment import Experiment, Row, paired
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


def _trial(number: int, case: Row, smoke: bool) -> list[Row]:
    generator = torch.Generator().manual_seed(number)
    (X, labels), (test_X, test_labels) = _data(NUM_TRAIN, generator), _data(NUM_TEST, generator)
    options = {"optimizer_kwargs": {"options": {"maxiter": 1}}, "warning_handler": lambda _: True} if smoke else {}
    prior = None
    if case["method"] != "none":
        is_learned = case["method"] == "learned"
        prior = SkewPrior(X[labels].mean(0, keepdim=True), torch.ones(1), learn_pseudo_points=is_learned)
    model = SkewGP(X, Binary(labels), skew_prior=prior)
    (fit_skew_gp if prior is None else fit_phases)(model, **options)
    with torch.no_grad():
        score = information_score(model.predictive(test_X).probs.flatten(), test_labels)
        found = (model.log_marginal_likelihood().value, score, model.posterior(test_X).skewness.abs().max())
    return [{name: f"{float(value):.5f}" for name, value in zip(COLUMNS, found, strict=True)}]


def _tables(rows: Sequence[Row]) -> list[Table]:
    table = Table("pseudo_points", ("method", "trials", *COLUMNS, "more_evidence", "its_error", "more_score", "error"),
        notes=["more: than without a pseudo-point, paired; skewness: the largest of the posterior, on average"],
    )  # fmt: skip
    values = {(row["method"], row["trial"], name): float(row[name]) for row in rows for name in COLUMNS}
    for method in METHODS:
        own = [row["trial"] for row in rows if row["method"] == method]
        if own:
            means = {name: paired([values[method, t, name] for t in own])[0] for name in COLUMNS}
            both = [t for t in own if ("none", t, "score") in values]
            more = {name: [values[method, t, name] - values["none", t, name] for t in both] for name in COLUMNS[:2]}
            evidence, score = (paired(more[name]) if both else (None, None) for name in COLUMNS[:2])
            table.add(method=method, trials=len(own), **means, more_evidence=evidence[0], its_error=evidence[1],
                      more_score=score[0], error=score[1])  # fmt: skip
    return [table]


def _plot(figure: Any, rows: Sequence[Row]) -> None:
    ax = figure.subplots()
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        ax.plot([float(row["evidence"]) for row in own], [float(row["score"]) for row in own], ".", label=method)
    ax.set(xlabel="log evidence", ylabel="information score, bits")
    ax.legend(frameon=False)


EXPERIMENT = Experiment(
    name="pseudo_points",
    figure="Classification, figures 6 and 7",
    claim="A pseudo-point learned with the hyperparameters makes the prior skewed as the data want it.",
    deviations="Own data, ten sets of thirty labels; what the paper shows is measured by evidence and score.",
    trials=10,
    cases=tuple({"method": method} for method in METHODS),
    columns=COLUMNS,
    trial=_trial,
    tables=_tables,
    plot=_plot,
)

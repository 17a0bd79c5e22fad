"""Probabilities far from the data, after a fit: how sure the model is of them, and how often it is right.

Functions are drawn from the default prior, hyperparameters and constant included (two inputs; grades have three
levels). 5 to 40 data lie in the corner [0, 0.3]^2, and the model is asked for the probability of a success, or of the
highest grade, at (1, 1). For the likelier of the two answers, what is said is compared with its true probability given
the drawn function: averages over data sets, their difference with its standard error, and the same for those answers of
which the model is more than nine tenths sure. Hyperparameters are fitted, and the constant is integrated over, as by
default (`integrated`), or fitted too under the same normal prior (`fitted`); or the constant is integrated over and
hyperparameters are sampled (`sampled`).

What has been done is kept in a file of progress, so that a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.means import ConstantMean
from gpytorch.priors import NormalPrior
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.models.defaults import MEAN_SPREAD, MIN_LENGTHSCALE, default_covar_module
from botorch_skewgp.observations import Binary, Observation, Ordinal, Validity
from botorch_skewgp.truncated.draws import DrawSettings

DIMENSION, NUM_GRADES, CORNER, SURE = 2, 3, 0.3, 0.9
NOISE = {"validity": 0.01, "binary": 1.0, "ordinal": 1.0}  # the likelihoods' defaults
NUMBERS = (5, 10, 20, 40)
MODELS = ("integrated", "fitted", "sampled")
PROGRESS = Path(".calibration_far_progress.jsonl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--data-sets", type=int, default=40, help="of each kind and size")
    parser.add_argument("--kinds", nargs="+", choices=list(NOISE), default=list(NOISE))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(NUMBERS), help="numbers of data")
    parser.add_argument("--progress", type=Path, default=PROGRESS, help="file that a later run goes on from")
    parser.add_argument("--again", action="store_true", help="forget what was done before")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    data_sets = 3 if options.quick else options.data_sets
    if options.again:
        options.progress.unlink(missing_ok=True)
    done = {(e["kind"], e["data"], e["seed"]): e for e in _read(options.progress)}
    numbers = NUMBERS[:1] if options.quick else options.sizes
    # one data set of every kind and size after the other, so that a run cut short knows something of all
    for seed in range(data_sets):
        for kind in options.kinds:
            for n in numbers:
                if (kind, n, seed) in done:
                    continue
                X, Y, truth = _draw(kind, n, seed)
                entry: dict[str, Any] = {"kind": kind, "data": n, "seed": seed, "truth": float(truth)}
                entry |= {name: _predict(X, Y, name, seed) for name in MODELS}
                done[kind, n, seed] = entry
                with options.progress.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
    table = Table(
        "calibration_far",
        ("kind", "data", "model", "said", "true", "difference", "standard_error", "log_score", "sure", "sure_said",
         "sure_true"),
        notes=[environment(), f"load average at the start {load_average()}", f"{data_sets} data sets of each"],
    )  # fmt: skip
    for kind in options.kinds:
        for n in numbers:
            entries = [done[kind, n, seed] for seed in range(data_sets)]
            truth = torch.tensor([entry["truth"] for entry in entries], dtype=torch.float64)
            for name in MODELS:
                said = torch.tensor([entry[name] for entry in entries], dtype=torch.float64)
                table.add(kind=kind, data=n, model=name, **_compare(said, truth))
                say(f"{kind}, {n} data, {name}: {table.rows[-1]}")
    publish([table], folder)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _compare(said: Tensor, truth: Tensor) -> dict[str, Any]:
    confidence = torch.maximum(said, 1 - said)
    right = torch.where(said > 0.5, truth, 1 - truth)
    difference, sure = confidence - right, confidence > SURE
    return {
        "said": float(confidence.mean()),
        "true": float(right.mean()),
        "difference": float(difference.mean()),
        "standard_error": float(difference.std()) / math.sqrt(len(said)),
        "log_score": float((torch.xlogy(truth, said) + torch.xlogy(1 - truth, 1 - said)).mean()),
        "sure": int(sure.sum()),
        "sure_said": float(confidence[sure].mean()) if bool(sure.any()) else None,
        "sure_true": float(right[sure].mean()) if bool(sure.any()) else None,
    }


def _draw(kind: str, n: int, seed: int) -> tuple[Tensor, Observation, Tensor]:
    """Points, observations, and the true probability at the far corner."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        seen = [Validity(torch.tensor([True]))] if kind == "validity" else []
        covar_module = default_covar_module(DIMENSION, seen).double()
        covar_module.outputscale = covar_module.outputscale_prior.sample()
        lengthscale = covar_module.base_kernel.lengthscale_prior.sample((1, DIMENSION))
        covar_module.base_kernel.lengthscale = lengthscale.clamp(min=MIN_LENGTHSCALE)  # one in a thousand
        X = torch.cat([CORNER * torch.rand(n, DIMENSION), torch.ones(1, DIMENSION)]).double()
        with torch.no_grad():
            K = covar_module(X).to_dense()
        eigenvalues, vectors = torch.linalg.eigh(K)
        root = eigenvalues.clamp(min=0).sqrt()  # rounding only
        latent = vectors @ (root * torch.randn(n + 1, dtype=torch.float64))
        latent = latent + MEAN_SPREAD * torch.randn(1, dtype=torch.float64)
        deviation = NOISE[kind] ** 0.5
        noisy = latent[:n] + deviation * torch.randn(n, dtype=torch.float64)
        cutpoints = torch.cat([torch.zeros(1), torch.randn(1).exp()]).double()  # the gap's prior is LogNormal(0, 1)
        if kind == "ordinal":
            grades = torch.searchsorted(cutpoints, noisy)
            return X[:n], Ordinal(grades, NUM_GRADES), torch.special.ndtr((latent[n] - cutpoints[1]) / deviation)
        build = Validity if kind == "validity" else Binary
        return X[:n], build(noisy > 0), torch.special.ndtr(latent[n] / deviation)


def _predict(X: Tensor, Y: Observation, name: str, seed: int) -> float:
    constant = ConstantMean(constant_prior=NormalPrior(0.0, MEAN_SPREAD)) if name == "fitted" else None
    model: SkewGP | FullyBayesianSkewGP = SkewGP(X, Y, mean_module=constant, draw_settings=DrawSettings(num_draws=512))
    with torch.random.fork_rng(), warnings.catch_warnings():
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")  # of optimisers and effective sizes; what comes out is judged here
        mll = fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
        if name == "sampled":
            model = fit_fully_bayesian_skew_gp(mll)
        with torch.no_grad():
            law = model.predictive(torch.ones(1, DIMENSION, dtype=torch.float64))
    return float(law.probs.flatten()[-1])

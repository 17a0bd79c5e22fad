"""The lengthscale prior of labels: active learning of probabilities, and predictions from random points.

Yes or no answers with 2 % lapses, 80 trials. Learners ask where an answer tells most about the function (BALD on 512
Sobol points, or on these and 128 points of the faces and corners of the unit cube, as a search of the whole domain
would find them) or about predictions at 128 Sobol points (on 512 others, or by a search of the domain), or at random or
Sobol points. Hyperparameters are fitted again after every eighth answer, by expectation propagation's evidence, and
posteriors are its Gaussian; or eight draws of them are averaged over ("sampled"), under the dimension-scaled prior. The
error is the root mean square of probabilities over 1,024 points of the unit cube.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.fit import fit_gpytorch_mll
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.constraints import GreaterThan
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks._race import Group, Race, add_race_arguments, grid, hold_and_publish, mean_and_error
from benchmarks._reporting import Cell
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import PredictiveInformation, SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.fitting import sample_hyperparameters
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary

LAPSE, REFIT, FIRST = 0.02, 8, 8
FUNCTIONS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "threshold": (2, lambda X: 12 * (X[:, 1] - 0.4 - 0.3 * torch.sin(5 * X[:, 0]))),
    "disc": (2, lambda X: 12 * (0.3 - (X - 0.5).norm(dim=-1))),
    "ramp": (3, lambda X: 6 * (X.sum(-1) - 1.5)),
    "two bumps": (2, lambda X: 8 * (((X - 0.25) / 0.2).square().sum(-1).neg().exp()
                                    + ((X - 0.75) / 0.2).square().sum(-1).neg().exp() - 0.5)),
}  # fmt: skip
# Median lengthscale over the root of the dimension, and the spread of its logarithm.
PRIORS = {"dimension-scaled": (math.exp(2**0.5), 3**0.5), "0.3, 0.7": (0.3, 0.7), "0.2, 0.5": (0.2, 0.5)}
PRIORS["sampled"] = PRIORS["dimension-scaled"]
NUM_PREDICTED = 128  # points whose predictions are wanted
SEARCH: dict[str, Any] = {"num_restarts": 2, "raw_samples": 64, "options": {"maxiter": 30}}
NUM_MEMBERS = 8  # of an ensemble whose hyperparameters are sampled
LEARNERS = ("BALD, with faces", "BALD, Sobol", "predictions", "predictions, Sobol", "Sobol", "random")
DEFAULT = "dimension-scaled"
VALUES = ("error", "on_faces", "seconds")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_race_arguments(parser, seeds=20)
    parser.add_argument("--trials", type=int, default=80, help="answers at the end")
    parser.add_argument("--functions", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS), metavar="NAME")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS), metavar="NAME")
    parser.add_argument("--priors", nargs="+", choices=list(PRIORS), default=list(PRIORS), metavar="NAME")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    functions, seeds, trials = (
        (options.functions[:1], 1, 16) if options.quick else (options.functions, options.seeds, options.trials)
    )
    race = Race(
        "labels", grid(function=functions), grid(learner=options.learners, prior=options.priors, trials=[trials]),
        range(seeds), _run, VALUES, _columns,
        ["root mean squared errors of probabilities, less those of random points, and of the same learner, under the "
         f"prior '{DEFAULT}', with the same seed"],
    )  # fmt: skip
    hold_and_publish(options, race)


def _columns(runs: Group) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "runs": len(runs), "mean": runs.mean("error"), "median": runs.median("error"),
        "worst": float(runs.values("error").max()), "on_faces": runs.mean("on_faces"), "seconds": runs.mean("seconds"),
    }  # fmt: skip
    for name, rival in (("random", {"learner": "random"}), ("default", {})):
        mine, theirs = runs.beside("error", prior=DEFAULT, **rival)
        row[f"less_than_{name}"], row[f"less_than_{name}_se"] = mean_and_error(theirs - mine)
    return row


def _run(function: str, learner: str, prior: str, trials: int, seed: int) -> dict[str, Cell]:
    """The error of probabilities at the end, the share of points that were asked for on faces, and seconds."""
    began = time.process_time()
    dim, latent = FUNCTIONS[function]
    generator = torch.Generator().manual_seed(seed)
    unit = torch.stack([torch.zeros(dim), torch.ones(dim)]).double()
    grid = draw_sobol_samples(unit, n=1024, q=1, seed=0).squeeze(1)
    pool = draw_sobol_samples(unit, n=512, q=1, seed=seed + 1).squeeze(1)
    if learner == "BALD, with faces":
        faces = draw_sobol_samples(unit, n=128, q=1, seed=seed + 2).squeeze(1)
        faces[torch.arange(128), torch.arange(128) % dim] = (torch.arange(128) // dim % 2).double()
        corners = torch.cartesian_prod(*[torch.arange(2.0).double()] * dim)
        pool = torch.cat([pool, faces, corners])

    def probability(X: Tensor) -> Tensor:
        return LAPSE / 2 + (1 - LAPSE) * torch.special.ndtr(latent(X))

    X = torch.rand(FIRST, dim, generator=generator, dtype=torch.double)
    at_random = torch.rand(trials, dim, generator=generator, dtype=torch.double)
    uniform = torch.rand(trials, generator=generator, dtype=torch.double)
    states: list[dict[str, Tensor]] = []
    for n in range(FIRST, trials + 1):
        labels = uniform[: len(X)] < probability(X)
        if not states or n % REFIT == 0:
            model = _model(X, labels, dim, prior)
            mll = fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
            states = sample_hyperparameters(mll, NUM_MEMBERS).states if prior == "sampled" else [model.state_dict()]
        members = []
        for state in states:
            members.append(_model(X, labels, dim, prior))
            members[-1].load_state_dict(state, strict=False)
        model = FullyBayesianSkewGP([member.eval() for member in members]) if len(members) > 1 else members[0]
        if n == trials:
            break
        if learner in ("random", "Sobol"):
            X = torch.cat([X, (at_random if learner == "random" else pool)[n : n + 1]])
            continue
        if "predictions" in learner:
            acquisition: AcquisitionFunction = PredictiveInformation(model, grid[:NUM_PREDICTED])
        else:
            acquisition = SkewBayesianActiveLearningByDisagreement(model)
        if learner == "predictions":
            asked, _ = optimize_acqf(acquisition, unit, q=1, **SEARCH)
        else:
            with torch.no_grad():
                asked = pool[acquisition(pool.unsqueeze(1)).argmax()].unsqueeze(0)
        X = torch.cat([X, asked])
    with torch.no_grad():
        found = model.predictive(grid).probs.squeeze(-1)
    on_faces = ((X == 0) | (X == 1)).any(-1)[FIRST:].double().mean()
    error = float((found - probability(grid)).square().mean().sqrt())
    return {"error": error, "on_faces": float(on_faces), "seconds": time.process_time() - began}


def _model(X: Tensor, labels: Tensor, dim: int, prior: str) -> SkewGP:
    model = SkewGP(X, Binary(labels), approximation="ep")
    median, spread = PRIORS[prior]
    median *= dim**0.5
    base = model.covar_module.base_kernel
    base.register_prior("lengthscale_prior", LogNormalPrior(math.log(median), spread), "lengthscale")
    base.register_constraint("raw_lengthscale", GreaterThan(0.025, transform=None, initial_value=min(median, 0.5)))
    return model

"""The lengthscale prior of labels: active learning of probabilities, and random points."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks._functions import sobol_points
from benchmarks._observations import fitted
from benchmarks._race import Cell, Group, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement
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
PRIORS = {"dimension-scaled": (math.exp(2**0.5), 3**0.5), "0.3, 0.7": (0.3, 0.7)}
DEFAULT = "dimension-scaled"


def _columns(runs: Group) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "runs": len(runs), "mean": runs.mean("error"), "median": runs.median("error"),
        "worst": float(runs.values("error").max()), "on_faces": runs.mean("on_faces"), "seconds": runs.mean("seconds"),
    }  # fmt: skip
    for name, rival in (("random", {"learner": "random"}), ("default", {})):
        more, row[f"less_than_{name}_se"] = runs.less("error", prior=DEFAULT, **rival)
        row[f"less_than_{name}"] = -more
    return row


def _run(function: str, learner: str, prior: str, trials: int, seed: int) -> dict[str, Cell]:
    """The error of probabilities at the end, the share of points that were asked for on faces, and seconds."""
    began = time.process_time()
    dim, latent = FUNCTIONS[function]
    generator = torch.Generator().manual_seed(seed)
    everywhere = sobol_points(dim, 1024, 0)
    pool = sobol_points(dim, 512, seed + 1)
    if learner == "BALD, with faces":
        faces = sobol_points(dim, 128, seed + 2)
        faces[torch.arange(128), torch.arange(128) % dim] = (torch.arange(128) // dim % 2).double()
        corners = torch.cartesian_prod(*[torch.arange(2.0).double()] * dim)
        pool = torch.cat([pool, faces, corners])

    def probability(X: Tensor) -> Tensor:
        return LAPSE / 2 + (1 - LAPSE) * torch.special.ndtr(latent(X))

    X = torch.rand(FIRST, dim, generator=generator, dtype=torch.double)
    at_random = torch.rand(trials, dim, generator=generator, dtype=torch.double)
    uniform = torch.rand(trials, generator=generator, dtype=torch.double)
    state: dict[str, Tensor] | None = None
    for n in range(FIRST, trials + 1):
        model = _model(X, uniform[: len(X)] < probability(X), dim, prior)
        if state is None or n % REFIT == 0:
            state = fitted(model).state_dict()
        model.load_state_dict(state)
        if n == trials:
            break
        if learner == "random":
            X = torch.cat([X, at_random[n : n + 1]])
            continue
        acquisition = SkewBayesianActiveLearningByDisagreement(model.eval())
        with torch.no_grad():
            X = torch.cat([X, pool[acquisition(pool.unsqueeze(1)).argmax()].unsqueeze(0)])
    with torch.no_grad():
        found = model.eval().predictive(everywhere).probs.squeeze(-1)
    on_faces = ((X == 0) | (X == 1)).any(-1)[FIRST:].double().mean()
    error = float((found - probability(everywhere)).square().mean().sqrt())
    return {"error": error, "on_faces": float(on_faces), "seconds": time.process_time() - began}


def _model(X: Tensor, labels: Tensor, dim: int, prior: str) -> SkewGP:
    model = SkewGP(X, Binary(labels), approximation="ep")
    median, spread = PRIORS[prior]
    median *= dim**0.5
    base = model.covar_module.base_kernel
    base.register_prior("lengthscale_prior", LogNormalPrior(math.log(median), spread), "lengthscale")
    base.register_constraint("raw_lengthscale", GreaterThan(0.025, transform=None, initial_value=min(median, 0.5)))
    return model


RACES = (
    Race(
        "labels", grid(function=FUNCTIONS),
        grid(learner=("BALD, with faces", "BALD, Sobol", "random"), prior=PRIORS, trials=[80]), range(20), _run,
        ("error", "on_faces", "seconds"), _columns,
        ["root mean squared errors of probabilities, less those of random points, and of the same learner, under the "
         f"prior '{DEFAULT}', with the same seed"],
    ),
)  # fmt: skip

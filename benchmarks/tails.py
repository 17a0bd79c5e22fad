"""Tails after a few labels: small probabilities that EP's Gaussian and the exact posterior tell, and what is true.

Functions are drawn from the prior, whose hyperparameters the models know. The event is that the function is on the
less likely side of zero at a point.
"""

from __future__ import annotations

from typing import Literal

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._race import Cell, Group, Names, Race
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary

DIM, NUM_LABELS, NUM_POINTS = 2, 10, 40
SCALE, LENGTHSCALE = 10.0, 0.4  # of the function, in units of the labels' noise and of the unit square
BINS = [{"least": low, "most": high} for low, high in ((0.0, 0.01), (0.01, 0.03), (0.03, 0.1))]
SAID = ("said_by_ep", "said_by_exact", "true")


def _run(least: float, most: float, seed: int) -> list[Names]:
    """How many points are in each bin of EP's probabilities, and sums of what is said of them and true."""
    ep, exact, true = _case(seed)
    rows: list[Names] = []
    for bin_ in BINS:
        here = (ep >= bin_["least"]) & (ep < bin_["most"])
        sums = (float(values[here].sum()) for values in (ep, exact, true))
        rows.append({**bin_, "points": int(here.sum()), **dict(zip(SAID, sums, strict=True))})
    return rows


def _columns(runs: Group) -> dict[str, Cell]:
    shares = {name: runs.ratio(name, "points") for name in SAID}
    points = int(runs.values("points").sum())
    return {"points": points, **{name: share for name, (share, _) in shares.items()}, "error": shares["true"][1]}


def _case(seed: int) -> Tensor:
    """Probabilities of both sides of zero by EP and by the exact posterior, and which it was; `3 x points`."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(NUM_LABELS + NUM_POINTS, DIM, dtype=torch.double, generator=generator)
    normal = torch.randn(len(points) + NUM_LABELS, dtype=torch.double, generator=generator)
    covariance = _kernel()(points).to_dense() + 1e-8 * torch.eye(len(points), dtype=torch.double)
    values = (torch.linalg.cholesky(covariance) @ normal[: len(points)]).detach()
    labels = Binary(values[:NUM_LABELS] + normal[len(points) :] > 0)
    said = []
    approximations: tuple[Literal["ep"] | None, ...] = ("ep", None)
    for approximation in approximations:
        model = SkewGP(
            points[:NUM_LABELS], labels, covar_module=_kernel(), mean_module=ZeroMean(), approximation=approximation
        )
        with torch.no_grad():
            posterior = model.eval().latent_posterior(points[NUM_LABELS:].unsqueeze(-2))
            above = posterior.probability_above(torch.zeros(1, dtype=torch.double)).flatten()
        said.append(torch.cat([above, 1 - above]))
    is_above = (values[NUM_LABELS:] > 0).double()
    return torch.stack([*said, torch.cat([is_above, 1 - is_above])])


def _kernel() -> ScaleKernel:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = SCALE, LENGTHSCALE
    return kernel


RACES = (
    Race(
        "tails", [{}], BINS[:1], range(400), _run, ("points", *SAID), _columns,
        [f"{NUM_LABELS} labels each; by EP's probability; errors by function"],
    ),
)  # fmt: skip

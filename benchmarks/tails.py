"""Tails after a few labels: small probabilities that EP's Gaussian and the exact posterior tell, and what is true.

Functions are drawn from the prior, whose hyperparameters the models know. The event is that the function is on the
less likely side of zero at a point.
"""

from __future__ import annotations

import argparse

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish
from benchmarks.real import clustered_error
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary

DIM, NUM_LABELS, NUM_POINTS = 2, 10, 40
SCALE, LENGTHSCALE = 10.0, 0.4  # of the function, in units of the labels' noise and of the unit square
EDGES = (0.01, 0.03, 0.1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--functions", type=int, default=400, help="functions drawn from the prior")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    cases = [_case(seed) for seed in range(20 if options.quick else options.functions)]
    ep, exact, true = torch.stack(cases, dim=1).flatten(1)
    which = torch.arange(len(cases)).repeat_interleave(ep.numel() // len(cases))
    table = Table(
        "tails",
        ("least", "most", "points", "said_by_ep", "said_by_exact", "true", "error"),
        notes=[
            environment(),
            f"{len(cases)} functions, {NUM_LABELS} labels each; by EP's probability; errors by function",
        ],
    )
    for low, high in zip((0.0, *EDGES), EDGES, strict=False):
        here = (ep >= low) & (ep < high)
        table.add(
            least=low, most=high, points=int(here.sum()), said_by_ep=float(ep[here].mean()),
            said_by_exact=float(exact[here].mean()), true=float(true[here].mean()),
            error=clustered_error(true[here], which[here]),
        )  # fmt: skip
    publish([table], folder)


def _case(seed: int) -> Tensor:
    """Probabilities of both sides of zero by EP and by the exact posterior, and which it was; `3 x 2 points`."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(NUM_LABELS + NUM_POINTS, DIM, dtype=torch.double, generator=generator)
    normal = torch.randn(len(points) + NUM_LABELS, dtype=torch.double, generator=generator)
    covariance = _kernel()(points).to_dense() + 1e-8 * torch.eye(len(points), dtype=torch.double)
    values = (torch.linalg.cholesky(covariance) @ normal[: len(points)]).detach()
    labels = Binary(values[:NUM_LABELS] + normal[len(points) :] > 0)
    said = []
    for approximation in ("ep", None):
        model = SkewGP(
            points[:NUM_LABELS],
            labels,
            covar_module=_kernel(),
            mean_module=ZeroMean(),
            approximation=approximation,  # type: ignore[arg-type]
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

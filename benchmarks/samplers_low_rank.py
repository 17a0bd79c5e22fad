"""Samplers of many rows over few points: what an effective draw costs with each, and with data augmentation.

Rows are the labels of `benchmarks scale` over inducing points, under the kernel that they were drawn from, or that with
a hundred times the variance, which leaves the function far from Gaussian. All make draws by `draw` until half of them
are effective, with set-up and diagnostics, but for data augmentation (Albert and Chib 1993), which the library does not
have: rows given the function, the function given the rows, each in one piece, in four chains from draws of the prior,
until it has as many effective draws or its time is over.
"""

from __future__ import annotations

import argparse
import time
import warnings

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from benchmarks.scale import LENGTHSCALES, VARIANCE, make_labels
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary
from botorch_skewgp.truncated.diagnostics import effective_sample_size
from botorch_skewgp.truncated.draws import DrawSettings, choose_sampler, draw
from botorch_skewgp.truncated.factorization import cholesky_of_precision
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.collapsed_ess import CollapsedEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.sampler import SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

NAMES = ("independence", "collapsed", "reflective", "augmentation")
NUM_DRAWS = 1024


class AugmentationSampler(CollapsedEllipticalSliceSampler):
    """Gibbs sampling of rows and latent coordinates in turn, `O(m r)` a step after one factorisation."""

    def __init__(self, distribution: TruncatedNormal) -> None:
        super().__init__(distribution, expectation_propagation(distribution, tolerance=1e-3))
        assert isinstance(distribution.prior, LowRankPrior)
        self.scaled = distribution.prior.root / distribution.noise.unsqueeze(-1)
        self.factor = cholesky_of_precision(distribution.prior.root, 1 / distribution.noise)

    def given_rows(self, rows: Tensor) -> Tensor:
        """The mean of latent coordinates given rows, `... x r` for `... x m`."""
        pull = (rows - self.distribution.mean) @ self.scaled
        return torch.cholesky_solve(pull.flatten(0, -2).mT, self.factor).mT.view_as(pull)

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Draw rows, then latent coordinates."""
        mean = self.given_rows(self.rows(state.position, generator))
        normal = torch.randn(mean.shape, dtype=mean.dtype, generator=generator)
        position = mean + torch.linalg.solve_triangular(self.factor.mT, normal.mT, upper=True).mT
        return SamplerState(position), SamplerInfo(torch.ones(position.shape[:-1], dtype=torch.long))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--labels", type=int, nargs="+", default=[2000, 10_000], help="numbers of labels")
    parser.add_argument("--points", type=int, default=200, help="inducing points")
    parser.add_argument("--samplers", nargs="+", choices=NAMES, default=list(NAMES), help="those to run")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for data augmentation")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "samplers_low_rank",
        ("labels", "points", "variance", "sampler", "chosen", "seconds", "effective", "per_second"),
        notes=[environment(), f"load average at the start {load_average()}; seconds of processor time"],
    )  # fmt: skip
    for n in [200] if options.quick else options.labels:
        for variance in (VARIANCE, 100 * VARIANCE):
            distribution = _rows(n, min(options.points, n // 4), variance)
            chosen = choose_sampler(distribution)
            for name in options.samplers:
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    effective = _effective(distribution, name, options.budget)
                seconds = time.process_time() - began
                table.add(
                    labels=n, points=min(options.points, n // 4), variance=variance, sampler=name,
                    chosen="yes" if name == chosen else "", seconds=seconds, effective=effective,
                    per_second=effective / seconds,
                )  # fmt: skip
                say(f"{n} labels, variance {variance:g}, {name}: {effective / seconds:.4g} effective draws a second")
    table.notes.append(f"load average at the end {load_average()}")
    publish([table], folder)


def _rows(n: int, points: int, variance: float) -> TruncatedNormal:
    X, labels, _, _ = make_labels(n)
    kernel = ScaleKernel(RBFKernel(ard_num_dims=len(LENGTHSCALES))).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.tensor(LENGTHSCALES), variance
    model = SkewGP(X, Binary(labels), covar_module=kernel, inducing_points=points)
    with torch.no_grad():
        return model.row_model(model(*model.train_inputs)).truncated_normal


def _effective(distribution: TruncatedNormal, name: str, budget: float) -> float:
    """The least effective size of the draws that a sampler makes."""
    settings = DrawSettings(num_draws=NUM_DRAWS, sampler=None if name == "augmentation" else name)
    if name != "augmentation":
        return float(draw(distribution, settings).effective_size.min())
    sampler, generator = AugmentationSampler(distribution), torch.Generator().manual_seed(0)
    start = torch.randn(
        settings.num_chains, distribution.prior.root.shape[-1], generator=generator, dtype=distribution.mean.dtype
    )
    state, _, _ = sampler.run(SamplerState(start), settings.warmup, generator)
    began, steps, kept, effective = time.process_time(), NUM_DRAWS // settings.num_chains, [], 0.0
    while effective < NUM_DRAWS / 2 and time.process_time() - began < budget:
        state, positions, _ = sampler.run(state, steps, generator)
        kept.append(torch.stack([sampler.given_rows(sampler.rows(part, generator)) for part in positions]))
        effective = float(effective_sample_size(torch.cat(kept), kind="bulk").min())
    return effective

"""Time, convergence and worth of draws against the number of labels (classification, fig. 4; unified, fig. 8)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel
from torch import Tensor

from benchmarks._observations import classification, label_rows, squared_exponential
from benchmarks._race import Cell, Group, Race, grid, mean_and_error
from benchmarks.samplers import functionals
from botorch_skewgp.papers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.diagnostics import diagnose
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.samplers.feasibility import feasible_start
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import sample_interval

NUM_CHAINS, DROPPED, ADAPTED = 4, 100, 500  # steps dropped, and those in which NUTS adapts its step, of each chain
LARGEST = {"elliptical slice": 2500, "HMC": 1000}  # labels, of methods that take minutes

_compile = cache(lambda: draw(classification(8), DrawSettings(num_draws=16)))


def _ours(distribution: TruncatedNormal, num_draws: int) -> Tensor:
    draws = draw(distribution, DrawSettings(num_draws=num_draws, num_chains=NUM_CHAINS))
    return draws.rows.unflatten(0, (NUM_CHAINS, -1)).transpose(0, 1)


def _linear(distribution: TruncatedNormal, num_draws: int) -> Tensor:
    sampler, generator = LinearEllipticalSliceSampler(distribution), torch.Generator().manual_seed(0)
    state = sampler.init(feasible_start(distribution, NUM_CHAINS, generator))
    state, _, _ = sampler.run(state, DROPPED, generator)
    _, positions, _ = sampler.run(state, num_draws, generator)
    return sampler.rows(positions, generator)


def _elliptical_slice(distribution: TruncatedNormal, num_draws: int) -> Tensor:
    """Elliptical slice sampling of latent values around their prior (Murray, Adams, MacKay 2010), rows given these."""
    generator = torch.Generator().manual_seed(0)
    L = cholesky_with_relative_jitter(distribution.prior.covariance)
    factor, centre = distribution.factor, distribution.mean

    def normal() -> Tensor:
        return torch.randn(NUM_CHAINS, len(L), dtype=L.dtype, generator=generator) @ L.mT

    def uniform() -> Tensor:
        return torch.rand(NUM_CHAINS, 1, dtype=L.dtype, generator=generator)

    def value(h: Tensor) -> Tensor:
        return factor.log_likelihood(centre + h).sum(-1, keepdim=True)

    h, kept = normal(), []
    for _ in range(DROPPED + num_draws):
        level, direction, high = value(h) + uniform().log(), normal(), 2 * math.pi * uniform()
        low, angle = high - 2 * math.pi, high
        while True:
            moved = h * angle.cos() + direction * angle.sin()
            found = value(moved) > level
            if bool(found.all()):
                break
            low, high = torch.where(~found & (angle < 0), angle, low), torch.where(~found & (angle >= 0), angle, high)
            angle = torch.where(found, angle, low + (high - low) * uniform())
        h = moved
        kept.append(factor.draw_given(centre + h, open_uniform(h, generator)))
    return torch.stack(kept[DROPPED:])


def _hamiltonian(distribution: TruncatedNormal, num_draws: int) -> Tensor:
    """NUTS for latent values, whitened by their prior; given these, rows are independent of each other."""
    import jax
    import numpyro

    jax.config.update("jax_enable_x64", True)
    L = cholesky_with_relative_jitter(distribution.prior.covariance).numpy()

    def model() -> None:
        z = numpyro.sample("z", numpyro.distributions.Normal(0, 1).expand([len(L)]).to_event(1))
        numpyro.factor("labels", jax.scipy.special.log_ndtr(numpyro.deterministic("h", L @ z)).sum())

    sampler = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model), num_warmup=min(ADAPTED, num_draws), num_samples=num_draws // NUM_CHAINS,
        num_chains=NUM_CHAINS, chain_method="sequential", progress_bar=False,
    )  # fmt: skip
    sampler.run(jax.random.PRNGKey(0))
    h = torch.from_numpy(np.array(sampler.get_samples(group_by_chain=True)["h"])).transpose(0, 1)
    uniform = torch.rand(h.shape, generator=torch.Generator().manual_seed(0), dtype=h.dtype)
    return h + sample_interval(-h, torch.full_like(h, torch.inf), uniform)  # as their noise is one


def _expectation_propagation(distribution: TruncatedNormal, num_draws: int) -> None:
    expectation_propagation(distribution)


class _Known(Kernel):
    """A kernel of all training points, whose matrix is known; all of scikit-learn's interface that a fit asks for."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        return self.matrix

    def diag(self, X: Any) -> Any:
        return self.matrix.diagonal()

    def is_stationary(self) -> bool:
        return False


def _laplace(distribution: TruncatedNormal, num_draws: int) -> None:
    """Rows are those of labels turned to be positive; a classifier needs another class, which one of them gets."""
    m = distribution.num_rows
    labels = torch.ones(m).numpy()
    labels[0] = 0
    matrix = distribution.prior.covariance.clone()
    matrix[0] *= -1
    matrix[:, 0] *= -1
    classifier = GaussianProcessClassifier(_Known(matrix.numpy()), optimizer=None)
    classifier.fit(torch.arange(m).unsqueeze(-1).numpy(), labels)


_METHODS: dict[str, Callable[[TruncatedNormal, int], Tensor | None]] = {
    "SkewGP": _ours,
    "LIN-ESS": _linear,
    "elliptical slice": _elliptical_slice,
    "HMC": _hamiltonian,
    "EP": _expectation_propagation,
    "Laplace": _laplace,
}


def _columns(runs: Group) -> dict[str, Cell]:
    per_second, its_error = mean_and_error(runs.values("effective_size") / runs.values("seconds"))
    return {
        "data_sets": len(runs), "seconds": runs.mean("seconds"), "error": runs.error("seconds"),
        "r_hat": float(runs.values("r_hat").max()), "effective_size": float(runs.values("effective_size").min()),
        "mean_effective_size": runs.mean("effective_size"), "size_error": runs.error("effective_size"),
        "effective_per_second": per_second, "its_error": its_error,
    }  # fmt: skip


def _labels(n: int, seed: int) -> TruncatedNormal:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, generator=generator, dtype=torch.float64)
    return label_rows(2 * (squared_exponential(x, 0.5) + 1e-8 * torch.eye(n, dtype=x.dtype)), generator)


PROBLEMS: dict[str, tuple[Callable[[int, int], TruncatedNormal], int]] = {  # and numbers of draws
    "draws_against_size": (_labels, 1000),
    "sampling_time": (classification, 3000),
}


def _of_size(problem: str, n: int, method: str, seed: int, smoke: bool = False) -> list[dict[str, Cell]]:
    """Seconds, the largest R-hat and the least effective size of draws by a method; of approximations the seconds."""
    if n > LARGEST.get(method, n):
        return []
    make, num_draws = PROBLEMS[problem]
    distribution = make(30 if smoke else n, seed)
    _compile()
    began = time.process_time()
    rows = _METHODS[method](distribution, 40 if smoke else num_draws)
    row: dict[str, Cell] = {"seconds": time.process_time() - began}
    if rows is None:
        return [row]
    found = diagnose(functionals(distribution, rows))
    r_hat, size = float(found.r_hat.max()), float(found.bulk_effective_size.min())
    return [{**row, "r_hat": f"{r_hat:.4f}", "effective_size": size}]


def _race(problem: str, sizes: Iterable[int], methods: Sequence[str]) -> Race:
    notes = ["r_hat: the largest, effective_size: the least of all data sets; seconds: their mean and its error"]
    measures = ("seconds", "r_hat", "effective_size")
    return Race(f"experiments/{problem}", grid(n=sizes), grid(method=methods), range(3), partial(_of_size, problem),
                measures, _columns, notes, quick={"smoke": True})  # fmt: skip


RACES = (
    _race("draws_against_size", (50, 100, 200, 400, 800, 1600), ("SkewGP", "LIN-ESS", "elliptical slice")),
    _race("sampling_time", range(1000, 4501, 500), ("SkewGP", "LIN-ESS", "EP", "Laplace", "elliptical slice", "HMC")),
)

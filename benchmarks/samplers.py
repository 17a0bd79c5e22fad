r"""Samplers of truncated normals: effective draws a second, against baselines.

Chains start at draws of the default sampler, so that they are stationary from the first step. Effective sizes are the
least over functionals; where chains are short beside autocorrelation times they are too large: an upper bound.

.. [Geweke1991efficient] Geweke. Computing Science and Statistics 23, 1991.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial

import torch
from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler as BoTorchSampler
from torch import Tensor

from benchmarks._observations import classification, duels
from benchmarks._race import Cell, Names, Race, grid
from benchmarks.steps import clock_of
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.papers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.diagnostics import diagnose
from botorch_skewgp.truncated.draws import Draws, DrawSettings, draw
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.row_factor import RowFactor, open_uniform
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.sampler import RowSampler, Sampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

BASELINE_CHAINS = 16
LONG_ENOUGH = 50  # autocorrelation times in a chain
MOST_STEPS, BLOCK = 50_000, 2**24  # of each chain; numbers that are held at a time
Advance = Callable[[int], Tensor]  # the rows after each of so many further steps, `steps x chains x m`


class GibbsSampler(RowSampler):
    r"""Draws every row in turn from its conditional, a univariate truncated normal [Geweke1991efficient]_.

    Before it is truncated, row `i` given all others is normal with variance `1 / P_ii` and mean
    `mean_i - sum_(j != i) P_ij (u_j - mean_j) / P_ii`, where `P` is the inverse of `Gamma`.
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        super().__init__(distribution)
        precision = torch.cholesky_inverse(distribution.gamma_cholesky)
        diagonal = precision.diagonal(dim1=-2, dim2=-1)
        self._scale = diagonal.rsqrt()
        mean = distribution.mean
        centred = RowFactor(distribution.lower - mean, distribution.upper - mean, distribution.noise)
        self._factors = [centred.map(lambda x: x[..., i, None]) for i in range(distribution.num_rows)]  # noqa: B023
        # Row i holds the weights of the other rows in the conditional mean of row i.
        self._weight = torch.diag_embed(torch.ones_like(diagonal)) - precision / diagonal.unsqueeze(-1)
        self._weight.diagonal(dim1=-2, dim2=-1).zero_()  # exactly, against rounding

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        distribution = self.distribution
        position = state.position.clone()
        uniform = open_uniform(position, generator)
        for i, factor in enumerate(self._factors):
            centre = (position @ self._weight[..., i, :].unsqueeze(-1)).squeeze(-1)
            position[..., i] = factor.draw(centre, self._scale[..., i].unsqueeze(-1), uniform[..., i])
        evaluations = torch.full_like(position[..., 0], distribution.num_rows, dtype=torch.long)
        return SamplerState(position), SamplerInfo(evaluations)


def functionals(distribution: TruncatedNormal, rows: Tensor) -> Tensor:
    """What is watched of rows `... x m`: twelve of `E[h | u]`, its mean square and its log likelihood."""
    h = rows @ torch.cholesky_solve(distribution.prior.covariance, distribution.gamma_cholesky)  # the mean is zero
    summaries = [h.square().mean(-1, keepdim=True), torch.special.log_ndtr(h).sum(-1, keepdim=True)]
    return torch.cat([h[..., :: max(1, distribution.num_rows // 12)][..., :12], *summaries], dim=-1)


def _of_package(kind: Callable[[TruncatedNormal], Sampler], distribution: TruncatedNormal, starts: Tensor) -> Advance:
    sampler, generator = kind(distribution), torch.Generator(device=starts.device).manual_seed(0)
    state = sampler.init(starts)

    def advance(num_steps: int) -> Tensor:
        nonlocal state
        state, positions, _ = sampler.run(state, num_steps, generator)
        return sampler.rows(positions, generator)

    return advance


def _botorch_sampler(distribution: TruncatedNormal, starts: Tensor) -> Advance:
    chains, m = starts.shape
    eye = torch.eye(m, dtype=starts.dtype, device=starts.device)
    sampler = BoTorchSampler(
        inequality_constraints=(-eye, -distribution.lower.unsqueeze(-1)),
        interior_point=starts[0].clamp(min=1e-9).unsqueeze(-1),
        covariance_root=distribution.gamma_cholesky,
        num_chains=chains,
    )
    # Its constructor takes one point for all chains; the same starts as everyone else's are put in place of it.
    sampler._z = torch.linalg.solve_triangular(distribution.gamma_cholesky, starts.mT, upper=False)  # noqa: SLF001  BoTorch has no other way to start it
    return lambda num_steps: sampler.draw(num_steps).reshape(num_steps, chains, m)


SAMPLERS: dict[str, Callable[[TruncatedNormal, Tensor], Advance]] = {
    "default": partial(_of_package, ReflectiveEllipticalSliceSampler),
    "linear": partial(_of_package, LinearEllipticalSliceSampler),
    "botorch": _botorch_sampler,
    "gibbs": partial(_of_package, GibbsSampler),
}
PROBLEMS: dict[str, Callable[[], TruncatedNormal]] = {
    **{f"classification {n}": partial(classification, n) for n in (200, 500, 1000, 2000)},
    **{
        f"{m} duels, noise {noise:g}, 4-d": partial(duels, m, noise)
        for m, noise in ((20, 0.01), (100, 0.01), (100, 0.1), (300, 0.1), (1000, 0.1))
    },
}


@cache
def _reference(case: str, device: str) -> tuple[TruncatedNormal, Draws]:
    distribution = PROBLEMS[case]().map(lambda values: values.to(device))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = DrawSettings(num_draws=2048, num_chains=8, min_effective_size=512, sampler="reflective")
        return distribution, draw(distribution, settings)


def _floor(cholesky: Tensor, columns: int = 1024) -> float:
    """Seconds for one draw without truncation, `L @ randn`, with `L` at hand: the mean over a second."""
    device, calls, began = cholesky.device, 0, 0.0
    generator = torch.Generator(device=device).manual_seed(0)
    while not calls or clock_of(device) - began < 1.0:
        cholesky @ torch.randn(len(cholesky), columns, generator=generator, dtype=cholesky.dtype, device=device)
        began, calls = (began, calls + 1) if calls else (clock_of(device), 1)  # the first one warms up
    return (clock_of(device) - began) / max(calls - 1, 1) / columns


def _run(case: str, device: str, sampler: str, seed: int, budget: float = 15.0) -> dict[str, Cell] | list[Names]:
    """Effective draws a second within a budget of seconds; functionals are evaluated off the clock."""
    if device == "cuda" and not torch.cuda.is_available():
        return []
    distribution, reference = _reference(case, device)
    if sampler == "floor":
        seconds = _floor(distribution.gamma_cholesky)
        return {"upper_bound": 1 / seconds, "ess_per_s": 1 / seconds}
    chains = DrawSettings().chains_of(device != "cpu") if sampler == "default" else BASELINE_CHAINS
    every, clock = reference.num_draws // chains, partial(clock_of, distribution.mean.device)
    advance = SAMPLERS[sampler](distribution, reference.rows[every // 2 :: every])
    advance(1)  # warm-up, of compiled kernels also
    values, seconds, steps, block = [], 0.0, 0, 1
    while (seconds < budget or len(values) < 8) and steps < MOST_STEPS:
        began = clock()
        rows = advance(block)
        seconds, steps = seconds + clock() - began, steps + block
        values.append(functionals(distribution, rows))
        left = (budget - seconds) * steps / max(seconds, 1e-9)
        block = int(max(1, min(2 * block, left, BLOCK // rows[0].numel())))
    effective = float(diagnose(torch.cat(values)).bulk_effective_size.min())
    rate = effective / seconds
    return {"upper_bound": rate, "ess_per_s": rate if effective >= LONG_ENOUGH * chains else None}


# Log evidence: expectation propagation, and corrected, beside the mean of ten runs of bridge sampling


def _bridge(n: int, seed: int) -> dict[str, Cell]:
    """Of one run of bridge sampling, EP and draws included, and how far the approximations are from it."""
    problem = classification(n, seed=1)
    estimate = bridge_log_normalizer(problem, generator=torch.Generator().manual_seed(seed))
    value = float(estimate.value)
    approximation = expectation_propagation(problem)
    corrected = float(corrected_log_normalizer(approximation.distribution))
    return {
        "bridge": f"{value:.10g}", "standard_error": float(estimate.standard_error),
        "ep_error": float(approximation.log_normalizer) - value, "corrected_error": corrected - value,
    }  # fmt: skip


OF_BRIDGE = ("bridge", "standard_error", "ep_error", "corrected_error")
RACES = (
    Race("samplers", grid(device=("cpu", "cuda"), case=PROBLEMS), grid(sampler=("floor", *SAMPLERS)), range(1), _run,
         ("ess_per_s", "upper_bound"),
         notes=["15 s for each sampler and case; ess_per_s: where chains are long enough; float64"],
         quick={"budget": 1.0}),
    Race("evidence", grid(n=(70, 200, 500, 1000)), [{}], range(10), _bridge, OF_BRIDGE,
         lambda runs: {**{name: runs.mean(name) for name in OF_BRIDGE},
                       "sd_over_seeds": float(runs.values("bridge").std()) if len(runs) > 1 else None}),
)  # fmt: skip

"""Samplers of truncated normals: autocorrelation time and effective draws a second, against baselines.

All samplers run on the same distributions in the same process, one after the other. Effective sizes are the least over
a fixed set of functionals: `E[h_i | u]` of twelve rows, the mean square of `E[h | u]`, and its log likelihood. The
floor is independent draws of the same Gaussian without truncation, columns of `L @ randn`, with `L` at hand.

Chains start at draws of the default sampler, so that they are stationary from the first step and need no burn-in. Where
chains are shorter than fifty autocorrelation times, their effective size is unreliable and too large. Then two numbers
are given: what the usual estimator says, as an upper bound, and a sharper one from the mean squared displacement of the
stationary chains, whose variance is known from the default's draws. Elliptical slice sampling is reversible, its
autocorrelation therefore a mixture of decaying exponentials at even lags, and going on with the rate of decay that was
seen last can only underestimate what is left of the autocorrelation time. As the noise of this estimate would make the
largest over functionals too large, it is made for their average, which again is kind to the slow samplers.

With more than one thread on a machine that is busy with other things, torch's threads wait for each other most of the
time; `--threads 1` gives figures that can be compared.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler as BoTorchSampler
from torch import Tensor

from benchmarks._gibbs import GibbsSampler
from benchmarks._observations import Problem, classification, duels, to_device
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp.papers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.diagnostics import diagnose
from botorch_skewgp.truncated.draws import Draws, DrawSettings, draw
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.sampler import Sampler
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

NAMES = ("default", "linear", "botorch", "gibbs")
BASELINE_CHAINS = 16
LONG_ENOUGH = 50  # autocorrelation times in a chain
MOST_STEPS = 200_000
ENOUGH_RECORDED = 2000  # steps of each chain
BLOCK_BYTES = 2**27

Advance = Callable[[int], Tensor]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--budget", type=float, help="seconds for each sampler and case; 15, or 1.5 with --quick")
    parser.add_argument("--samplers", nargs="+", choices=NAMES, default=list(NAMES), help="those to run")
    parser.add_argument("--cases", nargs="+", help="run only cases whose name contains one of these")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="run on this device only; all there are by default")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    budget = options.budget or (1.5 if options.quick else 15.0)
    problems = [problem for problem in _problems(options.quick) if _wanted(problem.name, options.cases)]
    devices = [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])
    devices = [device for device in devices if options.device in (None, device.type)]
    table = Table(
        "samplers",
        (
            "case", "device", "sampler", "chains", "steps", "tau_median", "tau_max", "ess_per_s", "upper_bound",
            "us_per_draw", "setup_s", "end_to_end_per_s", "note",
        ),
    )  # fmt: skip
    table.notes.append(environment(devices))
    table.notes.append(f"load average at the start {load_average()}")
    for device in devices:
        for problem in problems:
            _compare(problem, device, options.samplers, budget, table)
    table.notes.append(f"load average at the end {load_average()}")
    table.notes.append(f"{budget:g} s for each sampler and case, set-up not counted; least over functionals, float64")
    publish([table], folder)


def _wanted(name: str, parts: list[str] | None) -> bool:
    return parts is None or any(part in name for part in parts)


def _problems(quick: bool) -> list[Problem]:
    if quick:
        return [classification(200), classification(500), duels(20, 0.01), duels(100, 0.1)]
    return [
        *(classification(n) for n in (200, 500, 1000, 2000)),
        *(duels(m, noise) for m, noise in ((20, 0.01), (100, 0.01), (100, 0.1), (300, 0.1), (1000, 0.1))),
    ]


class _Functionals:
    """Twelve rows of `E[h | u]`, its mean square and its log likelihood, for rows `... x m`."""

    def __init__(self, distribution: TruncatedNormal) -> None:
        m = distribution.num_rows
        self.gain = torch.cholesky_solve(distribution.prior.covariance, distribution.gamma_cholesky)
        self.some = torch.arange(0, m, max(1, m // 12), device=self.gain.device)[:12]

    def __call__(self, rows: Tensor) -> Tensor:
        h = rows @ self.gain  # the mean is zero
        summaries = [h.square().mean(-1, keepdim=True), torch.special.log_ndtr(h).sum(-1, keepdim=True)]
        return torch.cat([h[..., self.some], *summaries], dim=-1)


@dataclass(frozen=True)
class _Run:
    """A timed run of chains.

    Args:
        values: Functionals of the recorded steps, `steps x chains x k`.
        stride: One in how many steps was recorded.
        seconds: What the steps took, recorded or not.
        reference_variance: The functionals' variances under the target, `k`.
    """

    values: Tensor
    stride: int
    seconds: float
    reference_variance: Tensor

    @property
    def num_steps(self) -> int:
        return self.values.shape[0] * self.stride

    @property
    def num_draws(self) -> int:
        return self.num_steps * self.values.shape[1]

    @cached_property
    def usual_tau(self) -> Tensor:
        """Steps per effective draw by the usual estimator, `k`."""
        return self.num_draws / diagnose(self.values).bulk_effective_size

    @property
    def is_long(self) -> bool:
        return self.num_steps >= LONG_ENOUGH * float(self.usual_tau.max())

    @cached_property
    def tau(self) -> Tensor:
        """Steps per effective draw, `k`; from displacements, and one for all, where the chains are short."""
        if self.is_long:
            return self.usual_tau
        time_of_all = self.stride * displacement_time(self.values, self.reference_variance)
        return self.usual_tau.max().clamp(min=time_of_all).unsqueeze(0)

    @property
    def effective_per_second(self) -> float:
        return self.num_draws / float(self.tau.max()) / self.seconds

    @property
    def upper_bound(self) -> float:
        return self.num_draws / float(self.usual_tau.max()) / self.seconds


def displacement_time(values: Tensor, variance: Tensor, num_lags: int = 400) -> float:
    r"""Integrated autocorrelation time of short stationary chains with known variances.

    The autocorrelation at lag `k` is `1 - E (x_(t+k) - x_t)^2 / (2 variance)`, averaged over functionals. It is summed
    to half of the chains' length, or to where it falls below 0.05, and goes on from there as an exponential with the
    rate of the last half.

    Args:
        values: `num_steps x num_chains x k` functionals.
        variance: Their `k` variances.
        num_lags: At how many lags the autocorrelation is computed; it is interpolated between them.
    """
    steps = values.shape[0]
    most = max(2, steps // 2)
    every = max(1, most // num_lags)
    scaled = values / (2 * variance).sqrt()
    lags = range(every, most + 1, every)
    rho = [1 - float((scaled[lag:] - scaled[:-lag]).square().mean()) for lag in lags]
    end = next((i for i, value in enumerate(rho) if value < 0.05), len(rho) - 1)
    # trapezoids between lags that are `every` steps apart, from the value of one at lag zero
    points = [1.0, *rho[: end + 1]]
    total = every * (2 * sum(points) - points[0] - points[-1])
    if rho[end] >= 0.05:
        middle = len(points) // 2
        rate = math.log(points[middle] / points[-1]) / (every * (len(points) - 1 - middle))
        if rate <= 0:  # noise; the mean rate since lag zero is larger than the last one
            rate = -math.log(min(points[-1], 0.999)) / (every * (len(points) - 1))
        total += 2 * points[-1] / rate
    return total


def _synchronised_time(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _timed(advance: Advance, functionals: _Functionals, budget: float, stride: int, reference: Tensor) -> _Run:
    """Advance chains until the budget is spent; functionals are evaluated off the clock.

    One in `stride` steps is recorded, more where there will be fewer than `ENOUGH_RECORDED`.
    """
    device = reference.device
    advance(1)  # warm-up, of compiled kernels also
    began = _synchronised_time(device)
    rows = advance(1)
    expected = budget / max(_synchronised_time(device) - began, 1e-9)
    stride = int(max(1, min(stride, expected / ENOUGH_RECORDED)))
    most = max(1, BLOCK_BYTES // (rows[0].numel() * 8))
    values, seconds, recorded, block = [], 0.0, 0, 1
    while seconds < budget and recorded * stride < MOST_STEPS:
        began = _synchronised_time(device)
        rows = advance(block * stride)
        took = _synchronised_time(device) - began
        values.append(functionals(rows[stride - 1 :: stride]))
        seconds, recorded = seconds + took, recorded + block
        left = (budget - seconds) / max(took / block, 1e-9)
        block = int(max(1, min(2 * block, left, most // stride)))
    while recorded < 8:  # the estimators need a few steps
        began = _synchronised_time(device)
        rows = advance(stride)
        seconds += _synchronised_time(device) - began
        values.append(functionals(rows[stride - 1 :: stride]))
        recorded += 1
    return _Run(torch.cat(values), stride, seconds, functionals(reference).var(0))


def _advance_ours(sampler: Sampler, starts: Tensor, generator: torch.Generator) -> Advance:
    state = sampler.init(starts)

    def advance(num_steps: int) -> Tensor:
        nonlocal state
        state, positions, _ = sampler.run(state, num_steps, generator)
        return sampler.rows(positions, generator)

    return advance


def _advance_botorch(distribution: TruncatedNormal, starts: Tensor) -> Advance:
    m, chains = distribution.num_rows, starts.shape[0]
    eye = torch.eye(m, dtype=starts.dtype, device=starts.device)
    sampler = BoTorchSampler(
        inequality_constraints=(-eye, -distribution.lower.unsqueeze(-1)),
        interior_point=starts[0].clamp(min=1e-9).unsqueeze(-1),
        covariance_root=distribution.gamma_cholesky,
        num_chains=chains,
    )
    # Its constructor takes one point for all chains; the same starts as everyone else's are put in place of it.
    sampler._z = torch.linalg.solve_triangular(distribution.gamma_cholesky, starts.mT, upper=False)  # noqa: SLF001  BoTorch has no other way to start it

    def advance(num_steps: int) -> Tensor:
        return sampler.draw(num_steps).reshape(num_steps, chains, m)

    return advance


def _reference(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> Draws:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = DrawSettings(num_draws=2048, num_chains=8, min_effective_size=512, sampler="reflective")
        return draw(distribution, settings, approximation=approximation)


def _compare(problem: Problem, device: torch.device, names: list[str], budget: float, table: Table) -> None:
    distribution = to_device(problem.distribution, device)
    generator = torch.Generator(device=device).manual_seed(0)
    began = _synchronised_time(device)
    cholesky = distribution.gamma_cholesky
    factorisation = _synchronised_time(device) - began
    approximation = expectation_propagation(distribution)
    reference = _reference(distribution, approximation)
    functionals = _Functionals(distribution)
    every = reference.num_draws // BASELINE_CHAINS
    starts = reference.rows[every // 2 :: every]
    floor = _floor(cholesky, generator)
    table.add(
        case=problem.name, device=device.type, sampler="floor", tau_median=1.0, tau_max=1.0, ess_per_s=1 / floor,
        us_per_draw=1e6 * floor, setup_s=factorisation, note="without truncation",
    )  # fmt: skip
    rates: dict[str, float] = {}
    stride = max(1, problem.size // 20)
    for name in names:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(0)
            began = _synchronised_time(device)
            chains = DrawSettings().chains_of(device.type != "cpu") if name == "default" else BASELINE_CHAINS
            if name == "default":
                advance = _advance_ours(
                    ReflectiveEllipticalSliceSampler(distribution), _spread(reference, chains), generator
                )
            elif name == "linear":
                advance = _advance_ours(LinearEllipticalSliceSampler(distribution), starts, generator)
            elif name == "gibbs":
                advance = _advance_ours(GibbsSampler(distribution), starts, generator)
            else:
                advance = _advance_botorch(distribution, starts)
            setup = _synchronised_time(device) - began
            slow = name in ("linear", "botorch")
            done = _timed(advance, functionals, budget if name != "default" else min(budget, 5.0),
                          stride if slow else 1, reference.rows)  # fmt: skip
        rates[name] = done.effective_per_second
        whole = None
        if name == "default":
            whole = _end_to_end(distribution, functionals, chains)
        table.add(
            case=problem.name, device=device.type, sampler=name, chains=chains, steps=done.num_steps,
            tau_median=float(done.tau.median()), tau_max=float(done.tau.max()), ess_per_s=done.effective_per_second,
            upper_bound=done.upper_bound, us_per_draw=1e6 * done.seconds / done.num_draws, setup_s=setup,
            end_to_end_per_s=whole, note="" if done.is_long else "chains too short: extrapolated",
        )  # fmt: skip
        say(f"{problem.name}, {device.type}, {name}: {done.effective_per_second:.4g} effective draws a second")


def _spread(reference: Draws, chains: int) -> Tensor:
    every = reference.num_draws // chains
    return reference.rows[every // 2 :: every]


def _floor(cholesky: Tensor, generator: torch.Generator, columns: int = 1024, least: float = 1.0) -> float:
    """Seconds for one draw without truncation: the mean over at least so many seconds, after one call to warm up."""

    def call() -> float:
        began = _synchronised_time(cholesky.device)
        cholesky @ torch.randn(
            cholesky.shape[-1], columns, generator=generator, dtype=cholesky.dtype, device=cholesky.device
        )
        return _synchronised_time(cholesky.device) - began

    call()
    seconds, calls = 0.0, 0
    while seconds < least:
        seconds, calls = seconds + call(), calls + 1
    return seconds / calls / columns


def _end_to_end(distribution: TruncatedNormal, functionals: _Functionals, chains: int) -> float:
    """Effective draws a second of one call of `draw`, with factorisation, expectation propagation and diagnostics."""
    settings = DrawSettings(num_chains=chains, num_draws=max(DrawSettings().num_draws, 8 * chains))
    fresh = TruncatedNormal(
        distribution.mean, distribution.prior.covariance, distribution.lower, distribution.upper, distribution.noise
    )
    began = _synchronised_time(distribution.mean.device)
    draws = draw(fresh, settings)
    seconds = _synchronised_time(distribution.mean.device) - began
    values = functionals(draws.rows).unflatten(0, (chains, -1)).transpose(0, 1)
    return float(diagnose(values).bulk_effective_size.min()) / seconds

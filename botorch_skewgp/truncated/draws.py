r"""Draws of a truncated normal and their diagnostics.

.. [Rice1944noise] S. O. Rice. Mathematical analysis of random noise. Bell System Technical Journal 23, 1944.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from inspect import isabstract
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from botorch_skewgp.checks import as_count, as_number, as_seed
from botorch_skewgp.exceptions import ContradictionError, InputDataError, PoorDrawsWarning, UnsupportedError
from botorch_skewgp.truncated.diagnostics import diagnose, effective_sample_size
from botorch_skewgp.truncated.gaussian_rows import SiteConditioned, gaussian_rows
from botorch_skewgp.truncated.priors import Map
from botorch_skewgp.truncated.propagation.expectation_propagation import (
    ROUNDING,
    ExpectationPropagation,
    expectation_propagation,
)
from botorch_skewgp.truncated.samplers.coordinates import num_entries
from botorch_skewgp.truncated.samplers.feasibility import feasible_start, require_feasible
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler
from botorch_skewgp.truncated.samplers.reflective_ess import HORIZON, ReflectiveEllipticalSliceSampler, uses_numba
from botorch_skewgp.truncated.samplers.sampler import RowSampler, Sampler, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import log_normal_density

SamplerName = Literal["reflective", "hamiltonian"]
MAX_DRAWS = 1_000_000  # beyond which memory would run out
R_HAT_LIMIT = 1.01
STEIN_LIMIT = 5.0  # standard errors of a mean that is zero for draws of the target
MAX_ENTRIES = 2**20  # of rows that diagnostics copy at a time, which a cache can hold
DIAGNOSED = 16  # functionals of the slowest chains, of up to 257 watched: sorting all takes a tenth of a step
FEW_CHAINS = 4
MANY_CHAINS, STEPS_OF_MANY = 64, 16  # where chains move side by side
SHORT_CHAIN = 32  # steps, those of 2,048 draws by MANY_CHAINS
MAX_SPLIT = 4096  # single rows that are drawn in place of merged ones; more have a large covariance
FIXED = 1e-3  # change of sites, in standard deviations of their rows, up to which sites can replace rows
LOST = 0.1  # likewise, from which on the Gaussian of the sites is none of the posterior's


@dataclass(frozen=True)
class SamplerCosts:
    """What 2,048 draws cost by either sampler, in nanoseconds of one thread; `benchmarks sizes` has seconds."""

    reflections: float = 2300.0  # number of trajectories
    of_event: tuple[float, float] = (100.0, 1.3)  # cost of a reflection in compiled code, and that for each row
    eager: float = 30.0  # how much more it costs in eager torch
    of_refraction: float = 8.0  # how much more trajectories cost whose walls have finite height
    gradients: float = 220.0  # number of gradients of the potential, of all chains
    # cost of a gradient, that for each row and chain, and that for each entry of a matrix and chain
    of_gradient: tuple[float, float, float] = (2e5, 20.0, 0.2)
    two_sided: float = 4.0  # how much more a row costs there that may have two bounds
    # mean variance of rows in the Gaussian, over that of their noise, up to which a trajectory needs few rotations
    max_ratio: float = 30.0
    # likewise for rows that stand for several, which reflections draw one by one
    max_ratio_of_merged: float = 300.0
    # likewise of the prior's variance, where slips leave expectation propagation without a fixed point: several
    # explanations of the answers are then modes that Hamiltonian trajectories rarely leave
    max_ratio_of_modes: float = 60.0


COSTS = SamplerCosts()


@dataclass(frozen=True)
class DrawSettings:
    r"""How draws are made.

    Args:
        num_draws: The number of draws to keep, at most a million.
        num_chains: The number of independent Markov chains they come from; a divisor of `num_draws`, at most a quarter
            of it. By default 4, and up to 64 where chains move side by side; see `chains_of`.
        sampler: The name of a sampler, or a class of `RowSampler`, such as `papers.LinearEllipticalSliceSampler`;
            `choose_sampler` chooses if `None`.
        min_effective_size: The effective sample size that every functional watched must reach; half of `num_draws` if
            `None`.
        max_thinning: Chains are run longer and thinned, by up to this factor, until the effective size is reached.
        warmup: The number of steps before the first draw is kept.
        seed: The seed of the generator that is made where the caller gives none.

    Raises:
        InputDataError: If a number is no integer or out of its range, a chain would keep fewer than 4 draws, or there
            is no such sampler.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs), draw_settings=DrawSettings(num_draws=4096, seed=1))
    """

    num_draws: int = 2048
    num_chains: int | None = None
    sampler: SamplerName | type[RowSampler] | None = None
    min_effective_size: float | None = None
    max_thinning: int = 64
    warmup: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        as_count(self.num_draws, "num_draws", least=1, most=MAX_DRAWS)
        num_chains = FEW_CHAINS if self.num_chains is None else as_count(self.num_chains, "num_chains", least=1)
        as_count(self.max_thinning, "max_thinning", least=1)
        as_count(self.warmup, "warmup", least=0)
        as_seed(self.seed)
        is_class = isinstance(self.sampler, type) and issubclass(self.sampler, RowSampler)
        is_class = is_class and not isabstract(self.sampler)
        if not is_class and self.sampler not in (None, *get_args(SamplerName)):
            raise InputDataError(
                f"sampler must be one of {', '.join(get_args(SamplerName))}, a RowSampler class, or None; got "
                f"{self.sampler!r}."
            )
        if self.min_effective_size is not None and as_number(self.min_effective_size, "min_effective_size") <= 0:
            raise InputDataError(f"min_effective_size must be positive; got {self.min_effective_size}.")
        if self.num_draws % num_chains:
            raise InputDataError(f"num_draws ({self.num_draws}) must be a multiple of num_chains ({num_chains}).")
        if self.num_draws // num_chains < 4:
            raise InputDataError(
                f"Every chain must keep at least 4 draws for R-hat, which halves it; got num_draws = {self.num_draws} "
                f"from num_chains = {num_chains}."
            )

    def chains_of(self, side_by_side: bool) -> int:
        """The number of chains: up to `MANY_CHAINS` side by side, as long as each keeps `STEPS_OF_MANY` draws."""
        if self.num_chains is not None:
            return self.num_chains
        for chains in (MANY_CHAINS, 32, 16, 8):
            if side_by_side and self.num_draws % chains == 0 and self.num_draws >= chains * STEPS_OF_MANY:
                return chains
        return FEW_CHAINS


@dataclass(frozen=True, eq=False)
class Draws:
    r"""Draws and their diagnostics.

    Args:
        rows: The draws of `u`, `num_draws x m`; of a row that stands for several, of their mean.
        r_hat: Rank-normalised split R-hat of every functional diagnosed, `k`.
        effective_size: Bulk effective sample size of every functional diagnosed, `k`.
        num_evaluations: The mean number of reflections, or of gradients, per step and chain.
        thinning: The number of steps per kept draw.
        num_chains: The number of chains; draws of one chain follow each other.
        sampler: The name of the sampler.
    """

    rows: Tensor
    r_hat: Tensor
    effective_size: Tensor
    num_evaluations: float
    thinning: int
    num_chains: int
    sampler: str

    @property
    def num_draws(self) -> int:
        """The number of draws."""
        return self.rows.shape[-2]


def expected_reflections(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> Tensor:
    """The mean number of reflections of a trajectory: densities at bounds times mean speeds ([Rice1944noise]_)."""
    mean, variance = approximation.cavity
    scale = distribution.factor.scale(variance)
    log_mass = distribution.factor.log_probability(mean, variance)
    density = torch.zeros_like(mean)
    for bound in (distribution.lower, distribution.upper):
        z = torch.where(bound.isfinite(), (bound - mean) / scale, torch.inf)
        density = density + (log_normal_density(z) - log_mass).exp() / scale
    return HORIZON * (density * (distribution.gamma_diagonal / (2 * math.pi)).sqrt()).sum(-1)


@torch.no_grad()
def choose_sampler(distribution: TruncatedNormal, approximation: ExpectationPropagation | None = None) -> SamplerName:
    """The default sampler: the one whose draws should cost less, by a rule on the problem alone."""
    noisy = distribution.noise > 0
    if distribution.heights is not None and not bool(noisy.all()):
        return "reflective"
    if distribution.count is not None:
        return "hamiltonian"
    if 2 * int(noisy.sum()) <= distribution.num_rows:
        return "reflective"
    if approximation is None:
        approximation = expectation_propagation(distribution, warn=False)
    if distribution.heights is None and not approximation.residual <= LOST:
        return "reflective"  # trajectories around such a Gaussian hardly move, and it tells no ratio
    ratio = (approximation.variance / distribution.noise)[noisy]
    if not float(ratio.mean()) <= COSTS.max_ratio:
        return "reflective"
    of_prior = (distribution.prior.variances / distribution.noise)[noisy]
    if approximation.non_negative and float(of_prior.mean()) > COSTS.max_ratio_of_modes:
        return "reflective"
    cheaper = _hamiltonian_cost(distribution) < _reflective_cost(distribution, approximation)
    return "hamiltonian" if cheaper else "reflective"


def _reflective_cost(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> float:
    """What draws by reflections cost, in nanoseconds."""
    of_event, of_row = COSTS.of_event
    slower = COSTS.of_refraction if distribution.heights is not None else 1.0
    if not uses_numba(distribution.mean.device):
        slower *= COSTS.eager
    events = float(expected_reflections(distribution, approximation))
    return COSTS.reflections * slower * events * (of_event + of_row * distribution.num_rows)


def _hamiltonian_cost(distribution: TruncatedNormal) -> float:
    """What draws by Hamiltonian trajectories cost, in nanoseconds."""
    fixed, of_row, of_entry = COSTS.of_gradient
    if not bool((distribution.lower.isfinite() != distribution.upper.isfinite()).all()):
        of_row *= COSTS.two_sided
    entries = num_entries(distribution.prior)
    return COSTS.gradients * (fixed + MANY_CHAINS * (of_row * distribution.num_rows + of_entry * entries))


@torch.no_grad()
def draw(
    distribution: TruncatedNormal,
    settings: DrawSettings | None = None,
    generator: torch.Generator | None = None,
    approximation: ExpectationPropagation | None = None,
) -> Draws:
    """Draw from a truncated normal until R-hat, effective sizes and moments of `NoisyPrior.expectations` are good,
    thinning twice as much each time; a `PoorDrawsWarning` says that they are not at `max_thinning`. Raises
    `ContradictionError` where rows cannot be, `ValueError` for a sampler that does not fit, and
    `TooManyReflectionsError` if all rows together leave almost no room.
    """
    settings = settings or DrawSettings()
    if generator is None:
        generator = torch.Generator(device=distribution.mean.device).manual_seed(settings.seed)
    if distribution.num_rows == 0:
        empty, none = distribution.mean.new_zeros(settings.num_draws, 0), distribution.mean.new_zeros(0)
        return Draws(empty, none, none, 0.0, 1, settings.chains_of(False), "none")
    _check_is_unknown(distribution)
    if approximation is None:  # starts and coordinates need sites near the fixed point only
        approximation = expectation_propagation(distribution, tolerance=1e-3, warn=False)
    if settings.sampler is None and bool(gaussian_rows(approximation).any()):
        approximation, replaced = _replaced_by_sites(distribution, approximation)
        if bool(replaced.any()):
            return _draw_around_sites(distribution, replaced, settings, generator, approximation)
    if settings.sampler is None and _is_stiff(distribution, approximation):
        return _draw_single_rows(distribution, settings, generator)
    kind, name, num_chains = _plan(distribution, settings, approximation)
    num_steps = settings.num_draws // num_chains
    sampler: Sampler
    if name == "hamiltonian":
        sampler = hamiltonian = HamiltonianSampler(distribution, approximation)
        state = hamiltonian.start(num_chains, generator)
    else:
        start = feasible_start(distribution, num_chains, generator, approximation.product)
        del approximation  # its factors are as large as the covariance
        sampler = kind(distribution)
        state = sampler.init(start)
        if settings.warmup > 0:
            state, _, _ = sampler.run(state, settings.warmup, generator)
    watched, thinning = distribution.noisy_prior.expectations(), 1
    while True:
        state, positions, scores, evaluations = _extend(sampler, state, num_steps, thinning, generator)
        rows = sampler.rows(positions, generator)
        del positions
        quality = _judge(rows, scores, watched, distribution.mean, settings)
        if quality.is_good or 2 * thinning > settings.max_thinning:
            break
        thinning *= 2
        del rows
    if not quality.is_good:
        _warn_of_poor_draws(quality, name)
    return Draws(
        rows=rows.flatten(0, 1),
        r_hat=quality.r_hat,
        effective_size=quality.effective_size,
        num_evaluations=evaluations,
        thinning=thinning,
        num_chains=num_chains,
        sampler=name,
    )


def _check_is_unknown(distribution: TruncatedNormal) -> None:
    """Raise a `ContradictionError` for rows that have no variance."""
    certain = distribution.gamma_diagonal <= 0
    if bool(certain.any()):
        raise ContradictionError(
            f"Rows {certain.nonzero().squeeze(-1).tolist()} have neither variance nor noise: nothing in them is "
            "unknown. Leave them out, or give them weights that are not zero, or noise."
        )


def _replaced_by_sites(
    distribution: TruncatedNormal, approximation: ExpectationPropagation
) -> tuple[ExpectationPropagation, Tensor]:
    """Sites at the fixed point, and which rows they replace; contradictions, whose sites have any size, are named."""
    replaced = gaussian_rows(approximation)
    require_feasible(distribution, approximation.product)
    approximation = expectation_propagation(distribution, approximation.sites, tolerance=ROUNDING, warn=False)
    return approximation, replaced & gaussian_rows(approximation) & (approximation.residual <= FIXED)


def _is_stiff(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> bool:
    """Whether rows stand for whole numbers of others, and have so little noise that rotations would be many."""
    count = distribution.count
    if count is None or distribution.num_factors is None or not torch.equal(count, distribution.num_factors):
        return False
    noisy = distribution.noise > 0
    ratio = (approximation.variance / distribution.noise)[noisy].mean()
    return float(count.sum()) <= MAX_SPLIT and float(ratio) > COSTS.max_ratio_of_merged


def _draw_single_rows(distribution: TruncatedNormal, settings: DrawSettings, generator: torch.Generator) -> Draws:
    """Draw all rows that merged ones stand for by reflections, which need no small steps; their means."""
    count = distribution.count
    assert count is not None
    row = torch.arange(len(count), device=count.device).repeat_interleave(count.long())
    draws = draw(distribution.select(row), replace(settings, sampler="reflective"), generator)
    sums = draws.rows.new_zeros(draws.num_draws, len(count)).index_add_(-1, row, draws.rows)
    return replace(draws, rows=distribution.factor.clamp(sums / count))


def _plan(
    distribution: TruncatedNormal, settings: DrawSettings, approximation: ExpectationPropagation
) -> tuple[type[RowSampler], str, int]:
    """The class of a sampler of rows, where Hamiltonian trajectories are not chosen; the name; the number of chains."""
    chosen = settings.sampler or choose_sampler(distribution, approximation)
    kind = ReflectiveEllipticalSliceSampler if isinstance(chosen, str) else chosen
    name = chosen if isinstance(chosen, str) else chosen.__name__
    _check_fits(name, distribution)
    side_by_side = name == "hamiltonian" or not uses_numba(distribution.mean.device)
    return kind, name, settings.chains_of(side_by_side)


def _extend(
    sampler: Sampler, state: SamplerState, num_steps: int, thinning: int, generator: torch.Generator
) -> tuple[SamplerState, Tensor, Tensor | None, float]:
    """Run chains, in blocks, to keep no more than every `thinning`-th position. The last state, positions chain by
    chain, `num_chains x num_steps x p`, scores of all steps if there are any, and evaluations per step and chain.
    """
    blocks, scores, evaluations = [], [], 0.0
    for number in range(thinning):
        state, positions, info = sampler.run(state, num_steps, generator)
        first = thinning - 1 - (number * num_steps) % thinning  # in the block, of those kept of the whole run
        block = positions[first::thinning]
        blocks.append(block if thinning == 1 else block.clone())  # a view would keep all positions
        del positions, block  # the positions of all draws are large
        if info.scores is not None:
            scores.append(info.scores)
        evaluations += float(info.num_evaluations.double().mean())
    kept = torch.cat(blocks) if thinning > 1 else blocks[0]
    evaluations /= thinning * num_steps
    return state, kept.transpose(0, 1).contiguous(), torch.cat(scores) if scores else None, evaluations


class _Quality(NamedTuple):
    """How good draws are.

    Args:
        r_hat: R-hat of the functionals diagnosed, `k`.
        effective_size: Their effective sizes.
        misses_tails: Whether mean scores, zero for exact draws, are off by more than chance.
        is_good: Whether all of it is good.
    """

    r_hat: Tensor
    effective_size: Tensor
    misses_tails: bool
    is_good: bool


def _judge(rows: Tensor, scores: Tensor | None, watched: Map, mean: Tensor, settings: DrawSettings) -> _Quality:
    """Diagnose rows, `num_chains x num_steps x m`, by the functionals of residuals that move most slowly."""
    num_chains, num_steps, m = rows.shape
    parts = rows.flatten(0, 1).split(max(1, MAX_ENTRIES // m))
    values = torch.cat([watched(part - mean) for part in parts])
    values = values.unflatten(0, (num_chains, num_steps)).transpose(0, 1)
    num_watched, values = values.shape[-1], _slowest(values)
    r_hat, bulk = diagnose(values)
    if bool((rows[:, 0] == rows[:, -1]).all()):  # chains that have not left one start look constant
        r_hat, bulk = torch.full_like(r_hat, torch.inf), torch.ones_like(bulk)
    wanted = settings.num_draws / 2 if settings.min_effective_size is None else settings.min_effective_size
    autocorrelation_time = (settings.num_draws / bulk).clamp(1, max(settings.num_draws / wanted, 1))
    allowed = _allowed_r_hat(num_steps, num_chains, autocorrelation_time, num_watched)
    flat = values.flatten(0, 1)
    constant = flat.amax(0) == flat.amin(0)  # nothing to compare: R-hat is NaN by definition
    misses_tails = scores is not None and _standard_errors_off(scores) > STEIN_LIMIT
    mixes = bool(((r_hat <= allowed) | constant).all()) and bool((bulk >= wanted).all())
    return _Quality(r_hat, bulk, misses_tails, mixes and not misses_tails)


def _warn_of_poor_draws(quality: _Quality, name: str) -> None:
    """Say what is poor, and what to do."""
    tails = ", and their moments contradict their density, as if a tail were missing"
    other = "" if name == "reflective" else ', or use DrawSettings(sampler="reflective")'
    warnings.warn(
        f"Draws of the rows by the {name} sampler are poor: effective sizes or R-hat, which are fields of the draws, "
        f"are not what was asked for{tails if quality.misses_tails else ''}. Raise max_thinning or "
        f"num_draws{other}.",
        PoorDrawsWarning,
        stacklevel=3,
    )


def _check_fits(name: str, distribution: TruncatedNormal) -> None:
    """Raise an error if a sampler cannot draw from a distribution."""
    noiseless_beside_slips = distribution.heights is not None and not bool((distribution.noise > 0).all())
    if noiseless_beside_slips and distribution.count is not None:
        raise UnsupportedError(
            "No sampler draws answers with weights, count= of fractions, where some may be slips and others have no "
            "noise, as slopes: give whole numbers as count, leave slip out, or give the others noise, as "
            "SlopeLikelihood(noise=0.01)."
        )
    if distribution.count is not None and name != "hamiltonian":
        raise UnsupportedError(
            f"The {name} sampler draws single rows, but these stand for several, or are powers, as of answers with "
            "weights; use DrawSettings(sampler='hamiltonian'), or None."
        )


def noiseless_given_rows(
    distribution: TruncatedNormal,
    rows: Tensor,
    generator: torch.Generator | None = None,
    single: TruncatedNormal | None = None,
) -> Tensor:
    """Draws of `h`, or of that of `single` rows over the same latent coordinates, given rows `num_draws x m`."""
    rows = rows.to(distribution.mean)
    latent = distribution.noisy_prior.draw_latent(rows - distribution.mean, generator)
    if single is not None:
        return single.noiseless(latent)
    return torch.where(distribution.noise > 0, distribution.noiseless(latent), rows)


def _draw_around_sites(
    distribution: TruncatedNormal,
    replaced: Tensor,
    settings: DrawSettings,
    generator: torch.Generator,
    approximation: ExpectationPropagation,
) -> Draws:
    """Draw the other rows given the sites of those that are replaced, and these given the others."""
    conditioned = SiteConditioned(distribution, approximation, replaced)
    rest = draw(conditioned.rest, settings, generator)
    rows = conditioned.complete(rest.rows, generator)
    if not len(rest.r_hat):  # independent draws
        one = rest.r_hat.new_ones(1)
        rest = replace(rest, r_hat=one, effective_size=rest.num_draws * one, sampler="independent")
    return replace(rest, rows=rows)


def _standard_errors_off(scores: Tensor) -> float:
    """The largest mean of scores, `num_steps x num_chains x k`, in standard errors."""
    if scores.shape[-1] == 0:
        return 0.0
    flat = scores.flatten(0, 1)
    size = effective_sample_size(scores).clamp(max=float(len(flat)))
    error = flat.std(0) / size.sqrt()
    return float((flat.mean(0).abs() / torch.where(error > 0, error, torch.inf)).max())


def _slowest(values: Tensor) -> Tensor:
    """The functionals, of `num_steps x num_chains x k`, whose means over stretches of chains differ most."""
    n, _, k = values.shape
    if k <= DIAGNOSED:
        return values
    variance, slowness = values.flatten(0, 1).var(0), values.new_zeros(k)
    for length in (n // 2, math.isqrt(n)):
        means = values[: n // length * length].unflatten(0, (-1, length)).mean(1).flatten(0, 1)
        slowness = torch.maximum(slowness, length * means.var(0))
    slowness = torch.where(variance == 0, 0.0, slowness / variance).nan_to_num(torch.inf)
    return values[..., slowness.topk(DIAGNOSED).indices]


def _allowed_r_hat(num_steps: int, num_chains: int, autocorrelation_time: Tensor, num_watched: int) -> Tensor:
    """`R_HAT_LIMIT`, or the largest R-hat over all functionals that good draws reach by chance, if that is more."""
    # the ratio of between- to within-chain variance is about a chi-squared variable over its degrees of freedom, times
    # the autocorrelation time; R-hat squared is `1 + (ratio - 1) / n`
    degrees, n = 2 * num_chains - 1, max(num_steps // 2, 1)
    # quantile at 1 - 0.001 / k of the chi-squared, by the cube-root approximation of Wilson and Hilferty; two
    # rank normalisations (bulk and folded) are maximised over
    level = 1 - 0.001 / (2 * max(num_watched, 1))
    z = float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))
    ratio = (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3
    factor = autocorrelation_time if num_steps <= SHORT_CHAIN else torch.ones_like(autocorrelation_time)
    return (1 + (ratio * factor - 1).clamp(min=0) / n).sqrt().clamp(min=R_HAT_LIMIT)

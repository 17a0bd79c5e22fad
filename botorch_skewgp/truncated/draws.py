r"""Draws of a truncated normal and their diagnostics.

.. [Rice1944noise] S. O. Rice. Mathematical analysis of random noise. Bell System Technical Journal 23, 1944.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor
from tqdm.auto import tqdm

from botorch_skewgp.exceptions import ContradictionError, InputDataError, PoorDrawsWarning
from botorch_skewgp.observations.checks import as_count, as_number, as_seed, check_flags
from botorch_skewgp.truncated.backends import uses_numba
from botorch_skewgp.truncated.diagnostics import diagnose
from botorch_skewgp.truncated.gaussian_rows import SiteConditioned, gaussian_rows
from botorch_skewgp.truncated.propagation.expectation_propagation import (
    ROUNDING,
    ExpectationPropagation,
    expectation_propagation,
)
from botorch_skewgp.truncated.samplers.collapsed_ess import CollapsedEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.independence import IndependenceSampler
from botorch_skewgp.truncated.samplers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.sampler import Sampler
from botorch_skewgp.truncated.samplers.shared_independence import SharedIndependenceSampler
from botorch_skewgp.truncated.samplers.start import feasible_start, require_feasible
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal, as_double
from botorch_skewgp.truncated.univariate import log_normal_density

SamplerName = Literal["reflective", "collapsed", "independence", "linear"]
WITH_APPROXIMATION = {"collapsed": CollapsedEllipticalSliceSampler, "independence": IndependenceSampler}
R_HAT_LIMIT = 1.01
NUM_PROPOSALS = 256  # a pilot of the Gaussian of expectation propagation as a proposal
MIN_SHARE = 0.2  # effective share of these, down to which it is faster than slices (`benchmarks samplers_low_rank`)
MAX_ENTRIES = 2**20  # of rows that diagnostics copy at a time, which a cache can hold
# Costs, in entries of matrices that a reflection reads; `benchmarks sizes` has their seconds.
EVENT_OVERHEAD, HORIZON = 50, math.pi / 2
SLICE = 64.0  # with the thinning that slices need
SLICE_OVERHEAD = 2**13  # of each: 2,048 draws of 100 rows take a second or more, as those of 1,000 do
OF_HEIGHTS = 8.0  # the cost of draws by refraction over as many reflections: each takes longer, and draws correlate
CHEAP = 2**16  # up to which reflections are taken without a pilot: a third of a second for 2,048 draws
CHEAP_PROPOSALS = 2**18  # of all proposals for a draw, as much as its diagnostics
PROPOSALS_PER_DRAW = 4  # where they are cheap: with one, seconds vary by a factor of eight
FEW_CHAINS = 4
# On a GPU; of 4, 16, 64 and 256, the number at which 2,048 draws of 500 to 2,000 labels took the least time.
MANY_CHAINS, STEPS_OF_MANY = 64, 16
SHORT_CHAIN = 32  # steps, those of 2,048 draws by MANY_CHAINS
FIXED = 1e-3  # change of sites, in standard deviations of their rows, up to which sites can replace rows
MAX_UNKNOWN = 10.0  # variance of noiseless parts over that of the noise


@dataclass(frozen=True)
class DrawSettings:
    r"""How draws are made.

    Args:
        num_draws: The number of draws to keep.
        num_chains: The number of independent Markov chains they come from; a divisor of `num_draws`, at most a quarter
            of it. By default 4, and more on CUDA, where chains run side by side; see `chains_on`.
        sampler: The name of a sampler; `choose_sampler` chooses if `None`.
        min_effective_size: The effective sample size that every functional watched must reach; half of `num_draws` if
            `None`.
        max_thinning: Chains are run longer and thinned, by up to this factor, until the effective size is reached.
        warmup: The number of steps before the first draw is kept.
        seed: The seed of the generator that is made where the caller gives none.
        progress: Whether to show a progress bar.

    Raises:
        InputDataError: If a number is no integer or out of its range, a chain would keep fewer than 4 draws, or there
            is no such sampler.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs), draw_settings=DrawSettings(num_draws=4096, seed=1))
    """

    num_draws: int = 2048
    num_chains: int | None = None
    sampler: SamplerName | None = None
    min_effective_size: float | None = None
    max_thinning: int = 64
    warmup: int = 16
    seed: int = 0
    progress: bool = False

    def __post_init__(self) -> None:
        as_count(self.num_draws, "num_draws", least=1)
        num_chains = FEW_CHAINS if self.num_chains is None else as_count(self.num_chains, "num_chains", least=1)
        as_count(self.max_thinning, "max_thinning", least=1)
        as_count(self.warmup, "warmup", least=0)
        as_seed(self.seed)
        check_flags(progress=self.progress)
        if self.sampler not in (None, *get_args(SamplerName)):
            raise InputDataError(
                f"sampler must be one of {', '.join(get_args(SamplerName))} or None; got {self.sampler!r}."
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

    def chains_on(self, device: torch.device, side_by_side: bool = False) -> int:
        r"""The number of chains on a device.

        On a CPU the time of a step grows with the number of chains, on a GPU it hardly does. There the default is up to
        `MANY_CHAINS`, as long as each keeps `STEPS_OF_MANY` draws or more.

        Args:
            device: Where draws are made.
            side_by_side: Whether chains step in one pass on a CPU too, as where answers may be slips.
        """
        if self.num_chains is not None:
            return self.num_chains
        chains = FEW_CHAINS
        while (
            (side_by_side or device.type == "cuda")
            and chains < MANY_CHAINS
            and self.num_draws % (2 * chains) == 0
            and self.num_draws >= 2 * chains * STEPS_OF_MANY
        ):
            chains *= 2
        return chains


@dataclass(frozen=True, eq=False)
class Draws:
    r"""Draws and their diagnostics.

    Args:
        rows: The draws of `u`, `batch_shape x num_draws x m`; of a row that stands for several, of their mean.
        latent: The latent coordinates of `h` at the draws, `batch_shape x num_draws x r`, if the prior is low rank and
            the sampler moves them; else `None`.
        r_hat: Rank-normalised split R-hat of every functional watched, `batch_shape x k`.
        effective_size: Bulk effective sample size of every functional watched, `batch_shape x k`.
        functionals: The functionals watched, `batch_shape x num_steps x num_chains x k`; none for independent draws.
        num_evaluations: The mean number of reflections, or of likelihoods, per step and chain.
        thinning: The number of steps per kept draw.
        num_chains: The number of chains; draws of one chain follow each other.
        sampler: The name of the sampler.
    """

    rows: Tensor
    latent: Tensor | None
    r_hat: Tensor
    effective_size: Tensor
    functionals: Tensor
    num_evaluations: float
    thinning: int
    num_chains: int
    sampler: str

    @property
    def num_draws(self) -> int:
        """The number of draws."""
        return self.rows.shape[-2]

    @property
    def mean(self) -> Tensor:
        """The mean of the rows, `batch_shape x m`."""
        return self.rows.mean(-2)

    @property
    def covariance(self) -> Tensor:
        """The covariance of the rows, `batch_shape x m x m`."""
        centred = self.rows - self.rows.mean(-2, keepdim=True)
        return centred.mT @ centred / (self.num_draws - 1)

    @property
    def autocorrelation_time(self) -> Tensor:
        """Draws per effective draw of every functional watched, `batch_shape x k`; 1 for independent draws."""
        return self.num_draws / self.effective_size


def expected_reflections(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> Tensor:
    r"""The mean number of reflections of a trajectory, of shape `batch_shape`.

    A trajectory is stationary, and its velocity independent of its position. So a bound of row `i` is reached
    `p_i(bound) sd(u_i) / sqrt(2 pi)` times in a unit of time ([Rice1944noise]_): the density of the row at its bound
    times the mean speed towards it. The density is that of expectation propagation's tilted distributions.

    Args:
        distribution: The truncated normal.
        approximation: Its expectation propagation fixed point.
    """
    distribution = as_double(distribution)
    mean, variance = approximation.cavity_mean, approximation.cavity_variance
    scale = distribution.factor.scale(variance)
    log_mass = distribution.factor.log_probability(mean, variance)
    density = torch.zeros_like(mean)
    for bound in (distribution.lower, distribution.upper):
        z = torch.where(bound.isfinite(), (bound - mean) / scale, torch.inf)
        density = density + (log_normal_density(z) - log_mass).exp() / scale
    return HORIZON * (density * (distribution.gamma_diagonal / (2 * math.pi)).sqrt()).sum(-1)


@torch.no_grad()
def choose_sampler(distribution: TruncatedNormal, approximation: ExpectationPropagation | None = None) -> SamplerName:
    r"""The default sampler: the one whose steps should cost least, by a rule on the problem alone.

    Reflections mix at once wherever they were tried; a step has `expected_reflections`, at a cost of `O(m)` each. Where
    these are many, the noise may be integrated out instead, unless it is small. With many rows over few coordinates the
    rest mostly is so nearly Gaussian that draws of expectation propagation's approximation serve as proposals; a pilot
    estimates their effective share. Slices serve if a row's noiseless part is known to within a few standard deviations
    of the noise. Rows that stand for several can only be drawn in these two ways.

    Args:
        distribution: The truncated normal.
        approximation: Its expectation propagation fixed point; computed if `None`.
    """
    counted, m = distribution.count is not None, distribution.num_rows
    if not bool((distribution.noise > 0).all()):
        return "reflective"
    if approximation is None:
        approximation = expectation_propagation(distribution)
    if not (counted or approximation.converged):
        return "reflective"
    reflections = float(expected_reflections(distribution, approximation).max()) * (m + EVENT_OVERHEAD)
    if distribution.heights is not None:
        reflections *= OF_HEIGHTS
    if not counted and reflections <= CHEAP:
        return "reflective"
    shared = SharedIndependenceSampler.of(distribution, approximation)
    proposals = IndependenceSampler(distribution, approximation) if shared is None else shared
    generator = torch.Generator(device=distribution.mean.device).manual_seed(0)
    _, log_weight = proposals.propose(NUM_PROPOSALS, generator)
    # of the proposals, and of log-normal weights of their variance, as few proposals miss the tail in many dimensions
    counting = (2 * log_weight.logsumexp(-1) - (2 * log_weight).logsumexp(-1)).exp() / NUM_PROPOSALS
    share = float(torch.minimum(counting, (-log_weight.var(-1)).exp()).min())
    if share >= MIN_SHARE:
        steps = max(_thinning_of_proposals(proposals), 1 / share) * proposals.num_inner_steps
        if counted or steps * proposals.cost + proposals.cost_of_rows < reflections:
            return "independence"
    if shared is not None:
        return "reflective"
    entries = approximation.latent_mean.shape[-1] * m
    unknown = float((approximation.variance / distribution.noise).mean())
    cheaper = SLICE * (entries + SLICE_OVERHEAD) < reflections
    return "collapsed" if counted or (unknown < MAX_UNKNOWN and cheaper) else "reflective"


@torch.no_grad()
def draw(
    distribution: TruncatedNormal,
    settings: DrawSettings | None = None,
    generator: torch.Generator | None = None,
    approximation: ExpectationPropagation | None = None,
    previous: Draws | None = None,
) -> Draws:
    r"""Draw from a truncated normal until the draws are good.

    Chains start at feasible points near the expectation propagation Gaussian (or at `previous` draws). They run for
    `warmup` steps, then for `num_draws / num_chains` kept steps. As long as R-hat or the effective sample size of some
    functional is poor, these steps become the warm-up of a run with twice the thinning. Unless the settings name a
    sampler, rows that act like numbers, narrow or far in a tail, are drawn last, see `gaussian_rows`.

    The functionals watched are those that posteriors average: `E[h_i | u]` of every row (`E[z_j | u]` of every latent
    coordinate where these are fewer), the slow directions of the chains, and the squared Mahalanobis length of `u` (the
    squared length of `E[z | u]`). Of more than `priors.base.MAX_WATCHED` rows or coordinates that many are watched,
    evenly spaced.

    Args:
        distribution: The truncated normal.
        settings: How draws are made.
        generator: The source of randomness; one seeded with `settings.seed` is made if `None`.
        approximation: Its expectation propagation fixed point, if the caller has it.
        previous: Draws of a similar distribution whose rows are the first rows of this one, to start from.

    Returns:
        The draws. A `PoorDrawsWarning` is issued if they are still poor at `max_thinning`.

    Raises:
        ContradictionError: If a row has neither variance nor noise, or rows without noise contradict each other.
        ValueError: If the sampler named in the settings does not fit the distribution.
        TooManyReflectionsError: If all rows together leave almost no room.
    """
    settings = settings or DrawSettings()
    if generator is None:
        generator = torch.Generator(device=distribution.mean.device).manual_seed(settings.seed)
    batch_shape, may_slip = distribution.batch_shape, distribution.heights is not None
    in_one_pass = distribution.count is not None or not uses_numba(distribution.mean.device)
    num_chains = settings.chains_on(distribution.mean.device, side_by_side=may_slip and in_one_pass)
    num_steps = settings.num_draws // num_chains
    if distribution.num_rows == 0:
        empty = distribution.mean.new_zeros(*batch_shape, settings.num_draws, 0)
        none = distribution.mean.new_zeros(*batch_shape, 0)
        return Draws(empty, None, none, none, empty.unsqueeze(-2), 0.0, 1, num_chains, "none")
    certain = (distribution.gamma_diagonal <= 0).reshape(-1, distribution.num_rows).any(0)
    if bool(certain.any()):
        raise ContradictionError(
            f"Rows {certain.nonzero().squeeze(-1).tolist()} have neither variance nor noise: nothing in them is "
            "unknown. Leave them out, or give them weights that are not zero, or noise."
        )
    if approximation is None:  # starts and proposals need sites near the fixed point only
        approximation = expectation_propagation(distribution, tolerance=1e-3)
    replaced = gaussian_rows(approximation)
    if settings.sampler is None and bool(replaced.any()):
        double = as_double(distribution)
        require_feasible(double, approximation)  # contradictions have sites of any size
        approximation = expectation_propagation(double, initial_sites=approximation.sites, tolerance=ROUNDING)
        replaced &= gaussian_rows(approximation) & bool((approximation.residual <= FIXED).all())
        if bool(replaced.any()):
            return _draw_around_sites(distribution, replaced, settings, generator, approximation, previous)
    name = settings.sampler or choose_sampler(distribution, approximation)
    if distribution.count is not None and name not in WITH_APPROXIMATION:
        raise ValueError(
            f"The {name} sampler draws single rows; these stand for several; use 'collapsed' or 'independence'."
        )
    if distribution.heights is not None and name == "linear":
        raise ValueError(
            f"The {name} sampler draws rows inside their bounds; the answers of these may be slips. Use 'reflective'."
        )
    if previous is not None and (distribution.count is not None or previous.rows.shape[-1] > distribution.num_rows):
        previous = None  # its rows are not the first rows of this one
    shared = SharedIndependenceSampler.of(distribution, approximation) if name == "independence" else None
    sampler: Sampler
    if shared is not None:
        del approximation
        sampler, state = shared, shared.start(num_chains, generator)
    else:
        start, latent = feasible_start(
            distribution,
            num_chains,
            generator,
            expectation_propagation=approximation,
            previous=None if previous is None else (previous.rows, previous.latent),
        )
        proposal = approximation if name in WITH_APPROXIMATION else None
        del approximation  # its factors are as large as the covariance, as are the sampler's
        sampler = _make_sampler(name, distribution, proposal)
        del proposal
        state = sampler.init(start, latent)
    functional = _functionals(distribution)
    wanted = settings.num_draws / 2 if settings.min_effective_size is None else settings.min_effective_size
    if settings.warmup > 0:
        state, _, _ = sampler.run(state, settings.warmup, generator)
    thinning = 1
    if isinstance(sampler, IndependenceSampler):  # chains stand still at a proposal of large weight
        thinning = min(_thinning_of_proposals(sampler), settings.max_thinning)
    kept: Tensor | None = None
    evaluations = 0.0
    bar = tqdm(total=None, desc="draws", disable=not settings.progress, leave=False, unit="step")
    with bar:
        while True:
            # Proposals do not depend on the chains' places, so that the steps already made count too.
            blocks = [] if kept is None else [kept]
            first, evaluations = (0, 0.0) if kept is None else (thinning // 2, evaluations)
            for number in range(first, thinning):  # in blocks, to keep no more than is returned
                state, positions, info = sampler.run(state, num_steps, generator)
                # every thinning-th position of the whole run: the phase within a block depends on its number
                block = positions[..., thinning - 1 - (number * num_steps) % thinning :: thinning, :, :]
                blocks.append(block if thinning == 1 else block.clone())  # a view would keep all positions
                del positions, block  # the positions of all draws are large
                evaluations += float(info.num_evaluations.to(torch.float64).mean())
                bar.update(num_steps)
            positions = torch.cat(blocks, dim=-3) if len(blocks) > 1 else blocks[0]
            del blocks
            if isinstance(sampler, IndependenceSampler) and num_steps % 2 == 0:
                kept = positions[..., 1::2, :, :].clone()
            # Chains one after another, each in time order, as they are returned.
            positions = positions.transpose(-3, -2).contiguous()
            rows, latent = sampler.rows(positions, generator), sampler.latent(positions)
            del positions
            values = functional(rows.transpose(-3, -2))
            r_hat, bulk = diagnose(values)
            autocorrelation_time = (settings.num_draws / bulk).clamp(1, max(settings.num_draws / wanted, 1))
            allowed = _allowed_r_hat(num_steps, num_chains, autocorrelation_time)
            flat_values = values.flatten(-3, -2)
            constant = flat_values.amax(-2) == flat_values.amin(-2)  # nothing to compare: R-hat is NaN by definition
            good = bool(((r_hat <= allowed) | constant).all()) and bool((bulk >= wanted).all())
            if good or 2 * thinning > settings.max_thinning:
                break
            thinning *= 2
            del rows, latent, values
    if not good:
        other = "" if name == "reflective" else ', or use DrawSettings(sampler="reflective")'
        warnings.warn(
            f"{settings.num_draws} draws of {distribution.num_rows} rows by the {name} sampler are poor: the least "
            f"effective size is {float(bulk.min()):.0f} (asked for: {wanted:.0f}), the largest R-hat "
            f"{float(r_hat.max()):.3f} (limit: {float(allowed.min()):.3f}), after thinning by {thinning}. Raise "
            f"max_thinning or num_draws{other}.",
            PoorDrawsWarning,
            stacklevel=2,
        )

    return Draws(
        rows=rows.flatten(-3, -2),
        latent=None if latent is None else latent.flatten(-3, -2).contiguous(),  # a view would keep all coordinates
        r_hat=r_hat,
        effective_size=bulk,
        functionals=values,
        num_evaluations=evaluations / (thinning * num_steps),
        thinning=thinning,
        num_chains=num_chains,
        sampler=name,
    )


def _draw_around_sites(
    distribution: TruncatedNormal,
    replaced: Tensor,
    settings: DrawSettings,
    generator: torch.Generator,
    approximation: ExpectationPropagation,
    previous: Draws | None,
) -> Draws:
    """Draw the other rows given the sites of those that are replaced, and these given the others."""
    conditioned = SiteConditioned(as_double(distribution), approximation, replaced)
    if previous is not None:
        kept = ~replaced[: previous.rows.shape[-1]]
        previous = replace(previous, rows=previous.rows[..., kept], latent=None)
    rest = draw(conditioned.rest, settings, generator, previous=previous)
    latent = rest.latent
    if distribution.prior.is_low_rank and latent is None:  # no more rows are left than coordinates
        latent = conditioned.latent_given_rest(rest.rows, generator)
    rows = conditioned.complete(rest.rows, latent, generator)
    if latent is not None:
        latent = conditioned.given.before(latent).to(distribution.mean)
    if rest.r_hat.shape[-1] == 0:  # independent draws
        one = rest.r_hat.new_ones(*rest.r_hat.shape[:-1], 1)
        many = rest.num_draws * one
        rest = replace(rest, r_hat=one, effective_size=many, sampler="independent")
    return replace(rest, rows=rows.to(distribution.mean), latent=latent)


def _thinning_of_proposals(sampler: IndependenceSampler) -> int:
    """Several proposals for each draw where they are cheap."""
    return min(max(int(CHEAP_PROPOSALS / sampler.cost), 1), PROPOSALS_PER_DRAW)


def _make_sampler(name: str, distribution: TruncatedNormal, approximation: ExpectationPropagation | None) -> Sampler:
    if approximation is not None:
        return WITH_APPROXIMATION[name](distribution, approximation)
    if name == "reflective":
        return ReflectiveEllipticalSliceSampler(distribution)
    return LinearEllipticalSliceSampler(distribution)


def _functionals(distribution: TruncatedNormal) -> Callable[[Tensor], Tensor]:
    """A map from rows, `batch_shape x num_steps x num_chains x m`, to the functionals watched, `... x k`.

    These are expectations given the rows, as posteriors average Gaussians given the rows. Latent coordinates would have
    fresh noise in every draw, which hides slow chains.
    """
    mean, watched = distribution.mean[..., None, None, :], distribution.noisy_prior.expectations()

    def of_rows(rows: Tensor) -> Tensor:
        num_steps = max(1, MAX_ENTRIES * rows.shape[-3] // rows.numel())
        parts = [watched((part - mean).flatten(-3, -2)) for part in rows.split(num_steps, dim=-3)]
        return torch.cat(parts, dim=-2).unflatten(-2, rows.shape[-3:-1])

    return of_rows


def _allowed_r_hat(num_steps: int, num_chains: int, autocorrelation_time: Tensor) -> Tensor:
    r"""`R_HAT_LIMIT`, or the largest R-hat over all functionals that good draws reach by chance, if that is more.

    With `M` half-chains of `n` independent draws, the ratio of between- to within-chain variance is about a
    chi-squared variable over its `M - 1` degrees of freedom, and R-hat squared is `1 + (ratio - 1) / n`. The ratio is
    larger by the autocorrelation time, though chains agree; that is allowed for where chains are short and R-hat is
    mostly chance.

    Args:
        num_steps: The length of the chains.
        num_chains: Their number.
        autocorrelation_time: Of every functional, `... x k`, at most the one that the settings allow.
    """
    degrees, n = 2 * num_chains - 1, max(num_steps // 2, 1)
    # quantile at 1 - 0.001 / k of the chi-squared, by the cube-root approximation of Wilson and Hilferty; two
    # rank normalisations (bulk and folded) are maximised over
    level = 1 - 0.001 / (2 * max(autocorrelation_time.shape[-1], 1))
    z = float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))
    ratio = (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3
    factor = autocorrelation_time if num_steps <= SHORT_CHAIN else torch.ones_like(autocorrelation_time)
    return (1 + (ratio * factor - 1).clamp(min=0) / n).sqrt().clamp(min=R_HAT_LIMIT)

r"""Simulation-based calibration: is the truth where the posterior says, for every kind of observation and for pairs?

The latent function is drawn from its prior, the data from how each kind comes about, and the posterior is asked for its
cdf at the truth ([Talts2018validating]_). Hyperparameters are fixed. Whatever the data, this value is uniform if the
posterior is right, and so it is given any function of the data ([Modrak2023simulation]_). Statistics:

- `ranks`: a chi-square test of ten equal bins, for each of the functionals watched; the least p-value, times their
  number;
- `spread`: with `z` the normal quantile of the cdf value, the mean of `z^2 - 1` over replicates, in standard errors:
  above zero where posteriors are too narrow;
- `shrinkage`: the mean of `z` times the posterior mean's distance from the prior's in posterior standard deviations, in
  standard errors: above zero where posteriors are too close to the prior;
- `moments`: the p-value of the last two together, by Hotelling's test.

The functionals watched are values at points with data, at one without, and differences; with slopes, small steps.
Those of one replicate depend on each other, so that spread and shrinkage are averaged over them first, and replicates
are what is counted.

.. [Talts2018validating] S. Talts, M. Betancourt, D. Simpson, A. Vehtari, A. Gelman. Validating Bayesian inference
   algorithms with simulation-based calibration. arXiv 1804.06788, 2018.
.. [Modrak2023simulation] M. Modrák, A. H. Moon, S. Kim, P. Bürkner, N. Huurre, K. Faltejsková, A. Gelman, A. Vehtari.
   Simulation-based calibration checking for Bayesian computation: the choice of test quantities shapes sensitivity.
   Bayesian Analysis, 2023.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import gpytorch
import torch
from scipy.stats import chisquare
from scipy.stats import f as fisher
from torch import Tensor

from benchmarks._kinds import Noise, likelihood_of, rbf_kernel
from benchmarks._reporting import Table, add_common_arguments, environment, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import PoorDrawsWarning
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    LabelPreference,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
)
from botorch_skewgp.truncated.draws import DrawSettings

OUTPUTSCALE, LENGTHSCALE = 2.0, 0.12
POINTS = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
ELSEWHERE = torch.tensor([[0.5]], dtype=torch.float64)
STEP = 0.03  # from a point to where a slope has led
NUM_LABELS = 3
TRUTH = Noise(  # of the data; a model believes these variances, or a multiple of them
    numbers=0.5, items=0.5, validity=0.5, affine=0.8, classes=0.5, slopes=40.0, cutpoints=(-1.0, 0.2, 1.0),
    tie_width=0.6, threshold=0.3,
)  # fmt: skip
BINS = 10
LEAST_P_VALUE = 1e-4  # of ranks and of moments: a right posterior is refused once in 5,000 cells
REPLICATES_OF_PAIRS = 50


# How each kind of observation comes about


def _index(size: int, generator: torch.Generator) -> Tensor:
    return torch.randint(len(POINTS), (size,), generator=generator)


def _read(f: Tensor, index: Tensor, variance: float, generator: torch.Generator) -> Tensor:
    values = f[index]
    return values + math.sqrt(variance) * torch.randn(values.shape, dtype=f.dtype, generator=generator)


def _groups(size: int, k: int, generator: torch.Generator) -> Tensor:
    """Sets of `k` different points."""
    return torch.stack([torch.randperm(len(POINTS), generator=generator)[:k] for _ in range(size)])


def numbers(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Numbers."""
    index = _index(size, generator)
    return [Numeric(_read(f, index, p.numbers, generator), index=index)]


def labels(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Yes or no."""
    index = _index(size, generator)
    return [Binary(_read(f, index, p.labels, generator) > 0, index=index)]


def grades(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Grades."""
    index = _index(size, generator)
    values = _read(f, index, p.grades, generator)
    edges = torch.tensor(TRUTH.cutpoints, dtype=f.dtype)
    return [Ordinal((values.unsqueeze(-1) > edges).sum(-1), len(TRUTH.cutpoints) + 1, index=index)]


def censored(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Readings of a scale that shows whole units from -1 to 1, and only whether it is beyond them."""
    index = _index(size, generator)
    values = _read(f, index, p.numbers, generator)
    lower, upper = values.floor(), values.floor() + 1
    lower, upper = (
        lower.where(values > -1, values.new_tensor(-torch.inf)),
        upper.where(values > -1, values.new_tensor(-1.0)),
    )
    lower, upper = (
        lower.where(values < 1, values.new_tensor(1.0)),
        upper.where(values < 1, values.new_tensor(torch.inf)),
    )
    return [Censored(lower, upper, index=index)]


def duels(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Duels that have a winner."""
    pairs = _groups(size, 2, generator)
    order = _read(f, pairs, p.items, generator).argsort(-1, descending=True)
    return [Preference(pairs.gather(-1, order))]


def duels_with_ties(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Duels that may end in a tie."""
    pairs = _groups(size, 2, generator)
    values, order = _read(f, pairs, p.items, generator).sort(-1, descending=True)
    tied = values[:, 0] - values[:, 1] <= TRUTH.tie_width
    won = Preference(pairs.gather(-1, order)[~tied])
    return [entry for entry in (won, Tie(pairs[tied])) if len(entry.pairs)]


def choices(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """The best of three."""
    options = _groups(size, 3, generator)
    order = _read(f, options, p.items, generator).argsort(-1, descending=True)
    return [Choice(options.gather(-1, order))]


def rankings(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Four points in order."""
    items = _groups(size, 4, generator)
    order = _read(f, items, p.items, generator).argsort(-1, descending=True)
    return [Ranking(items.gather(-1, order))]


def validity(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Trials that work or fail."""
    index = _index(size, generator)
    return [Validity(_read(f, index, p.validity, generator) > TRUTH.threshold, index=index)]


def slopes(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Whether the function rises or falls; `f` holds its slopes."""
    index = _index(size, generator)
    return [Slope(0, torch.where(_read(f, index, p.slopes, generator) > 0, 1, -1), index=index)]


def affine(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Weighted sums with correlated noise, each known to a unit."""
    weight = torch.randn(size, len(POINTS), dtype=f.dtype, generator=generator) / 2
    root = (
        torch.eye(size, dtype=f.dtype) + 0.5 * torch.randn(size, size, dtype=f.dtype, generator=generator) / size**0.5
    )
    noise = root @ root.mT
    values = weight @ f + math.sqrt(p.affine) * root @ torch.randn(size, dtype=f.dtype, generator=generator)
    return [AffineProbit(weight, torch.zeros_like(values), noise, values.floor(), values.floor() + 1)]


def classes(f: Tensor, p: Noise, size: int, generator: torch.Generator) -> list[Observation]:
    """Class labels; `f` has one column for each."""
    index = _index(size, generator)
    return [LabelPreference.from_classes(_read(f, index, p.classes, generator).argmax(-1), NUM_LABELS, index=index)]


Simulator = Callable[[Tensor, Noise, int, torch.Generator], list[Observation]]
# with numbers of observations that let the posterior show a noise variance wrong by a third
KINDS: dict[str, tuple[Simulator, int]] = {
    "Numeric": (numbers, 60),
    "Binary": (labels, 90),
    "Ordinal": (grades, 80),
    "Censored": (censored, 80),
    "Preference": (duels, 90),
    "Preference, Tie": (duels_with_ties, 80),
    "Choice": (choices, 50),
    "Ranking": (rankings, 24),
    "Validity": (validity, 90),
    "Slope": (slopes, 90),
    "AffineProbit": (affine, 100),
    "LabelPreference": (classes, 70),
}
# a noise variance wrong by a third, in the direction in which this many data show it first
WRONG = {name: 4 / 3 if name == "Numeric" else 2 / 3 for name in KINDS}
# simulations that refuse such a noise with p-values of about 1e-5 or less
REPLICATES = dict.fromkeys(KINDS, 90) | {"Numeric": 120, "Censored": 100, "Preference": 100, "AffineProbit": 120}
REPLICATES |= {"Ranking": 60, "Slope": 60, "Validity": 70}
PAIRS = [
    *(("Numeric", name) for name in KINDS if name not in ("Numeric", "LabelPreference")),
    *(("Preference", name) for name in ("Binary", "Ordinal", "Censored", "Choice", "Ranking", "Validity")),
    ("Validity", "Censored"),
    ("Validity", "Ordinal"),
    ("Binary", "Ordinal"),
    ("Choice", "Ranking"),
]


def prior_draw(X: Tensor, columns: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The function at points and its slopes there, each `points x columns`, from the prior covariance written out."""
    step = X - X.mT
    K = OUTPUTSCALE * torch.exp(-0.5 * step.square() / LENGTHSCALE**2)
    cross = K * step / LENGTHSCALE**2  # of values with slopes
    slopes = K * (1 / LENGTHSCALE**2 - step.square() / LENGTHSCALE**4)
    joint = torch.cat([torch.cat([K, cross], dim=1), torch.cat([cross.mT, slopes], dim=1)])
    eigenvalues, vectors = torch.linalg.eigh(joint)
    root = vectors * eigenvalues.clamp(min=0).sqrt()  # rounding only
    draw = root @ torch.randn(len(joint), columns, dtype=X.dtype, generator=generator)
    return draw[: len(X)], draw[len(X) :]


def model_of(observations: list[Observation], p: Noise, with_ties: bool, seed: int) -> SkewGP:
    """The model of simulated data."""
    # an affine observation brings its noise with it
    observations = [
        entry
        if not isinstance(entry, AffineProbit)
        else AffineProbit(entry.weight, entry.bias, p.affine * entry.covariance, entry.lower, entry.upper)
        for entry in observations
    ]
    return SkewGP(
        POINTS,
        observations,
        likelihood=likelihood_of(
            replace(p, ties_allowed=with_ties),
            NUM_LABELS if isinstance(observations[0], LabelPreference) else 1,
            {type(entry) for entry in observations},
        ),
        covar_module=rbf_kernel(OUTPUTSCALE, LENGTHSCALE),
        mean_module=gpytorch.means.ZeroMean(),
        draw_settings=DrawSettings(num_draws=256, seed=seed),
    ).eval()


def functionals(num_outputs: int, near: bool) -> Tensor:
    """Values at all points, then the differences of neighbours; of several outputs their differences at all points;
    `near` points, each a step further, less their own.
    """
    if near:
        one = torch.eye(len(POINTS), dtype=torch.float64)
        return torch.cat([-one, one], dim=1)
    eye = torch.eye(len(POINTS) + len(ELSEWHERE), dtype=torch.float64)
    if num_outputs == 1:
        return torch.cat([eye, eye[1:] - eye[:-1]])
    each = torch.eye(num_outputs, dtype=eye.dtype)
    return torch.kron(eye, each - each.roll(1, 0))


@torch.no_grad()
def normal_scores(names: tuple[str, ...], replicate: int, noises: list[Noise]) -> Tensor:
    """Normal quantiles of the posterior cdf at the truth, and posterior means in posterior standard deviations.

    Args:
        names: Of the kinds that the data are of.
        replicate: The number of the replicate, which seeds the simulation.
        noises: What models believe; the data come with `TRUTH`.

    Returns:
        A `2 x len(noises) x functionals` tensor.
    """
    generator = torch.Generator().manual_seed(replicate)
    X = torch.cat([POINTS, POINTS + STEP if "Slope" in names else ELSEWHERE])
    columns = NUM_LABELS if names == ("LabelPreference",) else 1
    f, f_slopes = prior_draw(X, columns, generator)
    values = f[: len(POINTS)] if columns > 1 else f[: len(POINTS), 0]
    observations: list[Observation] = []
    for name in names:
        simulate, size = KINDS[name]
        read = f_slopes[: len(POINTS), 0] if name == "Slope" else values
        observations += simulate(read, TRUTH, size // len(names), generator)
    weight = functionals(columns, near="Slope" in names)
    truth = weight @ f.flatten()
    eye = torch.eye(len(truth), dtype=truth.dtype)
    found = []
    for noise in noises:
        model = model_of(observations, noise, with_ties=any("Tie" in name for name in names), seed=replicate)
        posterior = model.posterior(X).affine(weight)
        distance = posterior.mean / posterior.variance.sqrt()  # the prior's mean is zero
        below = posterior.cdf(truth.unsqueeze(-1)).flatten()
        above = posterior.affine(-eye).cdf(-truth.unsqueeze(-1)).flatten()  # with its digits where below is nearly one
        z = torch.special.ndtri(below).where(below < above, -torch.special.ndtri(above))
        found.append(torch.stack([z, distance.flatten()]))
    return torch.stack(found, dim=1)


@dataclass(frozen=True)
class Calibration:
    """The statistics of a cell; see the module."""

    ranks: float
    moments: float
    spread: float
    shrinkage: float

    @property
    def calibrated(self) -> bool:
        """Whether both p-values are large enough; NaN is not."""
        return self.ranks > LEAST_P_VALUE and self.moments > LEAST_P_VALUE


def statistics(z: Tensor, distance: Tensor) -> Calibration:
    """The statistics of `replicates x functionals` normal scores and distances; NaN where a score is infinite."""
    cdf = torch.special.ndtr(z)
    p_values = [float(chisquare(torch.histc(column, BINS, 0, 1).numpy()).pvalue) for column in cdf.mT]
    moments = torch.stack([z.square() - 1, z * distance], dim=-1).mean(1)
    mean, n = moments.mean(0), len(moments)
    errors = mean / (moments.std(0) / math.sqrt(n))
    hotelling = n * mean @ torch.linalg.solve(moments.mT.cov(), mean)
    p_value = float(fisher.sf(float(hotelling) * (n - 2) / (2 * (n - 1)), 2, n - 2))
    return Calibration(min(1.0, len(p_values) * min(p_values)), p_value, float(errors[0]), float(errors[1]))


def calibrate(names: tuple[str, ...], replicates: int, factors: tuple[float, ...] = (1.0,)) -> list[Calibration]:
    """The statistics of a cell under models that believe noise variances multiplied by each of the factors.

    Args:
        names: Of the kinds that the data are of.
        replicates: How often to simulate.
        factors: Of the noise variances; 1 for a right model.
    """
    noises = [TRUTH.times(factor) for factor in factors]
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=PoorDrawsWarning)
        found = torch.stack([normal_scores(names, replicate, noises) for replicate in range(replicates)])
    return [statistics(found[:, 0, k], found[:, 1, k]) for k in range(len(factors))]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--replicates", type=int, default=120, help="simulations of a kind")
    parser.add_argument("--replicates-of-pairs", type=int, default=REPLICATES_OF_PAIRS, help="simulations of a pair")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "calibration", ("observations", "replicates", "noise", *Calibration.__dataclass_fields__, "calibrated")
    )
    table.notes += [environment(), "noise: what the model believes, in variances of the truth"]
    table.notes.append("ranks, moments: p-values; spread, shrinkage: in standard errors")
    for names in [*((name,) for name in KINDS), *PAIRS]:
        replicates = options.replicates if len(names) == 1 else options.replicates_of_pairs
        factors = (1.0, WRONG[names[0]]) if len(names) == 1 else (1.0,)
        cell = " + ".join(names)
        for factor, found in zip(factors, calibrate(names, 20 if options.quick else replicates, factors), strict=True):
            table.add(
                observations=cell, replicates=replicates, noise=factor, **vars(found), calibrated=found.calibrated
            )
            say(f"{cell}, noise {factor:.2f}: {found}")
    publish([table], folder)

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

`judges_calibration`: of several judges, with hyperparameters that are known or fitted; where the true difference of two
new items' utilities ranks among its draws, for what all share, for a judge, and for his taste in the first input; and
the error of the predicted share of the population that would choose one over the other.

.. [Talts2018validating] S. Talts, M. Betancourt, D. Simpson, A. Vehtari, A. Gelman. Validating Bayesian inference
   algorithms with simulation-based calibration. arXiv 1804.06788, 2018.
.. [Modrak2023simulation] M. Modrák, A. H. Moon, S. Kim, P. Bürkner, N. Huurre, K. Faltejsková, A. Gelman, A. Vehtari.
   Simulation-based calibration checking for Bayesian computation: the choice of test quantities shapes sensitivity.
   Bayesian Analysis, 2023.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import torch
from scipy.stats import chisquare
from scipy.stats import f as fisher
from torch import Tensor

from benchmarks._kinds import Noise, likelihood_of, rbf_kernel
from benchmarks._race import Cell, Group, Names, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import PoorDrawsWarning
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models import default_covar_module
from botorch_skewgp.models.defaults import default_judge_covar_module
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


# How each kind of observation comes about: from a function at the points, or its slopes, of classes a column for each

Simulator = Callable[[Tensor, int, torch.Generator], list[Observation]]


def _read(f: Tensor, index: Tensor, variance: float, generator: torch.Generator) -> Tensor:
    values = f[index]
    return values + math.sqrt(variance) * torch.randn(values.shape, dtype=f.dtype, generator=generator)


def _at_points(noise: str, make: Callable[[Tensor, Tensor], Observation]) -> Simulator:
    """What is made of noisy values and the numbers of their points."""

    def simulate(f: Tensor, size: int, generator: torch.Generator) -> list[Observation]:
        index = torch.randint(len(POINTS), (size,), generator=generator)
        return [make(_read(f, index, getattr(TRUTH, noise), generator), index)]

    return simulate


def _of_items(k: int, make: Callable[[Tensor, Tensor], list[Observation]]) -> Simulator:
    """What is made of `k` different points, the best first, and of their values."""

    def simulate(f: Tensor, size: int, generator: torch.Generator) -> list[Observation]:
        items = torch.stack([torch.randperm(len(POINTS), generator=generator)[:k] for _ in range(size)])
        values, order = _read(f, items, TRUTH.items, generator).sort(-1, descending=True)
        return make(items.gather(-1, order), values)

    return simulate


def _censored(values: Tensor, index: Tensor) -> Observation:
    """Readings of a scale that shows whole units from -1 to 1, and only whether it is beyond them."""
    inside = (values > -1) & (values < 1)
    lower = torch.where(inside, values.floor(), torch.where(values < 0, -torch.inf, 1.0))
    upper = torch.where(inside, values.floor() + 1, torch.where(values < 0, -1.0, torch.inf))
    return Censored(lower, upper, index=index)


def _duels_with_ties(pairs: Tensor, values: Tensor) -> list[Observation]:
    tied = values[:, 0] - values[:, 1] <= TRUTH.tie_width
    return [entry for entry in (Preference(pairs[~tied]), Tie(pairs[tied])) if len(entry.pairs)]


def _affine(f: Tensor, size: int, generator: torch.Generator) -> list[Observation]:
    """Weighted sums with correlated noise, each known to a unit."""
    kind: dict[str, Any] = {"dtype": f.dtype, "generator": generator}
    weight = torch.randn(size, len(POINTS), **kind) / 2
    root = torch.eye(size, dtype=f.dtype) + 0.5 * torch.randn(size, size, **kind) / size**0.5
    values = weight @ f + math.sqrt(TRUTH.affine) * root @ torch.randn(size, **kind)
    return [AffineProbit(weight, torch.zeros_like(values), root @ root.mT, values.floor(), values.floor() + 1)]


def _grades(values: Tensor, index: Tensor) -> Observation:
    edges = torch.tensor(TRUTH.cutpoints, dtype=values.dtype)
    return Ordinal((values.unsqueeze(-1) > edges).sum(-1), len(edges) + 1, index=index)


def _classes(values: Tensor, index: Tensor) -> Observation:
    return LabelPreference.from_classes(values.argmax(-1), NUM_LABELS, index=index)


# with numbers of observations that let the posterior show a noise variance wrong by a third
KINDS: dict[str, tuple[Simulator, int]] = {
    "Numeric": (_at_points("numbers", lambda values, index: Numeric(values, index=index)), 60),
    "Binary": (_at_points("labels", lambda values, index: Binary(values > 0, index=index)), 90),
    "Ordinal": (_at_points("grades", _grades), 80),
    "Censored": (_at_points("numbers", _censored), 80),
    "Preference": (_of_items(2, lambda pairs, _: [Preference(pairs)]), 90),
    "Preference, Tie": (_of_items(2, _duels_with_ties), 80),
    "Choice": (_of_items(3, lambda options, _: [Choice(options)]), 50),
    "Ranking": (_of_items(4, lambda items, _: [Ranking(items)]), 24),
    "Validity": (_at_points("validity", lambda values, index: Validity(values > TRUTH.threshold, index=index)), 90),
    "Slope": (_at_points("slopes", lambda values, index: Slope(0, torch.where(values > 0, 1, -1), index=index)), 90),
    "AffineProbit": (_affine, 100),
    "LabelPreference": (_at_points("classes", _classes), 70),
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
        replace(entry, covariance=p.affine * entry.covariance) if isinstance(entry, AffineProbit) else entry
        for entry in observations
    ]
    num_labels = NUM_LABELS if isinstance(observations[0], LabelPreference) else 1
    return SkewGP(
        POINTS,
        observations,
        likelihood=likelihood_of(replace(p, ties_allowed=with_ties), num_labels),
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

    Data of the named kinds come with `TRUTH`, models believe the noises; `2 x len(noises) x functionals`.
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
        observations += simulate(read, size // len(names), generator)
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
    """The statistics of data of these kinds, under models that believe variances multiplied by each of the factors."""
    noises = [TRUTH.times(factor) for factor in factors]
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=PoorDrawsWarning)
        found = torch.stack([normal_scores(names, replicate, noises) for replicate in range(replicates)])
    return [statistics(found[:, 0, k], found[:, 1, k]) for k in range(len(factors))]


def _run(observations: str, replicates: int, seed: int) -> list[Names]:
    names = tuple(observations.split(" + "))
    factors = (1.0, WRONG[observations]) if len(names) == 1 else (1.0,)
    cells = zip(factors, calibrate(names, replicates, factors), strict=True)
    return [{"noise": factor, **vars(found), "calibrated": found.calibrated} for factor, found in cells]


# Several judges

NUM_ITEMS, DIM, EACH = 24, 2, 16
NUM_RANKED = 99  # draws that a true value is ranked among
SHARE = "share of the population"


def _panel(hyperparameters: str, value: str, seed: int) -> list[Names]:
    """Ranks from 0 to 1 of true differences, and the error of a share, for one panel."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(NUM_ITEMS + 3, DIM, dtype=torch.double, generator=generator)
    X[-1] = X[-2] + torch.tensor([0.2, 0.0])  # a step along the first input
    judge = torch.arange(5).repeat_interleave(EACH)
    shown = torch.stack([torch.randperm(NUM_ITEMS, generator=generator)[:2] for _ in judge])
    kernels = [make(DIM, [Preference(shown)]) for make in (default_covar_module, default_judge_covar_module)]
    jitter = 1e-8 * torch.eye(len(X), dtype=torch.double)
    with torch.no_grad():
        K, own = (kernel(X).to_dense() + jitter for kernel in kernels)
        normal = torch.randn(6, len(X), 1, dtype=torch.double, generator=generator)
        shared = (torch.linalg.cholesky(K) @ normal[0]).squeeze(-1)
        utility = shared + (torch.linalg.cholesky(own) @ normal[1:]).squeeze(-1)
        said = utility[judge].gather(-1, shown) + torch.randn(len(judge), 2, dtype=torch.double, generator=generator)
        pairs = shown.gather(-1, said.argsort(-1, descending=True))
        between = own[-3, -3] + own[-2, -2] - 2 * own[-3, -2]
    model = SkewGP(
        X[:NUM_ITEMS], Preference(pairs, judge=judge), covar_module=kernels[0], judge_covar_module=kernels[1]
    )
    if hyperparameters == "fitted":
        fit_skew_gp(model)
    rows: list[Names] = []
    with torch.no_grad():
        for name, who, values, first, second in (
            (value, None, shared, -3, -2),
            ("a judge's utility", 0, utility[0], -3, -2),
            ("a judge's taste", 0, utility[0], -1, -2),
        ):
            draws = model.posterior(X[[first, second]], judge=who).rsample(torch.Size([NUM_RANKED])).squeeze(-1)
            below = (draws[:, 0] - draws[:, 1] < values[first] - values[second]).double()
            rank = (below.sum() + torch.rand(1, generator=generator)) / (NUM_RANKED + 1)
            rows.append({"value": name, "rank": float(rank)})
        share = torch.special.ndtr((shared[-3] - shared[-2]) / (2 + between).sqrt())
        error = float(model.predictive(X[[-3, -2]], judge="new").probs - share)
    return [*rows, {"value": SHARE, "error": error}]


def _of_panels(runs: Group) -> dict[str, Cell]:
    if runs.names["value"] == SHARE:
        return {"panels": len(runs), "error": runs.mean("error"), "standard_error": runs.error("error")}
    rank = runs.values("rank")
    counts = torch.bincount((rank * BINS).long().clamp(max=BINS - 1), minlength=BINS)
    cover = {f"cover_{level}": float(((rank - 0.5).abs() <= level / 200).double().mean()) for level in (50, 90)}
    p_value = float(chisquare(counts.numpy()).pvalue)
    return {"panels": len(runs), "mean_rank": float(rank.mean()), **cover, "uniform_p": p_value}


CASES: list[dict[str, Cell]] = [
    *({"observations": name, "replicates": 120} for name in KINDS),
    *({"observations": " + ".join(names), "replicates": REPLICATES_OF_PAIRS} for names in PAIRS),
]
RACES = (
    Race("calibration", CASES, [{"noise": 1.0}], range(1), lambda noise, **names: _run(**names),
         (*Calibration.__dataclass_fields__, "calibrated"),
         notes=["noise: what the model believes, in variances of the truth",
                "ranks, moments: p-values; spread, shrinkage: in standard errors"]),
    Race("judges_calibration", grid(hyperparameters=("known", "fitted")), grid(value=["what all share"]), range(100),
         _panel, ("rank", "error"), _of_panels,
         [f"ranks from 0 to 1 among {NUM_RANKED} draws; uniform_p by {BINS} bins; errors of shares"]),
)  # fmt: skip

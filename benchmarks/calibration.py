r"""Simulation-based calibration: is the truth where the posterior says, for every kind of observation and for pairs?

If a posterior is right, its cdf at the truth is uniform ([Talts2018validating]_), given any function of the data too
([Modrak2023simulation]_). Functionals of one replicate depend on each other: their moments are averaged first.

.. [Talts2018validating] Talts and others. arXiv 1804.06788, 2018.
.. [Modrak2023simulation] Modrák and others. Bayesian Analysis, 2023.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import gpytorch
import torch
from scipy.stats import chisquare
from scipy.stats import f as fisher
from torch import Tensor

from benchmarks._observations import SIMULATORS, Noise, likelihood_of, rbf_kernel
from benchmarks._race import Cell, Names, Race
from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import PoorDrawsWarning
from botorch_skewgp.observations import AffineProbit, LabelPreference, Observation
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


# with numbers of observations that let the posterior show a noise variance wrong by a third
KINDS = {
    "Numeric": 60, "Binary": 90, "Ordinal": 80, "Censored": 80, "Preference": 90, "Preference, Tie": 80, "Choice": 50,
    "Ranking": 24, "Validity": 90, "Slope": 90, "AffineProbit": 100, "LabelPreference": 70,
}  # fmt: skip
# a noise variance wrong by a third, in the direction in which this many data show it first
WRONG = {name: 4 / 3 if name == "Numeric" else 2 / 3 for name in KINDS}
# simulations that refuse such a noise with p-values of about 1e-5 or less
REPLICATES = dict.fromkeys(KINDS, 90) | {"Numeric": 120, "Censored": 100, "Preference": 100, "AffineProbit": 120}
REPLICATES |= {"Ranking": 60, "Slope": 60, "Validity": 70}
PAIRS = [
    *(("Numeric", name) for name in KINDS if name not in ("Numeric", "LabelPreference")),
    *(("Preference", name) for name in ("Binary", "Ordinal", "Censored", "Choice", "Ranking", "Validity")),
    *(("Validity", "Censored"), ("Validity", "Ordinal"), ("Binary", "Ordinal"), ("Choice", "Ranking")),
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
    # an affine observation brings its noise with it
    observations = [
        replace(entry, covariance=p.affine * entry.covariance) if isinstance(entry, AffineProbit) else entry
        for entry in observations
    ]
    num_labels = NUM_LABELS if isinstance(observations[0], LabelPreference) else 1
    return SkewGP(
        POINTS, observations, likelihood=likelihood_of(replace(p, ties_allowed=with_ties), num_labels),
        covar_module=rbf_kernel(OUTPUTSCALE, LENGTHSCALE), mean_module=gpytorch.means.ZeroMean(),
        draw_settings=DrawSettings(num_draws=256, seed=seed),
    ).eval()  # fmt: skip


def functionals(num_outputs: int, near: bool) -> Tensor:
    """Values and differences of neighbours; of several outputs their differences; of `near` points the steps."""
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
    """Normal quantiles of cdfs at the truth, and means in standard deviations: `2 x noises x functionals`."""
    generator = torch.Generator().manual_seed(replicate)
    X = torch.cat([POINTS, POINTS + STEP if "Slope" in names else ELSEWHERE])
    columns = NUM_LABELS if names == ("LabelPreference",) else 1
    f, f_slopes = prior_draw(X, columns, generator)
    values = f[: len(POINTS)] if columns > 1 else f[: len(POINTS), 0]
    observations: list[Observation] = []
    for name in names:
        read = f_slopes[: len(POINTS), 0] if name == "Slope" else values
        observations += SIMULATORS[name](read, KINDS[name] // len(names), TRUTH, generator)
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
    """The statistics of a cell."""

    ranks: float  # the least p-value of chi-square tests of ten equal bins, one of each functional, times their number
    moments: float  # the p-value of the next two together, by Hotelling's test
    # With `z` the normal quantile of the cdf, the mean of `z^2 - 1` in standard errors: above 0 where posteriors are
    # too narrow; and that of `z` times the mean's distance from the prior's: above 0 where they stay too close to it.
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


CASES: list[dict[str, Cell]] = [
    *({"observations": name, "replicates": 120} for name in KINDS),
    *({"observations": " + ".join(names), "replicates": REPLICATES_OF_PAIRS} for names in PAIRS),
]
RACES = (
    Race("calibration", CASES, [{"noise": 1.0}], range(1), lambda noise, **names: _run(**names),
         (*Calibration.__dataclass_fields__, "calibrated"),
         notes=["noise: what the model believes, in variances of the truth",
                "ranks, moments: p-values; spread, shrinkage: in standard errors"]),
)  # fmt: skip

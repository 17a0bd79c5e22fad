r"""Default kernels and means, with the reason for each number, and the mean that is integrated over.

Inputs are in the unit cube. The latent function is measured in units of the noise of labels and comparisons, whose
variance likelihoods fix at 1 (see the likelihoods), or of standardised numbers.

.. [Hvarfner2024vanilla] C. Hvarfner, E. O. Hellsten, L. Nardi. Vanilla Bayesian optimization performs great in high
   dimensions. ICML 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Interval, Positive
from gpytorch.kernels import ConstantKernel, Kernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.models.inputs import as_sequence
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_count, as_number

# The latent function's variance, in units of that of the noise of labels and grades: a median of 10, and one in twenty
# beyond 120. A narrower prior makes the model doubt consistent labels; a much wider one overfits a few of them.
OUTPUTSCALE_LOCATION, OUTPUTSCALE_SPREAD = math.log(10.0), 1.5
# The same for comparisons alone, as the mode and the spread of its logarithm, which is what a fit finds. Of duels
# between random points a judge with ratio r gets a share of atan(r^-1/2) / pi wrong: one in 17 at the mode. Answers
# about new points hardly contradict each other, and so do not tell of a judge who errs: from a mode of 1,000, the fit
# trusts 40 of them, and searches where the wrong ones lead. A consistent judge's answers raise the scale on their own.
COMPARISON_OUTPUTSCALE, COMPARISON_OUTPUTSCALE_SPREAD = 30.0, 2.0
# What a user can say of a judge, likewise: that one answer in 220 is wrong, or one in ten.
JUDGES = {"consistent": (5000.0, 1.0), "noisy": (10.0, 1.0)}
# Lengthscales for comparisons alone: a median of 0.2 sqrt(dim), about the mode of the dimension-scaled prior, whose
# spread of sqrt(3) lets ten answers be explained by lengthscales of 0.03 or of 10; two thirds are within a factor of
# 1.6. Spreads of 0.4 to 0.6 have the best held-out density of duels, and it is the same for 0.15 to 0.25 sqrt(dim).
COMPARISON_LENGTHSCALE, COMPARISON_LENGTHSCALE_SPREAD = 0.2, 0.5
# Where there are numbers: two thirds within a factor of 2. Under the dimension-scaled prior a few numbers are taken for
# those of a function that is sure to be smooth. Labels and grades keep that prior: it predicts many inputs best.
ANCHORED_LENGTHSCALE, ANCHORED_LENGTHSCALE_SPREAD = 0.3, 0.7
# Failures alone have shorter lengthscales, by which what few of them say of the probability that a point is valid is
# true: under the dimension-scaled prior, all that lies between a few valid points is taken to be valid.
VALIDITY_LENGTHSCALE, VALIDITY_LENGTHSCALE_SPREAD = 0.2, 0.5
# Likewise a larger output scale, whose mode is about the variance of the constant mean: five valid points would else be
# explained by a constant that is high everywhere.
VALIDITY_OUTPUTSCALE_LOCATION = math.log(100.0)
# Bounds for the optimiser, as for BoTorch's lengthscales: long steps neither underflow nor diverge. The function's
# standard deviation stays between a hundredth of the noise's and a hundred times it, as nearly all of the prior does.
OUTPUTSCALE_BOUNDS = (1e-4, 1e4)
LEAST_LENGTHSCALE = 0.025  # BoTorch's, where they are not fitted as logarithms
# Of the prior of tastes. With a scale of 1, tastes for prices worth 38 times the noise were taken for smooth parts.
COMPARISON_TASTES = 10.0
OWN_OUTPUTSCALE, OWN_OUTPUTSCALE_SPREAD = 1.0, 1.5  # of the smooth part, in units of the noise: mode, spread of its log
MEAN_SPREAD = 10.0**0.5  # that of the latent function at the median of its variance's prior


def default_covar_module(
    dim: int,
    observations: Observation | Sequence[Observation] = (),
    judge: Literal["consistent", "noisy"] | None = None,
) -> ScaleKernel:
    r"""A scaled RBF kernel.

    Lengthscales for labels have the dimension-scaled prior of [Hvarfner2024vanilla]_, BoTorch's; where there
    are numbers it is narrower, around the same mode. For failures alone (`Validity`) it is narrower still, and the
    output scale's prior is around larger values. For comparisons alone (duels, ties, choices, rankings) lengthscales
    have that narrow prior too, and the output scale, which is measured in units of the judge's noise, has a wide one,
    unless it is said what is known of the judge. Both are then fitted as logarithms.

    Example:
        >>> covar_module = default_covar_module(train_X.shape[-1], [Preference(pairs)], judge="consistent")
        >>> model = SkewGP(train_X, Preference(pairs), covar_module=covar_module)

    Args:
        dim: The number of inputs, each with a lengthscale of its own.
        observations: The observations the model will be built from.
        judge: Prior knowledge of the judge who compares: `"consistent"` if answers would hardly change when asked
            again, as those of a computation (about one in 220 duels between random points is wrong), `"noisy"` if many
            would (one in ten).

    Raises:
        InputDataError: If `judge` is something else, or `dim` is no positive integer.
        UnsupportedError: If a judge is given and there are other observations than comparisons.
    """
    dim = as_count(dim, "dim", least=1)
    observations = _telling(observations)
    comparisons = _compare(observations)
    if judge is not None and judge not in [*JUDGES]:
        raise InputDataError(f"judge must be 'consistent', 'noisy' or None; got {judge!r}.")
    if judge is not None and not comparisons:
        raise UnsupportedError("judge is about comparisons; leave it out for other observations.")
    if comparisons:
        mode, spread = JUDGES.get(str(judge), (COMPARISON_OUTPUTSCALE, COMPARISON_OUTPUTSCALE_SPREAD))
        return _comparison_covar_module(dim, mode, spread)
    vanilla = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
    lengthscale_prior, lengthscale_constraint = vanilla.lengthscale_prior, vanilla.raw_lengthscale_constraint
    failures = len(observations) > 0 and all(entry.tells_validity for entry in observations)
    if failures or any(entry.anchors_scale for entry in observations):
        fraction, spread = (
            (VALIDITY_LENGTHSCALE, VALIDITY_LENGTHSCALE_SPREAD)
            if failures
            else (ANCHORED_LENGTHSCALE, ANCHORED_LENGTHSCALE_SPREAD)
        )
        median = fraction * math.sqrt(dim)
        lengthscale_prior = LogNormalPrior(math.log(median), spread)
        lengthscale_constraint = GreaterThan(LEAST_LENGTHSCALE, transform=None, initial_value=median)
    base_kernel = CheckedRBFKernel(
        ard_num_dims=dim, lengthscale_prior=lengthscale_prior, lengthscale_constraint=lengthscale_constraint
    )
    covar_module = CheckedScaleKernel(
        base_kernel,
        outputscale_prior=LogNormalPrior(
            loc=VALIDITY_OUTPUTSCALE_LOCATION if failures else OUTPUTSCALE_LOCATION, scale=OUTPUTSCALE_SPREAD
        ),
        outputscale_constraint=Interval(*OUTPUTSCALE_BOUNDS, transform=None),
    )
    covar_module.outputscale = covar_module.outputscale_prior.mode
    return covar_module


def _telling(observations: Observation | Sequence[Observation]) -> Sequence[Observation]:
    """The observations that defaults are chosen by: all but slopes, unless there are no others."""
    observations = as_sequence(observations)
    return [entry for entry in observations if entry.tells_values] or observations


def _compare(observations: Sequence[Observation]) -> bool:
    """Whether there are comparisons alone."""
    return len(observations) > 0 and all(entry.points_per_observation > 1 for entry in observations)


def _comparison_covar_module(dim: int, mode: float, spread: float) -> ScaleKernel:
    """The kernel for comparisons alone; an optimiser sees logarithms, as it would hardly move a scale of 1,000."""
    median = COMPARISON_LENGTHSCALE * math.sqrt(dim)
    base_kernel = CheckedRBFKernel(
        ard_num_dims=dim,
        lengthscale_prior=LogNormalPrior(math.log(median), COMPARISON_LENGTHSCALE_SPREAD),
        lengthscale_constraint=as_logarithm(),
    )
    base_kernel.lengthscale = median
    # as a function of the scale's logarithm, the density of this prior is a normal one's around that of the mode
    prior = LogNormalPrior(math.log(mode) + spread**2, spread)
    covar_module = CheckedScaleKernel(base_kernel, outputscale_prior=prior, outputscale_constraint=as_logarithm())
    covar_module.outputscale = mode
    return covar_module


def default_judge_covar_module(dim: int, observations: Observation | Sequence[Observation] = ()) -> Kernel:
    r"""The kernel of a judge's own part: linear tastes, plus a smooth part.

    Tastes have a full covariance where all answers are comparisons; where grades or labels tell a level too, a diagonal
    one, as a full one that is fitted to a few grades of each judge predicts worse (`docs/judges.md`).

    Args:
        dim: The number of inputs.
        observations: The model's observations. With comparisons alone, utilities are larger in units of the noise.

    Raises:
        InputDataError: If `dim` is no positive integer.
    """
    dim = as_count(dim, "dim", least=1)
    comparisons = _compare(_telling(observations))
    tastes = LinearTastesKernel(dim, scale=COMPARISON_TASTES if comparisons else 1.0, diagonal=not comparisons)
    median = COMPARISON_LENGTHSCALE * dim**0.5
    base_kernel = CheckedRBFKernel(
        ard_num_dims=dim,
        lengthscale_prior=LogNormalPrior(torch.tensor(median).log().item(), COMPARISON_LENGTHSCALE_SPREAD),
        lengthscale_constraint=as_logarithm(),
    )
    base_kernel.lengthscale = median
    spread = OWN_OUTPUTSCALE_SPREAD
    prior = LogNormalPrior(torch.tensor(OWN_OUTPUTSCALE).log().item() + spread**2, spread)
    scaled = CheckedScaleKernel(base_kernel, outputscale_prior=prior, outputscale_constraint=as_logarithm())
    scaled.outputscale = OWN_OUTPUTSCALE
    return tastes + scaled


def as_logarithm() -> Positive:
    """The constraint of a parameter that is the logarithm of a value."""
    return Positive(transform=torch.exp, inv_transform=torch.log)


def default_mean_module(observations: Observation | Sequence[Observation]) -> Mean:
    r"""A constant: fitted with numbers, irrelevant to comparisons, integrated out for labels and votes.

    A fitted constant would take a few equal labels for the whole domain's. The variance of the one that is integrated
    over is that of the latent function at the median of its prior; with it, predictions far from 5 to 40 data are about
    as often right as they say. To class labels, which compare outputs, a constant is irrelevant too.

    Args:
        observations: The observations the model will be built from.
    """
    observations = _telling(observations)
    anchored = any(entry.anchors_scale for entry in observations)
    told = (
        (entry.points_per_observation == 1 or entry.tells_level) and entry.num_outputs == 1 for entry in observations
    )
    if any(told) and not anchored:
        return IntegratedConstantMean(MEAN_SPREAD**2)
    return ConstantMean()


class IntegratedConstantMean(Mean):
    r"""A constant `c ~ N(0, variance)`, integrated over exactly.

    A Gaussian process with such a mean has mean zero and `variance` added to all its covariances, a term of rank one.
    A fitted constant has no uncertainty: after five successes in one corner of the domain a model with one is as sure
    of the far corner as of the near one.

    Args:
        variance: The variance of the constant, in squared units of the latent function; not fitted.

    Raises:
        InputDataError: If the variance is not a positive number.
    """

    def __init__(self, variance: float) -> None:
        super().__init__()
        if as_number(variance, "variance") <= 0:
            raise InputDataError(f"variance must be positive; got {variance}.")
        kernel = ConstantKernel().double()
        kernel.constant = torch.tensor([variance], dtype=torch.float64)
        self.kernel = kernel.requires_grad_(False)

    @property
    def variance(self) -> Tensor:
        """The variance of the constant."""
        return self.kernel.constant

    def forward(self, input: Tensor) -> Tensor:
        """Zeros, `batch_shape x n` for `batch_shape x n x d` points."""
        return input.new_zeros(input.shape[:-1])

    def added_to(self, covar_module: Kernel) -> Kernel:
        """The kernel of the sum of the constant and a process with the given kernel."""
        return covar_module + self.kernel

    def draw(self, sample_shape: torch.Size) -> DrawnConstants:
        """Draws of the constant."""
        deviation = self.variance.sqrt()
        normal = torch.randn(*sample_shape, 1, dtype=deviation.dtype, device=deviation.device)
        return DrawnConstants(deviation * normal)


class DrawnConstants(Mean):
    r"""Constants, one for each draw of a function.

    Args:
        constants: A `sample_shape x 1` tensor.
    """

    def __init__(self, constants: Tensor) -> None:
        super().__init__()
        self.register_buffer("constants", constants)

    def forward(self, input: Tensor) -> Tensor:
        """The constants as `... x 1`, to be broadcast over points."""
        return self.constants.to(input)

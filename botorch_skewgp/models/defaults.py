r"""Default kernels and means, with the reason for each number, and a mean that is integrated out.

Inputs are in the unit cube. The latent function is measured in units of the noise of labels and comparisons, whose
variance likelihoods fix at 1 (see the likelihoods), or of standardised numbers.

.. [Hvarfner2024vanilla] Hvarfner, Hellsten, Nardi. ICML 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Interval, Positive
from gpytorch.kernels import ConstantKernel, Kernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.checks import as_count, as_number
from botorch_skewgp.inputs.columns import as_columns
from botorch_skewgp.kernels.checked import MIN_LENGTHSCALE, CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.models.inputs import as_sequence
from botorch_skewgp.observations import Observation
from botorch_skewgp.parameters import LogarithmPrior

# The latent function's variance, in units of the noise variance of labels and grades: a median of 10, and a 95 %
# quantile of 120. A narrower prior makes the model doubt consistent labels; a much wider one overfits a few of them.
OUTPUTSCALE_LOCATION, OUTPUTSCALE_SPREAD = math.log(10.0), 1.5
# The same for comparisons alone, as the mode and the spread of its logarithm. A judge with ratio r gets a share of
# atan(r^-1/2) / pi of duels between random points wrong: one in 17 at the mode. Answers about new points hardly
# contradict each other, so errors go unnoticed: with a mode of 1,000 a fit trusts 40 answers, the wrong ones included.
# The answers of a consistent judge raise the scale on their own.
COMPARISON_OUTPUTSCALE, COMPARISON_OUTPUTSCALE_SPREAD = 30.0, 2.0
# The same for known judges: one answer in 220 is wrong, or one in ten.
JUDGES = {"consistent": (5000.0, 1.0), "noisy": (10.0, 1.0)}
# Lengthscales, as medians over sqrt(dim) and spreads of logarithms. For comparisons alone the median is about the mode
# of the dimension-scaled prior, and two thirds are within a factor of 1.6; that prior's spread of sqrt(3) would let
# lengthscales of 0.03 or of 10 explain ten answers. Spreads of 0.4 to 0.6 have the best held-out density of duels, and
# medians of 0.15 to 0.25 the same.
COMPARISON_LENGTHSCALE = (0.2, 0.5)
# With numbers: two thirds within a factor of 2. Under the dimension-scaled prior a model of a few numbers is too sure
# that the function is smooth. Labels and grades keep that prior: it predicts best with many inputs.
ANCHORED_LENGTHSCALE = (0.3, 0.7)
# Validity alone has shorter lengthscales, with which probabilities of validity are calibrated for few failures: under
# the dimension-scaled prior, everything between a few valid points is predicted to be valid.
VALIDITY_LENGTHSCALE = (0.2, 0.5)
# Likewise a larger output scale, with a mode of about the variance of the constant mean: otherwise a high constant
# explains five valid points.
VALIDITY_OUTPUTSCALE_LOCATION = math.log(100.0)
# Where the noise of validity is not small, failures come by chance, as side effects of a dose do, and the chance may
# rise over the whole domain: the middle half of edges, from 10 to 90 % failures, has a width of 0.24 to 1.3. Scale and
# constant are in units of that noise. With this prior safe searches keep to their level; with that of failures that
# repeat, one success at a setting is taken for nearly a proof, and every tenth trial is over the limit.
LEAST_CHANCE_NOISE = 0.1
CHANCE_LENGTHSCALE = (0.35, 1.0)
CHANCE_OUTPUTSCALE = 3.0
# Bounds for the optimiser, as for BoTorch's lengthscales: long steps neither underflow nor diverge. The function's
# standard deviation is between a hundredth and a hundred times that of the noise, as nearly all of the prior is.
OUTPUTSCALE_BOUNDS = (1e-4, 1e4)
# The scale of tastes. With a scale of 1, tastes for prices worth 38 times the noise were assigned to the smooth part.
COMPARISON_TASTES = 10.0
OWN_OUTPUTSCALE, OWN_OUTPUTSCALE_SPREAD = 1.0, 1.5  # of the smooth part, in units of the noise: mode, spread of log
MEAN_SPREAD = 10.0**0.5  # the latent function's standard deviation at the median of its prior


def default_covar_module(
    dim: int,
    observations: Observation | Sequence[Observation] = (),
    judge: Literal["consistent", "noisy"] | None = None,
    likelihood: RowLikelihood | None = None,
) -> ScaleKernel:
    r"""A scaled RBF kernel.

    Lengthscales for labels have BoTorch's dimension-scaled prior ([Hvarfner2024vanilla]_); beside numbers it is
    narrower, around the same mode. For `Validity` alone it is narrower still, and the prior of the output scale has
    larger values, unless the noise of the likelihood, 0.1 or more, says that failures come by chance: then lengthscales
    may be short or long, and the output scale is about three times the noise. For comparisons alone (duels, ties,
    choices, rankings) lengthscales have a narrow prior too, and the output scale, in units of the judge's noise, has a
    wide one unless `judge` is given. Both are then fitted as logarithms.

    Example:
        >>> covar_module = default_covar_module(train_X.shape[-1], [Preference(pairs)], judge="consistent")
        >>> model = SkewGP(train_X, Preference(pairs), covar_module=covar_module)

    Args:
        dim: The number of inputs, each with its own lengthscale.
        observations: The observations the model will be built from.
        judge: Prior knowledge of the judge of comparisons: `"consistent"` if answers hardly change when asked again, as
            those of a computation (about one in 220 duels between random points is wrong), `"noisy"` if many do (one in
            ten).
        likelihood: The model's likelihood, if it is not the default one.

    Raises:
        InputDataError: If `judge` is something else, or `dim` is not a positive integer.
        UnsupportedError: If a judge is given for other observations than comparisons.
    """
    dim = as_count(dim, "dim", least=1)
    observations = _informative(observations)
    comparisons = _are_comparisons(observations)
    if judge is not None and judge not in [*JUDGES]:
        raise InputDataError(f"judge must be 'consistent', 'noisy' or None; got {judge!r}.")
    if judge is not None and not comparisons:
        raise UnsupportedError("judge is about comparisons; leave it out for other observations.")
    if comparisons:
        mode, spread = JUDGES.get(str(judge), (COMPARISON_OUTPUTSCALE, COMPARISON_OUTPUTSCALE_SPREAD))
        return _scaled(_comparison_kernel(dim), mode, spread)
    failures = len(observations) > 0 and all(entry.tells_validity for entry in observations)
    noise_of_chance = _noise_of_chance(observations, likelihood)
    if failures or any(entry.anchors_scale for entry in observations):
        fraction, spread = VALIDITY_LENGTHSCALE if failures else ANCHORED_LENGTHSCALE
        if noise_of_chance is not None:
            fraction, spread = CHANCE_LENGTHSCALE
        median = fraction * math.sqrt(dim)
        prior = LogNormalPrior(math.log(median), spread)
        constraint = GreaterThan(MIN_LENGTHSCALE, transform=None, initial_value=median)
    else:
        vanilla = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
        prior, constraint = vanilla.lengthscale_prior, vanilla.raw_lengthscale_constraint
    location = VALIDITY_OUTPUTSCALE_LOCATION if failures else OUTPUTSCALE_LOCATION
    if noise_of_chance is not None:
        location = math.log(CHANCE_OUTPUTSCALE * noise_of_chance)
    covar_module = CheckedScaleKernel(
        CheckedRBFKernel(ard_num_dims=dim, lengthscale_prior=prior, lengthscale_constraint=constraint),
        outputscale_prior=LogNormalPrior(location, OUTPUTSCALE_SPREAD),
        outputscale_constraint=Interval(*OUTPUTSCALE_BOUNDS, transform=None),
    )
    covar_module.outputscale = covar_module.outputscale_prior.mode
    return covar_module


def _informative(observations: Observation | Sequence[Observation]) -> Sequence[Observation]:
    """The observations that determine defaults: all but slopes and bounds, unless there are no others."""
    observations = as_sequence(observations)
    return [entry for entry in observations if entry.tells_values] or observations


def _noise_of_chance(observations: Sequence[Observation], likelihood: RowLikelihood | None) -> float | None:
    """The noise of validity alone if failures come by chance, else `None`."""
    if likelihood is None or not observations or not all(entry.tells_validity for entry in observations):
        return None
    noise = getattr(likelihood.for_kind(type(observations[0])), "noise", None)
    return float(noise) if noise is not None and float(noise) >= LEAST_CHANCE_NOISE else None


def _are_comparisons(observations: Sequence[Observation]) -> bool:
    """Whether all observations are comparisons."""
    return len(observations) > 0 and all(entry.points_per_observation > 1 for entry in observations)


def _comparison_kernel(dim: int, **active: Any) -> Kernel:
    """A kernel of comparisons without a scale, whose lengthscales are fitted as logarithms."""
    fraction, spread = COMPARISON_LENGTHSCALE
    median = fraction * math.sqrt(dim)
    prior = LogNormalPrior(math.log(median), spread)
    kernel = CheckedRBFKernel(
        ard_num_dims=dim, lengthscale_prior=prior, lengthscale_constraint=as_logarithm(), **active
    )
    kernel.lengthscale = median
    return kernel


def _scaled(base_kernel: Kernel, mode: float, spread: float) -> ScaleKernel:
    """A kernel with a scale that is fitted as a logarithm, as an optimiser would hardly move one of 1,000."""
    prior = LogarithmPrior(math.log(mode), spread)
    scaled = CheckedScaleKernel(base_kernel, outputscale_prior=prior, outputscale_constraint=as_logarithm())
    scaled.outputscale = mode
    return scaled


def default_judge_covar_module(
    dim: int, observations: Observation | Sequence[Observation] = (), categories: Sequence[int] = ()
) -> Kernel:
    r"""The kernel of a judge's own part: linear tastes, plus a smooth part, plus an effect of each category.

    Tastes have a full covariance for comparisons alone. With grades or labels it is diagonal, since a few grades
    of each judge do not determine a full one.

    Args:
        dim: The number of inputs.
        observations: The model's observations. With comparisons alone, utilities are larger in units of the noise.
        categories: The inputs that are numbers of categories.

    Raises:
        InputDataError: If `dim` is not a positive integer, or categories name no input.
    """
    dim = as_count(dim, "dim", least=1)
    comparisons = _are_comparisons(_informative(observations))
    categories = as_columns(categories, dim, "categories")
    numeric = [i for i in range(dim) if i not in categories]
    active: dict[str, Any] = {"active_dims": numeric} if categories else {}
    scale = COMPARISON_TASTES if comparisons else 1.0
    own: Kernel = LinearTastesKernel(len(numeric), scale=scale, diagonal=not comparisons, **active)
    parts = [_comparison_kernel(len(numeric), **active)] if numeric else []
    for part in [*parts, *(ItemEffectKernel(active_dims=[category]) for category in categories)]:
        own = own + _scaled(part, OWN_OUTPUTSCALE, OWN_OUTPUTSCALE_SPREAD)
    return own


def as_logarithm() -> Positive:
    """The constraint of a positive value that is fitted as its logarithm."""
    return Positive(transform=torch.exp, inv_transform=torch.log)


def default_mean_module(
    observations: Observation | Sequence[Observation], likelihood: RowLikelihood | None = None
) -> Mean:
    r"""A constant: fitted with numbers, irrelevant to comparisons, integrated out for labels and votes.

    A fitted constant would extend a few equal labels to the whole domain. The variance of the integrated one is that of
    the latent function at the median of its prior; predictions far from 5 to 40 observations are then about
    calibrated. A constant is irrelevant to class labels too, which compare outputs.

    Args:
        observations: The observations the model will be built from.
        likelihood: The model's likelihood, if it is not the default one.
    """
    observations = _informative(observations)
    noise_of_chance = _noise_of_chance(observations, likelihood)
    if noise_of_chance is not None:
        return IntegratedConstantMean(CHANCE_OUTPUTSCALE * noise_of_chance)
    levels = [entry for entry in observations if entry.points_per_observation == 1 or entry.tells_level]
    told = any(entry.num_outputs == 1 for entry in levels)
    anchored = any(entry.anchors_scale for entry in observations)
    return IntegratedConstantMean(MEAN_SPREAD**2) if told and not anchored else ConstantMean()


class IntegratedConstantMean(Mean):
    """A constant `c ~ N(0, variance)`, integrated over exactly; the variance is not fitted."""

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

    def draw(self, sample_shape: torch.Size) -> ConstantMean:
        """Draws of the constant, a batch of means."""
        deviation = self.variance.sqrt()
        drawn = ConstantMean(batch_shape=sample_shape).to(deviation)
        drawn.constant = deviation * torch.randn(sample_shape, dtype=deviation.dtype, device=deviation.device)
        return drawn

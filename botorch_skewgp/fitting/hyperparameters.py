r"""Hyperparameters sampled instead of optimised.

.. [Cornuet2012adaptive] Cornuet et al. Adaptive multiple importance sampling. 2012.
.. [Hesterberg1995weighted] Hesterberg. Weighted average importance sampling and defensive mixture distributions. 1995.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from botorch.exceptions import UnsupportedError
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

from botorch_skewgp.checks import as_count
from botorch_skewgp.exceptions import PoorDrawsWarning, SamplingError
from botorch_skewgp.fitting.importance import AdaptiveImportanceSampler, WeightedPoints, laplace_proposal
from botorch_skewgp.fitting.restarts import fit_skew_gp
from botorch_skewgp.fitting.unbounded_density import UnboundedDensity
from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.truncated.draws import DrawSettings

ROUND = 64  # points between fits of the proposal
FROM_PRIOR = 16  # points of the first round from the priors' proposal
MIN_EFFECTIVE_SIZE = 32  # of the points, below which weights and tail are uninformative
MAX_PARETO_SHAPE = 0.7  # up to which averages are reliable
# Upper limits of standard deviations from Hessians, in coordinates, which are logarithms of positive parameters.
WIDEST, WIDEST_PRIOR = 2.0, 5.0


class HyperparameterDraws(NamedTuple):
    r"""Draws of the hyperparameters' posterior.

    Args:
        values: For each parameter that has a prior, by its name in the model, a `num_draws x ...` tensor of values in
            units of the constrained parameter (a lengthscale, not its raw value).
        states: A list of state dicts of parameters, to be loaded into the model with `strict=False`.
        log_density: The objective at the draws plus the log volume of unbounded coordinates, `num_draws`.
        effective_size: The number of independent draws with the same error of averages; at most `num_draws`.
        pareto_shape: The shape of the tail of the weights of the points that draws are chosen from. Above 0.7 do not
            trust the effective size.
        num_evaluations: The number of these points.
    """

    values: dict[str, Tensor]
    states: list[dict[str, Tensor]]
    log_density: Tensor
    effective_size: float
    pareto_shape: float
    num_evaluations: int


def sample_hyperparameters(
    mll: MarginalLogLikelihood,
    num_draws: int = 16,
    max_evaluations: int = 4096,
    generator: torch.Generator | None = None,
) -> HyperparameterDraws:
    r"""Draw hyperparameters from their posterior by adaptive multiple importance sampling ([Cornuet2012adaptive]_).

    The density is `exp(mll)`: with `SkewGPMarginalLogLikelihood` the evidence by expectation propagation times the
    priors. Weighted points are drawn in logarithms of positive parameters, in rounds of 64: first from a Student t
    around the Laplace approximation at the model's present hyperparameters (fit the model first) and, as a defence
    against tails that it misses ([Hesterberg1995weighted]_), another one around that of the priors; then from Student t
    distributions fitted to all points so far. Rounds end when the effective size of the points reaches twice the number
    of draws, and 32, and the tail of their weights is light. Draws are chosen from the points by their weights, so that
    some may be equal. Parameters without a prior, whose posterior may be improper, are fixed. Priors are densities of
    the constrained value, as GPyTorch's modules register them. The model is not changed.

    Args:
        mll: A deterministic objective.
        num_draws: The number of draws.
        max_evaluations: The number of points at which rounds end; rounds are not cut short.
        generator: The source of randomness; one seeded with 0 is made if `None`.

    Returns:
        The draws. A `PoorDrawsWarning` is issued if `max_evaluations` ended the rounds.

    Raises:
        UnsupportedError: If `mll` is no objective of a SkewGP, or no free parameter has a prior.
        ValueError: If a number is out of range.
        SamplingError: If the objective is infinite at all points.
    """
    if not isinstance(mll, RowMarginalLogLikelihood):
        raise UnsupportedError(
            "mll must be the objective of a SkewGP, which `fit_skew_gp(model)` returns; got an object of class "
            f"{type(mll).__name__}."
        )
    num_draws = as_count(num_draws, "num_draws", least=1)
    max_evaluations = as_count(max_evaluations, "max_evaluations", least=1)
    wanted = max(2.0 * num_draws, MIN_EFFECTIVE_SIZE)
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    mll = deepcopy(mll).train()
    mll.reset()
    density = UnboundedDensity(mll)
    points = _weighted_points(density, wanted, max_evaluations, generator)
    if not _is_enough(points, wanted):
        warnings.warn(
            "Draws of hyperparameters are poor: a few points have nearly all weight (effective_size and pareto_shape "
            "of the draws). Fit the model first, narrow the priors, or raise max_evaluations.",
            PoorDrawsWarning,
            stacklevel=2,
        )
    chosen = points.resampled(num_draws, generator)
    draws = points.x[chosen]
    return HyperparameterDraws(
        values=density.values_at(draws),
        states=[density.state_dict(x) for x in draws],
        log_density=points.log_density[chosen],
        # the variance of an average over draws is that over the points plus that of the choice among them
        effective_size=1 / (1 / points.effective_size + 1 / num_draws),
        pareto_shape=points.pareto_shape,
        num_evaluations=len(points.x),
    )


def _weighted_points(
    density: UnboundedDensity, wanted: float, max_evaluations: int, generator: torch.Generator
) -> WeightedPoints:
    """Rounds of points until they are enough, or too many."""
    from_prior = laplace_proposal(density.prior, density.start, WIDEST_PRIOR)
    first = laplace_proposal(density, density.start, WIDEST)
    density(first.location)  # whose sites start later evaluations
    sampler = AdaptiveImportanceSampler(density.log_densities, first.root)
    proposals = [(first, ROUND - FROM_PRIOR), (from_prior, FROM_PRIOR)]
    while True:
        points = sampler.draw_round(proposals, generator)
        if not bool(points.log_weights.isfinite().any()):
            raise SamplingError("The objective is infinite at all hyperparameters that were tried; fit the model.")
        if _is_enough(points, wanted) or len(points.x) + ROUND > max_evaluations:
            return points
        proposals = [(sampler.fitted_proposal(), ROUND)]


def _is_enough(points: WeightedPoints, wanted: float) -> bool:
    return points.effective_size >= wanted and points.pareto_shape <= MAX_PARETO_SHAPE


def fit_fully_bayesian_skew_gp(
    mll: RowMarginalLogLikelihood | SkewGP,
    num_draws: int = 16,
    *,
    draw_settings: DrawSettings | None = None,
    **kwargs: Any,
) -> FullyBayesianSkewGP:
    r"""Draw hyperparameters and build a member of an ensemble for each; see `sample_hyperparameters`.

    Example:
        >>> ensemble = fit_fully_bayesian_skew_gp(SkewGP(train_X, Numeric(values)))
        >>> acquisition = qLogExpectedImprovement(ensemble, best_f=0.0)

    Args:
        mll: The objective of a fitted model, or a model, which `fit_skew_gp` fits first.
        num_draws: The number of members.
        draw_settings: How each member draws its rows; by default 256 draws, many times that for the ensemble.
        kwargs: Other arguments of `sample_hyperparameters`, whose errors are raised.
    """
    objective = fit_skew_gp(mll) if isinstance(mll, SkewGP) else mll
    draws = sample_hyperparameters(objective, num_draws, **kwargs)
    members = []
    for i, state in enumerate(draws.states):
        member = deepcopy(objective.model)
        member.load_state_dict(state, strict=False)
        member.draw_settings = DrawSettings(num_draws=256, seed=i) if draw_settings is None else draw_settings
        members.append(member.eval())
    return FullyBayesianSkewGP(members)

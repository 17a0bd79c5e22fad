r"""How much judges differ: the spread of a parameter that every judge has a value of, learned from all judges.

Deviations `d_1, ..., d_J` from what is common are normal with standard deviation `sigma`, their spread. The density of
deviations and spread together is of no use for a fit: it grows without bound as all of them go to zero. So deviations
are integrated out, by the Laplace approximation at those that were fitted with a spread ([Tierney1986accurate]_):

    log p(y | sigma) = log p(y | d) + sum_j log N(d_j; 0, sigma^2) + 1/2 sum_j log(2 pi / (h_j + sigma^-2)),

where `h_j` is the curvature of the negative log evidence in `d_j`, with all other parameters at their fitted values.
Spreads are tried from a small one up, each with a fit that starts at the last one: large differences, as of judges
said to be noise, can be another mode of the objective, of less evidence, that a fit does not leave.

The curvatures are a diagonal of a Hessian, by differences of gradients along few random directions
([Bekas2007estimator]_), so that a thousand judges cost no more than sixteen.

.. [Tierney1986accurate] L. Tierney, J. B. Kadane. Accurate approximations for posterior moments and marginal densities.
   Journal of the American Statistical Association 81, 1986.
.. [Bekas2007estimator] C. Bekas, E. Kokiopoulou, Y. Saad. An estimator for the diagonal of a matrix. Applied Numerical
   Mathematics 57, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy

import torch
from botorch.exceptions.errors import ModelFittingError
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_skewgp.likelihoods.parameters import DeviationPrior

FACTORS = [2.0 ** (0.5 * i) for i in range(-4, 3)]  # of the expected spread, that are tried
FAR_BELOW = 5.0  # nats, at which larger spreads are given up
MOST_DIRECTIONS = 16
STEP = 0.05  # of differences of gradients, in deviations, which are logarithms
LEAST_PRECISION = 0.5  # of a deviation beside its prior's, as where the density is no bell


def learn_spreads(mll: MarginalLogLikelihood, fit: Callable[[], None]) -> None:
    r"""Fit with several spreads of each of judges' parameters, and keep the most probable that could be fitted.

    Args:
        mll: An objective of a SkewGP, whose hyperparameters are fitted.
        fit: Fits the objective from its present state.
    """
    for prior, deviation in deviations_of_judges(mll.model):
        if not deviation.requires_grad:
            continue
        candidates = [(log_density_of_spread(mll, prior, deviation), deepcopy(mll.state_dict()))]
        deviation.data.zero_()
        highest = -math.inf  # of this series, as the first state may be of another mode
        for factor in FACTORS:
            prior.scale.fill_(factor * prior.expected_spread)
            try:
                fit()
            except (ModelFittingError, NotPSDError):  # as at a start that cannot be fitted
                break
            candidates.append((log_density_of_spread(mll, prior, deviation), deepcopy(mll.state_dict())))
            highest = max(highest, candidates[-1][0])
            if candidates[-1][0] < highest - FAR_BELOW:
                break
        mll.load_state_dict(max(candidates, key=lambda candidate: candidate[0])[1])


def deviations_of_judges(model: Module) -> list[tuple[DeviationPrior, Tensor]]:
    """The priors of judges' deviations in a model, and the deviations."""
    named = model.named_priors()
    found = {id(prior): (prior, read(owner)) for _, owner, prior, read, _ in named if isinstance(prior, DeviationPrior)}
    return list(found.values())


def log_density_of_spread(mll: MarginalLogLikelihood, prior: DeviationPrior, deviation: Tensor) -> float:
    """The log density of a prior's spread, with the deviations integrated out, up to a constant."""
    mll.train()
    here = deviation.detach().clone()

    def objective(at: Tensor) -> Tensor:
        deviation.data.copy_(at)
        return mll.evaluate(mll.model(*mll.model.train_inputs), mll.model.train_targets)

    def gradient(at: Tensor) -> Tensor:
        return torch.autograd.grad(objective(at), deviation)[0]

    curvature = torch.zeros_like(here)
    for direction in _directions(here):
        change = gradient(here + STEP * direction) - gradient(here - STEP * direction)
        curvature = curvature - direction * change / (2 * STEP)
    with torch.no_grad():
        value = objective(here)
    precision = curvature.maximum(LEAST_PRECISION / prior.scale.square())
    integrated = value + 0.5 * (math.log(2 * math.pi) - precision.log()).sum()
    return float(integrated + prior.log_density_of_spread())


def _directions(like: Tensor) -> Tensor:
    """The directions `t` whose products `t (H t)` add up to a diagonal: units, or random signs if they are many."""
    if len(like) <= MOST_DIRECTIONS:
        return torch.eye(len(like)).to(like)
    generator = torch.Generator().manual_seed(0)
    signs = 2 * torch.randint(2, (MOST_DIRECTIONS, len(like)), generator=generator) - 1
    return signs.to(like) / math.sqrt(MOST_DIRECTIONS)

r"""How much judges differ: the spread of a parameter that every judge has a value of, learned from all judges.

Deviations `d_1, ..., d_J` from what is common are normal with standard deviation `sigma`, their spread. Their density
grows without bound as all go to zero, so they are integrated out, by the Laplace approximation at those that were
fitted with a spread ([Tierney1986accurate]_), with the curvature `h_j` of the negative log evidence in `d_j`:

    log p(y | sigma) = log p(y | d) + sum_j log N(d_j; 0, sigma^2) + 1/2 sum_j log(2 pi / (h_j + sigma^-2)).

Spreads are tried from a small one up, as large differences can be another mode that a fit does not leave. The
curvatures are by differences of gradients along few random directions ([Bekas2007estimator]_).

Where people have few answers, fitted deviations are mostly noise, and their densities no bells. What people share is
known from many others then, so that they are nearly independent given it, and each has an integral in one dimension:

    log p(y | sigma) = log p(y | 0) + sum_j log E[exp(l_j(d))],  l_j(d) = log p(y | d_j = d) - log p(y | 0)

The slopes of `l_j` at a few nodes, of many people at once, have a cubic spline, whose integral is `l_j`. A deviation
keeps its variance, over which predictions are averaged.

.. [Tierney1986accurate] Tierney, Kadane. Accurate approximations for posterior moments and marginal densities. 1986.
.. [Bekas2007estimator] Bekas, Kokiopoulou, Saad. An estimator for the diagonal of a matrix. 2007.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from typing import NamedTuple

import torch
from botorch.exceptions.errors import ModelFittingError
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from linear_operator.utils.errors import NotPSDError
from scipy.interpolate import CubicSpline
from torch import Tensor

from botorch_skewgp.parameters import DeviationPrior

FACTORS = [2.0 ** (0.5 * i) for i in range(-4, 3)]  # of the expected spread, that are tried
FAR_BELOW = 5.0  # nats, at which larger spreads are given up
MAX_DIRECTIONS = 16
STEP = 0.05  # of differences of gradients, in deviations, which are logarithms
NODES = 0.5, 1.0, 1.8, 3.0, 5.0  # of the rule in one dimension, on both sides of none, in expected spreads
NUM_GROUPS = 6  # of judges who are moved at a time
GRID = 201  # points of sums over a deviation
FEW_ANSWERS = 30  # of a judge on average, below which deviations are integrated; fits of 158 judges of 18 did not end
MIN_PRECISION = 0.5  # of a deviation beside its prior's, as where the density is no bell


def learn_spreads(mll: MarginalLogLikelihood, fit: Callable[[], None]) -> float:
    """Fit a fitted objective with several spreads of each of judges' parameters; keep the most probable.

    It returns the objective of the last of these, with the deviations integrated out; 0 if there are none.
    """
    found = 0.0
    for prior, deviation in deviations_of_judges(mll.model):
        if not deviation.requires_grad:
            continue
        if has_few_answers(mll.model):
            found = _integrate(mll, prior, deviation, fit)
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
        found, state = max(candidates, key=lambda candidate: candidate[0])
        mll.load_state_dict(state)
        prior.judge_variance.copy_(1 / _expansion(mll, prior, deviation).precision)
    return found


def has_few_answers(model: Module) -> bool:
    """Whether judges have so few answers on average that their deviations are integrated."""
    judged = [entry.judge for entry in model.observations if entry.judge is not None]
    num = sum(len(judge) for judge in judged)
    return num < FEW_ANSWERS * len({number for judge in judged for number in judge.unique().tolist()})


@contextmanager
def fixed(parameters: Iterable[Tensor]) -> Iterator[None]:
    """Within the block those parameters that are free are not fitted."""
    held = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in held:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in held:
            parameter.requires_grad_(True)


def few_deviations_fixed(model: Module) -> AbstractContextManager[None]:
    """Within the block deviations that are to be integrated are not fitted."""
    return fixed(deviation for _, deviation in deviations_of_judges(model) if has_few_answers(model))


def _integrate(mll: MarginalLogLikelihood, prior: DeviationPrior, deviation: Tensor, fit: Callable[[], None]) -> float:
    """Set the spread, and the deviations' means and variances, by a rule in one dimension for each judge.

    It returns the objective with the deviations integrated out.
    """
    deviation.data.zero_()
    with few_deviations_fixed(mll.model):
        fit()
    at_none, nodes, slopes = _slopes(mll, prior, deviation)
    grid = torch.linspace(float(nodes[0]), float(nodes[-1]), GRID).to(slopes)
    gains = CubicSpline(nodes.numpy(), slopes.cpu().numpy(), axis=-1).antiderivative()(grid.cpu().numpy())
    spreads = prior.expected_spread * torch.tensor(FACTORS).to(slopes)
    standard = grid / spreads.unsqueeze(-1)
    log_prior = -0.5 * standard.square()
    gains = torch.as_tensor(gains - gains[:, GRID // 2 : GRID // 2 + 1]).to(slopes)  # over no deviation
    log_joint = gains.unsqueeze(1) + log_prior - log_prior.logsumexp(-1, keepdim=True)
    scores = []
    for spread, of_judges in zip(spreads, log_joint.logsumexp(-1).sum(0), strict=True):
        prior.scale.fill_(spread)
        scores.append(float(of_judges + prior.log_density_of_spread()))
    best = scores.index(max(scores))
    weights = log_joint[:, best].softmax(-1)
    mean = weights @ grid
    prior.scale.fill_(spreads[best])
    deviation.data.copy_(mean)
    prior.judge_variance.copy_((weights * (grid - mean.unsqueeze(-1)).square()).sum(-1))
    return at_none + max(scores)


def _slopes(mll: MarginalLogLikelihood, prior: DeviationPrior, deviation: Tensor) -> tuple[float, Tensor, Tensor]:
    """The objective without deviations, `k` nodes, and its slopes in each judge's deviation there, `J x k`, where
    others have none; all without the deviations' prior.

    Some judges at a time are moved, half of them up and half down: what they say together of what all share cancels.
    """
    mll.train()
    num_judges = len(deviation)
    order = torch.randperm(num_judges, generator=torch.Generator().manual_seed(0)).to(deviation.device)
    group, num_groups = order % NUM_GROUPS, min(NUM_GROUPS, num_judges)
    sign = (1 - 2 * (order // NUM_GROUPS % 2)).to(deviation)

    def slope(at: Tensor) -> tuple[Tensor, Tensor]:
        deviation.data.copy_(at)
        value = mll.evaluate(mll.model(*mll.model.train_inputs), mll.model.train_targets)
        value = value - prior.log_prob(deviation).sum()
        return value.detach(), torch.autograd.grad(value, deviation)[0]

    sizes = prior.expected_spread * torch.tensor(NODES, dtype=torch.float64)
    nodes = torch.cat([-sizes.flip(0), torch.zeros(1).double(), sizes])
    at_none, here = slope(torch.zeros_like(sign))
    slopes = here.unsqueeze(-1).repeat(1, len(nodes))
    for i, size in enumerate(sizes.tolist(), 1):
        for number, turn in itertools.product(range(num_groups), (1, -1)):
            moved = group == number
            found = slope(turn * size * sign * moved)[1][moved]
            slopes[moved, len(sizes) + (i * turn * sign[moved]).long()] = found
    deviation.data.zero_()
    return float(at_none), nodes, slopes


def deviations_of_judges(model: Module) -> list[tuple[DeviationPrior, Tensor]]:
    """The priors of judges' deviations in a model, and the deviations."""
    named = model.named_priors()
    found = {id(prior): (prior, read(owner)) for _, owner, prior, read, _ in named if isinstance(prior, DeviationPrior)}
    return list(found.values())


def log_density_of_spread(mll: MarginalLogLikelihood, prior: DeviationPrior, deviation: Tensor) -> float:
    """The log density of a prior's spread, with the deviations integrated out, up to a constant."""
    at = _expansion(mll, prior, deviation)
    integrated = at.value + 0.5 * (math.log(2 * math.pi) - at.precision.log()).sum()
    return float(integrated + prior.log_density_of_spread())


class _Expansion(NamedTuple):
    """The objective at deviations, its slope in them, and minus the diagonal of its second derivatives."""

    value: Tensor
    slope: Tensor
    precision: Tensor


def _expansion(mll: MarginalLogLikelihood, prior: DeviationPrior, deviation: Tensor) -> _Expansion:
    """The objective around its present deviations, which are moved and put back."""
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
    value = objective(here)
    (slope,) = torch.autograd.grad(value, deviation)
    return _Expansion(value.detach(), slope, curvature.maximum(MIN_PRECISION / prior.scale.square()))


def _directions(like: Tensor) -> Tensor:
    """The directions `t` whose products `t (H t)` add up to a diagonal: units, or random signs if they are many."""
    if len(like) <= MAX_DIRECTIONS:
        return torch.eye(len(like)).to(like)
    generator = torch.Generator().manual_seed(0)
    signs = 2 * torch.randint(2, (MAX_DIRECTIONS, len(like)), generator=generator) - 1
    return signs.to(like) / math.sqrt(MAX_DIRECTIONS)

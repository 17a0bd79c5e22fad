"""Gaussian processes on real answers, of this package and of BoTorch: fitted, and asked for held-out answers."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.kernels import Kernel, LinearKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.mlls import VariationalELBO
from gpytorch.priors import LogNormalPrior
from linear_operator import to_dense
from torch import Tensor

from benchmarks._observations import fitted
from benchmarks.predictive import pairwise_wins
from benchmarks.real.data import Answers, Choices, Grades, Readings
from benchmarks.real.rivals import Predictions, of_outcomes
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp, fit_panel
from botorch_skewgp.likelihoods import NumericLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Censored, Choice, Numeric, Observation, Ordinal, Preference

MOST_POINTS = 60  # inducing points of what people share, by default
NO_VARIANCE = 1e-8  # of a direction of inputs, beside that of the most variable one

NUM_MEMBERS = 32  # draws of hyperparameters, from few answers
WIDE = partial(LogNormalPrior, -2.0, 2.0)  # prior of the scale of each part of a kernel whose hyperparameters are drawn


def scaled(known: Answers, test: Answers) -> tuple[Tensor, Tensor]:
    """Points of both in the unit cube of the training answers."""
    points = known.points[known.available] if isinstance(known, Choices) else known.points
    low, high = points.amin(0), points.amax(0)
    width = torch.where(high > low, high - low, 1.0)
    return (known.points - low) / width, (test.points - low) / width


def observations_of(known: Answers) -> list[Observation]:
    """The answers as observations, of choices over all options one after another."""
    if isinstance(known, Grades):
        return [Ordinal(known.answer, known.num_outcomes)]
    if isinstance(known, Readings):
        read, bounded = (known.lower == known.upper).nonzero(), (known.lower != known.upper).nonzero()
        read, bounded = read.squeeze(-1), bounded.squeeze(-1)
        numbers = [Numeric(known.lower[read], index=read)] if len(read) else []
        return [*numbers, Censored(known.lower[bounded], known.upper[bounded], index=bounded)]
    m, k = known.available.shape
    index = torch.where(known.available, torch.arange(m * k).reshape(m, k), -1)
    is_chosen = torch.arange(k) == known.answer.unsqueeze(-1)
    order = (2 * is_chosen + known.available.long()).argsort(dim=-1, descending=True, stable=True)
    options = index.gather(-1, order)  # chosen first, padding last
    return [Preference(options) if k == 2 else Choice(options)]


def _standardised(known: Answers, test: Answers) -> tuple[Answers, Answers, float]:
    """Readings in units of what was read, of bounds those that are finite; their standard deviation."""
    if not isinstance(known, Readings) or not isinstance(test, Readings):
        return known, test, 1.0
    ends = torch.stack([known.lower, known.upper])
    middle = torch.where(ends.isfinite(), ends, torch.nan).nanmean(0)
    middle = middle[middle.isfinite()]
    location, scale = middle.mean(), middle.std()
    known, test = (
        replace(each, lower=(each.lower - location) / scale, upper=(each.upper - location) / scale)
        for each in (known, test)
    )
    return known, test, float(scale)


def _points(known: Answers, X: Tensor) -> Tensor:
    """What the indices of `observations_of` count: all options, or the inputs."""
    return X.flatten(0, 1) if isinstance(known, Choices) else X


def some_of(points: Tensor) -> Tensor | int:
    return points if len(points) <= MOST_POINTS else MOST_POINTS


def skew_gp(
    known: Answers, test: Answers, approximation: Literal["ep"] | None = "ep", inducing: bool = False,
    by_person: bool = False,
) -> Predictions:  # fmt: skip
    """A default SkewGP, perhaps with inducing points and a part of everybody's own, where new people are new judges."""
    X, Z = scaled(known, test)
    known, test, unit = _standardised(known, test)
    offered = X[known.available] if isinstance(known, Choices) else X
    at = some_of(offered.unique(dim=0)) if inducing else None
    observations, number = _of_people(known, by_person)
    model = fitted(SkewGP(_points(known, X), observations, inducing_points=at, approximation=approximation))
    return _predictions(model.eval(), Z, test, unit, number)


def skew_gp_of_recipe(known: Answers, test: Answers) -> Predictions:
    """Linear in two scales plus smooth, hyperparameters sampled, as docs/kernels.md says; grades as a panel."""
    if isinstance(known, Grades) or isinstance(test, Grades):
        return panel(known, test, by_person=False)
    X, Z = scaled(known, test)
    known, test, unit = _standardised(known, test)
    offered = X[known.available] if isinstance(known, Choices) else X
    variances, directions = torch.linalg.eigh(torch.cov(offered.mT))
    vary = variances > NO_VARIANCE * variances[-1]
    whitening = directions[:, vary] / variances[vary].sqrt()
    X, Z = torch.cat([X, X @ whitening], dim=-1), torch.cat([Z, Z @ whitening], dim=-1)
    dim = offered.shape[-1]
    inputs, whitened = tuple(range(dim)), tuple(range(dim, X.shape[-1]))
    rbf = RBFKernel(lengthscale_prior=LogNormalPrior(math.log(0.3 * math.sqrt(dim)), 0.7), active_dims=inputs)
    kernels = [LinearKernel(active_dims=dims, variance_prior=WIDE()) for dims in (inputs, whitened)]
    model = SkewGP(
        _points(known, X),
        observations_of(known),
        likelihood=NumericLikelihood(noise_prior=LogNormalPrior(-2.0, 1.5)) if isinstance(known, Readings) else None,
        covar_module=kernels[0] + kernels[1] + ScaleKernel(rbf, outputscale_prior=WIDE()),
        approximation="ep",
    )
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    ensemble = fit_fully_bayesian_skew_gp(mll, num_draws=NUM_MEMBERS)
    found = [_predictions(member, Z, test, unit) for member in ensemble.members]
    if isinstance(test, Readings):
        log_density = torch.stack([each.log_density for each in found])
        return Predictions(log_density.logsumexp(0) - math.log(len(found)))
    return of_outcomes(torch.stack([each.probabilities for each in found]).mean(0), test)


def panel(known: Answers, test: Answers, by_person: bool = True) -> Predictions:
    """What `fit_panel` makes of the answers; people who are new are new judges."""
    known, test, unit = _standardised(known, test)
    points, asked, categories = _points(known, known.points), test.points, ()
    if isinstance(known, Grades) and known.item is not None:
        points, asked = (data.item.double().unsqueeze(-1) for data in (known, test))
        categories = (0,)
    observations, number = _of_people(known, by_person)
    return _predictions(fit_panel(points, observations, categories), asked, test, unit, number)


def _of_people(known: Answers, by_person: bool) -> tuple[list[Observation], dict[int, int] | None]:
    """The observations, perhaps with their judges, and the number of each person then."""
    if not by_person:
        return observations_of(known), None
    people, judge = known.person.unique(return_inverse=True)
    observations = [replace(entry, judge=judge) for entry in observations_of(known)]
    return observations, {person: i for i, person in enumerate(people.tolist())}


@torch.no_grad()
def _predictions(
    model: SkewGP, Z: Tensor, test: Answers, unit: float, number: dict[int, int] | None = None
) -> Predictions:
    """Of answers about points `Z`, perhaps by each known person; of numbers that were read, per unit of the data."""
    if isinstance(test, Readings):
        predicted, read = model.predictive(Z.unsqueeze(-2)), test.lower == test.upper

        def cdf(bound: Tensor) -> Tensor:
            value = torch.where(bound.isfinite() & ~read, bound, 0.0)[:, None, None]
            return torch.where(bound.isfinite(), predicted.cdf(value).reshape(-1), (bound > 0).to(value))

        density = predicted.density(torch.where(read, test.lower, 0.0)[:, None, None]).reshape(-1) / unit
        return Predictions(torch.where(read, density, cdf(test.upper) - cdf(test.lower)).log())
    found = Z.new_zeros(len(test), test.num_outcomes)
    asked = torch.zeros_like(test.person) if number is None else test.person
    for person in asked.unique().tolist():
        which = (asked == person).nonzero().squeeze(-1)
        one = model if number is None else model.for_judge(number.get(person, "new"))
        if isinstance(test, Choices) and test.num_outcomes > 2:
            found[which] = one.predictive(Z[which], available=test.available[which]).probs
            continue
        is_choice = isinstance(test, Choices)
        probs = one.predictive(Z[which] if is_choice else Z[which].unsqueeze(-2)).probs.reshape(len(which), -1)
        if probs.shape[-1] == 1:
            probs = torch.cat([probs, 1 - probs] if is_choice else [1 - probs, probs], dim=-1)
        found[which] = probs
    return of_outcomes(found, test)


def pairwise_gp(known: Choices, test: Choices) -> Predictions:
    X, Z = scaled(known, test)
    first = pairwise_wins(X.flatten(0, 1), observations_of(known)[0].pairs, Z)
    return of_outcomes(torch.stack([first, 1 - first], dim=-1), test)


class CovarianceOfDuels(Kernel):
    """Covariances of differences of utility; an input is two options, one after the other."""

    def __init__(self, utility: Kernel) -> None:
        super().__init__()
        self.utility = utility

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        (a, b), (c, d) = x1.chunk(2, -1), x2.chunk(2, -1)
        pairs = [self.utility(one, two, diag=diag) for one, two in ((a, c), (b, d), (a, d), (b, c))]
        aligned, crossed, other, another = (to_dense(each) for each in pairs)
        return aligned + crossed - other - another


def svgp(known: Choices | Grades, test: Choices | Grades) -> Predictions:
    """GPyTorch's sparse variational model of labels, or of duels by their differences of utility."""
    X, Z = scaled(known, test)
    torch.manual_seed(0)
    utility = ScaleKernel(get_covar_module_with_dim_scaled_prior(ard_num_dims=X.shape[-1]))
    if isinstance(known, Choices):
        X = torch.where(known.answer.bool()[:, None, None], X.flip(1), X).flatten(1)  # the chosen option first
        Z, y = Z.flatten(1), torch.ones(len(X)).double()
        covar_module, mean_module = CovarianceOfDuels(utility), ZeroMean()
    else:
        y, covar_module, mean_module = known.answer.double(), utility, ConstantMean()
    model = SingleTaskVariationalGP(
        X, likelihood=BernoulliLikelihood(), covar_module=covar_module, mean_module=mean_module,
        inducing_points=X[torch.randperm(len(X))[:100]],
    ).to(X)  # fmt: skip
    elbo = VariationalELBO(model.likelihood, model.model, num_data=len(X))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3000):
        batch = torch.randint(len(X), (512,))
        optimiser.zero_grad()
        (-elbo(model.model(X[batch]), y[batch])).backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        yes = model.likelihood(model.model(Z)).mean
    return of_outcomes(torch.stack([yes, 1 - yes], dim=-1) if isinstance(test, Choices) else yes, test)

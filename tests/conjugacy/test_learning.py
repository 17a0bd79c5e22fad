"""Parameters of each likelihood are found again from data made with known ones."""

from functools import partial
from math import log

import gpytorch
import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Tie,
    Validity,
)

# Near points make a nearly singular kernel matrix.
pytestmark = pytest.mark.slow

SEEDS = 8


def fixed_kernel() -> ScaleKernel:
    covar_module = ScaleKernel(RBFKernel()).double()
    covar_module.initialize(outputscale=torch.tensor(2.0).double())
    covar_module.base_kernel.initialize(lengthscale=torch.tensor(0.8).double())
    return covar_module.requires_grad_(False)


def world(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points and a latent function there, drawn from the prior."""
    X = 12 * torch.rand(n, 1, dtype=torch.float64, generator=generator)
    K = fixed_kernel()(X).to_dense() + 1e-8 * torch.eye(n, dtype=X.dtype)
    return X, torch.linalg.cholesky(K) @ torch.randn(n, dtype=X.dtype, generator=generator)


def fit(X: Tensor, observations: list[Observation], likelihood: RowLikelihood, **kwargs: Kernel) -> RowLikelihood:
    mean_module = gpytorch.means.ZeroMean()
    model = SkewGP(X, observations, likelihood, fixed_kernel(), mean_module, **kwargs)
    mll = SkewGPMarginalLogLikelihood(likelihood, model)
    fit_gpytorch_mll(mll)
    return likelihood


def noise_of(values: Tensor, variance: float, generator: torch.Generator) -> Tensor:
    return variance**0.5 * torch.randn(values.shape, dtype=values.dtype, generator=generator)


def numbers_of(f: Tensor, generator: torch.Generator) -> Numeric:
    """Numbers of little noise, which fix the scale, so that other noise can be told from it."""
    return Numeric(f + noise_of(f, 0.02, generator), noise=torch.tensor(0.02).double())


def fit_beside_numbers(X: Tensor, f: Tensor, seen: Observation, likelihood: RowLikelihood, generator) -> RowLikelihood:
    mixed = MixedLikelihood(NumericLikelihood(learn_noise=False), likelihood)
    fit(X, [numbers_of(f, generator), seen], mixed)
    return likelihood


def numbers(generator, variance):
    X, f = world(60, generator)
    likelihood = NumericLikelihood(noise_prior=LogNormalPrior(loc=-2.0, scale=3.0))
    return fit(X, [Numeric(f + noise_of(f, variance, generator))], likelihood).noise.log()


def numbers_that_are_censored_above_one(generator):
    X, f = world(80, generator)
    y = f + noise_of(f, 0.1, generator)
    seen, hidden = (y <= 1).nonzero().squeeze(-1), (y > 1).nonzero().squeeze(-1)
    one = torch.ones(len(hidden), dtype=y.dtype)
    observations = [Numeric(y[seen], index=seen), Censored(one, torch.inf * one, index=hidden)]
    return fit(X, observations, NumericLikelihood(noise_prior=LogNormalPrior(loc=-2.0, scale=3.0))).noise.log()


def cutpoints_of_grades(generator):
    """The middle one is fixed at zero, the others are -0.7 and 1.2 away."""
    X, f = world(150, generator)
    noisy = f + noise_of(f, 0.3, generator)
    grades = torch.searchsorted(torch.tensor([-0.7, 0.0, 1.2], dtype=f.dtype), noisy)
    likelihood = OrdinalLikelihood(4, noise=torch.tensor(0.3).double())
    return fit(X, [Ordinal(grades, 4)], likelihood).cutpoints[[0, 2]]


# A win is any positive difference today, so that wins do not speak against a wide tie.
def width_of_ties(generator, width):
    """A duel ends in a tie or is won by more than the width: the three outcomes' probabilities sum to one."""
    X, f = world(40, generator)
    pairs = torch.stack([torch.randperm(40, generator=generator)[:2] for _ in range(150)])
    noisy = f[pairs] + noise_of(f[pairs], 0.2, generator)
    difference = noisy[:, 0] - noisy[:, 1]
    tie = difference.abs() < width
    winners = torch.where((difference > 0).unsqueeze(-1), pairs, pairs.flip(-1))
    likelihood = PreferenceLikelihood(noise=0.2, learn_tie_width=True, tie_width=0.5, ties_allowed=True)
    return fit(X, [Tie(pairs[tie]), Preference(winners[~tie])], likelihood).tie_width.log()


WIDTHS = (0.15, 0.6, 1.5)


def widths_of_ties_of_judges(generator):
    """Judges share most of their utility; one hardly ever calls a tie, one often."""
    X, f = world(40, generator)
    own = fixed_kernel()
    own.outputscale = 0.2
    root = torch.linalg.cholesky(own(X).to_dense() + 1e-8 * torch.eye(40, dtype=X.dtype))
    utility = f.unsqueeze(-1) + root @ torch.randn(40, 3, dtype=X.dtype, generator=generator)
    judge = torch.arange(240) % 3
    pairs = torch.stack([torch.randperm(40, generator=generator)[:2] for _ in judge])
    seen = utility[pairs, judge.unsqueeze(-1)]
    difference = (seen + noise_of(seen, 0.2, generator)).diff(dim=-1).squeeze(-1)
    tie = difference.abs() < torch.tensor(WIDTHS).double()[judge]
    winners = torch.where((difference < 0).unsqueeze(-1), pairs, pairs.flip(-1))
    observations = [Tie(pairs[tie], judge=judge[tie]), Preference(winners[~tie], judge=judge[~tie])]
    likelihood = PreferenceLikelihood(0.2, tie_width=[0.5] * 3, learn_tie_width=True, ties_allowed=True)
    return fit(X, observations, likelihood, judge_covar_module=own).tie_width.log()


def comparisons_beside_numbers(generator, k):
    X, f = world(40, generator)
    items = torch.stack([torch.randperm(40, generator=generator)[:k] for _ in range(200 if k == 2 else 80)])
    noisy = f[items] + noise_of(f[items], 0.5, generator)
    ordered = items.gather(-1, noisy.argsort(-1, descending=True))
    comparisons = Preference(ordered) if k == 2 else Choice(ordered)
    likelihood = PreferenceLikelihood(noise=0.1, learn_noise=True)
    return fit_beside_numbers(X, f, comparisons, likelihood, generator).noise.log()


def labels_beside_numbers(generator):
    X, f = world(150, generator)
    labels = Binary(f + noise_of(f, 0.5, generator) > 0)
    return fit_beside_numbers(X, f, labels, ProbitLikelihood(noise=0.1, learn_noise=True), generator).noise.log()


def threshold_and_noise_of_validity(generator):
    X, f = world(200, generator)
    valid = Validity(f + noise_of(f, 0.3, generator) > 0.6)
    likelihood = ValidityLikelihood(threshold=0.0, learn_threshold=True, noise=1.0, learn_noise=True)
    fit_beside_numbers(X, f, valid, likelihood, generator)
    return torch.cat([likelihood.threshold, likelihood.noise.log()])


CASES = {
    "little noise of numbers": (partial(numbers, variance=0.02), [log(0.02)]),
    "noise of numbers": (partial(numbers, variance=0.3), [log(0.3)]),
    "noise of numbers that are censored": (numbers_that_are_censored_above_one, [log(0.1)]),
    "cut-points of grades": (cutpoints_of_grades, [-0.7, 1.2]),
    "narrow ties": (partial(width_of_ties, width=0.3), [log(0.3)]),
    "wide ties": (partial(width_of_ties, width=1.0), [log(1.0)]),
    "widths of ties of judges of unlike strictness": (widths_of_ties_of_judges, [log(width) for width in WIDTHS]),
    "noise of duels": (partial(comparisons_beside_numbers, k=2), [log(0.5)]),
    "noise of choices": (partial(comparisons_beside_numbers, k=4), [log(0.5)]),
    "noise of labels": (labels_beside_numbers, [log(0.5)]),
    "threshold and noise of validity": (threshold_and_noise_of_validity, [0.6, log(0.3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_found_again(name):
    """It lies within the spread of the estimates over seeds, which is itself no excuse for anything."""
    estimate, truth = CASES[name]
    found = torch.stack([estimate(torch.Generator().manual_seed(seed)).detach().flatten() for seed in range(SEEDS)])
    center, spread = found.mean(0), found.std(0)
    assert (spread > 0).all(), "nothing was learned from the data"
    assert (spread < 0.6).all(), spread
    # a t statistic with 7 degrees of freedom; the flat end covers what little the priors pull
    off = (center - torch.tensor(truth).double()).abs()
    assert (off < 5 * spread / SEEDS**0.5 + 0.05).all(), (center, spread)

"""Small models with every hyperparameter free, and their exact objective by numerical integration."""

import gpytorch
import numpy as np
import torch
from scipy.stats import multivariate_normal
from tensors import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary, Choice, Numeric, Ordinal, Preference, Tie, Validity

TRAIN_X = tensor(0.0, 0.5, 1.1, 1.5, 2.2, 2.9).unsqueeze(-1)
PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5]])


def _numbers_and_duels():
    return MixedLikelihood(NumericLikelihood(0.2), PreferenceLikelihood(0.5, learn_noise=True))


CASES = {
    "labels": (lambda: Binary(tensor(1, 1, 0, 1, 0)), lambda: ProbitLikelihood(0.6, learn_noise=True)),
    "grades": (lambda: Ordinal(tensor(0, 1, 2, 1), 4), lambda: OrdinalLikelihood(4, noise=0.3, learn_noise=True)),
    "validity": (
        lambda: Validity(torch.tensor([1, 0, 1, 0, 0])),
        lambda: ValidityLikelihood(0.2, learn_threshold=True, noise=0.4, learn_noise=True),
    ),
    "ties": (
        lambda: [Preference(PAIRS[:3]), Tie(torch.tensor([[0, 5], [3, 4]]))],
        lambda: PreferenceLikelihood(0.3, learn_noise=True, tie_width=0.4, learn_tie_width=True),
    ),
    "choices": (
        lambda: Choice(options=torch.tensor([[1, 0, 2], [5, 3, 4]])),
        lambda: PreferenceLikelihood(0.3, learn_noise=True),
    ),
    "numbers and duels": (
        lambda: [Numeric(tensor(0.8, -0.4), index=torch.tensor([1, 4])), Preference(PAIRS)],
        _numbers_and_duels,
    ),
    # more duels than points: the low-rank path
    "many duels": (
        lambda: Preference(torch.tensor([[0, 1], [1, 2], [0, 2], [2, 0], [0, 1]])),
        lambda: PreferenceLikelihood(0.4, learn_noise=True),
    ),
}


def skew_prior(learn=True):
    prior = SkewPrior(tensor(0.4, 1.8).unsqueeze(-1), tensor(1.0, -1.0), tensor(0.1, -0.4), learn)
    prior.truncation.requires_grad_(learn)
    return prior


def model_of(name, prior=None, learn_mean=True):
    observations, likelihood = CASES[name]
    covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    covar_module.base_kernel.lengthscale, covar_module.outputscale = 0.7, 1.5
    mean_module = gpytorch.means.ConstantMean()
    mean_module.initialize(constant=0.2)
    if name == "ties":  # a constant mean cancels in differences
        mean_module = gpytorch.means.LinearMean(1)
        mean_module.initialize(weights=tensor(0.3).unsqueeze(-1), bias=tensor(0.1))
    X = TRAIN_X[:3] if name == "many duels" else TRAIN_X
    return SkewGP(X, observations(), likelihood(), covar_module, mean_module, prior).double()


def log_prior(model):
    return sum(prior.log_prob(closure(module)).sum().item() for _, module, prior, closure, _ in model.named_priors())


def log_probability(distribution):
    """The log normaliser by quasi-Monte Carlo integration; the same points at every call."""
    if distribution.num_rows == 0:
        return 0.0
    value = multivariate_normal.cdf(
        distribution.upper.numpy(),
        distribution.mean.numpy(),
        distribution.gamma.numpy(),
        lower_limit=distribution.lower.numpy(),
        allow_singular=True,
        maxpts=100_000,
        abseps=1e-9,
        releps=1e-9,
        rng=np.random.default_rng(0),
    )
    return float(np.log(value))


@torch.no_grad()
def exact_objective(model):
    """Log evidence plus log priors."""
    model.train()
    prior = model(*model.train_inputs)
    evidence = model.evidence(prior)
    value = float(evidence.number_log_density) + log_probability(evidence.rows) - log_probability(evidence.prior_rows)
    return value + log_prior(model)

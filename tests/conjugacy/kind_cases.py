"""One small data set of every kind of observation over the same six points, and models of them."""

from __future__ import annotations

import math

import gpytorch
import torch
from generative_reference import Parameters, Reference, generative_posterior, rbf, rbf_columns
from tensors import tensor
from torch import Tensor

from benchmarks._kinds import Noise, constant_mean, likelihood_of, rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import RowLikelihood
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
    Vote,
)
from botorch_skewgp.truncated.draws import DrawSettings

OUTPUTSCALE, LENGTHSCALE, MEAN = 1.5, 0.7, 0.2
TRAIN_X = torch.tensor([[0.0], [0.5], [1.1], [1.5], [2.2], [2.9]], dtype=torch.float64)
# two points with data, one between, one beyond
TEST_X = torch.tensor([[0.5], [2.2], [1.3], [3.4]], dtype=torch.float64)
INF = math.inf


def at(*index: int) -> Tensor:
    return torch.tensor(index)


def affine() -> AffineProbit:
    weight = torch.tensor(
        [[0.7, -0.4, 0.0, 0.0, 0.5, 0.1], [0.0, 0.6, 0.6, -0.8, 0.0, 0.0], [0.0, 0.0, 1.0, 0.3, 0.0, -0.5]],
        dtype=torch.float64,
    )
    covariance = torch.tensor([[0.8, 0.3, -0.2], [0.3, 0.6, 0.1], [-0.2, 0.1, 0.5]], dtype=torch.float64)
    return AffineProbit(weight, tensor(0.1, -0.3, 0.2), covariance, tensor(-0.5, 0.1, -INF), tensor(1.5, INF, 0.4))


KINDS: dict[str, Observation] = {
    "numeric": Numeric(tensor(0.9, -0.6, 0.2), index=at(0, 2, 3)),
    "numeric with given noise": Numeric(tensor(0.5, 1.2), noise=tensor(0.02, 0.3), index=at(1, 4)),
    "binary": Binary(torch.tensor([1, 0, 0, 1]), index=at(0, 1, 1, 4)),
    "ordinal": Ordinal(torch.tensor([2, 0, 1, 2]), 3, index=at(0, 2, 3, 5)),
    "censored": Censored(tensor(-INF, 0.8, -0.3, 0.5), tensor(-0.4, INF, 0.1, 2.0), index=at(1, 3, 4, 5)),
    "preference": Preference(torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [1, 2]])),
    "graded duels": Preference(torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5]]), at(0, 2, 1, 0), 3),
    "tie": Tie(torch.tensor([[0, 2], [1, 4], [3, 5]])),
    "choice": Choice(torch.tensor([[1, 0, 2, 5], [4, 3, -1, -1], [2, 3, 4, -1]])),
    "ranking": Ranking(torch.tensor([[2, 0, 4, 1], [3, 5, 0, -1]])),
    "partial ranking": Ranking(torch.tensor([[5, 1, 0, 3]]), ranks=torch.tensor([[0, 0, 1, 1]])),
    "validity": Validity(torch.tensor([1, 0, 1]), index=at(0, 3, 5)),
    "vote": Vote(
        torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [0, 5]]), ["first", "second", "both bad", "tie", "both good"]
    ),
    "affine": affine(),
    "slope": Slope(0, [1, -1, 1], index=at(0, 2, 4)),
}


def kernel() -> gpytorch.kernels.Kernel:
    return rbf_kernel(OUTPUTSCALE, LENGTHSCALE)


def mean() -> gpytorch.means.Mean:
    return constant_mean(MEAN)


def likelihood(p: Noise = Parameters()) -> RowLikelihood:  # noqa: B008
    """Likelihoods of all kinds."""
    return likelihood_of(p)


def model_of(
    observations: Observation | list[Observation],
    num_draws: int = 2048,
    seed: int = 1,
    parameters: Noise = Parameters(),  # noqa: B008
    train_X: Tensor = TRAIN_X,
    with_likelihood: RowLikelihood | None = None,
    **kwargs,
) -> SkewGP:
    return SkewGP(
        train_X,
        observations,
        likelihood=likelihood(parameters) if with_likelihood is None else with_likelihood,
        covar_module=kernel(),
        mean_module=mean(),
        draw_settings=DrawSettings(num_draws=num_draws, seed=seed),
        **kwargs,
    ).eval()


def reference_of(
    observations: Observation | list[Observation],
    generator: torch.Generator,
    train_X: Tensor = TRAIN_X,
    test_X: Tensor = TEST_X,
    pseudo: tuple[Tensor, Tensor, Tensor] | None = None,
    **kwargs,
) -> Reference:
    """The reference at the test points; `pseudo` holds pseudo-points, phases and truncation."""
    blocks = [train_X, test_X] + ([] if pseudo is None else [pseudo[0]])
    Z = torch.cat(blocks)
    n, q = len(train_X), len(test_X)
    if pseudo is not None:
        pseudo = (torch.arange(n + q, len(Z)), *pseudo[1:])
    reads = torch.full((len(Z),), -1)
    asked = []
    for entry in [observations] if isinstance(observations, Observation) else observations:
        if isinstance(entry, Slope):  # coordinates of their own
            asked.append(Slope(entry.dims, entry.signs, index=torch.arange(len(entry.dims)) + len(Z)))
            Z, reads = torch.cat([Z, train_X[entry.index]]), torch.cat([reads, entry.dims])
        else:
            asked.append(entry)
    covariance = rbf_columns(Z, reads, Z, reads, OUTPUTSCALE, LENGTHSCALE)
    prior_mean = torch.where(reads < 0, MEAN, 0.0).double()
    watched = torch.arange(n, n + q)
    return generative_posterior(prior_mean, covariance, asked, watched, generator, pseudo=pseudo, **kwargs)


# labels: one latent function each, sharing a kernel

NUM_LABELS = 3
LABELS: dict[str, LabelPreference] = {
    "classes": LabelPreference.from_classes(torch.tensor([0, 2, 1, 2]), NUM_LABELS, index=at(0, 2, 3, 5)),
    "label graph": LabelPreference(
        torch.tensor([[0, 1], [1, 2], [2, 0], [1, 0]]), NUM_LABELS, index=at(0, 0, 3, 4), event=at(0, 0, 1, 2)
    ),
}


def label_model_of(observation: LabelPreference, covar_module=None, num_draws: int = 2048) -> SkewGP:
    return SkewGP(
        TRAIN_X,
        observation,
        likelihood=likelihood_of(Parameters(), NUM_LABELS),
        covar_module=kernel() if covar_module is None else covar_module,
        mean_module=mean(),
        draw_settings=DrawSettings(num_draws=num_draws, seed=1),
    ).eval()


def label_reference_of(
    observation: LabelPreference, generator: torch.Generator, kernels: list[tuple[float, float]] | None = None, **kwargs
) -> Reference:
    """The reference of all latent functions at the test points, label fastest."""
    kernels = [(OUTPUTSCALE, LENGTHSCALE)] * NUM_LABELS if kernels is None else kernels
    Z = torch.cat([TRAIN_X, TEST_X])
    per_label = torch.stack([rbf(Z, Z, *k) for k in kernels], dim=-1)  # N x N x labels
    covariance = torch.einsum("ijl,lk->iljk", per_label, torch.eye(NUM_LABELS, dtype=Z.dtype)).reshape(
        len(Z) * NUM_LABELS, -1
    )
    prior_mean = torch.full((len(Z) * NUM_LABELS,), MEAN, dtype=torch.float64)
    watched = torch.arange(len(TRAIN_X) * NUM_LABELS, len(Z) * NUM_LABELS)
    return generative_posterior(prior_mean, covariance, observation, watched, generator, **kwargs)

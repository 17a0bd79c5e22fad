"""One small data set of every kind of observation over the same six points, models of them, and what is compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import gpytorch
import torch
from tensors import tensor
from torch import Tensor

from benchmarks._observations import Noise, constant_mean, likelihood_of, rbf_kernel
from benchmarks.fuzz.cases import Anchors, Case, Seen
from benchmarks.fuzz.checks import deviations
from benchmarks.fuzz.reference import Prior, reference_of
from botorch_skewgp import SkewGP, observations
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.observations import LabelPreference, Observation
from botorch_skewgp.truncated.draws import DrawSettings

OUTPUTSCALE, LENGTHSCALE, MEAN = 1.5, 0.7, 0.2
TRAIN_X = torch.tensor([[0.0], [0.5], [1.1], [1.5], [2.2], [2.9]], dtype=torch.float64)
# two points with data, one between, one beyond
TEST_X = torch.tensor([[0.5], [2.2], [1.3], [3.4]], dtype=torch.float64)
INF = math.inf
NUM_LABELS = 3
LEVELS = torch.tensor([0.025, 0.5, 0.975], dtype=torch.float64)
EP_ERROR = 0.06  # nats

Parameters = partial(
    Noise, numbers=0.15, labels=0.6, grades=0.8, cutpoints=(-0.5, 0.7), items=0.5, tie_width=0.4,
    strengths=(0.0, 0.6, 1.5), level_gap=0.7, threshold=0.3, validity=0.4, classes=0.7,
)  # fmt: skip


def at(*index: int) -> Tensor:
    return torch.tensor(index)


def affine() -> observations.AffineProbit:
    weight = torch.tensor(
        [[0.7, -0.4, 0.0, 0.0, 0.5, 0.1], [0.0, 0.6, 0.6, -0.8, 0.0, 0.0], [0.0, 0.0, 1.0, 0.3, 0.0, -0.5]],
        dtype=torch.float64,
    )
    covariance = torch.tensor([[0.8, 0.3, -0.2], [0.3, 0.6, 0.1], [-0.2, 0.1, 0.5]], dtype=torch.float64)
    return observations.AffineProbit(
        weight, tensor(0.1, -0.3, 0.2), covariance, tensor(-0.5, 0.1, -INF), tensor(1.5, INF, 0.4)
    )


KINDS: dict[str, Observation] = {
    "numeric": observations.Numeric(tensor(0.9, -0.6, 0.2), index=at(0, 2, 3)),
    "numeric with given noise": observations.Numeric(tensor(0.5, 1.2), noise=tensor(0.02, 0.3), index=at(1, 4)),
    "sums": observations.Numeric(
        tensor(0.4, 1.1, -0.7),
        index=torch.tensor([[0, 1, 5], [2, 4, 4], [3, 3, 1]]),
        weights=[[1 / 3, 1 / 3, 1 / 3], [1.0, -0.5, -0.5], [2.0, -0.5, 0.0]],
    ),
    "binary": observations.Binary(torch.tensor([1, 0, 0, 1]), index=at(0, 1, 1, 4)),
    "ordinal": observations.Ordinal(torch.tensor([2, 0, 1, 2]), 3, index=at(0, 2, 3, 5)),
    "censored": observations.Censored(tensor(-INF, 0.8, -0.3, 0.5), tensor(-0.4, INF, 0.1, 2.0), index=at(1, 3, 4, 5)),
    "preference": observations.Preference(torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [1, 2]])),
    "graded duels": observations.Preference(torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5]]), at(0, 2, 1, 0), 3),
    "tie": observations.Tie(torch.tensor([[0, 2], [1, 4], [3, 5]])),
    "choice": observations.Choice(torch.tensor([[1, 0, 2, 5], [4, 3, -1, -1], [2, 3, 4, -1]])),
    "ranking": observations.Ranking(torch.tensor([[2, 0, 4, 1], [3, 5, 0, -1]])),
    "partial ranking": observations.Ranking([[5, 1, 0, 3]], ranks=[[0, 0, 1, 1]], ties_allowed=False),
    "ranking with ties": observations.Ranking([[2, 0, 4, 1], [3, 5, 0, -1]], ranks=[[0, 0, 0, 2], [0, 1, 1, -1]]),
    "validity": observations.Validity(torch.tensor([1, 0, 1]), index=at(0, 3, 5)),
    "vote": observations.Vote(
        torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [0, 5]]), ["first", "second", "both bad", "tie", "both good"]
    ),
    "affine": affine(),
    "slope": observations.Slope(0, [1, -1, 1], index=at(0, 2, 4)),
}
LABELS: dict[str, LabelPreference] = {  # one latent function each, sharing a kernel
    "classes": LabelPreference.from_classes(torch.tensor([0, 2, 1, 2]), NUM_LABELS, index=at(0, 2, 3, 5)),
    "label graph": LabelPreference(
        torch.tensor([[0, 1], [1, 2], [2, 0], [1, 0]]), NUM_LABELS, index=at(0, 0, 3, 4), event=at(0, 0, 1, 2)
    ),
}

EVERY: dict[str, Observation] = {
    **KINDS,
    **LABELS,
    "graded duels by name": observations.GradedPreference(torch.tensor([[0, 1], [2, 1]]), at(1, 0), 3),
    "choice or none": observations.ChoiceOrNone(torch.tensor([[1, 0, 2], [4, 3, -1]]), [False, True]),
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
    settings = {"covar_module": kernel(), "mean_module": mean(), **kwargs}
    return SkewGP(
        train_X,
        observations,
        likelihood=likelihood(parameters) if with_likelihood is None else with_likelihood,
        draw_settings=DrawSettings(num_draws=num_draws, seed=seed),
        **settings,
    ).eval()


def label_model_of(observation: LabelPreference, num_draws: int = 2048, **kwargs) -> SkewGP:
    return model_of(observation, num_draws, with_likelihood=likelihood_of(Parameters(), NUM_LABELS), **kwargs)


# Against the reference


def assert_right(
    model: SkewGP,
    observations: Observation | Sequence[Observation],
    anchors: Anchors | None = None,
    limit: float = 4.5,
    ep_error: float = EP_ERROR,
    covariance_of: Prior | None = None,
) -> None:
    """Posterior and evidence are the reference's; a right model passes 4.5 but once in some 5,000 cases."""
    entries = [observations] if isinstance(observations, Observation) else observations
    case = Case(
        TRAIN_X.tolist(), [Seen.of(entry) for entry in entries], TEST_X.tolist(), Parameters(), lengthscale=LENGTHSCALE,
        outputscale=OUTPUTSCALE, mean=MEAN, anchors=anchors,
    )  # fmt: skip
    reference = reference_of(case, covariance_of=covariance_of)
    assert reference.effective_size > 1000
    found = deviations(case, model, reference, limit)
    assert not found, found
    assert abs(log_evidence(model) - reference.log_evidence) < ep_error + 4 * reference.log_evidence_error


# Of two models


def rbf(A: Tensor, B: Tensor, outputscale: float, lengthscale: float) -> Tensor:
    """The RBF covariance, written out."""
    return outputscale * torch.exp(-0.5 * (A.unsqueeze(-2) - B.unsqueeze(-3)).square().sum(-1) / lengthscale**2)


def rbf_columns(
    A: Tensor, reads_A: Tensor, B: Tensor, reads_B: Tensor, outputscale: float, lengthscale: float
) -> Tensor:
    """The same between values (-1 among what is read) and slopes in inputs (their number), written out."""
    K = rbf(A, B, outputscale, lengthscale)
    difference = (A.unsqueeze(-2) - B.unsqueeze(-3)) / lengthscale**2

    def along(reads: Tensor) -> Tensor:  # the difference in the input read
        return difference.gather(-1, reads.clamp(min=0).unsqueeze(-1)).squeeze(-1)

    in_A = reads_A.unsqueeze(-1).expand_as(K)
    in_B = reads_B.expand_as(K)
    same = (in_A == in_B).to(K) / lengthscale**2
    slopes = torch.where(in_A >= 0, same - along(in_A) * along(in_B), along(in_B))
    return K * torch.where(in_B >= 0, slopes, torch.where(in_A >= 0, -along(in_A), 1.0))


@dataclass(frozen=True)
class Estimate:
    """A value with its Monte Carlo standard error."""

    value: Tensor
    error: Tensor


def own_statistics(posterior, effective_size: float) -> dict[str, Estimate]:
    """Statistics of a posterior, with the errors that follow from its effective sample size."""
    means, v = posterior.component_means.detach(), posterior.gaussian_variance.detach().unsqueeze(-1)
    mu = posterior.mean.detach().flatten(-2).unsqueeze(-1)
    sd = posterior.variance.detach().flatten(-2).unsqueeze(-1).sqrt()
    skewness = posterior.skewness.detach().flatten(-2)
    a, c = (means - mu) / sd, v / sd.square()
    one_draw = means.shape[-1] == 1

    def estimate(value: Tensor, influence: Tensor) -> Estimate:
        """`influence` holds the mean influence of each component of the mixture."""
        error = influence.square().mean(-1).sqrt() / math.sqrt(effective_size)
        return Estimate(value, torch.zeros_like(error) if one_draw else error)

    quantiles = posterior.quantile(LEVELS).detach().flatten(-2)
    density = torch.stack([posterior.density(q.unsqueeze(-1)).detach().flatten(-2) for q in quantiles])
    below = torch.special.ndtr((quantiles.unsqueeze(-1) - means) / v.sqrt())
    s = skewness.unsqueeze(-1)
    return {
        "mean": estimate(mu.squeeze(-1), means - mu),
        "sd": estimate(sd.squeeze(-1), 0.5 * sd * (a.square() + c - 1)),
        "skewness": estimate(skewness, a.pow(3) + 3 * a * c - 3 * a - s - 1.5 * s * (a.square() + c - 1)),
        "quantiles": estimate(quantiles, (below - LEVELS.view(-1, 1, 1)) / density.unsqueeze(-1)),
    }


def own_effective_size(model) -> float:
    sizes = model.draws.effective_size
    return float(sizes.min()) if sizes.numel() else math.inf


def log_evidence(model) -> float:
    """The model's own log evidence by expectation propagation, without hyperparameter priors."""
    return float(model.log_marginal_likelihood("ep").value)


def assert_same_law(one: SkewGP, other: SkewGP, evidence: float = 1e-7, X: Tensor = TEST_X) -> None:
    """Two models have the same evidence, and posteriors that differ by no more than the errors of their draws."""
    assert abs(log_evidence(one) - log_evidence(other)) <= evidence
    first, second = (own_statistics(model.posterior(X), own_effective_size(model)) for model in (one, other))
    for name in first:
        error = (first[name].error.square() + second[name].error.square()).sqrt()
        assert ((first[name].value - second[name].value).abs() <= 4.5 * error + 1e-8).all(), name

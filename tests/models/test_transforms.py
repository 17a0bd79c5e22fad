"""What a model learns from its transforms."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.transforms.input import AppendFeatures, ChainedInputTransform, InputPerturbation
from botorch.models.transforms.outcome import Standardize
from botorch.sampling import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.models.transforms import learn_outcome_scale
from botorch_skewgp.observations import Binary, Censored, Numeric, Preference


def test_numbers_alone_are_learned_from():
    values = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    kinds = [Numeric(values[:3]), Censored([0.0], [100.0]), Preference([[0, 1]]), Numeric(values[3:])]
    scale = learn_outcome_scale(kinds, Standardize(m=1))
    assert scale.location == pytest.approx(4.0)
    assert scale.scale == pytest.approx(values.std().item())


def test_overflow_is_said():
    values = torch.tensor([3e38, -3e38, 3e38], dtype=torch.float32)
    with pytest.raises(InputDataError, match=r"too large to be standardised in torch\.float32"):
        learn_outcome_scale([Numeric(values)], Standardize(m=1))


X = torch.rand(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


FEATURES = torch.tensor([[0.1], [0.4], [0.9]], dtype=torch.float64)
QUERIES = torch.rand(4, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def with_features(Q):
    """Every query with every feature, the latter fastest."""
    n, k = len(Q), len(FEATURES)
    return torch.cat([Q.unsqueeze(1).expand(n, k, -1), FEATURES.expand(n, k, 1)], dim=-1).flatten(0, 1)


APPENDED = {
    "a set": (lambda: AppendFeatures(FEATURES), with_features(QUERIES)),
    "a function": (
        lambda: AppendFeatures(f=lambda x: torch.stack([x[..., :1], x[..., :1] ** 2], -2), indices=[0]),
        torch.stack([QUERIES.expand(-1, 2), torch.cat([QUERIES, QUERIES**2], -1)], 1).flatten(0, 1),
    ),
    "after perturbations": (
        lambda: ChainedInputTransform(
            near=InputPerturbation(torch.tensor([[0.0], [0.1], [0.2]], dtype=torch.float64)),
            more=AppendFeatures(FEATURES, skip_expand=True),
        ),
        with_features(QUERIES) + torch.tensor([[0.0, 0.0], [0.1, 0.0], [0.2, 0.0]], dtype=torch.float64).repeat(4, 1),
    ),
}


@pytest.mark.parametrize(
    "observation", [Numeric(4 * (X[:, 0] - X[:, 1])), Binary(X[:, 0] > 0.5)], ids=["numbers", "labels"]
)
@pytest.mark.parametrize("name", APPENDED)
def test_features_appended_to_queries_are_those_of_full_points(name, observation):
    make, points = APPENDED[name]
    model = SkewGP(X, observation, input_transform=make(), approximation="ep")
    plain = SkewGP(X, observation, approximation="ep")
    found, wanted = model.posterior(QUERIES), plain.posterior(points)
    torch.testing.assert_close(found.mean, wanted.mean)
    torch.testing.assert_close(found.covariance_matrix, wanted.covariance_matrix)
    assert model.posterior(QUERIES, observation_noise=True).variance.shape == wanted.variance.shape


@pytest.mark.parametrize("observation", [Numeric(4 * X[:, 0] - 2), Binary(X[:, 0] > 0.5)], ids=["numbers", "labels"])
@pytest.mark.parametrize("make", [lambda: AppendFeatures(FEATURES), lambda: InputPerturbation(0.1 - FEATURES)])
def test_fantasies_are_at_full_points_without_perturbations(make, observation):
    """Those of a model without the transform, asked at the points that the transform makes."""
    transform = make()
    queries = QUERIES if isinstance(transform, AppendFeatures) else QUERIES.expand(-1, 2)
    at = with_features(QUERIES) if isinstance(transform, AppendFeatures) else transform.eval()(queries)
    means = []
    for options, Q in (({"input_transform": transform}, queries), ({}, at)):
        model = SkewGP(X, observation, approximation="ep", **options)
        sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
        means.append(model.fantasize(X[:2] + 0.01, sampler).posterior(Q).mean)
    torch.testing.assert_close(*means)

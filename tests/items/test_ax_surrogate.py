"""Labelled pairs in Ax's modular generator, with a SkewGP in the place of its PairwiseGP, and our functions by name."""

import pytest
import torch

pytest.importorskip("ax")

from ax.core.search_space import SearchSpaceDigest
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator
from ax.generators.torch.botorch_modular.surrogate import ModelConfig, SurrogateSpec
from ax.generators.torch_base import TorchOptConfig
from ax.utils.common.constants import Keys
from botorch.utils.containers import SliceContainer
from botorch.utils.datasets import RankingDataset

import botorch_skewgp.ax  # noqa: F401
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import DuelingLogExpectedImprovement, SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood

METRIC = Keys.PAIRWISE_PREFERENCE_QUERY.value
CONFIG = ModelConfig(botorch_model_class=SkewGP, mll_class=SkewGPMarginalLogLikelihood)


def labelled_pairs():
    X = torch.rand(8, 2, dtype=torch.double)
    pairs = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [1, 2], [3, 4]])
    ordered = torch.where((X[pairs[:, :1], 0] > X[pairs[:, 1:], 0]), pairs, pairs.flip(-1))
    events = SliceContainer(values=X, indices=ordered, event_shape=torch.Size([4]))
    ranks = torch.tensor([[0, 1]]).expand(6, 2)
    return RankingDataset(events, ranks, feature_names=["a", "b"], outcome_names=[METRIC])


@pytest.mark.parametrize(
    ("acqf_class", "n"),
    [
        pytest.param(DuelingLogExpectedImprovement, 1, marks=pytest.mark.slow),
        (SkewBayesianActiveLearningByDisagreement, 2),
    ],
)
def test_pairs_by_our_model_and_functions(acqf_class, n):
    specification = SurrogateSpec(metric_to_model_configs={METRIC: [CONFIG]})
    generator = BoTorchGenerator(surrogate_spec=specification, botorch_acqf_class=acqf_class)
    digest = SearchSpaceDigest(feature_names=["a", "b"], bounds=[(0.0, 1.0), (0.0, 1.0)])
    generator.fit(datasets=[labelled_pairs()], search_space_digest=digest)
    (model,) = generator.surrogate.model.models
    assert isinstance(model, SkewGP)
    assert len(model.observations[0].duels) == 6
    config = TorchOptConfig(
        objective_weights=torch.ones(1, 1, dtype=torch.double),
        opt_config_metrics={METRIC: None},
        model_gen_options={"optimizer_kwargs": {"num_restarts": 2, "raw_samples": 16, "sequential": False}},
    )
    points = generator.gen(n=n, search_space_digest=digest, torch_opt_config=config).points
    assert points.shape == (n, 2)
    assert ((points >= 0) & (points <= 1)).all()

"""The sampler that BoTorch finds for the posterior."""

from types import SimpleNamespace

import pytest
import torch
from botorch.acquisition.objective import LearnedObjective
from botorch.posteriors import PosteriorList, TransformedPosterior
from botorch.sampling.get_sampler import get_sampler
from botorch.sampling.list_sampler import ListSampler
from botorch.sampling.normal import IIDNormalSampler, SobolQMCNormalSampler
from torch.quasirandom import SobolEngine

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Preference
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.sampling import get_skew_gp_sampler
from botorch_skewgp.truncated.draws import DrawSettings


def posterior(num_points: int) -> SkewGPPosterior:
    """Independent standard normal values, whatever the data."""
    mixture = RepresenterMixture(torch.zeros(1, 2, dtype=torch.float64), torch.zeros(1, 0, dtype=torch.float64))
    zeros = torch.zeros(num_points, dtype=torch.float64)
    return SkewGPPosterior(zeros, zeros.unsqueeze(-1), torch.ones_like(zeros).diag(), mixture)


def test_sobol_by_default():
    sampler = get_sampler(posterior(3), torch.Size([8]), seed=5)
    assert type(sampler) is SobolQMCNormalSampler
    assert sampler.sample_shape == torch.Size([8])
    assert sampler.seed == 5
    samples = sampler(posterior(3))
    assert samples.shape == (8, 3, 1)
    assert torch.equal(get_sampler(posterior(3), torch.Size([8]), seed=5)(posterior(3)), samples)


@pytest.mark.parametrize(("width", "cls"), [(-1, SobolQMCNormalSampler), (0, IIDNormalSampler)])
def test_independent_samples_beyond_the_sobol_engine(width, cls):
    """The picking column counts: one more than there are values."""
    wide = SimpleNamespace(base_sample_shape=torch.Size([1 + SobolEngine.MAXDIM + width]))
    assert type(get_skew_gp_sampler(wide, torch.Size([8]))) is cls


def test_within_other_posteriors():
    together = PosteriorList(posterior(2), posterior(2))
    assert type(get_sampler(together, torch.Size([4]))) is ListSampler
    transformed = TransformedPosterior(posterior(2), sample_transform=torch.exp)
    sampler = get_sampler(transformed, torch.Size([4]))
    assert type(sampler) is SobolQMCNormalSampler
    assert (sampler(transformed) > 0).all()


def test_base_samples_survive_more_points():
    """BoTorch keeps the first columns of base samples when pending points are added; values there stay the same."""
    sampler = SobolQMCNormalSampler(torch.Size([6]), seed=0)
    few, many = posterior(2), posterior(4)
    first = sampler(few)
    other = SobolQMCNormalSampler(torch.Size([6]), seed=1)
    other._update_base_samples(posterior=many, base_sampler=sampler)
    assert torch.equal(other(many)[:, :2], first)


@pytest.mark.parametrize("num_outcomes", [1, 3])
def test_as_a_learned_objective(num_outcomes, generator):
    X = torch.rand(5, num_outcomes, generator=generator, dtype=torch.float64)
    pairs = torch.tensor([[0, 1], [2, 1], [3, 4]])
    model = SkewGP(X, Preference(pairs), draw_settings=DrawSettings(num_draws=64))
    objective = LearnedObjective(pref_model=model, sample_shape=torch.Size([2]), seed=0)
    samples = torch.rand(4, 3, 2, num_outcomes, generator=generator, dtype=torch.float64)
    value = objective(samples)
    assert value.shape == (8, 3, 2)
    assert torch.equal(objective(samples), value)

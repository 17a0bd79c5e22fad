"""How a search of quantiles moves; what it finds is tested with the mixtures."""

import pytest
import torch

from botorch_skewgp.posteriors import NormalMixtureMarginals
from botorch_skewgp.posteriors import quantile_search as module

pytestmark = pytest.mark.rounding


def test_number_of_evaluations_near_point_masses(monkeypatch):
    """Newton's method creeps there; bisections in between must not let it."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(7, 40, generator=generator, dtype=torch.float64).exp()
    some = NormalMixtureMarginals(means, 1e-5 * means[:, :1], torch.full((40,), 1 / 40, dtype=torch.float64))
    steps = []
    step = module._Search.step
    monkeypatch.setattr(module._Search, "step", lambda *args: steps.append(1) or step(*args))
    some.quantile(torch.full((7,), 0.3, dtype=torch.float64))
    assert len(steps) < 70

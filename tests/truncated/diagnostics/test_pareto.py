"""The tail of importance weights, against ArviZ."""

import arviz
import numpy as np
import pytest
import torch

from botorch_skewgp.truncated.diagnostics import pareto_shape


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.9, 1.5])
def test_shape_is_arvizs(shape):
    log_weights = np.log(np.random.default_rng(0).pareto(1 / shape, (2, 400)))
    found = pareto_shape(torch.tensor(log_weights) + 700)
    for i in range(2):
        assert found[i].item() == pytest.approx(float(arviz.psislw(log_weights[i])[1]), abs=1e-9)


def test_weights_without_a_tail():
    assert pareto_shape(torch.zeros(30)).item() == -torch.inf
    bounded = torch.rand(2000, dtype=torch.float64).log()
    assert pareto_shape(bounded) < 0
    with pytest.raises(ValueError, match="25"):
        pareto_shape(torch.zeros(24))

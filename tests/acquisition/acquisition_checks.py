"""What every acquisition function of this package has to do, at candidates `3 x 2 x q x d`."""

from __future__ import annotations

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from gradients import assert_gradient
from torch import Tensor


def check_acquisition(
    acquisition: AcquisitionFunction,
    X: Tensor,
    atol: float = 1e-10,
    least_gradient: float = 1e-4,
    everywhere: bool = True,
    step: float = 1e-5,
) -> None:
    """Values repeat to the last digit, are those of candidates alone and in smaller batches, and have gradients."""
    values = acquisition(X)
    assert values.shape == X.shape[:2] == (3, 2)
    assert values.isfinite().all()
    assert torch.equal(acquisition(X), values)
    for i in range(3):
        torch.testing.assert_close(acquisition(X[i]), values[i], rtol=1e-9, atol=atol)
        for j in range(2):
            torch.testing.assert_close(acquisition(X[i, j]), values[i, j].unsqueeze(0), rtol=1e-9, atol=atol)
    steep = assert_gradient(acquisition, X, step).abs().amax((-1, -2)) > least_gradient
    assert steep.all() if everywhere else steep.any()

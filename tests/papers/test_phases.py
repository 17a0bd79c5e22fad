"""Phases of a skew prior, against all of them by brute force."""

import itertools

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.means import ConstantMean
from gpytorch.priors import NormalPrior
from gradients import evaluate
from tensors import tensor

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import Binary
from botorch_skewgp.papers import fit_phases

X = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1)


def value_of(mll):
    return evaluate(mll.train()).item()


def skewed(num_points, seed=0):
    """Labels that are 1 on the left and 0 on the right, and a skew prior with phases at random."""
    points = torch.linspace(0.05, 0.95, num_points, dtype=torch.float64).unsqueeze(-1)
    phases = torch.randint(2, (num_points,), generator=torch.Generator().manual_seed(seed)) * 2 - 1
    covar_module = rbf_kernel(2.0, 0.25).requires_grad_(False)
    labels, mean_module = (X.squeeze(-1) < 0.55).long(), ConstantMean(NormalPrior(0.0, 10.0**0.5))
    return SkewGP(X, Binary(labels), None, covar_module, mean_module, SkewPrior(points, phases))


@torch.no_grad()
def all_phases(model):
    """The fitted objective for all phases, by brute force."""
    values = {}
    for phases in itertools.product((1.0, -1.0), repeat=model.skew_prior.latent_dim):
        model.skew_prior.phases.copy_(tensor(*phases))
        model.mean_module.initialize(constant=0.0)
        with torch.enable_grad():
            values[phases] = value_of(fit_skew_gp(model))
    return values


@pytest.mark.slow
def test_phases_are_the_best_of_all():
    model = skewed(3)
    mll = fit_phases(model)
    best = value_of(mll)
    found = tuple(model.skew_prior.phases.tolist())
    values = all_phases(model)
    assert max(values, key=values.get) == found == (1.0, 1.0, -1.0)
    assert best == pytest.approx(max(values.values()), abs=1e-4)


def test_a_model_without_a_skew_prior_is_refused():
    with pytest.raises(UnsupportedError, match="without a skew prior"):
        fit_phases(SkewGP(X, Binary([0, 1] * 6)))


def test_too_many_phases_are_refused():
    with pytest.raises(UnsupportedError, match=r"2\^9 phases"):
        fit_phases(skewed(9))

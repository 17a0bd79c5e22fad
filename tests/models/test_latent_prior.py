"""Covariances with the columns and among points come out alike, by one call of the kernel or by two."""

import pytest
import torch
from gpytorch.kernels import LinearKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean

from botorch_skewgp import SkewGP
from botorch_skewgp.models import SkewPrior, latent_prior
from botorch_skewgp.models.means import IntegratedConstantMean
from botorch_skewgp.observations import Binary, LabelPreference, Slope

DOUBLE = torch.double
TRAIN = torch.rand(6, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
LABELS = Binary(torch.tensor([1, 0, 1, 1, 0, 1]))


def rbf():
    return ScaleKernel(RBFKernel(ard_num_dims=2)).double()


def skewed():
    return SkewPrior(TRAIN[:2] + 0.1, torch.ones(2), truncation=0.0)


MODELS = {
    "scaled": lambda: SkewGP(TRAIN, LABELS, covar_module=rbf(), mean_module=ZeroMean()),
    "integrated constant": lambda: SkewGP(TRAIN, LABELS, covar_module=rbf(), mean_module=IntegratedConstantMean(2.0)),
    "sum with a linear kernel": lambda: SkewGP(TRAIN, LABELS, covar_module=rbf() + LinearKernel().double()),
    "inducing points": lambda: SkewGP(TRAIN, LABELS, inducing_points=4),
    "pseudo-points": lambda: SkewGP(TRAIN, LABELS, skew_prior=skewed()),
    "several outputs": lambda: SkewGP(TRAIN, LabelPreference(torch.tensor([[0, 1], [2, 1]]), 3, torch.tensor([0, 4]))),
    "slopes": lambda: SkewGP(TRAIN, [LABELS, Slope(torch.tensor([1, 0]), 1, index=torch.tensor([0, 3]))]),
}


@pytest.mark.parametrize("shape", [(1, 2), (5, 2), (4, 1, 2), (2, 3, 5, 2), (9, 2)], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_covariances_are_those_of_each_alone(name, shape, monkeypatch):
    prior = MODELS[name]().eval().latent_prior()
    X = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
    wanted = prior.cross_covariance(X), prior.covariance_at(X).to_dense()
    for most in (0, 2**14):
        monkeypatch.setattr(latent_prior, "MOST_COPIED", most)
        cross, covariance = prior.covariances_at(X)
        torch.testing.assert_close(cross, wanted[0], rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(covariance.to_dense(), wanted[1], rtol=1e-12, atol=1e-13)


def test_the_kernel_is_called_once_for_few_points(monkeypatch):
    prior, calls = MODELS["scaled"]().eval().latent_prior(), []
    kernel = prior.covar_module.base_kernel
    forward = kernel.forward
    monkeypatch.setattr(kernel, "forward", lambda *args, **kwargs: calls.append(1) or forward(*args, **kwargs))
    prior.covariances_at(torch.rand(4, 1, 2, dtype=DOUBLE))
    assert len(calls) == 1

"""Small data with outcomes on a scale of their own, and models of them."""

import functools

import torch

from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh

DOUBLE = torch.float64
TEST_X = torch.tensor([[0.2, 0.3], [0.9, 0.1], [0.5, 0.5]], dtype=DOUBLE)
FEW = {"num_nodes": 16, "least_effective": 0.0, "num_restarts": 1}
WARPINGS = {
    "identity": Affine,
    "arcsinh": Arcsinh,
    "sinh-arcsinh": SinhArcsinh,
    "Box-Cox": BoxCox,
    "L-SA": lambda: Composition([Affine(), SinhArcsinh()]),
}


def data(n=14, d=2, seed=3):
    """Points of the unit cube and positive outcomes with a long upper tail."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, d, dtype=DOUBLE, generator=generator)
    noise = torch.randn(n, dtype=DOUBLE, generator=generator)
    z = torch.sin(5 * X[:, 0]) + X[:, -1] + 0.1 * noise
    return X, z.exp().unsqueeze(-1)


def model(name, X=None, Y=None, **kwargs):
    """A model with few nodes."""
    if X is None:
        X, Y = data()
    return BayesianTransformedGP(X, Y, warping=WARPINGS[name](), **FEW | kwargs)


@functools.cache
def shared(name, **kwargs):
    """A model of the same data, made once, that no test changes."""
    return model(name, **kwargs)

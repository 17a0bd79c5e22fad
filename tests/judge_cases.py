"""Judges who want a large or a small first input, with known kernels of their own."""

import torch

from benchmarks._observations import rbf_kernel
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Preference

double = torch.double
X = torch.rand(8, 2, dtype=double, generator=torch.Generator().manual_seed(0))


def own_kernel(scale=3.0):
    return rbf_kernel(scale, 0.4)


def wants(first, each=14):
    """Duels of judges of whom each wants a large (1) or a small (-1) first input."""
    pairs = [(a, b) for a in range(len(X)) for b in range(len(X)) if X[a, 0] > X[b, 0] + 0.05][:each]
    pairs = torch.tensor(pairs)
    every = torch.cat([pairs if sign > 0 else pairs.flip(-1) for sign in first])
    return Preference(every, judge=torch.arange(len(first)).repeat_interleave(len(pairs)))


def model_of(observations, **options):
    return SkewGP(X, observations, judge_covar_module=own_kernel(), approximation="ep", **options)

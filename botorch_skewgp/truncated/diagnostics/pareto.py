r"""How far importance weights can be trusted, from the shape of their upper tail.

.. [Zhang2009generalized] J. Zhang, M. A. Stephens. A new and efficient estimation method for the generalized Pareto
   distribution. Technometrics 51, 2009.
.. [Vehtari2024pareto] A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry. Pareto smoothed importance sampling. Journal
   of Machine Learning Research 25, 2024.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

MIN_WEIGHTS = 25  # of which the tail has five


def pareto_shape(log_weights: Tensor) -> Tensor:
    """The shape `k` of the generalised Pareto distribution of the largest importance weights ([Vehtari2024pareto]_).

    Weights have about `1 / k` moments. Below 0.5 averages over them converge as usual, up to 0.7 they do in practice;
    above, the proposals do not cover their target. The fit is that of [Zhang2009generalized]_, drawn towards 0.5 with
    the weight of ten observations.

    `batch_shape` for log weights `batch_shape x S`, of which constants do not matter; minus infinity where the largest
    are all equal. Raises `ValueError` for fewer than 25.
    """
    S = log_weights.shape[-1]
    if S < MIN_WEIGHTS:
        raise ValueError(f"The shape of a tail needs at least {MIN_WEIGHTS} weights; got {S}.")
    size = math.ceil(min(0.2 * S, 3 * math.sqrt(S)))
    largest = log_weights.double().topk(size + 1, dim=-1).values.flip(-1)
    weights = (largest - largest[..., -1:]).exp()
    x = weights[..., 1:] - weights[..., :1]  # in increasing order
    constant = x[..., -1] <= torch.finfo(x.dtype).eps
    x = torch.where(constant.unsqueeze(-1), torch.ones_like(x), x)
    j = torch.arange(1, 30 + int(math.sqrt(size)) + 1, dtype=x.dtype, device=x.device)
    quartile = x[..., int(size / 4 + 0.5) - 1].unsqueeze(-1).clamp(min=torch.finfo(x.dtype).tiny)
    theta = 1 / x[..., -1:] + (1 - (len(j) / (j - 0.5)).sqrt()) / (3 * quartile)
    k = torch.log1p(-theta.unsqueeze(-1) * x.unsqueeze(-2)).mean(-1)
    log_likelihood = size * ((-theta / k).log() - k - 1)
    posterior_mean = (torch.softmax(log_likelihood, dim=-1) * theta).sum(-1, keepdim=True)
    shape = torch.log1p(-posterior_mean * x).mean(-1)
    shape = (size * shape + 10 * 0.5) / (size + 10)
    return torch.where(constant, torch.full_like(shape, -torch.inf), shape)

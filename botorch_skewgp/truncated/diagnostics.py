r"""Diagnostics of chains, of all functionals at once and in float64, and of the tails of importance weights.

.. [Vehtari2021rhat] Vehtari et al. Rank-normalization, folding, and localization. Bayesian Analysis 16, 2021.
.. [Geyer1992practical] C. J. Geyer. Practical Markov chain Monte Carlo. Statistical Science 7(4), 1992.
.. [Zhang2009generalized] Zhang, Stephens. Technometrics 51, 2009.
.. [Vehtari2024pareto] Vehtari et al. Pareto smoothed importance sampling. 2024.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

MIN_WEIGHTS = 25  # of which the tail has five


class Diagnostics(NamedTuple):
    """R-hat and effective sample size of every functional, each `batch_shape x k`."""

    r_hat: Tensor
    bulk_effective_size: Tensor


def diagnose(draws: Tensor) -> Diagnostics:
    """Rank-normalised split R-hat, the larger of bulk and folded, and bulk effective size ([Vehtari2021rhat]_, sections
    3 and 4) of functionals `batch_shape x num_steps x num_chains x k`; R-hat is infinite where chains stand still at
    different values and NaN for a constant, and both are for a functional with NaN.
    """
    values = _split_chains(draws)
    bulk, folded = _normal_scores(values)
    results = torch.fmax(_r_hat(bulk), _r_hat(folded)), _effective_size(bulk)
    return Diagnostics(*(_nan_where_undefined(result, values).to(draws.dtype) for result in results))


def effective_sample_size(draws: Tensor) -> Tensor:
    """Effective sample size of the average of every functional, up to where Geyer's initial monotone sequence ends
    ([Geyer1992practical]_, section 3.3); the number of draws for a constant. Shapes as in `diagnose`.
    """
    values = _split_chains(draws)
    return _nan_where_undefined(_effective_size(values), values).to(draws.dtype)


def _split_chains(draws: Tensor) -> Tensor:
    """`batch_shape x num_steps x num_chains x k` to `batch_shape x k x 2 num_chains x num_steps // 2`, in float64."""
    if draws.dim() < 3:
        raise ValueError(f"draws must be batch_shape x num_steps x num_chains x k; got {tuple(draws.shape)}.")
    if draws.shape[-3] < 4:
        raise ValueError(f"Diagnostics need at least four steps of every chain; got {draws.shape[-3]}.")
    values, half = draws.transpose(-1, -3).to(torch.float64), draws.shape[-3] // 2
    return torch.cat([values[..., :half], values[..., -half:]], dim=-2)


def _nan_where_undefined(result: Tensor, values: Tensor) -> Tensor:
    return result.masked_fill(values.isnan().flatten(-2).any(-1), math.nan)


def _constant(values: Tensor) -> Tensor:
    """Where a functional is the same in all draws."""
    flat = values.flatten(-2)
    return flat.amax(-1) == flat.amin(-1)


def _normal_scores(values: Tensor) -> tuple[Tensor, Tensor]:
    """Normal scores of the ranks of draws among all, by Blom, and of distances from the median; ties share a rank."""
    flat = values.flatten(-2).contiguous()
    n = flat.shape[-1]
    halves = torch.arange(2, 2 * n + 1, dtype=flat.dtype, device=flat.device)  # twice an average rank
    scores = torch.special.ndtri((0.5 * halves - 0.375) / (n + 0.25))
    ordered, order = flat.sort(-1)
    median = 0.5 * (ordered[..., (n - 1) // 2] + ordered[..., n // 2])
    # the distances of ordered draws fall and rise again; a stable sort merges such runs, in a third of the time
    distance, place = (ordered - median.unsqueeze(-1)).abs_().sort(dim=-1, stable=True)
    pairs = ((ordered, order), (distance, order.gather(-1, place)))
    bulk, folded = (_scores_of_ranks(*pair, scores).view_as(values) for pair in pairs)
    return bulk, folded


def _scores_of_ranks(ordered: Tensor, order: Tensor, scores: Tensor) -> Tensor:
    """The scores of ordered draws at their former places, from those of twice an average rank."""
    equal = ordered[..., 1:] == ordered[..., :-1]
    place = torch.arange(ordered.shape[-1], device=ordered.device)
    begins, ends = (torch.nn.functional.pad(~equal, sides, value=True) for sides in ((1, 0), (0, 1)))
    first = torch.where(begins, place, 0).cummax(-1).values
    last = torch.where(ends, place, len(place)).flip(-1).cummin(-1).values.flip(-1)
    return torch.empty_like(ordered).scatter_(-1, order, scores[first + last])


def _r_hat(values: Tensor) -> Tensor:
    """R-hat of chains that are split already, equations (1) to (4)."""
    n = values.shape[-1]
    means = values.mean(-1, keepdim=True)
    within = (values - means).square_().sum(-1).mean(-1) / (n - 1)
    r_hat = torch.sqrt((n * means.squeeze(-1).var(-1) / within + n - 1) / n)
    return r_hat.masked_fill(_constant(values), math.nan)


def _effective_size(values: Tensor) -> Tensor:
    """Effective sample size of chains that are split already, equations (10) to (13)."""
    chains, n = values.shape[-2:]
    centred = values - values.mean(-1, keepdim=True)
    length = 1 << (2 * n - 1).bit_length()  # zero padding, so that lags do not wrap around
    spectrum = torch.fft.rfft(centred, n=length)
    power = (spectrum.real.square() + spectrum.imag.square()).mean(-2)
    covariance = torch.fft.irfft(power, n=length)[..., :n] / n
    within = covariance[..., :1] * n / (n - 1)
    total = covariance[..., :1] + values.mean(-1).var(-1, keepdim=True)
    correlation = 1 - (within - covariance) / total
    correlation[..., 0] = 1.0

    # Sums of neighbours at lags 2 k and 2 k + 1; the last lags are too noisy to count.
    last = max((n - 3) // 2, 0)
    even = correlation[..., 0 : 2 * last + 1 : 2]
    pairs = even + correlation[..., 1 : 2 * last + 2 : 2]
    leading = (pairs > 0).to(torch.int64).cumprod(-1).sum(-1, keepdim=True).clamp(max=last)
    kept = torch.arange(last + 1, device=values.device) < leading
    monotone = torch.cummin(pairs, dim=-1).values
    # The pair at which the sum ends adds its even lag once, unless that lag is what makes it negative.
    ending_even, ending_pair = even.gather(-1, leading), pairs.gather(-1, leading)
    ending = torch.where((ending_even > 0) | (ending_pair >= 0), ending_even, 0.0)
    time = -1 + 2 * torch.where(kept, monotone, 0.0).sum(-1) + ending.squeeze(-1)

    number = chains * n
    time = time.clamp(min=1 / math.log10(number))  # a bound that keeps estimates for anticorrelated chains stable
    return torch.where(_constant(values), number, number / time)


def pareto_shape(log_weights: Tensor) -> Tensor:
    """The shape `k` of the generalised Pareto distribution of the largest importance weights ([Vehtari2024pareto]_), by
    the fit of [Zhang2009generalized]_; minus infinity where these are equal. Raises `ValueError` for fewer than 25.
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
    return torch.where(constant, -torch.inf, shape)

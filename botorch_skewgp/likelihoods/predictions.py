r"""Distributions of new outcomes: of a reading, and averages of such distributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading


def averaged(distributions: Sequence[Bernoulli | Categorical], weights: Tensor) -> Bernoulli | Categorical:
    r"""The mixture of distributions of outcomes.

    Args:
        distributions: Distributions of one class and shape.
        weights: The weight of each, `N`; their sum is 1.
    """
    probabilities = torch.stack([one.probs for one in distributions], dim=-1) @ weights
    return type(distributions[0])(probs=probabilities.clamp(max=1.0))  # rounding only


def outcome_distribution(read: SkewGPPosterior, reading: Reading, squeeze: bool = False) -> Bernoulli | Categorical:
    r"""The distribution of the outcomes of a single reading under a skewed posterior, in closed form.

    Args:
        read: The posterior of the reading, without noise.
        reading: The reading.
        squeeze: Whether to drop the posterior's last two dimensions, those of points and outputs.
    """
    noisy = read.add_noise(reading.variance)
    above = [noisy.probability_above(cut) for cut in reading.cutpoints[0]]
    if reading.num_outcomes == 2:
        probability = above[0] if reading.highest == 1 else noisy.cdf(reading.cutpoints[0, 0])
        if reading.slips is not None:
            probability = probability * (1 - reading.slips.sum()) + reading.slips[1]
        return Bernoulli(probs=probability.squeeze(-1).squeeze(-1) if squeeze else probability)
    below = [noisy.cdf(cut) for cut in reading.cutpoints[0]]
    cells = [below[0], *(high - low for low, high in pairwise(below)), above[-1]]
    probabilities = reading.with_slips(torch.stack([cells[i] for i in reading.outcomes[:, 0, 0].tolist()], dim=-1))
    return Categorical(probs=probabilities.squeeze(-2).squeeze(-2) if squeeze else probabilities)

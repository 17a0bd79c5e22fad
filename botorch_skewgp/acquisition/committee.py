"""The probability that an option is the favourite of enough judges of a committee."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.base import MCSampler
from torch import Tensor

from botorch_skewgp.observations.checks import as_number, as_tensor, check_parts

NUM_SAMPLES = 1024
ROUNDING = 1e-9  # of sums of weights


@torch.no_grad()
def probability_of_majority(
    model: Model,
    X_candidates: Tensor,
    share: float = 0.5,
    weights: Tensor | None = None,
    sampler: MCSampler | None = None,
) -> Tensor:
    r"""The probability that each option is the best one for at least a share of the judges.

    In each sample of the joint utilities every judge votes for the option of largest utility. Levels of judges do not
    matter, so that it suits comparisons.

    Args:
        model: A model with an output for each judge, such as `model.for_judge([0, 1, 2])`.
        X_candidates: The options, an `n x d` tensor.
        share: The share of the votes that an option needs, above 0 and at most 1.
        weights: The weight of each judge's vote; equal ones if `None`.
        sampler: The sampler of the utilities; 1,024 Sobol points by default.

    Returns:
        An `n`-dim tensor. With a share above one half the sum is at most 1; the rest is the probability that no option
        has enough votes.

    Raises:
        InputDataError: If the options are not `n x d`, the share is not in (0, 1], or the weights are not finite,
            non-negative and one for each judge.

    Example:
        >>> panel = Preference([[0, 1], [1, 2]], judge=[0, 1])
        >>> train_X = torch.rand(3, 2, dtype=torch.double)
        >>> committee = SkewGP(train_X, panel).for_judge([0, 1])
        >>> unanimous = probability_of_majority(committee, train_X, share=1.0)
    """
    X = as_tensor(X_candidates, "X_candidates")
    if X.ndim != 2 or len(X) == 0:
        raise InputDataError(f"X_candidates must be n x d with n of at least 1; got shape {tuple(X.shape)}.")
    if not 0 < as_number(share, "share") <= 1:
        raise InputDataError(f"share must be above 0 and at most 1; got {share!r}.")
    votes = X.new_ones(model.num_outputs) if weights is None else as_tensor(weights, "weights").to(X)
    if votes.shape != (model.num_outputs,) or not bool((votes >= 0).all() & votes.isfinite().all() & votes.any()):
        raise InputDataError(
            f"weights must be {model.num_outputs} finite numbers that are not negative, one for each judge; got "
            f"{votes.tolist()}."
        )
    check_parts(sampler=(sampler, MCSampler))
    posterior = model.posterior(X)
    if sampler is None:
        sampler = SobolQMCNormalSampler(torch.Size([NUM_SAMPLES]), seed=0)
    favourites = sampler(posterior).argmax(-2)  # num_samples x num_judges
    every = torch.arange(len(X), device=X.device)
    won = ((favourites.unsqueeze(-2) == every.unsqueeze(-1)) * votes).sum(-1)
    return (won >= (share - ROUNDING) * votes.sum()).to(X).mean(0)

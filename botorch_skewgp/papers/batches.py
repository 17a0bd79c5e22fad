r"""Objectives over subsets of the interval rows: a composite likelihood, and Proposition 1's bound.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
.. [Varin2011composite] Varin, Reid, Firth. An overview of composite likelihood methods. Statistica Sinica 21, 2011.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Sequence

import torch
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_skewgp.exceptions import VacuousBoundWarning
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import WarmExpectationPropagation
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

MIN_BOUND = 1e-2  # of Proposition 1, below which the objective is linear; see BatchBoundMarginalLogLikelihood


class _BatchMarginalLogLikelihood(RowMarginalLogLikelihood):
    """Random disjoint batches of interval rows, and the log probability of each by expectation propagation."""

    def __init__(self, likelihood: RowLikelihood, model: SkewGP, batch_size: int = 30, seed: int = 0) -> None:
        """Batches have at most `batch_size` rows (`ValueError` below 1), equal but for one row; the seed fixes them."""
        super().__init__(likelihood, model)
        if batch_size < 1:
            raise ValueError(f"batch_size must be positive; got {batch_size}.")
        self.batch_size = batch_size
        self.seed = seed
        self.reset()

    def reset(self) -> None:
        """Forget the sites of the last evaluation."""
        self._expectation_propagation: defaultdict[int, WarmExpectationPropagation] = defaultdict(
            WarmExpectationPropagation  # for each batch
        )

    def _partition(self, num_rows: int) -> list[Tensor]:
        """Disjoint batches of `0, ..., num_rows - 1`, the larger ones first."""
        order = torch.randperm(num_rows, generator=torch.Generator().manual_seed(self.seed))
        return list(order.tensor_split(math.ceil(num_rows / self.batch_size))) if num_rows else []

    def _log_probabilities(self, rows: TruncatedNormal) -> tuple[Tensor, Tensor]:
        """The log probability of a skew prior's rows given the numbers, and those of batches given both."""
        s = 0 if self.model.skew_prior is None else self.model.skew_prior.latent_dim  # they come first
        zero, own = rows.mean.new_zeros(()), torch.arange(s, device=rows.mean.device)
        of_prior = expectation_propagation(rows.select(own)).log_normalizer if s else zero
        values = []
        for number, batch in enumerate(self._partition(rows.num_rows - s)):
            ep = self._expectation_propagation[number](rows.select(torch.cat([own, batch.to(own) + s])))
            values.append(ep.log_normalizer - of_prior)
        return of_prior, torch.stack(values) if values else rows.mean.new_zeros(0)


class BatchedMarginalLogLikelihood(_BatchMarginalLogLikelihood):
    r"""A composite log likelihood ([Varin2011composite]_): the log evidences of random disjoint batches, summed.

    The objective is `log p(numbers) + sum_b log p(batch b | numbers)`, with expectation propagation for each batch.
    It costs `O(m batch_size^2)` instead of `O(m^3)` for `m` interval rows, besides the
    covariance matrix of the points. Batches count as independent of each other: the maximiser is consistent, the value
    is no evidence and not comparable between models or batch sizes. Every batch is conditioned on a skew prior's rows.
    Comparisons of one ranking may fall into several batches.

    Example:
        >>> mll = BatchedMarginalLogLikelihood(model.likelihood, model, batch_size=100)
        >>> fit_gpytorch_mll(mll)
    """

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        of_prior, of_batches = self._log_probabilities(rows)
        return of_prior + of_batches.sum()


class BatchBoundMarginalLogLikelihood(_BatchMarginalLogLikelihood):
    r"""The lower bound of the evidence of [Benavoli2021unified]_, Proposition 1.

    With batches `B_b` of the `m` interval rows,

        `Phi_m >= sum_b Phi_{B_b} - (number of batches - 1)`,

    with probabilities by expectation propagation. A skew prior's rows `S` are part of what is conditioned on: they join
    every batch, and their normaliser divides, `P(all | S) >= sum_b P(S, B_b) / P(S) - (number of batches - 1)`. The
    objective is the logarithm, plus the exact log density of the numbers. With two batches or more the right-hand side
    is negative, and no bound, unless nearly all data are nearly certain; a `VacuousBoundWarning` is issued. Below 0.01
    the objective is the tangent of the logarithm, which keeps the order of hyperparameters and a gradient. For
    reproducing the papers; fit with `SkewGPMarginalLogLikelihood` instead.
    """

    def bound(self, prior: MultivariateNormal, observations: Sequence[Observation]) -> Tensor:
        """The right-hand side of Proposition 1, a probability or less, for a prior at the training points."""
        _, of_batches = self._log_probabilities(self.model.evidence(prior, self.model.row_plan(observations)).rows)
        return 1 + torch.expm1(of_batches).sum()

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        of_prior, of_batches = self._log_probabilities(rows)
        if len(of_batches) == 1:  # the bound is an equality
            return of_prior + of_batches[0]
        bound = 1 + torch.expm1(of_batches).sum()
        if bool(bound <= 0):
            warnings.warn(
                "The lower bound of Proposition 1 is not positive, which bounds nothing. Use larger batches, or "
                "SkewGPMarginalLogLikelihood.",
                VacuousBoundWarning,
                stacklevel=2,
            )
        if bool(bound >= MIN_BOUND):
            return of_prior + bound.log()
        return of_prior + math.log(MIN_BOUND) + (bound - MIN_BOUND) / MIN_BOUND

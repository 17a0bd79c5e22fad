r"""The probabilities that answers are slips, from the draws of the rows or expectation propagation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.draws import Draws, noiseless_given_rows
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.step_factor import StepFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import hermite

NUM_NODES = 64  # of averages over a row's cavity


@torch.no_grad()
def slip_probabilities(
    row_model: RowModel,
    blocks: Sequence[tuple[Observation, Rows]],
    likelihood: RowLikelihood,
    draws: Draws | None,
    merged: TruncatedNormal | None = None,
) -> list[Tensor]:
    """The posterior probability that each answer is a slip."""
    distribution = row_model.truncated_normal
    is_interval = ~row_model.rows.is_equality
    slipped = row_model.rows.noise.new_zeros(row_model.rows.num_rows)
    if distribution.heights is not None:
        slipped[is_interval] = _outside(distribution, draws, merged)
    first = row_model.rows.num_rows - sum(block.num_rows for _, block in blocks)  # after the rows of a skew prior
    found = []
    for entry, block in blocks:
        probability = slipped[first : first + block.num_rows]
        first += block.num_rows
        of_answers = probability.new_zeros(entry.num_answers)
        if block.heights is not None:
            of_kind = likelihood.for_kind(type(entry))
            probability = probability * of_kind.share_of_slips(entry, block)
            of_answers = of_answers.index_copy(0, of_kind.answer_of_rows(block), probability)
        found.append(of_answers)
    return found


def _outside(distribution: TruncatedNormal, draws: Draws | None, merged: TruncatedNormal | None) -> Tensor:
    """The probability that a row's answer is a slip or a guess, the same for all rows of an answer."""
    heights = distribution.heights
    assert heights is not None
    # of one answer, whatever its weight
    factor = StepFactor(distribution.lower, distribution.upper, distribution.noise, heights)
    if draws is None:
        approximation = expectation_propagation(distribution)
        approximation.warn_of_competition()
        slips = 1 - factor.attention(approximation.cavity_mean, approximation.cavity_variance)
        if distribution.count is None or distribution.copies is None:
            return slips
        # of one of the factors to a power, under its cavity times that power
        nodes, log_weights = hermite(slips, NUM_NODES)
        h = approximation.cavity_mean + approximation.cavity_variance.sqrt() * nodes.unsqueeze(-1)
        log_powers = distribution.count / distribution.copies * factor.log_likelihood(h)
        weights = (log_weights.unsqueeze(-1) + log_powers).softmax(-2)
        weighted = (weights * (1 - factor.attention(h, torch.zeros_like(h)))).sum(-2)
        return torch.where(distribution.count == distribution.copies, slips, weighted)
    if merged is None and distribution.count is not None:
        merged = distribution
    if merged is not None:
        generator = torch.Generator(device=distribution.mean.device).manual_seed(0)
        h = noiseless_given_rows(merged, draws.rows, generator, single=distribution)
        return (1 - factor.attention(h, torch.zeros_like(h))).mean(-2)
    # given all other rows, an answer is attentive if all its rows are inside their bounds
    conditional = distribution.conditionals(draws.rows.to(distribution.mean))
    variance = conditional.scale.square() - factor.noise
    log_inside = factor.log_inside(conditional.mean, variance)
    beyond = draws.rows != torch.maximum(torch.minimum(draws.rows, factor.upper), factor.lower)
    others = factor.heights.total(beyond.to(log_inside)) - beyond.to(log_inside)
    log_odds = factor.heights.log_gain + log_inside - factor.heights.log_outside
    slips = torch.where(others > 0, 1.0, torch.sigmoid(-log_odds)).mean(-2)
    return heights.total(slips) / heights.size

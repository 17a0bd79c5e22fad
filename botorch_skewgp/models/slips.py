r"""The posterior probability that an answer is a slip, one that does not depend on the latent function."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.models.prior_model import PriorModel
from botorch_skewgp.truncated.draws import Draws, noiseless_given_rows
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.step_factor import StepFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import hermite

NUM_NODES = 64  # of averages over a row's cavity


@torch.no_grad()
def slip_probabilities(model: PriorModel, draws: Draws | None) -> list[Tensor]:
    """For each observation of a model in evaluation mode the probability that each of its answers is a slip, by draws
    of its rows, or by expectation propagation.
    """
    prior = model.forward(model.train_inputs[0])
    row_model = model.row_model(prior)
    distribution = row_model.truncated_normal
    of_rows = row_model.rows.noise.new_zeros(row_model.rows.num_rows)
    if distribution.heights is not None:
        if draws is None:
            slipped = _by_expectation_propagation(distribution)
        elif draws.rows.shape[-1] != distribution.num_rows:  # draws of rows that stand for several
            merged = model.row_model(prior, model.row_plan(merge_equal=True)).truncated_normal
            slipped = _by_values(distribution, draws, merged)
        elif distribution.count is not None:
            slipped = _by_values(distribution, draws, distribution)
        else:
            slipped = _by_draws(distribution, draws)
        of_rows[~row_model.rows.is_equality] = slipped
    blocks = [model.likelihood.rows(entry, row_model.mean, model.outcome_scale) for entry in model.observations]
    first = row_model.rows.num_rows - sum(block.num_rows for block in blocks)  # after the rows of a skew prior
    found = []
    for entry, block in zip(model.observations, blocks, strict=True):
        probability = of_rows[first : first + block.num_rows]
        first += block.num_rows
        of_answers = probability.new_zeros(entry.num_answers)
        if block.heights is not None:
            of_kind = model.likelihood.for_kind(type(entry))
            probability = probability * of_kind.share_of_slips(entry, block)
            of_answers = of_answers.index_copy(0, of_kind.answer_of_rows(entry, block), probability)
        found.append(of_answers)
    return found


def _factor(distribution: TruncatedNormal) -> StepFactor:
    """The factors of single answers, whatever their weights."""
    assert distribution.heights is not None
    return StepFactor(distribution.lower, distribution.upper, distribution.noise, distribution.heights)


def _by_expectation_propagation(distribution: TruncatedNormal) -> Tensor:
    """The probability of each row's answer, under the row's cavity."""
    factor, approximation = _factor(distribution), expectation_propagation(distribution)
    approximation.warn_of_competition()
    mean, variance = approximation.cavity
    slips = 1 - factor.attention(mean, variance)
    if distribution.count is None or distribution.num_factors is None:
        return slips
    # of one of the factors to a power, under its cavity times that power
    nodes, log_weights = hermite(slips, NUM_NODES)
    h = mean + variance.sqrt() * nodes.unsqueeze(-1)
    log_powers = distribution.count / distribution.num_factors * factor.log_likelihood(h)
    weights = (log_weights.unsqueeze(-1) + log_powers).softmax(-2)
    weighted = (weights * _slips_given(factor, h)).sum(-2)
    return torch.where(distribution.count == distribution.num_factors, slips, weighted)


def _by_values(distribution: TruncatedNormal, draws: Draws, drawn: TruncatedNormal) -> Tensor:
    """The average over noiseless values, given draws of another distribution's rows."""
    generator = torch.Generator(device=distribution.mean.device).manual_seed(0)
    h = noiseless_given_rows(drawn, draws.rows, generator, single=distribution)
    return _slips_given(_factor(distribution), h).mean(-2)


def _slips_given(factor: StepFactor, h: Tensor) -> Tensor:
    """The probabilities given noiseless values of rows."""
    return 1 - factor.attention(h, torch.zeros_like(h))


def _by_draws(distribution: TruncatedNormal, draws: Draws) -> Tensor:
    """The average over draws of all other rows: an answer is attentive if all its rows are inside their bounds."""
    factor, heights = _factor(distribution), distribution.heights
    assert heights is not None
    mean, scale = distribution.conditionals(draws.rows.to(distribution.mean))
    log_inside = factor.log_inside(mean, scale.square() - factor.noise)
    is_beyond = (draws.rows < factor.lower) | (draws.rows > factor.upper)
    beyond = is_beyond.to(log_inside)
    others = heights.total(beyond) - beyond
    log_odds = heights.log_gain + log_inside - heights.log_outside
    slips = torch.where(others > 0, 1.0, torch.sigmoid(-log_odds)).mean(-2)
    return heights.total(slips) / heights.size

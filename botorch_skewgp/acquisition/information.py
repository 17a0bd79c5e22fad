r"""The information of an answer: about the function, about which point is best, and about other answers.

- The best point: `I(o; argmax_x f(x))` with joint draws of the function at all points, where all but the few points
  that are likeliest to be best count as one ([Hennig2012entropy]_). The plug-in estimate is too large, more so for many
  outcomes, by the expected shortfall of an entropy of averages; its first order is subtracted ([Miller1955note]_, here
  for averages of probabilities).
- The function itself: `I(o; f) = H(o) - E[H(o | f)]` for a single reading. The last term is an integral over a normal
  distribution for each draw, by quadrature in factors that leave a smooth integrand at every ratio of noise to
  uncertainty: with `b_j` the cut-points, `s^2` the noise variance and `g_j(f) = exp(-(f - b_j)^2 / (pi log(2) s^2))`,
  the approximation of the binary entropy in [Houlsby2011bald]_, it is `sum_j E[g_j(f) (H(f) / sum_i g_i(f))]`, and a
  normal density times `g_j` is normal up to a factor. Answers that may be slips have an entropy even far from
  cut-points, which is added in closed form; `H` is the rest.
- The cell of another reading, at each of several places: `I(o; c)`, from bivariate normal probabilities that all draws
  share a correlation of.

.. [Hennig2012entropy] Hennig, Schuler. Entropy search for information-efficient global optimization. JMLR 13, 2012.
.. [Houlsby2011bald] Houlsby et al. arXiv 1112.5745, 2011.
.. [Miller1955note] G. A. Miller. Note on the bias of information estimates. Information Theory in Psychology, 1955.
.. [Trefethen2019approximation] Trefethen. Approximation Theory and Approximation Practice, extended edition. SIAM 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from botorch_skewgp.acquisition.bivariate_normal import bivariate_normal_cdf
from botorch_skewgp.acquisition.look_ahead import (
    MAX_ENTRIES,
    NUM_DRAWS,
    TINY,
    AnswerModel,
    LatentMixture,
    joint_draws,
)
from botorch_skewgp.rows.reading import Reading
from botorch_skewgp.truncated.univariate import hermite, normal_cdf

NUM_LIKELY = 12  # points that count by themselves as the best one
NUM_ENTROPY_NODES = 10  # of the quadrature; the integrand is close to a constant
NUM_NODES_OF_LAWS = 64  # likewise, where it is not
NODES_PER_WIDTH = 4.5  # of interpolation of its logarithm, for an error of at most 1e-9
MIN_NODES = 12
MIN_REACH = 0.01  # widths from the middle; derivatives between closer nodes have few digits
MIN_SAVING = 4  # draws for each node, below which the function itself is cheaper


def information_about_function(
    mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], items: Tensor
) -> Tensor:
    """The expected information of single readings at `B x k` points about the function, in nats, `B`; smooth."""
    joint, entropy_given_function = [], []
    for mixture, answer in zip(mixtures, answers, strict=True):
        means, variance, _ = mixture.weighted_sum(answer.reading.weight[0], items)
        joint.append(mixture.weights @ answer.of_sums(means, variance.unsqueeze(-1)))
        expected = expected_entropy(means, variance, mixture.weights.sum(0), answer)
        entropy_given_function.append(expected)
    p = torch.stack(joint).mean(0)  # of scenarios and outcomes, B x M x O
    entropy_given_scenario = entropy(p.flatten(-2)) - entropy(p.sum(-1))
    return entropy_given_scenario - torch.stack(entropy_given_function).mean(0)


def information_about_best(
    mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], points: Tensor, items: Tensor
) -> Tensor:
    """The expected information of answers at `B x k` points about which of some points is best, in nats, `B`."""
    probabilities = torch.stack([mixture.weights.sum(-1) for mixture in mixtures]).mean(0)
    values = []
    for scenario in range(len(probabilities)):
        given = [replace(mixture, weights=mixture.weights[scenario : scenario + 1]) for mixture in mixtures]
        values.append(_information_in_scenario(given, answers, points, items))
    return (probabilities @ torch.stack(values)).clamp(min=0)  # the correction of the bias can overshoot


def _information_in_scenario(
    mixtures: Sequence[LatentMixture], answers: Sequence[AnswerModel], points: Tensor, items: Tensor
) -> Tensor:
    draws = [joint_draws(mixture, 2 * NUM_DRAWS, seed=0) for mixture in mixtures]
    best = torch.cat([f[points].argmax(0) for f in draws])
    counts = torch.bincount(best, minlength=len(points))
    likely = counts.argsort(descending=True)[:NUM_LIKELY]
    group = torch.full_like(counts, len(likely))  # of all other points
    group[likely] = torch.arange(len(likely), device=best.device)
    groups = one_hot(group[best], len(likely) + 1).to(draws[0])  # draws x groups
    num_draws = len(groups)
    share = groups.mean(0)
    values = []
    for part in items.split(max(1, MAX_ENTRIES // (num_draws * answers[0].num_outcomes))):
        of_members = [answer.probabilities(f[part].mT, part) for answer, f in zip(answers, draws, strict=True)]
        p = torch.cat(of_members, dim=-2)  # B x draws x O
        joint = groups.mT @ p / num_draws  # B x groups x O
        square = groups.mT @ p.square() / num_draws
        of_answer = _unbiased_entropy(joint.sum(-2), square.sum(-2), share.sum(), num_draws).sum(-1)
        of_both = _unbiased_entropy(joint, square, share.unsqueeze(-1), num_draws).sum((-1, -2))
        values.append(of_answer - of_both + torch.special.entr(share).sum())
    return torch.cat(values)


def _unbiased_entropy(mean: Tensor, square: Tensor, share: Tensor, num_draws: int) -> Tensor:
    """`-m log(m)` of averages `m` over draws, of which a share counts, without its bias of first order."""
    variance = (square - mean.square() / share.clamp(min=TINY)).clamp(min=0)  # of `m` given the share, times the number
    return torch.special.entr(mean) + variance / (2 * num_draws * mean.clamp(min=TINY))  # -m log(m) bends by -1 / m


def information_about_cells(
    mixtures: Sequence[LatentMixture],
    answers: Sequence[AnswerModel],
    references: Sequence[AnswerModel],
    places: Tensor,
    items: Tensor,
) -> Tensor:
    """The expected information of answers at `B x k` points about the cell of a reading at `R x j`, on average, `B`."""
    num_pairs = answers[0].reading.cutpoints.shape[-1] * references[0].reading.cutpoints.shape[-1]
    num_terms = 2 * len(places) * mixtures[0].means.shape[-1] * num_pairs
    values = []
    for part in items.split(max(1, MAX_ENTRIES // num_terms)):
        of_members = [
            _joint_cells(mixture, answer, part, reference, places)
            for mixture, answer, reference in zip(mixtures, answers, references, strict=True)
        ]
        p = torch.stack(of_members).mean(0)
        information = entropy(p.sum(-1)) + entropy(p.sum(-2)) - entropy(p.flatten(-2))
        values.append(information.mean(-1))
    return torch.cat(values)


def _joint_cells(
    mixture: LatentMixture, answer: AnswerModel, items: Tensor, reference: AnswerModel, places: Tensor
) -> Tensor:
    """The probabilities of outcomes at `B x k` points and cells at `R x j`, each from the lowest, `B x R x O x T`."""
    return answer.average(
        lambda reading: reference.average(lambda cell: _joint_cells_of(mixture, reading, items, cell, places))
    )


def _joint_cells_of(
    mixture: LatentMixture, reading: Reading, items: Tensor, reference: Reading, places: Tensor
) -> Tensor:
    """The same of one law each."""
    weights = mixture.weights[0]
    h, sd, covariance = mixture.standardised_cutpoints(reading, items)  # B x (O - 1) x S
    k, reference_sd, _ = mixture.standardised_cutpoints(reference, places)  # R x (T - 1) x S
    covariance = covariance[:, places] @ reference.weight[0]  # B x R
    correlation = (covariance / (sd.unsqueeze(-1) * reference_sd)).clamp(-1, 1)  # rounding only
    h, k = h[:, None, :, None], k[None, :, None]  # B x 1 x (O - 1) x 1 x S, 1 x R x 1 x (T - 1) x S
    cdf = bivariate_normal_cdf(h, k, correlation[:, :, None, None, None]) @ weights
    of_answer = normal_cdf(h) @ weights  # with a cell that ends at infinity
    of_cell = pad(normal_cdf(k) @ weights, (0, 1), value=1.0)
    cdf = torch.cat([cdf, of_answer.expand(*cdf.shape[:-1], 1)], dim=-1)
    cdf = torch.cat([cdf, of_cell.expand(len(items), -1, -1, -1)], dim=-2)
    cells = pad(cdf, (1, 0, 1, 0)).diff(dim=-1).diff(dim=-2)
    return _with_slips(_with_slips(cells.mT, reading).mT, reference)


def _with_slips(cells: Tensor, reading: Reading) -> Tensor:
    """The probabilities of outcomes from those of cells of attentive answers, from the lowest, on the last axis."""
    if reading.slips is None:
        return cells
    slips = reading.slip_of(reading.outcomes[:, 0, 0].argsort())
    return reading.attention * cells + slips * cells.sum(-1, keepdim=True)


def entropy(probabilities: Tensor) -> Tensor:
    """The entropy of `... x K` probabilities; impossible outcomes add nothing, and have no gradient."""
    is_possible = probabilities > torch.finfo(probabilities.dtype).tiny
    return torch.special.entr(torch.where(is_possible, probabilities, 1.0)).sum(-1)


def expected_entropy(means: Tensor, variance: Tensor, weights: Tensor, answer: AnswerModel) -> Tensor:
    """`E[H(y | f)]` of a single reading of `B` mixtures: `B x S` means, `B` variances, `S` probabilities; `B`."""
    variance, reading = variance.unsqueeze(-1), answer.reading
    width = (variance + torch.stack([_width(law) for law in answer.readings]).amin(0)).sqrt().detach()
    nodes_per_width = NODES_PER_WIDTH
    if reading.num_outcomes > 2:
        # the likeliest outcome changes half way between cut-points, sharply if these are far apart
        gaps = reading.cutpoints[0].detach().diff().max() / width
        nodes_per_width *= 2 + float(gaps.max())
    if len(answer.readings) > 1:
        log_mean = lambda at: _log_mean_entropy_of_laws(at, variance, answer)  # noqa: E731
        return _interpolated(log_mean, means, width, nodes_per_width).exp() @ weights
    log_entropies = _interpolated(lambda at: _log_mean_entropy(at, variance, reading), means, width, nodes_per_width)
    expected = log_entropies.exp() @ weights
    if reading.slips is None:
        return expected
    attentive = replace(reading, slips=None).log_outcome_probabilities(means, variance).exp()  # B x S x K
    return expected + (weights @ attentive * _entropies_of_slips(reading)).sum(-1)


def _log_mean_entropy_of_laws(means: Tensor, variance: Tensor, answer: AnswerModel) -> Tensor:
    """`log E[H(y | f)]` of normal `f` with `B x n` means and `B x 1` variances, where answers average over laws."""
    nodes, log_weights = hermite(means, NUM_NODES_OF_LAWS)
    f = means.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * nodes
    return (entropy(answer.of_sums(f, 0.0)) @ log_weights.exp()).clamp(min=torch.finfo(f.dtype).tiny).log()


def _interpolated(function: Callable[[Tensor], Tensor], x: Tensor, width: Tensor, nodes_per_width: float) -> Tensor:
    """An analytic function that changes over a width, at `... x S` arguments, from its values at Chebyshev nodes."""
    # the error falls geometrically in their number ([Trefethen2019approximation]_, chapter 8)
    low, high = x.detach().aminmax(dim=-1, keepdim=True)
    middle = 0.5 * (low + high)
    half = torch.maximum(0.5 * (high - low), MIN_REACH * width)
    num_nodes = MIN_NODES + nodes_per_width * float((2 * half / width).max())
    if not num_nodes * MIN_SAVING < x.shape[-1]:
        return function(x)
    order = torch.arange(math.ceil(num_nodes), dtype=x.dtype, device=x.device)
    angle = (order + 0.5) * (math.pi / len(order))
    polynomials = (angle.unsqueeze(-1) * order).cos()
    coefficients = function(middle + half * angle.cos()) @ polynomials * (2 / len(order))
    first, *others = coefficients.unsqueeze(-1).unbind(-2)
    y = (x - middle) / half
    twice = 2 * y
    later = latest = torch.zeros_like(y)
    for coefficient in reversed(others):  # Clenshaw's recurrence
        later, latest = torch.addcmul(coefficient - latest, twice, later), later
    return torch.addcmul(0.5 * first - latest, y, later)


def _entropies_of_slips(reading: Reading) -> Tensor:
    """The entropy of an answer with slips for each outcome of a certain attentive answer, `K`."""
    certain = torch.eye(reading.num_outcomes).to(reading.weight)
    return torch.special.entr(reading.with_slips(certain)).sum(-1)


def _width(reading: Reading) -> Tensor:
    """The variance of `g_j`, were it a density; see the module's text."""
    return 0.5 * math.pi * math.log(2.0) * reading.variance


def _log_mean_entropy(means: Tensor, variance: Tensor, reading: Reading) -> Tensor:
    """`log E[H(y | f)]` of normal `f` with `B x n` means and `B x 1` variances."""
    means, variance = means.unsqueeze(-1), variance.unsqueeze(-1)
    width, cutpoints = _width(reading), reading.cutpoints[0]
    # the normal density times g_j: its log factor, its centre and its variance
    total = variance + width
    log_factor = 0.5 * (width.log() - total.log()) - 0.5 * (means - cutpoints).square() / total
    centre = (means * width + cutpoints * variance) / total  # B x n x (K - 1)
    narrow = (variance * width / total).sqrt()
    nodes, log_weights = hermite(means, NUM_ENTROPY_NODES)
    f = centre.unsqueeze(-1) + narrow.unsqueeze(-1) * nodes  # B x n x (K - 1) x nodes
    log_sum = (-0.5 * (f.unsqueeze(-1) - cutpoints).square() / width).logsumexp(-1)  # of all g_i
    terms = log_factor.unsqueeze(-1) + log_weights + _log_entropy(f, reading) - log_sum
    return terms.flatten(-2).logsumexp(-1)


def _log_entropy(f: Tensor, reading: Reading) -> Tensor:
    """The log of the entropy of an outcome given `f`, less that of slips alone; finite far from all cut-points."""
    if reading.slips is not None:  # the information about the attentive answer, which vanishes there
        attentive = replace(reading, slips=None).log_outcome_probabilities(f).exp()
        total = torch.special.entr(reading.with_slips(attentive)).sum(-1)
        information = total - (attentive * _entropies_of_slips(reading)).sum(-1)
        return information.clamp(min=torch.finfo(f.dtype).tiny).log()  # rounding only
    log_p = reading.log_outcome_probabilities(f)
    is_certain = log_p > -torch.finfo(log_p.dtype).tiny
    # -log(p) of a certain outcome is the probability of the others
    log_others = torch.where(is_certain, -torch.inf, log_p).logsumexp(-1, keepdim=True)
    log_surprise = torch.where(is_certain, -1.0, log_p).neg().log()
    return (log_p + torch.where(is_certain, log_others, log_surprise)).logsumexp(-1)

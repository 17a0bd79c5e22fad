r"""Contradictory rows, such as two very different values at nearly equal points.

With `alpha = J^-1 (E[rows] - mean)` and `J` the rows' covariance, the derivative of twice the log density in the
logarithm of the jitter is `sum_i jitter_i (alpha_i^2 - (J^-1)_ii)`. For plausible rows it is about zero, as the first
term is about chi-squared with the second's degrees of freedom; if it is large, results depend on the jitter. For
columns, `alpha` are the representer weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_skewgp.exceptions import ContradictionError, ContradictionWarning
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.posteriors import RepresenterMixture
from botorch_skewgp.rows import ColumnLayout, Rows
from botorch_skewgp.truncated.factorization import (
    RELATIVE_JITTER,
    cholesky_with_relative_jitter,
    missing_noise,
)
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation

JITTER = RELATIVE_JITTER[torch.float64]
TOLERANCE = 0.02  # in twice the log density: a hundredth of a nat
SURPRISE = 6.0  # standard deviations of a chi square
PROBABLE = 0.5  # the minimum probability of a slip of answers that are named
SHARE, MAX_NAMED = 0.1, 6  # columns that are named: minimum share of the largest weight, maximum number


@torch.no_grad()
def check_contradictions(
    row_model: RowModel,
    layout: ColumnLayout | None,
    mixture: RepresenterMixture | None = None,
    slips: Callable[[], Tensor] | None = None,
) -> None:
    """Warn of contradictory rows, where results depend on the jitter, and name them."""
    _check_equal_numbers(row_model, layout)
    rows = row_model.rows
    if rows.num_rows == 0:
        return
    size = rows.coefficient.abs().sum(-1).square() * row_model.covariance.diagonal().max()
    if row_model.works_by_points:
        explained, expected, pull = _jitter_of_columns(row_model, mixture)
    elif bool((rows.noise < JITTER * size).any()):  # cheap, and includes rows with a little noise
        explained, expected, pull = _jitter_of_rows(row_model)
    else:
        return
    if bool(explained <= expected + SURPRISE * (2 * expected).sqrt() + TOLERANCE):
        return
    hardest = pull >= torch.maximum(SHARE * pull.max(), pull.topk(min(MAX_NAMED, len(pull))).values[-1])
    where = "" if layout is None else _name(layout, hardest)
    warnings.warn(
        f"Observations with little or no noise{where} contradict each other or the kernel: a relative jitter of "
        f"{JITTER:.0e} changes their log density, so that posterior and evidence may be off. Remove "
        "the contradiction, add noise, or use a shorter lengthscale." + _of_slips(row_model, slips),
        ContradictionWarning,
        stacklevel=2,
    )


def _of_slips(row_model: RowModel, slips: Callable[[], Tensor] | None) -> str:
    """Advice for the warning: the probable slips, or a rate of slips for the likelihood."""
    if row_model.intervals.num_rows == 0:
        return ""
    if row_model.intervals.heights is None:
        return " If some answers may be mistakes, give their likelihood a rate of slips, slip=."
    if slips is None:
        return ""
    probability = slips()
    most = probability.topk(min(MAX_NAMED, len(probability)))
    doubtful = sorted(most.indices[most.values > PROBABLE].tolist())
    return f" Answers {doubtful} are probably slips, see model.slips()." if doubtful else ""


def _check_equal_numbers(row_model: RowModel, layout: ColumnLayout | None) -> None:
    """Noise-free numbers of one and the same functional must be equal."""
    numbers = row_model.numbers.select(row_model.numbers.noise == 0)
    if numbers.num_rows < 2 or numbers.noise_root is not None:
        return
    weight = numbers.weight(row_model.mean.shape[-1])
    value = numbers.lower - numbers.bias
    _, group = weight.unique(dim=0, return_inverse=True)
    same = group.unsqueeze(-1) == group
    difference = (value.unsqueeze(-1) - value).abs() * same
    rounding = 64 * torch.finfo(value.dtype).eps * value.abs().max()
    if bool((difference > rounding).any()):
        first, second = divmod(int(difference.argmax()), len(value))
        touched = (weight[first] != 0) | (weight[second] != 0)
        where = "" if layout is None else _name(layout, touched)
        raise ContradictionError(
            f"Numbers without noise{where} contradict each other: the same value is {float(value[first]):.6g} and "
            f"{float(value[second]):.6g} in units of the latent function. Give them noise, or remove one."
        )


def _jitter_of_rows(row_model: RowModel) -> tuple[Tensor, Tensor, Tensor]:
    """The two sums, and the weight of rows without noise on each column."""
    numbers, intervals = row_model.numbers, row_model.intervals
    alpha = row_model.mean.new_zeros(0)
    if intervals.num_rows:
        alpha = expectation_propagation(row_model.truncated_normal, tolerance=1e-3).mean_slope
    rows = Rows.cat([numbers, intervals])
    covariance = rows.covariance(row_model.covariance) + torch.diag_embed(rows.noise)
    k = numbers.num_rows
    residual = row_model._number_residual - covariance[:k, k:] @ alpha
    of_numbers = torch.cholesky_solve(residual.unsqueeze(-1), row_model._number_cholesky)
    alpha = torch.cat([of_numbers.squeeze(-1), alpha])
    jitter = missing_noise(covariance.diagonal(), rows.noise)
    factor = cholesky_with_relative_jitter(covariance, scale=jitter / JITTER)
    precision = torch.cholesky_inverse(factor).diagonal()
    quiet = rows.weight(row_model.mean.shape[-1]).abs() * (jitter > 0).unsqueeze(-1)
    return (jitter * alpha.square()).sum(), (jitter * precision).sum(), quiet.mT @ alpha.abs()


def _jitter_of_columns(row_model: RowModel, mixture: RepresenterMixture | None) -> tuple[Tensor, Tensor, Tensor]:
    """The same for the jitter of the columns' covariance, with any noise of rows."""
    jitter = JITTER * row_model.column_covariance.diagonal().mean()
    if mixture is None:
        approximation = expectation_propagation(row_model.truncated_normal, tolerance=1e-3)
        mixture = row_model.gaussian_mixture(approximation)
    squared = mixture.weights.square().mean(-1)
    explained = jitter * squared.sum()
    if bool(explained <= TOLERANCE):
        return explained, torch.zeros_like(explained), squared.sqrt()
    root = row_model.column_root
    factor = cholesky_with_relative_jitter(row_model.covariance) if root is None else root
    return explained, jitter * torch.cholesky_inverse(factor).diagonal().sum(), squared.sqrt()


def _name(layout: ColumnLayout, which: Tensor) -> str:
    """The places of columns, for a message; slopes alone have no contradictions."""
    columns = which.nonzero().squeeze(-1).tolist()
    first, end = layout.first_pseudo_point, layout.first_pseudo_point + layout.num_pseudo_points
    parts = {
        "rows {} of train_X": sorted({column // layout.num_outputs for column in columns if column < first}),
        "pseudo-points {} of the skew prior": [column - first for column in columns if first <= column < end],
    }
    named = [words.format(numbers) for words, numbers in parts.items() if numbers]
    return " (" + "; ".join(named) + ")" if named else ""

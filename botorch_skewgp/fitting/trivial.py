r"""Whether a fit knows more than a predictor that ignores the points."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Sequence

import torch
from gpytorch.kernels import ScaleKernel
from torch import Tensor

from botorch_skewgp.exceptions import SkewGPWarning, UninformedFitWarning
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.univariate import log_interval_probability, log_normal_density

LEAD = 2.0  # nats by which the evidence must exceed the trivial one: what three or four parameters gain by chance
FOLDS = 5
SCALES = (3.0, 30.0, 100.0)  # output scales of items that are tried beside the fitted one
COIN, FREQUENCIES, NORMAL = "coin tosses", "their frequencies", "a normal distribution"


def trivial_log_evidence(model: SkewGP) -> float | None:
    r"""The log evidence of the observations without their points.

    Wins are coin tosses, as are the options of choices and the orders of rankings. Labels, grades, ties and strengths
    have frequencies with Jeffreys' prior, a Dirichlet(1/2). Numbers are normal with their own mean and variance, at the
    price of two parameters by the Bayesian information criterion.

    Returns:
        The evidence; `None` where an observation has no such predictor: slopes and bounds of the function, which are
        stated, weighted sums, and general affine maps.
    """
    of_part: dict[int, list[Observation]] = defaultdict(list)
    for entry in model.observations:
        of_part[id(model.likelihood.for_kind(type(entry)))].append(entry)
    total = 0.0
    for entries in of_part.values():
        part = model.likelihood.for_kind(type(entries[0]))
        value = _of_readings(model, entries) if part.takes_numbers else _of_answers(entries)
        if value is None:
            return None
        total += value
    return total


def _of_answers(entries: Sequence[Observation]) -> float | None:
    """Of answers to questions of one likelihood."""
    labels, weights, alike, num_labels = [], [], 0.0, 1
    for entry in entries:
        outcomes = entry.outcomes
        if outcomes is None:
            return None
        weight = entry.answer_weights
        weight = torch.ones(len(outcomes.label), dtype=torch.double) if weight is None else weight.double().cpu()
        alike += float((weight * torch.as_tensor(outcomes.num_alike, dtype=torch.double).cpu().log()).sum())
        labels.append(outcomes.label.cpu())
        weights.append(weight)
        num_labels = max(num_labels, outcomes.num_labels)
    seen, label = torch.cat(labels).unique(return_inverse=True)
    if num_labels > 1 and len(seen) == 1:  # all answers are alike: their frequency says all, and a OneClassWarning this
        return None
    count = torch.zeros(max(num_labels, len(seen)), dtype=torch.double).scatter_add(0, label, torch.cat(weights))
    half = torch.full_like(count, 0.5)
    of_labels = _log_beta(count + half) - _log_beta(half)
    return float(of_labels) - alike


def _log_beta(x: Tensor) -> Tensor:
    return x.lgamma().sum() - x.sum().lgamma()


@torch.no_grad()
def _of_readings(model: SkewGP, entries: Sequence[Observation]) -> float | None:
    """Of numbers and readings in intervals, from their rows: warped and standardised, in units of the outcome."""
    part, scale = model.likelihood.for_kind(type(entries[0])), model.outcome_scale
    like = model.datapoints.new_zeros(0)
    rows = Rows.cat([part.rows(entry, like, scale) for entry in entries])
    lower, upper, exact = rows.lower.double(), rows.upper.double(), rows.is_equality
    are_stated = bool((rows.noise <= 0).any())
    if are_stated or rows.index.shape[-1] > 1:
        return None
    below = lower.where(lower.isfinite(), upper)
    above = upper.where(upper.isfinite(), lower)
    middle = 0.5 * (below + above)
    if len(middle) < 2 or not bool(middle.std() > 0):
        return None
    mean, sd = middle.mean(), middle.std()
    density = log_normal_density((middle - mean) / sd) - sd.log() - math.log(scale.scale)
    log_p = torch.where(exact, density, log_interval_probability((lower - mean) / sd, (upper - mean) / sd))
    weight = 1.0 if rows.count is None else rows.count
    log_slopes = sum(part.log_jacobian(entry, like, scale).sum() for entry in entries)
    return float((weight * log_p).sum() + log_slopes) - math.log(len(middle))


def check_fit(model: SkewGP) -> None:
    """Warn of a fit that knows no more than a trivial predictor; the scale of items is chosen anew in this case."""
    trivial = trivial_log_evidence(model)
    if trivial is None or _log_evidence(model) >= trivial + LEAD:
        return
    are_items = _choose_scale_of_items(model)
    compare = [entry.points_per_observation > 1 for entry in model.observations]
    measure = [entry.anchors_scale for entry in model.observations]
    names = {COIN: any(compare), NORMAL: any(measure), FREQUENCIES: not all(map(max, compare, measure))}
    cures = {
        "ask more, or the same again": True,
        "give features, of which one tells the order if it is known": are_items,
        "standardise numbers, outcome_transform=Standardize(m=1)": any(measure),
        "fix the scale that you expect, model.covar_module.outputscale, by raw_outputscale.requires_grad_(False)": True,
    }
    warnings.warn(
        f"The fit explains the answers no better than {' and '.join(n for n, is_there in names.items() if is_there)}, "
        "which know nothing of the points; its predictions may be worse than these. Tell more: "
        f"{'; or '.join(cure for cure, is_there in cures.items() if is_there)}.",
        UninformedFitWarning,
        stacklevel=3,
    )


def _log_evidence(model: SkewGP) -> float:
    """By expectation propagation, whose warnings were given by the fit."""
    with warnings.catch_warnings(action="ignore", category=SkewGPWarning):
        return float(model.log_marginal_likelihood("ep").value)


def _choose_scale_of_items(model: SkewGP) -> bool:
    """Whether options are items without features; their scale is then that which predicts left-out fifths best.

    The evidence of items that met few others counts what an order costs, the logarithm of the number of all orders, and
    may prefer none. What answers say of other answers does not count it.
    """
    kernel = model.covar_module
    if not isinstance(kernel, ScaleKernel) or not isinstance(kernel.base_kernel, ItemEffectKernel):
        return False
    if not kernel.raw_outputscale.requires_grad:
        return True
    candidates = [float(kernel.outputscale.detach()), *SCALES]
    scores = [_log_probability_of_left_out(model, scale) for scale in candidates]
    kernel.outputscale = candidates[max(range(len(scores)), key=scores.__getitem__)]
    return True


def _log_probability_of_left_out(model: SkewGP, scale: float) -> float:
    """The sum over folds of the log probability of a fold's answers given all others, at an output scale."""
    generator = torch.Generator().manual_seed(0)
    folds = [torch.randperm(entry.num_answers, generator=generator) % FOLDS for entry in model.observations]

    def log_evidence(observations: Sequence[Observation]) -> float:
        part = model.with_data(model.datapoints, observations)
        part.covar_module.outputscale = scale
        return _log_evidence(part)

    others = [
        log_evidence([entry.select(fold != left_out) for entry, fold in zip(model.observations, folds, strict=True)])
        for left_out in range(FOLDS)
    ]
    return FOLDS * log_evidence(model.observations) - sum(others)

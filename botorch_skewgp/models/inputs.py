r"""Inputs of a model: points and observations, converted from what BoTorch passes, and checked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.settings import validate_input_scaling
from botorch.utils.containers import SliceContainer
from botorch.utils.datasets import MultiTaskDataset, RankingDataset, SupervisedDataset
from gpytorch.module import Module
from gpytorch.priors import Prior
from torch import Tensor
from torch.distributions import TransformedDistribution

from botorch_skewgp.checks import as_position, check_class, class_itself, positions
from botorch_skewgp.inputs.points import check_finite
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.models.state import modules_below
from botorch_skewgp.observations import Numeric, Observation, Preference, Ranking, Tie
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.warpings import Warping

TOLERANCE = 1e-2  # of points outside the unit cube; BoTorch's
WIDE = 3.0  # largest mean and standard deviation of numbers without a warning
MAX_NUMBER = 1e150  # of which sums of squares do not overflow
MIN_WIDTH = 1e-150  # of an interval
MAX_DISTANCE = 1e13  # standard deviations, beyond which a row's spread is rounding


def moved(observations: Sequence[Observation], like: Tensor) -> tuple[Observation, ...]:
    """Observations on the device of points, and of their dtype. Raises `InputDataError`."""

    def change(t: Tensor) -> Tensor:
        new = t.to(like) if t.is_floating_point() else t.to(like.device)
        if t.is_floating_point() and (new.isinf() & t.isfinite().to(new.device)).any():
            raise InputDataError(
                f"Some numbers are too large for {new.dtype}, that of train_X: the largest is {t.max():g}."
            )
        return new

    return tuple(entry.apply(change) for entry in observations)


def move_priors(module: torch.nn.Module, fn: Callable[[Tensor], Tensor]) -> None:
    """Apply a change of dtype or device to base distributions of transformed normal priors, which GPyTorch leaves."""
    for prior in module.modules():
        if isinstance(prior, Prior) and isinstance(prior, TransformedDistribution):
            parameters = vars(prior.base_dist)
            parameters.update({name: fn(value) for name, value in parameters.items() if isinstance(value, Tensor)})


def check_hyperparameters(model: Module) -> None:
    """Raise `InputDataError` if a hyperparameter is not finite, or not positive where it must be."""
    for module in (model, *modules_below(model)):  # at every step of a fit; GPyTorch's generators take a tenth of it
        for short, parameter in module._parameters.items():
            if parameter is None or not parameter.numel():
                continue
            constraint = getattr(module, "_constraints", {}).get(f"{short}_constraint")
            value = parameter.detach() if constraint is None else constraint.transform(parameter.detach())
            least, most = map(float, value.aminmax())
            if 0 < least <= most < math.inf:  # as nearly always
                continue
            positive = constraint is not None and bool((constraint.lower_bound >= 0).all())
            if positive or not (math.isfinite(least) and math.isfinite(most)):
                name = next(name for name, entry in model.named_parameters() if entry is parameter)
                raise InputDataError(
                    f"{name} has the value {value.tolist()}; it must be {'positive and ' if positive else ''}finite. "
                    "Set another value, or fit again."
                )


def check_digits_of_rows(rows: TruncatedNormal) -> None:
    """Raise `InputDataError` where intervals are so far from their prior that posteriors would be rounding."""
    distance = torch.maximum(rows.lower - rows.mean, rows.mean - rows.upper) / rows.gamma_diagonal.sqrt()
    distance = distance[distance.isfinite()]
    if bool((distance > MAX_DISTANCE).any()):
        raise InputDataError(
            f"Some intervals are {distance.max():.1g} standard deviations away from the mean given prior and numbers; "
            f"beyond {MAX_DISTANCE:.0e} no digits are left. Correct the bounds, or scale them, such as with "
            "outcome_transform=Standardize(m=1)."
        )


def check_digits_of_bounds(observation: Observation, rows: Rows) -> None:
    """Raise `InputDataError` where squares of numbers overflow, or probabilities of narrow intervals underflow."""
    name = type(observation).__name__
    numbers = rows.lower[rows.is_equality].detach().abs()
    if bool((numbers > MAX_NUMBER).any()):
        raise InputDataError(
            f"{name} holds numbers that are too large, up to {numbers.max():.3g} in units of the model: their squares "
            "overflow. Scale them, such as with outcome_transform=Standardize(m=1)."
        )
    width = (rows.upper - rows.lower).detach()
    if bool(((width > 0) & (width < MIN_WIDTH)).any()):
        raise InputDataError(
            f"{name} has intervals of a width below {MIN_WIDTH:g} in units of the model, whose probabilities are 0 in "
            "floating point. Widen them, or give Numeric observations."
        )


def check_sums_without_noise(rows: Rows, num_columns: int) -> None:
    """Raise `InputDataError` where sums over several columns are known without noise and cancel at equal points."""
    quiet = rows.is_equality & (rows.noise == 0)
    if rows.index.shape[-1] == 1 or not bool(quiet.any()):
        return
    if cancelled := positions(quiet & (rows.weight(num_columns) == 0).all(-1)):
        raise InputDataError(
            f"Weights of numbers {cancelled} add up to zero at equal points, so that these numbers, without noise, say "
            "nothing of the function; leave them out, or give them noise."
        )


def as_sequence(observations: Observation | Sequence[Observation] | None) -> tuple[Observation, ...]:
    """Observations as a tuple; raises `InputDataError` if something is not an observation object."""
    if observations is None:
        return ()
    entries: tuple[Any, ...] = (observations,)
    if isinstance(observations, Iterable) and not isinstance(observations, (Observation, type, str, Mapping, Tensor)):
        entries = tuple(observations)
    for entry in entries:
        if not isinstance(entry, Observation):
            got = class_itself(entry) if isinstance(entry, type) else type(entry).__name__
            raise InputDataError(
                f"observations must be observation objects such as Preference(pairs), alone or in a list; got {got}. "
                "Wrap the data in the class of its kind."
            )
    return entries


def as_observations(
    Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None
) -> tuple[Observation, ...]:
    """Observations from BoTorch's tensors: numbers, or integer pairs for duels. Raises `InputDataError`."""
    if isinstance(Y, Tensor):
        return (Numeric(Y, noise) if Y.is_floating_point() else Preference(Y),)
    if noise is not None:
        raise InputDataError("Give the noise inside Numeric(values, noise) when Y holds observation objects.")
    return as_sequence(Y)


def from_dataset(dataset: SupervisedDataset) -> tuple[Tensor, tuple[Observation, ...]]:
    """Points and observations of a BoTorch dataset; equal ranks of two are a tie. Raises `UnsupportedError`."""
    if isinstance(dataset, MultiTaskDataset):
        raise UnsupportedError("SkewGP has no tasks; give it the data of one task, or a kernel over the task column.")
    if dataset.Y.shape[-1] != 1 and not isinstance(dataset, RankingDataset):
        raise UnsupportedError(
            f"SkewGP models one outcome; got {dataset.outcome_names}. Build one model for each and join them in a "
            "ModelList."
        )
    if not isinstance(dataset, RankingDataset):
        noise = None if dataset.Yvar is None else dataset.Yvar.squeeze(-1)
        return dataset.X, (Numeric(dataset.Y.squeeze(-1), noise),)
    container = dataset._X
    assert isinstance(container, SliceContainer)
    ranks, order = dataset.Y.sort(dim=-1, stable=True)
    items = container.indices.gather(-1, order)
    if items.shape[-1] > 2:
        return container.values, (Ranking(items, ranks),)
    tied = ranks[:, 0] == ranks[:, 1]
    kinds = (Preference(items[~tied]), Tie(items[tied]))
    return container.values, tuple(entry for entry in kinds if entry.pairs.shape[0])


def check_output_indices(indices: Any, num_outputs: int) -> list[int]:
    """Check that indices name outputs and return them from 0 on; raises `UnsupportedError`."""
    given = list(indices) if isinstance(indices, Iterable) and not isinstance(indices, str) else []
    outputs = [place for i in given if (place := as_position(i, num_outputs)) is not None]
    if not given or len(outputs) < len(given):
        raise UnsupportedError(f"output_indices must name outputs 0 to {num_outputs - 1}; got {indices!r}.")
    return outputs


def without_gradients(X: Tensor, name: str) -> Tensor:
    """Data, which posteriors are not differentiated in; raises `UnsupportedError` where that might be expected."""
    if X.requires_grad and torch.is_grad_enabled():
        raise UnsupportedError(
            f"{name} requires gradients, but posteriors have none in the data of a model; pass {name}.detach(). "
            "Gradients in new data: condition_on_observations(X, Y) with a batch dimension, as X.unsqueeze(0) and "
            "Y.unsqueeze(0)."
        )
    return X.detach()


def check_batch_shapes(num_outputs: int, **modules: Module | None) -> None:
    """Raise `UnsupportedError` where a kernel or mean has a batch dimension that is not that of the outputs."""
    of_outputs = torch.Size([num_outputs] if num_outputs > 1 else [])
    for name, module in modules.items():
        shape = getattr(module, "batch_shape", torch.Size())
        if shape not in (torch.Size(), of_outputs):
            raise UnsupportedError(
                f"{name} has batch shape {list(shape)}, but the model has {num_outputs} latent function(s); build it "
                "without batch_shape, and a model for each member of a batch."
            )


def warn_of_scaling(
    X: Tensor, observations: Sequence[Observation], inputs: bool, numbers: bool, likelihood: RowLikelihood
) -> None:
    """Warn of inputs outside the unit cube, and of numbers not of about zero mean and unit variance."""
    if validate_input_scaling.off():
        return
    outside = ((X < -TOLERANCE) | (X > 1 + TOLERANCE)).any(0).nonzero().squeeze(-1).tolist()
    if inputs and outside:
        warnings.warn(
            f"train_X leaves the unit cube in columns {outside[:10]}, but default lengthscales are for inputs in the "
            f"unit cube. Pass input_transform=Normalize(d={X.shape[-1]}, bounds=bounds), or scale the inputs.",
            InputDataWarning,
            stacklevel=3,
        )
    if numbers:
        _warn_of_large_sums(observations)
    seen = [entry for entry in observations if entry.numbers.numel()]
    if numbers and not seen and max(map(abs, scale_of_readings(observations))) > WIDE:
        warnings.warn(
            "Bounds of readings are far apart, or far from zero, but default noise and kernel are for numbers of about "
            "zero mean and unit variance. Pass outcome_transform=Standardize(m=1), or scale them.",
            InputDataWarning,
            stacklevel=3,
        )
    if not numbers or not seen:
        return
    y = torch.cat([entry.numbers for entry in seen]).double()
    warping = getattr(likelihood.for_kind(type(seen[0])), "warping", None)
    domain = -torch.inf if warping is None else warping.domain[0].max()
    if _is_standard(y, warping) or not bool((y > domain).all()):  # numbers outside of the domain are refused later
        return
    if domain == -torch.inf:
        cure = "Pass outcome_transform=Standardize(m=1), or scale them."
    else:  # which standardised numbers would leave
        if domain == 0 and _is_standard(y / y.log().mean().exp(), warping):
            cure = "Divide them by their geometric mean, as the warping takes no standardised ones."
        else:
            what = "model their logarithms with" if bool((y > 0).all()) else "pass"
            cure = f"Leave the warping out, and {what} outcome_transform=Standardize(m=1)."
    after = "" if warping is None else " after the warping"
    warnings.warn(
        f"The numbers{after} are far from zero mean and unit variance, for which default noise and kernel are. {cure}",
        InputDataWarning,
        stacklevel=3,
    )


def scale_of_readings(observations: Sequence[Observation]) -> tuple[float, float]:
    """Mean and spread of readings in intervals where no number tells them; zeros if there are none."""
    told = [entry for entry in observations if entry.middles.numel()]
    if not told or any(entry.numbers.numel() for entry in observations):
        return 0.0, 0.0
    mean, sd = _mean_and_sd(torch.cat([entry.middles for entry in told]).double())
    widths = torch.cat([entry.widths for entry in told]).double()
    return mean, max(sd, widths.median().item() if len(widths) else 0.0)


def _warn_of_large_sums(observations: Sequence[Observation]) -> None:
    """Warn of sums `y` with weights `w` of too large a function, somewhere at least `|y| / sum |w|`."""
    least = 0.0
    for entry in observations:
        if isinstance(entry, Numeric) and entry.weights is not None and not entry.is_of_point.all():
            sizes = entry.values.abs() / entry.weights.abs().sum(-1)
            least = max(least, sizes[~entry.is_of_point].max().item())
    if least > WIDE:
        warnings.warn(
            "The function behind weighted numbers must be large somewhere, but default noise and kernel are for "
            "functions of about zero mean and unit variance. Scale the numbers, or give some of single points and "
            "outcome_transform=Standardize(m=1).",
            InputDataWarning,
            stacklevel=4,
        )


def _is_standard(y: Tensor, warping: Warping | None) -> bool:
    """Whether numbers, after a warping, are of about zero mean and unit variance."""
    with torch.no_grad():
        mean, sd = _mean_and_sd(y if warping is None else warping(y))
    return abs(mean) <= WIDE and sd <= WIDE and (sd >= 1 / WIDE or len(y) < 5)


def _mean_and_sd(y: Tensor) -> tuple[float, float]:
    return y.mean().item(), y.std(correction=min(1, len(y) - 1)).item()


def check_observations(observations: Sequence[Observation], X: Tensor) -> None:
    """Raise `InputDataError` if observations refer to rows or columns that the points do not have."""
    for entry in observations:
        if entry.num_points_needed > X.shape[-2]:
            raise InputDataError(
                f"{type(entry).__name__} refers to row {entry.num_points_needed - 1} of train_X, which has "
                f"{X.shape[-2]} rows only (counted from 0)."
            )
        if entry.num_inputs_needed > X.shape[-1]:
            raise InputDataError(
                f"{type(entry).__name__} refers to input {entry.num_inputs_needed - 1}, but train_X has "
                f"{X.shape[-1]} columns only (counted from 0)."
            )


def check_batch(X: Tensor, Y: Tensor, noise: Tensor | None) -> None:
    """Raise `InputDataError` unless numbers, `batch_shape x q x 1`, or duels fit the points of a batch of fantasies."""
    check_finite(X, "X")
    q, shape = X.shape[-2], tuple(Y.shape)
    if not Y.is_floating_point():
        if Y.dtype == torch.bool or Y.is_complex() or Y.ndim < 2 or Y.shape[-1] != 2:
            raise InputDataError(
                f"Y must be numbers, or ... x m x 2 integers, winner first; got shape {shape}, {Y.dtype}."
            )
        if (Y < 0).any() or (q <= Y).any() or (Y[..., 0] == Y[..., 1]).any():
            raise InputDataError(f"Y must hold pairs of different rows of X, from 0 to {q - 1}.")
        return
    if shape[-2:] != (q, 1):
        raise InputDataError(f"Y must hold a number for each of the {q} points, ... x {q} x 1; got shape {shape}.")
    if not Y.isfinite().all():
        raise InputDataError("Y contains NaN or infinite values; leave these observations out.")
    if noise is None:
        return
    check_class(noise, "noise", Tensor)
    fits = noise.ndim <= Y.ndim and all(n in (1, m) for n, m in zip(noise.shape[::-1], shape[::-1], strict=False))
    if not fits or not noise.isfinite().all() or (noise < 0).any():
        raise InputDataError(
            f"noise must hold finite non-negative variances, of the shape of Y, {shape}; got shape "
            f"{tuple(noise.shape)}."
        )


def count_outputs(observations: Sequence[Observation], likelihood: RowLikelihood | None) -> int:
    """One latent function, or one per label; raises `InputDataError` if label preferences are mixed with others."""
    counts = {entry.num_outputs for entry in observations}
    if likelihood is not None and likelihood.num_outputs > 1:
        counts.add(likelihood.num_outputs)
    if len(counts) > 1:
        raise InputDataError(
            "LabelPreference observations have one latent function per label; they cannot share a model with other "
            "kinds of observations, or with another number of labels."
        )
    return counts.pop() if counts else 1


def check_skew_prior(skew_prior: SkewPrior | None, dim: int, num_outputs: int) -> None:
    """Raise `InputDataError` or `UnsupportedError` if a skew prior does not fit a model's inputs or outputs."""
    if skew_prior is None:
        return
    if num_outputs > 1:
        raise UnsupportedError(
            "A skew prior is for models with one latent function; leave it out for label preferences."
        )
    if skew_prior.pseudo_points.shape[-1] != dim:
        raise InputDataError(
            f"The skew prior's pseudo_points have {skew_prior.pseudo_points.shape[-1]} columns; the (transformed) "
            f"inputs have {dim}."
        )

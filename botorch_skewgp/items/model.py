r"""A model of votes between items: effects of items, of their groups and of their features.

.. [Bradley1952rank] R. A. Bradley, M. E. Terry. Rank analysis of incomplete block designs. Biometrika 39, 1952.
.. [Thurstone1927law] L. L. Thurstone. A law of comparative judgment. Psychological Review 34, 1927.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import deepcopy
from functools import reduce
from operator import add
from typing import Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import AdditiveKernel, Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.defaults import as_logarithm
from botorch_skewgp.observations import Observation, Preference
from botorch_skewgp.observations.checks import as_count, as_index, as_tensor, check_class, check_flags
from botorch_skewgp.truncated.draws import DrawSettings

# Variances of effects in units of the noise of one item: mode and spread of their logarithm. At 1 the better of two
# random items wins three votes of four; two spreads, a factor of 20, cover one of two to 95 of 100.
SCALE, SCALE_SPREAD = 1.0, 1.5
# Lengthscales of features in the unit cube: a median of sqrt(d), for nearly linear functions.
LENGTHSCALE, LENGTHSCALE_SPREAD = 1.0, 1.0


def item_points(numbers: Any, features: Any = None, groups: Any = None) -> Tensor:
    r"""Items as points: the number, the group if there are groups, and the features of each item.

    Args:
        numbers: An `n`-dim integer tensor: the items' numbers.
        features: An `n x d` tensor of features, if any.
        groups: An `n`-dim integer tensor of group numbers, if any.

    Returns:
        An `n x (1 + d)` tensor of double precision, `n x (2 + d)` with groups.

    Raises:
        InputDataError: If lengths differ, or a value is not finite.
    """
    columns = [as_index(numbers, "numbers", "n-dim", ndim=1, what="numbers").double().unsqueeze(-1)]
    n = len(columns[0])
    if groups is not None:
        group = as_tensor(groups, "groups", " Number names by groups, names = number_judges(names).")
        if group.is_floating_point() or group.dtype == torch.bool or group.shape != (n,):
            raise InputDataError(f"groups must hold a whole number for each of the {n} items; got {_what(group)}.")
        columns.append(group.double().unsqueeze(-1))
    if features is not None:
        given = as_tensor(features, "features").double()
        if given.ndim != 2 or given.shape[0] != n or given.shape[1] == 0:
            raise InputDataError(f"features must be {n} x d, a row for each item; got {_what(given)}.")
        if not given.isfinite().all():
            rows = (~given.isfinite().all(-1)).nonzero().flatten()[:5].tolist()
            raise InputDataError(f"features must be finite; see items {rows}.")
        columns.append(given)
    return torch.cat(columns, dim=-1)


def _what(x: Tensor) -> str:
    return f"{x.dtype} of shape {tuple(x.shape)}"


def default_item_covar_module(num_features: int = 0, groups: bool = False) -> Kernel:
    r"""The kernel of items: independent effects of items and of groups, and a smooth function of features.

    A fit learns the scale of each part; that of useless features goes to zero. See `feature_share`.

    Args:
        num_features: The number of features.
        groups: Whether there are groups.

    Raises:
        InputDataError: If the number is negative, or an argument is of another class.
    """
    num_features = as_count(num_features, "num_features", least=0)
    check_flags(groups=groups)
    parts: list[Kernel] = [_scaled(ItemEffectKernel(active_dims=[0]))]
    if groups:
        parts.append(_scaled(ItemEffectKernel(active_dims=[1])))
    if num_features:
        median = LENGTHSCALE * math.sqrt(num_features)
        smooth = CheckedRBFKernel(
            ard_num_dims=num_features,
            active_dims=_feature_dims(num_features, groups),
            lengthscale_prior=LogNormalPrior(math.log(median), LENGTHSCALE_SPREAD),
            lengthscale_constraint=as_logarithm(),
        )
        smooth.lengthscale = median
        parts.append(_scaled(smooth))
    return reduce(add, parts)


def default_item_judge_covar_module(num_features: int = 0, groups: bool = False) -> Kernel:
    r"""The kernel of a judge's own view of items and of their features.

    Args:
        num_features: The number of features.
        groups: Whether points have a column for groups.

    Raises:
        InputDataError: If the number is negative, or an argument is of another class.
    """
    num_features = as_count(num_features, "num_features", least=0)
    check_flags(groups=groups)
    effect: Kernel = _scaled(ItemEffectKernel(active_dims=[0]))
    if num_features:
        effect = effect + LinearTastesKernel(num_features, active_dims=_feature_dims(num_features, groups))
    return effect


def _feature_dims(num_features: int, groups: bool) -> list[int]:
    first = 2 if groups else 1
    return list(range(first, first + num_features))


def _scaled(kernel: Kernel) -> CheckedScaleKernel:
    prior = LogNormalPrior(math.log(SCALE) + SCALE_SPREAD**2, SCALE_SPREAD)  # as a function of the logarithm
    scaled = CheckedScaleKernel(kernel, outputscale_prior=prior, outputscale_constraint=as_logarithm())
    scaled.outputscale = SCALE
    return scaled


def item_model(
    num_items: int,
    votes: Observation | Sequence[Observation],
    features: Any = None,
    groups: Any = None,
    likelihood: RowLikelihood | None = None,
    covar_module: Kernel | None = None,
    judge_covar_module: Kernel | None = None,
    draw_settings: DrawSettings | None = None,
    approximation: Literal["ep"] | None = None,
) -> SkewGP:
    r"""A `SkewGP` of votes between items.

    The utility of item `i` is its own effect, plus one of its group, plus a smooth function of its features. Without
    groups and features it is Thurstone's model ([Thurstone1927law]_), the probit form of Bradley and Terry's
    ([Bradley1952rank]_), with a normal prior of learned width and the exact posterior: items that won or lost all of
    their votes, or have no votes, have a finite utility with its uncertainty.

    The points of the model, `model.datapoints`, are the items in their order, and votes refer to items by number.

    Example:
        >>> model = item_model(4, Preference([[0, 1], [0, 2], [2, 3]]))
        >>> fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
        >>> table = leaderboard(model, items=["ann", "bob", "eve", "dan"])

    Args:
        num_items: The number of items, with and without votes.
        votes: Comparisons of items by number, such as `Preference` and `Tie`, with `judge=` for several judges.
        features: A `num_items x d` tensor of features, such as embeddings, sizes, prices. They are scaled to the unit
            cube by their ranges.
        groups: An integer for each item: its group, such as an author or a family of models.
        likelihood: As for `SkewGP`.
        covar_module: The kernel; by default `default_item_covar_module`.
        judge_covar_module: The kernel of a judge's own part; by default `default_item_judge_covar_module`.
        draw_settings: As for `SkewGP`.
        approximation: As for `SkewGP`; `"ep"` for the largest leagues.

    Raises:
        InputDataError: If votes are on unknown items, or features or groups do not fit the number of items.
    """
    num_items = as_count(num_items, "num_items")
    given = _as_votes(votes)
    if not given and likelihood is None:
        given = (Preference(torch.empty(0, 2, dtype=torch.long)),)
    _check_votes(given, num_items)
    X = item_points(torch.arange(num_items), features, groups)
    num_features = X.shape[-1] - 1 - (groups is not None)
    transform = None
    if num_features:
        dims = _feature_dims(num_features, groups is not None)
        low, high = X[:, dims].amin(0), X[:, dims].amax(0)
        bounds = torch.stack([low, torch.where(high > low, high, low + 1.0)])
        transform = Normalize(X.shape[-1], indices=dims, bounds=bounds)
    if covar_module is None:
        covar_module = default_item_covar_module(num_features, groups is not None)
    if judge_covar_module is None:
        judge_covar_module = default_item_judge_covar_module(num_features, groups is not None)
    return SkewGP(
        X,
        given,
        likelihood=likelihood,
        covar_module=covar_module,
        input_transform=transform,
        judge_covar_module=judge_covar_module,
        learn_judge_reliability=not any(entry.anchors_scale for entry in given),
        draw_settings=draw_settings,
        approximation=approximation,
    )


def _as_votes(votes: Any) -> tuple[Observation, ...]:
    if isinstance(votes, Observation):
        return (votes,)
    if not isinstance(votes, Sequence):
        raise InputDataError(
            f"votes must be an observation such as Preference, or a list of them; got {type(votes).__name__}. Give "
            "votes.observations of what read_votes returns."
        )
    return tuple(votes)


def _check_votes(votes: Sequence[Observation], num_items: int) -> None:
    """Raise for unknown items and warn of ties alone."""
    for entry in votes:
        if not isinstance(entry, Observation):
            raise InputDataError(f"votes must be observations such as Preference and Tie; got {type(entry).__name__}.")
        index = getattr(entry, entry.index_field)
        if index.numel() and int(index.max()) >= num_items:
            unknown = index[index >= num_items].unique()[:5].tolist()
            raise InputDataError(
                f"{type(entry).__name__} names items {unknown}; there are {num_items}, numbered from 0. Raise "
                "num_items, or use add_items."
            )
    told = any(entry.tells_level or entry.num_answers > len(entry.ties) for entry in votes)
    if sum(len(entry.ties) for entry in votes) and not told:
        warnings.warn(
            "All votes are ties, which determine neither the width of ties nor the better item. Add votes with a "
            "winner.",
            InputDataWarning,
            stacklevel=3,
        )


def add_votes(model: SkewGP, votes: Observation | Sequence[Observation]) -> SkewGP:
    r"""A model with more votes between the same items, and the same hyperparameters.

    Args:
        model: A model of items.
        votes: Comparisons of items by number.

    Raises:
        InputDataError: If votes are on unknown items, or the likelihood does not take them.
    """
    check_class(model, "model", SkewGP)
    given = _as_votes(votes)
    _check_votes((*model.observations, *given), len(model.datapoints))
    new = deepcopy(model)
    new.set_train_data(targets=(*model.observations, *given))
    return new


def add_items(model: SkewGP, num_items: int, features: Any = None, groups: Any = None) -> SkewGP:
    r"""A model with more items, placed after the others, and the same hyperparameters.

    Features are scaled by the ranges of the first items, and may be outside these.

    Args:
        model: A model of items.
        num_items: The number of new items.
        features: A `num_items x d` tensor, if the model has features.
        groups: The groups of the new items, if the model has groups; new numbers are new groups.

    Raises:
        InputDataError: If features or groups do not fit those of the model.
    """
    num_items = as_count(num_items, "num_items", least=1)
    check_class(model, "model", SkewGP)
    old = model.datapoints
    X = item_points(torch.arange(len(old), len(old) + num_items), features, groups).to(old)
    transform = getattr(model, "input_transform", None)
    has_groups = old.shape[-1] > 1 + (0 if transform is None else len(transform.indices))
    if X.shape[-1] == old.shape[-1] and has_groups != (groups is not None):
        raise InputDataError(f"The model's items have {'' if has_groups else 'no '}groups; likewise for the new ones.")
    if X.shape[-1] != old.shape[-1]:
        raise InputDataError(
            f"The model's items have {old.shape[-1] - 1} columns of features and groups together; got {X.shape[-1] - 1}"
            " for the new ones."
        )
    new = deepcopy(model)
    new.set_train_data(torch.cat([old, X]), model.observations, strict=False)
    return new


@torch.no_grad()
def feature_share(model: SkewGP) -> float:
    r"""The share of the prior variance between items that is due to their features.

    Under a fitted kernel, 0 means that features have no effect, and 1 that items of equal features are equal. The
    variance of a part of the kernel between items is the mean of its diagonal less the mean of its entries.

    Args:
        model: A fitted model of items with the default kernel.

    Raises:
        InputDataError: If the kernel has no part for features.
    """
    check_class(model, "model", SkewGP)
    kernel = model.covar_module
    parts = list(kernel.kernels) if isinstance(kernel, AdditiveKernel) else [kernel]
    X = model.transform_inputs(model.datapoints)
    total, features = 0.0, None
    for part in parts:
        K = part(X).to_dense()
        variance = float(K.diagonal().mean() - K.mean())
        total += variance
        if not isinstance(getattr(part, "base_kernel", None), ItemEffectKernel):
            features = variance + (features or 0.0)
    if features is None:
        raise InputDataError("The model has no features; give item_model some.")
    return features / total

r"""A model of votes between items, with more votes and items, and what its features explain.

.. [Bradley1952rank] R. A. Bradley, M. E. Terry. Rank analysis of incomplete block designs. Biometrika 39, 1952.
.. [Thurstone1927law] L. L. Thurstone. A law of comparative judgment. Psychological Review 34, 1927.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import AdditiveKernel, Kernel
from torch import Tensor

from botorch_skewgp.checks import as_count, as_number, check_class
from botorch_skewgp.items.effects import (
    circumstance_kernels,
    circumstances,
    in_circumstances,
    item_covar_module,
    item_judge_covar_module,
    item_points,
)
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Observation, Preference
from botorch_skewgp.truncated.draws import DrawSettings


class ItemModel(SkewGP):
    """A SkewGP of votes between items, which finds its items among its points."""

    item_rows: Tensor  # the point of each item by itself, without advantage and in no category
    neutral: Tensor  # the columns of circumstances of items by themselves; empty without circumstances
    circumstances: tuple[str, ...]  # the kinds of these columns, the last ones of points

    def items_at(self, at: float | None = None, category: int | None = None) -> Tensor:
        """The items as points at a time, the latest if `None`, and in a category, none in particular if `None`."""
        X = self.datapoints[self.item_rows.to(self.datapoints.device)].clone()
        for name, value, kind, what in (("at", at, "time", "times"), ("category", category, "category", "categories")):
            if value is not None and kind not in self.circumstances:
                raise InputDataError(f"{name} is for models of votes with {what}; give item_model their {what}.")
            if value is not None:
                X[:, self.circumstances.index(kind) - len(self.circumstances)] = as_number(value, name)
        return X


def item_model(
    num_items: int,
    votes: Observation | Sequence[Observation],
    features: Any = None,
    likelihood: RowLikelihood | None = None,
    covar_module: Kernel | None = None,
    judge_covar_module: Kernel | None = None,
    draw_settings: DrawSettings | None = None,
    approximation: Literal["ep"] | None = None,
    advantages: Any = None,
    categories: Any = None,
    times: Any = None,
) -> ItemModel:
    r"""A `SkewGP` of votes between items.

    The utility of item `i` is its own effect plus a smooth function of its features. Without features it is Thurstone's
    model ([Thurstone1927law]_), the probit form of Bradley and Terry's ([Bradley1952rank]_), with a normal prior of
    learned width and the exact posterior: items that won or lost all of their votes, or have no votes, have a finite
    utility with its uncertainty.

    The points of the model, `model.datapoints`, are the items in their order, and votes refer to items by number.

    What was the case at a vote adds to both utilities: an effect of each advantage, one for all items; an effect of
    each item in each category; and a strength of each item that drifts in time, an Ornstein-Uhlenbeck process. Points
    then are items in these circumstances: round times to days or weeks, as each item has a point for each time.

    Example:
        >>> model = item_model(4, Preference([[0, 1], [0, 2], [2, 3]]))
        >>> fit_skew_gp(model)
        >>> table = leaderboard(model, items=["ann", "bob", "eve", "dan"])

    Args:
        num_items: The number of items, with and without votes.
        votes: Comparisons of items by number, such as `Preference` and `Tie`, with `judge=` for several judges.
        features: A `num_items x d` tensor of features, such as embeddings, sizes, prices. They are scaled to the unit
            cube by their ranges.
        likelihood: As for `SkewGP`.
        covar_module: The kernel; by default effects of items, the first column of points, and a function of features.
        judge_covar_module: The kernel of a judge's own part; by default effects of items and tastes for features.
        draw_settings: As for `SkewGP`.
        approximation: As for `SkewGP`; `"ep"` for the largest leagues, and for rankings of many people: of 160
            rankings by 40 people it takes seconds, and draws take minutes.
        advantages: For votes between two items an `m x 2` or `m x 2 x c` tensor, the covariates of both items of each
            vote in the order of observations and of their pairs: 1 for the item at home, or shown first, and 0 for the
            other. `read_votes` makes it from names.
        categories: An `m`-dim integer tensor, the category of each vote.
        times: An `m`-dim tensor, the time of each vote.

    Raises:
        InputDataError: If votes are on unknown items, features do not fit the number of items, or advantages,
            categories or times do not fit the votes.
    """
    num_items = as_count(num_items, "num_items")
    given = _checked_votes(votes, num_items)
    if not given and likelihood is None:
        given = (Preference(torch.empty(0, 2, dtype=torch.long)),)
    X = item_points(torch.arange(num_items), features)
    told = circumstances(advantages, categories, times, given)
    first = X.shape[-1]
    if told.kinds:
        rows = [getattr(entry, entry.index_field) for entry in given]
        X, rows = in_circumstances(X, told.neutral, rows, told.columns)
        given = tuple(_at_rows(entry, index) for entry, index in zip(given, rows, strict=True))
    scaled = [*range(1, first), *(i for i, kind in enumerate(told.kinds, first) if kind == "time")]
    transform = None
    if scaled:
        low, high = X[:, scaled].amin(0), X[:, scaled].amax(0)
        bounds = torch.stack([low, torch.where(high > low, high, low + 1.0)])
        transform = Normalize(X.shape[-1], indices=scaled, bounds=bounds)
    if covar_module is None:
        covar_module = reduce(add, circumstance_kernels(told.kinds, first), item_covar_module(first - 1))
    model = ItemModel(
        X,
        given,
        likelihood=likelihood,
        covar_module=covar_module,
        input_transform=transform,
        judge_covar_module=item_judge_covar_module(first - 1) if judge_covar_module is None else judge_covar_module,
        learn_judge_reliability=not any(entry.anchors_scale for entry in given),
        draw_settings=draw_settings,
        approximation=approximation,
    )
    model.item_rows, model.neutral, model.circumstances = torch.arange(num_items), told.neutral, told.kinds
    return model


def _at_rows(entry: Observation, rows: Tensor) -> Observation:
    """Votes with other indices, a tensor of their shape."""
    return entry.at_columns(lambda index, by: rows)


def _checked_votes(votes: Any, num_items: int, before: Sequence[Observation] = ()) -> tuple[Observation, ...]:
    """Votes as a tuple; raises for unknown items, and warns of ties alone, also among votes before."""
    if not isinstance(votes, Observation | Sequence):
        raise InputDataError(
            f"votes must be an observation such as Preference, or a list of them; got {type(votes).__name__}. Give "
            "votes.observations of what read_votes returns."
        )
    given = (votes,) if isinstance(votes, Observation) else tuple(votes)
    for entry in given:
        if not isinstance(entry, Observation):
            raise InputDataError(f"votes must be observations such as Preference and Tie; got {type(entry).__name__}.")
        index = getattr(entry, entry.index_field)
        if index.numel() and int(index.max()) >= num_items:
            unknown = index[index >= num_items].unique()[:5].tolist()
            raise InputDataError(
                f"{type(entry).__name__} names items {unknown}; there are {num_items}, numbered from 0. Raise "
                "num_items, or use add_items."
            )
    every = [*before, *given]
    num_ties = sum(len(entry.ties) for entry in every)
    is_informative = any(
        entry.tells_level or len(entry.duels) or (entry.num_answers and not len(entry.ties)) for entry in every
    )
    if num_ties and not is_informative:
        warnings.warn(
            "All votes are ties, which determine neither the width of ties nor the better item. Add votes with a "
            "winner.",
            InputDataWarning,
            stacklevel=3,
        )
    return given


def add_votes(
    model: ItemModel,
    votes: Observation | Sequence[Observation],
    advantages: Any = None,
    categories: Any = None,
    times: Any = None,
) -> ItemModel:
    """A model with more votes between the same items, and the same hyperparameters; arguments as for `item_model`.

    Raises:
        InputDataError: If votes are on unknown items, the likelihood does not take them, or advantages, categories or
            times are not those that the model has.
    """
    check_class(model, "model", ItemModel)
    given = _checked_votes(votes, len(model.item_rows), model.observations)
    told = circumstances(advantages, categories, times, given)
    if told.kinds != model.circumstances:
        raise InputDataError("New votes must have the same kinds of advantages, categories and times as those before.")
    X = model.datapoints
    asked = [getattr(entry, entry.index_field) for entry in given]
    rows = [model.item_rows[index] for index in asked]
    if told.kinds:
        bare = X[model.item_rows, : -len(told.kinds)]
        further, places = in_circumstances(bare, model.neutral, asked, told.columns)
        new_rows = torch.cat([model.item_rows, len(X) + torch.arange(len(further) - len(bare))])
        X, rows = torch.cat([X, further[len(bare) :]]), [new_rows[place] for place in places]
    moved = [_at_rows(entry, index) for entry, index in zip(given, rows, strict=True)]
    return model.with_data(X, (*model.observations, *moved))


def add_items(model: ItemModel, num_items: int, features: Any = None) -> ItemModel:
    """A model with more items, placed after the others, and the same hyperparameters.

    Features, `num_items x d`, are scaled by the ranges of the first items, and may be outside these.

    Raises:
        InputDataError: If features do not fit those of the model.
    """
    num_items = as_count(num_items, "num_items", least=1)
    check_class(model, "model", ItemModel)
    old, known = model.datapoints, len(model.item_rows)
    X = item_points(torch.arange(known, known + num_items), features).to(old)
    X = torch.cat([X, model.neutral.to(old).expand(num_items, -1)], dim=-1)
    if X.shape[-1] != old.shape[-1]:
        own = 1 + len(model.neutral)
        raise InputDataError(
            f"The model's items have {old.shape[-1] - own} features; got {X.shape[-1] - own} for the new ones."
        )
    new = model.with_data(torch.cat([old, X]), model.observations)
    new.item_rows = torch.cat([model.item_rows, len(old) + torch.arange(num_items)])
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
    parts = list(kernel.kernels) if type(kernel) is AdditiveKernel else [kernel]  # a subclass may be no sum
    X = model.transform_inputs(model.items_at() if isinstance(model, ItemModel) else model.datapoints)
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

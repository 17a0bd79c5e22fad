"""What utilities of items consist of: items as points, the kernels of effects, and the circumstances of votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import Kernel, LinearKernel, MaternKernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.checks import as_index, as_tensor, as_values
from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.models.defaults import as_logarithm
from botorch_skewgp.observations import Observation
from botorch_skewgp.parameters import LogarithmPrior, register_named_prior
from botorch_skewgp.rows import first_of_equal

# Variances of effects in units of the noise of one item: mode and spread of their logarithm. At 1 the better of two
# random items wins three votes of four; two spreads, a factor of 20, cover one of two to 95 of 100.
SCALE, SCALE_SPREAD = 1.0, 1.5
# Lengthscales of features in the unit cube: a median of sqrt(d), for nearly linear functions.
LENGTHSCALE, LENGTHSCALE_SPREAD = 1.0, 1.0


def item_points(numbers: Any, features: Any = None) -> Tensor:
    """Items as points: the number and the features of each item, `n x (1 + d)` in double precision."""
    columns = [as_index(numbers, "numbers", "n-dim", ndim=1, what="numbers").double().unsqueeze(-1)]
    n = len(columns[0])
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


def item_covar_module(num_features: int = 0) -> Kernel:
    """The kernel of items: an independent effect of each plus a smooth function of features, both of learned scale."""
    effect: Kernel = _scaled(ItemEffectKernel(active_dims=[0]))
    if not num_features:
        return effect
    median = LENGTHSCALE * math.sqrt(num_features)
    smooth = CheckedRBFKernel(
        ard_num_dims=num_features,
        active_dims=list(range(1, 1 + num_features)),
        lengthscale_prior=LogNormalPrior(math.log(median), LENGTHSCALE_SPREAD),
        lengthscale_constraint=as_logarithm(),
    )
    smooth.lengthscale = median
    return effect + _scaled(smooth)


def item_judge_covar_module(num_features: int = 0) -> Kernel:
    """The kernel of a judge's own view of items and of their features."""
    effect: Kernel = _scaled(ItemEffectKernel(active_dims=[0]))
    if not num_features:
        return effect
    return effect + LinearTastesKernel(num_features, active_dims=list(range(1, 1 + num_features)))


class CategoryEffectKernel(ItemEffectKernel):
    """An independent effect of each item in each category; none at items in no category, -1 in the last dimension."""

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        same = super().forward(x1, x2, diag=diag, **params)
        known = x1[..., -1] >= 0
        return same * (known if diag else known.unsqueeze(-1))


class Circumstances(NamedTuple):
    """What was the case at votes, as `item_model` takes it: columns of points after those of items."""

    columns: Tensor  # m x 2 x e
    neutral: Tensor  # e; those of an item by itself, with no advantage, in no category, at the latest time
    kinds: tuple[str, ...]  # of each column: "advantage", "category" or "time"


def circumstances(advantages: Any, categories: Any, times: Any, votes: Sequence[Observation]) -> Circumstances:
    """Checked circumstances of votes, without columns if nothing is given; raises `InputDataError`."""
    m = sum(entry.num_answers for entry in votes)
    parts = [Circumstances(torch.empty(m, 2, 0), torch.empty(0), ())]
    told = advantages is not None or categories is not None or times is not None
    if told and any(getattr(entry, entry.index_field).shape[-1] != 2 for entry in votes):
        raise InputDataError("advantages, categories and times are of votes between two items.")
    if advantages is not None:
        given = as_tensor(advantages, "advantages")
        given = given.unsqueeze(-1) if given.ndim == 2 else given
        if given.ndim != 3 or given.shape[:2] != (m, 2) or not bool(given.isfinite().all()):
            raise InputDataError(
                f"advantages must be finite and {m} x 2 x c, for both items of each vote; got {_what(given)}."
            )
        parts.append(Circumstances(given, torch.zeros(given.shape[-1]), ("advantage",) * given.shape[-1]))
    if categories is not None:
        given = as_index(categories, "categories", "m-dim", ndim=1, what="numbers of categories")
        if len(given) != m:
            raise InputDataError(f"categories must hold a number for each of {m} votes; got {len(given)}.")
        parts.append(Circumstances(given.view(-1, 1, 1), torch.tensor([-1]), ("category",)))
    if times is not None:
        given = as_values(times, "times")
        if len(given) != m or not bool(given.isfinite().all()):
            raise InputDataError(f"times must hold a finite number for each of {m} votes; got {_what(given)}.")
        parts.append(Circumstances(given.view(-1, 1, 1), given.max().reshape(1), ("time",)))
    return Circumstances(
        torch.cat([part.columns.double().expand(-1, 2, -1) for part in parts], dim=-1),
        torch.cat([part.neutral.double() for part in parts]),
        tuple(kind for part in parts for kind in part.kinds),
    )


def circumstance_kernels(kinds: Sequence[str], first: int) -> list[Kernel]:
    """The kernels of the effects of circumstances, whose columns start at `first`."""
    parts: list[Kernel] = []
    for place, kind in enumerate(kinds, first):
        if kind == "advantage":
            effect = LinearKernel(variance_constraint=as_logarithm(), active_dims=[place])
            effect.variance = SCALE
            register_named_prior(effect, "variance", _prior_of_scale())  # GPyTorch's cannot be pickled
            parts.append(effect)
        elif kind == "category":
            parts.append(_scaled(CategoryEffectKernel(active_dims=[0, place])))
        else:
            drift = MaternKernel(nu=0.5, active_dims=[place], lengthscale_prior=LogNormalPrior(0.0, LENGTHSCALE_SPREAD))
            parts.append(_scaled(ItemEffectKernel(active_dims=[0]) * drift))
    return parts


def _prior_of_scale() -> LogarithmPrior:
    return LogarithmPrior(math.log(SCALE), SCALE_SPREAD)


def _scaled(kernel: Kernel) -> CheckedScaleKernel:
    scaled = CheckedScaleKernel(kernel, outputscale_prior=_prior_of_scale(), outputscale_constraint=as_logarithm())
    scaled.outputscale = SCALE
    return scaled


def in_circumstances(
    X: Tensor, neutral: Tensor, items: Sequence[Tensor], columns: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Points of items by themselves, then in the circumstances of votes, `m x 2 x e`; the votes' rows among them."""
    alone = torch.cat([X, neutral.to(X).expand(len(X), -1)], dim=-1)
    asked = torch.cat([X[torch.cat(list(items))], columns.to(X)], dim=-1).flatten(0, 1)
    every = torch.cat([alone, asked])
    first, which = first_of_equal(every).unique(return_inverse=True)  # items by themselves come first
    rows = which[len(alone) :].view(-1, 2)
    return every[first], list(rows.split([len(part) for part in items]))

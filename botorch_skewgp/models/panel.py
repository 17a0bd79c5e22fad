r"""Several judges: who judged which points, as the columns of a model.

The utility of judge `j` is what all share plus a part of his own, so that a column is a point and who judges there. The
number behind a point's inputs is 0 for the shared part alone, `j + 1` for judge `j`, and -1 for a new judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.models.defaults import COMPARISON_LENGTHSCALE, COMPARISON_LENGTHSCALE_SPREAD, as_logarithm
from botorch_skewgp.observations import Observation

SHARED, NEW = 0, -1
# Of the prior of tastes. With a scale of 1, tastes for prices worth 38 times the noise were taken for smooth parts.
COMPARISON_TASTES = 10.0
OWN_OUTPUTSCALE, OWN_OUTPUTSCALE_SPREAD = 1.0, 1.5  # of the smooth part, in units of the noise: mode, spread of its log


@dataclass(frozen=True, eq=False)
class Panel:
    r"""The columns of a model of several judges: every point that a judge was asked about, once for each judge.

    Args:
        keys: A sorted integer tensor, `point * (num_judges + 1) + code` for every column.
        num_judges: The number of judges, one more than the largest number of one.
    """

    keys: Tensor
    num_judges: int

    @classmethod
    def of(cls, observations: Sequence[Observation], device: torch.device) -> Self | None:
        """The columns of observations; `None` where they do not name two judges or more."""
        known = judges_of(observations)
        if len(known) < 2:
            return None
        size, keys = max(known) + 2, [torch.zeros(1, dtype=torch.long, device=device)]

        def collect(index: Tensor, code: Tensor) -> Tensor:
            keys.append((index * size + code).flatten().to(device))
            return index

        for entry in observations:
            entry.at_columns(collect)
        return cls(torch.cat(keys).unique(), size - 1)

    @property
    def codes(self) -> Tensor:
        """Who judges at each column."""
        return self.keys % (self.num_judges + 1)

    def resolve(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """Observations that refer to columns in the place of points."""
        return tuple(entry.at_columns(self._place) for entry in observations)

    def _place(self, index: Tensor, code: Tensor) -> Tensor:
        keys = self.keys.to(index.device)
        return torch.searchsorted(keys, (index * (self.num_judges + 1) + code).contiguous())

    def points(self, X: Tensor) -> Tensor:
        r"""The points of the columns, with who judges there behind.

        Args:
            X: The training points, `n x d`.
        """
        keys = self.keys.to(X.device)
        return torch.cat([X[keys // (self.num_judges + 1)], self.codes.to(X).unsqueeze(-1)], dim=-1)


def code_of(judge: int | str | None, known: frozenset[int] | set[int]) -> int:
    r"""The number behind the inputs of a judge's points.

    Args:
        judge: A judge's number, `"new"` for one who has not answered yet, or `None` for what all share.
        known: The numbers of those who gave answers.

    Raises:
        InputDataError: If nothing is known of the judge.
    """
    if judge is None:
        return SHARED
    if isinstance(judge, str) and judge == "new":
        return NEW
    number = _as_number(judge)
    if number not in known:
        named = sorted(known)
        some = f"{named[:10]}{' and others' if len(named) > 10 else ''}" if named else "nobody"
        raise InputDataError(
            f"judge must be the number of one who gave answers ({some} did) or 'new' for a new one; got {judge!r}."
        )
    return number + 1


def _as_number(judge: Any) -> int:
    """The integer that a number, numpy's or an entry of a tensor among them, stands for; -1 of anything else."""
    try:
        return -1 if isinstance(judge, bool) else index(judge)
    except TypeError:
        return -1


def judges_of(observations: Sequence[Observation]) -> set[int]:
    """The numbers of all who gave answers."""
    named = [entry.judge.unique().tolist() for entry in observations if entry.judge is not None]
    return {number for numbers in named for number in numbers}


def with_code(X: Tensor, code: int) -> Tensor:
    """Points with who judges there as the last column."""
    return torch.cat([X, X.new_full((*X.shape[:-1], 1), float(code))], dim=-1)


def default_judge_covar_module(dim: int, observations: Sequence[Observation] = (), smooth: bool = True) -> Kernel:
    r"""The kernel of a judge's own part: linear tastes with a full covariance, plus a smooth part.

    Args:
        dim: The number of inputs.
        observations: What the model is to be of: utilities are larger in units of the noise for comparisons alone.
        smooth: Whether there is a smooth part, an RBF kernel with a scale and lengthscales of its own.
    """
    comparisons = len(observations) > 0 and all(entry.points_per_observation > 1 for entry in observations)
    tastes = LinearTastesKernel(dim, scale=COMPARISON_TASTES if comparisons else 1.0)
    if not smooth:
        return tastes
    median = COMPARISON_LENGTHSCALE * dim**0.5
    base_kernel = CheckedRBFKernel(
        ard_num_dims=dim,
        lengthscale_prior=LogNormalPrior(torch.tensor(median).log().item(), COMPARISON_LENGTHSCALE_SPREAD),
        lengthscale_constraint=as_logarithm(),
    )
    base_kernel.lengthscale = median
    spread = OWN_OUTPUTSCALE_SPREAD
    prior = LogNormalPrior(torch.tensor(OWN_OUTPUTSCALE).log().item() + spread**2, spread)
    scaled = CheckedScaleKernel(base_kernel, outputscale_prior=prior, outputscale_constraint=as_logarithm())
    scaled.outputscale = OWN_OUTPUTSCALE
    return tastes + scaled

"""The normal components of one value's distribution, for expectations in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction, _log_ei_helper
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.models.state import modules_below, tensors_of
from botorch_skewgp.posteriors import NormalMixtureMarginals
from botorch_skewgp.posteriors.mixture_posterior import check_one_value
from botorch_skewgp.protocols import Ensemble


class Components(NamedTuple):
    """The normal components of a single value's distribution."""

    mean: Tensor  # batch_shape x S
    standard_deviation: Tensor  # the same, or one that they share, batch_shape x 1
    log_probability: Tensor  # S or batch_shape x S

    @classmethod
    def of_members(cls, members: Iterable[Components]) -> Components:
        """The components of an equally weighted mixture of the members' distributions, the first member's first."""
        members = list(members)
        if len(members) == 1:
            return members[0]
        means = [member.mean for member in members]
        deviations = [m.standard_deviation.expand_as(mean) for m, mean in zip(members, means, strict=True)]
        log_weight = math.log(len(members))
        log_p = [m.log_probability.expand_as(mean) - log_weight for m, mean in zip(members, means, strict=True)]
        return cls(torch.cat(means, -1), torch.cat(deviations, -1), torch.cat(log_p, -1))

    def gain(self, best_f: Tensor, maximize: bool) -> Tensor:
        """The gain of every mean over a best value that broadcasts with them, `batch_shape x S`."""
        gain = self.mean - best_f.to(self.mean)
        return gain if maximize else -gain

    def log_average(self, log_terms: Tensor) -> Tensor:
        """The logarithm of the average over components of terms given by their logarithms, `batch_shape`."""
        return (self.log_probability + log_terms).logsumexp(-1)

    def log_expected_improvement(self, best_f: Tensor, maximize: bool) -> Tensor:
        """`log E[max(f - best_f, 0)]`, or of `best_f - f`; `batch_shape`."""
        gain, sd = self.gain(best_f, maximize), self.standard_deviation
        return self.log_average(sd.log() + _log_ei_helper(gain / sd))


def components_of(posterior: Posterior, user: str) -> Components:
    """The components of a posterior over one value."""
    marginals = getattr(posterior, "marginals", None)
    if not isinstance(marginals, NormalMixtureMarginals):
        raise UnsupportedError(
            f"{user} needs a model whose posterior is a mixture of normal distributions, such as a SkewGPPosterior; "
            f"got {type(posterior).__name__}. For normal posteriors BoTorch's analytic acquisition functions are exact."
        )
    check_one_value(posterior, user)
    means, standard_deviation = (parameter.squeeze(-2) for parameter in marginals.parameters)
    means = means.expand(*posterior.batch_shape, means.shape[-1])  # type: ignore[attr-defined]
    return Components(means, standard_deviation, posterior.log_probabilities)  # type: ignore[attr-defined]


def quantile_of(posterior: Posterior, probability: float, user: str) -> Tensor:
    """The quantile of a posterior over one value, of an ensemble's mixture; `batch_shape`."""
    check_one_value(posterior, user)
    quantile = getattr(posterior, "mixture_quantile", posterior.quantile)
    return quantile(torch.tensor(probability, dtype=posterior.dtype, device=posterior.device)).squeeze(-1).squeeze(-1)


def follow(acquisition: torch.nn.Module, X: Tensor) -> None:
    """Move an acquisition function to the type and device of points, as BoTorch's do; slow, hence only if needed."""
    device, dtype = X.device, X.dtype
    for entry in tensors_of([acquisition, *modules_below(acquisition)]):
        if entry.device != device or (entry.dtype != dtype and entry.is_floating_point()):
            acquisition.to(X)
            return


class ComponentAcquisitionFunction(AnalyticAcquisitionFunction):
    """Base class of acquisition functions of the components of one value's distribution."""

    def _components(self, X: Tensor) -> Components:
        follow(self, X)
        name, transform = type(self).__name__, self.posterior_transform
        members = self.model.members if isinstance(self.model, Ensemble) else [self.model]
        posteriors = (member.posterior(X, posterior_transform=transform) for member in members)
        return Components.of_members(components_of(posterior, name) for posterior in posteriors)

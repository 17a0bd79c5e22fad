r"""An objective as a density over unbounded coordinates of the hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import torch
from botorch.exceptions.errors import UnsupportedError
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood, log_prior, log_volume_of_logarithms
from botorch_skewgp.parameters import ParameterSpace, from_unbounded

FARTHEST_LOGIT = 8.0  # a rate that was fitted to zero has a logit of -infinity, where there is nothing to start from


class UnboundedDensity:
    r"""The objective over unbounded coordinates of the parameters that have priors; evaluations set them."""

    def __init__(self, mll: RowMarginalLogLikelihood) -> None:
        self.mll = mll
        self.space = ParameterSpace({"model": mll.model})
        prior, free = log_prior(mll.model), {e: mll.model.get_parameter(e.name) for e in self.space.entries}
        gradients: Sequence[Tensor | None] = [None] * len(free)
        if prior.requires_grad:
            gradients = torch.autograd.grad(prior, [*free.values()], allow_unused=True)
        self.space.entries = [e for e, gradient in zip(free, gradients, strict=True) if gradient is not None]
        self.parameters = [free[e] for e in self.space.entries]
        if not self.parameters:
            raise UnsupportedError("No free hyperparameter has a prior; register priors, or fit the model instead.")
        self.start = self.space.coordinates(FARTHEST_LOGIT)  # of the present values

    def values_at(self, x: Tensor) -> dict[str, Tensor]:
        """Values of the constrained parameters at unbounded coordinates `... x k`."""
        return {
            e.name: from_unbounded(e.constraint, part)[0].unflatten(-1, e.shape or (1,))
            for e, part in zip(self.space.entries, self.space.split(x), strict=True)
        }

    def state_dict(self, x: Tensor) -> dict[str, Tensor]:
        """The parameters themselves at unbounded coordinates `k`, in their shapes and dtypes."""
        raws, parameters = self.space.raw_parameters(x.unsqueeze(0), "model"), self.parameters
        return {name: raw.squeeze(0).to(p) for (name, raw), p in zip(raws.items(), parameters, strict=True)}

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The log density of coordinates `k` and its gradient; `-inf` where the prior has no Cholesky factor."""
        model, (x, raws, log_volume) = self.mll.model, self._write(x)
        try:
            objective = self.mll.evaluate(model(*model.train_inputs), model.train_targets)
        except NotPSDError:
            return x.new_tensor(-torch.inf), torch.zeros_like(x)
        return self._with_gradient(objective, x, raws, log_volume)

    def prior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The log density of the priors alone at coordinates `k`, and its gradient."""
        x, raws, log_volume = self._write(x)
        return self._with_gradient(log_prior(self.mll.model), x, raws, log_volume)

    @torch.no_grad()
    def log_densities(self, x: Tensor) -> Tensor:
        """The log densities of coordinates `N x k` up to the tolerance of iterations, without gradients."""
        model = self.mll.model
        log_density = x.new_full(x.shape[:1], -torch.inf)
        for i, point in enumerate(x):
            log_volume = self._write(point)[-1]
            with suppress(NotPSDError):
                objective = self.mll.evaluate(model(*model.train_inputs), model.train_targets)
                log_density[i] = objective.to(x) + log_volume - log_volume_of_logarithms(model)
        return log_density

    def _write(self, x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """Set the parameters; the coordinates as a leaf, the parameters as functions of it, and the log volume."""
        x = x.detach().requires_grad_(True)
        raws, log_slopes = self.space.raw(x.unsqueeze(0))
        for parameter, raw in zip(self.parameters, raws, strict=True):
            parameter.data.copy_(raw.detach().squeeze(0))
        return x, raws, torch.stack([log_slope.sum() for log_slope in log_slopes]).sum()

    def _with_gradient(
        self, objective: Tensor, x: Tensor, raws: list[Tensor], log_volume: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The objective as a density of values, plus the log volume, and the gradient in the coordinates."""
        objective = objective - log_volume_of_logarithms(self.mll.model)
        slopes = torch.autograd.grad(objective, self.parameters)
        pulled_back = [slope.to(raw).view_as(raw) for slope, raw in zip(slopes, raws, strict=True)]
        if log_volume.requires_grad:  # unless all bijections are shifts
            raws, pulled_back = [*raws, log_volume], [*pulled_back, torch.ones_like(log_volume)]
        gradient = torch.autograd.grad(raws, x, pulled_back)[0]
        return (objective + log_volume).detach().double(), gradient

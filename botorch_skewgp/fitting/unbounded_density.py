r"""An objective as a density over unbounded coordinates of the hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import UnsupportedError
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood, log_prior
from botorch_skewgp.warpings.parameters import constrained, from_unbounded, to_unbounded, unconstrained

FARTHEST_LOGIT = 8.0  # a rate that was fitted to zero has a logit of -infinity, where there is nothing to start from


class UnboundedDensity:
    r"""The objective over unbounded coordinates of the parameters that have priors; evaluations set them."""

    def __init__(self, mll: RowMarginalLogLikelihood) -> None:
        self.mll = mll
        model = mll.model
        all_constraints = {name: constraint for name, _, constraint in model.named_parameters_and_constraints()}  # type: ignore[operator]
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        prior = log_prior(model)
        gradients: Sequence[Tensor | None] = [None] * len(named)
        if isinstance(prior, Tensor) and prior.requires_grad:
            gradients = torch.autograd.grad(prior, [p for _, p in named], allow_unused=True)
        self.parameters = {n: p for (n, p), g in zip(named, gradients, strict=True) if g is not None}
        if not self.parameters:
            raise UnsupportedError("No free hyperparameter has a prior; register priors, or fit the model instead.")
        self.constraints = {name: all_constraints[name] for name in self.parameters}
        self.sizes = [p.numel() for p in self.parameters.values()]

    def coordinates(self) -> Tensor:
        """The present values in unbounded coordinates; those at bounds within `FARTHEST_LOGIT` of the middle."""
        parts = []
        for name, parameter in self.parameters.items():
            constraint = self.constraints[name]
            part = to_unbounded(constraint, constrained(constraint, parameter.detach().double())).flatten()
            if constraint is not None and bool(constraint.upper_bound.isfinite() & constraint.lower_bound.isfinite()):
                part = part.clamp(-FARTHEST_LOGIT, FARTHEST_LOGIT)
            parts.append(part)
        return torch.cat(parts)

    def values_at(self, x: Tensor) -> dict[str, Tensor]:
        """Values of the constrained parameters at unbounded coordinates `... x k`."""
        parts = zip(self.parameters.items(), x.split(self.sizes, dim=-1), strict=True)
        return {
            name: from_unbounded(self.constraints[name], part)[0].unflatten(-1, p.shape or (1,))
            for (name, p), part in parts
        }

    def state_dict(self, x: Tensor) -> dict[str, Tensor]:
        """The parameters themselves at unbounded coordinates `k`, in their shapes and dtypes."""
        raw = {name: unconstrained(self.constraints[name], value) for name, value in self.values_at(x).items()}
        return {name: raw[name].view(p.shape).to(p) for name, p in self.parameters.items()}

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
        value = log_prior(self.mll.model)
        assert isinstance(value, Tensor)  # there are priors
        return self._with_gradient(value, x, raws, log_volume)

    @torch.no_grad()
    def log_densities(self, x: Tensor) -> Tensor:
        """The log densities of coordinates `N x k` up to the tolerance of iterations, without gradients, faster."""
        model = self.mll.model
        log_density = x.new_full(x.shape[:1], -torch.inf)
        found, terms, log_volumes = [], [], []
        for i, point in enumerate(x):
            _, _, log_volume = self._write(point)
            try:
                terms.append(self.mll.terms(model(*model.train_inputs), model.train_targets))
            except NotPSDError:
                continue
            found.append(i)
            log_volumes.append(log_volume)
        if found:
            log_density[found] = self.mll.values_of(terms).to(x) + torch.stack(log_volumes)
        return log_density

    def _write(self, x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        """Set the parameters; the coordinates as a leaf, the parameters as functions of it, and the log volume."""
        x = x.detach().requires_grad_(True)
        log_volume, raws = x.new_zeros(()), []
        for (name, parameter), part in zip(self.parameters.items(), x.split(self.sizes), strict=True):
            constraint = self.constraints[name]
            value, log_slope = from_unbounded(constraint, part)
            raw = unconstrained(constraint, value)
            raws.append(raw)
            parameter.data.copy_(raw.detach().view(parameter.shape))
            log_volume = log_volume + log_slope.sum()
        return x, raws, log_volume

    def _with_gradient(
        self, objective: Tensor, x: Tensor, raws: list[Tensor], log_volume: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The objective plus the log volume, and the gradient in the coordinates."""
        slopes = torch.autograd.grad(objective, list(self.parameters.values()))
        pulled_back = [slope.to(raw).view_as(raw) for slope, raw in zip(slopes, raws, strict=True)]
        if log_volume.requires_grad:  # unless all bijections are shifts
            raws, pulled_back = [*raws, log_volume], [*pulled_back, torch.ones_like(log_volume)]
        gradient = torch.autograd.grad(raws, x, pulled_back)[0]
        return (objective + log_volume).detach().double(), gradient

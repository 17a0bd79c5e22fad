r"""An objective as a density over unbounded coordinates of the hyperparameters, with its gradient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import UnsupportedError
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood, log_prior
from botorch_skewgp.models.coordinates import constrained, from_unbounded, to_unbounded, unconstrained


class UnboundedDensity:
    r"""The objective over unbounded coordinates of the parameters that have priors, with its gradient.

    Evaluations write the parameters of the objective's model. Priors are taken to be densities of the constrained
    value, as GPyTorch's modules register them.

    Args:
        mll: A deterministic objective, in training mode.

    Raises:
        UnsupportedError: If no free parameter has a prior.
    """

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
            raise UnsupportedError(
                "No hyperparameter that is to be learned has a prior; register priors, or fit the model instead."
            )
        self.constraints = {name: all_constraints[name] for name in self.parameters}
        self.sizes = [p.numel() for p in self.parameters.values()]

    def coordinates(self) -> Tensor:
        """The present values in unbounded coordinates."""
        parts = []
        for name, parameter in self.parameters.items():
            value = constrained(self.constraints[name], parameter.detach().double())
            parts.append(to_unbounded(self.constraints[name], value).flatten())
        return torch.cat(parts)

    def values(self, x: Tensor) -> dict[str, Tensor]:
        """Values of the constrained parameters at unbounded coordinates `... x k`."""
        parts = zip(self.parameters.items(), x.split(self.sizes, dim=-1), strict=True)
        return {
            name: from_unbounded(self.constraints[name], part)[0].unflatten(-1, p.shape or (1,))
            for (name, p), part in parts
        }

    def state_dict(self, x: Tensor) -> dict[str, Tensor]:
        """The parameters themselves at unbounded coordinates `k`, in their shapes and dtypes."""
        raw = {name: unconstrained(self.constraints[name], value) for name, value in self.values(x).items()}
        return {name: raw[name].view(p.shape).to(p) for name, p in self.parameters.items()}

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The log density of the coordinates and its gradient; `-inf` where the prior has no Cholesky factor."""
        x = x.detach().requires_grad_(True)
        log_volume, raws = x.new_zeros(()), []
        for (name, parameter), part in zip(self.parameters.items(), x.split(self.sizes), strict=True):
            constraint = self.constraints[name]
            value, log_slope = from_unbounded(constraint, part)
            raw = unconstrained(constraint, value)
            raws.append(raw)
            parameter.data.copy_(raw.detach().view(parameter.shape))
            log_volume = log_volume + log_slope.sum()
        model = self.mll.model
        try:
            objective = self.mll(model(*model.train_inputs), model.train_targets)
        except NotPSDError:
            return x.new_tensor(-torch.inf), torch.zeros_like(x)
        slopes = torch.autograd.grad(objective, list(self.parameters.values()))
        pulled_back = [slope.to(raw).view_as(raw) for slope, raw in zip(slopes, raws, strict=True)]
        if log_volume.requires_grad:  # unless all bijections are shifts
            raws, pulled_back = [*raws, log_volume], [*pulled_back, torch.ones_like(log_volume)]
        gradient = torch.autograd.grad(raws, x, pulled_back)[0]
        return (objective + log_volume).detach().double(), gradient

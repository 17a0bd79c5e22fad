r"""How well cut-points are known: an answer whose cut-points have a variance is worth one with that much more noise.

Variances are those of a linear expansion under the Laplace approximation at the fitted parameters of the likelihood
([Tierney1986accurate]_), whose precision is the negative Hessian of the objective, with a fixed kernel and noises.

.. [Tierney1986accurate] Tierney, Kadane. Accurate approximations for posterior moments and marginal densities. 1986.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_skewgp.fitting.importance import gradient_and_hessian
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP

MAX_ENTRIES = 16  # of a parameter
STEP = 1e-2  # of finite differences of gradients, in raw parameters
MIN_PRECISION = 0.1  # of a raw parameter; less is not believed, as where the fit was not finished


def cutpoint_variances(model: SkewGP, cutpoints: Sequence[Tensor]) -> list[Tensor]:
    """The posterior variances of cut-points of a fitted model, whose parameters are moved and put back."""
    ends = torch.cat([cuts.flatten() for cuts in cutpoints])
    variances, is_finite = torch.zeros_like(ends.detach()), ends.detach().isfinite()
    candidates = [p for p in model.likelihood.parameters() if p.requires_grad and 0 < p.numel() <= MAX_ENTRIES]
    if ends.requires_grad and candidates:
        rows = []
        for end in ends[is_finite]:
            gradients = torch.autograd.grad(
                end, candidates, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            rows.append(torch.cat([gradient.flatten() for gradient in gradients]))
        jacobian = torch.stack(rows).split([p.numel() for p in candidates], dim=-1)
        used = [i for i, part in enumerate(jacobian) if bool(part.any())]
        if used:
            # the delta method: with J the derivatives and L L^T the parameters' covariance, row sums of (J L)^2
            root = _root_of_covariance(model, [candidates[i] for i in used])
            product = torch.cat([jacobian[i] for i in used], dim=-1) @ root.to(ends)
            variances[is_finite] = product.square().sum(-1)
    parts = variances.split([cuts.numel() for cuts in cutpoints])
    return [part.view_as(cuts) for part, cuts in zip(parts, cutpoints, strict=True)]


def _root_of_covariance(model: SkewGP, parameters: Sequence[torch.nn.Parameter]) -> Tensor:
    """A root of the covariance of raw parameters, by the objective's Hessian."""
    objective = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    sizes = [p.numel() for p in parameters]

    def write(x: Tensor) -> None:
        with torch.no_grad():
            for parameter, part in zip(parameters, x.split(sizes), strict=True):
                parameter.copy_(part.view_as(parameter))

    def density(x: Tensor) -> tuple[Tensor, Tensor]:
        write(x)
        value = objective(model(*model.train_inputs), model.train_targets)
        return value.detach(), torch.cat([gradient.flatten() for gradient in torch.autograd.grad(value, parameters)])

    here = torch.cat([p.detach().flatten() for p in parameters])
    _, hessian = gradient_and_hessian(density, here, STEP)
    write(here)
    values, vectors = torch.linalg.eigh(-hessian)
    return vectors / values.clamp(min=MIN_PRECISION).sqrt()

r"""How well cut-points are known: their variances under the posterior of the likelihood's parameters.

With few answers of a kind, learned cut-points are uncertain: the levels of grades, the width of ties. An answer whose
cut-points have a variance is worth as much as one with that much more noise.

The posterior is that of the Laplace approximation at the fitted parameters ([Tierney1986accurate]_), with the kernel's
parameters and noises at their fitted values: its precision is the negative Hessian of the objective. Variances of
cut-points are those of their linear expansion.

.. [Tierney1986accurate] L. Tierney, J. B. Kadane. Accurate approximations for posterior moments and marginal densities.
   Journal of the American Statistical Association 81, 1986.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP

STEP = 1e-2  # of finite differences of gradients, in raw parameters
LEAST_PRECISION = 0.1  # of a raw parameter; less is not believed, as where the fit was not finished


def cutpoint_variances(model: SkewGP, cutpoints: Sequence[Tensor]) -> list[Tensor]:
    r"""The posterior variances of cut-points.

    Args:
        model: A model at its fitted hyperparameters. Its parameters are moved and put back, so pass a copy.
        cutpoints: Tensors of cut-points, made from the likelihood's parameters.

    Returns:
        A tensor of the shape of each; zeros for those that no learned parameter moves, as for infinite ones.
    """
    ends = torch.cat([cuts.flatten() for cuts in cutpoints])
    candidates = [p for p in model.likelihood.parameters() if p.requires_grad and p.numel()]
    variances = torch.zeros_like(ends.detach())
    if ends.requires_grad and candidates:
        is_finite = ends.detach().isfinite()
        gradients = [
            torch.autograd.grad(end, candidates, retain_graph=True, allow_unused=True) for end in ends[is_finite]
        ]
        used = [i for i in range(len(candidates)) if any(g[i] is not None and bool(g[i].any()) for g in gradients)]
        if used:
            parameters = [candidates[i] for i in used]
            rows = [[torch.zeros_like(candidates[i]) if g[i] is None else g[i] for i in used] for g in gradients]
            jacobian = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
            root = jacobian @ _root_of_covariance(model, parameters).to(jacobian)
            variances[is_finite] = root.square().sum(-1)
    parts = variances.split([cuts.numel() for cuts in cutpoints])
    return [part.view_as(cuts) for part, cuts in zip(parts, cutpoints, strict=True)]


def _root_of_covariance(model: SkewGP, parameters: Sequence[torch.nn.Parameter]) -> Tensor:
    """A root of the covariance of raw parameters, by the objective's Hessian."""
    objective = SkewGPMarginalLogLikelihood(model.likelihood, model).train()

    def gradient() -> Tensor:
        value = objective(model(*model.train_inputs), model.train_targets)
        return torch.cat([g.flatten() for g in torch.autograd.grad(value, parameters)])

    here, columns = gradient(), []
    for parameter in parameters:
        for entry in parameter.detach().view(-1):
            before = entry.clone()
            entry.add_(STEP)
            columns.append((here - gradient()) / STEP)
            entry.copy_(before)
    precision = torch.stack(columns)
    values, vectors = torch.linalg.eigh((precision + precision.mT) / 2)
    return vectors / values.clamp(min=LEAST_PRECISION).sqrt()

r"""What searches of a pair and of a recommendation maximise, in closed form on the mixture of a model's draws.

Given draw `s` the difference `f(a) - f(b)` is normal with mean `m_s` and a variance `t^2` that all draws share, so that
`E max(f(a), f(b)) = E f(b) + E max(f(a) - f(b), 0) = E f(b) + sum_s p_s (m_s Phi(z_s) + t phi(z_s))`, `z_s = m_s / t`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeGuard

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch import settings as gpytorch_settings
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor
from torch.autograd.function import once_differentiable

from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.protocols import input_transform_of

AGREEMENT = 1e-9  # relative, of a quicker covariance with the kernel's own


class ExpectedPositivePart(torch.autograd.Function):
    """`E max(x, 0)` of a mixture of normal distributions that share a variance, with its gradient."""

    @staticmethod
    def forward(ctx: Any, means: Tensor, variance: Tensor, probabilities: Tensor) -> Tensor:
        """The expectation, `batch_shape`, of `S` components with means `batch_shape x S`, a positive variance,
        `batch_shape`, and probabilities, `S`, which have no gradient.
        """
        deviation = variance.sqrt()
        z = means / deviation.unsqueeze(-1)
        cdf = torch.special.ndtr(z)
        density = torch.exp(-0.5 * z.square()) @ probabilities / math.sqrt(2 * math.pi)
        # the slopes are p_s Phi(z_s) in m_s, and sum_s p_s phi(z_s) in t, the root of the variance
        ctx.save_for_backward(cdf, 0.5 * density / deviation, probabilities)
        return (means * cdf) @ probabilities + deviation * density

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """The gradient in the means and the variance."""
        cdf, slope, probabilities = ctx.saved_tensors
        return cdf * (gradient.unsqueeze(-1) * probabilities), gradient * slope, None


class _Covariance:
    """Prior covariances at transformed points, in double precision."""

    def __init__(self, prior: LatentPrior) -> None:
        self.prior = prior

    def with_columns(self, X: Tensor) -> Tensor:
        """The covariance with the columns of rows, `batch_shape x q x n`."""
        return self.prior.cross_covariance(X)

    def of_difference(self, X: Tensor) -> Tensor:
        """The variance of the difference of two points, `batch_shape x 2 x d`; `batch_shape`."""
        K = self.prior.covariance_at(X).to_dense()
        return K[..., 0, 0] + K[..., 1, 1] - 2 * K[..., 0, 1]


class _SquaredExponential(_Covariance):
    """The same of the default kernel, in a fifth of the operations."""

    def __init__(self, prior: LatentPrior) -> None:
        super().__init__(prior)
        kernel: Any = prior.covar_module
        self.scale, self.lengthscale = kernel.outputscale.double(), kernel.base_kernel.lengthscale.double()
        Z = prior.value_points.double() / self.lengthscale
        self.centre = Z.sum(-2) / max(1, len(Z))  # about which squares of distances keep their digits
        Z = Z - self.centre
        self.Z, self.log_factor = Z.mT.contiguous(), self.scale.log() - 0.5 * Z.square().sum(-1)

    def with_columns(self, X: Tensor) -> Tensor:
        x = X / self.lengthscale - self.centre
        return torch.exp(x @ self.Z + self.log_factor - 0.5 * x.square().sum(-1, keepdim=True))

    def of_difference(self, X: Tensor) -> Tensor:
        difference = (X[..., 0, :] - X[..., 1, :]) / self.lengthscale.squeeze(-2)
        return -2 * self.scale * torch.expm1(-0.5 * difference.square().sum(-1))


# Kernels whose formula this is; one of another class is evaluated by itself, whatever it inherits.
_OUTPUT_SCALES, _SQUARED_EXPONENTIALS = (ScaleKernel, CheckedScaleKernel), (RBFKernel, CheckedRBFKernel)


def _covariance(prior: LatentPrior) -> _Covariance:
    """The quicker covariance where the kernel is of known classes and agrees with it at three points."""
    kernel: Any = prior.covar_module
    if type(kernel) not in _OUTPUT_SCALES or type(kernel.base_kernel) not in _SQUARED_EXPONENTIALS:
        return _Covariance(prior)
    parts = [kernel, kernel.base_kernel]
    if prior.layout.has_slopes or any(part.batch_shape or part.active_dims is not None for part in parts):
        return _Covariance(prior)
    quick = _SquaredExponential(prior)
    steps = torch.tensor([[0.0], [0.5], [1.25]], dtype=torch.float64, device=quick.lengthscale.device)
    X = (quick.centre + steps).expand(3, prior.value_points.shape[-1]) * quick.lengthscale
    plain = _Covariance(prior)
    pairs = torch.stack([X[[0, 1]], X[[0, 2]], X[[1, 2]]])
    agrees = torch.allclose(quick.with_columns(X), plain.with_columns(X), rtol=AGREEMENT, atol=0.0) and torch.allclose(
        quick.of_difference(pairs), plain.of_difference(pairs), rtol=AGREEMENT, atol=0.0
    )
    return quick if agrees else plain


class _OfMixture(AcquisitionFunction):
    """An acquisition function of the posterior that a model has when it is built, whatever becomes of the model."""

    def __init__(self, model: SkewGP) -> None:
        super().__init__(model)
        fitted = model.fitted()
        prior, mixture = fitted.data.for_judges([])
        self._fitted, self._mean_at, self._scale = fitted, prior.mean_at, fitted.scale
        self._mixture = replace(mixture)  # what is computed in inference mode must not be kept beside the model's
        self._covariance = _covariance(prior)

    @staticmethod
    def takes(model: Model) -> TypeGuard[SkewGP]:
        """Whether a model has a single mixture over the columns of its rows, of one utility: no judges or fantasies."""
        if not isinstance(model, SkewGP) or model.num_outputs != 1 or model.judge_code is not None:
            return False
        changes_number = getattr(input_transform_of(model), "is_one_to_many", False)
        return type(model).posterior is SkewGP.posterior and not model.fitted().levels and not changes_number


class MixtureMean(_OfMixture):
    """The posterior mean."""

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The posterior mean at `batch_shape x 1 x d` points; `batch_shape`."""
        inputs = self._fitted.inputs_at(X).double()
        cross = self._covariance.with_columns(inputs)
        latent = self._mean_at(inputs) + (cross @ self._mixture.mean).squeeze(-1)
        return self._scale.unstandardize(latent.squeeze(-1)).to(X)


class ExpectedMaximumOfPair(_OfMixture):
    """`E max(f(a), f(b))` of two points: qEUBO of a pair, exact given the draws, where BoTorch samples."""

    @t_batch_mode_transform(expected_q=2)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The expected maximum at `batch_shape x 2 x d` pairs; `batch_shape`."""
        inputs, mixture = self._fitted.inputs_at(X).double(), self._mixture
        location_a, location_b = self._mean_at(inputs).unbind(-1)
        cross_a, cross_b = self._covariance.with_columns(inputs).unbind(-2)
        cross = cross_a - cross_b
        means = (location_a - location_b).unsqueeze(-1) + cross @ mixture.weights
        variance = self._covariance.of_difference(inputs) - mixture.times_root(cross).square().sum(-1)
        # rounding may leave zero or less: GPyTorch's least variance, as in a posterior
        variance = variance.clamp_min(gpytorch_settings.min_variance.value(variance.dtype))
        mean_b = location_b + (cross_b @ mixture.mean).squeeze(-1)
        gain = ExpectedPositivePart.apply(means, variance, mixture.probabilities)
        return self._scale.unstandardize(mean_b + gain).to(X)

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
from torch import Tensor
from torch.autograd.function import once_differentiable

from botorch_skewgp.kernels.evaluation import PlusConstantKernel, SquaredExponential
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.protocols import input_transform_of


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


class SquaredExponentialColumns(torch.autograd.Function):
    """`exp(-|x - z|^2 / 2)` times a scale, of points in units of lengthscales, with its gradient in few operations."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, z: Tensor, log_half: Tensor) -> Tensor:
        """The covariance, `batch_shape x q x n`, of points `batch_shape x q x d` with `z`, `n x d`, which has no
        gradient; of these there is `log s - |z|^2 / 2`, `n`.
        """
        K = (x @ z.mT).add_(log_half).sub_(x.square().sum(-1, keepdim=True), alpha=0.5).exp_()
        ctx.save_for_backward(K, x, z)
        return K

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """The gradient in the points: the slope of the exponent is `z - x`."""
        K, x, z = ctx.saved_tensors
        slope = gradient * K
        return slope @ z - slope.sum(-1, keepdim=True) * x, None, None


class _Columns:
    """The covariance of points with the columns of a mixture's weights, of parameters that stay as they are.

    Points are those after input transforms. What does not depend on them is computed once, where the kernel is a scaled
    squared exponential, perhaps with a constant.
    """

    def __init__(self, prior: LatentPrior) -> None:
        self._prior = prior
        kernel, self._constant = prior.covar_module, None
        if type(kernel) is PlusConstantKernel:
            kernel, self._constant = kernel.base_kernel, kernel.constant.constant.detach().double()
        has_others = prior.layout.has_slopes or prior.residuals is not None
        self._form = None if has_others else SquaredExponential.of(kernel)
        if self._form is not None:
            self._lengthscale = self._form.lengthscale.detach().double()
            Z = self._form.inputs(prior.value_points.double())
            self._centre = Z.sum(-2, keepdim=True) / max(1, len(Z))  # about which squares keep their digits
            self._z = (Z - self._centre) / self._lengthscale
            self._log_half = self._form.scale.detach().double().log() - 0.5 * self._z.square().sum(-1)

    def __call__(self, X: Tensor) -> Tensor:
        """The covariance at `batch_shape x q x d` points, `batch_shape x q x n`."""
        if self._form is None:
            return self._prior.cross_covariance(X)
        x = (self._form.inputs(X) - self._centre) / self._lengthscale
        K: Tensor = SquaredExponentialColumns.apply(x, self._z, self._log_half)
        return K if self._constant is None else K + self._constant


class _OfMixture(AcquisitionFunction):
    """An acquisition function of the posterior that a model has when it is built, whatever becomes of the model."""

    def __init__(self, model: SkewGP) -> None:
        super().__init__(model)
        fitted = model.fitted()
        prior, mixture = fitted.data.for_judges([])
        self._fitted, self._prior, self._scale = fitted, prior, fitted.scale
        self._mixture = replace(mixture)  # what is computed in inference mode must not be kept beside the model's
        self._columns = _Columns(prior)

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
        cross = self._columns(inputs)
        latent = self._prior.mean_at(inputs) + (cross @ self._mixture.mean).squeeze(-1)
        return self._scale.unstandardize(latent.squeeze(-1)).to(X)


class ExpectedMaximumOfPair(_OfMixture):
    """`E max(f(a), f(b))` of two points: qEUBO of a pair, exact given the draws, where BoTorch samples."""

    @t_batch_mode_transform(expected_q=2)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The expected maximum at `batch_shape x 2 x d` pairs; `batch_shape`."""
        inputs, mixture = self._fitted.inputs_at(X).double(), self._mixture
        location_a, location_b = self._prior.mean_at(inputs).unbind(-1)
        cross_a, cross_b = self._columns(inputs).unbind(-2)
        cross = cross_a - cross_b
        means = (location_a - location_b).unsqueeze(-1) + cross @ mixture.weights
        variance = self._prior.variance_of_difference(inputs) - mixture.times_root(cross).square().sum(-1)
        # rounding may leave zero or less: GPyTorch's least variance, as in a posterior
        variance = variance.clamp_min(gpytorch_settings.min_variance.value(variance.dtype))
        mean_b = location_b + (cross_b @ mixture.mean).squeeze(-1)
        gain = ExpectedPositivePart.apply(means, variance, mixture.probabilities)
        return self._scale.unstandardize(mean_b + gain).to(X)

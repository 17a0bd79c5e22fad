"""Prior paths of several judges: a shared part, and an own part of each judge."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.transforms.input import InputTransform
from botorch.sampling.pathwise import SamplePath
from botorch.sampling.pathwise.features.generators import gen_kernel_features
from botorch.sampling.pathwise.utils import TensorTransform
from gpytorch.kernels import AdditiveKernel, Kernel
from torch import Tensor
from torch.nn import ModuleList

from botorch_skewgp.kernels.judges import LinearTastesKernel, Reliability


class WithCode(TensorTransform):
    """Points after a model's input transform, with the judge as the last column."""

    def __init__(self, code: int, input_transform: InputTransform | None) -> None:
        super().__init__()
        self.code, self.input_transform = code, input_transform

    def forward(self, values: Tensor, **kwargs: Any) -> Tensor:
        """Transform and append the column."""
        X = values if self.input_transform is None else self.input_transform(values)
        return torch.cat([X, X.new_full((*X.shape[:-1], 1), float(self.code))], dim=-1)


class JudgePath(SamplePath):
    """`r_j (g(x) + phi(x)^T w_j)`: a shared path, plus features with weights of each judge."""

    weight: Tensor

    def __init__(
        self,
        shared: SamplePath,
        own: Kernel,
        num_judges: int,
        sample_shape: torch.Size,
        num_inputs: int,
        num_features: int,
        reliability: Reliability | None,
        input_transform: WithCode,
        output_transform: TensorTransform | None,
    ) -> None:
        super().__init__()
        self.shared, self.reliability = shared, reliability
        self.input_transform, self.output_transform = input_transform, output_transform
        parts = list(own.kernels) if isinstance(own, AdditiveKernel) else [own]
        self.features = ModuleList(_features(part, num_inputs, num_features) for part in parts)
        like = next(own.parameters())
        with torch.no_grad():
            sizes = [self._of_part(part, like.new_zeros(1, num_inputs)).shape[-1] for part in self.features]
        shape = (*sample_shape, num_judges + 1, sum(sizes))
        weight = torch.randn(shape, dtype=like.dtype, device=like.device)
        # by codes: zero for the shared part, then all judges, and a new judge last, at -1
        self.register_buffer("weight", torch.cat([torch.zeros_like(weight[..., :1, :]), weight], dim=-2))

    @staticmethod
    def _of_part(part: Any, X: Tensor) -> Tensor:
        return part.white(X) if isinstance(part, LinearTastesKernel) else part(X)

    def forward(self, x: Tensor, **kwargs: Any) -> Tensor:
        """The values at points with a last column for judges, the same in every batch; shapes as of BoTorch's paths."""
        X, code = x[..., :-1], x.detach()[..., -1]
        features = torch.cat([self._of_part(part, X) for part in self.features], dim=-1)
        codes = code.reshape(-1, code.shape[-1])[0].long()
        value = self.shared(X)
        for judge in codes.unique().tolist():
            which = (codes == judge).nonzero().squeeze(-1)
            own = features[..., which, :] @ self.weight[..., judge, :].unsqueeze(-1)
            value = value.index_add(-1, which, own.squeeze(-1))
        return value if self.reliability is None else value * self.reliability.at(code)

    def set_ensemble_as_batch(self, ensemble_as_batch: bool) -> None:
        """Set it for the shared part."""
        self.shared.set_ensemble_as_batch(ensemble_as_batch)


def _features(kernel: Kernel, num_inputs: int, num_features: int) -> Any:
    """A module of features whose products have the kernel as their mean."""
    if isinstance(kernel, LinearTastesKernel):
        return kernel
    return gen_kernel_features(kernel, num_inputs=num_inputs, num_outputs=num_features)

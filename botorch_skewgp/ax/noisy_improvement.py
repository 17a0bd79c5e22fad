"""BoTorch's noisy expected improvement for SkewGPs, with samples at the baseline computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from botorch.acquisition.input_constructors import acqf_input_constructor, construct_inputs_qLogNEI
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models import ModelList
from botorch.sampling.base import MCSampler
from botorch.sampling.list_sampler import ListSampler
from torch import Tensor

from botorch_skewgp.models import SkewGP


class _Baseline(NamedTuple):
    """Samples at the baseline, for candidates of a given number of points."""

    q: int
    models: list[SkewGP]
    base_samples: list[Tensor]  # for each model `sample_shape x (1 + q)`; the first picks the sample
    best_f: Tensor


class BaselineLogNoisyExpectedImprovement(qLogNoisyExpectedImprovement):
    r"""BoTorch's `qLogNoisyExpectedImprovement` of SkewGPs, whose samples at the baseline are made once.

    BoTorch keeps roots of the covariance at the baseline for Gaussian models. Here every joint sample at the baseline
    becomes a draw of a conditioned model (`SkewGP.condition_on_samples`), so that only candidates cost time. Values are
    BoTorch's with the same base samples, up to rounding; if a posterior transform changes the sign of the objective,
    with base samples at the baseline of the other sign. Where no sampled point of the baseline is feasible, BoTorch's
    value depends on random points drawn at each evaluation, here drawn once. Models that are not SkewGPs with one
    output are treated as in BoTorch. Arguments are those of `qLogNoisyExpectedImprovement`.
    """

    _given: _Baseline | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._q_reduction = partial(_of_several, self._q_reduction)

    def _init_baseline(self, *args: Any, **kwargs: Any) -> None:
        self._given = None
        super()._init_baseline(*args, **kwargs)

    def _get_samples_and_objectives(self, X: Tensor) -> tuple[Tensor, Tensor]:
        given = self._baseline(X)
        if given is None:
            return super()._get_samples_and_objectives(X)
        samples = []
        for model, base_samples in zip(given.models, given.base_samples, strict=True):
            posterior = model.posterior(X, posterior_transform=self.posterior_transform)
            base_samples = base_samples.view(-1, *(1,) * (X.ndim - 2), 1 + given.q)
            samples.append(posterior.rsample_from_base_samples(self.sample_shape, base_samples))
        joint = torch.cat(samples, dim=-1)
        return joint, self.objective(joint, X=X)

    def compute_best_f(self, obj: Tensor) -> Tensor:
        """The best feasible values of the samples at the baseline, to broadcast with `sample_shape x batch_shape`."""
        if self._given is None:
            return super().compute_best_f(obj)
        return self._given.best_f.view(-1, *(1,) * (obj.ndim - 2))

    def _baseline(self, X: Tensor) -> _Baseline | None:
        """The samples for candidates of this number of points, drawn if they are not at hand."""
        models = [*self.model.models] if isinstance(self.model, ModelList) else [self.model]
        plain = [model for model in models if isinstance(model, SkewGP) and _is_plain(model)]
        if len(self.X_baseline) == 0 or len(plain) < len(models):
            return None
        if self._given is None or self._given.q != X.shape[-2]:
            with torch.no_grad():
                self._given = self._sampled(plain, X[(0,) * (X.ndim - 2)])
        return self._given

    def _sampled(self, models: list[SkewGP], X: Tensor) -> _Baseline:
        """Sample the baseline together with candidates once, which draws the base samples."""
        super()._get_samples_and_objectives(X.unsqueeze(0))
        samplers = [*self.sampler.samplers] if isinstance(self.sampler, ListSampler) else [self.sampler]
        q, n = X.shape[-2], self.X_baseline.shape[-2]
        given, left, values = [], [], []
        for model, sampler in zip(models, samplers, strict=True):
            assert isinstance(sampler, MCSampler)
            made = sampler.base_samples
            assert isinstance(made, Tensor)
            base_samples = made.reshape(-1, 1 + n + q)
            conditioned = model.condition_on_samples(self.X_baseline, base_samples[:, : 1 + n])
            number = torch.arange(len(base_samples), dtype=base_samples.dtype, device=base_samples.device)
            pick = torch.special.ndtri((number + 0.5) / len(base_samples)).unsqueeze(-1)
            given.append(conditioned)
            left.append(torch.cat([pick, base_samples[:, 1 + n :]], dim=-1))
            posterior = conditioned.posterior(
                self.X_baseline.unsqueeze(-2), posterior_transform=self.posterior_transform
            )
            certain = torch.cat([pick, torch.zeros_like(pick)], dim=-1).unsqueeze(1)
            values.append(posterior.rsample_from_base_samples(self.sample_shape, certain).squeeze(-2))
        samples = torch.cat(values, dim=-1)
        objective = self.objective(samples, X=self.X_baseline)
        best_f = self._compute_best_feasible_objective(samples=samples, obj=objective)
        return _Baseline(q, given, left, best_f)


def _of_several(reduction: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """A smooth maximum over the last dimension, without its twenty operations if that has length one."""
    return values.squeeze(-1) if values.shape[-1] == 1 else reduction(values)


def _is_plain(model: SkewGP) -> bool:
    """Whether samples of a model can be conditioned on."""
    return model.num_outputs == 1 and not getattr(getattr(model, "input_transform", None), "is_one_to_many", False)


acqf_input_constructor(BaselineLogNoisyExpectedImprovement)(construct_inputs_qLogNEI)

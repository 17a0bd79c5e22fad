r"""Sample paths: draws of the whole latent function, as fixed functions of the input.

.. [Wilson2021pathwise] Wilson et al. Pathwise conditioning of Gaussian processes. 2021.
"""

from __future__ import annotations

from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any, cast

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import InputTransform
from botorch.sampling.pathwise import GeneralizedLinearPath, SamplePath, draw_kernel_feature_paths, gaussian_update
from botorch.sampling.pathwise.features.generators import GenKernelFeatures
from botorch.sampling.pathwise.features.maps import FeatureMap
from botorch.sampling.pathwise.posterior_samplers import DrawMatheronPaths, MatheronPath
from botorch.sampling.pathwise.prior_samplers import (
    DrawKernelFeaturePaths,
    TPathwisePriorSampler,
    _draw_kernel_feature_paths_fallback,
)
from botorch.sampling.pathwise.update_strategies import TPathwiseUpdate
from botorch.sampling.pathwise.utils import TensorTransform, get_input_transform
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor
from torch.nn import Module

from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel
from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.posteriors import RepresenterMixture
from botorch_skewgp.seeding import seeded


class SkewGPSamplePath(MatheronPath):
    r"""Draws of the latent function of a SkewGP, each a fixed function of the input.

    A draw of a path takes a prior path `g ~ GP(m, k)`, one draw `s` of the mixture with representer weights `a_s`, and
    `xi ~ N(0, I - R^T k(Z, Z) R)`, and adds a correction to the prior path (Matheron's rule, [Wilson2021pathwise]_):

        `f(x) = g(x) + k(x, Z) {a_s - R [R^T (g(Z) - m(Z)) + xi]}`.

    `Z` are the columns of the rows: values at points, and slopes, those of the prior path by forward differentiation.
    The square bracket is the whitened value of the rows under the prior, with the covariances `I`, and `R^T k(Z, x)`
    with `g(x)`: given `s`, mean and covariance are those of `SkewGPPosterior`, but for the finite features.

    Example:
        >>> path = SkewGPSamplePath.draw(model, torch.Size([]), generator=torch.Generator().manual_seed(0))
        >>> values = path(X)  # X is batch_shape x q x d, values batch_shape x q
    """

    def forward(self, x: Tensor, **kwargs: Any) -> Tensor:
        """The values of each path at `x`, in units of the outcome; computed in double precision.

        Args:
            x: A `batch_shape x q x d` tensor of points, whose batch dimensions are broadcast against `sample_shape`.
            kwargs: Those of BoTorch's `SamplePath`; none are known.

        Returns:
            A `batch_shape x q` tensor, of the dtype of `x`.
        """
        return cast(Tensor, super().forward(x.double(), **kwargs)).to(x)

    @classmethod
    def draw(
        cls, model: SkewGP, sample_shape: torch.Size, num_features: int = 1024, generator: torch.Generator | None = None
    ) -> SkewGPSamplePath:
        r"""Draw paths whose prior part is a sum of random Fourier features.

        Args:
            model: The model.
            sample_shape: The shape of the sample. Evaluated at `X`, paths give the values at `X.shape[:-1]`, with batch
                dimensions of `X` broadcast against `sample_shape`.
            num_features: The number of features; even.
            generator: The source of randomness; torch's global one if `None`, as in BoTorch's path samplers.

        Raises:
            UnsupportedError: If BoTorch has no features for the kernel itself; those of a class it derives from may be
                another kernel's.
        """
        sampler = partial(draw_kernel_feature_paths, num_features=num_features)
        seed = 0 if generator is None else int(torch.randint(2**62, (), generator=generator, device=generator.device))
        with nullcontext() if generator is None else seeded(seed, model.train_inputs[0].device):
            return _draw_matheron_paths(
                model, sample_shape=sample_shape, prior_sampler=sampler, update_strategy=gaussian_update
            )


@DrawMatheronPaths.register(SkewGP)
def _draw_matheron_paths(
    model: SkewGP, *, sample_shape: torch.Size, prior_sampler: TPathwisePriorSampler, update_strategy: TPathwiseUpdate
) -> SkewGPSamplePath:
    if update_strategy is not gaussian_update:
        raise UnsupportedError("The update of a SkewGP's paths follows from its rows; leave update_strategy alone.")
    if model.num_outputs != 1:
        raise UnsupportedError(f"Sample paths are for models with one output; this one has {model.num_outputs}.")
    if model.judge_code is not None:
        raise UnsupportedError(
            "A model of several judges has no sample paths; draw at points, model.for_judge(j).posterior(X).rsample()."
        )
    mixture = model.posterior(model.datapoints[..., :1, :]).mixture  # type: ignore[attr-defined]
    if mixture.parent is not None or mixture.weights.ndim != 2:
        raise UnsupportedError("Sample paths are for models of data, not of fantasies; build the model from its data.")
    # a copy, as paths outlive changes of the model; in double precision, as columns may nearly coincide
    model = deepcopy(model).eval().double()
    prior = model.latent_prior()
    with torch.no_grad():
        prior_paths = prior_sampler(model=model, sample_shape=sample_shape)  # type: ignore[call-arg]
        if isinstance(prior_paths.output_transform, _ToOutcome):
            prior_paths.output_transform = None  # the sum of both parts is transformed
        columns = prior.columns()
        deviation = _read_columns(prior_paths, prior) - columns.mean
        weight = _update_weight(mixture, columns.lazy_covariance_matrix.to_dense(), deviation)
    covariances = _ColumnCovariances(prior, get_input_transform(model))
    return SkewGPSamplePath(
        prior_paths=prior_paths,
        update_paths=GeneralizedLinearPath(feature_map=covariances, weight=weight),
        output_transform=_ToOutcome.of(model),
    )


class _ColumnCovariances(FeatureMap):
    """Covariances of the latent function at a point with all columns, as features of the point."""

    def __init__(self, prior: LatentPrior, input_transform: InputTransform | None) -> None:
        super().__init__()
        self.prior = prior
        self.input_transform = input_transform
        self.output_transform = None
        self.num_outputs = prior.layout.num_columns
        self.batch_shape = torch.Size()

    def forward(self, x: Tensor) -> Tensor:
        return self.prior.cross_covariance(x)


def _read_columns(paths: SamplePath, prior: LatentPrior) -> Tensor:
    """The values and slopes of paths at all columns, `sample_shape x c`; slopes by forward differentiation."""
    values = paths.forward(prior.value_points)
    if not prior.layout.has_slopes:
        return values
    S = prior.slope_points
    direction = torch.nn.functional.one_hot(prior.layout.slope_dims.to(S.device), S.shape[-1]).to(S)
    slopes = torch.func.jvp(paths.forward, (S,), (direction,))[1]
    return torch.cat([values, slopes], dim=-1)


class _ToOutcome(TensorTransform):
    """Maps values of the latent function to units of the outcome."""

    def __init__(self, scale: OutcomeScale) -> None:
        super().__init__()
        self.scale = scale

    @classmethod
    def of(cls, model: SkewGP) -> _ToOutcome | None:
        """The transform of a model; `None` if it is the identity."""
        return None if model.outcome_scale == OutcomeScale() else cls(model.outcome_scale)

    def forward(self, values: Tensor, **kwargs: Any) -> Tensor:
        return self.scale.location + self.scale.scale * values


def _update_weight(mixture: RepresenterMixture, covariance: Tensor, deviation: Tensor) -> Tensor:
    """The weights of the columns, `sample_shape x c`, for deviations of prior paths from their mean there."""
    sample_shape = deviation.shape[:-1]
    R = mixture.root
    which = torch.multinomial(mixture.probabilities, sample_shape.numel(), replacement=True)
    representer = mixture.weights.mT[which].unflatten(0, sample_shape) if sample_shape else mixture.weights[:, which[0]]
    eye = torch.eye(R.shape[-1], dtype=R.dtype, device=R.device)
    eigenvalues, vectors = torch.linalg.eigh(eye - R.mT @ covariance @ R)  # between 0 and 1 up to rounding
    noise_root = vectors * eigenvalues.clamp(min=0).sqrt()  # 0 where a row has no noise
    normal = torch.randn(*sample_shape, R.shape[-1], dtype=R.dtype, device=R.device)
    return representer - (deviation @ R + normal @ noise_root.mT) @ R.mT


@DrawKernelFeaturePaths.register(SkewGP)
def _draw_kernel_feature_paths(
    model: SkewGP, *, sample_shape: torch.Size, num_features: int = 1024, **kwargs: Any
) -> SamplePath:
    model = deepcopy(model).eval()
    if "map_generator" not in kwargs:
        _check_has_features(model.covar_module)
    mean_module = model.mean_module
    if isinstance(mean_module, IntegratedConstantMean):
        mean_module = mean_module.draw(sample_shape)
    try:
        return _draw_kernel_feature_paths_fallback(
            num_inputs=model.train_inputs[0].shape[-1],
            mean_module=mean_module,
            covar_module=model.covar_module,
            sample_shape=sample_shape,
            num_features=num_features,
            input_transform=get_input_transform(model),
            output_transform=_ToOutcome.of(model),
            **kwargs,
        )
    except NotImplementedError as error:  # from BoTorch's dispatcher
        raise UnsupportedError(
            "There are no random features for a kernel of this model (there are for RBF and Matern kernels, "
            "scaled or not). Choose such a kernel or pass your own prior_sampler to draw_matheron_paths."
        ) from error


# the same covariances as those of the classes that they derive from
GenKernelFeatures.register(CheckedRBFKernel)(GenKernelFeatures.dispatch(RBFKernel))
GenKernelFeatures.register(CheckedScaleKernel)(GenKernelFeatures.dispatch(ScaleKernel))


def _check_has_features(covar_module: Module) -> None:
    """Raise an error for a kernel that BoTorch's dispatcher would take for the class that it derives from."""
    for kernel in covar_module.modules():
        found = GenKernelFeatures.dispatch(type(kernel))
        is_inherited = found is not None and (type(kernel),) not in GenKernelFeatures.funcs
        if is_inherited:
            name = type(kernel).__name__
            raise UnsupportedError(
                f"{name} has no random features of its own, and those of the class that it derives from may be another "
                f"kernel's. Register some, as @GenKernelFeatures.register({name}), or pass your own prior_sampler to "
                "draw_matheron_paths."
            )

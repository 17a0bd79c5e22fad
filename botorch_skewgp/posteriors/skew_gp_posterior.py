r"""The posterior of a skew Gaussian process: a mixture of Gaussians that share one covariance.

Given a draw `u_s` of the rows, `f(x) | u_s` is Gaussian: its mean is `m(x) + k(x, Z) a_s` with representer weights
`a_s`, and its covariance `k(x, x') - k(x, Z) R R^T k(Z, x')` does not depend on the draw. This is the additive
representation of a unified skew-normal vector ([Benavoli2021unified]_, equation (8)): a Gaussian part plus a linear map
of truncated normal draws. Averaging over draws needs no further sampling.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Self

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.posteriors import GPyTorchPosterior
from gpytorch import settings as gpytorch_settings
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Tensor

from botorch_skewgp.posteriors.mixture_marginals import NormalMixtureMarginals
from botorch_skewgp.posteriors.mixture_posterior import MixturePosterior, without_repetition
from botorch_skewgp.posteriors.representer_mixture import RepresenterMixture
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter


class SkewGPPosterior(MixturePosterior):
    r"""The joint, skewed posterior of a SkewGP over `q` points and `o` outputs.

    Values at points and outputs are stacked, output fastest, to vectors of length `e = q o`. Everything is computed on
    demand; `mean`, `variance` and all marginal functions cost `O(e)` kernel entries, the joint covariance `O(e^2)`.
    There is no `distribution` attribute: give `moment_matched()` to code for Gaussian posteriors.

    Example:
        >>> posterior = model.posterior(X)  # X is batch_shape x q x d
        >>> posterior.mean, posterior.variance, posterior.skewness  # each batch_shape x q x o
        >>> posterior.quantile(torch.tensor([0.025, 0.975]))  # 2 x batch_shape x q x o
        >>> posterior.rsample(torch.Size([16]))  # 16 x batch_shape x q x o

    Args:
        location: The prior mean, `batch_shape x e`.
        cross_covariance: The prior covariance with `Z`, `batch_shape x e x n`; one for each level of the mixture. It
            may have more digits than the rest: at points that nearly coincide weights are large and cancel.
        prior_covariance: The prior covariance, `batch_shape x e x e`, possibly lazy.
        mixture: The representer weights.
        num_outputs: The number `o` of outputs.
    """

    _columns = "1 + q x o"

    def __init__(
        self,
        location: Tensor,
        cross_covariance: Tensor | Sequence[Tensor],
        prior_covariance: Tensor | LinearOperator,
        mixture: RepresenterMixture,
        num_outputs: int = 1,
    ) -> None:
        crosses = (cross_covariance,) if isinstance(cross_covariance, Tensor) else tuple(cross_covariance)
        shapes = {location.shape[:-1]}
        for cross, level in zip(crosses, mixture.levels, strict=True):
            shapes |= {cross.shape[:-2], level.weights.shape[:-2]}
        shapes.discard(torch.Size([]))
        # mostly a single one; broadcasting takes long
        self.batch_shape = shapes.pop() if len(shapes) == 1 else torch.broadcast_shapes(*shapes)
        self.num_points = location.shape[-1] // num_outputs
        self._num_outputs = num_outputs
        self.mixture = mixture
        self._location = location
        self._crosses = crosses
        self._prior = prior_covariance

    @classmethod
    def from_gaussian(cls, distribution: MultivariateNormal) -> SkewGPPosterior:
        """A Gaussian as a posterior of one component; `UnsupportedError` if several outputs are not interleaved."""
        mean = distribution.mean
        num_outputs = 1
        if isinstance(distribution, MultitaskMultivariateNormal):
            if not distribution._interleaved:
                raise UnsupportedError("Give a MultitaskMultivariateNormal with interleaved=True.")
            num_outputs = mean.shape[-1]
            mean = mean.flatten(-2)
        none = RepresenterMixture(mean.new_zeros(0, 1), mean.new_zeros(0, 0))
        return cls(mean, mean.new_zeros(*mean.shape, 0), distribution.lazy_covariance_matrix, none, num_outputs)

    def with_draws_repeated(self, num_draws: int) -> SkewGPPosterior:
        """The Gaussian posterior as a mixture of equal draws, each of which can be conditioned on different data."""
        mixture = self.mixture.repeated(num_draws)
        return SkewGPPosterior(self._location, self._crosses, self._prior, mixture, self._num_outputs)

    @property
    def probabilities(self) -> Tensor:
        """The probabilities of the draws, `S` or `batch_shape x S`; they sum to one."""
        return self.mixture.probabilities.to(self._location)

    @property
    def log_probabilities(self) -> Tensor:
        """The log probabilities of the draws, `S` or `batch_shape x S`."""
        return self.mixture.log_probabilities.to(self._location)

    @property
    def base_sample_shape(self) -> torch.Size:
        """`batch_shape x (1 + e)`: the first column picks the draw, the rest drives the Gaussian part."""
        return torch.Size([*self.batch_shape, 1 + self._location.shape[-1]])

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return torch.Size([*sample_shape, *self.batch_shape, self.num_points, self._num_outputs])

    def _to_event(self, x: Tensor) -> Tensor:
        """Reshape `... x e` to `... x q x o`."""
        return x.unflatten(-1, (self.num_points, self._num_outputs))

    def _expand(self, x: Tensor) -> Tensor:
        return x.expand(self.batch_shape + x.shape[-1:])

    def _times(self, cross: Tensor, columns: Tensor) -> Tensor:
        """A covariance times a matrix, in the covariance's dtype and then rounded to the location's."""
        return (cross @ columns.to(cross)).to(self._location)

    # Moments

    @cached_property
    def component_means(self) -> Tensor:
        """The mean of every mixture component, `batch_shape x e x S`."""
        means = self._location.unsqueeze(-1)
        for cross, level in zip(self._crosses, self.mixture.levels, strict=True):
            means = means + self._times(cross, level.weights)
        return means

    @cached_property
    def gains(self) -> list[Tensor]:
        """For each level of the mixture its covariance with the points times its root, `batch_shape x e x p`."""
        return [
            level.times_root(cross).to(self._location)
            for cross, level in zip(self._crosses, self.mixture.levels, strict=True)
        ]

    @cached_property
    def gaussian_covariance(self) -> Tensor:
        """The covariance shared by all mixture components, `batch_shape x e x e`."""
        covariance = to_linear_operator(self._prior).to_dense()
        for gain in self.gains:
            covariance = covariance - gain @ gain.mT
        return covariance

    @property
    def prior_variance(self) -> Tensor:
        """The prior variance, `batch_shape x e`, the scale of the covariance's rounding."""
        return to_linear_operator(self._prior).diagonal(dim1=-1, dim2=-2)

    @cached_property
    def gaussian_variance(self) -> Tensor:
        """The variance shared by all mixture components, `batch_shape x e`."""
        variance = self.prior_variance
        for gain in self.gains:
            variance = variance - gain.square().sum(-1)
        # rounding may leave zero or less: GPyTorch's least variance, as in its own models
        return self._expand(variance.clamp_min(gpytorch_settings.min_variance.value(variance.dtype)))

    @cached_property
    def mean(self) -> Tensor:
        """The posterior mean, `batch_shape x q x o`."""
        if self.mixture.parent is None:
            mean = self._location + self._times(self._crosses[0], self.mixture.mean).squeeze(-1)
        else:
            mean = (self.component_means @ self.probabilities.unsqueeze(-1)).squeeze(-1)
        return self._to_event(self._expand(mean))

    @property
    def _centred_means(self) -> Tensor:
        """The component means less the posterior mean, `batch_shape x e x S`."""
        return self.component_means - self.mean.flatten(-2).unsqueeze(-1)

    @cached_property
    def _root_between(self) -> Tensor:
        """A root of the covariance of component means over draws, `batch_shape x e x k`."""
        if self.mixture.parent is None:
            return self._times(self._crosses[0], self.mixture.root_between)
        return self._centred_means * self.probabilities.sqrt().unsqueeze(-2)

    @cached_property
    def variance(self) -> Tensor:
        """The marginal posterior variances, `batch_shape x q x o`."""
        return self._to_event(self.gaussian_variance + self._expand(self._root_between.square().sum(-1)))

    @cached_property
    def skewness(self) -> Tensor:
        """The marginal standardised third central moments, `batch_shape x q x o`; zero for a Gaussian."""
        standardised = self._centred_means / self.variance.flatten(-2).sqrt().unsqueeze(-1)  # first, as cubes overflow
        third = (standardised.pow(3) @ self.probabilities.unsqueeze(-1)).squeeze(-1)
        return self._to_event(self._expand(third))

    @cached_property
    def covariance_matrix(self) -> Tensor:
        """The joint posterior covariance, `batch_shape x e x e`, output fastest."""
        return self.gaussian_covariance + self._root_between @ self._root_between.mT

    # Marginal distribution functions

    @property
    def marginals(self) -> NormalMixtureMarginals:
        """The marginal mixtures of normal distributions, a batch of shape `batch_shape x e`."""
        probabilities = self.probabilities
        return NormalMixtureMarginals(
            self.component_means,
            self.gaussian_variance.sqrt().unsqueeze(-1),
            probabilities if probabilities.ndim == 1 else probabilities.unsqueeze(-2),
        )

    # Sampling

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        """Draw from the joint posterior, `sample_shape x batch_shape x q x o`; smooth for fixed base samples, standard
        normal numbers of shape `sample_shape x batch_shape x (1 + e)`, else there is a `RuntimeError`; batch dimensions
        may be broadcast. The normal cdf of the first column picks the draw.
        """
        self._check_base_samples(sample_shape, base_samples)
        num = len(sample_shape)
        e = self._location.shape[-1]
        try:
            base_samples[..., 0].expand(sample_shape + self.batch_shape)
        except RuntimeError:
            given = tuple(base_samples.shape[num:-1])
            raise RuntimeError(
                f"base_samples of batch shape {given} cannot be broadcast to {tuple(self.batch_shape)}."
            ) from None
        base_samples = without_repetition(base_samples.to(self._location), num)
        normal = base_samples[..., 1:].reshape(sample_shape.numel(), *base_samples.shape[num:-1], e)
        deviation = self._times(self._gaussian_root, normal.movedim(0, -1)).movedim(-1, 0)
        means = self._chosen_means(base_samples[..., 0], num)
        samples = means + deviation.reshape(sample_shape + deviation.shape[1:])
        return self._to_event(samples.expand(*sample_shape, *self.batch_shape, e))

    def _chosen_means(self, normal: Tensor, num_sample_dims: int) -> Tensor:
        """Component means of the draws that the base samples pick; `sample_shape x batch_shape x e`."""
        lead = normal.shape[:num_sample_dims]
        mixture = self.mixture
        num_means = self.batch_shape.numel() * self._location.shape[-1] * mixture.num_draws
        num_weights = mixture.weights.shape[0] * normal.numel()  # of the draws picked
        is_equal = mixture.log_weights is None and mixture.parent is None and mixture.weights.ndim == 2
        if is_equal and (normal.numel() == lead.numel() or num_weights <= num_means):
            which = mixture.pick(normal.reshape(lead.numel(), *normal.shape[num_sample_dims:]))
            chosen = mixture.weights_by_draw[which].movedim(0, -1)
            means = self._location.unsqueeze(-1) + self._times(self._crosses[0], chosen)
            return means.movedim(-1, 0).unflatten(0, lead) if lead else means.squeeze(-1)
        which = mixture.pick(normal.expand(lead + self.batch_shape))
        means = self.component_means
        means = means.expand(lead + self.batch_shape + means.shape[-2:])
        index = which.unsqueeze(-1).unsqueeze(-1).expand(*which.shape, means.shape[-2], 1)
        return means.gather(-1, index).squeeze(-1)

    @cached_property
    def _gaussian_root(self) -> Tensor:
        """A root of the covariance shared by all mixture components, `batch_shape x e x e`."""
        if self._location.shape[-1] == 1:
            return self.gaussian_variance.sqrt().unsqueeze(-1)
        return cholesky_with_relative_jitter(self.gaussian_covariance, scale=self.prior_variance)

    # Maps

    def affine(self, weight: Tensor, offset: Tensor | float = 0.0, num_outputs: int = 1) -> Self:
        """The posterior of `offset + weight f`, of stacked values with the output fastest; `offset` is an `e'`-dim
        tensor or a number. Raises `BotorchTensorDimensionError` if the weight is not `e' x e`.
        """
        weight = weight.to(self._location)
        e = self._location.shape[-1]
        if weight.ndim < 2 or weight.shape[-1] != e:
            raise BotorchTensorDimensionError(f"weight must be e' x {e}; got shape {tuple(weight.shape)}.")
        prior = to_linear_operator(self._prior).to_dense()
        location = (weight @ self._location.unsqueeze(-1)).squeeze(-1) + offset
        crosses = [weight.to(cross) @ cross for cross in self._crosses]
        return type(self)(location, crosses, weight @ prior @ weight.mT, self.mixture, num_outputs)

    def select_outputs(self, outputs: Sequence[int]) -> Self:
        """The posterior of some of the outputs, by their numbers from 0, in the order given."""
        wanted = torch.tensor(list(outputs), device=self.device)
        first = self._num_outputs * torch.arange(self.num_points, device=self.device)
        index = (first.unsqueeze(-1) + wanted).flatten()
        prior = to_linear_operator(self._prior)[..., index, :][..., index]
        crosses = [cross[..., index, :] for cross in self._crosses]
        return type(self)(self._location[..., index], crosses, prior, self.mixture, len(wanted))

    def scalarize(self, weights: Tensor, offset: float | Tensor = 0.0) -> Self:
        """The posterior of `offset + sum_j weights_j f_j` at every point; raises `BotorchTensorDimensionError` unless
        there are `o` weights.
        """
        if weights.ndim != 1 or weights.shape[0] != self._num_outputs:
            raise BotorchTensorDimensionError(
                f"weights must be a {self._num_outputs}-dim vector, one weight per output; got shape "
                f"{tuple(weights.shape)}."
            )
        if self._num_outputs > 1:
            eye = torch.eye(self.num_points, dtype=self.dtype, device=self.device)
            return self.affine(torch.kron(eye, weights.to(self._location).unsqueeze(0)), offset)
        return self.scaled(weights[0], offset)

    def scaled(self, factor: Tensor, offset: float | Tensor = 0.0) -> Self:
        """The posterior of `offset + factor * f`, of all outputs, with a scalar tensor `factor`."""
        factor = factor.to(self._location)
        location = factor * self._location + offset
        crosses = [factor * cross for cross in self._crosses]
        prior = to_linear_operator(self._prior) * factor.square()
        return type(self)(location, crosses, prior, self.mixture, self._num_outputs)

    def expectation(self, weights: Tensor, n_w: int) -> Self:
        """The posterior of means over blocks of `n_w` points, by weights `n_w x 1` or `n_w x o`, normalised here."""
        o = self._num_outputs
        blocks = self.num_points // n_w
        weights = weights.to(self._location).expand(n_w, o)
        # rows (block, output), columns (block, point in block, output)
        block = torch.diag_embed(weights).transpose(0, 1).reshape(o, n_w * o)
        eye = torch.eye(blocks, dtype=self.dtype, device=self.device)
        return self.affine(torch.kron(eye, block), num_outputs=o)

    def add_noise(self, noise: Tensor) -> Self:
        """The posterior with independent Gaussian noise, of variances that broadcast to `batch_shape x q x o`; raises
        `InputDataError` if one is negative or not finite, or they do not broadcast.
        """
        if not noise.isfinite().all() or (noise < 0).any():
            raise InputDataError("noise must hold finite variances that are not negative.")
        shape = self._location.shape[:-1] + torch.Size([self.num_points, self._num_outputs])
        try:
            noise = noise.to(self._location).expand(torch.broadcast_shapes(noise.shape, shape)).flatten(-2)
        except RuntimeError:
            raise InputDataError(f"noise must broadcast to shape {tuple(shape)}; got {tuple(noise.shape)}.") from None
        prior = to_linear_operator(self._prior)
        if noise.ndim >= prior.ndim:  # as of fantasies
            prior = prior.expand(*noise.shape, noise.shape[-1])
        prior = prior.add_diagonal(noise)
        return type(self)(self._location, self._crosses, prior, self.mixture, self._num_outputs)

    def moment_matched(self) -> GPyTorchPosterior:
        """The Gaussian posterior of the same mean and covariance, for functions that need one (entropy searches)."""
        covariance = to_linear_operator(self.covariance_matrix)
        if self._num_outputs == 1:
            return GPyTorchPosterior(MultivariateNormal(self.mean.squeeze(-1), covariance))
        return GPyTorchPosterior(MultitaskMultivariateNormal(self.mean, covariance, interleaved=True))

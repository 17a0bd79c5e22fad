r"""Acquisition functions for duels against a reference point, such as the best point so far.

All look at the distribution of `f(x) - f(x_r)` and are to be maximised over single points `x`; the point found is then
compared with the reference `x_r` ([Benavoli2021preferential]_, section 4).

.. [Benavoli2021preferential] A. Benavoli, D. Azzimonti, D. Piga. Preferential Bayesian optimisation with skew Gaussian
   processes. GECCO 2021.
.. [Chen1999credible] M.-H. Chen, Q.-M. Shao. Monte Carlo estimation of Bayesian credible and HPD intervals. Journal of
   Computational and Graphical Statistics 8, 1999.
.. [Houlsby2011bald] N. Houlsby, F. Huszar, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification and
   preference learning. arXiv 1112.5745, 2011.
"""

from __future__ import annotations

import math

import torch
from botorch.acquisition.acquisition import AcquisitionFunction, MCSamplerMixin
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling.base import MCSampler
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.sampling.pathwise import SkewGPSamplePath


class DuelingAcquisitionFunction(AcquisitionFunction):
    r"""Base class of acquisition functions for duels against a reference point.

    Args:
        model: A model with one output.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.

    Raises:
        InputDataError: If the reference point is not one finite point of the model's dimension.
        UnsupportedError: If the model has more than one output.
    """

    model: SkewGP
    X_reference: Tensor

    def __init__(self, model: SkewGP, X_reference: Tensor) -> None:
        super().__init__(model=model)
        if model.num_outputs != 1:
            raise UnsupportedError(f"Duels are for models with one output; this one has {model.num_outputs}.")
        if X_reference.ndim == 1:
            X_reference = X_reference.unsqueeze(0)
        if X_reference.shape != (1, model.dim):
            raise InputDataError(
                f"X_reference must be one point, of shape {model.dim} or 1 x {model.dim}; got "
                f"{tuple(X_reference.shape)}."
            )
        if not X_reference.isfinite().all():
            raise InputDataError(f"X_reference must be finite; got {X_reference.tolist()}.")
        self.register_buffer("X_reference", X_reference)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Not supported: every candidate duels with the reference, one at a time.

        Raises:
            UnsupportedError: If there are pending points.
        """
        if X_pending is not None:
            raise UnsupportedError(f"{type(self).__name__} does not account for pending points.")


class _DuelingMonteCarloAcquisitionFunction(DuelingAcquisitionFunction, MCSamplerMixin):
    """Base class of those that draw from the joint posterior at a candidate and the reference."""

    def __init__(self, model: SkewGP, X_reference: Tensor, sampler: MCSampler | None = None) -> None:
        super().__init__(model=model, X_reference=X_reference)
        MCSamplerMixin.__init__(self, sampler=sampler)

    def _draws(self, X: Tensor, weight: Tensor, offset: Tensor | float = 0.0) -> Tensor:
        r"""Draws of `weight^T (f(x), f(x_r)) + offset`, `num_samples x batch_shape`, for `batch_shape x 1 x d` points.

        The combination is made in the posterior and not in the draws: the joint covariance is singular at the
        reference, that of the combination is a single number.
        """
        samples = self.get_posterior_samples(self._combination(X, weight, offset))
        return samples[..., 0, 0].flatten(0, len(self.sample_shape) - 1)

    def _combination(self, X: Tensor, weight: Tensor, offset: Tensor | float = 0.0) -> SkewGPPosterior:
        """The posterior of `weight^T (f(x), f(x_r)) + offset`."""
        reference = self.X_reference.to(X).expand(X.shape)
        posterior = self.model.posterior(torch.cat([X, reference], dim=-2))
        if not isinstance(posterior, SkewGPPosterior) or posterior._extended_shape()[-2:] != (2, 1):
            raise UnsupportedError(
                f"{type(self).__name__} needs a model whose posterior at two points is a SkewGPPosterior at two "
                f"points; got {type(posterior).__name__} of shape {tuple(posterior._extended_shape())}."
            )
        return posterior.affine(weight.unsqueeze(0), offset)


class DuelingUpperCredibleBound(_DuelingMonteCarloAcquisitionFunction):
    r"""The upper end of the narrowest credible interval of `f(x) - f(x_r)`.

    The interval of highest posterior density, not the one with equal tails: for skewed distributions they differ
    ([Benavoli2021preferential]_, section 4.1). By default it is computed from the mixture that the posterior is, which
    makes the value a smooth function of the candidate. With a sampler it is estimated as in the paper: the narrowest of
    the intervals between order statistics of the draws that hold the wanted share of them ([Chen1999credible]_). That
    estimate is deterministic for fixed base samples but jumps where another interval becomes the narrowest, which
    gradient-based optimisers do not like.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = DuelingUpperCredibleBound(model, X_reference=best)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model with one output.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.
        probability: The probability of the interval, in (0, 1).
        sampler: A sampler of base samples, to estimate the interval from draws.

    Raises:
        ValueError: If the probability is outside (0, 1).
    """

    def __init__(
        self, model: SkewGP, X_reference: Tensor, probability: float = 0.95, sampler: MCSampler | None = None
    ) -> None:
        if not 0 < probability < 1:
            raise ValueError(f"probability must be strictly between 0 and 1; got {probability}.")
        super().__init__(model=model, X_reference=X_reference, sampler=sampler)
        self.probability = probability

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The upper end at `batch_shape x 1 x d` candidates; `batch_shape`."""
        difference = X.new_tensor([1.0, -1.0])
        if self.sampler is None:
            return _highest_density_upper_end(self._combination(X, difference), self.probability)
        draws = self._draws(X, difference)
        num_intervals = draws.shape[0] - math.floor(self.probability * draws.shape[0])
        lower = draws.detach().topk(num_intervals, dim=0, largest=False).values  # all that sorting would be needed for
        upper = draws.topk(num_intervals, dim=0).values.flip(0)
        narrowest = (upper - lower).argmin(dim=0, keepdim=True)
        return upper.gather(0, narrowest).squeeze(0)


class ExpectedImprovementInformationGain(_DuelingMonteCarloAcquisitionFunction):
    r"""`k log E[p] + h(E[p]) - E[h(p)]`, with `p` the probability that `x` beats the reference given the function.

    The first term asks for improvement; the rest, with `h` the entropy of the duel's outcome in nats (of three outcomes
    where ties are allowed), is the information that the outcome is expected to bring about the function
    ([Houlsby2011bald]_; [Benavoli2021preferential]_, section 4.3, where `k = 0.1`). The probability is that of the
    model's likelihood, noise included. All expectations are over the same draws, and everything is computed from log
    probabilities.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = ExpectedImprovementInformationGain(model, X_reference=best)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model with one output, whose likelihood takes duels.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.
        k: The weight of the improvement, not negative.
        sampler: The sampler of base samples; 512 Sobol points by default.

    Raises:
        ValueError: If `k` is negative.
        InputDataError: If the model's likelihood does not take duels.
    """

    def __init__(self, model: SkewGP, X_reference: Tensor, k: float = 0.1, sampler: MCSampler | None = None) -> None:
        if not k >= 0:
            raise ValueError(f"k must not be negative; got {k}.")
        super().__init__(model=model, X_reference=X_reference, sampler=sampler)
        self.k, self._kind = k, model.likelihood.kind_of_duels

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        scale = (
            self.model.outcome_scale
        )  # draws are in units of the outcome, the reading in those of the latent function
        reading = self.model.likelihood.reading(self._kind, X, scale)
        weight = reading.weight[0] / scale.scale
        difference = self._draws(X, weight, -scale.location * weight.sum())
        log_p = reading.log_outcome_probabilities(difference)  # num_samples x batch_shape x O
        expected = log_p.logsumexp(0) - math.log(log_p.shape[0])
        return self.k * expected[..., reading.highest] + _entropy(expected) - _entropy(log_p).mean(0)


class DuelingThompsonSampling(DuelingAcquisitionFunction):
    r"""One draw of `f(x) - f(x_r)` as a function of `x`, the same for the life of the object.

    Maximising it gives the best point of a posterior draw ([Benavoli2021preferential]_, section 4.2). The draw is a
    sample path, see `SkewGPSamplePath`; make a new object for a new draw.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = DuelingThompsonSampling(model, X_reference=best, generator=torch.Generator().manual_seed(0))
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model with one output and a kernel that BoTorch has random features for.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.
        num_features: The number of random features of the prior path; even.
        generator: The source of randomness; torch's global one if `None`.

    Raises:
        UnsupportedError: If BoTorch has no random features for the kernel.
    """

    def __init__(
        self,
        model: SkewGP,
        X_reference: Tensor,
        num_features: int = 1024,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(model=model, X_reference=X_reference)
        self.path = SkewGPSamplePath.draw(model, torch.Size(), num_features=num_features, generator=generator)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The drawn difference at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return (self.path(X) - self.path(self.X_reference.to(X))).squeeze(-1)


def _entropy(log_p: Tensor) -> Tensor:
    """The entropy in nats of outcomes whose log probabilities are in the last dimension."""
    return -(log_p.exp() * log_p).sum(-1)


def _highest_density_upper_end(posterior: SkewGPPosterior, probability: float) -> Tensor:
    r"""The upper end of the narrowest interval that holds a given probability, at single points; `batch_shape`.

    The ends `l < u` solve `F(u) - F(l) = probability` and `f(u) = f(l)`, with `F` and `f` the cdf and the density of
    the mixture; differentiable by the implicit function theorem. Where the density has several modes, the interval is
    a local minimum of the width.
    """
    _ = posterior.component_means, posterior.mean, posterior.variance  # cached with their graphs, not without
    with torch.no_grad():
        ends = _highest_density_interval(posterior, probability)
        slope_low, slope_high = _density_slope(posterior, ends).unbind(0)
        density = posterior.density(ends)[0]
    # one Newton step from the solution: its value is the solution, its derivative the implicit one
    mass, excess = (high - low for low, high in (posterior.cdf(ends), posterior.density(ends)))
    mass, excess = mass - mass.detach(), excess - excess.detach()
    step = (slope_low * mass - density * excess) / (density * (slope_low - slope_high))
    return (ends[1] - step).squeeze(-1).squeeze(-1)


def _highest_density_interval(posterior: SkewGPPosterior, probability: float) -> Tensor:
    """The two ends, `2 x batch_shape x 1 x 1`, by bracketed Newton iterations in the probability below the lower."""
    shape = posterior._extended_shape()
    tail = posterior.mean.new_full(shape, 0.5 * (1 - probability))
    low, high = torch.zeros_like(tail), torch.full_like(tail, 1 - probability)
    # Newton's steps square the error: after one as small as this, what is left is rounding
    tolerance = (1 - probability) * torch.finfo(tail.dtype).eps ** 0.5
    for _ in range(60):
        ends = posterior.quantile(torch.stack([tail, tail + probability]))
        density, slope = posterior.density(ends), _density_slope(posterior, ends)
        # the derivative of the width in the tail probability, and its own
        first = 1 / density[1] - 1 / density[0]
        second = slope[0] / density[0].pow(3) - slope[1] / density[1].pow(3)
        low, high = torch.where(first < 0, tail, low), torch.where(first < 0, high, tail)
        new = tail - first / second
        new = torch.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        step, tail = (new - tail).abs(), new
        if bool((step <= tolerance).all()):
            break
    return posterior.quantile(torch.stack([tail, tail + probability]))


def _density_slope(posterior: SkewGPPosterior, value: Tensor) -> Tensor:
    """The derivative of the density at `... x batch_shape x 1 x 1` values."""
    variance = posterior.gaussian_variance.unsqueeze(-1)
    deviation = value - posterior.component_means  # over draws in the last dimension
    terms = -deviation / variance * torch.exp(-0.5 * deviation.square() / variance)
    average = terms @ posterior.probabilities.unsqueeze(-1)
    return average / (2 * math.pi * variance).sqrt()

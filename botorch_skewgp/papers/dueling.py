r"""The challengers of a reference point `x_r` of [Benavoli2021preferential]_, section 5, by the law of `f(x) - f(x_r)`.

`next_pair(model, bounds, method=...)` takes them.

.. [Benavoli2021preferential] Benavoli, Azzimonti, Piga. GECCO 2021.
.. [Chen1999credible] Chen, Shao. Monte Carlo estimation of Bayesian credible and HPD intervals. 1999.
.. [Houlsby2011bald] Houlsby et al. arXiv 1112.5745, 2011.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from botorch.acquisition.acquisition import MCSamplerMixin
from botorch.models.model import Model
from botorch.sampling.base import MCSampler
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.dueling import DuelingAcquisitionFunction
from botorch_skewgp.acquisition.input_constructors import register_challengers
from botorch_skewgp.checks import as_count, as_number, as_probability, check_parts
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import kind_of_duels
from botorch_skewgp.sampling.pathwise import SkewGPSamplePath


class _DuelingMonteCarloAcquisitionFunction(DuelingAcquisitionFunction, MCSamplerMixin):
    """Base class of acquisition functions that sample the difference of a candidate and the reference."""

    def __init__(self, model: Model, X_reference: Tensor, sampler: MCSampler | None = None) -> None:
        check_parts(sampler=(sampler, MCSampler))
        super().__init__(model=model, X_reference=X_reference)
        MCSamplerMixin.__init__(self, sampler=sampler)

    def _draws(self, difference: SkewGPPosterior) -> Tensor:
        """Draws of a difference, `num_samples x batch_shape`; the covariance of both points may be singular."""
        return self.get_posterior_samples(difference)[..., 0, 0].flatten(0, len(self.sample_shape) - 1)


class DuelingUpperCredibleBound(_DuelingMonteCarloAcquisitionFunction):
    """The upper end of the narrowest credible interval of `f(x) - f(x_r)` ([Benavoli2021preferential]_, section 5.1).

    The narrowest interval between order statistics of draws that holds the wanted share of them ([Chen1999credible]_);
    it jumps where another becomes the narrowest. `X_reference` is `d`-dim or `1 x d`; the sampler has 512 Sobol points
    by default. Raises `InputDataError` if the probability is outside (0, 1).

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = DuelingUpperCredibleBound(model, X_reference=best)
        >>> pair, value = next_pair(model, bounds, method=acq)
    """

    def __init__(
        self, model: Model, X_reference: Tensor, probability: float = 0.95, sampler: MCSampler | None = None
    ) -> None:
        self.probability = as_probability(probability, "probability")
        super().__init__(model=model, X_reference=X_reference, sampler=sampler)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The upper end at `batch_shape x 1 x d` candidates; `batch_shape`."""
        draws = torch.cat([self._draws(self.difference(member, X)) for member in self.members])
        num_intervals = draws.shape[0] - math.floor(self.probability * draws.shape[0])
        lower = draws.detach().topk(num_intervals, dim=0, largest=False).values
        upper = draws.topk(num_intervals, dim=0).values.flip(0)
        narrowest = (upper - lower).argmin(dim=0, keepdim=True)
        return upper.gather(0, narrowest).squeeze(0)


class ExpectedImprovementInformationGain(_DuelingMonteCarloAcquisitionFunction):
    r"""`k log E[p] + h(E[p]) - E[h(p)]`, with `p` the probability that `x` beats the reference given the function.

    The first term rewards improvement; the rest, with `h` the entropy of the duel's outcome in nats (of three outcomes
    where ties are allowed), is the expected information about the function ([Houlsby2011bald]_;
    [Benavoli2021preferential]_, section 5.3, where `k = 0.1`). The probability includes the likelihood's noise. All
    expectations are over the same draws.

    Example:
        >>> acq = ExpectedImprovementInformationGain(model, X_reference=train_X[0])
        >>> pair, value = next_pair(model, bounds, method=acq)

    `k` weighs the improvement; other arguments are as of `DuelingUpperCredibleBound`. Raises `InputDataError` if it is
    negative, or the model's likelihood does not take duels.
    """

    def __init__(self, model: Model, X_reference: Tensor, k: float = 0.1, sampler: MCSampler | None = None) -> None:
        k = as_number(k, "k", least=0.0)
        super().__init__(model=model, X_reference=X_reference, sampler=sampler)
        self.k, self._kind = k, kind_of_duels(model, type(self).__name__)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        readings, log_probabilities = [], []
        for member in self.members:
            scale = member.outcome_scale
            reading = member.answering_likelihood.reading(self._kind, X, scale)
            weight = reading.weight[0]
            difference = self._draws(self.difference(member, X, weight))
            value = (difference - scale.location * weight.sum()) / scale.scale  # in units of the latent function
            readings.append(reading)
            log_probabilities.append(reading.log_outcome_probabilities(value))
        log_p = torch.cat(log_probabilities)  # num_samples x batch_shape x O
        expected = log_p.logsumexp(0) - math.log(log_p.shape[0])
        return self.k * expected[..., readings[0].highest] + _entropy(expected) - _entropy(log_p).mean(0)


class DuelingThompsonSampling(DuelingAcquisitionFunction):
    r"""One draw of `f(x) - f(x_r)` as a function of `x`, a sample path (see `SkewGPSamplePath`).

    Its maximiser is the best point of a posterior draw ([Benavoli2021preferential]_, section 5.2). A new object has a
    new draw, from `generator` or torch's global one, with an even number of random features of the prior path. Raises
    `UnsupportedError` if BoTorch has none for the kernel.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> acq = DuelingThompsonSampling(model, X_reference=train_X[0], generator=generator)
        >>> pair, value = next_pair(model, bounds, method=acq)
    """

    def __init__(
        self, model: Model, X_reference: Tensor, num_features: int = 1024, generator: torch.Generator | None = None
    ) -> None:
        num_features = as_count(num_features, "num_features")
        check_parts(generator=(generator, torch.Generator))
        super().__init__(model=model, X_reference=X_reference)
        members, chosen = self.members, 0
        if len(members) > 1:
            device = None if generator is None else generator.device
            chosen = int(torch.randint(len(members), (), generator=generator, device=device))
        self.path = SkewGPSamplePath.draw(cast(SkewGP, members[chosen]), torch.Size(), num_features, generator)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The drawn difference at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return (self.path(X) - self.path(self.X_reference.to(X))).squeeze(-1)


def _entropy(log_p: Tensor) -> Tensor:
    """The entropy in nats of outcomes whose log probabilities are in the last dimension."""
    return -(log_p.exp() * log_p).sum(-1)


register_challengers(DuelingUpperCredibleBound, ExpectedImprovementInformationGain, DuelingThompsonSampling)

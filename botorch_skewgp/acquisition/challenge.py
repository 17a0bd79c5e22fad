r"""Challengers of a reference point: expected improvement, upper bounds, hallucinations, the most uncertain one.

.. [Ament2023logei] S. Ament, S. Daulton, D. Eriksson, M. Balandat, E. Bakshy. Unexpected improvements to expected
   improvement for Bayesian optimization. NeurIPS 2023.
.. [Astudillo2023qeubo] R. Astudillo, Z. J. Lin, E. Bakshy, P. I. Frazier. qEUBO: a decision-theoretic acquisition
   function for preferential Bayesian optimization. AISTATS 2023.
.. [Fauvel2021efficient] T. Fauvel, M. Chalk. Efficient exploration in binary and preferential Bayesian optimization.
   arXiv 2110.09361, 2021.
.. [Takeno2023practical] S. Takeno, M. Nomura, M. Karasuyama. Towards practical preferential Bayesian optimization with
   skew Gaussian processes. ICML 2023.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import log_expected_improvement
from botorch_skewgp.acquisition.dueling import DuelingAcquisitionFunction, random_index
from botorch_skewgp.observations.checks import as_count, as_number
from botorch_skewgp.protocols import LatentModel, kind_of_duels
from botorch_skewgp.truncated.univariate import owens_t

NORMAL_975 = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution


class _HallucinationBeliever(DuelingAcquisitionFunction):
    r"""Base class: one draw of the data's rows counts as the truth, which makes the posterior Gaussian.

    Args:
        model: A model with one output.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.
        draw: The index of the draw; a random one if `None`.
        generator: The source of randomness; torch's global one if `None`.

    Raises:
        InputDataError: If there is no such draw.
    """

    def __init__(
        self, model: Model, X_reference: Tensor, draw: int | None = None, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(model=model, X_reference=X_reference)
        with torch.no_grad():
            num_draws = self._components(self.X_reference.unsqueeze(0)).mean.shape[-1]
        if draw is None:
            draw = random_index(num_draws, generator)
        self.draw = as_count(draw, "draw", least=0, most=num_draws - 1)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        mean, deviation, _ = self._components(X)
        return self._value(mean[..., self.draw], deviation.expand_as(mean)[..., self.draw])

    @abstractmethod
    def _value(self, mean: Tensor, deviation: Tensor) -> Tensor:
        """The value of a Gaussian difference."""


class HallucinatedLogExpectedImprovement(_HallucinationBeliever):
    r"""The logarithm of `E[max(f(x) - f(x_r), 0)]` given one draw of the data's rows (HB-EI, [Takeno2023practical]_).

    The random draw explores: another object with another draw asks elsewhere. The paper improves on the largest mean,
    this function on the reference, the point that the candidate will be compared with, whose value is uncertain too.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = HallucinatedLogExpectedImprovement(model, X_reference=best)
        >>> challenger, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    def _value(self, mean: Tensor, deviation: Tensor) -> Tensor:
        return log_expected_improvement(mean, deviation)


class HallucinatedUpperConfidenceBound(_HallucinationBeliever):
    r"""Mean plus `sqrt(beta)` standard deviations of `f(x) - f(x_r)` given one draw (HB-UCB, [Takeno2023practical]_).

    Args:
        model: A model with one output.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.
        beta: The squared number of standard deviations.
        draw: The index of the draw; a random one if `None`.
        generator: The source of randomness; torch's global one if `None`.

    Raises:
        InputDataError: If `beta` is negative, or there is no such draw.
    """

    def __init__(
        self,
        model: Model,
        X_reference: Tensor,
        beta: float = 2.0,
        draw: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        beta = as_number(beta, "beta", least=0.0)
        super().__init__(model, X_reference, draw, generator)
        self.beta = beta

    def _value(self, mean: Tensor, deviation: Tensor) -> Tensor:
        return mean + self.beta**0.5 * deviation


class DuelingLogExpectedImprovement(DuelingAcquisitionFunction):
    r"""The logarithm of `E[max(f(x) - f(x_r), 0)]` over the skewed posterior, in closed form on the mixture.

    Up to a constant and the logarithm this is qEUBO with one arm given ([Astudillo2023qeubo]_): the expected excess of
    the better of the two over the reference. The logarithm and the closed form keep its gradient alive where little is
    left to gain ([Ament2023logei]_).

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = DuelingLogExpectedImprovement(model, X_reference=best)
        >>> challenger, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The acquisition value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return self._components(X).log_expected_improvement(X.new_zeros(()), maximize=True)


class DuelingUpperConfidenceBound(DuelingAcquisitionFunction):
    r"""Mean plus `sqrt(beta)` standard deviations of `f(x) - f(x_r)` (dueling UCB, [Fauvel2021efficient]_).

    Mean and variance are those of the skewed posterior, in closed form; `DuelingUpperCredibleBound` uses its shape.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> champion, _ = recommend(model, bounds)
        >>> acq = DuelingUpperConfidenceBound(model, X_reference=champion)
        >>> challenger, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model with one output.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.
        beta: The squared number of standard deviations; by default the paper's, the 97.5 % quantile of a normal.

    Raises:
        InputDataError: If `beta` is negative.
    """

    def __init__(self, model: Model, X_reference: Tensor, beta: float = NORMAL_975**2) -> None:
        beta = as_number(beta, "beta", least=0.0)
        super().__init__(model=model, X_reference=X_reference)
        self.beta = beta

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The bound at `batch_shape x 1 x d` candidates; `batch_shape`."""
        differences = [self.difference(member, X) for member in self.members]
        means = torch.stack([difference.mean[..., 0, 0] for difference in differences])
        variance = torch.stack([difference.variance[..., 0, 0] for difference in differences]).mean(0)
        return means.mean(0) + (self.beta * (variance + means.var(0, correction=0))).sqrt()


class MaximallyUncertainChallenge(DuelingAcquisitionFunction):
    r"""The variance of the probability that `x` beats the reference (MUC, [Fauvel2021efficient]_).

    `Var[Phi((f(x) - f(x_r)) / s)]` over the posterior of `f`, with `s` the standard deviation of a duel's noise: the
    outcome is uncertain because of the function, not of noise. In closed form on the mixture: given a draw, the mean of
    the square is a bivariate normal probability with equal bounds, hence Owen's function.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best = train_X[model.posterior(train_X).mean.argmax()]
        >>> acq = MaximallyUncertainChallenge(model, X_reference=best)
        >>> challenger, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model with one output, whose likelihood takes duels.
        X_reference: The reference point, a `d`-dim or `1 x d` tensor.

    Raises:
        InputDataError: If the model's likelihood does not take duels.
    """

    def __init__(self, model: Model, X_reference: Tensor) -> None:
        super().__init__(model=model, X_reference=X_reference)
        self._kind = kind_of_duels(model, type(self).__name__)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The variance at `batch_shape x 1 x d` candidates; `batch_shape`."""
        moments = torch.stack([self._moments(member, X) for member in self.members]).mean(0)
        return moments[1] - moments[0].square()

    def _moments(self, member: LatentModel, X: Tensor) -> Tensor:
        """The means of the probability and of its square under a member's posterior, `2 x batch_shape`."""
        difference = self.difference(member, X)
        outcome = member.outcome_scale.scale  # the reading is in units of the latent function
        reading = member.answering_likelihood.reading(self._kind, difference.component_means)
        noise, variance = reading.variance, difference.gaussian_variance / outcome**2
        bound = difference.component_means[..., 0, :] / outcome - reading.cutpoints[0, -1]  # the first wins above it
        margin = bound / (variance + noise).sqrt()
        slope = (noise / (noise + 2 * variance)).sqrt()
        wins = torch.special.ndtr(margin)
        squares = wins - 2 * owens_t(margin, slope.expand_as(margin))
        return (torch.stack([wins, squares]) * difference.probabilities).sum(-1)

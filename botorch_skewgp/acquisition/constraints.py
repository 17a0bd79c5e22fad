r"""Unknown constraints: the probability that an experiment is valid, on samples and as a weight.

`ValidityConstraint` is for Monte Carlo acquisition functions, `ValidityWeightedAcquisitionFunction` for analytic ones.
With both a point that is likely to fail is tried where much can be gained; with `safety.next_safe` never.

.. [Gelbart2014unknown] M. A. Gelbart, J. Snoek, R. P. Adams. Bayesian optimization with unknown constraints. UAI 2014.
"""

from __future__ import annotations

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity, validity_functions
from botorch_skewgp.checks import as_number


class ValidityConstraint(Module):
    r"""Validity as a constraint on samples, for the `constraints` argument of BoTorch's acquisition functions.

    A sample `f` of the latent function is valid with probability `p(f) = Phi((f - threshold) / sqrt(noise))`, which is
    BoTorch's feasibility `sigmoid(-c / eta)` of the constraint's value `c = -eta log(p / (1 - p))`, without further
    smoothing. Give the acquisition function the same `eta` (BoTorch's default is the default here too) and leave `fat`
    off; or pass `probability` with `fat=[None]`.

    BoTorch's noisy improvement warns if all training points are infeasible in one of its samples. With few valid trials
    ignore that; without any, maximise `LogProbabilityOfValidity`.

    Example:
        >>> validity = SkewGP(train_X, Validity(worked))
        >>> acq = qLogExpectedImprovement(
        ...     ModelList(objective, validity),
        ...     best_f=0.0,
        ...     objective=GenericMCObjective(lambda Y, X=None: Y[..., 0]),
        ...     constraints=[ValidityConstraint(validity, output=1)],
        ... )

    Args:
        model: As for `LogProbabilityOfValidity`; samples of an ensemble's members have thresholds of their own.
        output: The output of the samples that is its latent function.
        eta: The temperature of the acquisition function; an `InputDataError` if it is not positive.
    """

    threshold: Tensor
    noise_scale: Tensor

    def __init__(self, model: Model, output: int = -1, eta: float = 1e-3) -> None:
        if as_number(eta, "eta") <= 0:
            raise InputDataError(f"eta must be positive; got {eta}.")
        super().__init__()
        thresholds, deviations = [], []
        for member, function in validity_functions(model):
            self.sign, scale = function.sign, member.outcome_scale
            thresholds.append(scale.unstandardize(function.center).detach())
            deviations.append((scale.scale * function.noise.sqrt()).detach())
        # `E x 1` for the samples of an ensemble, `... x E x q`
        self.register_buffer("threshold", torch.stack(thresholds).unsqueeze(-1).squeeze(0))
        self.register_buffer("noise_scale", torch.stack(deviations).unsqueeze(-1).squeeze(0))
        self.output, self.eta = output, eta

    def _margin(self, samples: Tensor) -> Tensor:
        distance = samples[..., self.output] - self.threshold.to(samples)
        return self.sign * distance / self.noise_scale.to(samples)

    def probability(self, samples: Tensor) -> Tensor:
        """The probabilities that `... x q x m` samples are valid, `... x q`; smooth."""
        return torch.special.log_ndtr(self._margin(samples)).exp()

    def forward(self, samples: Tensor) -> Tensor:
        """The constraint's values at `... x q x m` samples, `... x q`; negative means feasible."""
        margin = self._margin(samples)
        return self.eta * (torch.special.log_ndtr(-margin) - torch.special.log_ndtr(margin))


class ValidityWeightedAcquisitionFunction(AcquisitionFunction):
    r"""An acquisition function times the probability of validity ([Gelbart2014unknown]_); their sum in logarithms.

    The expected utility of valid experiments alone, if validity and the objective are independent given the data.

    Example:
        >>> ei = SkewLogExpectedImprovement(objective, best_f=0.0)
        >>> acq = ValidityWeightedAcquisitionFunction(ei, SkewGP(train_X, Validity(worked)))
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    The acquisition function is a logarithm or never negative, and of single points; the model is as for
    `LogProbabilityOfValidity`.
    """

    def __init__(self, acq_function: AcquisitionFunction, model: Model) -> None:
        super().__init__(model=acq_function.model)
        self.acq_function = acq_function
        self.validity = LogProbabilityOfValidity(model)
        self._log = acq_function._log

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Set the pending points of the acquisition function."""
        self.acq_function.set_X_pending(X_pending)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The weighted value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        log_probability = self.validity(X)
        value = self.acq_function(X)
        return value + log_probability if self._log else value * log_probability.exp()

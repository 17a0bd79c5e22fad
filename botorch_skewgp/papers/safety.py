r"""The penalised bound for safe optimisation.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import quantile_of
from botorch_skewgp.acquisition.input_constructors import register
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity, warn_of_few_outcomes
from botorch_skewgp.checks import as_number, as_probability


class PenalizedUpperConfidenceBound(AnalyticAcquisitionFunction):
    r"""The upper credible bound, less a penalty where an experiment is too likely to fail.

    `Q(x) - penalty max(0, level - P(valid at x))^2` with `Q` a quantile of the objective, the penalised bound for safe
    optimisation after [Benavoli2021unified]_; the square keeps it smooth at the edge. The penalty has the units of the
    objective; a larger one keeps the level more nearly.

    Example:
        >>> model = SkewGP(train_X, [Numeric(values[worked], index=worked.nonzero().squeeze(-1)), Validity(worked)])
        >>> acq = PenalizedUpperConfidenceBound(model, level=0.9, penalty=1000.0)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    The objective is of any `model` with one output whose posterior has quantiles, below the bound with a
    `probability`; `validity_model` is as for `LogProbabilityOfValidity`, and `model` if `None`. Raises `InputDataError`
    if a number is out of its range, and errors as `LogProbabilityOfValidity`.
    """

    def __init__(
        self,
        model: Model,
        validity_model: Model | None = None,
        level: float = 0.95,
        penalty: float = 1000.0,
        probability: float = 0.975,
        posterior_transform: PosteriorTransform | None = None,
    ) -> None:
        level, probability = as_probability(level, "level"), as_probability(probability, "probability")
        penalty = as_number(penalty, "penalty", least=0.0)
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.validity = LogProbabilityOfValidity(model if validity_model is None else validity_model)
        warn_of_few_outcomes(self.validity.model)
        self.level, self.penalty, self.probability = level, penalty, probability

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The penalised bound at `batch_shape x 1 x d` candidates; `batch_shape`."""
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        bound = quantile_of(posterior, self.probability, type(self).__name__)
        lack = (self.level - self.validity(X).exp()).clamp(min=0)
        return bound - self.penalty * lack.square()


register(PenalizedUpperConfidenceBound)

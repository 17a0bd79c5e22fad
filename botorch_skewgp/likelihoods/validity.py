r"""The likelihood of valid and failed experiments.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

import torch
from gpytorch.constraints import Interval
from gpytorch.priors import Prior
from torch import Tensor
from torch.distributions import Bernoulli

from botorch_skewgp.likelihoods.defaults import VALIDITY_NOISE
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.parameters import ReadParameter, SetParameter
from botorch_skewgp.likelihoods.probit import NoisyValueLikelihood
from botorch_skewgp.observations import Observation, Validity
from botorch_skewgp.observations.checks import as_number, check_flags, check_parts
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading


class ValidityLikelihood(NoisyValueLikelihood):
    r"""`P(valid) = Phi((f(x) - threshold) / sqrt(noise))` ([Benavoli2021unified]_, equation (40)).

    Failures tend to repeat: the default noise is a hundredth of that of labels, so that the boundary is sharp beside
    the default output scale.

    Args:
        threshold: The value of the latent function above which experiments are valid, in units of the outcome.
        learn_threshold: Whether the threshold is a parameter to fit.
        noise: The noise variance, in squared units of the latent function; by default 0.01, and learned beside numbers.
        learn_noise: Whether the noise is a parameter to fit; by default beside numbers, if nothing is said of it.
        noise_prior: A prior on the noise variance; by default LogNormal(-2, 1.5) beside numbers.
        noise_constraint: A constraint on the noise variance; positive by default.
        threshold_prior: A prior on the threshold.
        slip: The probability of a slip, an answer drawn uniformly from all possible ones: one for all judges, or a
            tensor with one for each; 0 by default.
        learn_slip: Whether it is a parameter to fit.
        slip_prior: A prior on it; by default half-Cauchy on its odds, with a median of 1 to 20.

    Raises:
        InputDataError: If the threshold is not a finite number, the noise not positive, a rate not between 0 and 1, or
            another argument of another class.
    """

    observation_types = (Validity,)
    default_noise = VALIDITY_NOISE

    def __init__(
        self,
        threshold: float | Tensor = 0.0,
        learn_threshold: bool = False,
        noise: float | Tensor | None = None,
        learn_noise: bool | None = None,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        threshold_prior: Prior | None = None,
        slip: float | Tensor = 0.0,
        learn_slip: bool = False,
        slip_prior: Prior | None = None,
    ) -> None:
        check_flags(learn_threshold=learn_threshold)
        check_parts(threshold_prior=(threshold_prior, Prior))
        value = torch.tensor([as_number(threshold, "threshold")], dtype=torch.float64)
        super().__init__(noise, learn_noise, noise_prior, noise_constraint, slip, learn_slip, slip_prior)
        self.register_parameter("threshold", torch.nn.Parameter(value, requires_grad=learn_threshold))
        if threshold_prior is not None:
            closures = ReadParameter("threshold"), SetParameter("threshold")
            self.register_prior("threshold_prior", threshold_prior, *closures)

    def reading(
        self,
        kind: type[Observation],
        like: Tensor,
        scale: OutcomeScale = OutcomeScale(),  # noqa: B008
        num_points: int | None = None,
    ) -> Reading:
        """`f(x) + v` above the threshold for outcome 1, valid; else 0."""
        threshold = scale.standardize(self.threshold.to(like))
        return Reading.at_point(threshold, self.noise, self._slips(2, like))

    def answers(self, observation: Validity) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and whether it is valid."""
        return observation.index.unsqueeze(-1), observation.valid.long()

    def reversed_marginal(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Bernoulli:
        """Valid below the threshold."""
        return Bernoulli(probs=1 - self.marginal(posterior, scale=scale).probs)

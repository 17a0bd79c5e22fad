r"""The probit likelihood of yes/no labels.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

from gpytorch.constraints import Interval
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import JUDGEMENT_NOISE
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.parameters import PositiveParameter
from botorch_skewgp.observations import Binary, Observation
from botorch_skewgp.rows import Reading


class NoisyValueLikelihood(RowLikelihood):
    r"""Base class of likelihoods that read the latent function at one point, with noise.

    Args:
        noise: The noise variance, in squared units of the latent function.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance.
        noise_constraint: A constraint on the noise variance; positive by default.
    """

    noise = PositiveParameter()

    def __init__(
        self,
        noise: float | Tensor = JUDGEMENT_NOISE,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
    ) -> None:
        super().__init__()
        self._register_positive("noise", noise, learn_noise, noise_prior, noise_constraint)

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise variance."""
        return self.noise


class ProbitLikelihood(NoisyValueLikelihood):
    r"""`P(label = 1) = Phi(f(x) / sqrt(noise))` ([Benavoli2021unified]_, section 2.2).

    Labels alone cannot tell the noise from the kernel's output scale, so that it is fixed at 1 unless told otherwise.
    """

    observation_types = (Binary,)

    def reading(
        self,
        kind: type[Observation],
        like: Tensor,
        scale: OutcomeScale = OutcomeScale(),  # noqa: B008
        num_points: int | None = None,
    ) -> Reading:
        """`f(x) + v` not above zero for 0, above it for 1."""
        return Reading.at_point(like.new_zeros(1), self.noise)

    def answers(self, observation: Binary) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and its label."""
        return observation.index.unsqueeze(-1), observation.labels.long()

r"""The general affine probit likelihood.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

import torch
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.observations import AffineProbit, Observation
from botorch_skewgp.rows import Rows


class ProbitAffineLikelihood(RowLikelihood):
    r"""`P(lower < W f + Z + v <= upper)` with `v ~ N(0, Sigma)` ([Benavoli2021unified]_, equation (22)).

    Weights, shifts and the noise covariance belong to the observations. Each row is an answer with two outcomes, inside
    or outside its bounds: with slips `slip / 2 + (1 - slip) P(...)`.

    Args:
        slip: The probability of a slip; as of `NoisyValueLikelihood`, like `learn_slip` and `slip_prior`.
    """

    observation_types = (AffineProbit,)
    predicts = False

    def __init__(self, slip: float | Tensor = 0.0, learn_slip: bool = False, slip_prior: Prior | None = None) -> None:
        super().__init__()
        self._register_slip(slip, learn_slip, slip_prior)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """The rows as given; the smallest eigenvalue of the noise covariance is independent noise."""
        self.for_kind(type(observation))
        assert isinstance(observation, AffineProbit)
        weight = observation.weight.to(like)
        eigenvalues, vectors = torch.linalg.eigh(observation.covariance.to(like))
        rounding = 1e3 * torch.finfo(like.dtype).eps * eigenvalues[-1:].abs()
        own = torch.where(eigenvalues[:1] > rounding, eigenvalues[:1], torch.zeros_like(rounding))
        shared = eigenvalues - own
        keep = shared > rounding
        root = vectors[:, keep] * shared[keep].sqrt()
        m = weight.shape[0]
        return Rows(
            index=observation.index.to(like.device).expand(m, -1),
            coefficient=weight,
            bias=observation.bias.to(like),
            lower=observation.lower.to(like),
            upper=observation.upper.to(like),
            noise=own.expand(m),
            noise_root=root if root.shape[-1] else None,
            heights=self._heights(observation.judge, like.new_full((m,), 2), like),
        )

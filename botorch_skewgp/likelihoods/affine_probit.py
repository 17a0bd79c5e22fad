r"""The general affine probit likelihood.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.observations import AffineProbit, Observation
from botorch_skewgp.rows import Reading, Rows


class ProbitAffineLikelihood(RowLikelihood):
    r"""`P(lower < W f + Z + v <= upper)` with `v ~ N(0, Sigma)` ([Benavoli2021unified]_, equation (4)).

    Has no parameters: weights, shifts and the noise covariance come with the observations.
    """

    observation_types = (AffineProbit,)
    predicts = False

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """The rows as given; the least eigenvalue of the noise covariance counts as independent noise."""
        self._check_type(observation)
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
        )

    def reading(
        self,
        kind: type[Observation],
        like: Tensor,
        scale: OutcomeScale = OutcomeScale(),  # noqa: B008
        num_points: int | None = None,
    ) -> Reading:
        """Not defined: a new affine observation needs its own weights; raises `UnsupportedError`."""
        raise UnsupportedError("Use SkewGPPosterior.affine(weight, bias) and its probability functions instead.")

r"""The likelihoods of linear functionals of the latent function: of slopes, and the general affine probit.

.. [Riihimaki2010monotonic] J. Riihimäki, A. Vehtari. Gaussian processes with monotonicity information. AISTATS 2010.
.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.priors import Prior
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from botorch_skewgp.checks import as_number
from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import SLOPE_NOISE
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.observations import AffineProbit, Observation, Slope
from botorch_skewgp.rows import Reading, Rows, first_of_equal, slope_in


class SlopeLikelihood(RowLikelihood):
    r"""`P(f rises in input d at x) = Phi(df/dx_d (x) / sqrt(noise))`; without noise by default.

    With noise it is the likelihood of [Riihimaki2010monotonic]_, equation (4).

    Args:
        noise: The variance of the noise of slopes, in squared units of the latent function over those of the inputs
            (after an input transform).
        slip: The probability that a stated sign is random; as of `NoisyValueLikelihood`, like `learn_slip` and
            `slip_prior`.
    """

    observation_types = (Slope,)
    predicts = False

    def __init__(
        self,
        noise: float = SLOPE_NOISE,
        slip: float | Tensor = 0.0,
        learn_slip: bool = False,
        slip_prior: Prior | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("noise", torch.tensor([as_number(noise, "noise", least=0.0)], dtype=torch.float64))
        self._register_slip(slip, learn_slip, slip_prior)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """One row per slope, of equal ones without noise or slips one; if these disagree it raises `InputDataError`."""
        self.for_kind(type(observation))
        assert isinstance(observation, Slope)
        index = observation.index
        dims = observation.dims
        signs = observation.signs
        judge = observation.judge
        reading = Reading.at_point(like.new_zeros(1), self.noise)
        rows = reading.rows(index.unsqueeze(-1), (signs > 0).long(), reads=slope_in(dims).unsqueeze(-1))
        rows = self._with_slips(rows, judge, 2)
        if self.noise.any():
            return rows
        first = first_of_equal(torch.stack([index, dims, torch.zeros_like(index) if judge is None else judge], dim=-1))
        against = signs != signs[first]
        if against.any():
            last = int(against.nonzero()[0])
            raise InputDataError(
                f"Slopes {[int(first[last]), last]} contradict each other: the function rises and falls in input "
                f"{int(dims[last])} at one point. Leave one out, or give SlopeLikelihood a noise, with a rate of slips "
                "if they may be wrong."
            )
        return rows if rows.heights is not None or rows.num_rows == 0 else rows.select(first.unique())


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
        _, block = connected_components((observation.covariance != 0).cpu().numpy())  # of rows that share noise
        rows = Rows(
            index=observation.index.to(like.device).expand(m, -1),
            coefficient=weight,
            bias=observation.bias.to(like),
            lower=observation.lower.to(like),
            upper=observation.upper.to(like),
            noise=own.expand(m),
            noise_root=root if root.shape[-1] else None,
            block=torch.from_numpy(block).to(like.device).long(),
        )
        return self._with_slips(rows, observation.judge, 2)

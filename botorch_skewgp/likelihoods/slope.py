r"""The likelihood of monotone functions.

.. [Riihimaki2010monotonic] J. Riihimäki, A. Vehtari. Gaussian processes with monotonicity information. AISTATS 2010.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import SLOPE_NOISE
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.observations import Observation, Slope
from botorch_skewgp.observations.checks import as_number
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
        index, dims, signs, judge = observation.index, observation.dims, observation.signs, observation.judge
        reading = Reading.at_point(like.new_zeros(1), self.noise)
        rows = reading.rows(index.unsqueeze(-1), (signs > 0).long(), reads=slope_in(dims).unsqueeze(-1))
        rows = replace(rows, heights=self._heights(judge, like.new_full((rows.num_rows,), 2), like))
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

r"""The likelihood of monotone functions.

.. [Riihimaki2010monotonic] J. Riihimäki, A. Vehtari. Gaussian processes with monotonicity information. AISTATS 2010.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import SLOPE_NOISE
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.observations import Observation, Slope
from botorch_skewgp.observations.checks import as_number
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import FantasyRows, Reading, Rows, first_of_equal, slope_in


class SlopeLikelihood(RowLikelihood):
    r"""`P(f rises in input d at x) = Phi(df/dx_d (x) / sqrt(noise))`; without noise by default.

    With noise it is the likelihood of [Riihimaki2010monotonic]_, equation (4).

    Args:
        noise: The variance of the noise of slopes, in squared units of the latent function over those of the inputs
            (after an input transform).
        slip: The probability that a stated sign is random: one for all judges, or a tensor with one for each; 0 by
            default.
        learn_slip: Whether it is a parameter to fit.
        slip_prior: A prior on it; by default half-Cauchy on its odds, with a median of 1 to 20.

    Raises:
        InputDataError: If the noise is negative or not finite, or a rate not in [0, 1).
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

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """The slope at a point: outcome 1 above zero, 0 below."""
        return Reading.at_point(like.new_zeros(1), self.noise, self._slips(2, like))

    def answers(self, observation: Slope) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and whether the function rises there."""
        return observation.index.unsqueeze(-1), (observation.signs > 0).long()

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """One row per slope; repeated slopes without noise or slips count once.

        Raises:
            InputDataError: If slopes without noise contradict each other.
        """
        self._check_type(observation)
        assert isinstance(observation, Slope)
        reads = slope_in(observation.dims).unsqueeze(-1)
        index, outcome = self.answers(observation)
        rows = self.reading(Slope, like, scale).rows(index, outcome, reads=reads)
        slips = self._slips(2, like, observation.judge)
        if slips is not None:
            rows = replace(rows, heights=self._heights(slips, outcome))
        if self.noise.any():
            return rows
        _check_agreement(observation)
        if slips is not None:
            return rows
        first = first_of_equal(_places(observation))
        return rows if rows.num_rows == 0 else rows.select(first.unique())

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Not defined: models predict values of the function, not slopes; raises `UnsupportedError`."""
        raise UnsupportedError(_REFUSAL)

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Any:
        raise UnsupportedError(_REFUSAL)

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale, seed: int = 0) -> FantasyRows:
        """Not defined: slopes are not drawn; raises `UnsupportedError`."""
        raise UnsupportedError(_REFUSAL)

    def latent_noise(self, X: Tensor) -> Tensor:
        """Not defined: the noise is that of slopes, not of values; raises `UnsupportedError`."""
        raise UnsupportedError(_REFUSAL)


def _places(observation: Slope) -> Tensor:
    """The row of `train_X`, the input and the judge of each slope, `m x 3`."""
    judge = torch.zeros_like(observation.index) if observation.judge is None else observation.judge
    return torch.stack([observation.index, observation.dims, judge], dim=-1)


def _check_agreement(observation: Slope) -> None:
    """Raise if a judge's function rises and falls in an input at a point."""
    same = first_of_equal(_places(observation))
    against = observation.signs != observation.signs[same]
    if against.any():
        last = int(against.nonzero()[0])
        raise InputDataError(
            f"Slopes {[int(same[last]), last]} contradict each other: the function rises and falls in input "
            f"{int(observation.dims[last])} at one point. Leave one out, or give SlopeLikelihood a noise, with a rate "
            "of slips if they may be wrong."
        )


_REFUSAL = "Slopes cannot be predicted or drawn; use another kind of observation of the same model."

r"""The affine map between outcomes and the latent function."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_number


@dataclass(frozen=True)
class OutcomeScale:
    r"""How outcomes relate to the latent function: `outcome = location + scale * latent`.

    Values, known variances, bounds, thresholds and given cut-points are in units of the outcome, and converted here;
    noise levels of likelihoods are in units of the latent function.

    Args:
        location: The outcome at which the latent function is zero.
        scale: The change of the outcome for a unit of the latent function; positive.

    Raises:
        InputDataError: If the location is not finite, or the scale not positive and finite.
    """

    location: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        as_number(self.location, "location")
        if as_number(self.scale, "scale") <= 0:
            raise InputDataError(f"scale must be positive; got {self.scale}. To minimise, negate the outcomes.")

    def standardize(self, outcome: Tensor) -> Tensor:
        """Outcomes in units of the latent function."""
        return (outcome - self.location) / self.scale

    def unstandardize(self, latent: Tensor) -> Tensor:
        """Values of the latent function in units of the outcome."""
        return self.location + self.scale * latent


UNIT = OutcomeScale()  # of outcomes that are values of the latent function
